//! From systems, device, settings and seeds, as named on the command line, to configurations.

use std::collections::BTreeSet;
use std::path::Path;

use flashlore_sim::config::{
    DeviceConfig, Entries, HostConfig, Loaded, RunConfig, Settings, SystemConfig, load_device,
    load_host, load_system,
};
use flashlore_trace::{Stop, Summary};

use crate::error::CliError;
use crate::input::Input;
use crate::runs::Job;

/// The most seeds: every run and its result is held in memory.
const MOST_SEEDS: u64 = 10_000;

/// What is to run, before the traces are known.
pub struct Plan {
    columns: Vec<Column>,
    host: HostConfig,
    seeds: u64,
}

/// What a device that is sized from a trace must hold.
#[derive(Clone, Copy)]
struct Size {
    footprint: u64,
    pages: u64,
}

impl Size {
    fn of(summary: &Summary) -> Self {
        Size {
            footprint: summary.footprint_units,
            pages: summary.lpn_count,
        }
    }

    fn with(self, other: Self) -> Self {
        Size {
            footprint: self.footprint.max(other.footprint),
            pages: self.pages.max(other.pages),
        }
    }
}

/// A system on a device, which may be a template.
struct Column {
    system: SystemConfig,
    device: DeviceConfig,
}

/// What a plan is made of on the command line.
pub struct PlanOptions<'a> {
    /// Presets or files, each with `@DEVICE` behind it if it has a device of its own.
    pub systems: &'a [String],
    /// The device of all others.
    pub device: &'a str,
    /// `KEY=VALUE` texts.
    pub set: &'a [String],
    /// How many seeds, at least 1.
    pub seeds: u64,
    pub different_devices: bool,
}

/// A preset or file with settings of its own, as `KEY=VALUE` texts.
#[derive(Debug, Clone)]
pub struct Named {
    pub name: String,
    /// What is different from it. It was found to be used when this was made.
    pub set: Vec<String>,
}

impl Named {
    /// As it is.
    pub fn plain(name: &str) -> Self {
        Named {
            name: name.to_owned(),
            set: Vec::new(),
        }
    }

    /// Its own settings and then the common ones, which win.
    fn settings(&self, common: &[String]) -> Result<Settings, CliError> {
        Ok(Settings::parse(&[&self.set, common].concat())?)
    }
}

pub struct Choice<'a> {
    /// Systems, each on its device.
    pub columns: &'a [(Named, Named)],
    /// `KEY=VALUE` texts for all of them and the host.
    pub set: &'a [String],
    /// How many seeds, at least 1.
    pub seeds: u64,
    pub different_devices: bool,
}

impl Plan {
    /// What the command line asks for.
    ///
    /// # Errors
    /// As [`Plan::of`].
    pub fn new(options: &PlanOptions) -> Result<Self, CliError> {
        let column = |text: &String| {
            let (system, device) = split(text, options.device);
            (Named::plain(system), Named::plain(device))
        };
        let columns: Vec<_> = options.systems.iter().map(column).collect();
        Self::of(&Choice {
            columns: &columns,
            set: options.set,
            seeds: options.seeds,
            different_devices: options.different_devices,
        })
    }

    /// Loads everything and refuses what contradicts itself.
    ///
    /// # Errors
    /// A name, key or value that does not exist, a common setting that nothing uses, a system named twice,
    /// devices that differ without leave.
    pub fn of(options: &Choice) -> Result<Self, CliError> {
        if options.seeds > MOST_SEEDS {
            return Err(CliError::Usage(format!(
                "--seeds {}: expected at most {MOST_SEEDS}",
                options.seeds
            )));
        }
        let settings = Settings::parse(options.set)?;
        let mut columns: Vec<Column> = Vec::new();
        let mut unused = Unused::of(&settings);
        for (system, device) in options.columns {
            let system = load_system(&system.name, &system.settings(options.set)?)?;
            let device = load_device(&device.name, &device.settings(options.set)?)?;
            let (system, device) = (unused.note(system), unused.note(device));
            let twice = |c: &Column| c.system.name == system.name && c.device.name == device.name;
            if columns.iter().any(twice) {
                return Err(CliError::Usage(format!(
                    "two systems are called {} on device {}; give one of them another name",
                    system.name, device.name
                )));
            }
            columns.push(Column { system, device });
        }
        let host = unused.note(load_host(&settings)?);
        unused.refuse(columns.len())?;
        let plan = Self {
            columns,
            host,
            seeds: options.seeds,
        };
        if !options.different_devices {
            plan.refuse_different_devices()?;
        }
        if plan.host.seed.checked_add(plan.seeds - 1).is_none() {
            return Err(CliError::Usage(format!(
                "--seeds {}: seeds from {} on do not fit 64 bits",
                plan.seeds, plan.host.seed
            )));
        }
        Ok(plan)
    }

