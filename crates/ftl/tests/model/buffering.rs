//! What stands before the device: nothing, a write buffer or a sorting write queue.
//!
//! It uses both as `crates/sim/src/engine/buffering` does, without time: a change goes on when a place is
//! needed, or when a step says so, and its place may stay taken for a while after it is done. Changes of one
//! page go on in order of arrival.

use std::collections::VecDeque;

use flashlore_flash::Lpn;
use flashlore_ftl::buffer::{BufferPlace, Put, Replacement, WriteBuffer, WriteQueue};

/// What stands before the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferingKind {
    None,
    Fifo,
    Slru,
    /// A queue with a bucket for every page.
    QueueByPage,
    /// A queue with buckets of neighbouring pages.
    QueueByRange,
}

impl BufferingKind {
    pub const ALL: [BufferingKind; 5] = [
        BufferingKind::None,
        BufferingKind::Fifo,
        BufferingKind::Slru,
        BufferingKind::QueueByPage,
        BufferingKind::QueueByRange,
    ];
}

/// A write, or a trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub value: Option<u32>,
    pub arrival: u64,
    /// Whether a write is hashed.
    pub hashed: bool,
}

/// A change that goes on to the device, and the place it keeps until it has left.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    pub lpn: Lpn,
    pub change: Change,
    pub place: Option<BufferPlace>,
}

enum Kind {
    None,
    Buffer(WriteBuffer<Change>),
    Queue(WriteQueue<Change>),
}

/// The buffer or the queue.
pub struct Buffering {
    kind: Kind,
    /// Places of changes that were handed to the device and have not left.
    leaving: VecDeque<BufferPlace>,
    /// Changes held, in order of arrival: the queue as a list.
    pub held: Vec<(Lpn, Change)>,
}

impl Buffering {
    /// An empty one of so many places; `range` are the pages of a bucket, and the places of the protected
    /// segment.
    pub fn new(kind: BufferingKind, places: u32, range: u32) -> Self {
        let kind = match kind {
            BufferingKind::None => Kind::None,
            BufferingKind::Fifo => Kind::Buffer(WriteBuffer::new(places, Replacement::Fifo)),
            BufferingKind::Slru => {
                let protected = range.min(places - 1);
                Kind::Buffer(WriteBuffer::new(places, Replacement::Slru { protected }))
            }
            BufferingKind::QueueByPage => Kind::Queue(WriteQueue::new(places, 1)),
            BufferingKind::QueueByRange => Kind::Queue(WriteQueue::new(places, range)),
        };
        Buffering {
            kind,
            leaving: VecDeque::new(),
            held: Vec::new(),
        }
    }

    /// Whether it keeps every version.
    pub fn is_queue(&self) -> bool {
        matches!(self.kind, Kind::Queue(_))
    }

    /// The newest change of a page, if it is here.
    pub fn get(&self, lpn: Lpn) -> Option<Change> {
        match &self.kind {
            Kind::None => None,
            Kind::Buffer(buffer) => buffer.get(lpn),
            Kind::Queue(queue) => queue.get(lpn),
        }
    }

    /// A change of the host arrives; what goes on is added to `on`.
    pub fn arrive(&mut self, lpn: Lpn, change: Change, on: &mut Vec<Leaving>) {
        match &mut self.kind {
            Kind::None => on.push(Leaving {
                lpn,
                change,
                place: None,
            }),
            Kind::Buffer(buffer) if change.value.is_none() => {
                buffer.trim(lpn);
                self.held.retain(|&(held, _)| held != lpn);
                on.push(Leaving {
                    lpn,
                    change,
                    place: None,
                });
            }
            Kind::Buffer(buffer) => match buffer.put(lpn, change) {
                Put::Replaced => {
                    let mut held = self.held.iter_mut();
                    let held = held.find(|(held, _)| *held == lpn);
                    held.expect("a page that is replaced is held").1 = change;
                }
                Put::Placed => self.held.push((lpn, change)),
                Put::Full => {
                    self.make_room(lpn, on);
                    self.arrive(lpn, change, on);
                }
            },
            Kind::Queue(queue) => {
                if queue.push(lpn, change) {
                    self.held.push((lpn, change));
                } else {
                    self.make_room(lpn, on);
                    self.arrive(lpn, change, on);
                }
            }
        }
    }

    /// One place becomes free: of a change that is leaving, or else something goes on.
    fn make_room(&mut self, lpn: Lpn, on: &mut Vec<Leaving>) {
        if self.leaving.is_empty() {
            self.hand_on(lpn, on);
        }
        self.one_leaves();
    }

    /// A victim, or the bucket of a page or the largest, goes on. Whether anything did.
    pub fn hand_on(&mut self, lpn: Lpn, on: &mut Vec<Leaving>) -> bool {
        let places = match &mut self.kind {
            Kind::None => Vec::new(),
            Kind::Buffer(buffer) => match buffer.evict() {
                Some((place, lpn, change)) => vec![(place, lpn, change)],
                None => Vec::new(),
            },
            Kind::Queue(queue) => {
                let places = queue.flush_bucket_of(lpn).into_iter();
                let changes = places.map(|place| (place, queue.change(place)));
                changes.map(|(place, (lpn, c))| (place, lpn, c)).collect()
            }
        };
        for &(place, lpn, change) in &places {
            self.leaving.push_back(place);
            let at = self.held.iter().position(|&held| held == (lpn, change));
            self.held.remove(at.expect("what goes on was held"));
            on.push(Leaving {
                lpn,
                change,
                place: Some(place),
            });
        }
        !places.is_empty()
    }

    fn one_leaves(&mut self) {
        if let Some(place) = self.leaving.pop_front() {
            self.free(place);
        }
    }

    fn free(&mut self, place: BufferPlace) {
        match &mut self.kind {
            Kind::None => {}
            Kind::Buffer(buffer) => buffer.free(place),
            Kind::Queue(queue) => queue.free(place),
        }
    }

    /// Everything that was handed on has left.
    pub fn all_leave(&mut self) {
        while !self.leaving.is_empty() {
            self.one_leaves();
        }
    }

    /// A change was refused by the device: nobody finds it here any more.
    pub fn refused(&mut self, place: BufferPlace) {
        if let Some(at) = self.leaving.iter().position(|&p| p == place) {
            self.leaving.remove(at);
            self.free(place);
        }
    }

    /// Recounts the invariants, and compares with the list.
    pub fn check(&self) -> Result<(), String> {
        let held = match &self.kind {
            Kind::None => 0,
            Kind::Buffer(buffer) => {
                buffer.check()?;
                buffer.held()
            }
            Kind::Queue(queue) => {
                queue.check()?;
                queue.held()
            }
        };
        if held as usize != self.held.len() {
            return Err(format!(
                "{held} changes are held, {} listed",
                self.held.len()
            ));
        }
        for (i, &(lpn, change)) in self.held.iter().enumerate() {
            let is_last = self.held[i + 1..].iter().all(|&(later, _)| later != lpn);
            if is_last && self.get(lpn) != Some(change) {
                return Err(format!(
                    "page {lpn}: {:?} is found, {change:?} is the newest",
                    self.get(lpn)
                ));
            }
        }
        Ok(())
    }
}
