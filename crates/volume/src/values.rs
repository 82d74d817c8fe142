//! Encoded values in RAM, which wait for their page to be filled, and what is found out about a page before it is written.
//!
//! A value that waits is known to nobody but the translation layer and this list. When everything is to become
//! durable the list says what must go into the journal: the values that still wait, and that a write happened
//! whose value nobody needs any more.
//!
//! Invariant: a value that was held and has been neither programmed nor written to the journal is on the list,
//! or, if it is needed no more, among those forgotten.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use flashlore_flash::{Lpn, ObjectId};
use parking_lot::Mutex;

use crate::format::ObjectName;
use crate::format::packed::{EXTRA_BYTES, Head};
use crate::unit::UnitPlace;
use crate::young::Young;

/// An encoded value in RAM.
#[derive(Debug)]
pub struct PackedValue {
    pub(crate) what: ValueState,
    /// How durable it is.
    state: AtomicU8,
    /// The object that it is the value of, once it is held, and what it is a delta from.
    holder: OnceLock<(ObjectId, Option<ObjectName>)>,
}

/// What a packed value is.
#[derive(Debug)]
pub(crate) enum ValueState {
    /// A value as it is stored.
    Stored {
        head: Head,
        /// As many as the head says.
        bytes: Box<[u8]>,
    },
    /// In place of one that cannot be read: the write sequence numbers are known to others.
    Lost {
        object: ObjectId,
        lpn: Lpn,
        length: u16,
    },
}

const WAITS: u8 = 0;
const IS_SAFE: u8 = 1;
const IS_GIVEN_UP: u8 = 2;

impl PackedValue {
    pub(crate) fn stored(head: Head, bytes: &[u8]) -> Self {
        PackedValue {
            what: ValueState::Stored {
                head,
                bytes: bytes.into(),
            },
            state: AtomicU8::new(WAITS),
            holder: OnceLock::new(),
        }
    }

    /// In place of a value of an object that cannot be read.
    pub(crate) fn lost(object: ObjectId, lpn: Lpn, length: u16) -> Self {
        PackedValue {
            what: ValueState::Lost {
                object,
                lpn,
                length,
            },
            state: AtomicU8::new(WAITS),
            holder: OnceLock::from((object, None)),
        }
    }

    /// It is the value of an object, and stays that.
    pub(crate) fn note_holder(&self, object: ObjectId, base: Option<ObjectName>) {
        let (known, _) = self.holder.get_or_init(|| (object, base));
        debug_assert_eq!(*known, object);
    }

    fn holder(&self) -> (ObjectId, Option<ObjectName>) {
        self.holder.get().copied().unwrap_or((ObjectId::NONE, None))
    }

    /// It has been programmed, or written to the journal.
    pub(crate) fn note_safe(&self) {
        self.state.store(IS_SAFE, Ordering::Relaxed);
    }

    fn waits(&self) -> bool {
        self.state.load(Ordering::Relaxed) == WAITS
    }

    /// Head and bytes; `write_seq` knows that of an object.
    pub(crate) fn parts<'a>(
        &'a self,
        write_seq: impl Fn(ObjectId) -> u64,
        zeros: &'a [u8],
    ) -> (Head, &'a [u8]) {
        match &self.what {
            ValueState::Stored { head, bytes } => {
                let (object, base) = self.holder();
                let head = Head {
                    object,
                    base,
                    ..*head
                };
                (head, bytes)
            }
            ValueState::Lost {
                object,
                lpn,
                length,
            } => {
                let length = length.saturating_sub(EXTRA_BYTES);
                let head = Head {
                    lpn: *lpn,
                    length,
                    lost: true,
                    write_seq: write_seq(*object),
                    base: None,
                    stamp: 0,
                    digest: Default::default(),
                    object: *object,
                };
                (head, &zeros[..usize::from(length)])
            }
        }
    }

    /// The object that it is the value of, the page that it was written for, and bytes of its slot.
    pub(crate) fn slot(&self) -> (ObjectId, Lpn, u16) {
        match self.what {
            ValueState::Stored { ref head, .. } => (self.holder().0, head.lpn, head.slot_length()),
            ValueState::Lost {
                object,
                lpn,
                length,
            } => (object, lpn, length),
        }
    }

    fn young(&self) -> Option<Young> {
        match &self.what {
            ValueState::Stored { head, .. } => Some(Young {
                write_seq: head.write_seq,
                lpn: head.lpn,
                stamp: head.stamp,
                object: self.holder().0,
            }),
            ValueState::Lost { .. } => None,
        }
    }
}

/// The values that wait in RAM.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    held: Vec<Arc<PackedValue>>,
    /// Writes whose values were given up before they were safe.
    forgotten: Vec<Young>,
    /// Values that lead to a look for those that are not needed.
    patience: usize,
}

/// Shared by the encoder, which learns of values, and the flash, which makes them durable.
pub(crate) type SharedWaiting = Arc<Mutex<Waiting>>;

/// What the list says when everything is to become durable.
pub(crate) struct Due {
    /// Values that wait and are safe nowhere.
    pub values: Vec<Arc<PackedValue>>,
    /// Writes whose values are needed no more.
    pub forgotten: Vec<Young>,
}

impl Waiting {
    /// A value becomes that of an object.
    pub fn hold(&mut self, value: &Arc<PackedValue>) {
        if !value.waits() {
            return;
        }
        self.held.push(Arc::clone(value));
        if self.held.len() > self.patience {
            self.sweep();
            self.patience = 2 * self.held.len() + 64;
        }
    }

    /// A value is needed no more. Of one that is safe the write is known.
    pub fn give_up(&mut self, value: &PackedValue) {
        if value.waits() {
            value.state.store(IS_GIVEN_UP, Ordering::Relaxed);
            self.forgotten.extend(value.young());
        }
    }

    /// Leaves on the list what waits.
    fn sweep(&mut self) {
        self.held.retain(|value| value.waits());
    }

    /// Everything up to an event is to become durable; what belongs to a later one stays.
    pub fn due(&mut self, sequence: u64) -> Due {
        self.sweep();
        let later = |value: &PackedValue| value.young().is_some_and(|y| y.write_seq > sequence);
        let values = self.held.iter().filter(|value| !later(value)).cloned();
        Due {
            values: values.collect(),
            forgotten: std::mem::take(&mut self.forgotten),
        }
    }
}

/// What is found out about a page before the volume is asked to write it: what holds its bytes already, or what it is in
/// fewer. Nothing in place of bytes says that they would be too many.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    pub same: Option<Holding>,
    pub delta: Option<Delta>,
    pub alone: Option<Option<Box<[u8]>>>,
}

impl Ahead {
    /// Whether the bytes are those that an object held.
    pub fn is_same(&self, object: ObjectId) -> bool {
        self.same.is_some_and(|same| same.object == object)
    }
}

/// An object, what it held, and where. An object that holds the same write in the same place has what was read there: a
/// unit is written once in a generation of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holding {
    pub object: ObjectId,
    pub write_seq: u64,
    /// Nothing of what is in memory.
    pub place: Option<UnitPlace>,
}

/// A page as its delta from what an object held.
#[derive(Debug)]
pub(crate) struct Delta {
    pub base: Holding,
    pub bytes: Option<Box<[u8]>>,
}
