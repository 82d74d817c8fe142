//! An open volume and what is done with it, served or not.
//!
//! Invariant: a name stands for a durable snapshot, and whatever is answered as done is durable.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashlore_medium::Access;
use flashlore_volume::disk::live::Clock;
use flashlore_volume::disk::{BlockDevice, Disk, DiskError, InstantDevice, Maintainer};
use flashlore_volume::{
    Encoding, Finding, HistoryStatus, Identity, Policy, Survey, Volume, VolumeError,
};

use crate::clients::{Clients, Writers};
use crate::error::ServeError;
use crate::home::Home;
use crate::metrics::{self, text::Page};
use crate::moment::{Moment, Time, is_name};
use crate::names::{Named, Names};
use crate::request::{Answer, HistoryInfo, Info, LogEntry, Request, Saved, Snapshot, Unreadable};
use crate::served::{Live, Served, Space, read_bytes};

const PAGE: u64 = 4096;
/// Changes further apart than this, in nanoseconds, are told as two.
const STRETCH: u64 = 1_000_000_000;
/// Places of one step of a scrub, which others wait for.
const SCRUB_STEP: u32 = 32;
/// Steps for one request.
const SCRUB_STEPS: u32 = 64;

/// Values that are surveyed under one hold of the volume.
const SURVEY_STEP: u32 = 1 << 15;

/// An open volume with its names.
pub struct Service {
    home: Home,
    disk: Arc<Disk>,
    names: Mutex<Names>,
    clients: Arc<Clients>,
    access: Access,
    /// Findings so far.
    findings: Mutex<Vec<Finding>>,
    /// Until it is closed.
    maintainer: Mutex<Option<Maintainer>>,
}

/// The name of the system that a volume is.
pub fn system_of(id: &Identity) -> String {
    let Encoding {
        differences,
        compression,
    } = id.encoding;
    let mut parts = Vec::new();
    match id.policy {
        Policy::Plain => {}
        Policy::Dedup => parts.push("dedup"),
        Policy::DedupTrusted => parts.push("dedup (trusted digests)"),
    }
    for (on, name) in [
        (differences, "delta"),
        (compression, "compression"),
        (id.history.is_some(), "history"),
    ] {
        if on {
            parts.push(name);
        }
    }
    if parts.is_empty() {
        parts.push("plain");
    }
    parts.join(" + ")
}

/// Bytes that the values of a survey take, encoded ones what they are long.
pub(crate) fn stored_bytes(survey: &Survey) -> u64 {
    let encoded = survey.differences.0 + survey.compressed.0;
    let whole = (survey.values + survey.kept).saturating_sub(encoded);
    whole * PAGE + survey.differences.1 + survey.compressed.1
}

/// Bytes saved against storing each page whole.
pub(crate) fn saved(survey: &Survey) -> Saved {
    let shorter = |(count, bytes): (u64, u64)| (count * PAGE).saturating_sub(bytes);
    Saved {
        dedup: (survey.pages - survey.values) * PAGE,
        delta: shorter(survey.differences),
        compression: shorter(survey.compressed),
    }
}

impl Service {
    /// A service of an open volume.
    ///
    /// # Errors
    /// The names cannot be read, or there can be no more threads.
    pub fn new(home: Home, volume: Volume, clock: Clock) -> Result<Self, ServeError> {
        let home = home.held()?;
        let names = Mutex::new(home.load_names()?);
        let disk = Arc::new(Disk::new(volume, clock));
        let maintainer = Maintainer::start(&disk);
        let maintainer =
            maintainer.map_err(|error| ServeError::Refused(format!("no thread: {error}")))?;
        Ok(Service {
            home,
            disk,
            maintainer: Mutex::new(Some(maintainer)),
            names,
            clients: Arc::default(),
            access: Access::Change,
            findings: Mutex::default(),
        })
    }

    /// The same, of a volume that was opened for this.
    pub fn with(self, access: Access) -> Self {
        Service { access, ..self }
    }

    /// The volume as a device.
    pub fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> Result<HistoryStatus, ServeError> {
        Ok(self.disk.with(|volume| volume.history_status())??)
    }

