//! What follows from a device's keys: block and unit counts, pools, exported size; and the sizing
//! of templates.
//!
//! Counts are exact integers. Exported capacity computed from a spare share is rounded down on each
//! die, so that every die exports alike.

use super::device::{DeviceConfig, SpareDefinition, Timing, pages_of};
use super::error::ConfigError;
use super::load::{Checked, Fault, check_durations, check_name};
use super::presets::PresetKind;
use flashlore_ftl::map_cache::ENTRY_BYTES;
use flashlore_ftl::{Level, PoolScope};
pub use flashlore_trace::UNIT_BYTES;
use flashlore_units::{Bytes, Size};

/// Mapping units are addressed by 32 bits.
const MAX_RAW_UNITS: u64 = 1 << 32;

/// A template's pools get at least this many blocks: with 15 % of them spare, collection keeps its reserve of 5 %,
/// a block to collect, and the four open blocks of systems that pack values.
const MIN_POOL_BLOCKS: u32 = 54;

const BILLION: u64 = 1_000_000_000;

/// The counts that follow from a device's geometry, layout and spare space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Packages of the device.
    pub packages: u64,
    /// Dies of the device.
    pub dies: u64,
    /// Planes of the device.
    pub planes: u64,
    /// Blocks of the device.
    pub blocks: u64,
    /// Mapping units in a flash page.
    pub units_per_page: u64,
    /// Mapping units of a block that hold data: a summary page holds none.
    pub units_per_block: u64,
    /// Mapping units that can hold data.
    pub raw_units: u64,
    /// Mapping units that the host sees.
    pub exported_units: u64,
    /// Allocation pools.
    pub pools: u64,
    pub blocks_per_pool: u64,
    /// Collection starts when a pool has this many free blocks or fewer.
    pub low_watermark: u64,
    /// Collection stops when a pool has more free blocks than this.
    pub high_watermark: u64,
}

impl DeviceConfig {
    /// The counts that follow from the configuration.
    ///
    /// # Errors
    /// A template has no shape before [`auto_device`] sized it, nor has a value that was changed
    /// after loading so that it contradicts the others.
    pub fn shape(&self) -> Result<Shape, ConfigError> {
        if self.geometry.blocks_per_plane.is_none() {
            return Err(ConfigError::Template {
                name: self.name.clone(),
            });
        }
        check_geometry(self)
            .and_then(|()| shape_of(self))
            .map_err(|fault| fault.unplaced(PresetKind::Device))
    }
}

/// The counts of a device whose geometry is checked.
fn shape_of(device: &DeviceConfig) -> Result<Shape, Fault> {
    let g = &device.geometry;
    let product = |factors: &[u64]| {
        let product = factors
            .iter()
            .try_fold(1_u64, |product, factor| product.checked_mul(*factor));
        product.ok_or_else(|| {
            Fault::new(
                "geometry.blocks_per_plane",
                "the device would not fit 64 bits",
            )
        })
    };
    let packages = product(&[g.channels.into(), g.packages_per_channel.into()])?;
    let dies = product(&[packages, g.dies_per_package.into()])?;
    let planes = product(&[dies, g.planes_per_die.into()])?;
    let blocks = product(&[planes, g.blocks_per_plane.unwrap_or(0).into()])?;
    let units_per_page = g.page_size.0 / UNIT_BYTES;
    let data_pages = u64::from(g.pages_per_block) - u64::from(device.layout.summary_page);
    let units_per_block = product(&[data_pages, units_per_page])?;
    let raw_units = product(&[blocks, units_per_block])?;
    if raw_units > MAX_RAW_UNITS {
        let message = format!(
            "the device has {raw_units} mapping units of 4 KiB, expected at most 2^32 (16 TiB)"
        );
        return Err(Fault::new("geometry.blocks_per_plane", message));
    }
    let pools = match device.layout.pool {
        PoolScope::Plane => planes,
        PoolScope::Die => dies,
        PoolScope::Package => packages,
        PoolScope::Device => 1,
    };
    let blocks_per_pool = blocks / pools;
    Ok(Shape {
        packages,
        dies,
        planes,
        blocks,
        units_per_page,
        units_per_block,
        raw_units,
        exported_units: exported_units(device, raw_units / dies, dies),
        pools,
        blocks_per_pool,
        low_watermark: device.gc.low_watermark.blocks(blocks_per_pool),
        high_watermark: device.gc.high_watermark.blocks(blocks_per_pool),
    })
}

