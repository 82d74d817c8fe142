//! A damaged volume, opened, read, used on and opened again: each read gives what must be there, or an error.

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::Lpn;
use flashlore_medium::MemoryMedium;
use flashlore_volume::{Volume, VolumeError, check, probe};

use super::killed::{Killed, SHAPE};
use crate::support::verdict::{judge_findings, judge_refusal};
use crate::support::{Contents, Draw, page, value_of};

/// What happened to damaged volumes.
#[derive(Debug, Default, Clone, Copy)]
pub struct Outcomes {
    pub refused: u32,
    pub with_errors: u32,
    pub unharmed: u32,
}

impl Outcomes {
    pub fn all(&self) -> u32 {
        self.refused + self.with_errors + self.unharmed
    }
}

/// Addresses that cannot be read; all others read as they should.
pub fn unreadable(volume: &mut Volume, contents: &Contents, what: &str) -> Vec<u32> {
    let mut bytes = [1; PAGE_BYTES];
    let mut bad = Vec::new();
    for (lpn, &value) in (0..).zip(contents) {
        match volume.read(Lpn(lpn), &mut bytes) {
            Ok(()) => assert_eq!(value_of(&bytes), Some(value), "{what}: page {lpn}"),
            Err(VolumeError::Unreadable { .. }) => bad.push(lpn),
            Err(error) => panic!("{what}: page {lpn}: {error}"),
        }
    }
    bad
}

/// The past reads as it was, or not at all; how many pages do not.
pub fn unreadable_past(volume: &mut Volume, past: &[(u64, Contents)], what: &str) -> u32 {
    let Ok(status) = volume.history_status() else {
        return 0;
    };
    let mut bytes = [1; PAGE_BYTES];
    let mut bad = 0;
    for (instant, contents) in past.iter().filter(|(at, _)| *at >= status.oldest) {
        for (lpn, &value) in (0..).zip(contents) {
            match volume.read_at(*instant, Lpn(lpn), &mut bytes) {
                Ok(()) => {
                    let what = format!("{what}: page {lpn} at {instant}");
                    assert_eq!(value_of(&bytes), Some(value), "{what}");
                }
                Err(VolumeError::Unreadable { .. }) => bad += 1,
                Err(error) => panic!("{what}: page {lpn} at {instant}: {error}"),
            }
        }
    }
    bad
}

/// Judges a medium that was damaged once.
pub fn judge(killed: &Killed, damaged: Vec<u8>, what: &str, outcomes: &mut Outcomes) {
    let medium = Arc::new(MemoryMedium::from_bytes(damaged));
    let report = check(Arc::clone(&medium), true);
    let mut volume = match Volume::open(Arc::clone(&medium)) {
        Ok((volume, _)) => volume,
        Err(error) => {
            judge_refusal(&error, &report).unwrap_or_else(|how| panic!("{what}: {how}"));
            assert!(probe(&*medium).is_err(), "{what}: refused, but probed");
            outcomes.refused += 1;
            return;
        }
    };
    let sound = volume.check();
    let has_lost_tables = volume.table_failures() > 0;
    if !has_lost_tables {
        sound.unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let bad = unreadable(&mut volume, &killed.contents, what);
    let bad_past = unreadable_past(&mut volume, &killed.past, what);
    match bad.is_empty() && bad_past == 0 {
        true => outcomes.unharmed += 1,
        false => outcomes.with_errors += 1,
    }
    judge_findings(&mut volume, report, &bad, bad_past > 0)
        .unwrap_or_else(|how| panic!("{what}: {how}"));
    if !has_lost_tables {
        use_on(volume, &medium, killed, what);
    }
}

/// Writes, collects and opens again: what could be read can be, what could not may come back or not.
fn use_on(mut volume: Volume, medium: &Arc<MemoryMedium>, killed: &Killed, what: &str) {
    let mut contents = killed.contents.clone();
    let mut draw = Draw::new(7);
    let half = SHAPE.exported / 2;
    for n in 0..160 {
        let lpn = draw.below(half);
        let value = 1000 + draw.below(300);
        match volume.write(1 << 40, Lpn(lpn), &page(value)) {
            Ok(()) => contents[lpn as usize] = value,
            Err(error) => panic!("{what}: write {n}: {error}"),
        }
        if n % 40 == 39 {
            volume.flush().unwrap_or_else(|e| panic!("{what}: {e}"));
            while volume.collect_step().expect("the medium is sound") {}
        }
    }
    volume.check().unwrap_or_else(|e| panic!("{what}: {e}"));
    let before = unreadable(&mut volume, &contents, what);
    volume.flush().unwrap();
    drop(volume);
    let opened = Volume::open(Arc::clone(medium));
    let (mut volume, _) = opened.unwrap_or_else(|e| panic!("{what}: opened again: {e}"));
    let after = unreadable(&mut volume, &contents, what);
    let new: Vec<&u32> = after.iter().filter(|lpn| !before.contains(lpn)).collect();
    assert!(new.is_empty(), "{what}: lost by an opening: {new:?}");
    unreadable_past(&mut volume, &killed.past, what);
}
