//! What of an array can be changed while it is open, each by a name: its values as texts, and what they may be.

use std::ops::RangeInclusive;
use std::str::FromStr;

use flashlore_array::icash::{Options, Shape};
use flashlore_delta::PAGE_BYTES;
use flashlore_units::{Bytes, Size};

use super::description::{Running, name_of, named};
use crate::error::ServeError;
use crate::request::Tuned;

const PAGE: u64 = PAGE_BYTES as u64;
/// The most that the dirty target may be, in percent: deltas in the log are many more blocks than the fast medium has
/// slots.
const MOST_DIRTY: u32 = 1000;
/// The slowest write-back: a block a second.
const LEAST_RATE: u64 = PAGE;
/// The most blocks that go home at once.
const LONGEST_BATCH: usize = 1 << 16;
const BATCH: &str = "write-back-batch";

/// The values of everything that can be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    pub options: Options,
    pub running: Running,
}

struct Key {
    name: &'static str,
    /// What it is, as a part of a sentence.
    about: &'static str,
    /// What it may be, likewise.
    expected: &'static str,
    get: fn(&Values) -> String,
    /// Nothing if it cannot be that.
    set: fn(&mut Values, &str) -> Option<()>,
}

const KEYS: [Key; 6] = [
    Key {
        name: "sequential-cutoff",
        about: "bytes behind which a sequential stream passes by the fast medium; 0 lets none pass",
        expected: "a size in whole blocks of 4096 bytes, such as 4MiB, or 0",
        get: |values| Size(u64::from(values.options.sequential_cutoff) * PAGE).to_string(),
        set: |values, text| {
            let Size(bytes) = text.parse().ok()?;
            let blocks = u32::try_from(bytes / PAGE).ok()?;
            values.options.sequential_cutoff = blocks;
            bytes.is_multiple_of(PAGE).then_some(())
        },
    },
    Key {
        name: "dirty-target",
        about: "what is not at home, in percent of the fast medium, above which blocks go home ahead",
        expected: "a number of percent from 0 to 1000",
        get: |values| format!("{}%", values.running.dirty_target),
        set: |values, text| {
            let text = text.strip_suffix('%').unwrap_or(text);
            values.running.dirty_target = number(text, 0..=MOST_DIRTY)?;
            Some(())
        },
    },
    Key {
        name: "write-back-rate",
        about: "bytes a second that go home ahead",
        expected: "a size of 4096 bytes or more, such as 4MiB, or unlimited",
        get: |values| values.running.write_back_rate.to_string(),
        set: |values, text| {
            let rate = text.parse().ok()?;
            values.running.write_back_rate = rate;
            match rate {
                Bytes::Limited(Size(rate)) => (rate >= LEAST_RATE).then_some(()),
                Bytes::Unlimited => Some(()),
            }
        },
    },
    Key {
        name: BATCH,
        about: "blocks that go home at once when room on the fast medium is needed",
        expected: "a number from 1 to 65536",
        get: |values| values.options.write_back_batch.to_string(),
        set: |values, text| {
            values.options.write_back_batch = number(text, 1..=LONGEST_BATCH)?;
            Some(())
        },
    },
    Key {
        name: "scan-every",
        about: "requests between two scans for similar blocks",
        expected: "a number from 1 on",
        get: |values| values.options.scan_every.to_string(),
        set: |values, text| {
            values.options.scan_every = number(text, 1..=u64::MAX)?;
            Some(())
        },
    },
    Key {
        name: "fill",
        about: "when a block that only the slow medium has is copied to the fast one",
        expected: "read, second-read or never",
        get: |values| name_of(values.options.fill),
        set: |values, text| {
            values.options.fill = named(text)?;
            Some(())
        },
    },
];

/// A number of a range.
fn number<N: FromStr + PartialOrd>(text: &str, range: RangeInclusive<N>) -> Option<N> {
    let number = text.parse().ok()?;
    range.contains(&number).then_some(number)
}

