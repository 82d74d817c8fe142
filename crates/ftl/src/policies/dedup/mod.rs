//! Deduplication: a page for each distinct value (CA-SSD, FAST 2011, sections 4.1-4.3). The index and its controllers
//! are of `flashlore_content`; here is how they live with objects.
//!
//! A write whose fingerprint is found shares the object. A new value that was hashed is entered, and another entry may be
//! discarded for it. An entry goes with its object.
//!
//! Invariants: where an index knows its entries (`FingerprintIndex::entered`), an object is marked as indexed iff one names
//! it, which has the object's fingerprint; otherwise it is marked once it was entered, and what an entry names is looked at.

use flashlore_content::dedup::{DedupCounters, FingerprintIndex};
use flashlore_content::{Content, Dedup};
use flashlore_flash::{ObjectId, Tables};

use super::{Asked, How, Policy, Served, Unhashed};
use crate::mapping::objects::Objects;

/// The policy as it is asked for.
pub(super) fn room<I: FingerprintIndex, S>(asked: &Asked<'_, S>) -> Dedup<I> {
    Dedup::new(asked.dedup, asked.most_objects)
}

/// The object that may hold this content.
#[inline(always)]
pub(crate) fn candidate<C: Content, S: Tables>(
    dedup: &Dedup<C::Index>,
    objects: &Objects<C, S>,
    content: C,
) -> Option<ObjectId> {
    let fingerprint = objects.fingerprint(content);
    let has = |object| {
        let is_there = !C::Index::MAY_BE_STALE || objects.is_alive(object);
        is_there && objects.may_hold(object, content)
    };
    dedup.index.find(fingerprint, has)
}

/// Enters an object into the index.
#[inline(always)]
pub(crate) fn enter<C: Content, S: Tables>(
    dedup: &mut Dedup<C::Index>,
    objects: &mut Objects<C, S>,
    object: ObjectId,
) {
    let has_discarded = dedup.index.enter(objects, object);
    dedup.counters.evictions += u64::from(has_discarded);
}

impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for Dedup<C::Index> {
    #[inline(always)]
    fn on_write(&mut self, objects: &mut Objects<C, S>, served: &Served) {
        match served.how {
            How::Found => {
                self.counters.hits += 1;
                self.hashed(true);
                self.index.touch(objects, served.object);
            }
            How::New {
                unhashed: None,
                taken,
            } => {
                self.counters.misses += 1;
                self.hashed(false);
                self.index
                    .missed(objects.fingerprint(objects.content(served.object)));
                match taken {
                    Some(before) => {
                        self.counters.collisions += 1;
                        self.index.take_over(objects, before, served.object);
                    }
                    None => enter(self, objects, served.object),
                }
            }
            How::New {
                unhashed: Some(Unhashed::Off | Unhashed::Foreign),
                ..
            } => self.counters.unhashed += 1,
            How::New {
                unhashed: Some(Unhashed::Unsampled),
                ..
            } => self.counters.unsampled += 1,
        }
    }

    #[inline(always)]
    fn on_death(&mut self, objects: &mut Objects<C, S>, object: ObjectId) {
        if objects.is_indexed(object) {
            self.index.remove(objects, object);
        }
    }

    fn check(&self, objects: &Objects<C, S>, alive: &[ObjectId]) -> Result<(), String> {
        self.index.check(objects)?;
        let Some(named) = self.index.entered(objects) else {
            return Ok(());
        };
        for &object in &named {
            if objects.location(object).is_none() || !objects.is_indexed(object) {
                return Err(format!(
                    "the index names object {object}, which is dead or unmarked"
                ));
            }
            let found = candidate(self, objects, objects.content(object));
            if found != Some(object) {
                return Err(format!(
                    "object {object} is indexed but looked up as {found:?}"
                ));
            }
        }
        let marked = alive.iter().filter(|&&o| objects.is_indexed(o)).count();
        match marked == named.len() {
            true => Ok(()),
            false => Err(format!(
                "{marked} objects are marked as indexed, {} entries name one",
                named.len()
            )),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.index.heap_bytes()
    }

    fn restart_counters(&mut self) {
        self.counters = DedupCounters::default();
    }
}
