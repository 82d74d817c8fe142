//! LRU stack distances of values (definition 8) and of pages (definition 9), each for reads and for
//! writes.
//!
//! With sampling at rate R, a distance of d among the followed keys stands for 1 + (d - 1) / R:
//! itself, and the others scaled. That cannot tell distances below 1 / R apart, and it misjudges
//! traces of which a few keys have a large part. So the upper part of the stack is followed for all
//! keys, exactly, and sampling decides only beyond it.

use serde::{Deserialize, Serialize};

use crate::ids::Sampler;
use crate::measures::{place, rank, share};
use crate::structures::near::NearStack;
use crate::structures::stack::StackDistances;

/// Distances up to this are exact with sampling too.
pub const NEAR: u32 = 4096;

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// A stack distance.
    pub distance: u64,
    /// Accesses whose distance is at most that.
    pub within: u64,
}

/// Stack distances of one class of accesses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalityCurve {
    /// Accesses.
    pub accesses: u64,
    /// First accesses, which have no distance.
    pub first: u64,
    /// The smallest distance that at least 50 % of the re-references do not exceed.
    pub p50: Option<u64>,
    /// The same for 90 %.
    pub p90: Option<u64>,
    /// The same for 99 %.
    pub p99: Option<u64>,
    /// The smallest distance that at least 50 % of all accesses do not exceed; absent where first
    /// accesses are too many.
    pub all_p50: Option<u64>,
    /// The same for 90 %.
    pub all_p90: Option<u64>,
    /// The same for 99 %.
    pub all_p99: Option<u64>,
    /// The curve at 1 to 16, then at eight distances in each power of two, up to the largest.
    pub points: Vec<CurvePoint>,
}

/// Curves of reads and of writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locality {
    /// Of reads, among reads.
    pub reads: LocalityCurve,
    /// Of writes, among writes.
    pub writes: LocalityCurve,
}

impl LocalityCurve {
    /// Accesses whose distance is finite.
    pub fn rereferences(&self) -> u64 {
        self.accesses - self.first
    }

    /// Accesses of at most this distance: exact at powers of two and at every distance up to 16,
    /// elsewhere those of the next point below.
    pub fn within(&self, distance: u64) -> u64 {
        let after = self.points.partition_point(|p| p.distance <= distance);
        after.checked_sub(1).map_or(0, |at| self.points[at].within)
    }

    /// Share of the re-references within a distance.
    pub fn share_within(&self, distance: u64) -> Option<f64> {
        share(self.within(distance), self.rereferences())
    }
}

/// The upper part of the stack of all keys, and the accesses by distance in it.
#[derive(Debug)]
struct Near {
    stack: NearStack,
    counts: Vec<u64>,
}

/// Measures the distances of one class.
#[derive(Debug)]
pub(crate) struct LocalityCounter {
    sampler: Sampler,
    accesses: u64,
    near: Option<Near>,
    stack: StackDistances,
    /// Accesses of followed keys by distance - 1 among them; those that are near left out.
    counts: Vec<u64>,
    /// First accesses of followed keys.
    first: u64,
}

impl LocalityCounter {
    /// No accesses yet.
    pub fn new(sampler: Sampler) -> Self {
        let near = Near {
            stack: NearStack::new(NEAR),
            counts: vec![0; NEAR as usize],
        };
        Self {
            sampler,
            accesses: 0,
            near: (!sampler.is_exact()).then_some(near),
            stack: StackDistances::default(),
            counts: Vec::new(),
            first: 0,
        }
    }

    /// An access of `key`, whose number is `id` if it is followed. Gives the distance of a followed
    /// key, exact or as estimated.
    pub fn observe(&mut self, key: u64, id: Option<u32>) -> Option<u64> {
        self.accesses += 1;
        let near = self.near.as_mut().and_then(|near| {
            let distance = near.stack.access(key)?;
            near.counts[distance as usize - 1] += 1;
            Some(u64::from(distance))
        });
        let distance = self.stack.access(id?);
        if near.is_some() {
            return near;
        }
        let Some(distance) = distance else {
            self.first += 1;
            return None;
        };
        *place(&mut self.counts, distance as usize - 1, 0) += 1;
        Some(self.scaled(u64::from(distance)))
    }