    /// The instant that a text names, which can be read and returned to. What has not changed since counts as now.
    ///
    /// # Errors
    /// The text names none, or none that is remembered.
    pub fn resolve(&self, text: &str) -> Result<u64, ServeError> {
        let moment: Moment = text
            .parse()
            .map_err(|error: crate::moment::ParseMomentError| {
                ServeError::Usage(error.to_string())
            })?;
        let history = self.history()?;
        let instant = match moment {
            Moment::Now => history.newest,
            Moment::At(instant) => instant,
            Moment::Ago(ago) => self.disk.now().saturating_sub(ago),
            Moment::Named(name) => {
                let names = self.names();
                let found = names.snapshot(&name);
                let known = found.filter(|instant| history.snapshots.contains(instant));
                known.or_else(|| names.mark(&name)).ok_or_else(|| {
                    ServeError::Usage(format!(
                        "there is no snapshot and no mark with the name {name:?}"
                    ))
                })?
            }
        };
        if instant > history.newest {
            if instant > self.disk.now() {
                return Err(ServeError::Usage(format!("{} has not come", Time(instant))));
            }
            return Ok(history.newest);
        }
        match self.disk.with(|volume| volume.knows_instant(instant))? {
            Ok(()) => Ok(instant),
            Err(VolumeError::TooOld(_)) => Err(ServeError::Refused(format!(
                "{} is not remembered: the history begins at {}{}",
                Time(instant),
                Time(history.oldest),
                match history.snapshots.len() {
                    0 => "",
                    _ => ", and before that there are snapshots only",
                }
            ))),
            Err(other) => Err(other.into()),
        }
    }

    /// What is stored, counted in steps between which others may use the volume: on one that changes the sums are
    /// near, not exact.
    pub(crate) fn survey(&self) -> Result<Survey, DiskError> {
        let (mut survey, mut next) = (Survey::default(), Some(0));
        while let Some(from) = next {
            let step = |volume: &mut Volume| volume.survey_step(from, SURVEY_STEP, &mut survey);
            next = self.disk.with(step)?;
        }
        Ok(survey)
    }

