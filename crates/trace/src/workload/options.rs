//! What the caller decides about a workload.

use serde::{Deserialize, Serialize};

use crate::overlay::{ContentModel, DeltaModel};
use crate::reader::ReadOptions;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadOptions {
    pub read: ReadOptions,
    pub join: Join,
    /// Names of the devices to keep (as [`crate::DeviceNames::name`] writes them); all when empty.
    pub devices: Vec<String>,
    /// Number the touched units from 0 without holes, keeping their order.
    pub compact: bool,
    pub content: ContentModel,
    /// Where the delta ratio R_c of page writes comes from; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<DeltaModel>,
}

impl WorkloadOptions {
    /// Strict reading, traces one after another, every device, addresses as they are, no
    /// delta ratios.
    pub fn new(content: ContentModel) -> Self {
        WorkloadOptions {
            read: ReadOptions::default(),
            join: Join::Sequence,
            devices: Vec::new(),
            compact: false,
            content,
            delta: None,
        }
    }
}
