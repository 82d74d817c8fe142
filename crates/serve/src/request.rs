//! What can be asked of an open volume, and its answers, as data: they cross the control socket as lines of JSON and
//! are what `--json` prints.
//!
//! Instants are nanoseconds since 1970; texts that name instants are those of [`crate::moment`]. The classes of
//! `python/flashlore/volume_info.py` are made of the structs and variants here, comments included, by
//! `tools/records.py`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flashlore_medium::Access;
use flashlore_nbd::server::is_zero;
use flashlore_volume::Finding;
use serde::{Deserialize, Serialize};

use crate::error::ServeError;
use crate::moment::InstantNs;
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
        /// Blocks stored as nothing: they are zeros.
        zeros: u64,
        /// Blocks stored as deltas.
        deltas: u64,
        /// Bytes of these.
        delta_bytes: u64,
        /// Blocks compressed by themselves.
        compressed: u64,
        /// Bytes of these.
        compressed_bytes: u64,
        /// Blocks stored whole.
        whole: u64,
    },
    /// How an array works, now.
    Tuned {
        values: Vec<Tuned>,
    },
    /// What happened.
    Log {
        /// The oldest instant that can be read and rewound to.
        oldest: InstantNs,
        /// The last change.
        newest: InstantNs,
        /// Oldest first.
        entries: Vec<LogEntry>,
    },
    /// The snapshots, oldest first.
    Snapshots {
        snapshots: Vec<Snapshot>,
    },
    Instant {
        instant: InstantNs,
    },
    /// A rewind to an instant.
    Recovered {
        /// The instant that was rewound to.
        instant: InstantNs,
        /// Pages that hold something else now, or would.
        changed: u64,
        /// The instant just before: a rewind to it undoes this one.
        before: InstantNs,
        /// What was purged and holds zeros now, or would: first byte and number of bytes.
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
    /// What a purge did.
    Purged {
        /// The snapshots that ended, because they lacked something then.
        #[serde(default)]
        ended: Vec<Snapshot>,
        /// The oldest instant that can be read and rewound to now.
        #[serde(default)]
        oldest: InstantNs,
        /// What was erased; nothing unless asked for.
        erased: Option<Erased>,
    },
    /// Bytes in base 64.
    Bytes {
        base64: String,
    },
    /// So many bytes, all zero: most of a disk that is not full.
    Zeros {
        length: u64,
    },
    /// What reading every stored page found.
    Scrubbed {
        /// The place to go on from, if any is left.
        next: Option<u32>,
        /// Stored pages read.
        read: u64,
        /// Those that cannot be read.
        findings: Vec<Unreadable>,
    },
    Error {
        text: String,
        /// Whether another request would help.
        usage: bool,
    },
}

impl Answer {
    /// Bytes that were read.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        if is_zero(bytes) {
            let length = bytes.len() as u64;
            return Answer::Zeros { length };
        }
        Answer::Bytes {
            base64: STANDARD.encode(bytes),
        }
    }

    /// The bytes of the answer to a read, if it is one and has so many.
    pub fn into_bytes(self, length: u64) -> Option<Vec<u8>> {
        let bytes = match self {
            Answer::Bytes { base64 } => STANDARD.decode(base64).ok(),
            Answer::Zeros { length: zeros } if zeros == length => Some(vec![0; length as usize]),
            _ => None,
        };
        bytes.filter(|bytes| bytes.len() as u64 == length)
    }
}

/// What can be changed of an array while it is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    pub key: String,
    pub value: String,
    /// What it is.
    pub about: String,
}

/// What a purge erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// Blocks erased from the medium; none unless that was asked for.
    pub blocks: u64,
    /// Pages copied out of them.
    pub copied: u64,
    /// Blocks that were left, because something in them that is needed cannot be read: they may hold what was purged.
    pub left: u64,
}

/// What a server that does not say is taken to mean.
fn yes() -> bool {
    true
}

/// Who uses what is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct ClientCounts {
    /// Clients that may write.
    pub writers: u64,
    /// Clients that only read.
    pub readers: u64,
}

