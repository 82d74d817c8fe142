//! Means and confidence intervals over runs that differ in their seed alone.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::record::RunResult;

/// A mean and how far from it the true one may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean of the values.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); absent for a single value.
    pub ci95: Option<f64>,
}

/// What several seeds of one configuration give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedSummary {
    /// Name of the system.
    pub system: String,
    /// Name of the device.
    pub device: String,
    /// Name of the trace.
    pub trace: String,
    /// Hash of the configuration.
    pub config_hash: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The record with `{"mean", "ci95"}` for every number of it; see [`summarize`].
    pub estimates: Value,
}

/// The two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.706_204_736,
    4.302_652_730,
    3.182_446_305,
    2.776_445_105,
    2.570_581_836,
    2.446_911_851,
    2.364_624_252,
    2.306_004_135,
    2.262_157_163,
    2.228_138_852,
    2.200_985_160,
    2.178_812_830,
    2.160_368_656,
    2.144_786_688,
    2.131_449_546,
    2.119_905_299,
    2.109_815_578,
    2.100_922_040,
    2.093_024_054,
    2.085_963_447,
    2.079_613_845,
    2.073_873_068,
    2.068_657_610,
    2.063_898_562,
    2.059_538_553,
    2.055_529_439,
    2.051_830_516,
    2.048_407_142,
    2.045_229_642,
    2.042_272_456,
];

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The two-sided 95 % quantile of Student's t for `freedom` degrees of freedom, at least 1.
fn t95(freedom: usize) -> f64 {
    if let Some(t) = T95.get(freedom - 1) {
        return *t;
    }
    // Cornish-Fisher expansion: beyond 30 degrees its error is below 1e-6.
    let n = freedom as f64;
    let (z3, z5, z7) = (Z.powi(3), Z.powi(5), Z.powi(7));
    Z + (z3 + Z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * n * n * n)
}

/// Mean and interval of `values`; nothing if there are none.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let ci95 = (values.len() > 1).then(|| {
        let variance = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / (n - 1.0);
        t95(values.len() - 1) * (variance / n).sqrt()
    });
    Some(Estimate { mean, ci95 })
}

/// Trees of the same structure as one tree with `{"mean", "ci95"}` in place of each number.
///
/// Lists are joined item by item when they are equally long. What is not a number is kept where all
/// trees agree; where they differ, or where a number is missing from some, stands `null`.
pub fn summarize(trees: &[Value]) -> Value {
    let Some(first) = trees.first() else {
        return Value::Null;
    };
    let numbers: Vec<f64> = trees.iter().filter_map(Value::as_f64).collect();
    match first {
        Value::Number(_) if numbers.len() == trees.len() => {
            serde_json::to_value(estimate(&numbers)).unwrap_or(Value::Null)
        }
        Value::Object(map) => {
            let below = |key: &String| {
                let values: Vec<Value> = trees
                    .iter()
                    .map(|tree| tree.get(key).cloned().unwrap_or(Value::Null))
                    .collect();
                (key.clone(), summarize(&values))
            };
            Value::Object(map.keys().map(below).collect::<Map<_, _>>())
        }
        Value::Array(items)
            if trees
                .iter()
                .all(|tree| tree.as_array().map(Vec::len) == Some(items.len())) =>
        {
            let below = |at: usize| {
                summarize(
                    &trees
                        .iter()
                        .map(|tree| tree[at].clone())
                        .collect::<Vec<_>>(),
                )
            };
            (0..items.len()).map(below).collect()
        }
        other if trees.iter().all(|tree| tree == other) => other.clone(),
        _ => Value::Null,
    }
}

/// One summary for each configuration and trace that ran with several seeds, in order of its first
/// run.
pub fn seed_summaries(runs: &[RunResult]) -> Vec<SeedSummary> {
    let groups = group_by_configuration(runs);
    groups
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| summary(&group))
        .collect()
}

/// Runs that differ in their seed alone, in order of the first of each group.
pub(super) fn group_by_configuration(runs: &[RunResult]) -> Vec<Vec<&RunResult>> {
    fn key(run: &RunResult) -> impl PartialEq + '_ {
        (
            &run.config_hash,
            &run.system,
            &run.device,
            workload_key(run),
        )
    }
    let mut groups: Vec<Vec<&RunResult>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| key(group[0]) == key(run)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

/// What tells the workloads of two runs apart.
pub(super) fn workload_key(run: &RunResult) -> (&str, String) {
    (&run.trace, run.workload_id())
}

fn summary(group: &[&RunResult]) -> SeedSummary {
    // Distributions are lists of pairs of different lengths, the rest says what is the same.
    const DISTRIBUTIONS: [(&str, &str); 2] = [("gc", "valid_per_victim"), ("erases", "per_block")];
    const LEFT_OUT: [&str; 6] = [
        "configuration",
        "drawn_from",
        "seed",
        "trace_files",
        "version",
        "workload",
    ];
    let tree = |run: &&RunResult| {
        let mut tree = serde_json::to_value(run).unwrap_or(Value::Null);
        if let Value::Object(map) = &mut tree {
            map.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
        }
        for (group, list) in DISTRIBUTIONS {
            if let Some(Value::Object(fields)) = tree.get_mut(group) {
                fields.remove(list);
            }
        }
        tree
    };
    let first = group[0];
    SeedSummary {
        system: first.system.clone(),
        device: first.device.clone(),
        trace: first.trace.clone(),
        config_hash: first.config_hash.clone(),
        seeds: group.iter().map(|run| run.seed).collect(),
        estimates: summarize(&group.iter().map(tree).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn intervals_of_student() {
        // Mean 3, variance 2.5, so the half width is 2.7764 sqrt(2.5 / 5).
        let found = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(found.mean, 3.0);
        assert!((found.ci95.unwrap() - 2.776_445 * 0.5_f64.sqrt()).abs() < 1e-5);
        assert_eq!(
            estimate(&[7.0]),
            Some(Estimate {
                mean: 7.0,
                ci95: None
            })
        );
        assert_eq!(estimate(&[]), None);
        // Published table values beyond 30 degrees of freedom, and continuity at 30.
        for (freedom, t) in [
            (31, 2.039_513),
            (40, 2.021_075),
            (60, 2.000_298),
            (120, 1.979_930),
        ] {
            assert!(
                (t95(freedom) - t).abs() < 2e-6,
                "{freedom}: {}",
                t95(freedom)
            );
        }
        assert!((1..200).all(|freedom| t95(freedom) > t95(freedom + 1)));
    }

    #[test]
    fn trees_are_joined_leaf_by_leaf() {
        let trees = [
            json!({"a": 1, "b": {"c": 2.0, "d": null}, "name": "x", "list": [1, 3], "odd": [1], "some": 4}),
            json!({"a": 3, "b": {"c": 2.0, "d": null}, "name": "x", "list": [3, 3], "odd": [], "some": null}),
        ];
        let joined = summarize(&trees);
        assert_eq!(joined["a"]["mean"], 2.0);
        assert!((joined["a"]["ci95"].as_f64().unwrap() - 12.706_204_736).abs() < 1e-6);
        assert_eq!(
            joined["b"],
            json!({"c": {"mean": 2.0, "ci95": 0.0}, "d": null})
        );
        assert_eq!(joined["name"], "x");
        assert_eq!(joined["list"][1]["ci95"], 0.0);
        assert_eq!(
            (&joined["odd"], &joined["some"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(summarize(&[json!("x"), json!("y")]), Value::Null);
    }
}
