//! Accesses for the tests: those of the captures, as the oracle and as the characteriser take them.

use std::path::{Path, PathBuf};

use flashlore_oracle::locality as oracle;
use flashlore_trace::{
    Access, ContentModel, Op, ReadOptions, TraceReader, WorkloadOptions, for_each_access,
};

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
    flashlore_testkit::data(&format!("captures/{name}"))
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
            Op::Read => oracle::AccessOp::Read,
            Op::Write => oracle::AccessOp::Write,
            Op::Trim => oracle::AccessOp::Trim,
            Op::Flush => oracle::AccessOp::Flush,
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
            oracle::AccessOp::Read => Op::Read,
            oracle::AccessOp::Write => Op::Write,
            oracle::AccessOp::Trim => Op::Trim,
            oracle::AccessOp::Flush => Op::Flush,
        },
        device: access.device,
        offset: access.offset,
        length: access.length,
        unit: access.unit,
        units: access.units,
        values: access.values.as_deref(),
        delta_ratios: None,
    }
}
