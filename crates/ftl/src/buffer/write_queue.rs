//! The sorting write queue: changes of the host in all their versions, in buckets of neighbouring
//! addresses. A bucket is flushed as a whole, in order of arrival.
//!
//! Invariants ([`WriteQueue::check`]): a held change is in the bucket of its address, after those that
//! came before it; no empty bucket is kept; the buckets are ranked by length, then by their oldest
//! change; the newest version of a page is found until it has left.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use flashlore_flash::Lpn;
use rustc_hash::FxHashMap;

use super::BufferPlace;

#[derive(Debug, Clone)]
struct Queued<V> {
    lpn: Lpn,
    value: V,
    number: u64,
}

#[derive(Debug, Clone)]
struct QueueBucket {
    /// The number of its oldest change.
    oldest: u64,
    places: Vec<BufferPlace>,
}

/// The number of a bucket: that of its range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct BucketNumber(u32);

/// The queue; `V` is what is known of a change.
#[derive(Debug, Clone)]
pub struct WriteQueue<V> {
    places: u32,
    bucket_pages: u32,
    /// By place; grows to `places` and no further.
    changes: Vec<Queued<V>>,
    free: Vec<BufferPlace>,
    newest: FxHashMap<Lpn, BufferPlace>,
    buckets: FxHashMap<BucketNumber, QueueBucket>,
    /// Length, oldest change and number of every bucket: the first is the largest.
    ranked: BTreeSet<(Reverse<usize>, u64, BucketNumber)>,
    pushed: u64,
    held: u32,
    leaving: u32,
}

impl<V: Copy> WriteQueue<V> {
    /// An empty queue of so many changes; the addresses are divided into ranges of `bucket_pages`,
    /// at least 1.
    pub fn new(places: u32, bucket_pages: u32) -> Self {
        WriteQueue {
            places,
            bucket_pages: bucket_pages.max(1),
            changes: Vec::new(),
            free: Vec::new(),
            newest: FxHashMap::default(),
            buckets: FxHashMap::default(),
            ranked: BTreeSet::new(),
            pushed: 0,
            held: 0,
            leaving: 0,
        }
    }

    /// Changes held: those that do not leave.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Changes that leave.
    pub fn leaving(&self) -> u32 {
        self.leaving
    }

    /// The newest change of a page, if one is here.
    pub fn get(&self, lpn: Lpn) -> Option<V> {
        let place = self.newest.get(&lpn)?;
        Some(self.changes[place.index()].value)
    }

    /// The page of a change and what is known of it.
    pub fn change(&self, place: BufferPlace) -> (Lpn, V) {
        let change = &self.changes[place.index()];
        (change.lpn, change.value)
    }

    /// Enters a change; `false`, and nothing happens, if no place is free.
    pub fn push(&mut self, lpn: Lpn, value: V) -> bool {
        if self.held + self.leaving >= self.places {
            return false;
        }
        self.pushed += 1;
        let change = Queued {
            lpn,
            value,
            number: self.pushed,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.changes[place.index()] = change;
                place
            }
            None => {
                self.changes.push(change);
                BufferPlace((self.changes.len() - 1) as u32)
            }
        };
        let number = self.bucket_of(lpn);
        let bucket = self.buckets.entry(number).or_insert(QueueBucket {
            oldest: self.pushed,
            places: Vec::new(),
        });
        let len = bucket.places.len();
        bucket.places.push(place);
        self.ranked.remove(&(Reverse(len), bucket.oldest, number));
        self.ranked
            .insert((Reverse(len + 1), bucket.oldest, number));
        self.newest.insert(lpn, place);
        self.held += 1;
        true
    }

    /// Flushes the bucket of an address, or the largest if that is empty: the places of its changes in
    /// order of arrival. They leave.
    pub fn flush_bucket_of(&mut self, lpn: Lpn) -> Vec<BufferPlace> {
        let number = self.bucket_of(lpn);
        if self.buckets.contains_key(&number) {
            return self.flush(number);
        }
        self.flush_largest()
    }

    /// Flushes the largest bucket, among equals the one with the oldest change. Empty if nothing is
    /// held.
    pub fn flush_largest(&mut self) -> Vec<BufferPlace> {
        match self.ranked.first() {
            Some(&(_, _, number)) => self.flush(number),
            None => Vec::new(),
        }
    }

    fn bucket_of(&self, lpn: Lpn) -> BucketNumber {
        BucketNumber(lpn.0 / self.bucket_pages)
    }

    fn flush(&mut self, number: BucketNumber) -> Vec<BufferPlace> {
        let Some(bucket) = self.buckets.remove(&number) else {
            return Vec::new();
        };
        let len = bucket.places.len();
        self.ranked.remove(&(Reverse(len), bucket.oldest, number));
        self.held -= len as u32;
        self.leaving += len as u32;
        bucket.places
    }

    /// A change that was leaving has left.
    pub fn free(&mut self, place: BufferPlace) {
        let lpn = self.changes[place.index()].lpn;
        if self.newest.get(&lpn) == Some(&place) {
            self.newest.remove(&lpn);
        }
        self.leaving -= 1;
        self.free.push(place);
    }

    /// Recounts every invariant.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut held = 0;
        for (&number, bucket) in &self.buckets {
            let numbers = bucket.places.iter().map(|&at| &self.changes[at.index()]);
            let in_order = numbers.clone().map(|change| change.number);
            if !in_order.clone().is_sorted() || in_order.min() != Some(bucket.oldest) {
                return Err(format!("bucket {} is not in order of arrival", number.0));
            }
            if let Some(stray) = numbers.clone().find(|c| self.bucket_of(c.lpn) != number) {
                return Err(format!("page {} is in bucket {}", stray.lpn, number.0));
            }
            let rank = (Reverse(bucket.places.len()), bucket.oldest, number);
            if !self.ranked.contains(&rank) {
                return Err(format!("bucket {} is not ranked as it is", number.0));
            }
            for change in numbers {
                let newest = self.newest.get(&change.lpn);
                let newest = newest.map(|&at| self.changes[at.index()].number);
                if newest.is_none_or(|newest| newest < change.number) {
                    return Err(format!("of page {} an older change is found", change.lpn));
                }
            }
            held += bucket.places.len();
        }
        let used = self.changes.len() - self.free.len();
        if held != self.held as usize
            || self.ranked.len() != self.buckets.len()
            || used != held + self.leaving as usize
            || self.changes.len() > self.places as usize
        {
            return Err(format!(
                "{held} changes held (counted {}), {} leave, {used} of {} places used",
                self.held, self.leaving, self.places
            ));
        }
        Ok(())
    }
}
