//! From names, files and `--set` options to checked values.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::apply::{Tree, merge, nest};
use super::device::{BufferPolicy, CacheKey, DeviceConfig};
use super::error::ConfigError;
use super::geometry::auto_device;
use super::host::HostConfig;
use super::layer::Origin;
use super::presets::PresetKind;
use super::rules;
use super::settings::Settings;
use super::system::{RatioFrom, Sampling, SystemConfig};
use super::template::Template;
use flashlore_content::history::PAPER_ENTRY_BYTES;
use flashlore_units::{Bytes, Entries, Nanos};

/// A checked configuration and where its values came from.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// The values.
    pub config: T,
    /// By key (without `device.` or `host.`): where the value was given, and the comment there.
    pub origins: BTreeMap<String, (Origin, String)>,
    /// Keys given by `--set` that this configuration does not use, in full: values of `dedup` on a
    /// system without it. A key unused by every system of a run is a mistake.
    pub unused: Vec<String>,
}

/// Everything that decides a run, besides its traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The device, sized.
    pub device: DeviceConfig,
    /// The content policies.
    pub system: SystemConfig,
    pub host: HostConfig,
}

impl RunConfig {
    /// Refuses values that loading would refuse, for a configuration that was not loaded: read from
    /// a results file, or changed since.
    ///
    /// # Errors
    /// A value out of range, or a device template.
    pub fn check(&self) -> Result<(), ConfigError> {
        let unplaced = |kind| move |fault: Fault| fault.unplaced(kind);
        self.device.check().map_err(unplaced(PresetKind::Device))?;
        self.system.check().map_err(unplaced(PresetKind::System))?;
        self.host.check().map_err(unplaced(PresetKind::Host))?;
        self.check_buffer().map_err(unplaced(PresetKind::System))?;
        self.check_read_cache()
            .map_err(unplaced(PresetKind::Device))?;
        self.device.shape().map(|_| ())
    }

    /// Gives a device that is a template its size, and an array its machines: for a workload that touches `footprint`
    /// distinct pages below `pages`, and whose machines have `machine_pages` each if it has several.
    ///
    /// # Errors
    /// A template that cannot be made large enough.
    pub fn fit(
        &mut self,
        footprint: u64,
        pages: u64,
        machine_pages: Option<u32>,
    ) -> Result<(), ConfigError> {
        let array = &mut self.system.array;
        if array.is_some() && array.machine_pages == Entries::Limited(0) {
            array.machine_pages =
                machine_pages.map_or(Entries::Unlimited, |pages| Entries::Limited(pages.into()));
        }
        if self.device.auto.is_some() {
            let units = match array.is_some() {
                true => array.ssd_units(footprint, pages),
                false => footprint,
            };
            self.device = auto_device(&self.device, units)?;
        }
        Ok(())
    }

    /// Only deduplication knows values.
    fn check_read_cache(&self) -> Result<(), Fault> {
        if self.device.read_cache.key == CacheKey::Value && !self.system.dedup.enabled {
            let message =
                "\"value\" needs a system that knows equal content, with dedup.enabled = true";
            return Err(Fault::new("read_cache.key", message));
        }
        Ok(())
    }

    /// What a system cannot have behind a write buffer.
    fn check_buffer(&self) -> Result<(), Fault> {
        if self.device.buffer.policy == BufferPolicy::None {
            return Ok(());
        }
        const INSTEAD: &str = "it needs device.buffer.policy = \"none\"";
        if self.system.queue.enabled {
            let message =
                format!("a write buffer leaves versions out that the queue keeps; {INSTEAD}");
            return Err(Fault::new("queue.enabled", message));
        }
        let dedup = &self.system.dedup;
        if dedup.enabled && dedup.sampling == Sampling::Request {
            let message = format!(
                "a write buffer takes requests apart, and this looks at whole ones; {INSTEAD}"
            );
            return Err(Fault::new("dedup.sampling", message));
        }
        Ok(())
    }
}

/// A value out of range: its key and a sentence.
pub(super) struct Fault {
    pub key: &'static str,
    pub message: String,
}

impl Fault {
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
        }
    }

    /// The fault of a value that no layer gave.
    pub fn unplaced(self, kind: PresetKind) -> ConfigError {
        let key = kind.full_key(self.key);
        ConfigError::Invalid {
            origin: Origin::Value,
            key,
            message: self.message,
        }
    }
}

