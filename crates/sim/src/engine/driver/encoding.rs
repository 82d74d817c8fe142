//! Values in fewer bytes than a page: what a write to be encoded, and the read of an encoded page, wait for.
//!
//! * **The codec** is a server that encodes or decodes one page at a time, in order of readiness.
//! * **A write** is sketched, where bases are found by that, reads the page that it is to be a delta from, and
//!   is encoded. At its commit the base
//!   may be another one; then that is read and the write is encoded anew.
//! * **A read** of an encoded page reads up to two flash pages, waits for both, and is decoded. If it made
//!   the page read-hot, the page is materialized behind it.
//! * **The periodic scan** notes pages that are not written often any more; they are materialized in idle time,
//!   one by one.
//!
//! Invariant: the codec queue is in order of completion.

use std::collections::VecDeque;
use std::ops::DerefMut;

use flashlore_content::PageTag;
use flashlore_flash::{Cause, Completion, Lpn, Time, When};
use flashlore_ftl::Candidate;

use super::changes::{Change, Fetched, What};
use super::{Driver, Result};
use crate::engine::requests::InFlight;
use crate::engine::system::System;

/// How encoding takes time.
#[derive(Debug, Clone, Copy, Default)]
pub struct CodecTimes {
    /// Encoding a page.
    pub encode: Time,
    /// Decoding a page.
    pub decode: Time,
    /// Sketching a page that is to be encoded; 0 where that is not done.
    pub sketch: Time,
    /// The pages that are not written often any more are looked for so often; 0 for never.
    pub scan_period: Time,
}

/// How far the encoding of a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// It has not been decided whether it is encoded.
    Undecided,
    /// It is not.
    No,
    /// It will be, once it has been sketched, if that is needed.
    Wanted,
    /// It will be.
    Sketched,
    /// It has been, against this page if any.
    Done(Option<Candidate<PageTag>>),
}

/// What the codec does.
#[derive(Debug, Clone, Copy)]
enum Job {
    /// It encodes or sketches a change.
    Encode(Change),
    /// A page of this request, served from an instant on.
    Decode { lpn: Lpn, slot: u32, start: Time },
}

/// The codec, and when the next scan is due.
#[derive(Debug, Default)]
pub(super) struct Codec {
    queue: VecDeque<(Time, Job)>,
    free_at: Time,
    scan_due: Option<Time>,
    /// Whether the last scan found nothing counted: the next would note the same, if nothing happens before it.
    repeats: bool,
}

impl Codec {
    pub fn new(times: CodecTimes) -> Self {
        Codec {
            scan_due: (times.scan_period > 0).then_some(times.scan_period),
            ..Codec::default()
        }
    }

    /// When the next job is done, or a scan due.
    pub fn next_instant(&self) -> Option<Time> {
        let done = self.queue.front().map(|&(end, _)| end);
        done.into_iter().chain(self.scan_due).min()
    }

