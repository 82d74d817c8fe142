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
                let mut between = "";
                for run in many.chunk_by(|a, b| a.0 + 1 == b.0) {
                    match run {
                        [first, _, .., last] => write!(f, "{between} {first} to {last}")?,
                        few => few.iter().try_for_each(|lpn| {
                            write!(f, "{between} {lpn}")?;
                            between = ",";
                            Ok(())
                        })?,
                    }
                    between = ",";
                }
                Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_addresses_are_told_as_ranges() {
        let told = |unit: Ppn, addresses: &[u32]| {
            let finding = Finding {
                unit,
                why: "why".to_owned(),
                addresses: addresses.iter().copied().map(Lpn).collect(),
            };
            finding.to_string()
        };
        assert_eq!(told(Ppn(7), &[]), "unit 7: why; affects no present page");
        assert_eq!(told(Ppn(7), &[3]), "unit 7: why; affects logical page 3");
        let some = [1, 2, 4, 5, 6, 7, 9];
        let expected = "why; affects logical pages 1, 2, 4 to 7, 9";
        assert_eq!(told(Ppn::NONE, &some), expected);
    }
}
