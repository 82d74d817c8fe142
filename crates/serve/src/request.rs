//! What can be asked of an open volume, and its answers, as data: they cross the control socket as lines of JSON and
//! are what `--json` prints.
//!
//! Instants are nanoseconds since 1970; texts that name instants are those of [`crate::moment`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use flashlore_medium::Access;
use serde::{Deserialize, Serialize};

use crate::error::ServeError;
use crate::troubles::Failures;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The state of the volume.
    Info,
    /// What happened in the window, the last `most` stretches of changes.
    Log {
        most: usize,
    },
    /// Keeps an instant under a name.
    SnapshotCreate {
        name: String,
        /// Which instant; the present without.
        at: Option<String>,
    },
    SnapshotList,
    /// Gives a snapshot up.
    SnapshotDelete {
        /// Its name, or its instant as a text.
        snapshot: String,
    },
    /// Makes everything so far durable and remembers the instant under a name.
    Mark {
        name: String,
    },
    /// Every page holds again what it held at an instant.
    Recover {
        to: String,
        /// Rather the last mark at that instant or before.
        mark: bool,
        dry_run: bool,
        /// Drops clients that may write first.
        disconnect: bool,
        /// Also where something was purged; pages hold nothing there then.
        #[serde(default)]
        allow_missing: bool,
    },
    /// The pages that differ between two instants.
    Diff {
        from: String,
        to: String,
        /// Also where something was purged; that is told apart.
        #[serde(default)]
        allow_missing: bool,
    },
    /// Forgets old versions.
    Purge {
        /// Of which bytes: the first and how many; all without.
        range: Option<(u64, u64)>,
        /// Forgets every instant before this one instead.
        before: Option<String>,
        /// Erases what was forgotten from the medium too.
        erase: bool,
    },
    Flush,
    Resolve {
        moment: String,
    },
    /// Bytes as they are or were.
    Read {
        /// At which instant; the present without.
        at: Option<String>,
        /// Of which machine of an array; the first one without.
        #[serde(default)]
        machine: Option<u8>,
        /// First byte.
        offset: u64,
        /// How many, at most [`MOST_READ`].
        length: u64,
        /// Zeros for what was purged, rather than an error.
        #[serde(default)]
        allow_missing: bool,
    },
    /// What an instant lacks because it was purged.
    Missing {
        at: String,
    },
    /// Fills a machine of an array as a clone of another one, stored as deltas from it.
    Clone {
        /// The machine that is compared with.
        native: u8,
        /// The machine that is filled.
        machine: u8,
        /// A raw image that it is filled with; without, the content of the other machine.
        image: Option<PathBuf>,
        /// Also if it holds something, which is lost.
        overwrite: bool,
    },
    /// Changes how an open array works, by keys and values; without any it only tells what they are.
    Tune {
        pairs: Vec<(String, String)>,
    },
    /// Reads stored pages, old versions too, from a place on and compares them with their checksums.
    Scrub {
        /// The first place; 0 at first, then what the last answer said.
        from: u32,
    },
}

impl Request {
    /// Whether the volume stays as it is.
    pub fn only_looks(&self) -> bool {
        match self {
            Request::Info
            | Request::Log { .. }
            | Request::SnapshotList
            | Request::Diff { .. }
            | Request::Resolve { .. }
            | Request::Read { .. }
            | Request::Missing { .. }
            | Request::Scrub { .. } => true,
            Request::Recover { dry_run, .. } => *dry_run,
            Request::Tune { pairs } => pairs.is_empty(),
            Request::SnapshotCreate { .. }
            | Request::SnapshotDelete { .. }
            | Request::Mark { .. }
            | Request::Purge { .. }
            | Request::Clone { .. }
            | Request::Flush => false,
        }
    }

    /// Refuses to change what is open to be looked at. That is durable as it is: a flush has nothing to do.
    ///
    /// # Errors
    /// A sentence that says so.
    pub(crate) fn demand_allowed(&self, access: Access) -> Result<(), ServeError> {
        let allowed =
            access == Access::Change || self.only_looks() || matches!(self, Request::Flush);
        match allowed {
            true => Ok(()),
            false => Err(ServeError::Refused(
                "it is open to be looked at alone: serve or mount it without --read-only to change it".to_owned(),
            )),
        }
    }
}

