//! Value statistics of a workload, counted directly.
//!
//! Definitions (docs/workloads.md has the same): *popular* values are the fewest that make half of
//! the page writes; the *depth* of a write is its value's place in the list of values ordered by
//! their last write, 1 for the value written last; a first write has none; a write is *silent* when
//! its page holds that value, known by a write or a read.

use flashlore_trace::{Op, RequestBlock, RequestSource};

/// Names of the figures.
pub const VALUE_FIGURES: [&str; 10] = [
    "page_writes",
    "distinct",
    "half_values",
    "unique_percent",
    "x50_percent",
    "silent_percent",
    "depth90",
    "depth90_percent",
    "popular_miss_percent",
    "popular_first_percent",
];

/// Entries of the list at which misses of popular values are counted.
const MISS_ENTRIES: u32 = 64 * 1024;

/// A page whose content is not known.
const UNKNOWN: u32 = u32::MAX;

/// Counts the values of a workload's page writes. `scale` is that of the workload: the list at which
/// misses are counted is scaled with it.
///
/// # Errors
/// When the workload cannot be read.
pub fn count(
    source: &mut dyn RequestSource,
    scale: f64,
) -> flashlore_trace::Result<Vec<(&'static str, f64)>> {
    let (writes, silent) = writes(source)?;
    let popularity = Popularity::of(&writes);
    let depths = depths(&writes);
    let entries = (f64::from(MISS_ENTRIES) * scale).round() as u32;
    let total = writes.len() as f64;
    let distinct = popularity.distinct as f64;
    let percent = |part: f64, whole: f64| 100.0 * part / whole;
    let mut again: Vec<u32> = depths.iter().copied().filter(|d| *d > 0).collect();
    again.sort_unstable();
    let rank = (again.len() as f64 * 0.9).ceil() as usize;
    let depth90 = again.get(rank.saturating_sub(1)).copied();
    let (mut popular, mut missed, mut first) = (0u64, 0u64, 0u64);
    for (&value, &depth) in writes.iter().zip(&depths) {
        if popularity.popular[value as usize] {
            popular += 1;
            missed += u64::from(depth > entries);
            first += u64::from(depth == 0);
        }
    }
    let depth90 = depth90.map_or(f64::NAN, f64::from);
    let values = [
        total,
        distinct,
        popularity.half as f64,
        percent(distinct, total),
        percent(popularity.half as f64, distinct),
        percent(silent as f64, total),
        depth90,
        percent(depth90, distinct),
        percent(missed as f64, (popular - first) as f64),
        percent(first as f64, popular as f64),
    ];
    Ok(VALUE_FIGURES.into_iter().zip(values).collect())
}

/// The values of all page writes in order, and how many were silent.
fn writes(source: &mut dyn RequestSource) -> flashlore_trace::Result<(Vec<u32>, u64)> {
    let mut held = vec![UNKNOWN; source.summary().lpn_count as usize];
    let mut written = Vec::new();
    let mut silent = 0;
    let mut block = RequestBlock::default();
    source.rewind()?;
    while source.next_block(&mut block)? {
        for request in &block.requests {
            let Some(values) = block.content(request) else {
                continue;
            };
            let first = request.lpn as usize;
            let pages = &mut held[first..first + request.units as usize];
            for (page, &value) in pages.iter_mut().zip(values) {
                if request.op == Op::Write {
                    silent += u64::from(*page == value);
                    written.push(value);
                }
                *page = value;
            }
        }
    }
    Ok((written, silent))
}

/// How often values occur.
struct Popularity {
    distinct: u64,
    /// The fewest values that make half of the writes.
    half: u64,
    /// Which they are.
    popular: Vec<bool>,
}

impl Popularity {
    fn of(writes: &[u32]) -> Self {
        let values = writes.iter().max().map_or(0, |max| *max as usize + 1);
        let mut counts: Vec<(u32, u32)> = (0..values as u32).map(|value| (0, value)).collect();
        for &value in writes {
            counts[value as usize].0 += 1;
        }
        counts.retain(|(count, _)| *count > 0);
        // Ties go to the value that came first.
        counts.sort_unstable_by_key(|&(count, value)| (std::cmp::Reverse(count), value));
        let mut popular = vec![false; values];
        let (mut covered, mut half) = (0, 0);
        for &(count, value) in &counts {
            if 2 * covered >= writes.len() as u64 {
                break;
            }
            covered += u64::from(count);
            half += 1;
            popular[value as usize] = true;
        }
        Popularity {
            distinct: counts.len() as u64,
            half,
            popular,
        }
    }
}