impl From<(u64, u64)> for ClientCounts {
    fn from((writers, readers): (u64, u64)) -> Self {
        ClientCounts { writers, readers }
    }
}

impl From<ClientCounts> for (u64, u64) {
    fn from(ClientCounts { writers, readers }: ClientCounts) -> Self {
        (writers, readers)
    }
}

/// The state of a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// What is done with content.
    pub system: String,
    /// Bytes it shows.
    pub size: u64,
    /// Bytes of pages that hold something.
    pub logical: u64,
    /// Bytes that they and their old versions take, encoded values counted with their length.
    pub stored: u64,
    /// Bytes that can be stored.
    pub capacity: u64,
    /// Bytes saved.
    pub saved: Saved,
    /// Bytes of what old versions alone need, each value counted as a whole page: what encoding saves on them is in
    /// `saved`, so that it may be more than `stored`.
    pub kept: u64,
    /// What the fingerprint index knows; nothing if equal pages are not stored once.
    #[serde(default)]
    pub index: Option<IndexInfo>,
    /// What is in memory of its tables.
    pub tables: TablesInfo,
    /// How far back it goes; nothing if it keeps no history.
    pub history: Option<HistoryInfo>,
    /// Number of the last event.
    pub sequence: u64,
    /// Everything up to this event is durable.
    pub durable: u64,
    /// Events that are not durable yet.
    pub waiting: u64,
    /// How often it was opened.
    pub epoch: u32,
    /// Whether whoever used it before this opening closed it; else it was killed, or is a copy of one in use.
    #[serde(default = "yes")]
    pub closed: bool,
    /// Number of the last checkpoint.
    pub checkpoint: u64,
    /// Why it is read-only, if it is.
    pub failure: Option<String>,
    /// Stored pages known to be unreadable.
    pub findings: Vec<Unreadable>,
    /// What failed since it was opened, if anything did.
    #[serde(default)]
    pub failures: Option<Failures>,
    /// Who uses it, if it is served.
    pub clients: Option<ClientCounts>,
    /// The time of the volume, and what the clock of the machine shows.
    #[serde(default)]
    pub clock: (InstantNs, InstantNs),
    /// What somebody should know, each a sentence.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The state of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArrayInfo {
    /// What is done with content.
    pub system: String,
    /// The fast medium.
    pub fast: PathBuf,
    /// The slow medium.
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
    /// Whether whoever used it before this opening closed it; else it was killed, or is of copies of one in use.
    #[serde(default = "yes")]
    pub closed: bool,
    /// What the element says; nothing if the slow medium alone is open.
    pub element: Option<ElementInfo>,
    /// Why it is read-only, if it is.
    pub failure: Option<String>,
    /// What failed since it was opened, if anything did.
    #[serde(default)]
    pub failures: Option<Failures>,
    /// Who uses it, if it is served.
    pub clients: Option<ClientCounts>,
}

/// A virtual machine of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineInfo {
    /// Its number.
    pub number: u8,
    /// Its name as an export and as a file.
    pub name: String,
    /// Bytes it shows.
    pub size: u64,
    /// Bytes of blocks that hold something.
    pub logical: u64,
}

/// What the element of an open array holds and did.
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
    /// Bytes of all of them.
    pub fast_limit: u64,
    /// Bytes of frozen places in use: data blocks that left the fast medium, or may leave it at once.
    #[serde(default)]
    pub frozen_used: u64,
    /// Bytes of all of them.
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
    /// Bytes of the log.
    pub log_limit: u64,
    /// Blocks that are not at home, with ordered write-back.
    pub away: u64,
    /// The most blocks that may be away; 0 without ordered write-back.
    pub most_away: u64,
    /// Blocks whose present content is not durable yet.
    pub waiting: u64,
    /// How often it was opened.
    pub epoch: u32,
    /// Number of the last checkpoint.
    pub checkpoint: u64,
    /// Bytes of memory that its tables hold.
    pub memory: u64,
    /// Operations on the fast and the slow medium.
    pub traffic: [TrafficInfo; 2],
    /// What it did since it was opened, by names.
    pub counters: BTreeMap<String, u64>,
}

