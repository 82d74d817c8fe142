//! Which object is meant where the journal, or the head of a value, names one.
//!
//! A handle is that of the object that has it when it is named: of the last write before that which made one with this
//! handle, or of the object that the checkpoint knows under it. Volumes of version 5 and before name objects by
//! write sequence number; then those of the checkpoint must be looked up.
//!
//! Invariant: what is answered has the half of the write sequence number that the name has.

use flashlore_flash::ObjectId;
use rustc_hash::FxHashMap;

use super::evidence::Evidence;
use crate::format::{Naming, ObjectName};
use crate::load::{Known, Tables, objects_of};
use crate::place::Name;

/// The objects that can be named.
pub(crate) struct ObjectNames<'a> {
    known: Known<'a>,
    since: u64,
    /// Objects of the checkpoint by write sequence number, where they are named so.
    by_write: FxHashMap<u64, ObjectId>,
    /// Writes since the checkpoint by the handle of what they made, in order.
    makers: FxHashMap<ObjectId, Vec<u64>>,
    /// The same the other way round.
    made: FxHashMap<u64, ObjectId>,
}

impl<'a> ObjectNames<'a> {
    /// Those of a checkpoint that holds everything up to an event, and of the writes since that count: `order` are the
    /// events that do.
    pub(super) fn new(
        (tables, known): (&Tables, Known<'a>),
        since: u64,
        naming: Naming,
        evidence: &Evidence<'_>,
        order: &[u64],
    ) -> Self {
        let by_write = match naming {
            Naming::ByHandle => FxHashMap::default(),
            Naming::ByWrite => alive(tables)
                .map(|handle| (tables.objects[handle.index()].write_seq, handle))
                .collect(),
        };
        let mut makers: FxHashMap<ObjectId, Vec<u64>> = FxHashMap::default();
        let mut made = FxHashMap::default();
        if naming == Naming::ByHandle {
            let counts = |write_seq: &u64| order.binary_search(write_seq).is_ok();
            for (object, write_seq) in evidence.makers().filter(|(_, write_seq)| counts(write_seq))
            {
                makers.entry(object).or_default().push(write_seq);
                made.insert(write_seq, object);
            }
        }
        makers
            .values_mut()
            .for_each(|writes| writes.sort_unstable());
        ObjectNames {
            known,
            since,
            by_write,
            makers,
            made,
        }
    }

    /// The handle of the object that a write since the checkpoint made, where it was written down.
    pub fn made_by(&self, write_seq: u64) -> Option<ObjectId> {
        self.made.get(&write_seq).copied()
    }

    /// The object that a name means that was written with this event.
    pub fn meant(&self, name: ObjectName, event: u64) -> Option<Name> {
        let (object, half) = match name {
            ObjectName::Write(write_seq) if write_seq > self.since => {
                return Some(Name::New(write_seq));
            }
            ObjectName::Write(write_seq) => {
                return self.by_write.get(&write_seq).copied().map(Name::Old);
            }
            ObjectName::Handle { object, half } => (object, half),
        };
        let makers = self.makers.get(&object).map_or(&[][..], Vec::as_slice);
        let before = makers.partition_point(|&write_seq| write_seq < event);
        if let Some(&write_seq) = makers[..before].last()
            && write_seq as u32 == half
        {
            return Some(Name::New(write_seq));
        }
        let known = self.known.object(object)?.write_seq;
        (known != 0 && known as u32 == half).then_some(Name::Old(object))
    }
}

/// Handles that the map or the history of a checkpoint names, and the bases of those; each once or more.
fn alive(tables: &Tables) -> impl Iterator<Item = ObjectId> + '_ {
    let objects = tables.objects.len();
    let named = objects_of(&tables.map).chain(tables.kept_objects());
    let named = named.filter(move |handle| handle.index() < objects);
    named.flat_map(move |handle| {
        let base = tables.objects[handle.index()].base();
        let base = base.filter(|base| base.index() < objects);
        std::iter::once(handle).chain(base)
    })
}
