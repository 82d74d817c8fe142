//! An open volume and what is done with it, served or not.
//!
//! What concerns its past is in [`crate::past`].
//!
//! Invariant: whatever is answered as done is durable.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use flashlore_medium::Access;
use flashlore_volume::disk::{BlockDevice, Disk, DiskError, Maintainer};
use flashlore_volume::{
    Encoding, Finding, HistoryStatus, Identity, ObjectId, Policy, Recovery, Survey, Volume,
};
use parking_lot::Mutex;

use crate::clients::Clients;
use crate::clock::{Clocks, Remembered, VolumeTime};
use crate::error::ServeError;
use crate::home::Home;
use crate::metrics::{self, text::Page};
use crate::names;
use crate::past::Rewind;
use crate::request::{
    Answer, HistoryInfo, IndexInfo, Info, Request, Saved, TablesInfo, Unreadable,
};
use crate::served::{Live, Served, Space, Tell, read_bytes, recovery_told};

const PAGE: u64 = 4096;
/// Places of one step of a scrub, which others wait for.
const SCRUB_STEP: u32 = 32;
/// Steps for one request.
const SCRUB_STEPS: u32 = 64;

/// Values that are surveyed under one hold of the volume.
const SURVEY_STEP: u32 = 1 << 15;

/// How often somebody looks whether the clock of the machine was moved.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So many sentences are remembered.
const MOST_WARNINGS: usize = 16;

pub struct Service {
    pub(crate) home: Home,
    pub(crate) disk: Arc<Disk>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) time: Arc<VolumeTime>,
    news: Arc<News>,
    recovery: Recovery,
    /// Until it is closed.
    looker: Mutex<Option<Looker>>,
    access: Access,
    /// Findings so far.
    findings: Mutex<Vec<Finding>>,
    /// Until it is closed.
    maintainer: Mutex<Option<Maintainer>>,
}

