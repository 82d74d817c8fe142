//! What can go wrong with a volume.

use flashlore_content::PAGE_BYTES;
use flashlore_content::history::{Holders, TooOld};
use flashlore_flash::{Lpn, Ppn};
use flashlore_ftl::FtlError;
use flashlore_ftl::error::OptionsError;
use flashlore_medium::MediumError;

use crate::format::AreasError;
use crate::format::notes::MOST_PAYLOAD;

/// Why the store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum NandError {
    /// The medium failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A write or a barrier failed before.
    #[error("the volume is read-only until it is opened again: {0}")]
    ReadOnly(String),
    /// The content of a unit cannot be read any more.
    #[error("unit {ppn}: {why}")]
    Rot {
        /// The unit.
        ppn: Ppn,
        /// What does not hold.
        why: &'static str,
    },
    /// A page of the tables cannot be had.
    #[error("what the volume knows of it cannot be read: {0}")]
    Tables(String),
    /// The journal segment is full: events are journalled faster than checkpoints are taken.
    #[error("the journal segment is full")]
    JournalFull,
}

/// A volume that cannot be made or opened, or an operation it did not do.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// An address beyond the exported capacity.
    #[error("logical page {lpn} does not exist, the volume exports {exported} pages")]
    OutOfRange {
        /// The address.
        lpn: Lpn,
        /// Exported pages.
        exported: u32,
    },
    /// There is no room for another stored page (ENOSPC); trims and overwrites still work.
    #[error(
        "no space: {stored} pages are stored, {most} fit; trim something, or let the capacity grow (flashlore resize \
         --capacity)"
    )]
    NoSpace {
        /// Pages stored.
        stored: u64,
        /// The most that can be stored.
        most: u64,
    },
    /// There is no room, and what old versions take may not be used (ENOSPC).
    #[error(
        "no space: {used} of {most} pages are in use, and {holders} may not be forgotten for new ones; {}",
        remedy(*.holders)
    )]
    Held {
        /// Pages in use, old versions included.
        used: u64,
        /// The most there can be.
        most: u64,
        /// Who holds old versions.
        holders: Holders,
    },
    /// The stored content of an address cannot be read any more (EIO).
    #[error("logical page {lpn} cannot be read: {source}")]
    Unreadable {
        /// The address.
        lpn: Lpn,
        /// What happened.
        source: NandError,
    },
    /// The store failed, or had failed before and the volume is read-only until it is opened again.
    #[error(transparent)]
    Store(#[from] NandError),
    /// The medium failed while the volume was made or opened.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The medium holds no volume.
    #[error("there is no Flashlore volume here: neither superblock begins with its magic")]
    NotAVolume,
    /// Written by another version.
    #[error("the volume has format version {found}, this program reads version {known}")]
    Version {
        /// Version found.
        found: u32,
        /// Version known.
        known: u32,
    },
    /// Written by an older version, which is brought to the present one before the volume is used.
    #[error(
        "the volume has format version {found}, this program opens version {known}: `flashlore upgrade` brings it to \
         that version, as does each command that changes it; `flashlore check` and `dump` look at it as it is"
    )]
    OldVersion {
        /// Version found.
        found: u32,
        /// Version known.
        known: u32,
    },
    /// Uses something this program does not know.
    #[error("the volume uses features this program does not know (bits {0:#x})")]
    Features(u32),
    /// What was durable once is missing or broken.
    #[error("the volume is damaged: {0}")]
    Damaged(String),
    /// Both copies of the superblock are older than what else is there.
    #[error(
        "both superblocks are older than the rest: they know session {found}, and session {newest} wrote to the volume. \
         A part of the medium was put back to an earlier state. Nothing has been changed; put all of it back, or \
         derive the superblocks from the rest: flashlore check --rebuild-superblocks"
    )]
    OldSuperblocks {
        /// The newest epoch they know.
        found: u32,
        /// The newest epoch that wrote anything.
        newest: u32,
    },
    /// The superblocks are to be derived from the rest, and know all of it.
    #[error("its superblocks are as new as the rest: there is nothing to derive")]
    NewSuperblocks,
    /// The volume was created without a history.
    #[error("the volume keeps no history: it was created without one")]
    NoHistory,
    /// An instant to which the volume cannot rewind.
    #[error(transparent)]
    TooOld(TooOld),
    /// An instant that has not come.
    #[error("instant {instant} has not come, the last change was at {newest}")]
    Ahead {
        instant: u64,
        /// The last stamp.
        newest: u64,
    },
    /// What an address held at an instant was purged (EIO).
    #[error("what logical page {lpn} held at instant {instant} was purged")]
    Purged {
        /// The address.
        lpn: Lpn,
        instant: u64,
    },
    /// An instant lacks what was purged.
    #[error(
        "what these bytes held at instant {instant} was purged: {}",
        Ranges(missing)
    )]
    Missing {
        instant: u64,
        /// The addresses, in order.
        missing: Vec<Lpn>,
    },
    /// A purge would reach into the protected window.
    #[error(
        "the protected least window holds what would be purged: nothing has changed; it will have passed that at \
         instant {until}"
    )]
    Protected {
        /// When the window will have passed all of it.
        until: u64,
    },
    /// Two things would have one name.
    #[error("there is a {what} with the name {name:?} already, of instant {instant}")]
    NameTaken {
        /// `snapshot` or `mark`.
        what: &'static str,
        name: String,
        /// The instant it stands for.
        instant: u64,
    },
    /// A snapshot has one name.
    #[error("instant {instant} is kept already, as {name:?}")]
    Named { name: String, instant: u64 },
    /// A name that does not fit.
    #[error("a name has {found} bytes, expected 1 to {MOST_PAYLOAD}")]
    NameLength {
        /// Bytes found.
        found: usize,
    },
    /// There is no room to remember another change (ENOSPC).
    #[error(
        "the history has {entries} entries and no room for {needed} more: {holders} may not be forgotten for new ones; \
         {}",
        remedy(*.holders)
    )]
    HistoryFull {
        /// Entries held.
        entries: u64,
        /// Entries needed.
        needed: u64,
        /// Who holds them.
        holders: Holders,
    },
    /// All places for snapshots are taken.
    #[error("there are {most} snapshots, as many as there can be; delete one")]
    TooManySnapshots {
        /// The most snapshots.
        most: u32,
    },
    /// Sizes that cannot work together.
    #[error(transparent)]
    Areas(#[from] AreasError),
    /// Sizes that cannot work together.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A volume becomes larger or stays as it is.
    #[error("the volume would have {to} {what} instead of {from}; a volume can only grow")]
    Shrinks {
        /// What would become less.
        what: &'static str,
        from: u64,
        /// How many there would be.
        to: u64,
    },
    /// Growth changes sizes alone.
    #[error("the volume would become another one: only sizes can grow")]
    AnotherVolume,
    /// Less memory is given than the volume works with.
    #[error(
        "{} MiB of memory are too little for the volume, which takes {} MiB at least",
        limit >> 20,
        least.div_ceil(1 << 20)
    )]
    TooLittleMemory {
        /// Bytes given.
        limit: u64,
        /// Bytes needed.
        least: u64,
    },
    /// The medium is smaller than the volume on it.
    #[error("the medium has {found} bytes, the volume needs {needed}")]
    TooSmall {
        /// Bytes of the medium.
        found: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// The medium asks for an alignment the volume was not made for.
    #[error("the medium asks for an alignment of {medium} bytes, the volume was made for {volume}")]
    Alignment {
        /// What the medium asks.
        medium: u32,
        /// What the volume was made for.
        volume: u32,
    },
}