    fn info(&self) -> Result<Answer, ServeError> {
        self.review_findings()?;
        let survey = self.survey()?;
        let info = self.disk.with(|volume| {
            let status = volume.status();
            let id = volume.identity();
            let history = volume.history_status().ok();
            let kept = id.history;
            Info {
                system: system_of(id),
                size: u64::from(status.exported) * PAGE,
                logical: survey.pages * PAGE,
                stored: stored_bytes(&survey),
                capacity: status.most * PAGE,
                saved: saved(&survey),
                kept: survey.kept * PAGE,
                history: history.map(|history| HistoryInfo {
                    oldest: history.oldest,
                    newest: history.newest,
                    entries: history.entries,
                    most_entries: history.most_entries,
                    snapshots: history.snapshots.len() as u64,
                    least_window: kept.map_or(0, |kept| kept.least_window),
                    protected: kept.is_some_and(|kept| kept.protected),
                }),
                sequence: status.sequence,
                durable: status.durable,
                waiting: status.waiting,
                epoch: status.epoch,
                checkpoint: status.checkpoint,
                failure: volume.failure().map(str::to_owned),
                findings: Vec::new(),
                failures: None,
                clients: None,
            }
        })?;
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Answer::Info(Box::new(Info {
            findings: findings.iter().map(unreadable).collect(),
            failures: self.home.troubles().failures(),
            clients: self.clients.is_served().then(|| self.clients.count()),
            ..info
        })))
    }

    /// How many stored pages are known to be unreadable.
    pub(crate) fn unreadable(&self) -> Result<usize, ServeError> {
        self.review_findings()?;
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(findings.len())
    }

    fn note_findings(&self) -> Result<(), ServeError> {
        let new = self.disk.with(|volume| volume.take_findings())?;
        self.note_all(new);
        Ok(())
    }

    /// Adds new findings and drops those that hold no more: pages written again, or trimmed.
    fn review_findings(&self) -> Result<(), ServeError> {
        self.note_findings()?;
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut still = Vec::new();
        for finding in findings.iter() {
            // Each reads the medium: others use the volume in between.
            let now = self.disk.with(|volume| volume.still_found(finding))?;
            still.extend(now.filter(|now| !still.contains(now)));
        }
        *findings = still;
        Ok(())
    }

    fn note_all(&self, new: impl IntoIterator<Item = Finding>) {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in new {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }

    fn log(&self, most: usize) -> Result<Answer, ServeError> {
        let history = self.history()?;
        let mut stamps = self.disk.with(|volume| volume.change_stamps())??;
        stamps.sort_unstable();
        let mut entries: Vec<LogEntry> = Vec::new();
        for stamp in stamps {
            match entries.last_mut() {
                Some(LogEntry::Changes { last, pages, .. }) if stamp - *last < STRETCH => {
                    *last = stamp;
                    *pages += 1;
                }
                _ => entries.push(LogEntry::Changes {
                    first: stamp,
                    last: stamp,
                    pages: 1,
                }),
            }
        }
        let names = self.names();
        entries.extend(history.snapshots.iter().map(|&instant| LogEntry::Snapshot {
            name: names.name_of(instant).map(str::to_owned),
            instant,
        }));
        entries.extend(names.marks().iter().map(|mark| LogEntry::Mark {
            name: mark.name.clone(),
            instant: mark.instant,
        }));
        entries.sort_by_key(LogEntry::instant);
        let extra = entries.len().saturating_sub(most);
        entries.drain(..extra);
        Ok(Answer::Log {
            oldest: history.oldest,
            newest: history.newest,
            entries,
        })
    }

    fn create_snapshot(&self, name: &str, at: Option<&str>) -> Result<Answer, ServeError> {
        demand_name(name)?;
        let at = at.map(|at| self.resolve(at)).transpose()?;
        let mut names = self.names();
        let history = self.history()?;
        if let Some(instant) = names.snapshot(name) {
            if history.snapshots.contains(&instant) {
                return Err(ServeError::Usage(format!(
                    "there is a snapshot with the name {name:?} already, of {}",
                    Time(instant)
                )));
            }
            names.remove_snapshot(instant)?;
        }
        // One snapshot with two names would be gone with either of them.
        let kept = at.filter(|instant| history.snapshots.contains(instant));
        if let Some((instant, other)) = kept.and_then(|at| Some((at, names.name_of(at)?))) {
            return Err(ServeError::Usage(format!(
                "{} is kept already, as {other:?}",
                Time(instant)
            )));
        }
        let now = self.disk.now();
        let instant = self.disk.with(|volume| match at {
            None => volume.snapshot(now),
            Some(instant) => volume.snapshot_of(now, instant).map(|()| instant),
        })??;
        self.disk.flush()?;
        names.add_snapshot(Named {
            name: name.to_owned(),
            instant,
        })?;
        Ok(Answer::Instant { instant })
    }

    /// The snapshots, oldest first.
    ///
    /// # Errors
    /// The volume keeps no history.
    pub fn snapshot_list(&self) -> Result<Vec<Snapshot>, ServeError> {
        let names = self.names();
        let snapshots = self.history()?.snapshots.into_iter();
        let snapshots = snapshots.map(|instant| Snapshot {
            name: names.name_of(instant).map(str::to_owned),
            instant,
        });
        Ok(snapshots.collect())
    }

    fn delete_snapshot(&self, snapshot: &str) -> Result<Answer, ServeError> {
        let instant = self.resolve(snapshot)?;
        let mut names = self.names();
        let now = self.disk.now();
        // A mark of that name may stand at the instant of a snapshot, which is not meant.
        let name = snapshot.trim();
        let meant = !is_name(name) || names.snapshot(name) == Some(instant);
        let deleted = match meant {
            true => self
                .disk
                .with(|volume| volume.delete_snapshot(now, instant))??,
            false => false,
        };
        if !deleted {
            return Err(ServeError::Usage(format!(
                "there is no snapshot of {}",
                Time(instant)
            )));
        }
        self.disk.flush()?;
        names.remove_snapshot(instant)?;
        Ok(Answer::Instant { instant })
    }

    fn mark(&self, name: &str) -> Result<Answer, ServeError> {
        demand_name(name)?;
        let mut names = self.names();
        let instant = self.history()?.newest;
        self.disk.flush()?;
        names.add_mark(Named {
            name: name.to_owned(),
            instant,
        })?;
        Ok(Answer::Instant { instant })
    }

    fn recover(
        &self,
        to: &str,
        mark: bool,
        dry_run: bool,
        disconnect: bool,
    ) -> Result<Answer, ServeError> {
        let mut instant = self.resolve(to)?;
        if mark {
            let names = self.names();
            let found = names.mark_before(instant).ok_or_else(|| {
                ServeError::Usage(format!("there is no mark at {} or before", Time(instant)))
            })?;
            instant = self.resolve(&format!("ns:{}", found.instant))?;
        }
        if dry_run {
            let newest = self.history()?.newest;
            let changed = self.disk.with(|v| v.differences(instant, newest))??;
            return Ok(Answer::Recovered {
                instant,
                changed: changed.len() as u64,
                before: newest,
            });
        }
        let refused = |writers| ServeError::Refused(self.not_while(&writers, disconnect, instant));
        let _nobody = self.clients.shut_out(disconnect).map_err(refused)?;
        let before = self.history()?.newest;
        let now = self.disk.now();
        let changed = self.disk.with(|volume| volume.return_to(now, instant))??;
        self.disk.flush()?;
        Ok(Answer::Recovered {
            instant,
            changed,
            before,
        })
    }

    /// Why the volume does not go back to an instant now, and what can be done instead.
    fn not_while(&self, writers: &Writers, disconnect: bool, instant: u64) -> String {
        let Writers { count, fixed } = *writers;
        let s = if count == 1 { "" } else { "s" };
        let first = match fixed {
            0 if disconnect => "They did not leave: try again".to_owned(),
            0 => "Unmount first, drop them with --disconnect".to_owned(),
            _ => format!(
                "{fixed} of them opened the mounted file, which --disconnect cannot drop: unmount what is on it and \
                 close it first"
            ),
        };
        let name = self.home.name();
        let instant = Time(instant);
        let place = match self.clients.mounted() {
            Some(at) => format!("it is {}/at/{instant}", at.display()),
            None => format!("it is served as {name}@{instant}"),
        };
        format!(
            "{count} client{s} may write; what they have cached would be wrong. {first}, or look at that instant \
             read-only: {place}"
        )
    }

    fn diff(&self, from: &str, to: &str) -> Result<Answer, ServeError> {
        let (from, to) = (self.resolve(from)?, self.resolve(to)?);
        let pages = self.disk.with(|volume| volume.differences(from, to))??;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for lpn in pages {
            let at = u64::from(lpn) * PAGE;
            match ranges.last_mut() {
                Some((first, length)) if *first + *length == at => *length += PAGE,
                _ => ranges.push((at, PAGE)),
            }
        }
        Ok(Answer::Differences { ranges })
    }

    fn purge(
        &self,
        range: Option<(u64, u64)>,
        before: Option<&str>,
        erase: bool,
    ) -> Result<Answer, ServeError> {
        let now = self.disk.now();
        let pages = match range {
            None => 0..u32::MAX,
            Some((offset, length)) => {
                let end = offset
                    .checked_add(length)
                    .filter(|&end| end <= self.disk.size());
                let end = end.ok_or_else(|| {
                    ServeError::Usage(format!(
                        "{length} bytes at {offset} do not lie within the {} of the volume",
                        self.disk.size()
                    ))
                })?;
                match length {
                    0 => 0..0,
                    _ => (offset / PAGE) as u32..end.div_ceil(PAGE) as u32,
                }
            }
        };
        let before = match before {
            None => None,
            Some(_) if range.is_some() => {
                return Err(ServeError::Usage(
                    "either a range is purged or everything before an instant".to_owned(),
                ));
            }
            Some(text) => Some(self.resolve(text)?),
        };
        let erased = self.disk.with(|volume| -> Result<_, VolumeError> {
            let none = 0..0;
            let pages = match before {
                Some(instant) => {
                    volume.forget_before(now, instant)?;
                    none
                }
                None => pages,
            };
            match erase {
                true => volume.purge_and_erase(now, pages).map(Some),
                false => volume.purge(now, pages).map(|()| None),
            }
        })??;
        self.disk.flush()?;
        Ok(Answer::Purged {
            erased: erased.map(|erased| (erased.blocks, erased.copies)),
        })
    }

    fn read(&self, at: Option<&str>, offset: u64, length: u64) -> Result<Answer, ServeError> {
        match at {
            None => read_bytes(&*self.disk, offset, length),
            Some(text) => read_bytes(&self.instant(text)?, offset, length),
        }
    }

    /// The instant that a text names as a device.
    ///
    /// # Errors
    /// As [`Service::resolve`].
    pub fn instant(&self, text: &str) -> Result<InstantDevice, ServeError> {
        let instant = self.resolve(text)?;
        Ok(InstantDevice::new(Arc::clone(&self.disk), instant)?)
    }

    fn scrub(&self, from: u32) -> Result<Answer, ServeError> {
        let (mut next, mut read, mut found) = (Some(from), 0, Vec::new());
        for _ in 0..SCRUB_STEPS {
            let Some(from) = next else {
                break;
            };
            let step = self.disk.with(|volume| volume.scrub(from, SCRUB_STEP))?;
            next = step.next;
            read += u64::from(step.read);
            found.extend(step.unreadable);
        }
        self.note_findings()?;
        self.note_all(found.iter().cloned());
        Ok(Answer::Scrubbed {
            next,
            read,
            findings: found.iter().map(unreadable).collect(),
        })
    }
}