/// Exported mapping units of `dies` dies of `units_per_die` each.
fn exported_units(device: &DeviceConfig, units_per_die: u64, dies: u64) -> u64 {
    let space = &device.space;
    let (Some(share), Some(definition)) = (space.over_provisioning, space.definition) else {
        return space.capacity.map_or(0, |capacity| capacity.0 / UNIT_BYTES);
    };
    let spare = share.billionths();
    let (numerator, denominator) = match definition {
        SpareDefinition::Raw => (BILLION - spare, BILLION),
        SpareDefinition::Exported => (BILLION, BILLION + spare),
    };
    let per_die = u128::from(units_per_die) * u128::from(numerator) / u128::from(denominator);
    // The quotient does not exceed `units_per_die`.
    u64::try_from(per_die).unwrap_or(units_per_die) * dies
}

impl Checked for DeviceConfig {
    const KIND: PresetKind = PresetKind::Device;

    fn check(&self) -> Result<(), Fault> {
        check_name(&self.name)?;
        check_geometry(self)?;
        check_rest(self)?;
        if self.geometry.blocks_per_plane.is_none() {
            return Ok(());
        }
        check_space(self, &shape_of(self)?)
    }
}

fn check_geometry(device: &DeviceConfig) -> Result<(), Fault> {
    let g = &device.geometry;
    let counts = [
        ("geometry.channels", u64::from(g.channels)),
        (
            "geometry.packages_per_channel",
            g.packages_per_channel.into(),
        ),
        ("geometry.dies_per_package", g.dies_per_package.into()),
        ("geometry.planes_per_die", g.planes_per_die.into()),
        (
            "geometry.blocks_per_plane",
            g.blocks_per_plane.map_or(1, u64::from),
        ),
        ("geometry.pages_per_block", g.pages_per_block.into()),
    ];
    if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
        return Err(Fault::new(key, "expected at least 1, found 0"));
    }
    let page = g.page_size.0;
    if !(page.is_power_of_two() && (UNIT_BYTES..=16 * UNIT_BYTES).contains(&page)) {
        let message = format!(
            "expected a power of two from 4KiB to 64KiB, found {}",
            g.page_size
        );
        return Err(Fault::new("geometry.page_size", message));
    }
    if device.layout.summary_page && g.pages_per_block < 2 {
        return Err(Fault::new(
            "layout.summary_page",
            "a block of one page would hold no data",
        ));
    }
    Ok(())
}

/// The most blocks drawn for one victim: beyond that the choice is greedy for any pool.
const MOST_CHOICES: u32 = 1 << 16;

const MOST_JOURNAL_PAGES: u64 = 1 << 16;

fn check_timing(timing: &Timing) -> Result<(), Fault> {
    let programs = timing.program.iter().map(|&t| ("timing.program", t));
    check_durations(programs.chain([
        ("timing.read", timing.read),
        ("timing.erase", timing.erase),
        ("timing.transfer", timing.transfer),
        ("timing.host_request", timing.host_request),
        ("timing.host_sector", timing.host_sector),
        ("timing.flush_after", timing.flush_after),
    ]))
}

