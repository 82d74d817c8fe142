//! A simulated SSD that somebody else submits requests to: a part of an array, or of any other model in simulated
//! time.
//!
//! Any system on any device, prepared as for a run and served by the same host model ([`super::driver`]). The
//! submitter names each request, says when it arrives, and decides how many are outstanding; it learns when the
//! next thing happens, lets time pass, and hears which responses have been given. Time is in nanoseconds, an
//! argument and a result; it never goes back.
//!
//! Invariants: a response is heard once, when time has come to it, in order of time and name. How time passes, in
//! many steps or in few, changes nothing. While requests are outstanding there is a next event, and no response is
//! given before it.

use std::ops::Range;
use std::time::Instant;

use flashlore_flash::{Lpn, Time};
use flashlore_trace::{ByteRange, NO_CONTENT, Op, PageSource, Request, Summary};

use super::devices::{UseDevice, with_device};
use super::driver::{DriveError, Driver, Payload, Response};
use super::error::RunError;
use super::measure::Measured;
use super::precondition::{Contents, Written, prepare};
use super::report::{Buffered, DeviceBaseline, begin, report};
use super::run::{Ticker, check_device, host_of};
use super::system::System;
use crate::config::{RunConfig, UNIT_BYTES};
use crate::results::{RunResult, RunSpeed, peak_rss_bytes};

/// What is asked of the SSD. Several mapping units of 4 KiB are one request, with one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SsdRequest<'a> {
    /// What is asked.
    pub op: Op,
    /// First mapping unit touched.
    pub lpn: Lpn,
    /// Mapping units touched: 0 for a flush, at least 1 for a read or a write.
    pub units: u32,
    /// A write touches the first unit from its middle on.
    pub head_partial: bool,
    /// A write touches the last unit up to its middle.
    pub tail_partial: bool,
    /// What each unit of a write holds afterwards, as a number that is the same for the same content. Systems that
    /// look at content need it.
    pub values: Option<&'a [u32]>,
    /// The size of the delta of each unit of a write from what it replaces, over the size of a page, in 1/65535
    /// and never 0. Systems with `codec.ratio = "trace"` need it.
    pub ratios: Option<&'a [u16]>,
}

impl<'a> SsdRequest<'a> {
    /// Everything that waits in a page buffer is programmed.
    pub const FLUSH: SsdRequest<'static> = SsdRequest::of_units(Op::Flush, Lpn(0), 0);

    const fn of_units(op: Op, lpn: Lpn, units: u32) -> Self {
        SsdRequest {
            op,
            lpn,
            units,
            head_partial: false,
            tail_partial: false,
            values: None,
            ratios: None,
        }
    }

    pub fn read(lpn: Lpn, units: u32) -> Self {
        SsdRequest::of_units(Op::Read, lpn, units)
    }

    /// A write of so many whole units.
    pub fn write(lpn: Lpn, units: u32) -> Self {
        SsdRequest::of_units(Op::Write, lpn, units)
    }

    /// So many units are forgotten.
    pub fn trim(lpn: Lpn, units: u32) -> Self {
        SsdRequest::of_units(Op::Trim, lpn, units)
    }

    /// A range of bytes. A read touches all units in which it lies; a write too, the first and the last in part if
    /// it does not cover them; a trim only those that it covers. A flush has no bytes.
    ///
    /// # Errors
    /// An empty read or write, or a range that ends behind any SSD.
    pub fn of_bytes(op: Op, offset: u64, bytes: u64) -> Result<Self, SsdError> {
        if op == Op::Flush {
            return Ok(SsdRequest::FLUSH);
        }
        let refused = SsdError::Bytes { offset, bytes };
        if bytes == 0 || offset.checked_add(bytes).is_none() {
            return Err(refused);
        }
        let range = ByteRange::new(offset, bytes);
        let Range { start, end } = match op {
            Op::Trim => range.covered(),
            _ => range.touched(),
        };
        let (Ok(lpn), Ok(units)) = (u32::try_from(start), u32::try_from(end - start)) else {
            return Err(refused);
        };
        Ok(SsdRequest {
            head_partial: op == Op::Write && range.begins_within(),
            tail_partial: op == Op::Write && range.ends_within(),
            ..SsdRequest::of_units(op, Lpn(lpn), units)
        })
    }

    /// The same, with what each unit holds afterwards.
    #[must_use]
    pub fn with_values(self, values: &'a [u32]) -> Self {
        let values = Some(values);
        SsdRequest { values, ..self }
    }
}

