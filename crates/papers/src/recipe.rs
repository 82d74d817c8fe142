//! What the configuration of a run is made of.

use flashlore_sim::config::{RunConfig, Settings, UNIT_BYTES, load_device, load_host, load_system};
use flashlore_units::{Count, Entries, Nanos, Size};

use crate::error::PaperError;

/// Presets and settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    pub name: String,
    pub preset: String,
    pub device: String,
    /// `KEY=VALUE` texts for all three; a later one wins.
    pub set: Vec<String>,
    /// Factor on what is to be in proportion to the workload.
    pub scale: f64,
    pub seed: u64,
}

impl Recipe {
    /// The configuration, with further settings that win over all others.
    pub fn config(&self, more: &[String]) -> Result<RunConfig, PaperError> {
        let texts: Vec<&String> = self.set.iter().chain(more).collect();
        let settings = Settings::parse(&texts)?;
        let mut config = RunConfig {
            device: load_device(&self.device, &settings)?.config,
            system: load_system(&self.preset, &settings)?.config,
            host: load_host(&settings)?.config,
        };
        config.system.name.clone_from(&self.name);
        config.host.seed = self.seed;
        self.scale(&mut config);
        Ok(config)
    }

    /// Scales blocks, exported size and write buffer of the device; the index, the pages whose accesses are
    /// counted, the time between two scans and the least window of the system; the accesses between two scans of
    /// an array and the blocks that a scan looks at.
    fn scale(&self, config: &mut RunConfig) {
        let scaled = |n: f64| (n * self.scale).round().max(1.0);
        let limited = |entries: &mut Entries| {
            if let Entries::Limited(n) = entries {
                *n = scaled(*n as f64) as u64;
            }
        };
        if let Some(blocks) = &mut config.device.geometry.blocks_per_plane {
            *blocks = scaled(f64::from(*blocks)) as u32;
        }
        let capacity = config.device.space.capacity.as_mut();
        for Size(bytes) in capacity.into_iter().chain([
            &mut config.device.buffer.size,
            &mut config.device.read_cache.size,
        ]) {
            *bytes = scaled((*bytes / UNIT_BYTES) as f64) as u64 * UNIT_BYTES;
        }
        limited(&mut config.system.dedup.index_entries);
        limited(&mut config.system.delta.counted_pages);
        let array = &mut config.system.array;
        for Count(blocks) in [&mut array.scan_every, &mut array.scan_blocks] {
            *blocks = scaled(*blocks as f64) as u64;
        }
        for time in [
            &mut config.system.delta.scan_period,
            &mut config.system.history.min_window,
        ] {
            if time.0 > 0 {
                *time = Nanos(scaled(time.0 as f64) as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_workload_is_scaled_with_it() {
        let recipe = Recipe {
            name: "half".to_owned(),
            preset: "delta-ftl".to_owned(),
            device: "deltaftl-64g".to_owned(),
            set: vec!["delta.counted_pages=1000".to_owned()],
            scale: 0.5,
            seed: 7,
        };
        let set = [
            "delta.counted_pages=2000",
            "delta.scan_period=1min",
            "history.enabled=true",
            "history.min_window=10s",
        ];
        let config = recipe.config(&set.map(str::to_owned)).unwrap();
        assert_eq!(config.device.geometry.blocks_per_plane, Some(2048));
        assert_eq!(config.device.buffer.size, Size(32 << 20));
        assert_eq!(config.system.delta.counted_pages, Entries::Limited(1000));
        assert_eq!(config.system.array.scan_every, Count(1000));
        assert_eq!(config.system.array.scan_blocks, Count(2000));
        assert_eq!(config.system.delta.scan_period, Nanos(30_000_000_000));
        assert_eq!(config.system.history.min_window, Nanos(5_000_000_000));
        assert_eq!((config.system.name.as_str(), config.host.seed), ("half", 7));
    }
}
