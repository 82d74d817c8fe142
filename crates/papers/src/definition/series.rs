//! Workloads: series of them as a definition has them, and each by itself with what runs on it.

use serde::{Deserialize, Serialize};

use super::VALUES;
use crate::original::Original;

/// Workloads that differ in their profile, in the content laid over it or in their capture, or one of given
/// requests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name of each: `{profile}`, `{capture}`, `{a}` and `{n}` stand for profile, capture, exponent and number
    /// of values.
    pub id: String,
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Captures instead of profiles: a file `NAME.fiu.xz`, and `NAME.pages.zst` if a system encodes the bytes
    /// of pages. They are not scaled.
    #[serde(default)]
    pub captures: Vec<String>,
    /// Requests in the format SPC instead of a profile, all of different content. They are not scaled.
    #[serde(default)]
    pub requests: String,
    /// Content drawn from a zipf distribution instead of the profile's own.
    pub zipf: Option<Zipf>,
    /// Factor on the workload, the device and the index, unless a smaller one is asked for.
    #[serde(default = "one")]
    pub scale: f64,
    /// Device preset of the runs.
    #[serde(default)]
    pub device: String,
    /// `KEY=VALUE` texts for device and host.
    #[serde(default)]
    pub set: Vec<String>,
    #[serde(default)]
    pub systems: Vec<String>,
    /// Whether the values are counted.
    #[serde(default)]
    pub values: bool,
    /// Only values of so many first hours are counted; nothing runs.
    pub hours: Option<f64>,
    /// Compare the past of runs with history at so many instants with what was written.
    #[serde(default)]
    pub recovery_check: Option<u32>,
}

fn one() -> f64 {
    1.0
}

/// Independent draws from rank k with a probability proportional to k^-a; a = 0 means that all
/// values are distinct.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zipf {
    /// Exponents: one workload for each.
    pub exponents: Vec<f64>,
    /// Numbers of ranks, over the page writes: one workload for each.
    #[serde(default = "as_many_values_as_writes")]
    pub values: Vec<f64>,
}

fn as_many_values_as_writes() -> Vec<f64> {
    vec![1.0]
}

/// One workload with what runs on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    pub id: String,
    pub requests: Requests,
    /// Exponent and number of values over page writes, when content is laid over the profile.
    pub zipf: Option<(f64, f64)>,
    /// As [`Series::scale`].
    pub scale: f64,
    pub device: String,
    pub set: Vec<String>,
    pub systems: Vec<String>,
    pub values: bool,
    /// As [`Series::hours`].
    pub hours: Option<f64>,
    /// As [`Series::recovery_check`].
    pub recovery_check: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requests {
    Profile(String),
    Capture(String),
    /// Given ones, in the format SPC.
    Given(String),
    /// The trace that a profile stands for, as the user has it.
    Original(Original),
}

impl Series {
    pub(super) fn workloads(&self) -> Vec<Workload> {
        let contents: Vec<Option<(f64, f64)>> = match &self.zipf {
            None => vec![None],
            Some(zipf) => {
                let pairs = |a: &f64| {
                    zipf.values
                        .iter()
                        .map(|n| Some((*a, *n)))
                        .collect::<Vec<_>>()
                };
                zipf.exponents.iter().flat_map(pairs).collect()
            }
        };
        let each = |requests: Requests| {
            let name = match &requests {
                Requests::Profile(name) | Requests::Capture(name) => name,
                Requests::Given(_) | Requests::Original(_) => "",
            };
            let one = |zipf: &Option<(f64, f64)>| {
                let (a, n) = zipf.unwrap_or_default();
                Workload {
                    id: self
                        .id
                        .replace("{profile}", name)
                        .replace("{capture}", name)
                        .replace("{a}", &a.to_string())
                        .replace("{n}", &n.to_string()),
                    requests: requests.clone(),
                    zipf: *zipf,
                    scale: self.scale,
                    device: self.device.clone(),
                    set: self.set.clone(),
                    systems: self.systems.clone(),
                    values: self.values,
                    hours: self.hours,
                    recovery_check: self.recovery_check,
                }
            };
            contents.iter().map(one).collect::<Vec<_>>()
        };
        if self.profiles.is_empty() && self.captures.is_empty() {
            return each(Requests::Given(self.requests.clone()));
        }
        let profiles = self.profiles.iter().cloned().map(Requests::Profile);
        let captures = self.captures.iter().cloned().map(Requests::Capture);
        profiles.chain(captures).flat_map(each).collect()
    }
}

impl Workload {
    /// The name of its run on a system, or of the count of its values.
    pub fn run(&self, system: &str) -> String {
        format!("{}/{system}", self.id)
    }

    /// Whether it is the trace that a paper used.
    pub fn is_original(&self) -> bool {
        matches!(self.requests, Requests::Original(_))
    }

    pub(super) fn runs(&self) -> Vec<String> {
        let mut runs: Vec<String> = self.systems.iter().map(|s| self.run(s)).collect();
        if self.values {
            runs.push(self.run(VALUES));
        }
        runs
    }
}
