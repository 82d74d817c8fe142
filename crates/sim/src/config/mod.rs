//! Devices, systems and hosts as layered TOML: preset, file, `--set`.

mod apply;
mod array;
mod device;
mod error;
mod geometry;
mod hash;
mod host;
mod layer;
mod load;
mod names;
mod presets;
mod print;
mod retention;
mod rules;
mod settings;
mod system;
mod template;

pub use array::{ArrayConfig, ArrayKind};
pub use device::{
    Auto, BufferConfig, BufferPolicy, CacheKey, ChannelMode, DeviceConfig, Energy, GcCheck,
    GcConfig, GcMode, GcPolicy, Geometry, Layout, MapCache, Overwrite, Precondition,
    ReadCacheConfig, ReadOrder, ReadsConfig, SpaceConfig, SpareDefinition, Timing, WearConfig,
};
pub use error::ConfigError;
pub use flashlore_units::{Bytes, Count, Entries, Nanos, ParseUnitError, Share, Size, Watermark};
pub use geometry::{Shape, UNIT_BYTES, auto_device};
pub use hash::config_hash;
pub use host::{HostConfig, HostMode, Load};
pub use layer::Origin;
pub use load::{Loaded, RunConfig, load_device, load_host, load_system};
pub use presets::{Preset, PresetKind, device_presets, part_presets, system_presets};
pub use retention::Retention;
pub use settings::Settings;
pub use system::{
    Acknowledge, Base, CodecConfig, CompressConfig, DedupConfig, DeltaConfig, Digest, Form,
    HistoryConfig, QueueConfig, RatioFrom, Sampling, SwitchOff, SystemConfig,
};
