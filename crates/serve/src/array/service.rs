//! An open array and what can be asked of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashlore_array::ArrayError;
use flashlore_array::element::Traffic;
use flashlore_array::icash::parameters::SEGMENT_BYTES;
use flashlore_array::icash::{self, ICash, Image, Options, SlowAlone, TooBig};
use flashlore_array::index::{Address, ArrayBlock};
use flashlore_delta::{PAGE_BYTES, Page};
use flashlore_medium::{Access, Cause, MediumError, Mode, Operation};
use flashlore_volume::disk::DiskError;
use flashlore_volume::disk::live::Clock;
use parking_lot::Mutex;

use super::background::Background;
use super::description::{Description, Running, SYSTEM, name_of};
use super::machines::Machines;
use super::parts::{element_and_last_use, media, slow};
use super::store::{Store, dirty_most};
use super::tune::Values;
use crate::clients::Clients;
use crate::error::ServeError;
use crate::home::Home;
use crate::metrics::{self, text};
use crate::request::{
    Answer, ArrayInfo, ElementInfo, MachineInfo, Request, TrafficInfo, Unreadable,
};
use crate::served::{LastUse, Live, Served, Space, refuse_more_than_at_once};
use crate::troubles::watched;

const PAGE: u64 = PAGE_BYTES as u64;
/// Blocks that are cloned under one hold of the array.
const CLONE_STEP: u32 = 64;
/// Blocks that are read for one request of a scrub.
const SCRUB_STEP: u32 = 2048;
/// Why nothing is known of the past.
const NO_PAST: &str =
    "an array keeps no history and no snapshots: the systems bvssd and combined do";

pub struct ArrayService {
    home: Home,
    /// Held by whoever changes it.
    description: Mutex<Description>,
    machines: Arc<Machines>,
    /// None if it is only looked at.
    background: Option<Background>,
    last_use: LastUse,
    clients: Arc<Clients>,
    clock: Clock,
    access: Access,
}

impl ArrayService {
    /// Opens an array: what a crash left is recovered.
    ///
    /// # Errors
    /// Its media cannot be used, are parts of another one or damaged, or the machine has too little memory.
    pub fn open(home: Home, mode: Mode, clock: Clock, access: Access) -> Result<Self, ServeError> {
        let home = home.held()?;
        let (description, fast, slow) = media(&home, mode, access)?;
        let (mut element, last_use) =
            element_and_last_use(&home, &description, fast, slow, access)?;
        if access == Access::Change {
            element.leave_work();
        }
        let machines = Machines::whole(element)?;
        machines.run(description.running);
        let background = match access {
            Access::Change => Some(
                Background::start(&machines, home.troubles())
                    .map_err(ServeError::file("start a thread for", home.directory()))?,
            ),
            Access::Look => None,
        };
        Ok(ArrayService {
            last_use,
            access,
            home,
            description: Mutex::new(description),
            machines,
            background,
            clients: Arc::default(),
            clock,
        })
    }

    /// Opens the slow medium without the fast one, as it was when everything was home last. Nothing is written.
    ///
    /// # Errors
    /// It cannot be used, is damaged, or the array was made without ordered write-back.
    pub fn slow_alone(home: Home, mode: Mode, clock: Clock) -> Result<Self, ServeError> {
        if !home.is_array() {
            return Err(ServeError::Usage(
                "it is no array: --slow-alone reads the slow medium of one".to_owned(),
            ));
        }
        let home = home.held()?;
        let (description, slow) = slow(&home, mode, Access::Look)?;
        let slow = watched(slow, home.troubles());
        let alone = SlowAlone::open(Arc::new(slow))?;
        Ok(ArrayService {
            last_use: match alone.was_closed() {
                true => LastUse::Closed,
                false => LastUse::NotClosedAlone,
            },
            // Its disks refuse what changes them, each with its own sentence.
            access: Access::Change,
            home,
            description: Mutex::new(description),
            machines: Machines::slow_alone(alone)?,
            background: None,
            clients: Arc::default(),
            clock,
        })
    }

