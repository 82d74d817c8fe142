//! Out-of-line deduplication (CAFTL, FAST 2011): stored pages that were not hashed when they were
//! written are hashed in idle time.
//!
//! The phases are the caller's, who knows when the die and the hash unit are idle: ask when the next
//! page could be read (`ContentDevice::scan_start`), read it (`ContentDevice::scan`), hash it, end the scan
//! (`ContentDevice::end_scan`). One page at a time. A duplicate's logical page refers to the indexed object
//! from then on, and its own object dies; any other page is entered into the index. Nothing is
//! programmed, but a map that is partly in RAM may write back translation pages.
//!
//! A page that was not hashed has one referrer, because nothing could find it. Relocation is no concern here,
//! and an object that died or was overwritten is recognised when its turn comes, or when its scan ends.
//!
//! Memory: 8 bytes and a bit for each object that the device can have, about one a logical page.
//!
//! Invariants: every object to be hashed is in the queue or is being read; a handle is in the queue
//! at most once, with its bit set; what stands in the queue may be dead or hashed by now.

use std::collections::VecDeque;

use flashlore_content::Content;
use flashlore_flash::{Lpn, ObjectId, Tables};

use super::{Asked, How, Policy, Served, Unhashed};
use crate::mapping::objects::Objects;

/// What became of a page that was hashed in idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// Its logical page was trimmed or written anew meanwhile.
    Gone,
    /// It is entered into the index.
    Indexed,
    /// It was a duplicate: its logical page shares the object that the index names.
    Duplicate,
}

/// The objects to be hashed, in the order in which they were programmed; one whose handle stood here
/// already when it was used again keeps that place.
#[derive(Debug, Clone)]
pub struct Scan<C> {
    queue: VecDeque<ObjectId>,
    /// By handle: whether it is in the queue.
    queued: Vec<u64>,
    /// By handle: the logical page of an object that is to be hashed.
    referrers: Vec<Lpn>,
    /// The object being read and hashed, and what it held.
    pub(crate) reading: Option<(ObjectId, C)>,
}

/// The policy, if what is not hashed when it is written is to be hashed in idle time.
pub(super) fn room<C: Content, S>(asked: &Asked<'_, S>) -> Option<Scan<C>> {
    asked
        .dedup
        .out_of_line
        .then(|| Scan::new(asked.most_objects))
}

impl<C: Content> Scan<C> {
    /// Nothing is to be hashed; handles are smaller than `most`.
    pub(crate) fn new(most: u32) -> Self {
        Scan {
            queue: VecDeque::with_capacity(most as usize),
            queued: vec![0; (most as usize).div_ceil(64)],
            referrers: vec![Lpn(0); most as usize],
            reading: None,
        }
    }

    /// Objects that wait, those that are dead or hashed by now included.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// An object is to be hashed, to which this logical page refers.
    fn push(&mut self, object: ObjectId, lpn: Lpn) {
        self.referrers[object.index()] = lpn;
        let (word, bit) = (object.index() / 64, 1 << (object.0 % 64));
        if self.queued[word] & bit == 0 {
            self.queued[word] |= bit;
            self.queue.push_back(object);
        }
    }

    /// The next object to be hashed; those before it that need not be any more are dropped.
    pub(crate) fn next<S: Tables>(&mut self, objects: &Objects<C, S>) -> Option<ObjectId> {
        while let Some(&object) = self.queue.front() {
            if objects.is_unhashed(object) {
                return Some(object);
            }
            self.pop();
        }
        None
    }

    pub(crate) fn pop(&mut self) {
        if let Some(object) = self.queue.pop_front() {
            self.queued[object.index() / 64] &= !(1 << (object.0 % 64));
        }
    }

    /// The logical page of an object that is to be hashed still.
    pub(crate) fn referrer<S: Tables>(
        &self,
        objects: &Objects<C, S>,
        object: ObjectId,
    ) -> Option<Lpn> {
        let page = self.referrers[object.index()];
        objects.is_unhashed(object).then_some(page)
    }

    fn is_queued(&self, object: ObjectId) -> bool {
        self.queued[object.index() / 64] >> (object.0 % 64) & 1 == 1
    }
}

impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for Scan<C> {
    #[inline(always)]
    fn on_write(&mut self, objects: &mut Objects<C, S>, served: &Served) {
        let How::New {
            unhashed: Some(Unhashed::Off | Unhashed::Unsampled),
            ..
        } = served.how
        else {
            return;
        };
        if !objects.is_packed(served.object) {
            objects.leave_unhashed(served.object);
            self.push(served.object, served.lpn);
        }
    }

    fn check(&self, objects: &Objects<C, S>, alive: &[ObjectId]) -> Result<(), String> {
        let bits: u32 = self.queued.iter().map(|word| word.count_ones()).sum();
        if bits as usize != self.queue.len() || !self.queue.iter().all(|&o| self.is_queued(o)) {
            return Err(format!(
                "{} objects wait to be hashed, {bits} are marked",
                self.queue.len()
            ));
        }
        let reading = self.reading.map(|(object, _)| object);
        for &object in alive {
            let Some(lpn) = self.referrer(objects, object) else {
                continue;
            };
            if !self.is_queued(object) && reading != Some(object) {
                return Err(format!("object {object} is to be hashed and waits nowhere"));
            }
            if objects.object_of(lpn) != Some(object) {
                return Err(format!(
                    "object {object} is to be hashed for page {lpn}, which maps to {:?}",
                    objects.object_of(lpn)
                ));
            }
        }
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        (self.queue.capacity() + self.referrers.capacity()) * size_of::<u32>()
            + self.queued.capacity() * size_of::<u64>()
    }
}
