//! Whether an array holds that nobody has open. Nothing is written: what an opening would write stays in memory.

use flashlore_medium::{Access, Mode};
use serde::Serialize;

use super::machines::Machines;
use super::parts::{element_and_last_use, media};
use crate::error::ServeError;
use crate::home::Home;
use crate::served::LastUse;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrayReport {
    /// How whoever used it last left it.
    pub last_use: LastUse,
    /// Blocks of 4 KiB that hold something.
    pub kept: u64,
    /// The invariant that does not hold, as a sentence.
    pub error: Option<String>,
    /// What cannot be read, or is not what it was recorded as.
    pub findings: Vec<ArrayFinding>,
}

/// A block of an array that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrayFinding {
    /// The number of its machine.
    pub machine: u8,
    /// The block.
    pub block: u32,
    /// What is wrong.
    pub why: String,
}

impl ArrayReport {
    pub fn is_clean(&self) -> bool {
        self.error.is_none() && self.findings.is_empty()
    }
}

/// Opens an array over media that are only looked at, and recounts it; with `contents` every block is read too.
pub fn check(home: &Home, mode: Mode, contents: bool) -> Result<ArrayReport, ServeError> {
    let (description, fast, slow) = media(home, mode, Access::Look)?;
    let (element, last_use) = element_and_last_use(home, &description, fast, slow, Access::Look)?;
    let mut report = ArrayReport {
        last_use,
        ..ArrayReport::default()
    };
    let machines = Machines::whole(element)?;
    for position in 0..machines.all().len() {
        report.kept += machines.look(|store| Ok(store.stored(position)))?;
    }
    let holds = match contents {
        true => machines.verify(&mut |machine, block, error| {
            report.findings.push(ArrayFinding {
                machine,
                block: block.0,
                why: error.to_string(),
            });
        }),
        false => machines.recount(),
    };
    report.error = holds?.err();
    Ok(report)
}
