//! The write buffer in front of the translation layer.
//!
//! A write is answered when its page has a place. Where none is free the victim goes on, and the write
//! waits for the place that this frees; another write of a page that waits replaces it and waits with
//! it. Victims go on in numbers that fill a flash page. A page of which only a part was written is kept
//! as such: the rest is read when it goes on, unless a whole version is written or was found here
//! before. A trim drops the page and goes on by itself.
//!
//! Invariants: a page waits only while no place is free; a page that waits is not held; as many pages
//! leave as wait, or all that there are.

use std::collections::{HashMap, VecDeque};

use flashlore_content::PageTag;
use flashlore_flash::Time;
use flashlore_ftl::buffer::{Policy, Put, WriteBuffer};

use super::{Front, Step, Traffic, Unit};
use crate::engine::driver::What;
use crate::results::BufferTraffic;

/// A page in its newest version.
#[derive(Debug, Clone, Copy)]
struct Page {
    value: PageTag,
    /// Whether nothing of an older version on flash is needed.
    whole: bool,
    /// When it was written.
    arrival: Time,
}

impl Page {
    /// A write, over what is known of the page here.
    fn over(unit: &Unit, older: Option<Page>) -> Page {
        Page {
            value: unit.value,
            whole: unit.what == What::Write || older.is_some_and(|page| page.whole),
            arrival: unit.arrival,
        }
    }
}

/// A page that waits for a place, and the requests that wait with it.
#[derive(Debug)]
struct Waiting {
    number: u64,
    page: Page,
    slot: u32,
    more: Vec<u32>,
}

/// The pages that wait, in order of arrival.
#[derive(Debug, Default)]
struct Line {
    pages: HashMap<u32, Waiting>,
    /// Page and number; what is not waiting under that number any more was trimmed.
    order: VecDeque<(u32, u64)>,
    numbers: u64,
}

impl Line {
    fn len(&self) -> u32 {
        self.pages.len() as u32
    }

    fn push(&mut self, lpn: u32, page: Page, slot: u32) {
        self.numbers += 1;
        let number = self.numbers;
        let waiting = Waiting {
            number,
            page,
            slot,
            more: Vec::new(),
        };
        self.pages.insert(lpn, waiting);
        self.order.push_back((lpn, number));
    }

    fn pop(&mut self) -> Option<(u32, Waiting)> {
        while let Some((lpn, number)) = self.order.pop_front() {
            if self.pages.get(&lpn).is_some_and(|w| w.number == number) {
                return self.pages.remove(&lpn).map(|waiting| (lpn, waiting));
            }
        }
        None
    }
}

/// A write buffer and those that wait for it.
pub(super) struct BufferFront {
    buffer: WriteBuffer<Page>,
    line: Line,
    units_per_page: u32,
    writes: u64,
    counted: BufferTraffic,
}

impl BufferFront {
    pub fn new(places: u32, policy: Policy, units_per_page: u32) -> Self {
        BufferFront {
            buffer: WriteBuffer::new(places, policy),
            line: Line::default(),
            units_per_page,
            writes: 0,
            counted: BufferTraffic::default(),
        }
    }

    fn write(&mut self, unit: Unit, steps: &mut Vec<Step>) {
        self.writes += 1;
        if let Some(waiting) = self.line.pages.get_mut(&unit.lpn) {
            waiting.page = Page::over(&unit, Some(waiting.page));
            waiting.more.push(unit.slot);
            self.counted.write_hits += 1;
            return;
        }
        let page = Page::over(&unit, self.buffer.get(unit.lpn));
        match self.buffer.put(unit.lpn, page) {
            Put::Replaced => {
                self.counted.write_hits += 1;
                steps.push(Step::Answer(unit.slot, unit.arrival));
            }
            Put::Placed => steps.push(Step::Answer(unit.slot, unit.arrival)),
            Put::Full => {
                self.line.push(unit.lpn, page, unit.slot);
                self.make_room(steps);
            }
        }
    }

    fn trim(&mut self, unit: Unit, steps: &mut Vec<Step>) {
        if let Some(waiting) = self.line.pages.remove(&unit.lpn) {
            self.counted.trimmed += 1;
            answer(&waiting, unit.arrival, steps);
        }
        if self.buffer.trim(unit.lpn) {
            self.counted.trimmed += 1;
            self.admit(unit.arrival, steps);
        }
        steps.push(Step::Pass(unit));
    }

    /// Gives free places to those that wait.
    fn admit(&mut self, at: Time, steps: &mut Vec<Step>) {
        while self.buffer.has_room()
            && let Some((lpn, waiting)) = self.line.pop()
        {
            self.buffer.put(lpn, waiting.page);
            answer(&waiting, at, steps);
        }
        self.make_room(steps);
    }

    /// As many pages leave as wait.
    fn make_room(&mut self, steps: &mut Vec<Step>) {
        let wanted = self.line.len().next_multiple_of(self.units_per_page);
        while self.buffer.leaving() < wanted
            && let Some((place, lpn, page)) = self.buffer.evict()
        {
            self.counted.evictions += 1;
            let unit = Unit {
                lpn,
                value: page.value,
                what: if page.whole {
                    What::Write
                } else {
                    What::Modify
                },
                slot: 0,
                arrival: page.arrival,
            };
            steps.push(Step::Leave(place, unit));
        }
    }

    fn pages(&self) -> u64 {
        u64::from(self.buffer.held()) + u64::from(self.line.len())
    }
}

/// The requests that wait for a page are answered.
fn answer(waiting: &Waiting, at: Time, steps: &mut Vec<Step>) {
    let slots = std::iter::once(&waiting.slot).chain(&waiting.more);
    steps.extend(slots.map(|&slot| Step::Answer(slot, at)));
}

impl Front for BufferFront {
    fn request(&mut self, _: &mut Vec<Step>) {}

    fn change(&mut self, unit: Unit, steps: &mut Vec<Step>) {
        if unit.what == What::Trim {
            self.trim(unit, steps);
        } else {
            self.write(unit, steps);
        }
    }

    fn reads(&mut self, lpn: u32) -> bool {
        let whole = self.buffer.get(lpn).is_some_and(|page| page.whole);
        self.counted.read_hits += u64::from(whole);
        whole
    }

    fn left(&mut self, place: u32, _: Time, at: Time, steps: &mut Vec<Step>) {
        self.buffer.free(place);
        self.admit(at, steps);
    }

    fn due(&self) -> Option<Time> {
        None
    }

    fn happen(&mut self, _: &mut Vec<Step>) {}

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
