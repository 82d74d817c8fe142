//! Events of the history that change many rows are part of a checkpoint: no recovery replays them, and a power cut in the
//! middle of one leaves the state before it or after it.

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use flashlore_medium::{CrashMedium, MemoryMedium, Style};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Policy, RecoveryBounds, Volume, VolumeError, bytes_needed,
    create,
};

use crate::support::{Draw, Shape, page, value_of};

const SHAPE: Shape = Shape {
    exported: 60,
    blocks: 40,
    pages_per_block: 4,
    units_per_page: 2,
    alignment: 512,
    index_entries: 16,
    journal_bytes: 64 << 10,
};

const HALF: Style = Style::Sectors { percent: 50 };

/// An event, on a volume whose pages changed at 100 and later and whose snapshot is of 150.
type Event = fn(&mut Volume) -> Result<(), VolumeError>;

const EVENTS: [(&str, Event); 5] = [
    ("a rewind", |volume| volume.rewind_to(900, 150).map(drop)),
    ("a purge of pages", |volume| {
        volume.purge(900, Lpn(3)..Lpn(40)).map(drop)
    }),
    ("a purge of all", |volume| {
        volume.purge(900, Lpn(0)..Lpn(60)).map(drop)
    }),
    ("the end of a snapshot", |volume| {
        volume.delete_snapshot(900, 150).map(drop)
    }),
    ("a window that begins later", |volume| {
        volume.forget_before(900, 230)
    }),
];

fn rows(rows: u64) -> RecoveryBounds {
    RecoveryBounds {
        rows,
        ..RecoveryBounds::default()
    }
}

