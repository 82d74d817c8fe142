//! Volumes and arrays, open in this process or served by another one.
//!
//! What is asked of them and answered crosses as the JSON of the control socket (`flashlore_serve::request`); bytes
//! are bytes.
//!
//! Invariants: nobody holds the interpreter lock while a volume works, nor waits for it while holding a volume; a
//! close waits for the calls of other threads that have begun; of a volume that its parent process has open a forked
//! child touches nothing, because the threads and locks behind it are not whole there.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashlore_command::error::CliError;
use flashlore_command::volumes;
use flashlore_medium::{Access, Mode};
use flashlore_serve::array::ArrayService;
use flashlore_serve::clock::even;
use flashlore_serve::control::Remote;
use flashlore_serve::request::MOST_READ;
use flashlore_serve::{Answer, Budget, Home, Request, ServeError, Served, served};
use flashlore_sim::config::Size;
use flashlore_volume::disk::range::check_range;
use flashlore_volume::disk::{BlockDevice, DiskError};
use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{raised, usage};

/// Bytes that are read or written between two looks at the signals; pieces end at multiples of it, so that no page is
/// cut.
const PIECE: u64 = MOST_READ;

/// Makes a volume or an array from the arguments of the command `create`, and answers a sentence about it.
#[pyfunction]
pub fn create_volume(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<String> {
    py.detach(|| volumes::create(arguments)).map_err(raised)
}

/// Checks a volume or an array that nobody has open, and answers what `check --json` prints.
#[pyfunction]
pub fn check_volume(
    py: Python<'_>,
    directory: PathBuf,
    direct: bool,
    quick: bool,
    memory: Option<&str>,
) -> PyResult<String> {
    let budget = Budget {
        memory: bytes("memory", memory)?,
        index: None,
    };
    let checked = py.detach(|| volumes::check(&directory, direct, quick, budget));
    Ok(checked.map_err(raised)?.to_string())
}

/// A disk of a volume or an array: number, name, bytes.
type Shape = (u8, String, u64);

/// A volume or an array: open here, or served by another process.
enum Open {
    Here {
        service: Box<dyn Served>,
        /// In the order of the shapes.
        devices: Vec<Arc<dyn BlockDevice>>,
        /// Whether it was asked to change anything.
        changed: AtomicBool,
    },
    Served(Mutex<Remote>),
}

impl Open {
    fn here(home: Home, mode: Mode, slow_alone: bool) -> Result<Self, ServeError> {
        let service = match slow_alone {
            true => Box::new(ArrayService::slow_alone(
                home,
                mode,
                even(volumes::clocks()),
            )?),
            false => served::open(&home, mode, volumes::clocks(), Access::Change)?,
        };
        let lives = service.lives().into_iter();
        Ok(Open::Here {
            devices: lives.map(|live| live.device).collect(),
            service,
            changed: AtomicBool::new(false),
        })
    }

    fn ask(&self, request: &Request) -> Result<Answer, ServeError> {
        match self {
            Open::Here {
                service, changed, ..
            } => {
                if !request.only_looks() {
                    changed.store(true, Ordering::Relaxed);
                }
                service.carry_out(request)
            }
            Open::Served(remote) => {
                let mut remote = remote.lock();
                remote.ask(request)
            }
        }
    }

    /// The disks, and whether it is an array.
    fn shapes(&self, home: &Home) -> Result<(Vec<Shape>, bool), ServeError> {
        // What is stored is counted for the answer about a volume, which takes time.
        if let Open::Here { service, .. } = self
            && service.volume().is_some()
        {
            let lives = service.lives().into_iter();
            let shape = lives.map(|live| (0, live.name, live.device.size()));
            return Ok((shape.collect(), false));
        }
        match self.ask(&Request::Info)? {
            Answer::Info(info) => Ok((vec![(0, home.name(), info.size)], false)),
            Answer::Array(info) => {
                let machines = info.machines.into_iter();
                let shape = machines.map(|machine| (machine.number, machine.name, machine.size));
                Ok((shape.collect(), true))
            }
            _ => Err(unexpected()),
        }
    }

    /// Fills `bytes` from a disk, as it is or was at an instant.
    fn read(&self, from: DiskPlace, at: Option<Past>, bytes: &mut [u8]) -> Result<(), ServeError> {
        let allow_missing = at.is_some_and(|past| past.allow_missing);
        let text = at.map(|past| format!("ns:{}", past.instant));
        match self {
            Open::Here {
                service, devices, ..
            } => match (at.zip(text), service.volume()) {
                (None, _) => Ok(devices[from.disk].read(from.offset, bytes)?),
                (Some((_, text)), Some(volume)) => {
                    let instant = volume.resolve(&text)?;
                    volume.read_at(instant, from.offset, bytes, allow_missing)
                }
                // It says that an array has no past.
                (Some((_, moment)), None) => service
                    .carry_out(&Request::Resolve { moment })
                    .and(Err(unexpected())),
            },
            Open::Served(_) => {
                let answer = self.ask(&Request::Read {
                    at: text,
                    machine: from.machine,
                    offset: from.offset,
                    length: bytes.len() as u64,
                    allow_missing,
                })?;
                let read = answer.into_bytes(bytes.len() as u64);
                bytes.copy_from_slice(&read.ok_or_else(unexpected)?);
                Ok(())
            }
        }
    }

    /// Has a disk changed.
    fn change(
        &self,
        disk: usize,
        change: impl FnOnce(&dyn BlockDevice) -> Result<(), DiskError>,
    ) -> Result<(), ServeError> {
        match self {
            Open::Here {
                devices, changed, ..
            } => {
                changed.store(true, Ordering::Relaxed);
                Ok(change(&*devices[disk])?)
            }
            Open::Served(_) => Err(ServeError::Refused(
                "another process serves it, and whoever writes does it there: over NBD, or through the mounted file"
                    .to_owned(),
            )),
        }
    }

    /// Ends the use. A volume that was only looked at may be on a store that is full.
    fn close(self) -> Result<(), ServeError> {
        match self {
            Open::Here {
                service, changed, ..
            } => match service.close() {
                Err(_) if !changed.into_inner() => Ok(()),
                closed => Ok(closed?),
            },
            Open::Served(_) => Ok(()),
        }
    }
}

/// An instant that is read.
#[derive(Clone, Copy)]
struct Past {
    instant: u64,
    /// Zeros for what was purged.
    allow_missing: bool,
}

/// Where on which disk.
#[derive(Clone, Copy)]
struct DiskPlace {
    /// Its position among the disks.
    disk: usize,
    /// Its number, of an array.
    machine: Option<u8>,
    offset: u64,
}

/// An answer that does not answer what was asked: the server is another version.
fn unexpected() -> ServeError {
    ServeError::Refused("the server answered something else, it may be another version".to_owned())
}

/// A range of bytes in pieces.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = Range<u64>> {
    let end = offset + length;
    let mut next = offset;
    std::iter::from_fn(move || {
        let from = next;
        next = ((from / PIECE + 1) * PIECE).min(end);
        (from < end).then_some(from..next)
    })
}

