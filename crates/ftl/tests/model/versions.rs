//! The naive multi-version map: every version of every page in a list, and nothing clever.

use std::collections::BTreeMap;

use flashlore_flash::Lpn;

/// How a version came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A write, held whole, compressed by itself or shared.
    Written,
    /// The same, and held as a delta while it was the present version.
    Delta,
    /// A trim.
    Trimmed,
    /// A rewind to an instant at which the page held nothing.
    Rewound,
}

#[derive(Debug, Clone, Copy)]
struct Version {
    stamp: u64,
    value: Option<u32>,
    origin: Origin,
}

/// The versions of every page, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    pages: BTreeMap<Lpn, Vec<Version>>,
    /// By page the stamp before which a purge took everything.
    purged: BTreeMap<Lpn, u64>,
}

impl Versions {
    fn version_at(&self, lpn: Lpn, instant: u64) -> Option<&Version> {
        let versions = self.pages.get(&lpn)?;
        versions.iter().rev().find(|v| v.stamp <= instant)
    }

    /// What a page held at an instant.
    pub fn at(&self, lpn: Lpn, instant: u64) -> Option<u32> {
        self.version_at(lpn, instant)?.value
    }

    /// How that version came to be.
    pub fn origin_at(&self, lpn: Lpn, instant: u64) -> Option<Origin> {
        Some(self.version_at(lpn, instant)?.origin)
    }

    /// What a page holds.
    pub fn present(&self, lpn: Lpn) -> Option<u32> {
        self.at(lpn, u64::MAX)
    }

    /// How that came to be.
    pub fn present_origin(&self, lpn: Lpn) -> Option<Origin> {
        self.origin_at(lpn, u64::MAX)
    }

    /// The stamp of the present version.
    pub fn last_stamp(&self, lpn: Lpn) -> Option<u64> {
        Some(self.pages.get(&lpn)?.last()?.stamp)
    }

    /// A version of a page begins.
    pub fn change(&mut self, lpn: Lpn, stamp: u64, value: Option<u32>, origin: Origin) {
        let version = Version {
            stamp,
            value,
            origin,
        };
        self.pages.entry(lpn).or_default().push(version);
    }

    /// The version of a page that began at a stamp has never been.
    pub fn withdraw(&mut self, lpn: Lpn, stamp: u64) {
        if let Some(versions) = self.pages.get_mut(&lpn) {
            versions.retain(|v| v.stamp != stamp);
        }
    }

    /// Every page holds again what it held at an instant. A page may hold that in another object than before,
    /// which begins a version with the same value: `began` says so.
    pub fn rewind_to(&mut self, instant: u64, now: u64, began: impl Fn(Lpn) -> bool) {
        let pages: Vec<Lpn> = self.pages.keys().copied().collect();
        for lpn in pages {
            let then = self.at(lpn, instant);
            if then == self.present(lpn) && !began(lpn) {
                continue;
            }
            let origin = match then {
                Some(_) => self.origin_at(lpn, instant).unwrap_or(Origin::Written),
                None => Origin::Rewound,
            };
            self.change(lpn, now, then, origin);
        }
    }

    /// Whether what a page held at an instant was purged.
    pub fn is_purged(&self, lpn: Lpn, instant: u64) -> bool {
        self.purged.get(&lpn).is_some_and(|&until| instant < until)
    }

    /// What a page held before its present version is not known any more.
    pub fn purge(&mut self, lpn: Lpn) {
        if let Some(stamp) = self.last_stamp(lpn) {
            self.purged.insert(lpn, stamp);
        }
        if let Some(versions) = self.pages.get_mut(&lpn) {
            let old = versions.len().saturating_sub(1);
            versions.drain(..old);
        }
    }
}