/// The longest duration of a part, a stage or a pause: instants are 64-bit nanoseconds, and a trace
/// adds up millions of durations.
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// The longest period of what is done now and then, beside the days and weeks of a trace.
const LONGEST_PERIOD: Nanos = Nanos(365 * 24 * 3_600_000_000_000);

/// The most requests in flight: the host keeps a record for each from the start.
const DEEPEST: u32 = 1 << 20;

/// Refuses durations above an hour.
pub(super) fn check_durations(
    durations: impl IntoIterator<Item = (&'static str, Nanos)>,
) -> Result<(), Fault> {
    match durations.into_iter().find(|(_, found)| *found > LONGEST) {
        Some((key, found)) => Err(Fault::new(
            key,
            format!("expected at most one hour, found {found}"),
        )),
        None => Ok(()),
    }
}

/// Refuses names that tables and messages cannot show.
pub(super) fn check_name(name: &str) -> Result<(), Fault> {
    if name.trim().is_empty() {
        return Err(Fault::new("name", "expected a name, found none"));
    }
    if name.chars().any(char::is_control) {
        let message = format!("expected a name of printable characters, found {name:?}");
        return Err(Fault::new("name", message));
    }
    Ok(())
}

/// A kind of configuration that can be loaded.
pub(super) trait Checked: Serialize + DeserializeOwned {
    const KIND: PresetKind;

    /// Refuses values out of range.
    fn check(&self) -> Result<(), Fault>;
}

/// Loads the device preset or file `name_or_path` with the `device.…` options of `settings`.
///
/// # Errors
/// An unknown name, key or value, a file that cannot be read, or values that contradict each
/// other.
pub fn load_device(
    name_or_path: &str,
    settings: &Settings,
) -> Result<Loaded<DeviceConfig>, ConfigError> {
    load(Some(name_or_path), settings)
}

/// Loads the system preset or file `name_or_path` with the system's options of `settings`.
///
/// # Errors
/// As [`load_device`].
pub fn load_system(
    name_or_path: &str,
    settings: &Settings,
) -> Result<Loaded<SystemConfig>, ConfigError> {
    load(Some(name_or_path), settings)
}

/// The host's defaults with the `host.…` options of `settings`.
///
/// # Errors
/// A value of the wrong type or out of range, or values that contradict each other.
pub fn load_host(settings: &Settings) -> Result<Loaded<HostConfig>, ConfigError> {
    load(None, settings)
}

fn load<T: Checked>(name: Option<&str>, settings: &Settings) -> Result<Loaded<T>, ConfigError> {
    let template = Template::of(T::KIND);
    let mut tree = merge(&template, name, settings)?;
    // A misspelt value first: the rules below would misread it.
    match typed::<T>(&tree) {
        Err(fault) if !fault.is_missing_key() => return Err(fault.place(T::KIND, &tree)),
        _ => {}
    }
    let unused = rules::apply(&template, &mut tree)?;
    rules::require(&template, &tree)?;
    let config: T = typed(&tree).map_err(|fault| fault.place(T::KIND, &tree))?;
    config
        .check()
        .map_err(|fault| invalid(T::KIND, &tree, fault.key, fault.message))?;
    let origins = tree
        .into_iter()
        .map(|(key, placed)| (key, (placed.entry.origin, placed.entry.note)));
    Ok(Loaded {
        config,
        origins: origins.collect(),
        unused,
    })
}

/// A value that does not have its key's type.
struct TypeFault {
    key: String,
    message: String,
}

impl TypeFault {
    fn is_missing_key(&self) -> bool {
        self.message.starts_with("missing field")
    }

    fn place(self, kind: PresetKind, tree: &Tree) -> ConfigError {
        invalid(kind, tree, &self.key, self.message)
    }
}

fn typed<T: DeserializeOwned>(tree: &Tree) -> Result<T, TypeFault> {
    serde_path_to_error::deserialize(nest(tree)).map_err(|error| {
        let path = error.path().to_string();
        // An item of a list is placed by its list.
        let key = path.split('[').next().unwrap_or("").to_string();
        TypeFault {
            key,
            message: in_words(error.into_inner().to_string()),
        }
    })
}

/// A message that ends with a type of Rust, with words for it.
fn in_words(message: String) -> String {
    let types = [
        ("expected u64", "expected a whole number from 0 to 2^64 - 1"),
        ("expected u32", "expected a whole number from 0 to 2^32 - 1"),
        ("expected f64", "expected a number"),
    ];
    match types.iter().find(|(name, _)| message.ends_with(name)) {
        Some((name, words)) => format!("{}{words}", &message[..message.len() - name.len()]),
        None => message,
    }
}

fn invalid(kind: PresetKind, tree: &Tree, key: &str, message: String) -> ConfigError {
    let origin = tree
        .get(key)
        .map_or(Origin::Default, |placed| placed.entry.origin.clone());
    ConfigError::Invalid {
        origin,
        key: kind.full_key(key),
        message,
    }
}

impl Checked for SystemConfig {
    const KIND: PresetKind = PresetKind::System;

    fn check(&self) -> Result<(), Fault> {
        check_name(&self.name)?;
        let dedup = &self.dedup;
        check_durations([("dedup.hash_time", dedup.hash_time)])?;
        if !(1..=128).contains(&dedup.fingerprint_bits) {
            let message = format!("expected 1 to 128 bits, found {}", dedup.fingerprint_bits);
            return Err(Fault::new("dedup.fingerprint_bits", message));
        }
        if dedup.fingerprint_bits < 128 && !dedup.verify {
            let message = format!(
                "{} bits collide, which needs dedup.verify = true",
                dedup.fingerprint_bits
            );
            return Err(Fault::new("dedup.fingerprint_bits", message));
        }
        if dedup.index_entries == Entries::Limited(0) {
            return Err(Fault::new(
                "dedup.index_entries",
                "expected at least one entry, found 0",
            ));
        }
        if !(2..=u64::from(u32::MAX)).contains(&dedup.sampling_unit.0) {
            let message = format!(
                "expected 2 to 2^32 - 1 pages, found {}: one is the sample for the others",
                dedup.sampling_unit.0
            );
            return Err(Fault::new("dedup.sampling_unit", message));
        }
        if dedup.out_of_line && dedup.verify {
            let message = "pages hashed in idle time are shared by fingerprint alone, which needs \
                           dedup.verify = false";
            return Err(Fault::new("dedup.out_of_line", message));
        }
        check_queue(self)?;
        check_encoding(self)?;
        self.array.check()?;
        if self.array.is_some() && (self.encodes_bytes() || self.needs_ratios()) {
            let message =
                "expected \"drawn\": what the SSD of an array is written are no pages of the trace";
            return Err(Fault::new("codec.ratio", message));
        }
        let off = &dedup.switch_off;
        let counts = [
            ("dedup.switch_off.window", off.window.0),
            ("dedup.switch_off.windows", u64::from(off.windows)),
            ("dedup.switch_off.sample", off.sample.0),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((key, _)) => Err(Fault::new(key, "expected at least 1, found 0")),
            None => Ok(()),
        }
    }
}

fn check_encoding(system: &SystemConfig) -> Result<(), Fault> {
    let (delta, compress, codec) = (&system.delta, &system.compress, &system.codec);
    check_durations([("history.field_time", system.history.field_time)])?;
    if delta.scan_period > LONGEST_PERIOD {
        let message = format!("expected at most one year, found {}", delta.scan_period);
        return Err(Fault::new("delta.scan_period", message));
    }
    if system.history.enabled && system.dedup.enabled && system.dedup.out_of_line {
        let message = "pages hashed in idle time must be live, which history excludes";
        return Err(Fault::new("dedup.out_of_line", message));
    }
    let stands_alone = !system.encodes() && !system.dedup.enabled;
    if system.keeps_parities() && !stands_alone {
        let message = "parities are taken of whole pages, which dedup, delta and compress exclude";
        return Err(Fault::new("history.form", message));
    }
    let history = &system.history;
    if let Some(schedule) = history.schedule.schedule()
        && schedule.exact() < history.min_window.0
    {
        let message = format!(
            "expected every instant to stay at least as long as history.min_window, {}",
            history.min_window
        );
        return Err(Fault::new("history.schedule", message));
    }
    if matches!(history.tier_bytes, Bytes::Limited(size) if size.0 < PAPER_ENTRY_BYTES) {
        let message = format!("expected room for an entry of {PAPER_ENTRY_BYTES} bytes");
        return Err(Fault::new("history.tier_bytes", message));
    }
    let ratios = [
        ("history.mean", system.history.mean, 2.0),
        ("history.deviation", system.history.deviation, 2.0),
        ("delta.lambda", delta.lambda, 1000.0),
        ("delta.mean", delta.mean, 2.0),
        ("delta.deviation", delta.deviation, 2.0),
        ("compress.mean", compress.mean, 2.0),
        ("compress.deviation", compress.deviation, 2.0),
    ];
    for (key, found, most) in ratios {
        if !(0.0..=most).contains(&found) {
            let message = format!("expected 0 to {most}, found {found}");
            return Err(Fault::new(key, message));
        }
    }
    for (key, found) in [
        ("delta.hot_writes", delta.hot_writes),
        ("delta.hot_reads", delta.hot_reads),
    ] {
        if found > 16 {
            let message = format!("expected 0 to 16, found {found}");
            return Err(Fault::new(key, message));
        }
    }
    let counts = [("codec.window", codec.window), ("codec.probe", codec.probe)];
    let possible = 1..=u64::from(u32::MAX);
    if let Some((key, found)) = counts.into_iter().find(|(_, c)| !possible.contains(&c.0)) {
        let message = format!("expected 1 to 2^32 - 1, found {}", found.0);
        return Err(Fault::new(key, message));
    }
    check_durations([
        ("codec.encode_cycles", codec.encode_time()),
        ("codec.decode_cycles", codec.decode_time()),
        ("codec.sketch_cycles", codec.sketch_time()),
    ])?;
    check_similar(system)?;
    if system.encodes() && system.dedup.enabled && system.dedup.out_of_line {
        let message = "pages hashed in idle time must be whole, which delta and compress exclude";
        return Err(Fault::new("dedup.out_of_line", message));
    }
    if system.encodes() && system.dedup.enabled && system.dedup.verify {
        let message =
            "a value that is merged is looked up without comparing, which verify excludes";
        return Err(Fault::new("dedup.verify", message));
    }
    Ok(())
}

fn check_similar(system: &SystemConfig) -> Result<(), Fault> {
    let delta = &system.delta;
    if system.looks_for_similar() && system.codec.ratio != RatioFrom::Codec {
        let message = "\"similar\" finds pages by their bytes, which needs codec.ratio = \"codec\" (and a \
                       trace with a file of pages, or a profile with similarity)";
        return Err(Fault::new("delta.base", message));
    }
    let sharers = delta.base_sharers.0;
    if !(1..=u64::from(u32::MAX)).contains(&sharers) {
        let message = format!("expected 1 to 2^32 - 1, found {sharers}");
        return Err(Fault::new("delta.base_sharers", message));
    }
    if delta.base_entries == Entries::Limited(0) {
        return Err(Fault::new(
            "delta.base_entries",
            "expected at least one entry, found 0",
        ));
    }
    Ok(())
}

fn check_queue(system: &SystemConfig) -> Result<(), Fault> {
    let queue = &system.queue;
    check_durations([("queue.period", queue.period)])?;
    let counts = [
        ("queue.requests", queue.requests),
        ("queue.bucket", queue.bucket),
    ];
    let possible = 1..=u64::from(u32::MAX);
    if let Some((key, found)) = counts.into_iter().find(|(_, c)| !possible.contains(&c.0)) {
        let message = format!("expected 1 to 2^32 - 1, found {}", found.0);
        return Err(Fault::new(key, message));
    }
    if queue.period.0 == 0 {
        let message = "expected a duration above 0: without a queue, say queue.enabled = false";
        return Err(Fault::new("queue.period", message));
    }
    if queue.enabled && system.dedup.enabled && system.dedup.sampling == Sampling::Request {
        let message = "the queue takes requests apart, and dedup.sampling = \"request\" looks at \
                       whole ones";
        return Err(Fault::new("queue.enabled", message));
    }
    Ok(())
}

impl Checked for HostConfig {
    const KIND: PresetKind = PresetKind::Host;

    fn check(&self) -> Result<(), Fault> {
        if self.queue_depth == 0 {
            return Err(Fault::new("queue_depth", "expected at least 1, found 0"));
        }
        if self.queue_depth > DEEPEST {
            let message = format!("expected at most {DEEPEST}, found {}", self.queue_depth);
            return Err(Fault::new("queue_depth", message));
        }
        if self.limit == Some(0) {
            return Err(Fault::new("limit", "expected at least 1, found 0"));
        }
        check_durations([("think_time", self.think_time)])?;
        if !(self.time_scale.is_finite() && self.time_scale > 0.0) {
            let message = format!("expected a factor above 0, found {}", self.time_scale);
            return Err(Fault::new("time_scale", message));
        }
        if self.warmup.get() >= 1.0 {
            return Err(Fault::new(
                "warmup",
                "expected a share below 1: nothing would be counted",
            ));
        }
        Ok(())
    }
}
