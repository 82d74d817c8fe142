//! Copies of a volume's file that are made while it is written: what of them can be read is of one instant.

use std::sync::Arc;

use flashlore_flash::Lpn;
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Policy, Volume, VolumeError, bytes_needed, create,
};

use crate::support::{Draw, POLICIES, Shape, page, read};

/// Bytes that are copied at once.
const CHUNK: usize = 16 << 10;

/// What became of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    Refused,
    /// Some addresses cannot be read, the others are of one instant.
    Damaged,
    /// It is of one instant.
    Instant,
    /// It shows what never was.
    Torn,
}

/// Writes to an address: their numbers, in order.
struct Log(Vec<Vec<u32>>);

impl Log {
    /// Whether all of these were there at one time; those that cannot be read are left out.
    fn is_instant(&self, contents: &[Option<u32>]) -> bool {
        let (mut from, mut until) = (0, u32::MAX);
        for (writes, &value) in self.0.iter().zip(contents) {
            let Some(value) = value else { continue };
            let behind = writes.iter().find(|&&write| write > value);
            from = from.max(value);
            until = until.min(behind.copied().unwrap_or(u32::MAX));
        }
        from < until
    }
}

fn identity(draw: &mut Draw) -> Identity {
    let shape = Shape {
        exported: 96,
        blocks: 40,
        pages_per_block: 4,
        units_per_page: 1 + draw.below(2),
        alignment: 512,
        index_entries: 16,
        journal_bytes: 64 << 10,
    };
    let policy = POLICIES[draw.below(3) as usize];
    let history = (draw.below(3) == 0).then_some(HistoryIdentity {
        entries: 300,
        least_window: 0,
        protected: false,
    });
    let objects = history.is_some() || policy != Policy::Plain;
    let encoding = Encoding {
        deltas: objects && draw.below(3) == 0,
        compression: objects && draw.below(3) == 0,
    };
    Identity {
        history,
        encoding,
        ..shape.identity(policy)
    }
}

/// Copies a volume while it is written, so many writes a chunk; the copy, and what was written.
fn copied(draw: &mut Draw, id: &Identity, writes_a_chunk: u32) -> (Vec<u8>, Log) {
    let length = bytes_needed(id).unwrap() as usize;
    let medium = Arc::new(MemoryMedium::new(length));
    create(&medium, id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let mut log = Log(vec![vec![0]; id.exported as usize]);
    let mut number = 0;
    let mut write = |draw: &mut Draw, volume: &mut Volume| {
        number += 1;
        let lpn = draw.below(id.exported);
        match volume.write(u64::from(number), Lpn(lpn), &page(number)) {
            Ok(()) => log.0[lpn as usize].push(number),
            Err(VolumeError::NoSpace { .. }) => return,
            Err(error) => panic!("{error}"),
        }
        match draw.below(40) {
            0..4 => volume.flush().unwrap(),
            4 => volume.checkpoint().unwrap(),
            _ => {}
        }
    };
    for _ in 0..100 + draw.below(400) {
        write(draw, &mut volume);
    }
    let mut copy = vec![0; length];
    for (chunk, bytes) in copy.chunks_mut(CHUNK).enumerate() {
        medium.read((chunk * CHUNK) as u64, bytes).unwrap();
        for _ in 0..draw.below(2 * writes_a_chunk + 1) {
            write(draw, &mut volume);
        }
    }
    (copy, log)
}

fn judged(copy: Vec<u8>, log: &Log) -> Copied {
    let Ok((mut volume, recovery)) = Volume::open(MemoryMedium::from_bytes(copy)) else {
        return Copied::Refused;
    };
    assert!(
        !recovery.closed,
        "a copy passes for a volume that was closed"
    );
    let all = 0..volume.exported();
    let contents: Vec<Option<u32>> = all.map(|lpn| read(&mut volume, Lpn(lpn)).ok()).collect();
    match log.is_instant(&contents) {
        false => Copied::Torn,
        true if contents.contains(&None) => Copied::Damaged,
        true => Copied::Instant,
    }
}

#[test]
fn a_volume_that_was_not_closed_says_so() {
    for seed in 0..20 {
        let mut draw = Draw::new(seed);
        let id = identity(&mut draw);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        let open = || Volume::open(Arc::clone(&medium)).unwrap();
        let (mut volume, recovery) = open();
        assert!(recovery.closed);
        volume.write(7, Lpn(3), &page(9)).unwrap();
        volume.close().unwrap();
        let (mut volume, recovery) = open();
        assert!(recovery.closed);
        volume.write(8, Lpn(3), &page(10)).unwrap();
        volume.flush().unwrap();
        drop(volume);
        let (volume, recovery) = open();
        assert!(!recovery.closed && recovery.events > 0);
        // Nothing is left to recover, and still nobody closed it.
        drop(volume);
        assert!(!open().1.closed);
    }
}

#[test]
fn what_can_be_read_of_a_copy_of_a_volume_in_use_is_of_one_instant() {
    let mut counts = [0; 4];
    for seed in 0..80 {
        let mut draw = Draw::new(seed);
        let id = identity(&mut draw);
        let writes_a_chunk = [0, 1, 4, 16][seed as usize % 4];
        let (copy, log) = copied(&mut draw, &id, writes_a_chunk);
        let outcome = judged(copy, &log);
        counts[outcome as usize] += 1;
    }
    println!("refused, damaged, instants, torn: {counts:?}");
    let [refused, damaged, instants, torn] = counts;
    assert_eq!(torn, 0, "{counts:?}");
    // What the test is about occurs.
    assert!(refused + damaged > 0 && instants > 0, "{counts:?}");
}