    /// The name of a machine: that of the directory, and behind it the number of each but the first.
    fn name_of(&self, position: usize) -> String {
        match position {
            0 => self.home.name(),
            _ => format!("{}.{}", self.home.name(), self.machines.all()[position].0),
        }
    }

    fn info(&self) -> Result<Answer, ServeError> {
        let positions = 0..self.machines.all().len();
        let description = self.description.lock().clone();
        let info = self.machines.look(|store| {
            let machine = |position: usize| MachineInfo {
                number: self.machines.all()[position].0,
                name: self.name_of(position),
                size: u64::from(self.machines.all()[position].1) * PAGE,
                logical: store.stored(position) * PAGE,
            };
            Ok(ArrayInfo {
                system: SYSTEM.to_owned(),
                fast: description.fast.clone(),
                slow: description.slow.clone(),
                image: description.image.map(|image| image.bytes),
                mode: name_of(description.options().mode),
                strict: description.options().too_big == TooBig::Log,
                machines: positions.map(machine).collect(),
                closed: self.last_use.is_closed(),
                element: store
                    .element()
                    .map(|element| element_info(element, store, description.running)),
                failure: store.failure(),
                failures: self.home.troubles().failures(),
                clients: self.clients.is_served().then(|| self.clients.count()),
            })
        })?;
        Ok(Answer::Array(Box::new(info)))
    }

    fn read(
        &self,
        at: Option<&str>,
        machine: Option<u8>,
        offset: u64,
        length: u64,
    ) -> Result<Answer, ServeError> {
        if at.is_some() {
            return Err(ServeError::Usage(NO_PAST.to_owned()));
        }
        let position = self.disk_of(machine)?;
        refuse_more_than_at_once(length)?;
        let mut bytes = vec![0; length as usize];
        // Whoever copies an array does not use it: what clients want stays on the fast medium.
        self.machines.look_at(position, offset, &mut bytes)?;
        Ok(Answer::of_bytes(&bytes))
    }

    /// Changes how the array works, now and when it is opened again.
    fn tune(&self, pairs: &[(String, String)]) -> Result<Answer, ServeError> {
        let mut description = self.description.lock();
        let mut values = Values {
            options: description.options().clone(),
            running: description.running,
        };
        values.set(pairs)?;
        if !pairs.is_empty() {
            let shape = self
                .machines
                .look(|store| Ok(store.element().map(|e| e.shape().clone())))?;
            shape.map_or(Ok(()), |shape| values.demand_log(&shape))?;
            let tuned = description.with(values.options.clone(), values.running);
            let tune = |options: &Options| self.machines.with(|store| store.tune(options));
            tune(tuned.options())?;
            if let Err(error) = tuned.replace(&self.home) {
                // It works as the file says. What worked before works again.
                tune(description.options())?;
                return Err(error);
            }
            self.machines.run(tuned.running);
            *description = tuned;
        }
        Ok(Answer::Tuned {
            values: values.told(),
        })
    }

    /// Reads blocks on from one, counted through all machines, and compares them with their checksums.
    fn scrub(&self, from: ArrayBlock) -> Result<Answer, ServeError> {
        let (mut left, mut read, mut findings) = (SCRUB_STEP, 0, Vec::new());
        let (mut first, mut next) = (ArrayBlock(0), None);
        for (position, &(_, blocks)) in self.machines.all().iter().enumerate() {
            let begin = Address(from.0.saturating_sub(first.0).min(blocks));
            for block in Address::each(begin..Address(blocks)) {
                if left == 0 {
                    next = next.or(Some(first + block.0));
                    break;
                }
                left -= 1;
                let verified = self.machines.look(|store| {
                    read += u64::from(store.kept(position, block)? != icash::Kept::Nothing);
                    Ok(store.verify(position, block))
                })?;
                if let Err(error) = verified {
                    findings.push(Unreadable {
                        unit: Some((first + block.0).0),
                        why: error.to_string(),
                        addresses: vec![block.0],
                    });
                }
            }
            first += blocks;
        }
        Ok(Answer::Scrubbed {
            next: next.map(|next| next.0),
            read,
            findings,
        })
    }

