//! Accesses for the tests: random ones, and those of the captures.

use std::path::{Path, PathBuf};

use flashlore_oracle::locality as oracle;
use flashlore_trace::{
    Access, ContentModel, Op, ReadOptions, TraceReader, WorkloadOptions, for_each_access,
};
use proptest::prelude::*;

/// The captures with content ids.
pub const CAPTURES: [&str; 5] = [
    "sqlite-tpcb.fiu.xz",
    "sqlite-bytes.fiu.xz",
    "maildir.fiu.xz",
    "django-upgrade.fiu.xz",
    "upgrade-bytes.fiu.xz",
];

/// The file of a capture, if the captures are there.
pub fn capture(name: &str) -> Option<PathBuf> {
    let data = std::env::var_os("FLASHLORE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = data.join("captures").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no {}", path.display());
    None
}

/// The accesses of a capture from number `first` on, at most `count`; times count from the first.
pub fn accesses(path: &Path, first: usize, count: usize) -> Vec<oracle::Access> {
    let reader = TraceReader::open(path, &ReadOptions::default()).unwrap();
    let options = WorkloadOptions::new(ContentModel::FromTrace);
    let mut all = Vec::new();
    let mut number = 0;
    for_each_access(vec![reader], &options, |access| {
        if (first..first.saturating_add(count)).contains(&number) {
            all.push(to_oracle(access));
        }
        number += 1;
        Ok(())
    })
    .unwrap();
    let begin = all
        .first()
        .map_or(0, |access: &oracle::Access| access.time_ns);
    all.iter_mut().for_each(|access| access.time_ns -= begin);
    all
}

/// As the oracle has it.
fn to_oracle(access: &Access<'_>) -> oracle::Access {
    oracle::Access {
        time_ns: access.time_ns,
        op: match access.op {
            Op::Read => oracle::Op::Read,
            Op::Write => oracle::Op::Write,
            Op::Trim => oracle::Op::Trim,
            Op::Flush => oracle::Op::Flush,
        },
        device: access.device,
        offset: access.offset,
        length: access.length,
        unit: access.unit,
        units: access.units,
        values: access.values.map(<[u32]>::to_vec),
    }
}

/// As the characteriser takes it.
pub fn from_oracle(access: &oracle::Access) -> Access<'_> {
    Access {
        time_ns: access.time_ns,
        op: match access.op {
            oracle::Op::Read => Op::Read,
            oracle::Op::Write => Op::Write,
            oracle::Op::Trim => Op::Trim,
            oracle::Op::Flush => Op::Flush,
        },
        device: access.device,
        offset: access.offset,
        length: access.length,
        unit: access.unit,
        units: access.units,
        values: access.values.as_deref(),
    }
}

/// One access of a random trace, before its place in time and space is known.
#[derive(Debug, Clone)]
pub struct Step {
    kind: u8,
    gap_ns: u64,
    device: u32,
    goes_on: bool,
    unit: u64,
    units: u32,
    bytes: u64,
    has_values: bool,
    values: Vec<u32>,
}

/// Random steps: reads, writes, trims and flushes on few pages of three devices, often with content.
pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let gap_ns = prop_oneof![
        3 => Just(0),
        5 => 1_u64..5_000_000,
        2 => 50_000_000_u64..400_000_000,
        1 => 1_000_000_000_u64..90_000_000_000,
    ];
    // Values of the trace count up, merged ones down from the top.
    let value = prop_oneof![6 => 0_u32..12, 3 => 0_u32..80, 1 => u32::MAX - 9..u32::MAX];
    let place = (
        0_u32..3,
        prop::bool::weighted(0.3),
        0_u64..30,
        1_u32..5,
        0_u64..4096,
    );
    let content = (prop::bool::weighted(0.85), prop::collection::vec(value, 4));
    let step = (0_u8..20, gap_ns, place, content);
    let step = step.prop_map(|(kind, gap_ns, place, (has_values, values))| Step {
        kind,
        gap_ns,
        device: place.0,
        goes_on: place.1,
        unit: place.2,
        units: place.3,
        bytes: place.4,
        has_values,
        values,
    });
    prop::collection::vec(step, 0..most)
}

/// The trace that steps make.
pub fn trace(steps: Vec<Step>) -> Vec<oracle::Access> {
    let (mut time_ns, mut ends) = (0, [0; 3]);
    let mut first = true;
    let make = |step: Step| {
        time_ns += if first { 0 } else { step.gap_ns };
        first = false;
        let op = match step.kind {
            0..11 => oracle::Op::Write,
            11..17 => oracle::Op::Read,
            17..19 => oracle::Op::Trim,
            _ => oracle::Op::Flush,
        };
        let end = &mut ends[step.device as usize];
        let unit = if step.goes_on { *end } else { step.unit };
        // The last unit is often touched in part.
        let bytes = match step.bytes % 3 {
            0 => u64::from(step.units - 1) * 4096 + step.bytes + 1,
            _ => u64::from(step.units) * 4096,
        };
        let is_flush = op == oracle::Op::Flush;
        let transfers = matches!(op, oracle::Op::Read | oracle::Op::Write);
        if transfers {
            *end = unit + u64::from(step.units);
        }
        oracle::Access {
            time_ns,
            op,
            device: step.device,
            offset: if is_flush { 0 } else { unit * 4096 },
            length: if is_flush { 0 } else { bytes },
            unit: if is_flush { 0 } else { unit },
            units: if is_flush { 0 } else { step.units },
            values: (transfers && step.has_values)
                .then(|| step.values[..step.units as usize].to_vec()),
        }
    };
    steps.into_iter().map(make).collect()
}