/// Operations on a medium since the array was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficInfo {
    /// `fast` or `slow`.
    pub medium: String,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Syncs.
    pub syncs: u64,
}

/// Bytes saved against storing each page whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// By sharing equal pages.
    pub dedup: u64,
    /// By storing deltas.
    pub delta: u64,
    /// By compressing.
    pub compression: u64,
}

/// What the fingerprint index of a volume knows, by which equal pages are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexInfo {
    /// Values that it names. Others are found only behind one of these.
    pub entries: u64,
    /// How many it has room for.
    pub most_entries: u64,
    /// Bytes of memory that it takes.
    pub memory: u64,
    /// Pages written since the volume was opened whose content was not found.
    pub misses: u64,
    /// Of them, those that a larger index might have found.
    pub doubtful_misses: u64,
}

/// What is in memory of the tables of a volume that are read and changed a page at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablesInfo {
    /// Bytes that their pages take.
    pub memory: u64,
    /// The most that they may take.
    pub most_memory: u64,
    /// Rows that were in memory when they were asked for, since the volume was opened.
    pub hits: u64,
    /// Pages that had to be read for others.
    pub misses: u64,
    /// Pages that had changed and were written to make room for others.
    pub written_for_room: u64,
}

/// How far back a volume goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryInfo {
    /// The oldest instant that can be read and rewound to.
    pub oldest: InstantNs,
    /// The last change.
    pub newest: InstantNs,
    /// Changes of pages that are remembered.
    pub entries: u64,
    /// The most of them.
    pub most_entries: u64,
    /// How many snapshots there are.
    pub snapshots: u64,
    /// The least window that is kept, in nanoseconds.
    pub least_window: u64,
    /// Whether writes fail rather than that it becomes shorter.
    pub protected: bool,
    /// Bytes that the oldest instant lacks because they were purged.
    #[serde(default)]
    pub missing: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum LogEntry {
    /// Changes of pages with less than a second between them.
    Changes {
        /// The first change.
        first: InstantNs,
        /// The last one.
        last: InstantNs,
        /// How many changes.
        pages: u64,
    },
    Snapshot(Snapshot),
    /// An instant that was durable when it was marked; nothing keeps it.
    Mark {
        /// Its name.
        name: String,
        /// The instant.
        instant: InstantNs,
    },
    /// A purge of old versions.
    Purge {
        /// When it was.
        instant: InstantNs,
        /// First byte and number of bytes that earlier instants lack since then; none if everything was purged.
        range: Option<(u64, u64)>,
    },
    /// What the clock of the machine showed where it did not go with the time of the volume.
    Clock {
        /// The time of the volume.
        instant: InstantNs,
        /// What the clock showed.
        wall: InstantNs,
        /// Nanoseconds without a change before, of which only that clock knows: the machine had been started anew.
        unproven: u64,
    },
}

impl LogEntry {
    /// When it happened, or began to.
    pub fn instant(&self) -> InstantNs {
        match self {
            LogEntry::Changes { first, .. } => *first,
            LogEntry::Snapshot(Snapshot { instant, .. })
            | LogEntry::Mark { instant, .. }
            | LogEntry::Purge { instant, .. }
            | LogEntry::Clock { instant, .. } => *instant,
        }
    }
}

/// An instant that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The instant.
    pub instant: InstantNs,
}

/// A stored page that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The unit it lies on; of an array the block, counted through all machines. Nothing where a page of the tables of a
    /// volume cannot be read, so that nobody knows.
    pub unit: Option<u32>,
    /// What does not hold.
    pub why: String,
    /// The pages that cannot be read until they are written again.
    pub addresses: Vec<u32>,
}

impl From<&Finding> for Unreadable {
    fn from(
        Finding {
            unit,
            why,
            addresses,
        }: &Finding,
    ) -> Self {
        Unreadable {
            unit: unit.is_some().then_some(unit.0),
            why: why.clone(),
            addresses: addresses.iter().map(|lpn| lpn.0).collect(),
        }
    }
}