    /// Whether nothing is done before an instant, or at it.
    #[inline(always)]
    pub fn is_quiet_until(&self, end: Time) -> bool {
        self.queue.is_empty() && self.scan_due.is_none_or(|due| due > end)
    }
}

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// Whether a change that could be committed waits for its encoding; asked again when that is done.
    pub(super) fn awaits_encoding(
        &mut self,
        at: Time,
        mut change: Change,
    ) -> Result<Option<Change>> {
        if change.encoding == Encoding::Undecided {
            let encodes = match change.what {
                What::Trim => self.system.begin_trim(change.lpn),
                _ => self.system.begin_write(change.lpn),
            };
            change.encoding = if encodes {
                Encoding::Wanted
            } else {
                Encoding::No
            };
        }
        let is_duplicate = change.is_hashed() && self.system.knows(change.value);
        if change.encoding == Encoding::No || is_duplicate {
            return Ok(Some(change));
        }
        if change.encoding == Encoding::Wanted {
            change.encoding = Encoding::Sketched;
            if self.host.codec.sketch > 0 && self.system.needs_sketch(change.lpn) {
                let end = self.take_codec(at, self.host.codec.sketch);
                self.codec.queue.push_back((end, Job::Encode(change)));
                return Ok(None);
            }
        }
        let read = match change.encoding {
            Encoding::Done(read) => read,
            _ => None,
        };
        let tag = self.next_fetch();
        let Change { lpn, value, .. } = change;
        if let Some((base, done)) = self.system.fetch_base(at, lpn, value, read, tag)? {
            self.await_fetch(change, Fetched::Base(base), done)?;
            return Ok(None);
        }
        if change.encoding != Encoding::Sketched {
            return Ok(Some(change));
        }
        change.encoding = Encoding::Done(None);
        self.encode(at, change)
    }

    /// A change lines up at the codec; it is answered if it is encoded by now.
    fn encode(&mut self, at: Time, change: Change) -> Result<Option<Change>> {
        let end = self.take_codec(at, self.host.codec.encode);
        if end == at || self.goes_on_at(end)? {
            return Ok(Some(change));
        }
        self.codec.queue.push_back((end, Job::Encode(change)));
        Ok(None)
    }

    fn take_codec(&mut self, at: Time, duration: Time) -> Time {
        let end = at.max(self.codec.free_at) + duration;
        self.codec.free_at = end;
        end
    }

    /// The base of a change has been read.
    pub(super) fn after_base(
        &mut self,
        at: Time,
        mut change: Change,
        base: Candidate<PageTag>,
    ) -> Result<()> {
        change.encoding = Encoding::Done(Some(base));
        match self.encode(at, change)? {
            Some(change) => self.take_turn(self.now, change, None),
            None => Ok(()),
        }
    }

    /// Reads a unit for the host; of an encoded one the rest follows.
    pub(super) fn read_unit(
        &mut self,
        at: Time,
        flight: &mut InFlight,
        lpn: Lpn,
        slot: u32,
    ) -> Result<()> {
        let change = self.change(lpn, PageTag::FOREIGN, slot, What::Scan);
        let tag = self.next_fetch();
        let parts = self.system.read_parts(at, lpn, Cause::Host, tag)?;
        match (parts.encoded, parts.done) {
            (false, [None, None]) => flight.served(at, at),
            (false, [Some(Completion::At { start, end }), None]) => flight.served(start, end),
            (encoded, done) => {
                let what = if encoded {
                    Fetched::Encoded
                } else {
                    Fetched::Whole
                };
                self.await_all(at, change, what, done);
            }
        }
        Ok(())
    }

    /// The flash pages of an encoded page have been read.
    pub(super) fn after_parts(&mut self, at: Time, change: Change, start: Time) -> Result<()> {
        let Change { lpn, slot, .. } = change;
        let end = self.take_codec(at, self.host.codec.decode);
        let job = Job::Decode { lpn, slot, start };
        if end == at {
            return self.finish_job(at, job);
        }
        self.codec.queue.push_back((end, job));
        Ok(())
    }

    fn finish_job(&mut self, at: Time, job: Job) -> Result<()> {
        match job {
            Job::Encode(change) => self.take_turn(at, change, None),
            Job::Decode { lpn, slot, start } => {
                self.unit_done(slot, start, at);
                self.system.merge_if_read_hot(When::now(at), lpn)?;
                self.expect_flush(at);
                self.collect_finished()
            }
        }
    }

    /// What happens at the codec at an instant; whether anything did.
    pub(super) fn codec_happens(&mut self, at: Time) -> Result<bool> {
        if let Some(&(end, job)) = self.codec.queue.front()
            && end <= at
        {
            self.codec.queue.pop_front();
            self.finish_job(at, job)?;
            return Ok(true);
        }
        if self.codec.scan_due.is_some_and(|due| due <= at) {
            self.codec.repeats = !self.system.begin_cold_scan();
            self.codec.scan_due = Some(at + self.host.codec.scan_period);
            return Ok(true);
        }
        Ok(false)
    }

    /// Of the scans that are due while nothing happens the last one stands for all, however long that is. `until`
    /// is when the host does something, if that is known.
    pub(super) fn pass_over_scans(&mut self, until: Option<Time>) {
        if !std::mem::take(&mut self.codec.repeats) {
            return;
        }
        let Some(due) = self.codec.scan_due.take() else {
            return;
        };
        let others = [until, self.next_instant(), self.system.cold_start()];
        let bound = others.into_iter().flatten().min().unwrap_or(due);
        let gap = bound.saturating_sub(due);
        let period = self.host.codec.scan_period;
        self.codec.scan_due = Some(due + gap - gap % period);
    }

    /// Materializes the next page that the scan found cold, if its dies are idle before `bound`; whether time
    /// has passed for that.
    pub(super) fn merge_cold_before(&mut self, bound: Time) -> Result<bool> {
        let Some(idle) = self.system.cold_start() else {
            return Ok(false);
        };
        let start = idle.max(self.now);
        if start >= bound {
            return Ok(false);
        }
        self.end_stretches(start)?;
        self.now = start;
        self.system.advance(start)?;
        self.collect_finished()?;
        self.system.merge_cold(start)?;
        self.expect_flush(start);
        self.watch(start);
        Ok(true)
    }
}