fn check_rest(device: &DeviceConfig) -> Result<(), Fault> {
    if device.timing.program.is_empty() {
        return Err(Fault::new(
            "timing.program",
            "expected at least one duration, found an empty list",
        ));
    }
    check_timing(&device.timing)?;
    let energy = &device.energy;
    let energies = [
        ("energy.read_uj", energy.read_uj),
        ("energy.program_uj", energy.program_uj),
        ("energy.erase_uj", energy.erase_uj),
    ];
    if let Some((key, value)) = energies
        .into_iter()
        .find(|(_, value)| !(value.is_finite() && *value >= 0.0))
    {
        return Err(Fault::new(
            key,
            format!("expected a number of microjoules not below 0, found {value}"),
        ));
    }
    use Level::{Channel, Die, Package, Plane};
    if let Some(absent) = [Channel, Package, Die, Plane]
        .into_iter()
        .find(|level| !device.layout.stripe.contains(level))
    {
        let message =
            format!("expected each of channel, package, die and plane once, found no {absent:?}");
        return Err(Fault::new("layout.stripe", message.to_lowercase()));
    }
    if !(1..=MOST_CHOICES).contains(&device.gc.choices) {
        let message = format!("expected 1 to {MOST_CHOICES}, found {}", device.gc.choices);
        return Err(Fault::new("gc.choices", message));
    }
    if let Bytes::Limited(Size(bytes)) = device.map.cache_bytes
        && bytes < u64::from(ENTRY_BYTES)
    {
        return Err(Fault::new(
            "map.cache_bytes",
            format!("expected room for an entry of {ENTRY_BYTES} bytes at least, found {bytes}"),
        ));
    }
    if device.map.journal_pages.0 > MOST_JOURNAL_PAGES {
        let found = device.map.journal_pages.0;
        let message = format!("expected 0 to {MOST_JOURNAL_PAGES}, found {found}");
        return Err(Fault::new("map.journal_pages", message));
    }
    for (key, size) in [
        ("buffer.size", device.buffer.size),
        ("read_cache.size", device.read_cache.size),
    ] {
        if !(1..=u64::from(u32::MAX)).contains(&pages_of(size)) {
            let message = format!("expected 4KiB, a page, to less than 16TiB, found {size}");
            return Err(Fault::new(key, message));
        }
    }
    if device
        .auto
        .as_ref()
        .is_some_and(|auto| auto.utilization.billionths() == 0)
    {
        return Err(Fault::new(
            "auto.utilization",
            "expected a share above 0, found 0",
        ));
    }
    match device.space.capacity {
        Some(capacity) if capacity.0 == 0 || capacity.0 % UNIT_BYTES != 0 => Err(Fault::new(
            "space.capacity",
            format!("expected a multiple of 4KiB above 0, found {capacity}"),
        )),
        _ => Ok(()),
    }
}

fn check_space(device: &DeviceConfig, shape: &Shape) -> Result<(), Fault> {
    let space_key = if device.space.capacity.is_some() {
        "space.capacity"
    } else {
        "space.over_provisioning"
    };
    let bytes = |units: u64| Size(units * UNIT_BYTES);
    if shape.exported_units == 0 {
        return Err(Fault::new(space_key, "no mapping unit would be exported"));
    }
    if shape.exported_units >= shape.raw_units {
        let message = format!(
            "{} exported of {} raw leaves no block to collect into",
            bytes(shape.exported_units),
            bytes(shape.raw_units)
        );
        return Err(Fault::new(space_key, message));
    }
    if shape.high_watermark < shape.low_watermark {
        let message = format!(
            "{} blocks are fewer than the {} of gc.low_watermark",
            shape.high_watermark, shape.low_watermark
        );
        return Err(Fault::new("gc.high_watermark", message));
    }
    let spare = (shape.raw_units - shape.exported_units) / shape.units_per_block / shape.pools;
    if spare <= shape.high_watermark {
        let message = format!(
            "collection could never free {} of a pool's {} blocks: a full device leaves {spare} spare",
            shape.high_watermark, shape.blocks_per_pool
        );
        return Err(Fault::new("gc.high_watermark", message));
    }
    Ok(())
}