    fn scaled(&self, distance: u64) -> u64 {
        match self.sampler.is_exact() {
            true => distance,
            false => (1 + self.sampler.scale(distance - 1)).max(u64::from(NEAR) + 1),
        }
    }

    /// The curve.
    pub fn finish(self) -> LocalityCurve {
        let near: u64 = self.near.iter().flat_map(|near| &near.counts).sum();
        let far = self.accesses - near;
        let followed: u64 = self.counts.iter().sum();
        // Without a followed re-reference there is no telling them from first accesses.
        let first = match (self.sampler.is_exact(), followed) {
            (true, _) => self.first,
            (false, 0) => far,
            (false, _) => self.sampler.scale(self.first).min(far),
        };
        let mut drawing = Drawing::new(self.accesses, self.accesses - first);
        let near_counts = self.near.iter().flat_map(|near| &near.counts);
        let mut within = 0;
        for (at, count) in near_counts.enumerate() {
            within += count;
            drawing.step(at as u64 + 1, within);
        }
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            seen += count;
            // All followed ones together stand for all that are far and have a distance.
            let part = u128::from(far - first) * u128::from(seen) / u128::from(followed);
            drawing.step(self.scaled(at as u64 + 1), near + part as u64);
        }
        drawing.finish(first)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let near = self.near.iter().map(|near| near.stack.heap_bytes());
        self.stack.heap_bytes() + self.counts.capacity() * size_of::<u64>() + near.sum::<usize>()
    }
}

/// A percentile of a curve.
type Percentile = fn(&mut LocalityCurve) -> &mut Option<u64>;

/// Follows an ascending curve once and notes what is asked of it.
struct Drawing {
    curve: LocalityCurve,
    /// Ranks among all accesses that are asked for, and which percentile each is.
    wanted: Vec<(u64, Percentile)>,
    next_point: u64,
    within: u64,
    last: u64,
}

impl Drawing {
    fn new(accesses: u64, rereferences: u64) -> Self {
        let mut wanted: Vec<(u64, Percentile)> = vec![
            (rank(rereferences, 50), |curve| &mut curve.p50),
            (rank(rereferences, 90), |curve| &mut curve.p90),
            (rank(rereferences, 99), |curve| &mut curve.p99),
            (rank(accesses, 50), |curve| &mut curve.all_p50),
            (rank(accesses, 90), |curve| &mut curve.all_p90),
            (rank(accesses, 99), |curve| &mut curve.all_p99),
        ];
        wanted.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        Self {
            curve: LocalityCurve {
                accesses,
                ..LocalityCurve::default()
            },
            wanted,
            next_point: 1,
            within: 0,
            last: 0,
        }
    }

    /// The curve reaches `within` at `distance`, and is flat before.
    fn step(&mut self, distance: u64, within: u64) {
        if within == self.within {
            return;
        }
        while self.next_point < distance {
            self.point();
        }
        self.within = within;
        self.last = distance;
        while let Some((_, place)) = self.wanted.pop_if(|(rank, _)| *rank <= within) {
            *place(&mut self.curve) = Some(distance);
        }
    }

    fn point(&mut self) {
        self.curve.points.push(CurvePoint {
            distance: self.next_point,
            within: self.within,
        });
        self.next_point += match self.next_point {
            ..16 => 1,
            many => 1 << (many.ilog2() - 3),
        };
    }

    fn finish(mut self, first: u64) -> LocalityCurve {
        self.curve.first = first;
        while self.last > 0
            && self
                .curve
                .points
                .last()
                .is_none_or(|p| p.distance < self.last)
        {
            self.point();
        }
        self.curve
    }
}
