//! What fails while a volume or an array is open, told when it happens.
//!
//! A client sees the number of an error, and many ask again without a word; so whoever runs the server hears of it
//! from here: of each failure of a medium, and of each request that failed for another reason than the client's. The
//! first ones are told one by one, later ones when their number has doubled: a medium that is gone fills no log.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flashlore_medium::{Medium, Watched};
use flashlore_volume::disk::filters::{Filter, Request};
use flashlore_volume::disk::{DiskError, ErrorKind};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::moment::{InstantNs, Time};

/// So many are told one by one.
const TOLD_EACH: u64 = 16;

type Teller = Box<dyn Fn(&str) + Send + Sync>;

/// What failed beneath a volume or an array since it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// How much.
    pub count: u64,
    /// When something failed last.
    pub at: InstantNs,
    /// What it was, as a sentence.
    pub last: String,
}

#[derive(Default)]
struct Inner {
    failures: Failures,
    teller: Option<Teller>,
}

/// Hears of failures, tells them and remembers the last one.
#[derive(Default)]
pub struct Troubles(Mutex<Inner>);

impl fmt::Debug for Troubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Troubles").field(&self.failures()).finish()
    }
}

impl Troubles {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// From here on `teller` hears of failures.
    pub fn tell(&self, teller: Teller) {
        self.lock().teller = Some(teller);
    }

    pub fn failures(&self) -> Option<Failures> {
        let failures = self.lock().failures.clone();
        Some(failures).filter(|failures| failures.count > 0)
    }

    /// Notes a failure.
    pub fn note(&self, what: String) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since.map_or(0, |since| since.as_nanos() as u64);
        let mut inner = self.lock();
        let count = inner.failures.count + 1;
        if let Some(teller) = &inner.teller {
            match count {
                _ if count < TOLD_EACH => teller(&format!("{}: {what}", Time(at))),
                _ if count.is_power_of_two() => teller(&format!(
                    "{}: {what} (failure {count}, the next one that is told is failure {})",
                    Time(at),
                    2 * count
                )),
                _ => {}
            }
        }
        inner.failures = Failures {
            count,
            at,
            last: what,
        };
    }
}

/// A medium whose failures are noted.
pub(crate) fn watched<M: Medium + 'static>(
    medium: M,
    troubles: &Arc<Troubles>,
) -> impl Medium + use<M> + 'static {
    let troubles = Arc::clone(troubles);
    Watched::new(medium, move |error| troubles.note(error.to_string()))
}

/// Notes the requests to a device that fail.
pub(crate) struct Noted(pub Arc<Troubles>);

impl Filter for Noted {
    fn around(
        &self,
        request: Request<'_>,
        inner: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        inner().inspect_err(|error| {
            if error.kind() == ErrorKind::Failed {
                self.0
                    .note(format!("{} failed: {error}", described(request)));
            }
        })
    }
}

fn described(request: Request<'_>) -> String {
    match request {
        Request::Read(at, length) => format!("a read of {length} bytes at {at}"),
        Request::Write(at, data) => format!("a write of {} bytes at {at}", data.len()),
        Request::Zero(at, length, _) => format!("a write of {length} zeroes at {at}"),
        Request::Trim(at, length) => format!("a trim of {length} bytes at {at}"),
        Request::Flush => "a flush".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failures_are_told_and_later_ones_now_and_then() {
        let troubles = Troubles::default();
        assert_eq!(troubles.failures(), None);
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        troubles.tell(Box::new(move |text| {
            hears.lock().push(text.to_owned());
        }));
        for number in 1..=1000 {
            troubles.note(format!("failure of {number}"));
        }
        let told = told.lock();
        let number = |text: &String| {
            let (_, behind) = text.split_once("failure of ").unwrap();
            let number = behind.split(' ').next().unwrap();
            number.parse::<u64>().unwrap()
        };
        let numbers: Vec<u64> = told.iter().map(number).collect();
        let expected: Vec<u64> = (1..16).chain([16, 32, 64, 128, 256, 512]).collect();
        assert_eq!(numbers, expected);
        let failures = troubles.failures().unwrap();
        assert_eq!((failures.count, &*failures.last), (1000, "failure of 1000"));
    }
}
