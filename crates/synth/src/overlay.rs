//! Overlays: the values of a profile on the addresses of another trace, page write by page write in
//! the order of the trace.
//!
//! - What each page holds is followed, so that silent writes and the death of values are the model's.
//!   Trims are not seen: a trimmed page is taken to hold what it held.
//! - Which pages are hot is not known; no page is, so that `hot_new` and `hot_reuse` have no effect.
//! - How many page writes the trace has is not known while it is read. Distinct values therefore grow
//!   steadily, whatever the profile's exponent of growth: `unique` of the writes so far are new,
//!   silent or reborn in their shares, at every length.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashlore_trace::workload::CurrentValues;
use flashlore_trace::{MakeOverlay, NamedOverlay, Overlay};

use crate::draw::Draw;
use crate::error::ProfileError;
use crate::presets::load_profile;
use crate::profile::{Values, profile_hash};
use crate::source::{PREFIX, number, unknown};
use crate::values::ValueStream;

/// Seed of an overlay that names none.
const SEED: u64 = 1;

/// More page writes than a trace has, and a power of two: shares of it are exact.
const ENDLESS: f64 = (1u64 << 52) as f64;

/// The overlay that `NAME` or `FILE`, and perhaps `,seed=N` and `,hash=HASH` behind it, ask for. It
/// is recorded with its seed and the hash of its text.
///
/// # Errors
/// When there is no such profile, it cannot be used, it has no values, or its hash is another one.
pub fn parse(spec: &str) -> Result<NamedOverlay, ProfileError> {
    let mut parts = spec.split(',');
    let name = parts.next().unwrap_or_default();
    let (mut seed, mut hash) = (SEED, None);
    for part in parts {
        match part.split_once('=') {
            Some(("seed", value)) => seed = number(name, part, value)?,
            Some(("hash", value)) => hash = Some(value),
            _ => return Err(unknown(name, part, "seed=N or hash=HASH")),
        }
    }
    let (found, make) = overlay(name, seed)?;
    if let Some(wanted) = hash.filter(|wanted| *wanted != found) {
        return Err(ProfileError::Setting {
            name: name.to_owned(),
            message: format!(
                "its hash is {found}, expected {wanted}: the profile is not the one that was used"
            ),
        });
    }
    let parameters = [("hash", found), ("seed", seed.to_string())];
    let parameters = parameters.map(|(key, value)| (key.to_owned(), value));
    Ok(NamedOverlay::new(
        format!("{PREFIX}{name}"),
        BTreeMap::from(parameters),
        make,
    ))
}

/// The overlay that results recorded, ready for use again.
///
/// # Errors
/// When it is no profile's, or as [`parse`].
pub fn restore(recorded: &NamedOverlay) -> Result<NamedOverlay, ProfileError> {
    let text = recorded.to_string();
    match text.strip_prefix(PREFIX) {
        Some(spec) => parse(spec),
        None => Err(unknown(&text, recorded.name(), "profile:NAME")),
    }
}

/// A profile's hash, and what makes its overlays.
fn overlay(name: &str, seed: u64) -> Result<(String, MakeOverlay), ProfileError> {
    let (profile, text) = load_profile(name)?;
    let Some(mut model) = profile.values else {
        return Err(ProfileError::Invalid {
            origin: name.to_owned(),
            key: "values",
            message: "the profile is of addresses alone and has no values to lay over a trace"
                .to_owned(),
        });
    };
    model.growth = 1.0;
    let make = move || -> Box<dyn Overlay> { Box::new(ProfileOverlay::new(&model, seed)) };
    Ok((profile_hash(&text), Arc::new(make)))
}

/// The values of one pass.
struct ProfileOverlay {
    values: ValueStream,
    held: CurrentValues,
    value_ids: u32,
}

impl ProfileOverlay {
    fn new(model: &Values, seed: u64) -> Self {
        ProfileOverlay {
            values: ValueStream::new(model, ENDLESS, Draw::new(seed, 1)),
            held: CurrentValues::default(),
            value_ids: 0,
        }
    }
}

impl Overlay for ProfileOverlay {
    fn write(&mut self, device: u32, unit: u64, _number: u64) -> u32 {
        let before = self.held.get(device, unit);
        let value = self.values.write(before, false);
        self.held.replace(device, unit, value);
        self.value_ids = self.value_ids.max(value + 1);
        value
    }

    fn value_ids(&self) -> u32 {
        self.value_ids
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// Values of `writes` page writes over 20,000 pages of two devices.
    fn values(make: &MakeOverlay, writes: u64) -> Vec<(u32, u64, u32)> {
        let mut overlay = make();
        let mut draw = Draw::new(5, 0);
        let all = (0..writes).map(|number| {
            let page = draw.below(20_000);
            let (device, unit) = (page % 2, u64::from(page / 2) * 3);
            let value = overlay.write(device, unit, number);
            assert!(value < overlay.value_ids());
            (device, unit, value)
        });
        all.collect()
    }

    #[test]
    fn shares_are_the_profiles_at_every_length() {
        let (_, make) = overlay("mail", 3).unwrap();
        for writes in [50_000, 200_000] {
            let all = values(&make, writes);
            let distinct: HashSet<u32> = all.iter().map(|write| write.2).collect();
            let unique = distinct.len() as f64 / writes as f64;
            assert!((unique - 0.0783).abs() < 0.01, "{unique}");
            let mut held = HashMap::new();
            let silent = all
                .iter()
                .filter(|&&(device, unit, value)| held.insert((device, unit), value) == Some(value))
                .count();
            let silent = silent as f64 / writes as f64;
            assert!((silent - 0.08).abs() < 0.01, "{silent}");
        }
    }

    #[test]
    fn passes_repeat_and_seeds_differ() {
        let (_, make) = overlay("web", 3).unwrap();
        assert_eq!(values(&make, 5_000), values(&make, 5_000));
        let (_, other) = overlay("web", 4).unwrap();
        assert_ne!(values(&make, 5_000), values(&other, 5_000));
    }

    #[test]
    fn what_is_recorded_is_restored() {
        let named = parse("mail,seed=9").unwrap();
        assert_eq!(named.name(), "profile:mail");
        assert_eq!(named.parameters()["seed"], "9");
        assert_eq!(restore(&named).unwrap(), named);
        let error = parse("mail,hash=0123").unwrap_err().to_string();
        assert!(error.contains("is not the one that was used"), "{error}");
        let error = parse("mail,sed=9").unwrap_err().to_string();
        assert!(error.contains("'sed=9' is no setting"), "{error}");
    }
}