/// Sizes a template for a trace that touches `footprint_units` distinct mapping units: blocks per
/// plane are the fewest with which they are at most the template's share of the exported units, or
/// with which `space.capacity` is exported.
///
/// Planes, then dies, packages and channels are halved while a pool would have fewer than 54
/// blocks. A footprint too small even so gets one die of 54 blocks, and less utilisation.
///
/// # Errors
/// A device that is no template, or that cannot be made large enough.
pub fn auto_device(
    template: &DeviceConfig,
    footprint_units: u64,
) -> Result<DeviceConfig, ConfigError> {
    size_template(template, footprint_units).map_err(|fault| fault.unplaced(PresetKind::Device))
}

fn size_template(template: &DeviceConfig, footprint_units: u64) -> Result<DeviceConfig, Fault> {
    let wanted = wanted_units(template, footprint_units)?;
    check_geometry(template)?;
    let mut device = template.clone();
    device.auto = None;
    device.space.capacity = None;
    loop {
        let blocks = fewest_blocks(&device, wanted)?;
        device.geometry.blocks_per_plane = Some(blocks);
        if shape_of(&device)?.blocks_per_pool >= u64::from(MIN_POOL_BLOCKS) {
            break;
        }
        if !reduce_parallelism(&mut device) {
            // One plane is left, so its blocks are the pool's.
            device.geometry.blocks_per_plane = Some(MIN_POOL_BLOCKS);
            break;
        }
    }
    if let Some(capacity) = template.space.capacity {
        device.space.capacity = Some(capacity);
        device.space.over_provisioning = None;
        device.space.definition = None;
    }
    device.check()?;
    Ok(device)
}

/// The mapping units that a template exports at least.
fn wanted_units(template: &DeviceConfig, footprint_units: u64) -> Result<u64, Fault> {
    let Some(auto) = &template.auto else {
        let message = "expected a template, found a device with a size";
        return Err(Fault::new("auto.utilization", message));
    };
    if let Some(capacity) = template.space.capacity {
        return Ok(capacity.0 / UNIT_BYTES);
    }
    let units = u128::from(footprint_units) * u128::from(BILLION);
    // A share of zero is refused on loading, but a template need not have been loaded.
    let wanted = units.div_ceil(u128::from(auto.utilization.billionths().max(1)));
    Ok(u64::try_from(wanted).unwrap_or(u64::MAX).max(1))
}

/// The fewest blocks per plane with which `device` exports `wanted` units.
fn fewest_blocks(device: &DeviceConfig, wanted: u64) -> Result<u32, Fault> {
    let exports = |blocks: u32| {
        let mut sized = device.clone();
        sized.geometry.blocks_per_plane = Some(blocks);
        shape_of(&sized).map(|shape| shape.exported_units)
    };
    let mut enough = 1_u32;
    while exports(enough)? < wanted {
        let message = "no number of blocks exports the size wanted";
        enough = enough
            .checked_mul(2)
            .ok_or_else(|| Fault::new("geometry.blocks_per_plane", message))?;
    }
    let mut too_few = enough / 2;
    while too_few + 1 < enough {
        let middle = too_few + (enough - too_few) / 2;
        if exports(middle)? < wanted {
            too_few = middle;
        } else {
            enough = middle;
        }
    }
    Ok(enough)
}

/// Halves the innermost level that has more than one; false if none has.
fn reduce_parallelism(device: &mut DeviceConfig) -> bool {
    let g = &mut device.geometry;
    let levels = [
        &mut g.planes_per_die,
        &mut g.dies_per_package,
        &mut g.packages_per_channel,
        &mut g.channels,
    ];
    match levels.into_iter().find(|level| **level > 1) {
        Some(level) => {
            *level /= 2;
            true
        }
        None => false,
    }
}