    fn clone_machine(
        &self,
        native: u8,
        machine: u8,
        image: Option<&Path>,
        overwrite: bool,
    ) -> Result<Answer, ServeError> {
        let (from, to) = (self.disk_of(Some(native))?, self.disk_of(Some(machine))?);
        if from == to {
            return Err(ServeError::Usage(format!(
                "machine {machine} cannot be a clone of itself"
            )));
        }
        let blocks = self.machines.all()[to].1;
        let stored = self.machines.look(|store| Ok(store.stored(to)))?;
        if stored > 0 && !overwrite {
            return Err(ServeError::Usage(format!(
                "machine {machine} holds {stored} blocks, which would be lost: say --overwrite"
            )));
        }
        let image = image
            .map(|path| RawImage::open(path, u64::from(blocks) * PAGE))
            .transpose()?;
        let mut all = Image::default();
        for first in (0..blocks).step_by(CLONE_STEP as usize) {
            let pages = Address(first)..Address(blocks.min(first + CLONE_STEP));
            let part = self.machines.with(|store| match &image {
                Some(image) => {
                    let mut read = |address, page: &mut Page| image.read(address, page);
                    store.clone_part(from, to, pages, Some(&mut read))
                }
                None => store.clone_part(from, to, pages, None),
            })?;
            all += part;
        }
        self.machines.with(Store::flush)?;
        Ok(Answer::Cloned {
            zeros: all.zeros,
            deltas: all.deltas,
            delta_bytes: all.delta_bytes,
            compressed: all.compressed,
            compressed_bytes: all.compressed_bytes,
            whole: all.whole,
        })
    }
}

fn element_info(element: &ICash, store: &Store, running: Running) -> ElementInfo {
    let (states, status, shape) = (element.states(), element.status(), element.shape());
    let (used, peak) = element.segments_used();
    let options = element.options();
    let (counters, statistics) = store.figures().unwrap_or_default();
    let segment = SEGMENT_BYTES as u64;
    let log_segment = u64::from(shape.segment_blocks) * PAGE;
    let named = counters.named().into_iter();
    ElementInfo {
        references: states.references,
        detached: states.detached,
        associates: states.associates,
        independents: states.independents,
        virtual_blocks: options.virtual_blocks.into(),
        delta_ram: u64::from(used) * segment,
        delta_ram_peak: u64::from(peak) * segment,
        delta_ram_limit: u64::from(options.segments) * segment,
        fast_used: u64::from(shape.slots - status.free_slots) * PAGE,
        fast_limit: u64::from(shape.slots) * PAGE,
        frozen_used: u64::from(shape.frozen_blocks - status.free_frozen) * PAGE,
        frozen_limit: u64::from(shape.frozen_blocks) * PAGE,
        dirty: status.dirty * PAGE,
        dirty_target: dirty_most(element, running.dirty_target) * PAGE,
        log_free: u64::from(status.free_log_segments) * log_segment,
        log_limit: u64::from(shape.log_segments) * log_segment,
        away: status.away,
        most_away: shape.journal_blocks.into(),
        waiting: status.unrecorded,
        epoch: status.epoch,
        checkpoint: status.checkpoint,
        memory: element.memory().all() as u64,
        traffic: [
            traffic("fast", &statistics.fast),
            traffic("slow", &statistics.slow),
        ],
        counters: named.map(|(name, n)| (name.to_owned(), n)).collect(),
    }
}

fn traffic(medium: &str, traffic: &Traffic) -> TrafficInfo {
    TrafficInfo {
        medium: medium.to_owned(),
        reads: traffic.reads,
        read_bytes: traffic.read_bytes,
        writes: traffic.writes,
        written_bytes: traffic.written_bytes,
        syncs: traffic.syncs,
    }
}

/// A raw image that a machine is filled with.
struct RawImage {
    file: File,
    path: PathBuf,
    length: u64,
}

