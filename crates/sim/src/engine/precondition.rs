//! The state in which a run finds the device.
//!
//! In this order: *fill* writes the upper share of the exported addresses once, in ascending order,
//! with content that equals nothing; *overwrite* rewrites uniformly drawn addresses, as many as pages are
//! exported or until the write amplification settles; *prefill* gives every address that the trace reads before it writes the
//! content the trace says it has. Then all counters, wear and the clock start at 0.
//!
//! Without *overwrite* each address is written once, so that a full device has all its spare space: the fill leaves
//! out what the prefill writes.

use std::convert::Infallible;

use flashlore_content::PageTag;
use flashlore_flash::{Lpn, Tag, When};
use flashlore_ftl::{FtlError, Unhashed};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::error::RunError;
use super::run::{Ticker, prepared};
use super::system::System;
use crate::config::{Overwrite, RunConfig};

/// The amplification has settled when it differs by less than this share between two rounds ...
const SETTLED: f64 = 0.005;
/// ... twice in a row; a round overwrites as many pages as the device exports.
const SETTLED_ROUNDS: u32 = 2;
/// So many rounds are enough whatever happens.
const MOST_ROUNDS: u32 = 60;

/// Pages written between two reports of progress.
const REPORTED_PAGES: u32 = 1 << 16;

/// Counts the pages that preparing writes, and reports them. Preparing takes no time, so whatever waits
/// for its turn on the device is brought to its end now and then: nothing piles up.
pub struct Written<'a, 'ticker> {
    ticker: Option<&'a mut (dyn Ticker + 'ticker)>,
    unreported: u32,
}

impl<'a, 'ticker> Written<'a, 'ticker> {
    /// None so far.
    pub fn new(ticker: Option<&'a mut (dyn Ticker + 'ticker)>) -> Self {
        Self {
            ticker,
            unreported: 0,
        }
    }

    #[inline]
    fn page<S: System>(&mut self, system: &mut S) -> Result<(), RunError> {
        self.unreported += 1;
        if self.unreported < REPORTED_PAGES {
            return Ok(());
        }
        self.unreported = 0;
        system.core_mut().flash_mut().restart();
        prepared(self.ticker.as_deref_mut(), REPORTED_PAGES.into())
    }
}

/// What is read before it is written, by address, and the value where that is known. It is gone through more
/// than once. Not generic: each kind of device would be prepared by code of its own for each source.
pub type Contents<'a> = &'a dyn Fn() -> Box<dyn Iterator<Item = (u32, Option<u32>)> + 'a>;

/// Prepares a device that is empty. `contents` is what is read before it is written, by address, where that is
/// known. Preparing costs no life.
///
/// # Errors
/// A device that cannot take what is asked, a ticker that stops the run.
pub fn prepare<S: System>(
    system: &mut S,
    config: &RunConfig,
    contents: Contents<'_>,
    mut written: Written<'_, '_>,
) -> Result<(), RunError> {
    write_all(system, config, contents, &mut written)?;
    system.core_mut().flush(0).map_err(failed)?;
    system.settle(0).map_err(failed)?;
    system.core_mut().finished().clear();
    system.restart_counters();
    let core = system.core_mut();
    core.restart_wear();
    core.set_endurance(config.device.geometry.endurance);
    core.flash_mut().restart();
    Ok(())
}

/// Writes what a run finds.
fn write_all<S: System>(
    system: &mut S,
    config: &RunConfig,
    contents: Contents<'_>,
    written: &mut Written<'_, '_>,
) -> Result<(), RunError> {
    let state = &config.device.precondition;
    let exported = system.core().options().exported;
    let pages = (f64::from(exported) * state.fill.get()).round() as u32;
    let contents = || contents().filter(|_| state.prefill_from_trace);
    // What is overwritten loses its content: it is prefilled behind that, whether it was filled or not.
    let mut prefilled = vec![false; exported as usize];
    if state.overwrite == Overwrite::None {
        for (lpn, _) in contents() {
            prefilled[lpn as usize] = true;
        }
    }
    for lpn in exported - pages..exported {
        if !prefilled[lpn as usize] {
            system.fill(Lpn(lpn)).map_err(failed)?;
            written.page(system)?;
        }
    }
    let rounds = match state.overwrite {
        Overwrite::None => 0,
        Overwrite::Once => 1,
        Overwrite::Steady => MOST_ROUNDS,
    };
    overwrite(system, exported, rounds, config.host.seed, written)?;
    let in_index = config.system.dedup.prefill_in_index;
    prefill(system, &mut contents(), in_index, written)
}

fn failed(source: FtlError<Infallible>) -> RunError {
    RunError::Prepare { source }
}