/// A volume or an array. `flashlore.Volume` is this with types.
#[pyclass(frozen, module = "flashlore._core")]
pub struct Volume {
    directory: PathBuf,
    shapes: Vec<Shape>,
    is_array: bool,
    is_served: bool,
    /// Whether it is open here with all that it takes to write.
    is_writable: bool,
    /// The process that opened it.
    process: u32,
    closed: AtomicBool,
    /// Nothing once it is closed.
    open: RwLock<Option<Open>>,
}

impl Volume {
    fn raise(&self, error: ServeError) -> PyErr {
        refused(&self.directory, error)
    }

    /// Refuses what a child asks of the volume that its parent has open.
    fn demand_own(&self) -> PyResult<()> {
        let process = std::process::id();
        if process == self.process {
            return Ok(());
        }
        Err(self.raise(ServeError::Refused(format!(
            "process {} opened it, and {process} was forked from that: a child opens volumes itself, after its parent \
             has closed them and before it forks",
            self.process
        ))))
    }

    /// Does something with it while it stays open.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Open) -> Result<R, ServeError> + Send,
    ) -> PyResult<R> {
        self.demand_own()?;
        let done = py.detach(|| {
            let open = self.open.read();
            act(open.as_ref().ok_or(DiskError::Closed)?)
        });
        done.map_err(|error| self.raise(error))
    }

    /// The place, if all bytes from it on lie on the disk.
    fn place(&self, disk: usize, offset: u64, length: u64) -> PyResult<DiskPlace> {
        let (number, _, size) = self.shapes[disk];
        check_range(size, offset, length).map_err(|error| self.raise(error.into()))?;
        Ok(DiskPlace {
            disk,
            machine: self.is_array.then_some(number),
            offset,
        })
    }
}

/// A size that was given as a number of bytes or with a unit.
fn bytes(what: &str, given: Option<&str>) -> PyResult<Option<u64>> {
    let size = given.map(Size::from_str).transpose();
    let size = size.map_err(|error| usage(format!("{what}: {error}")))?;
    Ok(size.map(|size| size.0))
}

/// Bytes beyond the end are the caller's fault; everything else is what the core says it is.
fn refused(directory: &Path, error: ServeError) -> PyErr {
    let error = match error {
        ServeError::Disk(DiskError::OutOfRange { .. }) => ServeError::Usage(error.to_string()),
        error => error,
    };
    raised(CliError::serve(directory, error))
}