    fn refuse_different_devices(&self) -> Result<(), CliError> {
        let Some(first) = self.columns.first() else {
            return Ok(());
        };
        let other = self.columns.iter().find(|c| c.device != first.device);
        match other {
            None => Ok(()),
            Some(other) => Err(CliError::Usage(format!(
                "system {} has device {} and system {} has device {}: their difference would not \
                 be due to the systems alone; say --allow-different-devices if it is wanted",
                first.system.name, first.device.name, other.system.name, other.device.name
            ))),
        }
    }

    pub fn all_have_history(&self) -> bool {
        self.columns.iter().all(|c| c.system.history.enabled)
    }

    /// Whether some system encodes the bytes of pages.
    pub fn needs_bytes(&self) -> bool {
        self.columns.iter().any(|c| c.system.needs_bytes())
    }

    /// Whether some system takes R_c from the trace.
    pub fn needs_ratios(&self) -> bool {
        self.columns.iter().any(|c| c.system.needs_ratios())
    }

    /// Whether holes in the address space of a workload must go: where a device is sized from the trace and holds
    /// all of it, and where an array's media would have them too. A workload whose machines are told, by a profile or
    /// a setting, keeps its addresses for an array.
    pub fn compacts(&self, tells_machines: bool) -> bool {
        let must = |c: &Column| match c.system.array.is_some() {
            true => !tells_machines && c.system.array.machine_pages == Entries::Limited(0),
            false => c.device.auto.is_some(),
        };
        self.columns.iter().any(must)
    }

    /// The runs of a workload: for each system, for each seed. Every seed draws anew what is drawn; the device, where
    /// it is sized from the trace, holds each of the workloads.
    ///
    /// # Errors
    /// As [`Plan::configurations`], and a workload that cannot be drawn.
    pub fn jobs<'a>(&self, input: &'a Input, stop: &Stop) -> Result<Vec<Job<'a>>, CliError> {
        let mut largest = Size::of(input.summary());
        for draw in 1..self.seeds {
            match input.redrawn(draw, stop)? {
                Some(other) => largest = largest.with(Size::of(other.summary())),
                None => break,
            }
        }
        let configurations = self.sized(largest, input.machine_pages())?;
        let draws = (0..self.seeds).cycle();
        let job = |(config, draw)| Job {
            input,
            config,
            draw,
        };
        Ok(configurations.into_iter().zip(draws).map(job).collect())
    }

    /// The configurations for a workload, whose machines have `machine_pages` each if it has several: for each
    /// system, for each seed.
    ///
    /// # Errors
    /// A template that cannot be made large enough.
    pub fn configurations(
        &self,
        summary: &Summary,
        machine_pages: Option<u32>,
    ) -> Result<Vec<RunConfig>, CliError> {
        self.sized(Size::of(summary), machine_pages)
    }

    fn sized(&self, size: Size, machine_pages: Option<u32>) -> Result<Vec<RunConfig>, CliError> {
        let mut configurations = Vec::new();
        for column in &self.columns {
            let mut config = RunConfig {
                device: column.device.clone(),
                system: column.system.clone(),
                host: self.host.clone(),
            };
            config.fit(size.footprint, size.pages, machine_pages)?;
            for number in 0..self.seeds {
                config.host.seed = self.host.seed + number;
                configurations.push(config.clone());
            }
        }
        Ok(configurations)
    }
}

/// `SYSTEM@DEVICE`, or a system on the common device; a file may have `@` in its name.
fn split<'a>(text: &'a str, device: &'a str) -> (&'a str, &'a str) {
    match text.rsplit_once('@') {
        Some((system, own)) if !Path::new(text).exists() => (system, own),
        _ => (text, device),
    }
}

/// How often each `--set` key was not used, by kind of configuration.
struct Unused {
    /// All keys of it.
    common: Vec<String>,
    /// Those not used, as often as they were not.
    keys: Vec<String>,
}

impl Unused {
    fn of(settings: &Settings) -> Self {
        Unused {
            common: settings.keys(),
            keys: Vec::new(),
        }
    }

    fn note<T>(&mut self, loaded: Loaded<T>) -> T {
        let common = |key: &String| self.common.contains(key);
        self.keys.extend(loaded.unused.into_iter().filter(common));
        loaded.config
    }

    /// Refuses a key that no configuration uses. Each is loaded once a column, but for the host.
    fn refuse(&self, columns: usize) -> Result<(), CliError> {
        let keys: BTreeSet<&String> = self.keys.iter().collect();
        let useless = |key: &&String| {
            let times = self.keys.iter().filter(|other| other == key).count();
            times == if key.starts_with("host.") { 1 } else { columns }
        };
        match keys.into_iter().find(useless) {
            None => Ok(()),
            Some(key) => Err(CliError::Usage(format!(
                "--set {key}: nothing that runs uses this key with the other settings as they are"
            ))),
        }
    }
}

/// A configuration of which every setting is used.
///
/// # Errors
/// A setting that it does not use.
pub fn all_used<T>(loaded: Loaded<T>) -> Result<Loaded<T>, CliError> {
    let keys = loaded.unused.clone();
    let common = keys.clone();
    Unused { common, keys }.refuse(1)?;
    Ok(loaded)
}
