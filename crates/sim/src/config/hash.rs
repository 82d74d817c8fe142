//! The hash that tells whether two runs were configured alike.

use serde_json::Value;

use super::load::RunConfig;

/// BLAKE3 (32 hexadecimal digits) of everything that decides a run except the traces and
/// `host.seed`.
///
/// Names, descriptions, sources and the name of the part set do not count: two files with the same
/// values have the same hash. The hash may change between versions of Flashlore.
pub fn config_hash(config: &RunConfig) -> String {
    let mut value = serde_json::to_value(config).expect("a configuration is plain data");
    for (section, keys) in [
        ("device", &["name", "description", "source", "part"][..]),
        ("system", &["name", "description", "source"]),
        ("host", &["seed"]),
    ] {
        if let Some(Value::Object(table)) = value.get_mut(section) {
            table.retain(|key, _| !keys.contains(&key.as_str()));
        }
    }
    // serde_json keeps the keys of a map sorted.
    blake3::hash(value.to_string().as_bytes()).to_hex()[..32].to_string()
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