/// A request that is not taken, or a device that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SsdError {
    /// It is not within the SSD.
    #[error(
        "{op:?} of {units} mapping units of 4 KiB at unit {lpn}: expected a run of at least one unit below \
         {capacity}, and none for a flush"
    )]
    Range {
        /// What was asked.
        op: Op,
        /// The first unit.
        lpn: Lpn,
        units: u32,
        /// Units there are.
        capacity: u32,
    },
    /// A range of bytes that no SSD has.
    #[error(
        "{bytes} bytes at byte {offset}: expected at least one byte, and an end below 2^32 mapping units of 4 KiB"
    )]
    Bytes {
        /// The first byte.
        offset: u64,
        bytes: u64,
    },
    /// It comes before something that was submitted, or to which time has passed.
    #[error("a request at {time} ns, expected none before the present, {now} ns")]
    Past {
        /// When it came.
        time: Time,
        /// The present.
        now: Time,
    },
    /// What is said of its units is not one entry a unit.
    #[error("a {op:?} of {units} units with {found} {what}: expected one for each unit of a write")]
    Entries {
        /// What was asked.
        op: Op,
        units: u32,
        /// Which entries.
        what: &'static str,
        found: usize,
    },
    /// The value has no place among the numbers of values, or a ratio is 0.
    #[error("unit {lpn} is written with {what} {found}: expected {expected}")]
    Entry {
        /// The unit.
        lpn: Lpn,
        /// Which entry.
        what: &'static str,
        found: u32,
        /// What it may be.
        expected: &'static str,
    },
    /// The system needs to know something of what is written, and the request does not say it.
    #[error("a write of unit {lpn} without {what}, which system {system} needs")]
    Missing {
        /// The first unit.
        lpn: Lpn,
        /// Which entries are missing.
        what: &'static str,
        system: String,
    },
    /// Others are outstanding, and this one should be served alone.
    #[error("{outstanding} requests are outstanding, expected none where one is served by itself")]
    Busy { outstanding: u64 },
    /// The device failed before, and what it holds is undefined since.
    #[error("the SSD failed at an earlier request, expected no further one")]
    Failed,
    /// The device cannot serve what was asked.
    #[error(transparent)]
    Device(#[from] DriveError),
}

type Result<T, E = SsdError> = std::result::Result<T, E>;

/// A simulated SSD.
pub struct Ssd<'a> {
    device: Box<dyn Device + 'a>,
    system: String,
    capacity: u32,
    needs_values: bool,
    needs_ratios: bool,
    /// The bytes of values, where they have to be known.
    pages: Option<&'a dyn PageSource>,
    now: Time,
    outstanding: u64,
    failed: bool,
}

impl<'a> Ssd<'a> {
    /// An SSD at time 0, prepared as for a run: `contents` is what the device holds at addresses that are read
    /// before they are written, with the numbers of values where they are known, if
    /// `device.precondition.prefill_from_trace` is set. `pages` are the bytes of values, for systems that encode
    /// them. Of the configuration's host only the seed counts.
    ///
    /// # Errors
    /// A configuration that contradicts itself, or a device that cannot be prepared as asked.
    pub fn new(
        config: &RunConfig,
        contents: impl Iterator<Item = (u32, Option<u32>)> + Clone,
        pages: Option<&'a dyn PageSource>,
    ) -> Result<Self, RunError> {
        Self::prepared(config, contents, pages, None)
    }

