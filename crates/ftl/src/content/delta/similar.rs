//! Bases chosen by similarity: a write whose page has no base of its own becomes a difference from a page that
//! resembles it, wherever that is (I-CASH, HPCA 2011, inside the SSD).
//!
//! A write that is to be encoded and has no base of its own is sketched and asks the signature index, which
//! names objects that are whole or compressed by themselves, so that a base needs none. What was sketched and is
//! stored in either form enters the index, and leaves it when it dies. An object with as many differences as
//! `sharers` is not offered any more.
//!
//! What was chosen for a write is read before its commit, and the index goes on changing meanwhile: a choice
//! that is still possible at the commit is kept.

use flashlore_content::Encoder;
use flashlore_content::delta::Value;
use flashlore_content::{SimilarIndex, Sketch};

use super::Delta;
use crate::content::parts::{PageOf, Parts};
use crate::content::store::Store;

/// How bases are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimilarOptions {
    /// The most entries of the signature index.
    pub entries: u32,
    /// Differences from one base from which on it is not offered.
    pub sharers: u32,
}

/// What happened to writes that asked for a base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimilarCounters {
    /// Writes to be encoded that had no base of their own, and a sketch.
    pub asked: u64,
    /// Those of them for which a base was found.
    pub found: u64,
    /// Those stored as the difference from it.
    pub taken: u64,
    /// Their bytes, without directory entries.
    pub taken_bytes: u64,
}

/// The state of the choice.
#[derive(Debug, Clone)]
pub struct Similar {
    /// Objects by sketch.
    pub index: SimilarIndex,
    options: SimilarOptions,
    /// The page for which a base was chosen last, and that.
    chosen: Option<(u32, u32)>,
    /// Counts since the start or the end of warm-up.
    pub counters: SimilarCounters,
}

impl Similar {
    /// Nothing is known; there are at most so many objects.
    pub fn new(options: SimilarOptions, most_objects: u32) -> Self {
        Similar {
            index: SimilarIndex::new(options.entries.min(most_objects)),
            options,
            chosen: None,
            counters: SimilarCounters::default(),
        }
    }
}

/// Where a write may take its difference from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// From what its page holds, or is a difference from.
    Own(u32),
    /// From what resembles it.
    Similar(u32),
}

impl Base {
    pub fn object(self) -> u32 {
        match self {
            Base::Own(object) | Base::Similar(object) => object,
        }
    }
}

impl<T: Parts> Store<T> {
    fn similar(&mut self) -> Option<&mut Similar> {
        self.delta.as_mut()?.similar.as_deref_mut()
    }

    /// Whether a write of a page, to be encoded, is sketched: bases are chosen by that, and it has none of its own.
    pub fn needs_sketch(&self, lpn: u32) -> bool {
        let similar = self.delta.as_ref().is_some_and(|d| d.similar.is_some());
        similar && self.base_of(lpn).is_none()
    }

    /// The sketch of a write, if it needs one and its bytes are known.
    pub fn sketch(&mut self, lpn: u32, new: Value<'_, T::Content, PageOf<T>>) -> Option<Sketch> {
        if !self.needs_sketch(lpn) {
            return None;
        }
        self.encoder.sketch(new)
    }

    /// What a write may become a difference from. A base chosen before, for the same page, is `kept` if it is
    /// possible still.
    pub(super) fn base_for(
        &self,
        lpn: u32,
        sketch: Option<&Sketch>,
        kept: Option<u32>,
    ) -> Option<Base> {
        if let Some(own) = self.base_of(lpn) {
            return Some(Base::Own(own));
        }
        let delta = self.delta.as_ref().filter(|delta| delta.may_differ(lpn))?;
        let similar = delta.similar.as_deref()?;
        let offered = |object: u32| self.objects.pins(object) < similar.options.sharers;
        let kept = kept.filter(|&object| similar.index.holds(object) && offered(object));
        let found = kept.or_else(|| similar.index.find(sketch?, offered));
        found.map(Base::Similar)
    }

    /// What a write may become a difference from, chosen for good; a base that was read for it is kept.
    pub(super) fn base_at_commit(&mut self, lpn: u32, sketch: Option<&Sketch>) -> Option<Base> {
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
    pub(super) fn remember_base(&mut self, lpn: u32, base: u32) {
        if let Some(similar) = self.similar() {
            similar.chosen = Some((lpn, base));
        }
    }

    /// An object is stored whole or compressed by itself: others may become differences from it.
    pub fn enter_similar(&mut self, object: u32, sketch: Option<Sketch>) {
        if let Some(sketch) = sketch
            && let Some(similar) = self.similar()
        {
            similar.index.insert(object, sketch);
        }
    }
}

impl<V> Delta<V> {
    /// Bases are looked for from now on, where there are differences; nothing is known yet.
    pub(in crate::content) fn find_similar_bases(
        &mut self,
        options: SimilarOptions,
        most_objects: u32,
    ) {
        if self.options.differences {
            self.similar = Some(Box::new(Similar::new(options, most_objects)));
        }
    }

    /// An object has died.
    #[inline(always)]
    pub(in crate::content) fn forget_similar(&mut self, object: u32) {
        if let Some(similar) = &mut self.similar {
            similar.index.remove(object);
        }
    }

    /// A write is stored as the difference, so long, from a base that resembles it.
    pub(super) fn count_similar(&mut self, length: u16) {
        if let Some(similar) = &mut self.similar {
            similar.counters.taken += 1;
            similar.counters.taken_bytes += u64::from(length);
        }
    }
}