impl Values {
    /// Takes over values by their names; the last one of a name counts.
    ///
    /// # Errors
    /// There is no such name, or its value cannot be that: a sentence says what was found and expected.
    pub fn set(&mut self, pairs: &[(String, String)]) -> Result<(), ServeError> {
        for (name, text) in pairs {
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                let names = KEYS.map(|key| key.name).join(", ");
                return Err(ServeError::Usage(format!(
                    "found {name}, expected one of {names}"
                )));
            };
            (key.set)(self, text).ok_or_else(|| {
                ServeError::Usage(format!("{name} is {text:?}, expected {}", key.expected))
            })?;
        }
        Ok(())
    }

    /// Refuses batches that are longer than a log of this shape has room for.
    ///
    /// # Errors
    /// A sentence that says how long they may be.
    pub fn demand_log(&self, shape: &Shape) -> Result<(), ServeError> {
        let fits = |&batch: &usize| {
            let options = Options {
                write_back_batch: batch,
                ..self.options.clone()
            };
            let least = options.least_log_segments(shape.segment_blocks, shape.journal_blocks);
            least <= shape.log_segments
        };
        let asked = self.options.write_back_batch;
        // Where none fits, the array itself says what its log lacks.
        match (1..=asked).rev().find(fits) {
            Some(most) if most < asked => Err(ServeError::Usage(format!(
                "{BATCH} is \"{asked}\", expected a number from 1 to {most}: the log of this array has room for no more"
            ))),
            _ => Ok(()),
        }
    }

    /// All of them, with what they mean.
    pub fn told(&self) -> Vec<Tuned> {
        let told = KEYS.iter().map(|key| Tuned {
            key: key.name.to_owned(),
            value: (key.get)(self),
            about: key.about.to_owned(),
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values {
            options: Options::new(100, 200),
            running: Running::default(),
        }
    }

    fn pair(key: &str, value: &str) -> Vec<(String, String)> {
        vec![(key.to_owned(), value.to_owned())]
    }

    #[test]
    fn what_is_told_can_be_said_and_changes_nothing() {
        let mut values = values();
        let before = values.clone();
        for Tuned { key, value, .. } in before.told() {
            values.set(&pair(&key, &value)).unwrap();
        }
        assert_eq!(values, before);
    }

    #[test]
    fn each_key_takes_what_it_expects_and_says_what_it_found() {
        for (key, good, bad) in [
            (
                "sequential-cutoff",
                &["0", "8KiB", "4MiB"][..],
                &["1000", "x", "-1", "1TiB5", "17TiB"][..],
            ),
            (
                "dirty-target",
                &["0%", "10%", "1000%"],
                &["1001", "5 %", "", "%"],
            ),
            (
                "write-back-rate",
                &["4KiB", "64MiB", "unlimited"],
                &["0", "4095", "fast"],
            ),
            ("write-back-batch", &["1", "65536"], &["0", "65537", "1.5"]),
            (
                "scan-every",
                &["1", "18446744073709551615"],
                &["0", "never"],
            ),
            ("fill", &["read", "second-read", "never"], &["Read", ""]),
        ] {
            for text in good {
                let mut values = values();
                values.set(&pair(key, text)).unwrap();
                let told = values.told();
                let told = told.iter().find(|tuned| tuned.key == key).unwrap();
                assert_eq!(told.value, *text);
            }
            for text in bad {
                let refused = values().set(&pair(key, text)).unwrap_err();
                let sentence = refused.to_string();
                assert!(refused.is_usage());
                let found = format!("{key} is {text:?}, expected ");
                assert!(sentence.starts_with(&found), "{sentence}");
            }
        }
        let unknown = values().set(&pair("cutoff", "1")).unwrap_err().to_string();
        assert!(
            unknown.starts_with("found cutoff, expected one of sequential-cutoff, dirty-target, "),
            "{unknown}"
        );
    }
}
