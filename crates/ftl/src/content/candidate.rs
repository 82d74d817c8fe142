//! A stored page that is read before a write is committed.

use flashlore_flash::{Completion, ObjectId};

/// A stored page that was read to be compared: which object it was, and what it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<C> {
    pub(super) object: ObjectId,
    pub(super) content: C,
}

impl<C> Candidate<C> {
    /// What was read of an object.
    pub(crate) fn new(object: ObjectId, content: C) -> Self {
        Candidate { object, content }
    }
}

/// A candidate, and when it has been read.
pub type CandidateRead<C> = (Candidate<C>, Completion);
