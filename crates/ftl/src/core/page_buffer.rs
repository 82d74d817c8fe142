//! Page buffers: units gather until a flash page is full, is padded or is flushed; then it is programmed, and its block
//! sealed with the last one.

use flashlore_flash::{
    Completion, Finished, Flash, OpId, PageId, PlaneId, Ppn, Ready, Route, Stream, Tag, Time, Unit,
};

use crate::alloc::CLOSED;
use crate::core::Core;
use crate::error::FtlError;
use crate::layout::Rotate;
use crate::map_cache::MapCache;

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Gathers a unit in the page buffer; programs the page when it is full.
    pub(super) fn append_to_page(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        unit: Unit<F::Page>,
        ready: Ready,
        route: Route,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        let buffer = &mut self.planes[plane.index()].buffers[stream as usize];
        if buffer.units.is_empty() {
            buffer.ready = ready;
            buffer.route = route;
            self.partial_pages += u32::from(waits(stream));
        }
        buffer.ready = buffer.ready.and(ready);
        if route == Route::Channel {
            buffer.route = Route::Channel;
        }
        buffer.units.push(unit);
        if buffer.units.len() as u32 == self.units_per_page {
            let last = self.planes[plane.index()].open[stream as usize].next;
            return self.program_page(plane, stream, self.geometry.page_of(last), tag);
        }
        if tag != Tag::NONE {
            buffer.tags.push(tag);
        }
        Ok(Completion::Later(OpId::NONE))
    }

    /// Programs the buffered page. Its completion is answered to `asker`, who filled it, and reported
    /// to those who waited for that.
    pub(super) fn program_page(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        page: PageId,
        asker: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        if !waits(stream) {
            self.drop_stale_copies(plane, stream, page);
        }
        let buffer = &mut self.planes[plane.index()].buffers[stream as usize];
        self.partial_pages -= u32::from(waits(stream));
        self.counters.page_programs += 1;
        let waiters = buffer.tags.len();
        buffer.tags.push(asker);
        let done = self.flash.program(
            buffer.ready,
            page,
            &buffer.units,
            stream,
            buffer.route,
            &buffer.tags,
        )?;
        if let Completion::At { start, end } = done {
            let waiters = buffer.tags[..waiters].iter();
            self.finished
                .extend(waiters.map(|&tag| Finished { tag, start, end }));
        }
        buffer.units.clear();
        buffer.tags.clear();
        Ok(done)
    }

    /// A copy that waited for more of its victim may have lost its referrer since: its owner may name something
    /// else by now. The unit that fills the page has just been moved.
    pub(super) fn drop_stale_copies(&mut self, plane: PlaneId, stream: Stream, page: PageId) {
        let first = self.geometry.first_unit_of_page(page);
        let units = &mut self.planes[plane.index()].buffers[stream as usize].units;
        let waited = units.len() - 1;
        for (ppn, unit) in (first.0..).map(Ppn).zip(&mut units[..waited]) {
            if matches!(unit, Unit::Copy { .. }) && !self.blocks.is_valid(ppn) {
                *unit = Unit::Pad;
            }
        }
    }

    /// Programs the partly filled page of a stream, padded.
    pub(crate) fn pad(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        at: Time,
    ) -> Result<bool, FtlError<F::Error>> {
        let p = &mut self.planes[plane.index()];
        let buffer = &mut p.buffers[stream as usize];
        if buffer.units.is_empty() {
            return Ok(false);
        }
        // It is decided only now that nothing else is waited for.
        buffer.ready = buffer.ready.and(Ready::At(at));
        let missing = self.units_per_page - buffer.units.len() as u32;
        buffer.units.extend((0..missing).map(|_| Unit::Pad));
        self.counters.programs_padding += u64::from(missing);
        let next = p.open[stream as usize].next;
        let page = self.geometry.page_of(next);
        let done = self.program_page(plane, stream, page, Tag::NONE)?;
        // Only now: the units of a page that could not be programmed are still read from its buffer.
        let open = &mut self.planes[plane.index()].open[stream as usize];
        open.next = next + missing;
        let full = open.next == open.end;
        if full {
            self.seal(plane, stream, done, at, Tag::NONE)?;
        }
        Ok(true)
    }

    /// Pads and programs every partly filled page of the host, packed ones too.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn flush(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        for stream in [Stream::Host, Stream::Log] {
            for frontier in 0..self.layout.frontiers().len() {
                let plane = self.layout.frontiers()[frontier];
                let group = self.layout.group_of_plane(plane);
                let padded = self.pad(plane, stream, at)?;
                let open = self.is_open(plane, stream);
                let moves_on = padded && (self.options.layout.rotate == Rotate::Page || !open);
                if moves_on && self.due_frontier(group, stream) == plane {
                    self.move_on(group, stream);
                }
            }
            if !self.options.log {
                break;
            }
        }
        Ok(())
    }

    /// The same for collection: then nothing waits in a page buffer any more.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn flush_all(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.flush_with(at, |_| true)
    }

    /// The same for what collection wrote in another form: it is no copy of anything that is still there, as the
    /// rest of what waits for more of a victim.
    pub(super) fn flush_news(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.flush_with(at, |unit| matches!(unit, Unit::New { .. }))
    }

    pub(super) fn flush_with(
        &mut self,
        at: Time,
        due: impl Fn(&Unit<F::Page>) -> bool,
    ) -> Result<(), FtlError<F::Error>> {
        self.flush(at)?;
        for stream in [Stream::Gc, Stream::LogGc] {
            for frontier in 0..self.layout.frontiers().len() {
                let plane = self.layout.frontiers()[frontier];
                let waiting = &self.planes[plane.index()].buffers[stream as usize].units;
                if waiting.iter().any(&due) {
                    self.pad(plane, stream, at)?;
                }
            }
        }
        Ok(())
    }

    /// The last data page of an open block is programmed: the summary follows, the block is sealed.
    /// Answers when both are done; a completion reported later, to `sealer`, begins with the summary.
    pub(super) fn seal(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        last: Completion,
        at: Time,
        sealer: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        let open = &mut self.planes[plane.index()].open[stream as usize];
        let block = std::mem::replace(open, CLOSED).block;
        let mut done = last;
        if self.options.summary_page {
            let ready = match last {
                Completion::At { .. } => Ready::At(at),
                Completion::Later(op) => Ready::After(op, at),
            };
            let page =
                PageId(self.geometry.first_page(block).0 + self.geometry.pages_per_block() - 1);
            let slots: Vec<Unit<F::Page>> = (0..self.units_per_page).map(|_| Unit::Pad).collect();
            self.counters.programs_summary += u64::from(self.units_per_page);
            self.counters.page_programs += 1;
            let route = Route::OnChip;
            let summary = self
                .flash
                .program(ready, page, &slots, stream, route, &[sealer])?;
            done = match (last, summary) {
                (Completion::At { start, .. }, Completion::At { end, .. }) => {
                    Completion::At { start, end }
                }
                _ => summary,
            };
        }
        self.blocks.seal(block);
        if let Some(times) = &mut self.seal_times {
            times.seal(block, at);
        }
        Ok(done)
    }

    /// The unit in a page buffer that will be programmed at `ppn`, if it is not programmed yet.
    pub(crate) fn buffered(&self, ppn: Ppn) -> Option<&Unit<F::Page>> {
        let block = self.geometry.block_of(ppn);
        // A row that is forged may name a unit that there is not.
        let plane = self.planes.get(self.geometry.plane_of(block).index())?;
        plane.buffered(block, ppn, self.units_per_page)
    }
}

/// Whether somebody waits for what is in a page buffer of the stream, so that it is flushed in time.
pub(super) fn waits(stream: Stream) -> bool {
    matches!(stream, Stream::Host | Stream::Log)
}
