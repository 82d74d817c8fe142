//! What the flash device, its RAM and its translation layer did, whatever the system.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the flash device did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Flash pages read.
    pub page_reads: u64,
    /// Flash pages programmed.
    pub page_programs: u64,
    /// Blocks erased.
    pub block_erases: u64,
    /// Blocks retired because they have reached their endurance.
    pub retired_blocks: u64,
}

/// Programmed units by cause.
///
/// `unique`, `duplicate` and `reborn` split `host`, which only the oracle can do
/// (`dedup.oracle`): without it they are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Written whole for the host.
    pub host: u64,
    /// Of `host`: content never programmed before.
    pub unique: Option<u64>,
    /// Of `host`: content that a valid unit holds at that moment.
    pub duplicate: Option<u64>,
    /// Of `host`: content programmed before that no valid unit holds any more.
    pub reborn: Option<u64>,
    /// Units packed with values that the host wrote, encoded.
    pub packed: u64,
    /// Encoded values materialized.
    pub merge: u64,
    /// Moved by garbage collection.
    pub gc: u64,
    /// Moved by wear levelling.
    pub wear: u64,
    /// Of the map itself.
    pub map: u64,
    /// Left empty in flash pages of several units.
    pub padding: u64,
}

impl Programs {
    /// Units programmed because the host wrote, in any form.
    pub fn foreground(&self) -> u64 {
        self.host + self.packed
    }

    /// All programmed units.
    pub fn total(&self) -> u64 {
        self.foreground() + self.merge + self.gc + self.wear + self.map + self.padding
    }

    /// [`super::RunResult::waf_total`] for a host that wrote `write_pages` units.
    pub fn waf_total(&self, write_pages: u64) -> Option<f64> {
        ratio(self.total(), write_pages)
    }

    /// [`super::RunResult::waf_gc`].
    pub fn waf_gc(&self) -> Option<f64> {
        ratio(self.foreground() + self.gc, self.foreground())
    }
}

/// Garbage collection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gc {
    /// Blocks collected.
    pub victims: u64,
    /// Of them, those that held packed units.
    pub log_victims: u64,
    /// Valid units moved out of them.
    pub valid_units_moved: u64,
    /// Their ratio.
    pub mean_valid_per_victim: Option<f64>,
    /// Pairs of valid units and victims that held as many, ascending.
    pub valid_per_victim: Vec<(u64, u64)>,
}

impl Gc {
    /// The figures of victims counted by the number of valid units they held.
    pub fn of(by_valid: &[u64]) -> Self {
        let valid_per_victim: Vec<(u64, u64)> = (0..)
            .zip(by_valid.iter().copied())
            .filter(|&(_, victims)| victims > 0)
            .collect();
        let victims = valid_per_victim.iter().map(|(_, victims)| victims).sum();
        let valid_units_moved = valid_per_victim
            .iter()
            .map(|(valid, victims)| valid * victims)
            .sum();
        let mean_valid_per_victim = ratio(valid_units_moved, victims);
        Self {
            victims,
            log_victims: 0,
            valid_units_moved,
            mean_valid_per_victim,
            valid_per_victim,
        }
    }
}

/// Traffic of the forward map, where a part of it is in RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapTraffic {
    /// Accesses to entries in RAM.
    pub hits: u64,
    /// Accesses to other entries.
    pub misses: u64,
    /// Flash pages read for translation pages.
    pub reads: u64,
    /// Translation and journal pages programmed, part of [`Programs::map`]; copies by collection are in
    /// [`Programs::gc`].
    pub programs: u64,
    /// Those of them that are pages of journals.
    pub journal_programs: u64,
    /// Journals folded into their tables.
    pub folds: u64,
}

/// What the write buffer did. Units written by the host + `pages_begin` = `write_hits` + `evictions`
/// + `trimmed` + `pages_end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferTraffic {
    /// Units read in it.
    pub read_hits: u64,
    /// Units written over a page that had not left it: the older version was never programmed.
    pub write_hits: u64,
    /// Units handed to the translation layer to make room.
    pub evictions: u64,
    /// Units dropped because the host trimmed them.
    pub trimmed: u64,
    /// Units in it, or waiting for a place, when counting began.
    pub pages_begin: u64,
    /// The same at the end: they are not written.
    pub pages_end: u64,
}

/// What the read cache did. Units that the host read in a write buffer or write queue are not asked for
/// here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTraffic {
    /// Units that were here.
    pub hits: u64,
    /// Units that were read from flash, or never written.
    pub misses: u64,
}

/// What the write queue did. Units written and trimmed by the host + `changes_begin` = `flushed` +
/// `changes_end`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTraffic {
    /// Units read in it.
    pub read_hits: u64,
    /// Buckets flushed.
    pub flushes: u64,
    /// Changes of one unit in them.
    pub flushed: u64,
    /// Their ratio.
    pub requests_per_flush: Option<f64>,
    /// Changes in it, or waiting for a place, when counting began.
    pub changes_begin: u64,
    /// The same at the end: they are not made.
    pub changes_end: u64,
}

impl QueueTraffic {
    /// With the ratio of what was counted.
    pub fn with_mean(self) -> Self {
        Self {
            requests_per_flush: ratio(self.flushed, self.flushes),
            ..self
        }
    }
}

