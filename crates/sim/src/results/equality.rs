//! Whether two records tell of the same run: what `flashlore rerun` verifies.

use std::fmt;

use serde_json::Value;

use super::record::RunResult;

/// A field in which two records differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its path, with dots.
    pub path: String,
    /// Its value in the first record; `null` if absent.
    pub left: Value,
    /// Its value in the second.
    pub right: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} against {}", self.path, self.left, self.right)
    }
}

/// Fields that depend on the machine, or say only which program and which path it was.
const IGNORED: [&str; 5] = [
    "run.wall_s",
    "run.requests_per_s",
    "run.peak_rss_bytes",
    "version",
    "trace_files.path",
];

/// The first `limit` fields in which the records differ, in order of their names; none if both tell
/// of the same run. Real time, memory, the version and the paths of the trace files do not count.
pub fn differences(left: &RunResult, right: &RunResult, limit: usize) -> Vec<Difference> {
    let tree = |run: &RunResult| serde_json::to_value(run).unwrap_or(Value::Null);
    let mut found = Vec::new();
    compare("", "", &tree(left), &tree(right), &mut found);
    found.truncate(limit);
    found
}

/// `path` names a value with its places in lists, `name` without.
fn compare(path: &str, name: &str, left: &Value, right: &Value, found: &mut Vec<Difference>) {
    let join = |path: &str, key: &str| {
        if path.is_empty() {
            key.to_string()
        } else {
            format!("{path}.{key}")
        }
    };
    match (left, right) {
        _ if left == right || IGNORED.contains(&name) => {}
        // Older versions did not say it.
        (Value::Null, _) if name == "arrivals" => {}
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a
                .keys()
                .chain(b.keys().filter(|key| !a.contains_key(*key)))
                .collect();
            keys.sort();
            for key in keys {
                let side = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(Value::Null)
                };
                compare(
                    &join(path, key),
                    &join(name, key),
                    &side(a),
                    &side(b),
                    found,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (left, right)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{at}]"), name, left, right, found);
            }
        }
        _ => found.push(Difference {
            path: path.to_string(),
            left: left.clone(),
            right: right.clone(),
        }),
    }
}
