//! The bundled devices, systems and part sets.

use super::error::ConfigError;
use super::layer::Origin;
use super::template::did_you_mean;

/// What a TOML text describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresetKind {
    /// An SSD.
    Device,
    /// A set of content policies.
    System,
    /// The host of a run.
    Host,
    /// The figures of a flash part.
    Part,
}

/// A bundled preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name, as given to `--device`, `--systems` or `part`.
    pub name: &'static str,
    /// One line that says what it is.
    pub description: &'static str,
    pub(super) text: &'static str,
}

macro_rules! presets {
    ($folder:literal: $($name:literal => $description:literal),* $(,)?) => {
        &[$(Preset {
            name: $name,
            description: $description,
            text: include_str!(concat!("../../", $folder, "/", $name, ".toml")),
        }),*]
    };
}

const DEVICES: &[Preset] = presets!("devices":
    "auto" => "SLC device sized from the trace, so that small captures meet a full device",
    "ca-ssd-4g" => "CA-SSD's device for web and homes: 4 GiB of SLC, no bus time",
    "ca-ssd-6g" => "CA-SSD's device for mail: 6 GiB of SLC, no bus time",
    "deltaftl-64g" => "DeltaFTL's device: 16 chips of 4 planes, 64 GiB raw, 30 % reserved",
    "bvssd-60g" => "BVSSD's device: 60 GiB exported, one allocation pool for the whole device",
    "agrawal-2008" => "the simulator behind the papers in its default setting: 8 chips, 32 GiB raw",
    "tlc-1t" => "a current 1 TB device: 16 KiB pages, TLC, 8 shared channels",
);

const SYSTEMS: &[Preset] = presets!("systems":
    "plain" => "page-mapped translation layer that ignores content",
    "ca-ssd" => "CA-SSD (FAST 2011): inline deduplication by an index of fingerprints",
    "delta-ftl" => "DeltaFTL (EuroSys 2012): updates of hot pages as compressed deltas, with a quota of bases",
    "delta-ftl-letter" => "DeltaFTL to the letter of its paper: deltas may keep any number of bases alive",
    "bvssd" => "BVSSD (SYSTOR 2012): superseded pages kept, back to any instant of a window",
    "trap" => "TRAP (ISCA 2006) on flash: superseded pages kept as compressed parities, BVSSD's rival",
    "combined" => "deduplication, deltas, compression and history at once",
    "compress" => "every page compressed by itself: the control beside deltas",
    "compress-history" => "every page compressed by itself, and history: a rival of combined",
    "ca-ssd-history" => "CA-SSD with history: a rival of combined",
    "delta-ftl-history" => "DeltaFTL with history: a rival of combined",
    "i-cash" => "I-CASH (HPCA 2011): an SSD of reference blocks beside a disk with a log of deltas",
    "pure-ssd" => "I-CASH's rival: all blocks on the SSD",
    "raid0" => "I-CASH's rival: all blocks on four disks, striped",
    "lru-cache" => "I-CASH's rival: the SSD is a write-back cache of a disk",
    "dedup-cache" => "I-CASH's rival: the same, with one copy of each content in the SSD",
    "i-cash-compression" => "I-CASH's control: blocks compressed by themselves, no similarity",
    "caftl" => "CAFTL (FAST 2011): a sample of each write is hashed at once, the rest in idle time",
);

const PARTS: &[Preset] = presets!("parts":
    "slc1" => "SLC with 2 KiB pages, CA-SSD Table 1 (listed there, not simulated)",
    "slc2" => "SLC with 4 KiB pages, CA-SSD Table 1, used in its experiments",
    "mlc" => "MLC with 4 KiB pages, CA-SSD Table 1 (listed there, not simulated)",
    "df" => "DeltaFTL Table 3",
    "bv" => "BVSSD Table 2",
    "tlc" => "3D TLC of the 64- to 96-layer generation with 16 KiB pages",
    "qlc" => "3D QLC of the 96-layer generation with 16 KiB pages",
);

/// The bundled devices.
pub fn device_presets() -> &'static [Preset] {
    DEVICES
}

/// The bundled systems.
pub fn system_presets() -> &'static [Preset] {
    SYSTEMS
}

/// The bundled part sets, which a device names by `part`.
pub fn part_presets() -> &'static [Preset] {
    PARTS
}

impl PresetKind {
    /// The word for it in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::System => "system",
            Self::Host => "host",
            Self::Part => "part",
        }
    }

    /// `key` as `--set` names it.
    pub(super) fn full_key(self, key: &str) -> String {
        match self {
            Self::Device => format!("device.{key}"),
            Self::Host => format!("host.{key}"),
            Self::System | Self::Part => key.to_string(),
        }
    }

    pub(super) fn template(self) -> &'static str {
        match self {
            Self::Device | Self::Part => include_str!("template/device.toml"),
            Self::System => include_str!("template/system.toml"),
            Self::Host => include_str!("template/host.toml"),
        }
    }

    /// Whether a text of this kind may start from a preset by `base`.
    pub(super) fn has_presets(self) -> bool {
        matches!(self, Self::Device | Self::System)
    }

    fn presets(self) -> &'static [Preset] {
        match self {
            Self::Device => DEVICES,
            Self::System => SYSTEMS,
            Self::Part => PARTS,
            Self::Host => &[],
        }
    }

    /// The preset `name`, if there is one.
    pub(super) fn find_preset(self, name: &str) -> Option<&'static Preset> {
        self.presets().iter().find(|preset| preset.name == name)
    }

    /// The preset `name`, or an error that names the nearest and all others. `origin` is where a
    /// file or `--set` names it; otherwise a file's name may stand in its place.
    pub(super) fn preset(
        self,
        name: &str,
        origin: Option<&Origin>,
    ) -> Result<&'static Preset, ConfigError> {
        self.find_preset(name).ok_or_else(|| {
            let names = || self.presets().iter().map(|preset| preset.name.to_string());
            let mut known = names().collect::<Vec<_>>().join(", ");
            if origin.is_none() {
                known.push_str("; a file's name ends in .toml");
            }
            ConfigError::UnknownPreset {
                place: origin.map_or_else(String::new, |origin| format!("{origin}: ")),
                kind: self.name(),
                name: name.to_string(),
                hint: did_you_mean(name, names()),
                known,
            }
        })
    }
}
