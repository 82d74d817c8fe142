//! How often each line of the conflict checklist (`spec/matrix.md`) happened.
//!
//! Nothing in the device counts these. They are seen from outside: what every object was referred to by, and
//! where it lay, before and after each change of the device. A handle that holds the same content and is alive
//! before and after is the same object, because a write has its new object before it gives the old one up.

use std::collections::BTreeMap;

use flashlore_content::history::Version;
use flashlore_flash::{Lpn, ObjectId};

use crate::common::values::V;
use crate::rig::Device;

/// A line of the checklist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A base that several pages shared was left by the last of them.
    SharedBaseLeft,
    /// A page became a delta from a base from which another page is another delta.
    TwoDeltasOneBase,
    /// Collection moved a value that a page, a delta and an old version refer to.
    MovedWithAllReferences,
    /// A page was rewound to a value that was a delta then and has been merged since.
    RewoundToMerged,
    /// A rewind undid a trim.
    RewoundTrimmed,
    /// A write shared a value that only old versions needed, and the window gave up one of these.
    HistoricalHitAndAdvance,
    /// Power failed while the queue held two versions of a page.
    TwoVersionsLost,
    /// An object that the index had forgotten got a delta that needs it.
    BaseNotIndexed,
    /// The window gave up the last version of a base that a delta still needs.
    AdvancePastBase,
    /// The window passed a snapshot of a value that no page holds any more.
    SnapshotAlone,
}

pub const EVENTS: [Event; 10] = [
    Event::SharedBaseLeft,
    Event::TwoDeltasOneBase,
    Event::MovedWithAllReferences,
    Event::RewoundToMerged,
    Event::RewoundTrimmed,
    Event::HistoricalHitAndAdvance,
    Event::TwoVersionsLost,
    Event::BaseNotIndexed,
    Event::AdvancePastBase,
    Event::SnapshotAlone,
];

/// Column heads, in the order of [`EVENTS`].
const HEADS: [&str; 10] = [
    "base-left",
    "2-on-base",
    "gc-all",
    "ret-merged",
    "ret-trim",
    "hit+adv",
    "2-lost",
    "unindexed",
    "adv-base",
    "snap-alone",
];

/// Counts.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub operations: u64,
    /// Writes that protected versions refused.
    pub refused: u64,
    /// Victims collected.
    pub victims: u64,
    /// Purges that erased at once, and those that found no room for it.
    pub erased: u64,
    pub unerased: u64,
    events: [u64; 10],
}

impl Tally {
    pub fn of(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    pub fn count(&mut self, event: Event, times: u64) {
        self.events[event as usize] += times;
    }

    pub fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.refused += other.refused;
        self.victims += other.victims;
        self.erased += other.erased;
        self.unerased += other.unerased;
        for (own, other) in self.events.iter_mut().zip(other.events) {
            *own += other;
        }
    }

    /// A table of rows, with these counts as the sum below.
    pub fn table_of<'a>(&'a self, rows: impl IntoIterator<Item = (String, &'a Tally)>) -> String {
        let mut table = format!("{:<42}", "");
        for head in ["ops", "refused", "victims"].iter().chain(&HEADS) {
            table += &format!("{head:>11}");
        }
        for (name, tally) in rows.into_iter().chain([("sum".to_string(), self)]) {
            table += &format!("\n{name:<42}");
            let counts = [tally.operations, tally.refused, tally.victims];
            for count in counts.iter().chain(&tally.events) {
                table += &format!("{count:>11}");
            }
        }
        table + "\n"
    }
}

/// An object as it was seen last.
#[derive(Debug, Clone, Copy)]
struct Seen {
    content: V,
    references: u32,
    kept: u32,
    pins: u32,
    /// Whether it is packed, and its unit or packed page.
    place: (bool, u32),
    /// Whether two pages referred to it at once.
    shared: bool,
    indexed: bool,
    /// Whether the index has ever named it.
    was_indexed: bool,
}

/// The objects of a device as they were seen last, and what happened since the beginning.
pub struct Watch {
    objects: Vec<Option<Seen>>,
    oldest: u64,
    pub tally: Tally,
}

impl Watch {
    pub fn new() -> Self {
        Watch {
            objects: Vec::new(),
            oldest: 0,
            tally: Tally::default(),
        }
    }

