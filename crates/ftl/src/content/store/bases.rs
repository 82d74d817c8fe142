//! Which base a write becomes a delta from.

use flashlore_content::delta::Value;
use flashlore_content::{Encoder, Sketch};
use flashlore_flash::{Lpn, ObjectId};

use super::Store;
use crate::content::parts::{PageOf, Parts};
use crate::policies::delta::similar::{Base, Similar};

impl<T: Parts> Store<T> {
    fn similar(&mut self) -> Option<&mut Similar> {
        self.policies.delta.as_mut()?.similar.as_deref_mut()
    }

    /// Whether a write of a page, to be encoded, is sketched: bases are chosen by that, and it has none of its own.
    pub fn needs_sketch(&self, lpn: Lpn) -> bool {
        let similar = self
            .policies
            .delta
            .as_ref()
            .is_some_and(|d| d.similar.is_some());
        similar && self.base_of(lpn).is_none()
    }

    /// The sketch of a write, if it needs one and its bytes are known.
    pub fn sketch(&mut self, lpn: Lpn, new: Value<'_, T::Content, PageOf<T>>) -> Option<Sketch> {
        if !self.needs_sketch(lpn) {
            return None;
        }
        self.encoder.sketch(new)
    }

    /// What a write may become a delta from. A base chosen before, for the same page, is `kept` if it is
    /// possible still.
    pub(crate) fn base_for(
        &self,
        lpn: Lpn,
        sketch: Option<&Sketch>,
        kept: Option<ObjectId>,
    ) -> Option<Base> {
        if let Some(own) = self.base_of(lpn) {
            return Some(Base::Own(own));
        }
        let delta = self
            .policies
            .delta
            .as_ref()
            .filter(|delta| delta.may_differ(lpn))?;
        let similar = delta.similar.as_deref()?;
        let offered = |object: ObjectId| {
            self.objects.pins(object) < similar.options.sharers && self.is_within_quota(object)
        };
        let kept = kept.filter(|&object| similar.index.holds(object) && offered(object));
        let found = kept.or_else(|| similar.index.find(sketch?, offered));
        found.map(Base::Similar)
    }

    /// Whether a delta may be taken from a base: it is one of those that deltas alone keep alive already, or these may
    /// be one more. A base that a page or an old version holds as well counts as one more, since both may leave it.
    pub(crate) fn is_within_quota(&self, base: ObjectId) -> bool {
        let Some(delta) = &self.policies.delta else {
            return false;
        };
        let more = u32::from(!self.objects.is_pinned_alone(base));
        delta.pinned.saturating_add(more) <= delta.options.most_pinned
    }

    /// What a write may become a delta from, chosen for good; a base that was read for it is kept.
    pub(crate) fn base_at_commit(&mut self, lpn: Lpn, sketch: Option<&Sketch>) -> Option<Base> {
        let chosen = self.similar().and_then(|similar| similar.chosen.take());
        let chosen = chosen.filter(|&(page, _)| page == lpn);
        let base = self.base_for(lpn, sketch, chosen.map(|(_, object)| object));
        if let Some(similar) = self.similar()
            && sketch.is_some()
            && !matches!(base, Some(Base::Own(_)))
        {
            similar.counters.asked += 1;
            if let Some(base) = base {
                similar.counters.found += 1;
                similar.index.touch(base.object());
            }
        }
        base
    }

    /// A base has been read for a page, or need not be: its write will be asked for next, if not much else.
    pub(crate) fn remember_base(&mut self, lpn: Lpn, base: ObjectId) {
        if let Some(similar) = self.similar() {
            similar.chosen = Some((lpn, base));
        }
    }

    /// An object is stored whole or compressed by itself: others may become deltas from it.
    pub fn enter_similar(&mut self, object: ObjectId, sketch: Option<Sketch>) {
        if let Some(sketch) = sketch
            && let Some(similar) = self.similar()
        {
            similar.index.insert(object, sketch);
        }
    }
}
