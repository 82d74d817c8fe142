//! Which base a write becomes a delta from, and what that keeps alive besides: bases that deltas alone keep are within
//! a quota, and their bytes have a price.

use flashlore_content::{Content, Sketch};
use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{Lpn, ObjectId, Tables};

use super::Delta;
use super::similar::Base;
use crate::mapping::packs::SLOT_BYTES;
use crate::policies::forms::Form;
use crate::policies::{Policy, View};

impl Delta {
    /// Whether a page may be stored as a delta, if there is anything to differ from.
    pub(super) fn may_differ<C: Content, V: Clone, S: Tables>(
        &self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
    ) -> bool {
        view.packing.most_packs > 0 && !self.is_read_hot(lpn)
    }

    /// The object that a write of a page would be a delta from, if that is written often.
    pub(super) fn base_if_hot<C: Content, V: Clone, S: Tables>(
        &self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
    ) -> Option<ObjectId> {
        if !self.may_differ(view, lpn) {
            return None;
        }
        let old = view.objects.object_of(lpn)?;
        let base = match view.objects.packed(old) {
            None | Some((_, ObjectId::NONE)) => old,
            Some((_, base)) => base,
        };
        self.is_within_quota(view, base).then_some(base)
    }

    /// Whether a delta may be taken from a base: it is one of those that deltas alone keep alive already, or these may
    /// be one more. A base that a page or an old version holds as well counts as one more, since both may leave it.
    fn is_within_quota<C: Content, V: Clone, S: Tables>(
        &self,
        view: &View<'_, C, V, S>,
        base: ObjectId,
    ) -> bool {
        let pinned = view.packing.pinned;
        let most = self.options.most_pinned;
        // Almost always there is room for one more.
        pinned < most || (pinned == most && view.objects.is_pinned_alone(base))
    }

    /// What a write may become a delta from. A base chosen before, for the same page, is `kept` if it is
    /// possible still.
    pub(super) fn base_for<C: Content, V: Clone, S: Tables>(
        &self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
        sketch: Option<&Sketch>,
        kept: Option<ObjectId>,
    ) -> Option<Base> {
        if let Some(own) = self.base_of(view, lpn) {
            return Some(Base::Own(own));
        }
        let similar = self.similar.as_deref()?;
        if !self.may_differ(view, lpn) {
            return None;
        }
        let offered = |object: ObjectId| {
            let sharers = view.objects.pins(object);
            sharers < similar.options.sharers && self.is_within_quota(view, object)
        };
        let kept = kept.filter(|&object| similar.index.holds(object) && offered(object));
        let found = kept.or_else(|| similar.index.find(sketch?, offered));
        found.map(Base::Similar)
    }

    /// What a write may become a delta from, chosen for good; a base that was read for it is kept.
    pub(super) fn base_at_commit<C: Content, V: Clone, S: Tables>(
        &mut self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
        sketch: Option<&Sketch>,
    ) -> Option<Base> {
        let chosen = self.similar.as_mut().and_then(|s| s.chosen.take());
        let chosen = chosen.filter(|&(page, _)| page == lpn);
        let base = self.base_for(view, lpn, sketch, chosen.map(|(_, object)| object));
        if let Some(similar) = &mut self.similar
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

    /// A write as its delta from a base, and the price of what nothing but it keeps alive.
    pub(super) fn form_from<C: Content, V: Clone, S: Tables>(
        &self,
        view: &View<'_, C, V, S>,
        lpn: Lpn,
        base: Base,
    ) -> Form {
        let kept = bytes_kept_for(view, lpn, base.object());
        Form {
            base: Some(base.object()),
            keeps: u64::from(self.options.lambda) * u64::from(kept),
        }
    }
}

/// Bytes of a base that nothing but the next delta of a page would keep alive.
fn bytes_kept_for<C: Content, V: Clone, S: Tables>(
    view: &View<'_, C, V, S>,
    lpn: Lpn,
    base: ObjectId,
) -> u32 {
    if !is_kept_for(view, lpn, base) {
        return 0;
    }
    let packed = view.objects.packed(base);
    let note = view.objects.note(base);
    let slot = packed.and_then(|(pack, _)| view.packing.packs.slot_of(pack, base, note));
    slot.map_or(UNIT_BYTES, |(_, length)| u32::from(length) + SLOT_BYTES)
}

/// Whether nothing but the next delta of a page would keep its base alive.
fn is_kept_for<C: Content, V: Clone, S: Tables>(
    view: &View<'_, C, V, S>,
    lpn: Lpn,
    base: ObjectId,
) -> bool {
    let objects = view.objects;
    let Some(old) = objects.object_of(lpn) else {
        return false;
    };
    if view.records {
        // What the page holds now becomes an old version, which needs the base, too.
        return false;
    }
    if old == base {
        return objects.references(base) == 1 && objects.kept(base) == 0 && objects.pins(base) == 0;
    }
    let dies = objects.references(old) == 1 && objects.kept(old) == 0;
    dies && objects.sole_dependent(base) == Some(old)
}
