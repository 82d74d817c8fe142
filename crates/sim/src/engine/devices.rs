//! Which device a configuration asks for: the plain one, or one with the policies of its system. What is done
//! with it is compiled for each kind.

use flashlore_content::{Ledger, NoCensus, NoEncoder, PageTag, ValueLedger};
use flashlore_flash::sim::NandSim;
use flashlore_ftl::content::parts::{Past, Present};
use flashlore_ftl::error::OptionsError;
use flashlore_ftl::map_cache::CacheOptions;
use flashlore_ftl::{FtlOptions, Policies};
use flashlore_trace::PageSource;

use super::build;
use super::error::RunError;
use super::system::{Deduplicating, Plain, Simulated, System};
use super::trap::Trap;
use crate::config::RunConfig;

/// What is done with a device.
pub trait UseDevice<'a> {
    /// What comes of it.
    type Output;

    /// Does it with an empty device, which borrows no longer than `'a`.
    ///
    /// # Errors
    /// Whatever may fail.
    fn with<S: System + 'a>(self, system: S) -> Result<Self::Output, RunError>;
}

/// Builds the device of a configuration that has been checked. `pages` are the bytes of values, for systems
/// that encode them.
///
/// # Errors
/// Settings that cannot work together, and what the use of the device answers.
pub fn with_device<'a, U: UseDevice<'a>>(
    config: &RunConfig,
    pages: Option<&'a dyn PageSource>,
    user: U,
) -> Result<U::Output, RunError> {
    let device = &config.device;
    let dedup = &config.system.dedup;
    let seed = config.host.seed;
    let flash = build::flash(device)?;
    let mut ftl = build::ftl_options(device, seed)?;
    ftl.collect.sealed_before_window = build::prefers_old_blocks(&config.system);
    let refused = |source| refused(config, source);
    let cache = build::cache_options(&config.system, device);
    if config.system.keeps_parities()
        && let Some(versions) = build::versions_options(&config.system, device)?
    {
        let encoder = build::lengths(&config.system, seed, pages)?;
        return user.with(Trap::new(flash, ftl, versions, encoder).map_err(refused)?);
    }
    if config.system.encodes() || config.system.history.enabled {
        let (delta, encoder) = build::encoding_options(&config.system, device, seed, pages)?;
        let policies = Policies {
            dedup: build::dedup_options(&config.system, device),
            encoding: delta,
            versions: build::versions_options(&config.system, device)?,
            encoder,
        };
        let ledger = dedup.oracle.then(ValueLedger::default);
        return match cache {
            None => {
                let system = Deduplicating::with_policies(flash, ftl, policies, ledger);
                user.with(system.map_err(refused)?.with_prefetch(dedup.prefetch))
            }
            Some(cache) => {
                let system = Deduplicating::<Simulated<_, _, _, Past>>::with_map_cache(
                    flash, ftl, policies, ledger, cache,
                );
                user.with(system.map_err(refused)?.with_prefetch(dedup.prefetch))
            }
        };
    }
    match (dedup.enabled, cache) {
        (false, None) => user.with(Plain::new(flash, ftl).map_err(refused)?),
        (false, Some(cache)) => {
            user.with(Plain::with_map_cache(flash, ftl, cache).map_err(refused)?)
        }
        (true, cache) if dedup.oracle => {
            let ledger = ValueLedger::default();
            deduplicating(config, (flash, ftl), cache, ledger, user)
        }
        (true, cache) => deduplicating(config, (flash, ftl), cache, NoCensus, user),
    }
}

/// A device that deduplicates, with or without somebody who names programs.
fn deduplicating<'a, L: Ledger<PageTag> + 'a, U: UseDevice<'a>>(
    config: &RunConfig,
    (flash, ftl): (NandSim, FtlOptions),
    cache: Option<CacheOptions>,
    ledger: L,
    user: U,
) -> Result<U::Output, RunError> {
    let policy = build::dedup_options(&config.system, &config.device);
    let degree = config.system.dedup.prefetch;
    let refused = |source| refused(config, source);
    match cache {
        None => {
            let system = Deduplicating::new(flash, ftl, policy, ledger).map_err(refused)?;
            user.with(system.with_prefetch(degree))
        }
        Some(cache) => {
            let policies = Policies {
                dedup: policy,
                encoding: None,
                versions: None,
                encoder: NoEncoder,
            };
            let system = Deduplicating::<Simulated<_, _, _, Present>>::with_map_cache(
                flash, ftl, policies, ledger, cache,
            );
            user.with(system.map_err(refused)?.with_prefetch(degree))
        }
    }
}

fn refused(config: &RunConfig, source: OptionsError) -> RunError {
    RunError::Options {
        device: config.device.name.clone(),
        source,
    }
}
