//! The write buffer in front of the translation layer.
//!
//! A write is answered when its page has a place. One that finds none waits in line, and a victim goes
//! on, of which the place is free when it is done. A write of a page for which another waits waits
//! behind it. Victims go on in numbers that fill a flash page. No more than half of the pages leave at
//! once: where the host asks for more than the flash can do, the other half is there for hits. A page
//! of which only a part was written is kept as such: the rest is read when it goes on, unless a whole
//! version is written or was found here before. A trim drops the page and goes on by itself.
//!
//! Invariants: the first in line waits only while no place is free; writes of a page are taken in order
//! of arrival; while a write waits, a page leaves.

use flashlore_content::PageTag;
use flashlore_flash::{Lpn, Time};
use flashlore_ftl::buffer::{BufferPlace, Put, Replacement, WriteBuffer};

use super::line::Line;
use super::{Buffering, BufferingStep, Here, Traffic, UnitChange, most_leaving};
use crate::engine::driver::What;
use crate::results::BufferTraffic;

/// A page in its newest version.
#[derive(Debug, Clone, Copy)]
struct Page {
    value: PageTag,
    ratio: u16,
    /// Whether nothing of an older version on flash is needed.
    whole: bool,
    /// When it was written.
    arrival: Time,
}

impl Page {
    /// A write, over what is known of the page here.
    fn over(unit: &UnitChange, older: Option<Page>) -> Page {
        Page {
            value: unit.value,
            ratio: unit.ratio,
            whole: unit.what == What::Write || older.is_some_and(|page| page.whole),
            arrival: unit.arrival,
        }
    }
}

/// A write buffer and those that wait for it.
pub(super) struct BufferedWrites {
    buffer: WriteBuffer<Page>,
    line: Line,
    units_per_page: u32,
    most_leaving: u32,
    writes: u64,
    counted: BufferTraffic,
}

impl BufferedWrites {
    pub fn new(places: u32, policy: Replacement, units_per_page: u32) -> Self {
        BufferedWrites {
            buffer: WriteBuffer::new(places, policy),
            line: Line::default(),
            units_per_page,
            most_leaving: most_leaving(places).max(units_per_page),
            writes: 0,
            counted: BufferTraffic::default(),
        }
    }

    fn write(&mut self, unit: UnitChange, steps: &mut Vec<BufferingStep>) {
        self.writes += 1;
        if self.line.has(unit.lpn) || !self.take(unit, unit.arrival, steps) {
            self.line.push(unit);
            self.make_room(steps);
        }
    }

    /// Takes a write, if its page is held or a place is free.
    fn take(&mut self, unit: UnitChange, at: Time, steps: &mut Vec<BufferingStep>) -> bool {
        let page = Page::over(&unit, self.buffer.get(unit.lpn));
        match self.buffer.put(unit.lpn, page) {
            Put::Full => return false,
            Put::Replaced => self.counted.write_hits += 1,
            Put::Placed => {}
        }
        steps.push(BufferingStep::Answer(unit.slot, at));
        true
    }

    fn trim(&mut self, unit: UnitChange, steps: &mut Vec<BufferingStep>) {
        let at = unit.arrival;
        let trimmed = &mut self.counted.trimmed;
        self.line.take_all(unit.lpn, |write| {
            *trimmed += 1;
            steps.push(BufferingStep::Answer(write.slot, at));
        });
        if self.buffer.trim(unit.lpn) {
            *trimmed += 1;
            self.admit(at, steps);
        }
        steps.push(BufferingStep::Pass(unit));
    }

    /// Those that wait are taken, as far as they can be.
    fn admit(&mut self, at: Time, steps: &mut Vec<BufferingStep>) {
        while let Some(first) = self.line.first()
            && self.take(first, at, steps)
        {
            self.line.pop();
        }
        self.make_room(steps);
    }

    /// For each page that waits another leaves.
    fn make_room(&mut self, steps: &mut Vec<BufferingStep>) {
        let waiting = self.line.pages() as u32;
        let wanted = waiting.next_multiple_of(self.units_per_page);
        while self.buffer.leaving() < wanted.min(self.most_leaving)
            && let Some((place, lpn, page)) = self.buffer.evict()
        {
            self.counted.evictions += 1;
            let unit = UnitChange {
                lpn,
                value: page.value,
                ratio: page.ratio,
                what: if page.whole {
                    What::Write
                } else {
                    What::Modify
                },
                slot: 0,
                arrival: page.arrival,
            };
            steps.push(BufferingStep::Leave(place, unit));
        }
    }

    fn pages(&self) -> u64 {
        u64::from(self.buffer.held()) + self.line.len() as u64
    }
}

impl Buffering for BufferedWrites {
    fn request(&mut self, _: &mut Vec<BufferingStep>) {}

    fn change(&mut self, unit: UnitChange, steps: &mut Vec<BufferingStep>) {
        if unit.what == What::Trim {
            self.trim(unit, steps);
        } else {
            self.write(unit, steps);
        }
    }

    fn reads(&mut self, lpn: Lpn) -> Option<Here> {
        let page = self.buffer.get(lpn)?;
        self.counted.read_hits += u64::from(page.whole);
        Some((page.arrival, page.whole))
    }

    fn line(&self) -> &Line {
        &self.line
    }

    fn left(&mut self, place: BufferPlace, _: Time, at: Time, steps: &mut Vec<BufferingStep>) {
        self.buffer.free(place);
        self.admit(at, steps);
    }

    fn due(&self) -> Option<Time> {
        None
    }

    fn happen(&mut self, _: &mut Vec<BufferingStep>) {}

    fn writes(&self) -> u64 {
        self.writes
    }

    fn read_hits(&self) -> u64 {
        self.counted.read_hits
    }

    fn traffic(&self) -> Traffic {
        Traffic::Buffer(BufferTraffic {
            pages_end: self.pages(),
            ..self.counted
        })
    }

    fn restart(&mut self) {
        self.writes = 0;
        self.counted = BufferTraffic {
            pages_begin: self.pages(),
            ..BufferTraffic::default()
        };
    }
}
