//! A long history against the naive model, in the sizes that are used outside of unit tests: many
//! chunks of the log, long tails, closed gaps, thousands of kept entries.

use flashlore_content::history::{Schedule, Tier};
use flashlore_content::{History, HistoryOptions, Version};
use flashlore_flash::{InMemory, Lpn, ObjectId};
use flashlore_oracle::history::{HistoryModel, PURGED};

const PAGES: u64 = 1500;
const WRITES: u64 = 60_000;
/// Every so many writes something else happens, and all is compared.
const ROUND: u64 = 5_000;

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % end
    }
}

fn expected(version: Option<Option<Option<u32>>>) -> Option<Version> {
    version.map(|version| match version {
        None => Version::Current,
        Some(None) => Version::Nothing,
        Some(Some(PURGED)) => Version::Purged,
        Some(Some(object)) => Version::Object(ObjectId(object)),
    })
}

fn compare(history: &History<InMemory>, model: &HistoryModel, numbers: &mut Numbers, now: u64) {
    history.check().unwrap();
    assert_eq!(history.len(), model.len());
    let mut objects: Vec<u32> = history.objects().map(|object| object.0).collect();
    objects.sort_unstable();
    assert_eq!(objects, model.objects());
    for _ in 0..3000 {
        let (lpn, instant) = (numbers.below(PAGES), numbers.below(now + 10));
        let version = history.at(Lpn(lpn as u32), instant).ok();
        assert_eq!(
            version,
            expected(model.at(lpn as usize, instant)),
            "{lpn} at {instant}"
        );
    }
    let window = [history.oldest(), now - (now - history.oldest()) / 2];
    for instant in history.pinned().chain(window) {
        let changed = history.changed_since(instant).unwrap();
        let at = |lpn: Lpn| (lpn.0, history.at(lpn, instant).unwrap());
        let pages: Vec<_> = changed.iter().map(at).collect();
        let changed = model.changed_since(instant).unwrap().into_iter();
        let changed = changed.map(|(lpn, object)| (lpn, expected(Some(Some(object))).unwrap()));
        assert!(changed.eq(pages), "changes since {instant}");
    }
}

/// Between the rounds: an advance, a snapshot, now and then a purge or the schedule.
fn between_rounds(history: &mut History<InMemory>, model: &mut HistoryModel, now: u64) {
    let mut gone = Vec::new();
    let mut expected = Vec::new();
    let round = now / ROUND;
    history.snapshot(now - 700).unwrap();
    assert!(model.snapshot(now - 700));
    history.advance(now - 12_000.min(now), &mut |object| gone.push(object));
    expected.extend(model.advance(now - 12_000.min(now)));
    if round.is_multiple_of(5) {
        history.purge(Lpn(0)..Lpn(1400), &mut |object| gone.push(object));
        expected.extend(model.purge(0..1400));
    }
    if round.is_multiple_of(4) {
        history.apply_schedule(now, &mut |object| gone.push(object));
        expected.extend(model.apply_schedule(now));
    }
    let second = history.snapshots().nth(1);
    if let Some(second) = second {
        assert!(history.delete_snapshot(second, &mut |object| gone.push(object)));
        expected.extend(model.delete_snapshot(second).unwrap());
    }
    let mut gone: Vec<u32> = gone.into_iter().map(|object: ObjectId| object.0).collect();
    gone.sort_unstable();
    expected.sort_unstable();
    assert_eq!(gone, expected, "references given up at {now}");
}

fn run(queue: u64) {
    let tiers = [(20_000, 2_000), (50_000, 10_000)];
    let tier = |(up_to, spacing)| Tier { up_to, spacing };
    let schedule = Schedule::new(9_000, tiers.map(tier).to_vec()).unwrap();
    let options = HistoryOptions {
        max_entries: None,
        schedule: Some(schedule),
    };
    let mut history = History::new(&InMemory, PAGES as u32, options);
    let mut model = HistoryModel::new(PAGES as usize, 9_000, tiers.to_vec());
    let mut numbers = Numbers(1);
    for now in 1..=WRITES {
        // Half of the writes go to a tenth of the pages.
        let pages = [PAGES, PAGES / 10][numbers.below(2) as usize];
        let lpn = numbers.below(pages);
        let ago = numbers.below(queue).min(now);
        let stamp = (now - ago).max(model.written(lpn as usize));
        let object = (numbers.below(20) > 0).then_some(now as u32);
        let old = model.write(lpn as usize, object, stamp);
        history.record(Lpn(lpn as u32), old.map_or(ObjectId::NONE, ObjectId), stamp);
        if now.is_multiple_of(ROUND) {
            between_rounds(&mut history, &mut model, now);
            compare(&history, &model, &mut numbers, now);
        }
    }
    assert!(history.kept() > 1000, "{} entries kept", history.kept());
}

#[test]
fn a_long_history_in_order_equals_a_list_of_versions() {
    run(1);
}

#[test]
fn a_long_history_out_of_a_queue_equals_a_list_of_versions() {
    run(256);
}
