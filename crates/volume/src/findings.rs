//! Stored pages that turned out to be unreadable, with every address that holds them.

use flashlore_flash::{Lpn, ObjectId, Ppn};

/// A stored page that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The unit it lies on; [`Ppn::NONE`] where nobody knows, since a page of the tables cannot be read.
    pub unit: Ppn,
    /// What does not hold.
    pub why: String,
    /// The addresses that give EIO until they are written again.
    pub addresses: Vec<Lpn>,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.unit.is_some() {
            write!(f, "unit {}: ", self.unit)?;
        }
        write!(f, "{}; affects ", self.why)?;
        match self.addresses.as_slice() {
            [] => f.write_str("no present page"),
            [one] => write!(f, "logical page {one}"),
            many => {
                f.write_str("logical pages")?;
                many.iter()
                    .enumerate()
                    .try_for_each(|(i, lpn)| write!(f, "{} {lpn}", if i == 0 { "" } else { "," }))
            }
        }
    }
}

/// What a scrub did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrubProgress {
    /// The place to go on from; `None` when there is nothing left: owners come first, then addresses.
    pub next: Option<ObjectId>,
    /// Stored pages that were read.
    pub read: u32,
    /// Those of them that cannot be read, whether that was known before or not.
    pub unreadable: Vec<Finding>,
}