/// The depth of each write, 0 for a first one: the writes that are the last of their value so far
/// are marked in a Fenwick tree over their places.
fn depths(writes: &[u32]) -> Vec<u32> {
    let values = writes.iter().max().map_or(0, |max| *max as usize + 1);
    let mut last = vec![0usize; values];
    let mut tree = Fenwick(vec![0; writes.len() + 1]);
    let mut marked = 0;
    let mut depths = Vec::with_capacity(writes.len());
    for (place, &value) in (1..).zip(writes) {
        let before = std::mem::replace(&mut last[value as usize], place);
        depths.push(match before {
            0 => 0,
            _ => marked - tree.up_to(before) + 1,
        });
        if before > 0 {
            tree.add(before, u32::MAX);
            marked -= 1;
        }
        tree.add(place, 1);
        marked += 1;
    }
    depths
}

/// Sums of prefixes, modulo 2^32.
struct Fenwick(Vec<u32>);

impl Fenwick {
    fn add(&mut self, mut place: usize, amount: u32) {
        while let Some(sum) = self.0.get_mut(place) {
            *sum = sum.wrapping_add(amount);
            place += place & place.wrapping_neg();
        }
    }

    fn up_to(&self, mut place: usize) -> u32 {
        let mut sum = 0u32;
        while place > 0 {
            sum = sum.wrapping_add(self.0[place]);
            place &= place - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use flashlore_trace::{ReadOptions, TraceReader, Workload, WorkloadOptions};

    use super::*;

    #[test]
    fn depths_are_places_in_the_list_of_last_writes() {
        // By hand: values a b a c b b, the list after each write in brackets.
        // a [a], b [b a], a was 2nd [a b], c [c a b], b was 3rd [b c a], b was 1st.
        assert_eq!(depths(&[0, 1, 0, 2, 1, 1]), [0, 0, 2, 0, 3, 1]);
        let mut list: Vec<u32> = Vec::new();
        let writes: Vec<u32> = (0..2000u32).map(|i| i.wrapping_mul(i) % 97).collect();
        let naive = writes.iter().map(|value| {
            let place = list.iter().position(|held| held == value);
            if let Some(place) = place {
                list.remove(place);
            }
            list.insert(0, *value);
            place.map_or(0, |place| place as u32 + 1)
        });
        let naive: Vec<u32> = naive.collect();
        assert_eq!(depths(&writes), naive);
    }

    #[test]
    fn a_trace_by_hand() {
        // Pages 0 and 1; contents A to C by digest. Writes A A B A C A; the second is silent, and so
        // is the last, known by a read.
        let lines: Vec<String> = [
            ("0", 'W', 'a'),
            ("0", 'W', 'a'),
            ("8", 'W', 'b'),
            ("8", 'W', 'a'),
            ("8", 'W', 'c'),
            ("16", 'R', 'a'),
            ("16", 'W', 'a'),
        ]
        .iter()
        .enumerate()
        .map(|(time, (sector, op, digest))| {
            let digest = digest.to_string().repeat(32);
            format!("{time} 1 p {sector} 8 {op} 6 0 {digest}\n")
        })
        .collect();
        let reader = TraceReader::from_bytes(
            "hand.fiu",
            lines.concat().into_bytes(),
            &ReadOptions::default(),
        );
        let options = WorkloadOptions::new(flashlore_trace::ContentModel::FromTrace);
        let mut workload = Workload::from_readers(vec![reader.unwrap()], &options).unwrap();
        let figures = count(&mut workload, 2.0 / 65536.0).unwrap();
        let get = |name: &str| figures.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(get("page_writes"), 6.0);
        assert_eq!(get("distinct"), 3.0);
        assert_eq!(get("half_values"), 1.0);
        assert_eq!(get("unique_percent"), 50.0);
        assert!((get("silent_percent") - 200.0 / 6.0).abs() < 1e-9);
        // Depths of the re-references of A: 1, 2, 2.
        assert_eq!(get("depth90"), 2.0);
        // A list of two entries misses none of them.
        assert_eq!(get("popular_miss_percent"), 0.0);
        assert_eq!(get("popular_first_percent"), 25.0);
    }
}