/// Overwrites addresses drawn uniformly until the amplification of two rounds agrees, but at most so many
/// rounds.
fn overwrite<S: System>(
    system: &mut S,
    exported: u32,
    rounds: u32,
    seed: u64,
    written: &mut Written<'_, '_>,
) -> Result<(), RunError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut before = 0.0;
    let mut settled = 0;
    for _ in 0..rounds {
        let (programs, writes) = totals(system);
        for _ in 0..exported {
            let lpn = (u128::from(random.next_u64()) * u128::from(exported)) >> 64;
            system.fill(Lpn(lpn as u32)).map_err(failed)?;
            written.page(system)?;
        }
        let (programs_now, writes_now) = totals(system);
        let amplification = (programs_now - programs) as f64 / (writes_now - writes) as f64;
        let same = (amplification - before).abs() < SETTLED * amplification;
        settled = if same { settled + 1 } else { 0 };
        before = amplification;
        if settled == SETTLED_ROUNDS {
            break;
        }
    }
    Ok(())
}

fn totals<S: System>(system: &S) -> (u64, u64) {
    let counters = system.core().counters();
    (counters.programs(), counters.host_writes)
}

/// Writes what the trace expects to find.
fn prefill<S: System>(
    system: &mut S,
    contents: &mut dyn Iterator<Item = (u32, Option<u32>)>,
    in_index: bool,
    written: &mut Written<'_, '_>,
) -> Result<(), RunError> {
    for (lpn, value) in contents {
        match value {
            Some(value) => {
                let tag = PageTag(value);
                let unhashed = (!in_index).then_some(Unhashed::Off);
                system
                    .write(When::now(0), Lpn(lpn), tag, unhashed, false, Tag::NONE)
                    .map_err(failed)?;
            }
            None => system.fill(Lpn(lpn)).map_err(failed)?,
        }
        written.page(system)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Settings, load_device, load_host, load_system};
    use crate::engine::build;
    use crate::engine::system::{Deduplicating, Plain, Simulated};
    use flashlore_content::NoCensus;
    use flashlore_ftl::Policies;
    use flashlore_ftl::content::parts::Past;

    fn config(system: &str, prefill: bool) -> RunConfig {
        let prefill = format!("device.precondition.prefill_from_trace={prefill}");
        let settings = ["device.geometry.blocks_per_plane=60", &prefill];
        let settings = Settings::parse(&settings).unwrap();
        RunConfig {
            device: load_device("ca-ssd-4g", &settings).unwrap().config,
            system: load_system(system, &settings).unwrap().config,
            host: load_host(&settings).unwrap().config,
        }
    }

    /// Units written, and free blocks then, of a device that is full.
    fn written<S: System>(mut system: S, config: &RunConfig) -> (u64, u64) {
        // No two values are equal: each takes a page.
        let contents = (0..4000u32).map(|i| (3 * i, (i % 2 == 0).then_some(i)));
        let contents = || Box::new(contents.clone()) as Box<dyn Iterator<Item = _>>;
        write_all(&mut system, config, &contents, &mut Written::new(None)).unwrap();
        let core = system.core();
        (core.counters().host_writes, core.free_blocks().into())
    }

    #[test]
    fn each_address_is_written_once_and_a_full_device_has_all_its_spare_blocks() {
        for name in ["plain", "ca-ssd", "delta-ftl"] {
            for prefill in [false, true] {
                let config = config(name, prefill);
                let (system, device) = (&config.system, &config.device);
                let flash = build::flash(device).unwrap();
                let options = build::ftl_options(device, 1).unwrap();
                let dedup = build::dedup_options(system, device);
                let found = match name {
                    "plain" => written(Plain::new(flash, options).unwrap(), &config),
                    "ca-ssd" => {
                        let device = Deduplicating::<Simulated<NoCensus>>::new(
                            flash, options, dedup, NoCensus,
                        );
                        written(device.unwrap(), &config)
                    }
                    _ => {
                        let (encoding, encoder) =
                            build::encoding_options(system, device, 1, None).unwrap();
                        let policies = Policies {
                            dedup,
                            encoding,
                            versions: None,
                            encoder,
                        };
                        let device = Deduplicating::<Simulated<_, _, _, Past>>::with_policies(
                            flash, options, policies, NoCensus,
                        );
                        written(device.unwrap(), &config)
                    }
                };
                let shape = config.device.shape().unwrap();
                let per_pool = shape.exported_units / shape.pools;
                let used = per_pool.div_ceil(shape.units_per_block);
                let spare = shape.pools * (shape.blocks_per_pool - used);
                assert_eq!(found, (shape.exported_units, spare), "{name}");
            }
        }
    }
}