impl RawImage {
    fn open(path: &Path, most: u64) -> Result<Self, ServeError> {
        let file = File::open(path).map_err(ServeError::file("open", path))?;
        let told = file.metadata().map_err(ServeError::file("read", path))?;
        let length = told.len();
        if !told.is_file() {
            let why = "it is no regular file".to_owned();
            let path = path.to_owned();
            return Err(ServeError::Content { path, why });
        }
        match length > most {
            true => Err(ServeError::Usage(format!(
                "{} has {length} bytes, the machine shows {most}",
                path.display()
            ))),
            false => Ok(RawImage {
                file,
                path: path.to_owned(),
                length,
            }),
        }
    }

    /// Fills a page; behind the end of the image there are zeros.
    fn read(&self, address: u64, page: &mut Page) -> Result<(), ArrayError> {
        page.fill(0);
        let offset = address * PAGE;
        let count = self.length.saturating_sub(offset).min(PAGE) as usize;
        let read = self.file.read_exact_at(&mut page[..count], offset);
        read.map_err(|error: io::Error| {
            ArrayError::Medium(MediumError {
                operation: Operation::Read,
                offset,
                length: count as u64,
                path: Some(self.path.clone()),
                cause: Cause::Io(error),
            })
        })
    }
}

impl Served for ArrayService {
    fn home(&self) -> &Home {
        &self.home
    }

    fn clients(&self) -> &Arc<Clients> {
        &self.clients
    }

    fn now(&self) -> u64 {
        (self.clock)()
    }

    fn recovered(&self) -> Option<String> {
        self.last_use.told()
    }

    fn lives(&self) -> Vec<Live> {
        let live = |position| Live {
            name: self.name_of(position),
            device: self.noted(self.machines.disk(position)),
        };
        (0..self.machines.all().len()).map(live).collect()
    }

    fn disk_of(&self, machine: Option<u8>) -> Result<usize, ServeError> {
        let all = self.machines.all();
        let Some(number) = machine else { return Ok(0) };
        let found = all.iter().position(|&(other, _)| other == number);
        found.ok_or_else(|| {
            let last = all.last().map_or(0, |&(last, _)| last);
            ServeError::Usage(format!(
                "there is no machine {number}, the last one is {last}"
            ))
        })
    }

    fn space(&self, disk: usize) -> Result<Space, DiskError> {
        let most = self.machines.all()[disk].1.into();
        let stored = self.machines.look(|store| Ok(store.stored(disk)))?;
        Ok(Space { stored, most })
    }

    fn failure(&self) -> Result<Option<String>, DiskError> {
        self.machines.look(|store| Ok(store.failure()))
    }

    fn carry_out(&self, request: &Request) -> Result<Answer, ServeError> {
        request.demand_allowed(self.access)?;
        match request {
            Request::Info => self.info(),
            Request::Flush => {
                self.machines.with(Store::flush)?;
                Ok(Answer::Done)
            }
            Request::Read {
                at,
                machine,
                offset,
                length,
                ..
            } => self.read(at.as_deref(), *machine, *offset, *length),
            Request::Tune { pairs } => self.tune(pairs),
            Request::Scrub { from } => self.scrub(ArrayBlock(*from)),
            Request::Clone {
                native,
                machine,
                image,
                overwrite,
            } => self.clone_machine(*native, *machine, image.as_deref(), *overwrite),
            Request::Log { .. }
            | Request::SnapshotCreate { .. }
            | Request::SnapshotList
            | Request::SnapshotDelete { .. }
            | Request::Mark { .. }
            | Request::Recover { .. }
            | Request::Diff { .. }
            | Request::Purge { .. }
            | Request::Missing { .. }
            | Request::Resolve { .. } => Err(ServeError::Usage(NO_PAST.to_owned())),
        }
    }

    fn measure(&self, page: &mut text::Page) {
        metrics::array::measure(self, page);
    }

    /// Ends the use of the array: everything is durable and, with ordered write-back, at home.
    fn close(&self) -> Result<(), DiskError> {
        self.background.iter().for_each(Background::end);
        match self.access {
            Access::Change => self.machines.close(),
            Access::Look => Ok(()),
        }
    }
}