/// Erases per block.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EraseSpread {
    /// Of the least worn block.
    pub min: u64,
    /// Mean over the blocks.
    pub mean: f64,
    /// Of the most worn block.
    pub max: u64,
    /// Standard deviation over the blocks.
    pub std: f64,
    /// Pairs of erases and the blocks that were erased so often, ascending.
    pub per_block: Vec<(u64, u64)>,
}

impl EraseSpread {
    /// The figures of the erase counts of all blocks; zeros if there is no block.
    pub fn of(counts: impl IntoIterator<Item = u64>) -> Self {
        let mut per_block = BTreeMap::new();
        for count in counts {
            *per_block.entry(count).or_insert(0_u64) += 1;
        }
        let (Some((&min, _)), Some((&max, _))) =
            (per_block.first_key_value(), per_block.last_key_value())
        else {
            return Self::default();
        };
        let (mut blocks, mut sum, mut squares) = (0, 0, 0);
        for (&count, &here) in &per_block {
            let (count, here) = (u128::from(count), u128::from(here));
            blocks += here;
            sum += count * here;
            squares += count * count * here;
        }
        let (mean, std) = mean_and_std(blocks, sum, squares);
        Self {
            min,
            mean,
            max,
            std,
            per_block: per_block.into_iter().collect(),
        }
    }
}

/// Mean and standard deviation of so many values (at least 1) from their sum and that of their squares.
pub(crate) fn mean_and_std(values: u128, sum: u128, squares: u128) -> (f64, f64) {
    let n = values as f64;
    let variance = (values * squares).saturating_sub(sum * sum) as f64 / (n * n);
    (sum as f64 / n, variance.sqrt())
}

/// Busy shares of simulated time, 0 to 1.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utilization {
    /// Of each channel; 0 where each die has its own, whose transfers count with the die.
    pub channel: Vec<f64>,
    /// Of each die.
    pub die: Vec<f64>,
    /// Mean over the channels.
    pub channel_mean: Option<f64>,
    /// Of the busiest channel.
    pub channel_max: Option<f64>,
    /// Mean over the dies.
    pub die_mean: Option<f64>,
    /// Of the busiest die.
    pub die_max: Option<f64>,
}

impl Utilization {
    /// The figures of the shares given.
    pub fn of(channel: Vec<f64>, die: Vec<f64>) -> Self {
        let mean = |shares: &[f64]| {
            (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
        };
        let max = |shares: &[f64]| shares.iter().copied().reduce(f64::max);
        Self {
            channel_mean: mean(&channel),
            channel_max: max(&channel),
            die_mean: mean(&die),
            die_max: max(&die),
            channel,
            die,
        }
    }
}

/// What is absent where there is nothing to divide by.
pub(super) fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spreads_agree_with_a_walk_over_the_blocks(counts in prop::collection::vec(0..9_u64, 1..80)) {
            let spread = EraseSpread::of(counts.iter().copied());
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<u64>() as f64 / n;
            let variance = counts.iter().map(|&c| (c as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert_eq!(Some(spread.min), counts.iter().copied().min());
            prop_assert_eq!(Some(spread.max), counts.iter().copied().max());
            prop_assert!((spread.mean - mean).abs() < 1e-12);
            prop_assert!((spread.std - variance.sqrt()).abs() < 1e-9);
            let walked = (0..9).map(|e| (e, counts.iter().filter(|&&c| c == e).count() as u64));
            let walked: Vec<_> = walked.filter(|&(_, blocks)| blocks > 0).collect();
            prop_assert_eq!(spread.per_block, walked);
        }
    }

    #[test]
    fn amplification() {
        let programs = Programs {
            host: 100,
            packed: 20,
            gc: 60,
            padding: 20,
            ..Programs::default()
        };
        assert_eq!(programs.total(), 200);
        assert_eq!(programs.waf_total(400), Some(0.5));
        assert_eq!(programs.waf_gc(), Some(1.5));
        assert_eq!(Programs::default().waf_total(0), None);
        assert_eq!(Programs::default().waf_gc(), None);
    }

    #[test]
    fn spreads() {
        let spread = EraseSpread::of([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(
            spread,
            EraseSpread {
                min: 2,
                mean: 5.0,
                max: 9,
                std: 2.0,
                per_block: vec![(2, 1), (4, 3), (5, 2), (7, 1), (9, 1)],
            }
        );
        assert_eq!(EraseSpread::of([]), EraseSpread::default());
        let busy = Utilization::of(vec![], vec![0.25, 0.75]);
        assert_eq!(
            (busy.channel_mean, busy.die_mean, busy.die_max),
            (None, Some(0.5), Some(0.75))
        );
        let gc = Gc::of(&[0, 1, 0, 2, 0, 1]);
        assert_eq!(gc.valid_per_victim, [(1, 1), (3, 2), (5, 1)]);
        assert_eq!(
            (gc.victims, gc.valid_units_moved, gc.mean_valid_per_victim),
            (4, 12, Some(3.0))
        );
        assert_eq!(Gc::of(&[]).mean_valid_per_victim, None);
    }
}