    /// What an object was when it was last looked at: whether only old versions referred to it, and how many.
    pub fn kept_alone(&self, object: ObjectId) -> Option<u32> {
        let seen = self.objects.get(object.index()).copied().flatten()?;
        (seen.references == 0 && seen.kept > 0).then_some(seen.kept)
    }

    /// Looks at every object after the device has changed.
    pub fn look(&mut self, ftl: &Device) {
        let handles = ftl.objects().handles();
        self.objects.resize(handles as usize, None);
        let oldest = ftl.versions().map_or(0, |v| v.history.oldest());
        let advanced = oldest > self.oldest;
        for handle in 0..handles {
            let before = self.objects[handle as usize];
            let now = look_at(ftl, ObjectId(handle), before);
            if let (Some(before), Some(now)) = (before, now)
                && before.content == now.content
            {
                self.compare(before, now, advanced);
            }
            self.objects[handle as usize] = now;
        }
        if advanced {
            self.look_at_snapshots(ftl, self.oldest..oldest);
        }
        self.oldest = oldest;
    }

    fn compare(&mut self, before: Seen, now: Seen, advanced: bool) {
        let moved = before.place.0 == now.place.0 && before.place.1 != now.place.1;
        let all = |o: Seen| o.references > 0 && o.kept > 0 && o.pins > 0;
        let left = before.references > 0 && now.references == 0;
        let gave_up = before.kept > 0 && now.kept == 0 && now.references == 0;
        let happened = [
            (Event::SharedBaseLeft, left && before.shared && now.pins > 0),
            (
                Event::MovedWithAllReferences,
                moved && all(before) && all(now),
            ),
            (
                Event::BaseNotIndexed,
                now.pins > before.pins && before.was_indexed && !before.indexed,
            ),
            (
                Event::AdvancePastBase,
                advanced && gave_up && before.references == 0 && now.pins > 0,
            ),
        ];
        for (event, happened) in happened {
            self.tally.count(event, u64::from(happened));
        }
    }

    /// The window has passed these instants.
    fn look_at_snapshots(&mut self, ftl: &Device, passed: std::ops::Range<u64>) {
        let Some(versions) = ftl.versions() else {
            return;
        };
        for instant in versions.history.snapshots().filter(|i| passed.contains(i)) {
            let pages = 0..ftl.objects().len();
            let objects = pages.filter_map(|lpn| match ftl.version_at(Lpn(lpn), instant) {
                Ok(Version::Object(object)) => Some(object),
                _ => None,
            });
            let alone = objects.filter(|&o| ftl.objects().references(o) == 0);
            self.tally.count(Event::SnapshotAlone, alone.count() as u64);
        }
    }

    /// A page was written as a packed value.
    pub fn packed(&mut self, ftl: &Device, lpn: Lpn) {
        let objects = ftl.objects();
        let Some(object) = objects.object_of(lpn).filter(|&o| objects.is_delta(o)) else {
            return;
        };
        let base_of = |object| objects.packed(object).map(|(_, base)| base);
        let base = base_of(object);
        let others = (0..objects.handles()).map(ObjectId).filter(|&other| {
            other != object
                && objects.references(other) > 0
                && base_of(other) == base
                && objects.content(other) != objects.content(object)
        });
        let shared = others.count() > 0;
        self.tally.count(Event::TwoDeltasOneBase, u64::from(shared));
    }

    /// Power failed while these pages had changes in the queue.
    pub fn power_failed(&mut self, queued: impl Iterator<Item = Lpn>) {
        let mut changes: BTreeMap<Lpn, u32> = BTreeMap::new();
        queued.for_each(|lpn| *changes.entry(lpn).or_default() += 1);
        let two = changes.values().any(|&count| count >= 2);
        self.tally.count(Event::TwoVersionsLost, u64::from(two));
    }
}

fn look_at(ftl: &Device, handle: ObjectId, before: Option<Seen>) -> Option<Seen> {
    let objects = ftl.objects();
    if !objects.is_alive(handle) {
        return None;
    }
    let content = objects.content(handle);
    let before = before.filter(|b| b.content == content);
    let references = objects.references(handle);
    let indexed = objects.is_indexed(handle);
    Some(Seen {
        content,
        references,
        kept: objects.kept(handle),
        pins: objects.pins(handle),
        place: (objects.is_packed(handle), objects.at(handle).0),
        shared: references >= 2 || before.is_some_and(|b| b.shared),
        indexed,
        was_indexed: indexed || before.is_some_and(|b| b.was_indexed),
    })
}
