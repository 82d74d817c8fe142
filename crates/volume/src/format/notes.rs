//! Notes: what a volume says about its past in words. Names of snapshots, marks, purges, and the clock.
//!
//! A note is a row of the table of notes. What it needs beyond its fixed fields is its *payload*, which in the journal
//! stands in records of its own ([`super::JournalEntry::Part`]).
//!
//! | offset | bytes | field of a row |
//! |---:|---:|---|
//! | 0 | 1 | kind: 1 name of a snapshot, 2 mark, 3 purge, 4 clock |
//! | 1 | 1 | bytes of the payload |
//! | 2 | 2 | zero |
//! | 4 | 4 | purge: first address |
//! | 8 | 8 | instant it is about; of a purge its stamp, of a clock the time of the volume |
//! | 16 | 64 | payload: a name; of a purge the address behind the last (4), all ones for everything; of a clock boot (8), time since then (8), wall clock (8), unproven (8) |

use super::cursor::{Reader, Writer};
use flashlore_flash::Lpn;

/// Bytes of a row.
pub const NOTE_BYTES: usize = 80;
/// The longest payload, and so the longest name.
pub const MOST_PAYLOAD: usize = 64;
/// Bytes of a payload in one record of the journal.
pub const PART_BYTES: usize = 16;

/// The most marks, however large the volume is; the oldest go first.
const MOST_MARKS: u32 = 10_000;
/// The fewest marks a volume remembers.
const LEAST_MARKS: u32 = 64;
/// The most purges that are remembered.
pub const MOST_PURGES: u32 = 128;
/// The most readings of the clocks that are remembered.
pub const MOST_CLOCKS: u32 = 64;

/// Rows of the table, beside those for the names of snapshots.
pub fn rows_beside_snapshots(entries: u32) -> u32 {
    most_marks(entries) + MOST_PURGES + MOST_CLOCKS
}

/// The most marks that a volume with so many entries of history remembers.
pub fn most_marks(entries: u32) -> u32 {
    entries.clamp(LEAST_MARKS, MOST_MARKS)
}

/// Bytes that belong to a note.
pub type Payload = [u8; MOST_PAYLOAD];

/// What a purge took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeNote {
    /// When.
    pub stamp: u64,
    /// The addresses, or everything, with all instants before the start of the window.
    pub pages: Option<(Lpn, Lpn)>,
}

/// What the clocks showed at one moment. From there on, as long as the machine is not started anew, the time of the
/// volume goes on as the clock does that counts since the start of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockNote {
    /// The time of the volume: nanoseconds since 1970, if the clocks it was made by were right.
    pub time: u64,
    /// Stands for the start of the machine.
    pub boot: u64,
    /// Nanoseconds since then.
    pub since_boot: u64,
    /// The wall clock: nanoseconds since 1970.
    pub wall: u64,
    /// How much of the time since the last change before only the wall clock vouches for.
    pub unproven: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A snapshot has a name.
    Snapshot { instant: u64, name: String },
    /// An instant has a name.
    Mark { instant: u64, name: String },
    /// Old versions were purged.
    Purge(PurgeNote),
    /// What the clocks showed.
    Clock(ClockNote),
}

/// Which kind of a note an event of the journal makes. Purges are events of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    Mark,
    /// What the clocks showed.
    Clock,
    /// Everything before an instant was given up: no row is kept, the start of the window says it.
    Window,
}

impl NoteKind {
    /// Its number in a row.
    pub fn number(self) -> u8 {
        match self {
            NoteKind::Mark => MARK,
            NoteKind::Clock => CLOCK,
            NoteKind::Window => WINDOW,
        }
    }

    pub fn of(number: u8) -> Option<NoteKind> {
        [NoteKind::Mark, NoteKind::Clock, NoteKind::Window]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

const SNAPSHOT: u8 = 1;
const MARK: u8 = 2;
const PURGE: u8 = 3;
const CLOCK: u8 = 4;
const WINDOW: u8 = 5;
const EVERYTHING: u32 = u32::MAX;

impl ClockNote {
    /// Its payload, and how many bytes of it count.
    pub fn payload(&self) -> (Payload, u8) {
        let mut bytes = [0; MOST_PAYLOAD];
        Writer::new(&mut bytes)
            .u64(self.boot)
            .u64(self.since_boot)
            .u64(self.wall)
            .u64(self.unproven);
        (bytes, 32)
    }

    /// The note of a time with this payload.
    pub fn of(time: u64, payload: &[u8]) -> Option<ClockNote> {
        let mut fields = Reader::new(payload.get(..32)?);
        Some(ClockNote {
            time,
            boot: fields.u64(),
            since_boot: fields.u64(),
            wall: fields.u64(),
            unproven: fields.u64(),
        })
    }
}

/// A name as a payload; `None` if it is too long.
pub fn name_payload(name: &str) -> Option<(Payload, u8)> {
    let mut bytes = [0; MOST_PAYLOAD];
    bytes
        .get_mut(..name.len())?
        .copy_from_slice(name.as_bytes());
    Some((bytes, name.len() as u8))
}

/// The name that a payload is; `None` if it is none.
pub fn name_of(payload: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(payload).ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

impl Note {
    /// Writes the row. A name is at most as long as a payload.
    pub fn encode(&self, out: &mut Writer<'_>) {
        let of_name = |name: &str| name_payload(name).unwrap_or(([0; MOST_PAYLOAD], 0));
        let (kind, first, instant, (payload, length)) = match self {
            Note::Snapshot { instant, name } => (SNAPSHOT, 0, *instant, of_name(name)),
            Note::Mark { instant, name } => (MARK, 0, *instant, of_name(name)),
            Note::Purge(PurgeNote { stamp, pages }) => {
                let (first, end) = pages.unwrap_or((Lpn(0), Lpn(EVERYTHING)));
                let mut payload = [0; MOST_PAYLOAD];
                payload[..4].copy_from_slice(&end.0.to_le_bytes());
                (PURGE, first.0, *stamp, (payload, 4))
            }
            Note::Clock(clock) => (CLOCK, 0, clock.time, clock.payload()),
        };
        out.u8(kind).u8(length).u16(0).u32(first).u64(instant);
        out.put(&payload);
    }

    /// Reads a row; `None` if it is none.
    pub fn decode(row: &mut Reader<'_>) -> Option<Note> {
        let (kind, length) = (row.u8(), row.u8());
        row.u16();
        let (first, instant) = (row.u32(), row.u64());
        let payload: Payload = row.take();
        let payload = payload.get(..usize::from(length))?;
        Some(match kind {
            SNAPSHOT => Note::Snapshot {
                instant,
                name: name_of(payload)?,
            },
            MARK => Note::Mark {
                instant,
                name: name_of(payload)?,
            },
            PURGE => {
                let end = u32::from_le_bytes(*payload.first_chunk()?);
                Note::Purge(PurgeNote {
                    stamp: instant,
                    pages: (end != EVERYTHING).then_some((Lpn(first), Lpn(end))),
                })
            }
            CLOCK => Note::Clock(ClockNote::of(instant, payload)?),
            _ => return None,
        })
    }
}
