//! Updates as deltas from the page they replace (DeltaFTL, EuroSys 2012).
//!
//! * [`heat`] — how often pages were written and read of late
//! * [`bases`] — which base a write becomes a delta from, and what that keeps alive
//! * [`similar`] — bases chosen by similarity, from any page
//!
//! A write is a *candidate* for a delta when its page is write-hot and not read-hot. A delta is always taken from the
//! base, never from another delta, so a read needs two pages at most. A base is whole or compressed by itself.
//!
//! Nothing here knows whether an object is shared or old: what keeps a value or a base alive is a reference to it.

pub mod bases;
pub mod heat;
pub mod similar;

use std::collections::VecDeque;

use flashlore_content::{Content, Sketch};
use flashlore_flash::{Lpn, ObjectId, Tables};

use self::heat::Heat;
use self::similar::{Similar, SimilarCounters};
use super::forms::Form;
use super::options::{EncodingOptions, NEVER};
use super::{Asked, How, Policy, Served, View};
use crate::mapping::objects::Objects;
use crate::mapping::packs::Slot;

/// The policy's state.
#[derive(Debug, Clone)]
pub struct Delta {
    /// Settings.
    pub options: EncodingOptions,
    /// Counts by page.
    pub heat: Heat,
    /// Who finds bases that resemble a page.
    pub similar: Option<Box<Similar>>,
    /// Writes stored as deltas since the start or the end of warm-up.
    pub deltas: u64,
    /// Their bytes, without directory entries.
    pub bytes: u64,
    /// Pages that the last scan found cold.
    cold: VecDeque<Lpn>,
}

/// The policy, if updates are to be stored as deltas.
pub(super) fn room<S>(asked: &Asked<'_, S>) -> Option<Delta> {
    let options = asked.encoding.filter(|options| options.deltas)?;
    Some(Delta::new(options, asked.exported, asked.most_objects))
}

impl Delta {
    /// Nothing is counted; there are at most so many objects.
    pub fn new(options: EncodingOptions, exported: u32, most_objects: u32) -> Self {
        let mut delta = Delta {
            options,
            heat: Heat::new(exported, options.heat),
            similar: None,
            deltas: 0,
            bytes: 0,
            cold: VecDeque::new(),
        };
        if let Some(options) = options.similar {
            delta.find_similar_bases(options, most_objects);
        }
        delta
    }

    /// Whether a page is written often.
    #[inline(always)]
    pub fn is_write_hot(&self, lpn: Lpn) -> bool {
        self.heat.writes(lpn) >= self.options.hot_writes
    }

    /// Whether it will be once it has been written once more.
    fn is_write_hot_next(&self, lpn: Lpn) -> bool {
        let writes = self.heat.writes(lpn) + 1;
        writes.min(NEVER - 1) >= self.options.hot_writes
    }

    /// Whether a page is read often.
    #[inline(always)]
    pub fn is_read_hot(&self, lpn: Lpn) -> bool {
        self.heat.reads(lpn) >= self.options.hot_reads
    }
}

impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for Delta {
    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.heat.prefetch(lpn);
    }

    #[inline(always)]
    fn on_write_begun(&mut self, lpn: Lpn) {
        self.heat.write(lpn);
    }

    #[inline(always)]
    fn may_encode(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> bool {
        let similar = self.similar.is_some() && self.may_differ(view, lpn);
        similar || self.base_of(view, lpn).is_some()
    }

    fn next_form(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> Option<Form> {
        let hot = self.is_write_hot_next(lpn);
        let base = hot.then(|| self.base_if_hot(view, lpn)).flatten();
        base.map(|base| self.form_from(view, lpn, similar::Base::Own(base)))
    }

    #[inline(always)]
    fn base_of(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> Option<ObjectId> {
        let hot = self.is_write_hot(lpn);
        hot.then(|| self.base_if_hot(view, lpn)).flatten()
    }

    #[inline(always)]
    fn needs_sketch(&self, view: &View<'_, C, V, S>, lpn: Lpn) -> bool {
        self.similar.is_some() && self.base_of(view, lpn).is_none()
    }

    fn base_to_read(
        &mut self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
        sketch: Option<&Sketch>,
        read: Option<ObjectId>,
    ) -> Option<ObjectId> {
        let base = self.base_for(view, lpn, sketch, read)?.object();
        if let Some(similar) = &mut self.similar {
            similar.chosen = Some((lpn, base));
        }
        Some(base)
    }

    fn form(
        &mut self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
        sketch: Option<&Sketch>,
    ) -> Option<Form> {
        let base = self.base_at_commit(view, lpn, sketch)?;
        self.note_offered(lpn, base);
        Some(self.form_from(view, lpn, base))
    }

    /// A base of its own may have got another value meanwhile, or none: a write that kept it would keep what nobody
    /// else needs.
    fn still_offers(&self, view: &View<'_, C, V, S>, lpn: Lpn, form: &Form) -> bool {
        form.base
            .is_none_or(|base| self.is_similar(lpn, base) || self.base_of(view, lpn) == Some(base))
    }

    #[inline(always)]
    fn on_write(&mut self, _: &mut Objects<C, S>, served: &Served) {
        if let Some((form, length)) = served.encoded
            && let Some(base) = form.base
        {
            self.deltas += 1;
            self.bytes += u64::from(length);
            self.count_similar(served.lpn, base, length);
        } else if let How::New { .. } = served.how {
            self.enter_similar(served.object, served.sketch);
        }
    }

    #[inline(always)]
    fn on_read(&mut self, lpn: Lpn) {
        self.heat.read(lpn);
    }

    fn wants_whole(&self, lpn: Lpn) -> bool {
        self.is_read_hot(lpn)
    }

    /// Where bases are chosen by similarity, a page that is not written often has a delta all the same, and
    /// materializing it gains nothing unless the base goes with it.
    fn is_to_merge(&self, view: &View<'_, C, V, S>, slot: &Slot) -> bool {
        let is_cold =
            || !self.is_write_hot(slot.lpn) && (self.similar.is_none() || view.is_alone(slot));
        self.is_read_hot(slot.lpn) || is_cold()
    }

    fn begin_cold_scan(&mut self, view: &View<'_, C, V, S>) -> bool {
        let packs = &view.packing.packs;
        let slots = packs
            .used()
            .flat_map(|(pack, _)| packs.slots(pack).unwrap_or_default());
        let is_cold = |slot: &&Slot| {
            let live = slot.object.is_some() && view.objects.get(slot.lpn) == slot.object;
            let is_delta = live && view.objects.is_delta(slot.object);
            is_delta && !self.is_write_hot(slot.lpn) && self.is_to_merge(view, slot)
        };
        self.cold = slots.filter(is_cold).map(|slot| slot.lpn).collect();
        self.heat.restart()
    }

    fn next_cold(&mut self, objects: &Objects<C, S>) -> Option<(ObjectId, Lpn)> {
        while let Some(&lpn) = self.cold.front() {
            let object = objects.object_of(lpn);
            if let Some(object) = object.filter(|&o| objects.is_delta(o))
                && !self.is_write_hot(lpn)
            {
                return Some((object, lpn));
            }
            self.cold.pop_front();
        }
        None
    }

    /// Where bases are chosen by similarity most values are deltas.
    fn packs_densely(&self) -> bool {
        self.similar.is_some()
    }

    fn on_trim(&mut self, lpn: Lpn) {
        self.heat.forget(lpn);
    }

    fn on_entry_dropped(&mut self, lpn: Lpn) {
        self.heat.forget(lpn);
    }

    #[inline(always)]
    fn on_death(&mut self, _: &mut Objects<C, S>, object: ObjectId) {
        if let Some(similar) = &mut self.similar {
            similar.index.remove(object);
        }
    }

    fn check(&self, objects: &Objects<C, S>, _: &[ObjectId]) -> Result<(), String> {
        let Some(similar) = &self.similar else {
            return Ok(());
        };
        let is_base = |o: ObjectId| objects.is_alive(o) && !objects.is_delta(o);
        similar.index.check(is_base)
    }

    fn heap_bytes(&self) -> usize {
        let similar = self.similar.as_ref().map_or(0, |s| s.index.heap_bytes());
        self.heat.heap_bytes() + similar
    }

    fn restart_counters(&mut self) {
        (self.deltas, self.bytes) = (0, 0);
        if let Some(similar) = &mut self.similar {
            similar.counters = SimilarCounters::default();
        }
    }
}
