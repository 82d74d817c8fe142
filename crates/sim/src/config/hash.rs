//! The hash that tells whether two runs were configured alike.

use serde_json::Value;

use super::load::RunConfig;

/// BLAKE3 (32 hexadecimal digits) of everything that decides a run except the traces and
/// `host.seed`.
///
/// Names, descriptions, sources and the name of the part set do not count: two files with the same
/// values have the same hash. The hash may change between versions of Flashlore.
pub fn config_hash(config: &RunConfig) -> String {
    const NAMES: [&str; 8] = [
        "device.name",
        "device.description",
        "device.source",
        "device.part",
        "system.name",
        "system.description",
        "system.source",
        "host.seed",
    ];
    let value = serde_json::to_value(config).expect("a configuration is plain data");
    let mut lines = Vec::new();
    collect("", &value, &mut lines);
    lines.retain(|(key, _)| !NAMES.contains(&key.as_str()));
    // Sorted, so that the order of the fields in their structs does not matter.
    lines.sort();
    let mut hasher = blake3::Hasher::new();
    for (key, value) in lines {
        hasher.update(format!("{key}={value}\n").as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_string()
}

/// The values of a tree by their full keys, each as JSON.
fn collect(path: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                collect(&path, value, lines);
            }
        }
        leaf => lines.push((path.to_string(), leaf.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, load_device, load_host, load_system};
    use super::*;

    fn hash(system: &str, sets: &[&str]) -> String {
        let settings = Settings::parse(sets).unwrap();
        config_hash(&RunConfig {
            device: load_device("ca-ssd-4g", &settings).unwrap().config,
            system: load_system(system, &settings).unwrap().config,
            host: load_host(&settings).unwrap().config,
        })
    }

    #[test]
    fn what_changes_a_run_changes_the_hash() {
        let base = hash("ca-ssd", &[]);
        assert_eq!(base.len(), 32);
        for set in [
            "device.gc.policy=cost-benefit",
            "dedup.verify=true",
            "host.limit=10",
            "device.capacity=3GiB",
        ] {
            assert_ne!(base, hash("ca-ssd", &[set]), "{set}");
        }
        assert_ne!(base, hash("plain", &[]));
    }

    #[test]
    fn what_does_not_change_a_run_does_not_change_the_hash() {
        let base = hash("ca-ssd", &[]);
        assert_eq!(base, hash("ca-ssd", &["device.name=other", "host.seed=7"]));
        assert_eq!(
            hash("plain", &[]),
            hash("plain", &["dedup.index_entries=1Ki"])
        );
    }
}