#[pymethods]
impl Volume {
    /// Opens what a directory holds, or connects to whoever serves it.
    #[new]
    fn open(
        py: Python<'_>,
        directory: PathBuf,
        direct: bool,
        slow_alone: bool,
        memory: Option<&str>,
        index: Option<&str>,
    ) -> PyResult<Self> {
        let budget = Budget {
            memory: bytes("memory", memory)?,
            index: bytes("index", index)?,
        };
        let mode = match direct {
            true => Mode::Direct,
            false => Mode::Buffered,
        };
        let home = Home::new(&directory).within(budget);
        let opened = py.detach(|| {
            let remote = if slow_alone {
                None
            } else {
                Remote::connect(&home)
            };
            let open = match remote {
                Some(remote) => Open::Served(Mutex::new(remote)),
                None => Open::here(home.clone(), mode, slow_alone)?,
            };
            Ok((open.shapes(&home)?, open))
        });
        let ((shapes, is_array), open) = opened.map_err(|error| refused(&directory, error))?;
        Ok(Volume {
            directory,
            shapes,
            is_array,
            is_served: matches!(open, Open::Served(_)),
            is_writable: matches!(open, Open::Here { .. }) && !slow_alone,
            process: std::process::id(),
            closed: AtomicBool::new(false),
            open: RwLock::new(Some(open)),
        })
    }

    /// Number, name and bytes of each disk: one of a volume, one a machine of an array.
    fn shapes(&self) -> Vec<Shape> {
        self.shapes.clone()
    }

    /// Whether another process serves it.
    fn is_served(&self) -> bool {
        self.is_served
    }

    /// Whether it can be written here.
    fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Whether it was closed.
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Has a request carried out; both are JSON.
    fn ask(&self, py: Python<'_>, request: &str) -> PyResult<String> {
        let parsed: Result<Request, _> = serde_json::from_str(request);
        let request = parsed.map_err(|error| {
            self.raise(ServeError::Usage(format!(
                "expected a request as JSON: {error}"
            )))
        })?;
        self.with(py, |open| {
            let answer = open.ask(&request)?;
            serde_json::to_string(&answer).map_err(|_| unexpected())
        })
    }

    /// Refuses a range that does not lie on a disk.
    fn demand(&self, disk: usize, offset: u64, length: u64) -> PyResult<()> {
        self.place(disk, offset, length).map(drop)
    }

    /// Bytes of a disk, as they are or were at an instant; zeros for what was purged of it, if that is allowed.
    fn read<'py>(
        &self,
        py: Python<'py>,
        disk: usize,
        at: Option<u64>,
        offset: u64,
        length: u64,
        allow_missing: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let place = self.place(disk, offset, length)?;
        let at = at.map(|instant| Past {
            instant,
            allow_missing,
        });
        PyBytes::new_with(py, length as usize, |mut bytes| {
            for piece in pieces(offset, length) {
                let part;
                (part, bytes) = bytes.split_at_mut((piece.end - piece.start) as usize);
                let from = DiskPlace {
                    offset: piece.start,
                    ..place
                };
                self.with(py, |open| open.read(from, at, part))?;
                py.check_signals()?;
            }
            Ok(())
        })
    }

    /// Writes bytes.
    fn write(&self, py: Python<'_>, disk: usize, offset: u64, data: &[u8]) -> PyResult<()> {
        self.place(disk, offset, data.len() as u64)?;
        let mut left = data;
        for piece in pieces(offset, data.len() as u64) {
            let part;
            (part, left) = left.split_at((piece.end - piece.start) as usize);
            self.with(py, |open| {
                open.change(disk, |device| device.write(piece.start, part))
            })?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Forgets the whole pages of a range.
    fn trim(&self, py: Python<'_>, disk: usize, offset: u64, length: u64) -> PyResult<()> {
        self.place(disk, offset, length)?;
        self.with(py, |open| {
            open.change(disk, |device| device.trim(offset, length))
        })
    }

    /// Ends the use of it, once: everything is durable then. Waits for calls of other threads.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.demand_own()?;
        self.closed.store(true, Ordering::Relaxed);
        let closed = py.detach(|| {
            let mut open = self.open.write();
            open.take().map_or(Ok(()), Open::close)
        });
        closed.map_err(|error| self.raise(error))
    }
}

impl Drop for Volume {
    /// What was not closed is released as after a crash.
    fn drop(&mut self) {
        let open = self.open.get_mut().take();
        if std::process::id() != self.process {
            // The threads that its end would wait for are its parent's.
            std::mem::forget(open);
            return;
        }
        // Maintenance may be syncing the medium; without an interpreter to give the lock back to, it is dropped too.
        Python::try_attach(|py| py.detach(|| drop(open)));
    }
}
