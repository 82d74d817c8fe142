//! Trace formats: one file a format, and the choice among them by content.
//!
//! A text format gives two pure functions, one from a line to `RawRecord` and one from a
//! [`Record`](crate::Record) to a line. Times stay absolute here; [`crate::TraceReader`] normalises them.

pub(crate) mod disksim;
pub(crate) mod fields;
pub(crate) mod fiu;
pub(crate) mod msr;
pub mod native;
pub(crate) mod spc;
pub(crate) mod ssdsim;

mod detect;
mod raw;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use detect::detect;
pub(crate) use raw::{LineParser, RawRecord, check};

use crate::devices::NameStyle;

/// A trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// FIU IODedup text: reads and writes with digests.
    Fiu,
    /// MSR Cambridge CSV.
    Msr,
    /// SPC (UMass) CSV.
    Spc,
    /// DiskSim ASCII.
    Disksim,
    /// SSDsim and MQSim ASCII.
    Ssdsim,
    /// Flashlore's own columns in a Parquet file.
    Native,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] = [
        Format::Fiu,
        Format::Msr,
        Format::Spc,
        Format::Disksim,
        Format::Ssdsim,
        Format::Native,
    ];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Format::Fiu => "fiu",
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::Disksim => "disksim",
            Format::Ssdsim => "ssdsim",
            Format::Native => "native",
        }
    }

    /// How this format names devices. A native trace says so in its own metadata.
    pub(crate) fn name_style(self) -> NameStyle {
        match self {
            Format::Fiu => NameStyle::MajorMinor,
            Format::Msr => NameStyle::HostDisk,
            Format::Spc | Format::Disksim | Format::Ssdsim | Format::Native => NameStyle::Number,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            format!(
                "unknown trace format '{text}', expected fiu, msr, spc, disksim, ssdsim or native"
            )
        })
    }
}