/// The name of the system that a volume is.
pub fn system_of(id: &Identity) -> String {
    let Encoding {
        deltas,
        compression,
    } = id.encoding;
    let mut parts = Vec::new();
    match id.policy {
        Policy::Plain => {}
        Policy::Dedup => parts.push("dedup"),
        Policy::DedupTrusted => parts.push("dedup (trusted digests)"),
    }
    for (on, name) in [
        (deltas, "delta"),
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
    let encoded = survey.deltas.0 + survey.compressed.0;
    let whole = (survey.values + survey.kept).saturating_sub(encoded);
    whole * PAGE + survey.deltas.1 + survey.compressed.1
}

/// Bytes saved against storing each page whole.
pub(crate) fn saved(survey: &Survey) -> Saved {
    let shorter = |(count, bytes): (u64, u64)| (count * PAGE).saturating_sub(bytes);
    Saved {
        dedup: (survey.pages - survey.values) * PAGE,
        delta: shorter(survey.deltas),
        compression: shorter(survey.compressed),
    }
}

/// What somebody should know.
#[derive(Default)]
struct News(Mutex<Told>);

#[derive(Default)]
struct Told {
    /// So far.
    all: Vec<String>,
    tell: Option<Tell>,
}

impl News {
    fn tell(&self, sentence: String) {
        let mut told = self.0.lock();
        if let Some(tell) = &told.tell {
            tell(&sentence);
        }
        if told.all.len() < MOST_WARNINGS {
            told.all.push(sentence);
        }
    }

    fn hear(&self, tell: Tell) {
        let mut told = self.0.lock();
        told.all.iter().for_each(|sentence| tell(sentence));
        told.tell = Some(tell);
    }

    fn all(&self) -> Vec<String> {
        let told = self.0.lock();
        told.all.clone()
    }
}

/// Looks whether the clock of the machine was moved; the volume notes it with its next change.
fn look_at_clocks(disk: &Disk, time: &VolumeTime, news: &News) -> Result<(), DiskError> {
    if let Some((note, told)) = time.look() {
        disk.with(|volume| volume.clock_shows(note))?;
        news.tell(told);
    }
    Ok(())
}

/// Looks at the clocks from time to time, until it is dropped. Nothing of the volume is held after that.
struct Looker {
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Looker {
    fn start(disk: &Arc<Disk>, time: &Arc<VolumeTime>, news: &Arc<News>) -> std::io::Result<Self> {
        let (sender, ended) = channel::<()>();
        let (disk, time, news) = (Arc::clone(disk), Arc::clone(time), Arc::clone(news));
        let thread = std::thread::Builder::new()
            .name("clocks".to_owned())
            .spawn(move || {
                while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout)
                    && look_at_clocks(&disk, &time, &news).is_ok()
                {}
            })?;
        Ok(Looker {
            ended: Some(sender),
            thread: Some(thread),
        })
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        drop(self.ended.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, the lock of the volume tells everybody.
            let _ = thread.join();
        }
    }
}

impl Service {
    /// A service of a volume that was opened, on a machine with these clocks.
    ///
    /// # Errors
    /// There can be no more threads, or the store failed.
    pub fn new(
        home: Home,
        opened: (Volume, Recovery),
        clocks: Arc<dyn Clocks>,
    ) -> Result<Self, ServeError> {
        Service::opened(home, opened, clocks, Access::Change)
    }

    /// The same, of a volume that was opened for this.
    ///
    /// # Errors
    /// As [`Service::new`].
    pub fn opened(
        home: Home,
        (mut volume, recovery): (Volume, Recovery),
        clocks: Arc<dyn Clocks>,
        access: Access,
    ) -> Result<Self, ServeError> {
        let home = home.held()?;
        let news = Arc::new(News::default());
        let status = volume.history_status().ok();
        let newest = status.as_ref().map_or(0, |history| history.newest);
        let known = Remembered {
            newest,
            is_new: newest == volume.identity().created,
            clock: volume.notes().clock(),
        };
        let (time, begun) = VolumeTime::begin(clocks, known);
        if let Some(note) = begun.note {
            volume.clock_shows(note);
        }
        begun.told.into_iter().for_each(|told| news.tell(told));
        if status.is_some() {
            take_over(&home, &mut volume, access, time.now(), &news)?;
        }
        let time = Arc::new(time);
        let clock = Arc::clone(&time);
        let disk = Arc::new(Disk::new(volume, Arc::new(move || clock.now())));
        let no_thread = |error| ServeError::Refused(format!("no thread: {error}"));
        let maintainer = Maintainer::start(&disk).map_err(no_thread)?;
        let looker = Looker::start(&disk, &time, &news).map_err(no_thread)?;
        Ok(Service {
            home,
            disk,
            maintainer: Mutex::new(Some(maintainer)),
            time,
            news,
            recovery,
            looker: Mutex::new(Some(looker)),
            clients: Arc::default(),
            access,
            findings: Mutex::default(),
        })
    }

    pub fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    pub(crate) fn history(&self) -> Result<HistoryStatus, ServeError> {
        Ok(self.disk.with(|volume| volume.history_status())??)
    }

    /// What is stored, counted in steps between which others may use the volume: on one that changes the sums are
    /// near, not exact.
    pub(crate) fn survey(&self) -> Result<Survey, DiskError> {
        let (mut survey, mut next) = (Survey::default(), Some(ObjectId(0)));
        while let Some(from) = next {
            let step = |volume: &mut Volume| volume.survey_step(from, SURVEY_STEP, &mut survey);
            next = self.disk.with(step)?;
        }
        Ok(survey)
    }

    fn info(&self) -> Result<Answer, ServeError> {
        self.review_findings()?;
        let survey = self.survey()?;
        let clock = (self.time.now(), self.time.wall());
        let info = self.disk.with(|volume| {
            let missing = |oldest| volume.missing_at(oldest).map_or(0, |pages| pages.len());
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
                index: volume.index_state().map(|index| IndexInfo {
                    entries: index.entries,
                    most_entries: index.capacity,
                    memory: index.memory,
                    misses: index.misses,
                    doubtful_misses: index.doubtful_misses,
                }),
                tables: {
                    let tables = volume.table_state();
                    TablesInfo {
                        memory: tables.memory,
                        most_memory: tables.most_memory,
                        hits: tables.hits,
                        misses: tables.misses,
                        written_for_room: tables.written_for_room,
                    }
                },
                history: history.map(|history| HistoryInfo {
                    missing: missing(history.oldest) as u64 * PAGE,
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
                closed: self.recovery.closed,
                checkpoint: status.checkpoint,
                failure: volume.failure().map(str::to_owned),
                findings: Vec::new(),
                failures: None,
                clients: None,
                clock,
                warnings: self.news.all(),
            }
        })?;
        let findings = self.findings.lock();
        Ok(Answer::Info(Box::new(Info {
            findings: findings.iter().map(Unreadable::from).collect(),
            failures: self.home.troubles().failures(),
            clients: self.clients.is_served().then(|| self.clients.count()),
            ..info
        })))
    }

    /// How many stored pages are known to be unreadable.
    pub(crate) fn unreadable(&self) -> Result<usize, ServeError> {
        self.review_findings()?;
        let findings = self.findings.lock();
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
        let mut findings = self.findings.lock();
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
        let mut findings = self.findings.lock();
        for finding in new {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }

    fn scrub(&self, from: u32) -> Result<Answer, ServeError> {
        let (mut next, mut read, mut found) = (Some(ObjectId(from)), 0, Vec::new());
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
            next: next.map(|owner| owner.0),
            read,
            findings: found.iter().map(Unreadable::from).collect(),
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

    fn recovered(&self) -> Option<String> {
        recovery_told(&self.recovery)
    }

    fn hear(&self, tell: Tell) {
        self.news.hear(tell);
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
        look_at_clocks(&self.disk, &self.time, &self.news)?;
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
                allow_missing,
            } => self.recover(
                to,
                &Rewind {
                    mark: *mark,
                    dry_run: *dry_run,
                    disconnect: *disconnect,
                    allow_missing: *allow_missing,
                },
            ),
            Request::Diff {
                from,
                to,
                allow_missing,
            } => self.diff(from, to, *allow_missing),
            Request::Missing { at } => self.missing(at),
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
                allow_missing,
            } => {
                self.disk_of(*machine)?;
                match at {
                    None => read_bytes(&*self.disk, *offset, *length),
                    Some(at) => self.read_past(at, *offset, *length, *allow_missing),
                }
            }
            Request::Clone { .. } => Err(ServeError::Usage(
                "this is a volume: only the machines of an array can be clones".to_owned(),
            )),
            Request::Tune { .. } => Err(ServeError::Usage(
                "this is a volume: only an array can be tuned".to_owned(),
            )),
            Request::Scrub { from } => self.scrub(*from),
        }
    }

    fn measure(&self, page: &mut Page) {
        metrics::volume::measure(self, page);
    }

    /// Ends the use of the volume with a checkpoint.
    fn close(&self) -> Result<(), DiskError> {
        drop(self.looker.lock().take());
        drop(self.maintainer.lock().take());
        match self.access {
            Access::Change => self.disk.close(),
            Access::Look => Ok(()),
        }
    }
}

/// Names that a volume of an older format had in a file come into the volume, once. A file that holds something else is
/// told of and left.
fn take_over(
    home: &Home,
    volume: &mut Volume,
    access: Access,
    now: u64,
    news: &News,
) -> Result<(), ServeError> {
    let notes = match names::read(home) {
        Ok(None) => return Ok(()),
        Ok(Some(notes)) => notes,
        Err(why) => {
            news.tell(format!(
                "{why}; names lie in the volume now, and those of this file were not taken over: mend or remove it"
            ));
            return Ok(());
        }
    };
    volume.take_over(now, &notes)?;
    volume.flush()?;
    // Who only looks has taken them over in memory.
    if access == Access::Change
        && let Err(error) = home.remove(names::NAMES)
    {
        news.tell(format!(
            "the names in {} are in the volume now, but it cannot be removed: {error}",
            home.names().display()
        ));
    }
    Ok(())
}
