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
use crate::policies::encoding::forms::Form;

/// How bases are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimilarOptions {
    /// The most entries of the signature index.
    pub entries: u32,
    /// Deltas from one base from which on it is not offered.
    pub sharers: u32,
}

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

/// Where a write may take its delta from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
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

    /// A write is stored as the delta, so long, from a base that may be one that resembles it.
    pub(super) fn count_similar(&mut self, form: Form, length: u16) {
        if let Some(similar) = &mut self.similar
            && matches!(form.base, Some(Base::Similar(_)))
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