fn identity() -> Identity {
    Identity {
        history: Some(HistoryIdentity {
            entries: 400,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        ..SHAPE.identity(Policy::Dedup)
    }
}

/// A volume with a past: most of it in the checkpoint, all of it durable.
fn with_a_past() -> Vec<u8> {
    let id = identity();
    let medium = Arc::new(CrashMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&*medium, &id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    for now in 100..340u32 {
        let (lpn, value) = (now * 7 % 60, 1 + now * 13 % 90);
        volume.write(now.into(), Lpn(lpn), &page(value)).unwrap();
        match now {
            150 => volume.snapshot_of(150, 150).unwrap(),
            260 => volume.forget_before(260, 200).unwrap(),
            320 => volume.checkpoint().unwrap(),
            _ => {}
        }
    }
    volume.flush().unwrap();
    drop(volume);
    medium.survivors(0, Style::Nothing)
}

/// What the pages hold, and what can be known of the past: at each instant what they held then, or that it is not known.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    present: Vec<Option<u32>>,
    snapshots: Vec<u64>,
    past: Vec<Vec<Option<u32>>>,
}

fn told(volume: &mut Volume) -> Told {
    volume.check().unwrap();
    let mut read = |at: Option<u64>| {
        let pages = (0..60).map(|lpn| {
            let mut found = [0; PAGE_BYTES];
            let read = match at {
                None => volume.read(Lpn(lpn), &mut found),
                Some(instant) => volume.read_at(instant, Lpn(lpn), &mut found),
            };
            read.ok().map(|()| value_of(&found).unwrap())
        });
        pages.collect::<Vec<_>>()
    };
    let present = read(None);
    let past = [150, 199, 215, 230, 300].map(|at| read(Some(at)));
    Told {
        present,
        past: past.to_vec(),
        snapshots: volume.history_status().unwrap().snapshots,
    }
}

fn opened(image: Vec<u8>) -> (Volume, u64) {
    let (volume, recovery) = Volume::open(MemoryMedium::from_bytes(image)).unwrap();
    (volume, recovery.events)
}

/// Carried out through the journal and in a checkpoint it is the same event; only the former is replayed.
#[test]
fn a_large_event_is_in_a_checkpoint_and_a_small_one_in_the_journal() {
    let image = with_a_past();
    for (name, event) in EVENTS {
        let mut answers = Vec::new();
        for most in [u64::MAX, 0] {
            let medium = Arc::new(CrashMedium::from_bytes(image.clone()));
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            volume.set_bounds(rows(most));
            event(&mut volume).unwrap();
            if most > 0 {
                volume.flush().unwrap();
            }
            let live = told(&mut volume);
            drop(volume);
            let (mut again, events) = opened(medium.survivors(0, Style::Nothing));
            assert_eq!(events == 0, most == 0, "{name}: {events} events replayed");
            assert_eq!(told(&mut again), live, "{name}");
            answers.push(live);
        }
        assert_eq!(answers[0], answers[1], "{name}");
    }
}

/// Rows add up: the event that comes to too many is not replayed, and the next one has all of them again.
#[test]
fn events_that_are_large_together_are_in_a_checkpoint() {
    let medium = Arc::new(CrashMedium::from_bytes(with_a_past()));
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let checkpoint = volume.status().checkpoint;
    let changed = volume.changed_since(300).unwrap().len();
    volume.set_bounds(rows(4 * changed));
    volume.rewind_to(900, 300).unwrap();
    assert_eq!(volume.status().checkpoint, checkpoint);
    // As many pages as before differ from what they held at 339.
    volume.rewind_to(901, 339).unwrap();
    assert_eq!(volume.status().checkpoint, checkpoint);
    volume.rewind_to(902, 300).unwrap();
    assert_eq!(volume.status().checkpoint, checkpoint + 1);
    let changed = volume.changed_since(901).unwrap().len();
    volume.set_bounds(rows(2 * changed));
    volume.rewind_to(903, 901).unwrap();
    assert_eq!(volume.status().checkpoint, checkpoint + 1);
    volume.flush().unwrap();
    drop(volume);
    // It is replayed, and counts for the next one.
    let (mut volume, recovery) = Volume::open(Arc::clone(&medium)).unwrap();
    assert_eq!(recovery.events, 1);
    volume.rewind_to(904, 902).unwrap();
    assert_eq!(volume.status().checkpoint, checkpoint + 2);
}

/// Units that collection copied since the checkpoint are read by a recovery: a checkpoint is due by them too.
#[test]
fn copies_of_collection_make_a_checkpoint_due() {
    let few = Shape {
        exported: 46,
        blocks: 12,
        ..SHAPE
    };
    let id = few.identity(Policy::Dedup);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    const UNITS: u64 = 200;
    volume.set_bounds(RecoveryBounds {
        units: UNITS,
        ..RecoveryBounds::default()
    });
    let mut draw = Draw::new(3);
    let mut checkpoints = vec![volume.status().checkpoint];
    let mut writes = 0;
    for round in 0..40 {
        for lpn in 0..few.exported / if round == 0 { 1 } else { 4 } {
            let lpn = if round == 0 {
                lpn
            } else {
                draw.below(few.exported)
            };
            volume.write(1, Lpn(lpn), &page(1 + writes)).unwrap();
            writes += 1;
        }
        volume.flush().unwrap();
        checkpoints.push(volume.status().checkpoint);
    }
    let programmed = volume.counters().programs();
    let taken = checkpoints[checkpoints.len() - 1] - checkpoints[0];
    assert!(
        2 * programmed > 3 * u64::from(writes),
        "{programmed} units, {writes} writes"
    );
    assert!(
        taken >= programmed / (UNITS + 16),
        "{taken} checkpoints, {programmed} units, {writes} writes"
    );
    while volume.status().checkpoint == *checkpoints.last().unwrap() {
        volume
            .write(1, Lpn(draw.below(46)), &page(1 + writes))
            .unwrap();
        writes += 1;
    }
    // It has begun with the last write but one: what comes now is read by a recovery, and counts after it.
    for _ in 0..30 {
        volume
            .write(1, Lpn(draw.below(46)), &page(1 + writes))
            .unwrap();
        writes += 1;
    }
    volume.flush().unwrap();
    drop(volume);
    let (mut volume, recovery) = Volume::open(medium).unwrap();
    assert!((30..=UNITS + 16).contains(&recovery.units), "{recovery:?}");
    volume.set_bounds(RecoveryBounds {
        units: recovery.units,
        ..RecoveryBounds::default()
    });
    let before = volume.status().checkpoint;
    volume.write(1, Lpn(0), &page(1 + writes)).unwrap();
    assert_eq!(volume.status().checkpoint, before + 1);
}

/// At every call, with what survives drawn anew.
#[test]
fn a_power_cut_in_a_large_event_leaves_all_of_it_or_nothing() {
    let image = with_a_past();
    for (name, event) in EVENTS {
        let (mut untouched, _) = opened(image.clone());
        let before = told(&mut untouched);
        event(&mut untouched).unwrap();
        let after = told(&mut untouched);
        for cut in 0.. {
            let medium = Arc::new(CrashMedium::from_bytes(image.clone()));
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            volume.set_bounds(rows(0));
            medium.cut_at(medium.calls() + cut);
            let done = event(&mut volume);
            drop(volume);
            for style in [Style::Nothing, Style::All, HALF] {
                let (mut again, _) = opened(medium.survivors(cut, style));
                let found = told(&mut again);
                match done.is_ok() {
                    true => assert_eq!(found, after, "{name}, call {cut}"),
                    false => assert!(
                        found == before || found == after,
                        "{name}, call {cut}, {style:?}: {found:?}"
                    ),
                }
            }
            if done.is_ok() {
                break;
            }
        }
    }
}