/// Bytes of one [`Request::Read`] at most.
pub const MOST_READ: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    Done,
    Info(Box<Info>),
    Array(Box<ArrayInfo>),
    /// How the blocks of a clone are stored.
    Cloned {
        zeros: u64,
        deltas: u64,
        delta_bytes: u64,
        compressed: u64,
        compressed_bytes: u64,
        whole: u64,
    },
    /// How an array works, now.
    Tuned {
        values: Vec<Tuned>,
    },
    Log {
        /// The oldest instant that can be rewound to.
        oldest: u64,
        newest: u64,
        entries: Vec<LogEntry>,
    },
    /// The snapshots, oldest first.
    Snapshots {
        snapshots: Vec<Snapshot>,
    },
    Instant {
        instant: u64,
    },
    Recovered {
        instant: u64,
        /// Pages that hold something else now, or would.
        changed: u64,
        /// The instant just before, which undoes it.
        before: u64,
        /// What was purged and holds nothing now, or would: first byte and number of bytes, in order.
        #[serde(default)]
        missing: Vec<(u64, u64)>,
    },
    /// The pages that differ, as ranges of bytes.
    Differences {
        /// First byte and number of bytes, in order.
        ranges: Vec<(u64, u64)>,
        /// Those of which nobody knows, because one of the instants lacks what was purged.
        #[serde(default)]
        missing: Vec<(u64, u64)>,
    },
    /// What an instant lacks, as ranges of bytes.
    Missing {
        /// First byte and number of bytes, in order.
        ranges: Vec<(u64, u64)>,
    },
    Purged {
        /// The snapshots that ended, because they lacked something then.
        #[serde(default)]
        ended: Vec<Snapshot>,
        /// The oldest instant that can be rewound to now.
        #[serde(default)]
        oldest: u64,
        /// What was erased; nothing unless asked for.
        erased: Option<Erased>,
    },
    /// Bytes in base 64.
    Bytes {
        base64: String,
    },
    Scrubbed {
        /// The place to go on from, if any is left.
        next: Option<u32>,
        /// Stored pages read.
        read: u64,
        /// What cannot be read.
        findings: Vec<Unreadable>,
    },
    Error {
        text: String,
        /// Whether another request would help.
        usage: bool,
    },
}

/// What can be changed of an array while it is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    pub key: String,
    pub value: String,
    /// What it is.
    pub about: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    pub blocks: u64,
    /// Pages copied out of them.
    pub copied: u64,
    /// Blocks that hold something that nothing needs, and were left, because something in them that is needed cannot be
    /// read: they may hold what was purged.
    pub left: u64,
}

