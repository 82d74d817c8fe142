//! Recipes: what tells the bytes of a value, together with the model and the seed.

/// The cluster of a page that has none.
pub const NO_CLUSTER: u32 = u32::MAX;

/// What tells the bytes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Recipe {
    pub kind: PageKind,
    /// The family of the reference that the page resembles, or [`NO_CLUSTER`]. A reference is of its
    /// own cluster.
    pub cluster: u32,
    /// The successive versions of one page.
    pub family: u32,
    /// Which of them, from 0.
    pub version: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageKind {
    /// Records that are updated where they stand: a page of a database.
    Record,
    /// Lines that are appended until the page is full.
    Log,
    /// Text, written as a whole.
    Text,
    /// Zeros: the zero page itself, or a page that says nothing but which it is.
    Zero,
    /// Random bytes with zeros behind: the end of a file.
    Padded,
    /// Bytes that nothing compresses.
    Random,
}

/// How a page relates to others (I-CASH, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Others are variants of it.
    Reference,
    /// It is a variant of a reference.
    Associate,
    /// It resembles no other family.
    Independent,
}

impl Recipe {
    /// The page of 4,096 zeros.
    pub const ZERO: Recipe = Recipe {
        kind: PageKind::Zero,
        cluster: NO_CLUSTER,
        family: u32::MAX,
        version: 0,
    };

    pub fn relation(&self) -> Relation {
        match self.cluster {
            NO_CLUSTER => Relation::Independent,
            cluster if cluster == self.family => Relation::Reference,
            _ => Relation::Associate,
        }
    }

    /// The family whose first version the page began as.
    pub(crate) fn origin(&self) -> u32 {
        match self.cluster {
            NO_CLUSTER => self.family,
            cluster => cluster,
        }
    }
}

impl PageKind {
    /// Whether a page of this kind keeps most of its bytes when it is written again.
    pub fn in_place(self) -> bool {
        matches!(self, PageKind::Record | PageKind::Log)
    }
}