/// What helps where old versions hold the room.
fn remedy(holders: Holders) -> &'static str {
    match (holders.window, holders.snapshots) {
        (true, false) => {
            "wait until it has moved on, or let the capacity grow (flashlore resize --capacity)"
        }
        (true, true) => {
            "delete a snapshot (flashlore snapshot delete), wait until the window has moved on, or let the capacity \
             grow (flashlore resize --capacity)"
        }
        _ => {
            "delete one (flashlore snapshot delete), or let the capacity grow (flashlore resize --capacity)"
        }
    }
}

/// The most ranges that a sentence lists.
const MOST_LISTED: usize = 8;

/// Addresses in order, as ranges of bytes in a sentence.
struct Ranges<'a>(&'a [Lpn]);

impl std::fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ranges = byte_ranges(self.0);
        for (number, (first, length)) in ranges.iter().take(MOST_LISTED).enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{length} at {first}")?;
        }
        match ranges.len().saturating_sub(MOST_LISTED) {
            0 => Ok(()),
            more => write!(f, ", and {more} ranges more"),
        }
    }
}

/// Addresses in order as ranges of bytes: the first byte and how many.
pub fn byte_ranges(pages: &[Lpn]) -> Vec<(u64, u64)> {
    let page = PAGE_BYTES as u64;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for at in pages.iter().map(|&lpn| u64::from(lpn) * page) {
        match ranges.last_mut() {
            Some((first, length)) if *first + *length == at => *length += page,
            _ => ranges.push((at, page)),
        }
    }
    ranges
}

impl VolumeError {
    /// An error of the translation layer under an address.
    pub(crate) fn of(error: FtlError<NandError>, lpn: Lpn) -> Self {
        match error {
            FtlError::OutOfRange { lpn, exported } => VolumeError::OutOfRange { lpn, exported },
            FtlError::Full { valid, units } => VolumeError::NoSpace {
                stored: valid,
                most: units,
            },
            FtlError::Protected {
                units,
                most,
                holders,
            } => VolumeError::Held {
                used: units,
                most,
                holders,
            },
            FtlError::ProtectedEntries { entries, holders } => VolumeError::HistoryFull {
                entries,
                needed: 1,
                holders,
            },
            // No block of a volume is ever retired.
            FtlError::WornOut { valid, .. } => VolumeError::NoSpace {
                stored: valid,
                most: valid,
            },
            FtlError::Device(source @ NandError::Rot { .. }) => {
                VolumeError::Unreadable { lpn, source }
            }
            FtlError::Device(source) => VolumeError::Store(source),
        }
    }
}
