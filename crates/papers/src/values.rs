//! Value statistics of a workload, by name. Their definitions are in `docs/workloads.md`.

use flashlore_characterize::{CharacterizeError, Characterizer, Options, Statistics};
use flashlore_trace::{TraceReader, WorkloadOptions, for_each_access};

use crate::error::PaperError;

/// Names of the figures, percentages of page writes unless they are numbers.
pub const VALUE_FIGURES: [&str; 9] = [
    "page_writes",
    "distinct",
    "half_values",
    "unique_percent",
    "x50_percent",
    "silent_percent",
    "depth90",
    "depth90_percent",
    "popular_miss_percent",
];

/// Entries of the table at which misses of popular values are counted.
const MISS_ENTRIES: f64 = 65536.0;

/// Counts the values of what `readers` give. `scale` is that of the workload: the table at which
/// misses are counted is scaled with it.
pub fn count(
    readers: Vec<TraceReader>,
    options: &WorkloadOptions,
    scale: f64,
) -> Result<Vec<(&'static str, f64)>, PaperError> {
    let mut characterizer = Characterizer::new(Options {
        index_sizes: vec![(MISS_ENTRIES * scale).round().max(1.0) as u64],
        ..Options::default()
    })?;
    let mut refused: Option<CharacterizeError> = None;
    for_each_access(readers, options, |access| {
        if refused.is_none() {
            refused = characterizer.observe(access).err();
        }
        Ok(())
    })?;
    match refused {
        Some(error) => Err(error.into()),
        None => Ok(figures(&characterizer.finish().whole)),
    }
}

/// The figures that have a meaning.
fn figures(all: &Statistics) -> Vec<(&'static str, f64)> {
    let writes = &all.popularity.writes;
    let depth90 = all.value_locality.writes.p90.map(|depth| depth as f64);
    let popular = all.index.popular.first();
    let percent = |share: f64| 100.0 * share;
    let values = [
        Some(writes.accesses as f64),
        Some(writes.distinct as f64),
        Some(writes.half_values as f64),
        writes.unique_share.map(percent),
        writes.x50.map(percent),
        Some(percent(all.kinds.silent as f64 / all.kinds.writes as f64)),
        depth90,
        depth90.map(|depth| percent(depth / writes.distinct as f64)),
        popular
            .and_then(|p| p.miss_share_without_first)
            .map(percent),
    ];
    let pairs = VALUE_FIGURES.into_iter().zip(values);
    pairs
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use flashlore_trace::{ContentModel, ReadOptions};

    use super::*;

    #[test]
    fn a_trace_by_hand() {
        // Pages 0, 1 and 2, contents a to c. Writes a a b a c a; the second is silent, and so is the
        // last, known by a read.
        let accesses = [
            (0, 'W', 'a'),
            (0, 'W', 'a'),
            (8, 'W', 'b'),
            (8, 'W', 'a'),
            (8, 'W', 'c'),
            (16, 'R', 'a'),
            (16, 'W', 'a'),
        ];
        let line = |(time, (sector, op, digest)): (usize, &(u64, char, char))| {
            let digest = digest.to_string().repeat(32);
            format!("{time} 1 p {sector} 8 {op} 6 0 {digest}\n")
        };
        let text: String = accesses.iter().enumerate().map(line).collect();
        let read = ReadOptions::default();
        let reader = TraceReader::from_bytes("hand.fiu", text.into_bytes(), &read).unwrap();
        let options = WorkloadOptions::new(ContentModel::FromTrace);
        let figures = count(vec![reader], &options, 1.0 / 65536.0).unwrap();
        let get = |name: &str| figures.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(get("page_writes"), 6.0);
        assert_eq!(get("distinct"), 3.0);
        assert_eq!(get("half_values"), 1.0);
        assert_eq!(get("unique_percent"), 50.0);
        assert!((get("x50_percent") - 100.0 / 3.0).abs() < 1e-9);
        assert!((get("silent_percent") - 200.0 / 6.0).abs() < 1e-9);
        // Depths of the repeated writes of a: 1, 2, 2. A table of one entry misses two of them.
        assert_eq!(get("depth90"), 2.0);
        assert!((get("depth90_percent") - 200.0 / 3.0).abs() < 1e-9);
        assert!((get("popular_miss_percent") - 200.0 / 3.0).abs() < 1e-9);
    }
}
