//! What the caller decides about a workload.

use serde::{Deserialize, Serialize};

use crate::reader::ReadOptions;

/// Where the content of the pages comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentModel {
    /// The trace's own value ids; none where it has none.
    FromTrace,
    /// Every page written gets a value id of its own, counted from 0 in order of writing, also when
    /// the trace tells its content; reads and the prefill carry none.
    Distinct,
}

/// How several traces become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// One after another: each begins when the one before ended.
    Sequence,
    /// Side by side: their own clocks are one clock, and records are merged by time; at the same
    /// time the trace named first goes first.
    Timeline,
}

/// How traces become a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadOptions {
    /// How each trace is read.
    pub read: ReadOptions,
    /// How several traces become one.
    pub join: Join,
    /// Names of the devices to keep (as [`crate::DeviceNames::name`] writes them); all when empty.
    pub devices: Vec<String>,
    /// Number the touched units from 0 without holes, keeping their order.
    pub compact: bool,
    /// Where the content comes from.
    pub content: ContentModel,
}

impl WorkloadOptions {
    /// Strict reading, traces one after another, every device, addresses as they are.
    pub fn new(content: ContentModel) -> Self {
        WorkloadOptions {
            read: ReadOptions::default(),
            join: Join::Sequence,
            devices: Vec::new(),
            compact: false,
            content,
        }
    }
}
