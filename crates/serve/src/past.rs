//! The past of an open volume: looking at it, going back, snapshots, marks, purges.
//!
//! Invariants: what is shown of an instant is what was there, or an error; whatever is answered as done is durable.

use std::ops::Range;
use std::sync::Arc;

use flashlore_trace::{ByteRange, UNIT_BYTES};
use flashlore_volume::disk::{BlockDevice, Disk, DiskError, InstantDevice};
use flashlore_volume::error::byte_ranges;
use flashlore_volume::{Lpn, Purged, Volume, VolumeError};

use crate::clients::Writers;
use crate::clock::MOVED;
use crate::error::ServeError;
use crate::moment::{Moment, ParseMomentError, Time, is_name};
use crate::request::{Answer, Erased, LogEntry, Snapshot};
use crate::served::refuse_more_than_at_once;
use crate::service::Service;

const PAGE: u64 = UNIT_BYTES;
/// Changes further apart than this, in nanoseconds, are told as two.
const STRETCH: u64 = 1_000_000_000;
/// The most ranges that a sentence lists.
const MOST_LISTED: usize = 8;

/// How a rewind to an instant is wanted.
pub(crate) struct Rewind {
    /// To the last mark before it.
    pub mark: bool,
    pub dry_run: bool,
    pub disconnect: bool,
    /// Also where something was purged.
    pub allow_missing: bool,
}

/// What a volume refused, in words for people.
fn refused(error: VolumeError) -> ServeError {
    match error {
        VolumeError::NameTaken {
            what,
            name,
            instant,
        } => ServeError::Usage(format!(
            "there is a {what} with the name {name:?} already, of {}",
            Time(instant)
        )),
        VolumeError::Named { name, instant } => {
            ServeError::Usage(format!("{} is kept already, as {name:?}", Time(instant)))
        }
        VolumeError::Protected { until } => ServeError::Refused(format!(
            "the protected window (--min-window) holds what would be purged, so nothing was; it will have passed all of \
             it at {}",
            Time(until)
        )),
        VolumeError::Missing { instant, missing } => lacking_pages(instant, &missing),
        other => other.into(),
    }
}

/// The refusal of an instant, as a text names it, that lacks what these ranges of bytes held.
pub fn lacking(at: Option<&str>, ranges: &[(u64, u64)]) -> ServeError {
    let instant = match at.map(str::parse) {
        Some(Ok(Moment::At(instant))) => Time(instant).to_string(),
        _ => "that instant".to_owned(),
    };
    let listed = ranges.iter().take(MOST_LISTED);
    let listed: Vec<String> = listed
        .map(|(first, length)| format!("{length} bytes from {first} on"))
        .collect();
    let more = match ranges.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!(" and {more} ranges more"),
    };
    ServeError::Refused(format!(
        "what was there at {instant} was purged, {}{more}; --allow-missing goes on without it",
        listed.join(", ")
    ))
}

/// The same of pages.
fn lacking_pages(instant: u64, missing: &[Lpn]) -> ServeError {
    lacking(Some(&format!("ns:{instant}")), &byte_ranges(missing))
}

