//! Bases chosen by similarity: a write whose page has no base of its own becomes a delta from a page that
//! resembles it, wherever that is (I-CASH, HPCA 2011, inside the SSD).
//!
//! A write that is to be encoded and has no base of its own is sketched and asks the signature index, which
//! names objects that are whole or compressed by themselves, so that a base needs none. What was sketched and is
//! stored in either form enters the index, and leaves it when it dies. An object with as many deltas as
//! `sharers` is not offered any more.
//!
//! What was chosen for a write is read before its commit, and the index goes on changing meanwhile: a choice
//! that is still possible at the commit is kept.

use flashlore_content::{SimilarIndex, Sketch};
use flashlore_flash::{Lpn, ObjectId};

use super::Delta;
use crate::policies::options::SimilarOptions;

/// What happened to writes that asked for a base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimilarCounters {
    /// Writes to be encoded that had no base of their own, and a sketch.
    pub asked: u64,
    /// Those of them for which a base was found.
    pub found: u64,
    /// Those stored as the delta from it.
    pub taken: u64,
    /// Their bytes, without directory entries.
    pub taken_bytes: u64,
}

/// The state of the choice.
#[derive(Debug, Clone)]
pub struct Similar {
    /// Objects by sketch.
    pub index: SimilarIndex<ObjectId>,
    pub(crate) options: SimilarOptions,
    /// The page for which a base was chosen last, and that.
    pub(crate) chosen: Option<(Lpn, ObjectId)>,
    /// The page for which a form was offered last, and its base, if that was chosen by similarity.
    offered: Option<(Lpn, ObjectId)>,
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
            offered: None,
            counters: SimilarCounters::default(),
        }
    }
}

/// Where a write may take its delta from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// From what its page holds, or is a delta from.
    Own(ObjectId),
    /// From what resembles it.
    Similar(ObjectId),
}

impl Base {
    pub fn object(self) -> ObjectId {
        match self {
            Base::Own(object) | Base::Similar(object) => object,
        }
    }
}

impl Delta {
    /// Bases are looked for from now on; nothing is known yet.
    pub(crate) fn find_similar_bases(&mut self, options: SimilarOptions, most_objects: u32) {
        self.similar = Some(Box::new(Similar::new(options, most_objects)));
    }

    /// A write was offered its delta from this base.
    pub(super) fn note_offered(&mut self, lpn: Lpn, base: Base) {
        if let Some(similar) = &mut self.similar {
            similar.offered = match base {
                Base::Similar(object) => Some((lpn, object)),
                Base::Own(_) => None,
            };
        }
    }

    /// Whether the base that a write was offered was chosen by similarity.
    pub(super) fn is_similar(&self, lpn: Lpn, base: ObjectId) -> bool {
        let similar = self.similar.as_ref();
        similar.is_some_and(|similar| similar.offered == Some((lpn, base)))
    }

    /// A write is stored as its delta, so long, from a base.
    pub(super) fn count_similar(&mut self, lpn: Lpn, base: ObjectId, length: u16) {
        if self.is_similar(lpn, base)
            && let Some(similar) = &mut self.similar
        {
            similar.counters.taken += 1;
            similar.counters.taken_bytes += u64::from(length);
        }
    }

    /// An object is stored whole or compressed by itself: others may become deltas from it.
    #[inline(always)]
    pub(super) fn enter_similar(&mut self, object: ObjectId, sketch: Option<Sketch>) {
        if let Some(similar) = &mut self.similar
            && let Some(sketch) = sketch
        {
            similar.index.insert(object, sketch);
        }
    }
}