    /// As [`Ssd::new`], and a ticker is told of the pages that preparing writes.
    ///
    /// # Errors
    /// As [`Ssd::new`], and a ticker that stops it.
    pub fn prepared(
        config: &RunConfig,
        contents: impl Iterator<Item = (u32, Option<u32>)> + Clone,
        pages: Option<&'a dyn PageSource>,
        ticker: Option<&mut (dyn Ticker + '_)>,
    ) -> Result<Self, RunError> {
        check_device(config, pages)?;
        let maker = Maker {
            config,
            contents: &|| Box::new(contents.clone()),
            ticker,
        };
        Ok(Ssd {
            device: with_device(config, pages, maker)?,
            system: config.system.name.clone(),
            capacity: config.device.shape()?.exported_units as u32,
            needs_values: config.system.dedup.enabled || config.system.needs_bytes(),
            needs_ratios: config.system.needs_ratios(),
            pages: pages.filter(|_| config.system.needs_bytes()),
            now: 0,
            outstanding: 0,
            failed: false,
        })
    }

    /// Capacity in mapping units of 4 KiB.
    pub fn units(&self) -> u32 {
        self.capacity
    }

    /// The present: the latest instant of a request, or to which time has passed.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Requests of which the response has not been heard.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Submits a request under a name of the submitter's. [`Ssd::advance`] tells of the response.
    ///
    /// # Errors
    /// When the request is not within the SSD or lacks what the system needs, or its time is before the present:
    /// it is not taken then. When the device cannot serve it: nothing can be asked of the device afterwards.
    pub fn submit(&mut self, time: Time, id: u64, request: SsdRequest<'_>) -> Result<()> {
        self.check(time, &request)?;
        self.guarded(|device| device.submit(time, id, &request))?;
        self.now = time;
        self.outstanding += 1;
        Ok(())
    }

    /// The next instant at which something happens that may bring a response; nothing if none is outstanding. No
    /// response is given before it unless another request comes, and letting time pass to it makes progress.
    pub fn next_event(&self) -> Option<Time> {
        (self.outstanding > 0)
            .then(|| self.device.next_event())
            .flatten()
    }

    /// Lets time pass to `until` and appends the responses that have been given by then to `heard`, in order of
    /// time and name.
    ///
    /// # Errors
    /// When the device cannot serve what is in flight: nothing can be asked of it afterwards.
    pub fn advance(&mut self, until: Time, heard: &mut Vec<Response>) -> Result<()> {
        let before = heard.len();
        self.guarded(|device| device.advance(until, heard))?;
        self.now = self.now.max(until);
        self.outstanding -= (heard.len() - before) as u64;
        Ok(())
    }

    /// Serves one request by itself and returns when its response is given. The present is that instant
    /// afterwards.
    ///
    /// # Errors
    /// As [`Ssd::submit`], and when other requests are outstanding.
    pub fn serve(&mut self, time: Time, request: SsdRequest<'_>) -> Result<Time> {
        if self.outstanding > 0 {
            let outstanding = self.outstanding;
            return Err(SsdError::Busy { outstanding });
        }
        self.submit(time, 0, request)?;
        let mut heard = Vec::new();
        while let Some(instant) = self.next_event() {
            self.advance(instant, &mut heard)?;
        }
        Ok(self.now)
    }

    /// No more requests come: everything in flight is brought to its end, with what a write buffer is about to
    /// write, and the responses are appended to `heard`.
    ///
    /// # Errors
    /// As [`Ssd::advance`].
    pub fn drain(&mut self, heard: &mut Vec<Response>) -> Result<()> {
        let before = heard.len();
        let mut now = 0;
        self.guarded(|device| {
            now = device.drain(heard)?;
            Ok(())
        })?;
        self.now = self.now.max(now);
        self.outstanding -= (heard.len() - before) as u64;
        Ok(())
    }

    /// Statistics begin anew; requests that arrive from here on are counted. They count from the start otherwise.
    pub fn begin_measuring(&mut self) {
        self.device.begin_measuring();
    }

    /// What the SSD has counted and measured up to the present, as a run reports it: units written by the host,
    /// programs by cause, erases, response times, energy. Requests are counted when they arrive, response times
    /// when they are known. `trace` is what the requests come from.
    pub fn result(&self, trace: &Summary) -> RunResult {
        self.device.result(trace)
    }

    /// Does something with the device, of which nothing is asked after a failure.
    fn guarded(
        &mut self,
        act: impl FnOnce(&mut (dyn Device + 'a)) -> Result<(), DriveError>,
    ) -> Result<()> {
        if self.failed {
            return Err(SsdError::Failed);
        }
        let done = act(&mut *self.device);
        self.failed = done.is_err();
        Ok(done?)
    }

    /// Refuses a request that cannot be taken.
    fn check(&self, time: Time, request: &SsdRequest<'_>) -> Result<()> {
        let &SsdRequest { op, lpn, units, .. } = request;
        let capacity = self.capacity;
        let end = u64::from(lpn) + u64::from(units);
        let fits = match op {
            Op::Flush => units == 0,
            // A trim of bytes may cover no unit.
            Op::Trim => units == 0 || end <= u64::from(capacity),
            Op::Read | Op::Write => units > 0 && end <= u64::from(capacity),
        };
        if !fits {
            return Err(SsdError::Range {
                op,
                lpn,
                units,
                capacity,
            });
        }
        if time < self.now {
            let now = self.now;
            return Err(SsdError::Past { time, now });
        }
        let values = request.values.map(<[u32]>::len);
        let ratios = request.ratios.map(<[u16]>::len);
        for (what, found) in [("values", values), ("ratios", ratios)] {
            if let Some(found) = found.filter(|&found| op != Op::Write || found != units as usize) {
                return Err(SsdError::Entries {
                    op,
                    units,
                    what,
                    found,
                });
            }
        }
        match op {
            Op::Write => self.check_entries(request),
            Op::Read | Op::Trim | Op::Flush => Ok(()),
        }
    }

    /// Refuses a write of which the system does not know what it needs.
    fn check_entries(&self, request: &SsdRequest<'_>) -> Result<()> {
        let &SsdRequest {
            lpn,
            values,
            ratios,
            ..
        } = request;
        let missing = |what| SsdError::Missing {
            lpn,
            what,
            system: self.system.clone(),
        };
        if self.needs_values && values.is_none() {
            return Err(missing("the numbers of its values"));
        }
        if self.needs_ratios && ratios.is_none() {
            return Err(missing("the sizes of its deltas (codec.ratio = \"trace\")"));
        }
        for (lpn, &found) in (lpn.0..).map(Lpn).zip(values.unwrap_or_default()) {
            let known = |pages: &dyn PageSource| pages.fill(found, &mut [0; UNIT_BYTES as usize]);
            let expected = match self.pages {
                _ if found == u32::MAX => "one below 2^32 - 1",
                Some(pages) if !known(pages) => "one whose bytes are known",
                _ => continue,
            };
            return Err(SsdError::Entry {
                lpn,
                what: "value",
                found,
                expected,
            });
        }
        let ratios = ratios.unwrap_or_default();
        match (lpn.0..)
            .map(Lpn)
            .zip(ratios)
            .find(|&(_, &ratio)| ratio == 0)
        {
            Some((lpn, _)) => Err(SsdError::Entry {
                lpn,
                what: "ratio",
                found: 0,
                expected: "one of 1 to 65535",
            }),
            None => Ok(()),
        }
    }
}

/// A device of any kind behind its host model.
trait Device {
    fn submit(&mut self, at: Time, id: u64, request: &SsdRequest<'_>) -> Result<(), DriveError>;
    fn next_event(&self) -> Option<Time>;
    fn advance(&mut self, until: Time, heard: &mut Vec<Response>) -> Result<(), DriveError>;
    /// Answers the instant at which all is done.
    fn drain(&mut self, heard: &mut Vec<Response>) -> Result<Time, DriveError>;
    fn begin_measuring(&mut self);
    fn result(&self, trace: &Summary) -> RunResult;
}

/// A device that has been prepared.
struct Prepared<S> {
    driver: Driver<Box<S>>,
    config: RunConfig,
    base: DeviceBaseline,
    begun: Instant,
}

impl<S: System> Device for Prepared<S> {
    fn submit(&mut self, at: Time, id: u64, request: &SsdRequest<'_>) -> Result<(), DriveError> {
        let payload = Payload {
            values: request.values,
            ratios: request.ratios,
        };
        let request = Request {
            time_ns: at,
            lpn: request.lpn.0,
            units: request.units,
            first_value: NO_CONTENT,
            op: request.op,
            head_partial: request.head_partial,
            tail_partial: request.tail_partial,
        };
        self.driver.submit(at, id, &request, payload, 0)
    }

    fn next_event(&self) -> Option<Time> {
        self.driver.next_event()
    }

    fn advance(&mut self, until: Time, heard: &mut Vec<Response>) -> Result<(), DriveError> {
        self.driver.advance(until, heard)
    }

    fn drain(&mut self, heard: &mut Vec<Response>) -> Result<Time, DriveError> {
        self.driver.drain_and_hear(heard)?;
        Ok(self.driver.now())
    }

    fn begin_measuring(&mut self) {
        self.driver.restart_measuring();
        self.base = begin(&mut self.driver);
        self.begun = Instant::now();
    }

    fn result(&self, trace: &Summary) -> RunResult {
        let driver = &self.driver;
        let (buffering, measured) = (Buffered::of(driver), &driver.measured);
        let span = driver.now().saturating_sub(self.base.time);
        let wall_s = self.begun.elapsed().as_secs_f64();
        let speed = RunSpeed {
            wall_s,
            requests_per_s: measured.requests as f64 / wall_s.max(f64::MIN_POSITIVE),
            simulated_s: span as f64 / 1e9,
            peak_rss_bytes: peak_rss_bytes(),
        };
        let counted = (measured, &buffering);
        let (config, base) = (&self.config, &self.base);
        report(config, trace, driver.device(), counted, base, span, speed)
    }
}

/// Prepares a device.
struct Maker<'r, 't> {
    config: &'r RunConfig,
    contents: Contents<'r>,
    ticker: Option<&'r mut (dyn Ticker + 't)>,
}

impl<'a> UseDevice<'a> for Maker<'_, '_> {
    type Output = Box<dyn Device + 'a>;

    fn with<S: System + 'a>(self, system: S) -> Result<Self::Output, RunError> {
        let Maker {
            config,
            contents,
            ticker,
        } = self;
        let mut system = Box::new(system);
        prepare(&mut *system, config, contents, Written::new(ticker))?;
        let mut driver = Driver::of_caller(system, host_of(config), Measured::default());
        driver.begin_history(None);
        let base = begin(&mut driver);
        Ok(Box::new(Prepared {
            driver,
            config: config.clone(),
            base,
            begun: Instant::now(),
        }))
    }
}
