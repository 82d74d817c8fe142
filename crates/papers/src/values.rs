//! Value statistics of a workload, by name. Their definitions are in `docs/workloads.md`.

use flashlore_characterize::statistics::index::PopularMisses;
use flashlore_characterize::{CharacterizeError, Characterizer, Options, Statistics};
use flashlore_trace::{TraceReader, UNIT_BYTES, WorkloadOptions, for_each_access};

use crate::error::PaperError;
use crate::figures::FACTOR;

/// Names of the figures; percentages are of page writes, or of page reads where the name says so.
pub const VALUE_FIGURES: [&str; 25] = [
    FACTOR,
    "requests",
    "write_percent",
    "mean_kib",
    "sequential_percent",
    "size_gib",
    "page_writes",
    "distinct",
    "half_values",
    "unique_percent",
    "x50_percent",
    "silent_percent",
    "unique_read_percent",
    "x50_read_percent",
    "depth90",
    "depth90_percent",
    "depth90_all",
    "page_depth90",
    "read_depth90",
    "read_page_depth90",
    "popular_miss_16ki_percent",
    "popular_miss_64ki_percent",
    "popular_miss_128ki_percent",
    "popular_miss_256ki_percent",
    "popular_miss_first_percent",
];

/// Entries of the tables at which misses of popular values are counted.
const MISS_ENTRIES: [f64; 4] = [16384.0, 65536.0, 131_072.0, 262_144.0];

/// Counts the values of what `readers` give, of its first hours if there is a number of them. `scale` is
/// that of the workload: the tables at which misses are counted are scaled with it.
pub fn count(
    readers: Vec<TraceReader>,
    options: &WorkloadOptions,
    scale: f64,
    hours: Option<f64>,
) -> Result<Vec<(&'static str, f64)>, PaperError> {
    let mut characterizer = Characterizer::new(Options {
        index_sizes: MISS_ENTRIES
            .map(|entries| (entries * scale).round().max(1.0) as u64)
            .to_vec(),
        ..Options::default()
    })?;
    let end_ns = hours.map_or(f64::INFINITY, |hours| hours * 3600e9);
    let mut refused: Option<CharacterizeError> = None;
    for_each_access(readers, options, |access| {
        if refused.is_none() && (access.time_ns as f64) < end_ns {
            refused = characterizer.observe(access).err();
        }
        Ok(())
    })?;
    match refused {
        Some(error) => Err(error.into()),
        None => Ok(figures(&characterizer.finish().whole)),
    }
}