/// What a server that does not say is taken to mean.
fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    pub system: String,
    /// Bytes it shows.
    pub size: u64,
    /// Bytes of pages that hold something.
    pub logical: u64,
    /// Bytes of flash pages in use for them, encoded values counted with what they take.
    pub stored: u64,
    /// Bytes that can be stored.
    pub capacity: u64,
    pub saved: Saved,
    /// Bytes of old versions alone.
    pub kept: u64,
    pub history: Option<HistoryInfo>,
    /// Last event, how far all is durable, epoch, last checkpoint.
    pub sequence: u64,
    /// Everything up to this event is durable.
    pub durable: u64,
    /// Events that are not durable yet.
    pub waiting: u64,
    /// How often it was opened.
    pub epoch: u32,
    /// Whether whoever used it before this opening closed it.
    #[serde(default = "yes")]
    pub closed: bool,
    pub checkpoint: u64,
    pub failure: Option<String>,
    pub findings: Vec<Unreadable>,
    #[serde(default)]
    pub failures: Option<Failures>,
    /// Clients that may write, and clients that read an instant, if it is served.
    pub clients: Option<(u64, u64)>,
    /// The time of the volume, and what the clock of the machine shows.
    #[serde(default)]
    pub clock: (u64, u64),
    /// What somebody should know, since it was opened.
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArrayInfo {
    pub system: String,
    pub fast: PathBuf,
    pub slow: PathBuf,
    /// Bytes of the disk image around which it was made, at the begin of the slow medium.
    #[serde(default)]
    pub image: Option<u64>,
    /// `write-back` or `write-through`.
    #[serde(default)]
    pub mode: String,
    /// Whether no write of a client reaches the fast medium.
    #[serde(default)]
    pub strict: bool,
    /// The virtual machines, the first one first.
    pub machines: Vec<MachineInfo>,
    /// Whether whoever used it before this opening closed it.
    #[serde(default = "yes")]
    pub closed: bool,
    /// What the element says; nothing if the slow medium alone is open.
    pub element: Option<ElementInfo>,
    pub failure: Option<String>,
    #[serde(default)]
    pub failures: Option<Failures>,
    /// Clients that may write, and clients that only read, if it is served.
    pub clients: Option<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineInfo {
    pub number: u8,
    /// Its name as an export and as a file.
    pub name: String,
    /// Bytes it shows.
    pub size: u64,
    /// Bytes of blocks that hold something.
    pub logical: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElementInfo {
    /// Virtual blocks that others are deltas from.
    pub references: u64,
    /// Of these, those without an address.
    pub detached: u64,
    /// Virtual blocks that are deltas from a reference.
    pub associates: u64,
    /// All other virtual blocks.
    pub independents: u64,
    /// Virtual blocks there can be.
    pub virtual_blocks: u64,
    /// Bytes of RAM for deltas in use.
    pub delta_ram: u64,
    /// The most that were.
    pub delta_ram_peak: u64,
    /// The most there can be.
    pub delta_ram_limit: u64,
    /// Bytes of data blocks on the fast medium in use.
    pub fast_used: u64,
    pub fast_limit: u64,
    /// Bytes of frozen places in use: data blocks that left the fast medium, or may leave it at once.
    #[serde(default)]
    pub frozen_used: u64,
    #[serde(default)]
    pub frozen_limit: u64,
    /// Bytes of blocks that are not at home.
    #[serde(default)]
    pub dirty: u64,
    /// Above so many bytes blocks go home ahead.
    #[serde(default)]
    pub dirty_target: u64,
    /// Bytes of the log that can be written.
    pub log_free: u64,
    pub log_limit: u64,
    /// Blocks that are not at home, with ordered write-back.
    pub away: u64,
    /// The most blocks that may be away; 0 without ordered write-back.
    pub most_away: u64,
    /// Blocks whose present content is not durable yet.
    pub waiting: u64,
    /// How often it was opened.
    pub epoch: u32,
    pub checkpoint: u64,
    /// Bytes of memory that its tables hold.
    pub memory: u64,
    /// Operations on the fast and the slow medium since it was opened.
    pub traffic: [TrafficInfo; 2],
    /// What it did since it was opened, by names.
    pub counters: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficInfo {
    /// `fast` or `slow`.
    pub medium: String,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub syncs: u64,
}

/// Bytes saved against storing each page whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub dedup: u64,
    pub delta: u64,
    pub compression: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryInfo {
    /// The oldest instant that can be rewound to.
    pub oldest: u64,
    /// The last change.
    pub newest: u64,
    /// Changes of pages that are remembered.
    pub entries: u64,
    /// The most of them.
    pub most_entries: u64,
    pub snapshots: u64,
    /// The least window that is kept, in nanoseconds.
    pub least_window: u64,
    /// Whether writes are refused rather than that it becomes shorter.
    pub protected: bool,
    /// Bytes that the oldest instant lacks because they were purged.
    #[serde(default)]
    pub missing: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum LogEntry {
    /// Pages changed, with less than a second between them.
    Changes {
        first: u64,
        last: u64,
        pages: u64,
    },
    Snapshot {
        name: Option<String>,
        instant: u64,
    },
    Mark {
        name: String,
        instant: u64,
    },
    Purge {
        instant: u64,
        /// First byte and number of bytes; without, everything: the history begins later since then.
        range: Option<(u64, u64)>,
    },
    /// What the clock of the machine showed, where it did not go with the volume.
    Clock {
        instant: u64,
        /// What the clock of the machine showed.
        wall: u64,
        /// How long before that nothing had happened, of which only that clock knows.
        unproven: u64,
    },
}

impl LogEntry {
    /// When it happened, or began to.
    pub fn instant(&self) -> u64 {
        match self {
            LogEntry::Changes { first, .. } => *first,
            LogEntry::Snapshot { instant, .. }
            | LogEntry::Mark { instant, .. }
            | LogEntry::Purge { instant, .. }
            | LogEntry::Clock { instant, .. } => *instant,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub name: Option<String>,
    /// The instant it keeps.
    pub instant: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The unit it lies on.
    pub unit: u32,
    pub why: String,
    /// The pages that give an error until they are written again.
    pub addresses: Vec<u32>,
}
