//! Stored pages that turned out to be unreadable, with every address that holds them.

use flashlore_flash::Ppn;

use crate::nand::NandError;
use crate::volume::Volume;

/// A stored page that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The unit it lies on.
    pub unit: u32,
    /// What does not hold.
    pub why: String,
    /// The addresses that give EIO until they are written again.
    pub addresses: Vec<u32>,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unit {}: {}; affects ", self.unit, self.why)?;
        match self.addresses.as_slice() {
            [] => f.write_str("no address"),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubProgress {
    /// The address to go on from; `None` when all have been read.
    pub next: Option<u32>,
    /// Stored pages that were read.
    pub read: u32,
}

impl Volume {
    /// Findings since the last call: pages that could not be read by the host, by collection or by a
    /// scrub. Each is reported once for as long as it lies where it does.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        let lost = std::mem::take(&mut self.layer.core_mut().flash_mut().lost);
        for owner in lost {
            if let Some(unit) = self.layer.unit_of_owner(owner) {
                let (ppn, why) = (unit.0, "its content was lost before it was copied here");
                self.note_finding(unit, &NandError::Rot { ppn, why });
            }
        }
        std::mem::take(&mut self.findings)
    }

    /// Notes the unit that an error names.
    pub(crate) fn note_unreadable(&mut self, error: &NandError) {
        if let NandError::Rot { ppn, .. } = error
            && Ppn(*ppn).is_some()
        {
            self.note_finding(Ppn(*ppn), error);
        }
    }

    /// Notes an unreadable unit with all its addresses, if it is not known yet.
    pub(crate) fn note_finding(&mut self, unit: Ppn, error: &NandError) {
        let nand = self.layer.core_mut().flash_mut();
        nand.note_bad(unit);
        if self.reported.insert(nand.place_of(unit)) {
            let addresses = (0..self.exported())
                .filter(|&lpn| self.layer.places(lpn).contains(&Some(unit)))
                .collect();
            let why = match error {
                NandError::Rot { why, .. } => (*why).to_string(),
                other => other.to_string(),
            };
            self.findings.push(Finding {
                unit: unit.0,
                why,
                addresses,
            });
        }
    }

    /// Reads what the next `count` addresses from `from` on hold and compares it with its checksums;
    /// what fails is among the findings.
    pub fn scrub(&mut self, from: u32, count: u32) -> ScrubProgress {
        let end = from.saturating_add(count).min(self.exported());
        let mut read = 0;
        for lpn in from..end {
            for ppn in self.layer.places(lpn).into_iter().flatten() {
                if self.layer.core().is_buffered(ppn) {
                    continue;
                }
                read += 1;
                if let Err(error) = self.layer.core().flash().read_unit(ppn) {
                    self.note_finding(ppn, &error);
                }
            }
        }
        ScrubProgress {
            next: (end < self.exported()).then_some(end),
            read,
        }
    }
}