impl Service {
    /// The instant that a text names, which can be read and rewound to. What has not changed since counts as now.
    ///
    /// # Errors
    /// The text names none, or none that is remembered.
    pub fn resolve(&self, text: &str) -> Result<u64, ServeError> {
        let moment: Moment = text
            .parse()
            .map_err(|error: ParseMomentError| ServeError::Usage(error.to_string()))?;
        let history = self.history()?;
        let instant = match moment {
            Moment::Now => history.newest,
            Moment::At(instant) => instant,
            Moment::Ago(ago) => self.disk.now().saturating_sub(ago),
            Moment::Named(name) => self.named(&name, true, true)?,
            Moment::Snapshot(name) => self.named(&name, true, false)?,
            Moment::Mark(name) => self.named(&name, false, true)?,
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

    /// The instant of a name: of a snapshot, of a mark, or of whichever has it.
    fn named(&self, name: &str, snapshots: bool, marks: bool) -> Result<u64, ServeError> {
        let found = self.disk.with(|volume| {
            let notes = volume.notes();
            let snapshot = notes.snapshot(name).filter(|_| snapshots);
            (snapshot, notes.mark(name).filter(|_| marks))
        })?;
        match found {
            (Some(snapshot), Some(mark)) if snapshot != mark => Err(ServeError::Usage(format!(
                "{name:?} is a snapshot, of {}, and a mark, of {}: say snapshot:{name} or mark:{name}",
                Time(snapshot),
                Time(mark)
            ))),
            (Some(instant), _) | (None, Some(instant)) => Ok(instant),
            (None, None) => {
                let what = match (snapshots, marks) {
                    (true, true) => "snapshot and no mark",
                    (true, false) => "snapshot",
                    _ => "mark",
                };
                Err(ServeError::Usage(format!(
                    "there is no {what} with the name {name:?}"
                )))
            }
        }
    }

    pub(crate) fn log(&self, most: usize) -> Result<Answer, ServeError> {
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
        entries.extend(self.disk.with(|volume| noted(volume, &history.snapshots))?);
        // A mark of what is not remembered any more leads nowhere.
        entries.retain(|entry| match entry {
            LogEntry::Mark { instant, .. } => {
                *instant >= history.oldest || history.snapshots.contains(instant)
            }
            _ => true,
        });
        entries.sort_by_key(LogEntry::instant);
        let extra = entries.len().saturating_sub(most);
        entries.drain(..extra);
        Ok(Answer::Log {
            oldest: history.oldest,
            newest: history.newest,
            entries,
        })
    }

    pub(crate) fn create_snapshot(
        &self,
        name: &str,
        at: Option<&str>,
    ) -> Result<Answer, ServeError> {
        demand_name(name)?;
        let at = at.map(|at| self.resolve(at)).transpose()?;
        let now = self.disk.now();
        let kept = self.disk.with(|volume| volume.snapshot_as(now, at, name))?;
        let instant = kept.map_err(refused)?;
        self.disk.flush()?;
        Ok(Answer::Instant { instant })
    }

    /// The snapshots, oldest first.
    ///
    /// # Errors
    /// The volume keeps no history.
    pub fn snapshot_list(&self) -> Result<Vec<Snapshot>, ServeError> {
        let snapshots = self.history()?.snapshots;
        Ok(self.disk.with(|volume| with_names(volume, &snapshots))?)
    }

    pub(crate) fn delete_snapshot(&self, snapshot: &str) -> Result<Answer, ServeError> {
        let name = snapshot.trim();
        // A mark of that name, and at the instant of a snapshot, is not meant.
        let named = self.disk.with(|volume| volume.notes().snapshot(name))?;
        let instant = match named {
            Some(instant) => instant,
            None => self.resolve(snapshot)?,
        };
        let now = self.disk.now();
        let deleted = match named.is_some() || !is_name(name) {
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
        Ok(Answer::Instant { instant })
    }

    pub(crate) fn mark(&self, name: &str) -> Result<Answer, ServeError> {
        demand_name(name)?;
        let now = self.disk.now();
        let marked = self.disk.with(|volume| volume.mark(now, name))?;
        let instant = marked.map_err(refused)?;
        self.disk.flush()?;
        Ok(Answer::Instant { instant })
    }

    pub(crate) fn recover(&self, to: &str, how: &Rewind) -> Result<Answer, ServeError> {
        let mut instant = self.resolve(to)?;
        if how.mark {
            let before = |volume: &mut Volume| {
                let mark = volume.notes().mark_before(instant);
                mark.map(|mark| mark.instant)
            };
            let found = self.disk.with(before)?.ok_or_else(|| {
                ServeError::Usage(format!("there is no mark at {} or before", Time(instant)))
            })?;
            instant = self.resolve(&format!("ns:{found}"))?;
        }
        let missing = self.missing_at(instant)?;
        if !missing.is_empty() && !how.allow_missing {
            return Err(lacking_pages(instant, &missing));
        }
        let recovered = |changed, before| Answer::Recovered {
            instant,
            changed,
            before,
            missing: byte_ranges(&missing),
        };
        if how.dry_run {
            let newest = self.history()?.newest;
            let differing = self.disk.with(|v| v.differences(instant, newest))??;
            let changed = differing.pages.len() + missing.len();
            return Ok(recovered(changed as u64, newest));
        }
        let refuse =
            |writers| ServeError::Refused(self.not_while(&writers, how.disconnect, instant));
        let _nobody = self.clients.shut_out(how.disconnect).map_err(refuse)?;
        let before = self.history()?.newest;
        let now = self.disk.now();
        let changed = self.disk.with(|volume| match how.allow_missing {
            true => volume.rewind_to_what_is_left(now, instant),
            false => volume.rewind_to(now, instant),
        })?;
        let changed = changed.map_err(refused)?;
        self.disk.flush()?;
        Ok(recovered(changed, before))
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

    pub(crate) fn diff(
        &self,
        from: &str,
        to: &str,
        allow_missing: bool,
    ) -> Result<Answer, ServeError> {
        let (from, to) = (self.resolve(from)?, self.resolve(to)?);
        let found = self.disk.with(|volume| volume.differences(from, to))??;
        if !found.missing.is_empty() && !allow_missing {
            return Err(lacking_pages(from.min(to), &found.missing));
        }
        Ok(Answer::Differences {
            ranges: byte_ranges(&found.pages),
            missing: byte_ranges(&found.missing),
        })
    }

    fn missing_at(&self, instant: u64) -> Result<Vec<Lpn>, ServeError> {
        Ok(self.disk.with(|volume| volume.missing_at(instant))??)
    }

    pub(crate) fn missing(&self, at: &str) -> Result<Answer, ServeError> {
        let instant = self.resolve(at)?;
        let ranges = byte_ranges(&self.missing_at(instant)?);
        Ok(Answer::Missing { ranges })
    }

    pub(crate) fn purge(
        &self,
        range: Option<(u64, u64)>,
        before: Option<&str>,
        erase: bool,
    ) -> Result<Answer, ServeError> {
        let now = self.disk.now();
        let pages = match range {
            None => Lpn(0)..Lpn(u32::MAX),
            Some((offset, length)) => whole_pages(&self.disk, offset, length)?,
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
        let (purged, ended) = self
            .disk
            .with(|volume| {
                let history = volume.history_status()?;
                let names = with_names(volume, &history.snapshots);
                let pages = match before {
                    Some(instant) => {
                        volume.forget_before(now, instant)?;
                        Lpn(0)..Lpn(0)
                    }
                    None => pages,
                };
                let purged = match erase {
                    true => volume.purge_and_erase(now, pages),
                    false => volume.purge(now, pages),
                }?;
                let gone = |snapshot: &Snapshot| purged.ended.contains(&snapshot.instant);
                let ended = names.into_iter().filter(gone).collect();
                Ok::<(Purged, Vec<Snapshot>), VolumeError>((purged, ended))
            })?
            .map_err(refused)?;
        self.disk.flush()?;
        Ok(Answer::Purged {
            ended,
            oldest: self.history()?.oldest,
            erased: purged.erased.map(|erased| Erased {
                blocks: erased.blocks,
                copied: erased.copies,
                left: erased.left,
            }),
        })
    }

    /// Bytes as they were at an instant; where they were purged an error that lists them, or zeros.
    pub(crate) fn read_past(
        &self,
        at: &str,
        offset: u64,
        length: u64,
        allow_missing: bool,
    ) -> Result<Answer, ServeError> {
        refuse_more_than_at_once(length)?;
        let mut bytes = vec![0; length as usize];
        self.read_at(self.resolve(at)?, offset, &mut bytes, allow_missing)?;
        Ok(Answer::of_bytes(&bytes))
    }

    /// Fills a buffer with bytes as they were at an instant; what was purged is an error that lists it, or zeros.
    ///
    /// # Errors
    /// Out of range, an instant that is not remembered, or what cannot be read.
    pub fn read_at(
        &self,
        instant: u64,
        offset: u64,
        buffer: &mut [u8],
        allow_missing: bool,
    ) -> Result<(), ServeError> {
        let device = InstantDevice::new(Arc::clone(&self.disk), instant)?;
        let purged =
            |error: &DiskError| matches!(error, DiskError::Volume(VolumeError::Purged { .. }));
        match device.read(offset, buffer) {
            Err(error) if purged(&error) => {}
            read => return Ok(read?),
        }
        let bytes = ByteRange::new(offset, buffer.len() as u64);
        if !allow_missing {
            let mut missing = self.missing_at(instant)?;
            missing.retain(|&lpn| bytes.touched().contains(&u64::from(lpn)));
            return Err(lacking_pages(instant, &missing));
        }
        for page in bytes.touched() {
            let part = bytes.on(page);
            let into = &mut buffer[part.start as usize..part.end as usize];
            match device.read(offset + part.start, into) {
                Err(error) if purged(&error) => into.fill(0),
                read => read?,
            }
        }
        Ok(())
    }

    /// The instant that a text names as a device.
    ///
    /// # Errors
    /// As [`Service::resolve`].
    pub fn instant(&self, text: &str) -> Result<InstantDevice, ServeError> {
        let instant = self.resolve(text)?;
        Ok(InstantDevice::new(Arc::clone(&self.disk), instant)?)
    }
}

/// The pages that a range of bytes is made of.
fn whole_pages(disk: &Disk, offset: u64, length: u64) -> Result<Range<Lpn>, ServeError> {
    let size = disk.size();
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Err(ServeError::Usage(format!(
            "{length} bytes at {offset} do not lie within the {size} of the volume"
        )));
    }
    if length == 0 {
        return Err(ServeError::Usage(
            "0 bytes are nothing to purge; --all purges the whole history".to_owned(),
        ));
    }
    let bytes = ByteRange::new(offset, length);
    let Range { start, end } = bytes.covered();
    if bytes.is_whole() {
        return Ok(Lpn(start as u32)..Lpn(end as u32));
    }
    let inside = match (end - start) * PAGE {
        0 => "there is no whole page in it".to_owned(),
        length => format!(
            "in it are the whole pages from {} on, {length} bytes",
            start * PAGE
        ),
    };
    Err(ServeError::Usage(format!(
        "whole pages of {PAGE} bytes are purged, and {length} bytes at {offset} begin or end within one; {inside}"
    )))
}

/// What the notes of a volume tell, beside its changes.
fn noted(volume: &Volume, snapshots: &[u64]) -> Vec<LogEntry> {
    let notes = volume.notes();
    let snapshots = with_names(volume, snapshots).into_iter();
    let snapshots = snapshots.map(LogEntry::Snapshot);
    let marks = notes.marks().iter().map(|mark| LogEntry::Mark {
        name: mark.name.clone(),
        instant: mark.instant,
    });
    let range = |(first, end): (Lpn, Lpn)| {
        let from = u64::from(first) * PAGE;
        (from, u64::from(end) * PAGE - from)
    };
    let purges = notes.purges().iter().map(|purge| LogEntry::Purge {
        instant: purge.stamp,
        range: purge.pages.map(range),
    });
    let clocks = notes.clocks().iter();
    // One that went with the volume, and had all the time, says nothing.
    let clocks =
        clocks.filter(|clock| clock.wall.abs_diff(clock.time) >= MOVED || clock.unproven >= MOVED);
    let clocks = clocks.map(|clock| LogEntry::Clock {
        instant: clock.time,
        wall: clock.wall,
        unproven: clock.unproven,
    });
    snapshots.chain(marks).chain(purges).chain(clocks).collect()
}

fn with_names(volume: &Volume, snapshots: &[u64]) -> Vec<Snapshot> {
    let named = |&instant: &u64| Snapshot {
        name: volume.notes().name_of(instant).map(str::to_owned),
        instant,
    };
    snapshots.iter().map(named).collect()
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