impl Served for Service {
    fn home(&self) -> &Home {
        &self.home
    }

    fn clients(&self) -> &Arc<Clients> {
        &self.clients
    }

    fn now(&self) -> u64 {
        self.disk.now()
    }

    fn lives(&self) -> Vec<Live> {
        vec![Live {
            name: self.home.name(),
            device: self.noted(Arc::clone(&self.disk)),
        }]
    }

    fn disk_of(&self, machine: Option<u8>) -> Result<usize, ServeError> {
        match machine {
            None => Ok(0),
            Some(machine) => Err(ServeError::Usage(format!(
                "there is no machine {machine}: this is a volume, only an array has virtual machines"
            ))),
        }
    }

    fn space(&self, _disk: usize) -> Result<Space, DiskError> {
        let status = self.disk.with(|volume| volume.status())?;
        Ok(Space {
            stored: status.stored,
            most: status.most,
        })
    }

    fn failure(&self) -> Result<Option<String>, DiskError> {
        self.disk.with(|volume| volume.failure().map(str::to_owned))
    }

    fn volume(&self) -> Option<&Service> {
        Some(self)
    }

    fn carry_out(&self, request: &Request) -> Result<Answer, ServeError> {
        request.demand_allowed(self.access)?;
        match request {
            Request::Info => self.info(),
            Request::Log { most } => self.log(*most),
            Request::SnapshotCreate { name, at } => self.create_snapshot(name, at.as_deref()),
            Request::SnapshotList => Ok(Answer::Snapshots {
                snapshots: self.snapshot_list()?,
            }),
            Request::SnapshotDelete { snapshot } => self.delete_snapshot(snapshot),
            Request::Mark { name } => self.mark(name),
            Request::Recover {
                to,
                mark,
                dry_run,
                disconnect,
            } => self.recover(to, *mark, *dry_run, *disconnect),
            Request::Diff { from, to } => self.diff(from, to),
            Request::Purge {
                range,
                before,
                erase,
            } => self.purge(*range, before.as_deref(), *erase),
            Request::Flush => {
                self.disk.flush()?;
                Ok(Answer::Done)
            }
            Request::Resolve { moment } => Ok(Answer::Instant {
                instant: self.resolve(moment)?,
            }),
            Request::Read {
                at,
                machine,
                offset,
                length,
            } => {
                self.disk_of(*machine)?;
                self.read(at.as_deref(), *offset, *length)
            }
            Request::Clone { .. } => Err(ServeError::Usage(
                "this is a volume: only the machines of an array can be clones".to_owned(),
            )),
            Request::Scrub { from } => self.scrub(*from),
        }
    }

    fn measure(&self, page: &mut Page) {
        metrics::volume::measure(self, page);
    }

    /// Ends the use of the volume with a checkpoint.
    fn close(&self) -> Result<(), DiskError> {
        let maintainer = self.maintainer.lock();
        drop(maintainer.unwrap_or_else(PoisonError::into_inner).take());
        match self.access {
            Access::Change => self.disk.close(),
            Access::Look => Ok(()),
        }
    }
}

fn unreadable(finding: &Finding) -> Unreadable {
    Unreadable {
        unit: finding.unit,
        why: finding.why.clone(),
        addresses: finding.addresses.clone(),
    }
}

fn demand_name(name: &str) -> Result<(), ServeError> {
    if is_name(name) {
        return Ok(());
    }
    Err(ServeError::Usage(format!(
        "{name:?} cannot be a name: expected at most 64 letters, digits, '.', '_' and '-', a letter first, and not \
         \"now\""
    )))
}
