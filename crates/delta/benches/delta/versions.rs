//! Consecutive versions of pages, in the order of their writes.

use std::collections::{HashMap, HashSet};

use flashlore_delta::{PAGE_BYTES, Page};
use flashlore_synth::{Generator, SynthOptions, load_profile, recipes};
use flashlore_testkit::data;
use flashlore_trace::{
    Batch, ContentModel, Op, PageSource, Pages, ReadOptions, TraceReader, WorkloadOptions,
    for_each_access,
};

/// Requests of a profile, whose pages are scaled with them.
const REQUESTS: f64 = 30_000.0;

/// A page before and after a write that changed it.
#[allow(dead_code)]
pub struct Pair<'a> {
    pub old: &'a Page,
    pub new: &'a Page,
}

/// A value when it is written first.
#[allow(dead_code)]
pub struct Written<'a> {
    pub page: &'a Page,
    /// Whether its page was never touched before.
    pub is_first: bool,
}

/// The values of a workload, and the overwrites that change their page.
pub struct Versions {
    pub name: String,
    pages: Vec<Page>,
    /// Values before and after.
    overwrites: Vec<(u32, u32)>,
    /// Values in the order of their first writes, and whether these were the first of their page.
    written: Vec<(u32, bool)>,
}

// Each benchmark uses one of the two lists.
#[allow(dead_code)]
impl Versions {
    /// Those of a capture, if it is there.
    pub fn captured(name: &str) -> Option<Versions> {
        let trace = data(&format!("captures/{name}.fiu.xz"))?;
        let bytes = data(&format!("captures/{name}.pages.zst"))?;
        let reader = TraceReader::open(&trace, &ReadOptions::default()).expect("a trace");
        let options = WorkloadOptions::new(ContentModel::FromTrace);
        let mut held = Held::default();
        for_each_access(vec![reader], &options, |access| {
            let units = access.unit..;
            for (unit, &value) in units.zip(access.values.unwrap_or_default()) {
                held.access((access.device, unit), access.op, value);
            }
            Ok(())
        })
        .expect("a trace");
        let pages = Pages::open(&bytes, 1 << 30).expect("pages");
        Some(held.versions(name, &pages, pages.len()))
    }

    /// Those of a profile with similarity.
    pub fn synthesised(name: &str) -> Versions {
        let (profile, _) = load_profile(name).expect("a preset");
        let scale = REQUESTS / profile.requests.count as f64;
        let options = SynthOptions {
            scale: scale.min(1.0),
            ..SynthOptions::default()
        };
        let mut held = Held::default();
        let mut generator = Generator::new(&profile, &options);
        let mut batch = Batch::default();
        while generator.next_batch(&mut batch) {
            for record in batch.iter() {
                let units = record.offset / PAGE_BYTES as u64..;
                for (unit, &value) in units.zip(record.content.unwrap_or_default()) {
                    held.access((0, unit), record.op, value);
                }
            }
        }
        let recipes = recipes(&profile, &options).expect("a profile with similarity");
        held.versions(name, &recipes, recipes.len())
    }

    /// The first `most` values that were written.
    pub fn written(&self, most: usize) -> Vec<Written<'_>> {
        let first = self.written.iter().take(most);
        let written = first.map(|&(value, is_first)| Written {
            page: &self.pages[value as usize],
            is_first,
        });
        written.collect()
    }

    /// At most `most` of the overwrites, spread evenly.
    pub fn pairs(&self, most: usize) -> Vec<Pair<'_>> {
        let count = self.overwrites.len().min(most);
        let pick = |i: usize| self.overwrites[i * self.overwrites.len() / count];
        let page = |value: u32| &self.pages[value as usize];
        let pairs = (0..count).map(pick);
        pairs
            .map(|(old, new)| Pair {
                old: page(old),
                new: page(new),
            })
            .collect()
    }
}

/// What every page holds.
#[derive(Default)]
struct Held {
    values: HashMap<(u32, u64), u32>,
    overwrites: Vec<(u32, u32)>,
    seen: HashSet<u32>,
    written: Vec<(u32, bool)>,
}

impl Held {
    fn access(&mut self, page: (u32, u64), op: Op, value: u32) {
        match op {
            Op::Write => {
                let old = self.values.insert(page, value);
                if self.seen.insert(value) {
                    self.written.push((value, old.is_none()));
                }
                self.overwrites
                    .extend(old.filter(|&old| old != value).map(|old| (old, value)));
            }
            // What a page holds before it is written, a read tells.
            _ => {
                self.values.entry(page).or_insert(value);
            }
        }
    }

    /// With the bytes of all values; overwrites whose bytes are not known are left out.
    fn versions(mut self, name: &str, source: &dyn PageSource, values: usize) -> Versions {
        let mut pages = vec![[0; PAGE_BYTES]; values];
        for (value, page) in pages.iter_mut().enumerate() {
            assert!(source.fill(value as u32, page), "value {value} of {name}");
        }
        let known = |value: u32| (value as usize) < values;
        self.overwrites
            .retain(|&(old, new)| known(old) && known(new));
        self.written.retain(|&(value, _)| known(value));
        Versions {
            name: name.to_owned(),
            pages,
            overwrites: self.overwrites,
            written: self.written,
        }
    }
}
