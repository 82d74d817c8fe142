//! What an array is: its identity and its sizes, on both media; and on the fast one which session it is of. The sizes
//! are written when the array is made, and never change.

use crate::addresses::{MOST_MACHINES, Machine, refuse_outside, validate_machines};
use crate::error::ArrayError;
use crate::icash::format::bytes::{get_u32, is_sealed, put, seal};
use crate::icash::parameters::{BLOCK_BYTES, LEAST_JOURNAL, LEAST_SLOTS};

const MAGIC: &[u8; 4] = b"FLIC";
/// Version 1 knew no sessions: its numbers are 0, as in a new array. Those before 3 had no frozen places, and no array of
/// one before 4 had its fast medium replaced.
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=4;
const FIRST_WITH_FROZEN: u32 = 3;
/// Flags at byte 12.
const FAST: u32 = 1;
const FRESH: u32 = 2;
const SESSION_AT: usize = 52;
const FROZEN_AT: usize = 60;
const MACHINES_AT: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The virtual machines, each number once.
    pub machines: Vec<Machine>,
    /// Data blocks that the fast medium has room for.
    pub slots: u32,
    pub log_segments: u32,
    /// Blocks of a segment of the log.
    pub segment_blocks: u32,
    /// Images of the journal of ordered write-back: the most blocks that may not be at home. 0 if blocks are
    /// written home in any order.
    pub journal_blocks: u32,
    /// Frozen places on the slow medium: references, at most, whose data block left the fast one while their
    /// associates stay. 0 if all associates go home before.
    pub frozen_blocks: u32,
}

impl Shape {
    pub fn blocks(&self) -> u64 {
        self.machines.iter().map(|m| u64::from(m.blocks)).sum()
    }

    /// Data blocks there can be at the same time, in slots and frozen.
    pub fn data_blocks(&self) -> u64 {
        u64::from(self.slots) + u64::from(self.frozen_blocks)
    }

    pub fn validate(&self) -> Result<(), ArrayError> {
        validate_machines(&self.machines)?;
        let log_blocks = u64::from(self.log_segments) * u64::from(self.segment_blocks);
        let journal = match self.journal_blocks {
            0 => LEAST_JOURNAL,
            blocks => blocks,
        };
        let (least_slots, most) = (LEAST_SLOTS.into(), u64::from(u32::MAX));
        refuse_outside(&[
            ("data blocks", self.slots.into(), least_slots, most - 1),
            (
                "data blocks and frozen places",
                self.data_blocks(),
                least_slots,
                most - 1,
            ),
            ("segments of the log", self.log_segments.into(), 4, most),
            (
                "blocks of a segment",
                self.segment_blocks.into(),
                3,
                1 << 16,
            ),
            ("blocks of the log", log_blocks, 1, most),
            (
                "blocks of the journal, unless none,",
                journal.into(),
                LEAST_JOURNAL.into(),
                most,
            ),
        ])
    }
}

/// Which session a medium is of. Opening the array and closing it each begin a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Session {
    /// The slow medium has reached this one.
    pub confirmed: u32,
    /// It may have reached this one: the same or the next.
    pub announced: u32,
}

impl Session {
    /// A session that both media have reached.
    pub fn at(number: u32) -> Self {
        Session {
            confirmed: number,
            announced: number,
        }
    }

    /// Grows with every write of it.
    fn age(&self) -> u64 {
        u64::from(self.confirmed) + u64::from(self.announced)
    }

    /// The copy of the superblock that it is written to: they alternate.
    pub fn copy(&self) -> u64 {
        self.age() % 2
    }
}

/// The first block of a medium, twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Identity of the array; both media have the same.
    pub id: [u8; 16],
    pub is_fast: bool,
    /// Of a fast medium that takes the place of one that was lost, until the array was opened with it: nothing is in its
    /// slots.
    pub is_fresh: bool,
    /// Of the fast medium; the root on the slow one has its own.
    pub session: Session,
    pub shape: Shape,
}

impl Superblock {
    /// Its bytes as copy 0 or 1.
    pub fn encode(&self, copy: u64) -> Vec<u8> {
        let shape = &self.shape;
        let mut bytes = vec![0; BLOCK_BYTES];
        put(&mut bytes, 8, &VERSIONS.end().to_le_bytes());
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        let flags = flag(self.is_fast, FAST) | flag(self.is_fresh, FRESH);
        put(&mut bytes, 12, &flags.to_le_bytes());
        put(&mut bytes, 16, &self.id);
        let numbers = [
            shape.slots,
            shape.log_segments,
            shape.segment_blocks,
            shape.journal_blocks,
            shape.machines.len() as u32,
        ];
        for (index, number) in numbers.iter().enumerate() {
            put(&mut bytes, 32 + 4 * index, &number.to_le_bytes());
        }
        let session = [self.session.confirmed, self.session.announced];
        for (index, number) in session.iter().enumerate() {
            put(&mut bytes, SESSION_AT + 4 * index, &number.to_le_bytes());
        }
        put(&mut bytes, FROZEN_AT, &shape.frozen_blocks.to_le_bytes());
        for (index, machine) in shape.machines.iter().enumerate() {
            let at = MACHINES_AT + 8 * index;
            bytes[at] = machine.number;
            put(&mut bytes, at + 4, &machine.blocks.to_le_bytes());
        }
        seal(&mut bytes, MAGIC, copy);
        bytes
    }

    /// Whether it was written later than the other copy on its medium.
    pub fn is_newer_than(&self, other: &Superblock) -> bool {
        self.session.age() > other.session.age()
    }

    /// What copy 0 or 1 says.
    pub fn parse(bytes: &[u8], copy: u64) -> Result<Self, String> {
        if bytes.len() != BLOCK_BYTES || !is_sealed(bytes, MAGIC, copy) {
            return Err("magic or checksum do not hold".into());
        }
        let version = get_u32(bytes, 8);
        if !VERSIONS.contains(&version) {
            return Err(format!(
                "format version {version}, expected {} to {}",
                VERSIONS.start(),
                VERSIONS.end()
            ));
        }
        let session = Session {
            confirmed: get_u32(bytes, SESSION_AT),
            announced: get_u32(bytes, SESSION_AT + 4),
        };
        if !(0..=1).contains(&(i64::from(session.announced) - i64::from(session.confirmed))) {
            return Err(format!(
                "session {} after {}, expected the same or the next",
                session.announced, session.confirmed
            ));
        }
        let count = get_u32(bytes, 48) as usize;
        if count > MOST_MACHINES {
            return Err(format!(
                "{count} virtual machines, expected at most {MOST_MACHINES}"
            ));
        }
        let machine = |index: usize| Machine {
            number: bytes[MACHINES_AT + 8 * index],
            blocks: get_u32(bytes, MACHINES_AT + 8 * index + 4),
        };
        let shape = Shape {
            machines: (0..count).map(machine).collect(),
            slots: get_u32(bytes, 32),
            log_segments: get_u32(bytes, 36),
            segment_blocks: get_u32(bytes, 40),
            journal_blocks: get_u32(bytes, 44),
            frozen_blocks: match version {
                FIRST_WITH_FROZEN.. => get_u32(bytes, FROZEN_AT),
                _ => 0,
            },
        };
        shape.validate().map_err(|error| error.to_string())?;
        Ok(Superblock {
            id: std::array::from_fn(|n| bytes[16 + n]),
            is_fast: get_u32(bytes, 12) & FAST != 0,
            is_fresh: get_u32(bytes, 12) & FRESH != 0,
            session,
            shape,
        })
    }
}