type Pairs = Vec<(&'static str, Option<f64>)>;

fn count_of(n: u64) -> Option<f64> {
    Some(n as f64)
}

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

/// The figures that have a meaning.
fn figures(all: &Statistics) -> Vec<(&'static str, f64)> {
    let mut pairs = requests(all);
    pairs.extend(popularity(all));
    pairs.extend(locality(all));
    pairs.extend(misses(all));
    let pairs = pairs.into_iter();
    pairs
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// What is asked of which pages.
fn requests(all: &Statistics) -> Pairs {
    let bytes = all.footprint.pages * UNIT_BYTES;
    let (reads, writes) = (&all.mix.reads, &all.mix.writes);
    let asked = (reads.bytes + writes.bytes) as f64 / 1024.0;
    vec![
        ("requests", count_of(reads.requests + writes.requests)),
        ("write_percent", percent(all.mix.write_share_requests)),
        (
            "mean_kib",
            Some(asked / (reads.requests + writes.requests) as f64),
        ),
        ("sequential_percent", percent(all.sequential.share)),
        ("size_gib", Some(bytes as f64 / f64::from(1 << 30))),
    ]
}

/// How unevenly accesses fall on values.
fn popularity(all: &Statistics) -> Pairs {
    let (writes, reads) = (&all.popularity.writes, &all.popularity.reads);
    let silent = all.kinds.silent as f64 / all.kinds.writes as f64;
    vec![
        ("page_writes", count_of(writes.accesses)),
        ("distinct", count_of(writes.distinct)),
        ("half_values", count_of(writes.half_values)),
        ("unique_percent", percent(writes.unique_share)),
        ("x50_percent", percent(writes.x50)),
        ("silent_percent", percent(Some(silent))),
        ("unique_read_percent", percent(reads.unique_share)),
        ("x50_read_percent", percent(reads.x50)),
    ]
}

/// Depths of LRU lists of values and of pages at which 90 % of the accesses hit: of those that were in
/// the list before, or, `depth90_all`, of all writes.
fn locality(all: &Statistics) -> Pairs {
    let (values, pages) = (&all.value_locality, &all.page_locality);
    let depth = |depth: Option<u64>| depth.map(|depth| depth as f64);
    let depth90 = depth(values.writes.p90);
    let distinct = all.popularity.writes.distinct as f64;
    vec![
        ("depth90", depth90),
        ("depth90_percent", percent(depth90.map(|d| d / distinct))),
        ("depth90_all", depth(values.writes.all_p90)),
        ("page_depth90", depth(pages.writes.p90)),
        ("read_depth90", depth(values.reads.p90)),
        ("read_page_depth90", depth(pages.reads.p90)),
    ]
}

/// Writes of popular values that miss tables of several sizes, their first writes left out; and the
/// share of first writes, which miss in any table.
fn misses(all: &Statistics) -> Pairs {
    let names = [
        "popular_miss_16ki_percent",
        "popular_miss_64ki_percent",
        "popular_miss_128ki_percent",
        "popular_miss_256ki_percent",
    ];
    let again = |p: &PopularMisses| percent(p.miss_share_without_first);
    let popular = &all.index.popular;
    let mut pairs: Pairs = names.into_iter().zip(popular.iter().map(again)).collect();
    let first = popular.first().map(|p| p.first as f64 / p.writes as f64);
    pairs.push(("popular_miss_first_percent", percent(first)));
    pairs
}

#[cfg(test)]
mod tests {
    use flashlore_trace::{ContentModel, ReadOptions};

    use super::*;

    type Found = Vec<(&'static str, f64)>;

    /// Counts accesses of a page each, an hour apart, given as first sector, operation and content, with
    /// tables of 1, 4, 8 and 16 entries.
    fn counted(accesses: &[(u64, char, char)], hours: Option<f64>) -> Found {
        let line = |(time, (sector, op, digest)): (usize, &(u64, char, char))| {
            let digest = digest.to_string().repeat(32);
            let time = time as u64 * 3_600_000_000_000;
            format!("{time} 1 p {sector} 8 {op} 6 0 {digest}\n")
        };
        let text: String = accesses.iter().enumerate().map(line).collect();
        let read = ReadOptions::default();
        let reader = TraceReader::from_bytes("hand.fiu", text.into_bytes(), &read).unwrap();
        let options = WorkloadOptions::new(ContentModel::FromTrace);
        count(vec![reader], &options, 1.0 / 16384.0, hours).unwrap()
    }

    #[test]
    fn a_trace_by_hand() {
        // Pages 0, 1 and 2, contents a to c. The second write is silent, and so is the last, known by a read.
        let accesses = [
            (0, 'W', 'a'),
            (0, 'W', 'a'),
            (8, 'W', 'b'),
            (8, 'W', 'a'),
            (8, 'W', 'c'),
            (16, 'R', 'a'),
            (8, 'R', 'c'),
            (0, 'R', 'a'),
            (16, 'R', 'a'),
            (16, 'W', 'a'),
        ];
        let figures = counted(&accesses, None);
        let wanted = [
            ("requests", 10.0),
            ("write_percent", 60.0),
            ("mean_kib", 4.0),
            // The first write of page 1 and the first read of page 2 go on where the one before ended.
            ("sequential_percent", 20.0),
            ("size_gib", 3.0 / 262_144.0),
            ("page_writes", 6.0),
            ("distinct", 3.0),
            ("half_values", 1.0),
            ("unique_percent", 50.0),
            ("x50_percent", 100.0 / 3.0),
            ("silent_percent", 200.0 / 6.0),
            ("unique_read_percent", 50.0),
            ("x50_read_percent", 50.0),
            // Depths of the repeated writes of a: 1, 2, 2.
            ("depth90", 2.0),
            ("depth90_percent", 200.0 / 3.0),
            ("page_depth90", 1.0),
            ("read_depth90", 2.0),
            ("read_page_depth90", 3.0),
            // A table of one entry misses two of them, one of four none.
            ("popular_miss_16ki_percent", 200.0 / 3.0),
            ("popular_miss_64ki_percent", 0.0),
            ("popular_miss_128ki_percent", 0.0),
            ("popular_miss_256ki_percent", 0.0),
            ("popular_miss_first_percent", 25.0),
        ];
        assert_eq!(figures.len(), wanted.len());
        for ((name, value), got) in wanted.into_iter().zip(figures) {
            assert_eq!(got.0, name);
            assert!((got.1 - value).abs() < 1e-9, "{got:?} instead of {value}");
        }
        // Half of the writes are first ones: 90 % of them hit at no depth.
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        let left = VALUE_FIGURES.into_iter().filter(|n| !names.contains(n));
        // Its factor is told by its group.
        assert_eq!(left.collect::<Vec<_>>(), [FACTOR, "depth90_all"]);
        // Accesses at 0, 1 and 2 hours.
        let early = counted(&accesses, Some(3.0));
        assert_eq!(early[0], ("requests", 3.0));
    }

    #[test]
    fn first_writes_count_among_all() {
        // One first write, eight at depth 1 and one at depth 2 after another first one.
        let mut accesses = vec![(0, 'W', 'a'); 10];
        accesses.extend([(8, 'W', 'b'), (0, 'W', 'a')]);
        let get = |figures: &[(&str, f64)], name| {
            let found = figures.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| *value)
        };
        let few = counted(&accesses, None);
        assert_eq!(get(&few, "depth90"), Some(1.0));
        assert_eq!(get(&few, "depth90_all"), None);
        accesses.extend(vec![(0, 'W', 'a'); 8]);
        // 18 of 20 writes hit: 17 at depth 1, and one at depth 2 that is needed for 90 %.
        let more = counted(&accesses, None);
        assert_eq!(get(&more, "depth90"), Some(1.0));
        assert_eq!(get(&more, "depth90_all"), Some(2.0));
    }
}
