//! Trace formats: one file a format, and the choice among them by content.
//!
//! A format gives a parser from a line, or from the bytes of a binary record, to `RawRecord`, and
//! where it can be written a function from a [`Record`](crate::Record) to a line. Times stay absolute
//! here; [`crate::TraceReader`] normalises them.

pub(crate) mod alibaba;
pub mod blkparse;
pub(crate) mod cloudphysics;
pub(crate) mod disksim;
pub(crate) mod fields;
pub(crate) mod fio;
pub(crate) mod fiu;
pub(crate) mod msr;
pub mod native;
pub(crate) mod spc;
pub(crate) mod ssdsim;
pub(crate) mod systor;
pub(crate) mod tencent;
pub(crate) mod vscsi;

pub(crate) mod detect;
mod raw;
mod scsi;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use blkparse::Action;
pub use detect::detect;
pub(crate) use raw::{Line, Parse, RawRecord, check};

use crate::devices::NameStyle;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Format {
    /// FIU IODedup text: reads and writes with digests.
    Fiu,
    /// MSR Cambridge CSV.
    Msr,
    /// SPC (UMass) CSV.
    Spc,
    /// Alibaba block traces, CSV.
    Alibaba,
    /// Tencent block storage, CSV.
    Tencent,
    /// SYSTOR '17 (enterprise virtual desktops), CSV.
    Systor,
    /// CloudPhysics CSV: SCSI commands.
    Cloudphysics,
    /// DiskSim ASCII.
    Disksim,
    /// SSDsim and MQSim ASCII.
    Ssdsim,
    /// Text output of blkparse, of which the events of one action are the requests; `None` chooses
    /// the action by the beginning of the trace.
    Blkparse(Option<Action>),
    /// fio iolog, versions 2 and 3.
    Fio,
    /// VMware vscsiStats, versions 1 and 2: binary SCSI commands.
    Vscsi,
    /// Flashlore's own columns in a Parquet file.
    Native,
    /// No file at all: records that a model makes. Nobody asks for this format.
    Made,
}

impl Format {
    /// Every format of a file; blkparse with the action left open.
    pub const ALL: [Format; 13] = [
        Format::Fiu,
        Format::Msr,
        Format::Spc,
        Format::Alibaba,
        Format::Tencent,
        Format::Systor,
        Format::Cloudphysics,
        Format::Disksim,
        Format::Ssdsim,
        Format::Blkparse(None),
        Format::Fio,
        Format::Vscsi,
        Format::Native,
    ];

    /// The formats that can be written.
    pub const WRITABLE: [Format; 8] = [
        Format::Fiu,
        Format::Msr,
        Format::Spc,
        Format::Disksim,
        Format::Ssdsim,
        Format::Blkparse(None),
        Format::Fio,
        Format::Native,
    ];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Format::Fiu => "fiu",
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Systor => "systor",
            Format::Cloudphysics => "cloudphysics",
            Format::Disksim => "disksim",
            Format::Ssdsim => "ssdsim",
            Format::Blkparse(None) => "blkparse",
            Format::Blkparse(Some(Action::Queued)) => "blkparse:Q",
            Format::Blkparse(Some(Action::Inserted)) => "blkparse:I",
            Format::Blkparse(Some(Action::Issued)) => "blkparse:D",
            Format::Blkparse(Some(Action::Completed)) => "blkparse:C",
            Format::Fio => "fio",
            Format::Vscsi => "vscsi",
            Format::Native => "native",
            Format::Made => "made",
        }
    }

    /// The names of some formats as a list for messages, as in `fiu, msr or native`.
    pub fn list(formats: &[Format]) -> String {
        let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
        match names.as_slice() {
            [front @ .., last] if !front.is_empty() => format!("{} or {last}", front.join(", ")),
            _ => names.concat(),
        }
    }

    /// Whether [`crate::convert()`] can write it. Of blkparse only queue events are written.
    pub fn is_writable(self) -> bool {
        Format::WRITABLE.contains(&self) || self == Format::Blkparse(Some(Action::Queued))
    }

    /// How this format names devices. A native trace says so in its own metadata.
    pub(crate) fn name_style(self) -> NameStyle {
        match self {
            Format::Fiu | Format::Blkparse(_) => NameStyle::MajorMinor,
            Format::Msr => NameStyle::HostDisk,
            Format::Fio => NameStyle::File,
            Format::Spc
            | Format::Alibaba
            | Format::Tencent
            | Format::Systor
            | Format::Cloudphysics
            | Format::Disksim
            | Format::Ssdsim
            | Format::Vscsi
            | Format::Native
            | Format::Made => NameStyle::Number,
        }
    }

    /// The format with what its head leaves no choice about: the action of a blkparse output.
    pub(crate) fn settled(self, head: &[u8]) -> Format {
        match self {
            Format::Blkparse(None) => Format::Blkparse(Some(Action::choose(head))),
            _ => self,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Format> for &'static str {
    fn from(format: Format) -> Self {
        format.name()
    }
}

impl TryFrom<String> for Format {
    type Error = String;

    /// What results record: nobody asks for [`Format::Made`], but a workload may be of it.
    fn try_from(text: String) -> Result<Format, String> {
        match text == Format::Made.name() {
            true => Ok(Format::Made),
            false => text.parse(),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let actions = Action::ALL.map(|action| Format::Blkparse(Some(action)));
        Format::ALL
            .into_iter()
            .chain(actions)
            .find(|format| format.name() == text)
            .ok_or_else(|| {
                format!(
                    "unknown trace format '{text}', expected {} (blkparse:Q, :I, :D or :C names \
                     the action)",
                    Format::list(&Format::ALL)
                )
            })
    }
}
