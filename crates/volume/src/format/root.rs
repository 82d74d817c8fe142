//! What a checkpoint says besides its tables: the bytes of the volume in the root of their store.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 8 | sequence: the tables hold the state after this event |
//! | 8 | 8 | stamp of that event, nanoseconds since 1970 |
//! | 16 | 8 | start of the window: the oldest instant that can be rewound to |
//! | 24 | 4 | row of the first entry of the history in its window |
//! | 28 | 4 | entries there, gaps included |
//! | 32 | 4 | pinned instants |
//! | 36 | 4 | notes |
//! | 40 | 4 | epoch of the checkpoint |
//! | 44 | 4 | gaps among the entries of the window |
//! | 48 | 4 | stored values: objects, on a plain volume mapped pages |
//! | 52 | 4 | of them, those to which logical pages refer |
//! | 56 | 4 | of them, those that are packed |
//! | 60 | 4 | bases that deltas alone keep |
//! | 64 | 4 | rows of spilled counts that were ever used |
//! | 68 | 4 | numbers of packed pages that were ever used |
//! | 72 | 4 | the first free one of them; all ones for none |
//! | 76 | 4 | packed pages that hold anything |
//! | 80 | 4 | of them, those with deltas that logical pages need |
//! | 84 | 4 | number of the first entry of the window |
//! | 88 | 8 | packed pages that were ever filled |
//! | 96 | 4 | row of the first entry that is kept behind the window |
//! | 100 | 4 | entries there, gaps included |
//! | 104 | 4 | gaps among them |
//! | 108 | 4 | number of the first |
//!
//! Up to version 6 it ended after 48 bytes, in version 7 after 72, in version 8 after 96; what follows is 0 then, as are the
//! numbers of first entries and the gaps.

use flashlore_content::history::{ChainsAt, HistoryAt, PinnedInstant};
use flashlore_flash::{EntryNumber, PackId, QueueAt};
use flashlore_ftl::mapping::packs::PackTallies;
use flashlore_ftl::mapping::tallies::Tallies;

use super::cursor::{Reader, Writer};
use super::superblock::Identity;
use super::tables::Table;

/// Bytes of it.
pub const ROOT_BYTES: usize = 112;
/// Those of version 6, of version 7, and of version 8.
const OLDER_BYTES: [usize; 3] = [48, 72, 96];

/// The root of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Number of the checkpoint, from 1: that of the commit of its tables.
    pub checkpoint: u64,
    /// Epoch it was taken in.
    pub epoch: u32,
    /// The last event its tables hold.
    pub sequence: u64,
    /// Stamp of that event.
    pub stamp: u64,
    /// The history of the map.
    pub history: HistoryRoot,
    /// What was counted of the tables; zero up to version 6.
    pub tallies: Tallies,
}

/// Where the history lies in its tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryRoot {
    /// The oldest instant that can be rewound to.
    pub oldest: u64,
    /// The entries of the window.
    pub window: ChainsAt,
    /// Those kept behind it; up to version 8 what is kept follows from the pinned instants.
    pub kept: ChainsAt,
    /// Pinned instants.
    pub pins: u32,
    pub notes: u32,
}

impl Root {
    /// Its bytes.
    pub fn encode(&self) -> [u8; ROOT_BYTES] {
        let mut bytes = [0; ROOT_BYTES];
        let mut out = Writer::new(&mut bytes);
        let history = &self.history;
        out.u64(self.sequence).u64(self.stamp).u64(history.oldest);
        let (window, kept) = (&history.window, &history.kept);
        out.u32(window.queue.row).u32(window.queue.len);
        out.u32(history.pins).u32(history.notes);
        out.u32(self.epoch).u32(window.gaps);
        let Tallies {
            stored,
            referenced,
            packed,
            pinned,
            spilled,
            packs,
        } = self.tallies;
        out.u32(stored).u32(referenced).u32(packed);
        out.u32(pinned).u32(spilled);
        out.u32(packs.numbers).u32(packs.free.0);
        out.u32(packs.on_flash).u32(packs.live);
        out.u32(window.queue.first.0).u64(packs.filled);
        out.u32(kept.queue.row).u32(kept.queue.len);
        out.u32(kept.gaps).u32(kept.queue.first.0);
        bytes
    }

    /// Whether a volume can have as many of everything as are told of.
    pub fn is_possible(&self, id: &Identity) -> bool {
        let Tallies {
            stored,
            referenced,
            packed,
            pinned,
            packs,
            ..
        } = self.tallies;
        let rows = match id.has_objects() {
            true => Table::Objects.rows(id),
            false => id.exported,
        };
        let of_stored = [referenced, packed, pinned];
        let in_order = [
            packs.live,
            packs.on_flash,
            packs.numbers,
            Table::Packs.rows(id),
        ];
        let chains = |at: &ChainsAt, table: Table| {
            let rows = table.rows(id);
            at.gaps <= at.queue.len && at.queue.len <= rows && at.queue.row < rows.max(1)
        };
        let history = &self.history;
        stored <= rows
            && of_stored.iter().all(|&of| of <= stored)
            && in_order.is_sorted()
            && chains(&history.window, Table::Versions)
            && chains(&history.kept, Table::Kept)
    }

    /// Reads what a commit of this number says; nothing if it has another length.
    pub fn decode(checkpoint: u64, bytes: &[u8]) -> Option<Root> {
        if bytes.len() != ROOT_BYTES && !OLDER_BYTES.contains(&bytes.len()) {
            return None;
        }
        let mut fields = Reader::new(bytes);
        let (sequence, stamp, oldest) = (fields.u64(), fields.u64(), fields.u64());
        let mut window = ChainsAt {
            queue: queue(&mut fields),
            gaps: 0,
        };
        let (pins, notes) = (fields.u32(), fields.u32());
        let epoch = fields.u32();
        window.gaps = fields.u32();
        let mut tallies = Tallies {
            stored: fields.u32(),
            referenced: fields.u32(),
            packed: fields.u32(),
            pinned: fields.u32(),
            spilled: fields.u32(),
            packs: packs(&mut fields),
        };
        window.queue.first = EntryNumber(fields.u32());
        tallies.packs.filled = fields.u64();
        let mut kept = ChainsAt {
            queue: queue(&mut fields),
            gaps: fields.u32(),
        };
        kept.queue.first = EntryNumber(fields.u32());
        let history = HistoryRoot {
            oldest,
            window,
            kept,
            pins,
            notes,
        };
        Some(Root {
            checkpoint,
            epoch,
            sequence,
            stamp,
            history,
            tallies,
        })
    }
}

impl HistoryRoot {
    /// How the history stands in its tables, with these pinned instants.
    pub fn at(&self, pins: &[PinnedInstant]) -> HistoryAt {
        HistoryAt {
            oldest: self.oldest,
            window: self.window,
            kept: self.kept,
            pins: pins.to_vec(),
        }
    }
}

/// A queue whose first row has this number: that is said elsewhere.
fn queue(fields: &mut Reader<'_>) -> QueueAt {
    QueueAt {
        row: fields.u32(),
        len: fields.u32(),
        first: EntryNumber::default(),
    }
}

/// What is counted of packed pages, but for how many were ever filled.
fn packs(fields: &mut Reader<'_>) -> PackTallies {
    let (numbers, free) = (fields.u32(), PackId(fields.u32()));
    let (on_flash, live) = (fields.u32(), fields.u32());
    PackTallies {
        numbers,
        free,
        on_flash,
        live,
        filled: 0,
    }
}
