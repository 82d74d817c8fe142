//! The log of parities: for each change of a page, how to get from what came after it to what was before.
//!
//! Entries are numbered in the order in which they were recorded, and those of a page are linked from the
//! newest to the oldest. They lie in *log pages*, one after another, in the same order: the last one is being
//! filled in RAM, the others are on flash. A parity that is not shorter than a page has one for itself.
//!
//! Entries leave at the front only. A log page without entries is given up, so at most the first one on flash
//! holds some that have left.
//!
//! Invariants:
//! 1. Stamps of the entries of a page never fall from older to newer ones.
//! 2. An entry that is held is in the log page whose range of numbers has its own; ranges follow one another.
//! 3. Every entry with a stamp above `oldest` is held, so every instant from there on can be told.

use std::collections::VecDeque;

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{Lpn, PackId, PackSlot, Ppn};

use crate::mapping::packs::{HEADER_BYTES, MOST_BYTES, SLOT_BYTES};

/// Log pages are numbered up to here, then from 0 again: there are never so many at a time.
const RING: u32 = 1 << 30;

/// How an entry says what was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptAs {
    /// There was nothing.
    Nothing,
    /// As a parity with what came after it.
    Parity,
    /// Compressed by itself: nothing came after it.
    Alone,
    /// As it was: nothing of this was shorter than a page.
    Raw,
}

/// A change of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogEntry<C> {
    pub lpn: Lpn,
    pub stamp: u64,
    pub form: KeptAs,
    /// Bytes of the encoded value.
    pub length: u16,
    /// What the page held before.
    pub before: Option<C>,
    /// Which of the values that were ever put into its log page it is.
    slot: u16,
    /// The number of the entry of the same page before this one, if that is held still.
    older: u64,
}

impl<C> LogEntry<C> {
    /// What it takes of a log page.
    fn bytes(&self) -> u32 {
        u32::from(self.length) + SLOT_BYTES
    }
}

/// A log page on flash.
#[derive(Debug, Clone, Copy)]
struct OnFlash {
    location: Ppn,
    /// The number behind that of its last entry.
    end: u64,
    /// The stamp that all of its entries have at most.
    latest: u64,
    /// Values that had left before it was programmed.
    gone: u16,
}

/// The log page being filled.
#[derive(Debug, Clone)]
pub(super) struct FillingLogPage<V, P> {
    /// Encoded values in the order of their entries.
    pub values: VecDeque<V>,
    /// The value that has the page for itself.
    pub raw: Option<P>,
    bytes: u32,
    /// Values ever put in, and those of them that have left.
    put: u16,
    gone: u16,
}

impl<V, P> Default for FillingLogPage<V, P> {
    fn default() -> Self {
        FillingLogPage {
            values: VecDeque::new(),
            raw: None,
            bytes: 0,
            put: 0,
            gone: 0,
        }
    }
}

/// Where the encoded value of an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncodedPlace {
    /// In the log page being filled: which of its values.
    InRam(PackSlot),
    /// On flash: in which unit, and which of its values.
    OnFlash(Ppn, PackSlot),
}

/// What is to be recorded.
pub(super) struct New<C, V, P> {
    pub lpn: Lpn,
    pub before: Option<C>,
    pub value: BeforeImage<V, P>,
}

/// How what was before is kept.
pub(super) enum BeforeImage<V, P> {
    Nothing,
    /// In so many bytes.
    Parity(u16, V),
    /// The same.
    Alone(u16, V),
    Raw(P),
}

impl<V, P> BeforeImage<V, P> {
    fn length(&self) -> u16 {
        match self {
            BeforeImage::Nothing => 0,
            BeforeImage::Parity(length, _) | BeforeImage::Alone(length, _) => *length,
            BeforeImage::Raw(_) => UNIT_BYTES as u16,
        }
    }
}

/// The log. `C` names a value, `V` is an encoded value in RAM, `P` what a mapping unit holds.
#[derive(Debug, Clone)]
pub(super) struct ParityLog<C, V, P> {
    entries: VecDeque<LogEntry<C>>,
    /// The number of the first entry held.
    first: u64,
    /// By page: the number of its newest entry, if that is held still; counted from 1.
    heads: Vec<u64>,
    on_flash: VecDeque<OnFlash>,
    /// The number of the first log page on flash.
    first_page: PackId,
    filling: FillingLogPage<V, P>,
    oldest: u64,
}

impl<C: Copy, V, P> ParityLog<C, V, P> {
    /// Nothing has changed, on so many pages.
    pub fn new(pages: u32) -> Self {
        ParityLog {
            entries: VecDeque::new(),
            first: 1,
            heads: vec![0; pages as usize],
            on_flash: VecDeque::new(),
            first_page: PackId(0),
            filling: FillingLogPage::default(),
            oldest: 0,
        }
    }

    /// The instant from which on everything can be told.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Entries held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Log pages on flash.
    pub fn pages(&self) -> u32 {
        self.on_flash.len() as u32
    }

    /// The numbers of the log pages on flash.
    pub fn page_numbers(&self) -> impl Iterator<Item = PackId> + '_ {
        (0..self.pages()).map(|i| PackId((self.first_page.0 + i) % RING))
    }

    /// Where a log page lies, if it is on flash.
    pub fn location(&self, page: PackId) -> Option<Ppn> {
        let page = self.on_flash.get(self.position_of(page));
        page.map(|page| page.location)
    }

    /// A log page lies elsewhere from now on.
    pub fn relocate(&mut self, page: PackId, to: Ppn) {
        let position = self.position_of(page);
        self.on_flash[position].location = to;
    }

    fn position_of(&self, page: PackId) -> usize {
        ((page.0 + RING - self.first_page.0) % RING) as usize
    }

    /// Whether an entry fits into the page being filled.
    pub fn fits(&self, new: &New<C, V, P>) -> bool {
        let bytes = u32::from(new.value.length()) + SLOT_BYTES;
        self.filling.bytes == 0 || HEADER_BYTES + self.filling.bytes + bytes <= UNIT_BYTES
    }

    /// Records a change at an instant; it fits.
    pub fn push(&mut self, new: New<C, V, P>, stamp: u64) {
        let length = new.value.length();
        debug_assert!(length == UNIT_BYTES as u16 || u32::from(length) <= MOST_BYTES);
        let slot = self.filling.put;
        let form = match new.value {
            BeforeImage::Nothing => KeptAs::Nothing,
            BeforeImage::Parity(_, value) => {
                self.filling.values.push_back(value);
                KeptAs::Parity
            }
            BeforeImage::Alone(_, value) => {
                self.filling.values.push_back(value);
                KeptAs::Alone
            }
            BeforeImage::Raw(page) => {
                self.filling.raw = Some(page);
                KeptAs::Raw
            }
        };
        self.filling.put += u16::from(matches!(form, KeptAs::Parity | KeptAs::Alone));
        let number = self.first + self.entries.len() as u64;
        let older = std::mem::replace(&mut self.heads[new.lpn.index()], number);
        let entry = LogEntry {
            lpn: new.lpn,
            stamp,
            form,
            length,
            before: new.before,
            slot,
            older,
        };
        self.filling.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    /// The page being filled, if it holds anything, and the number it will have.
    pub fn filling(&self) -> Option<(PackId, &FillingLogPage<V, P>)> {
        let number = PackId((self.first_page.0 + self.pages()) % RING);
        (self.filling.bytes > 0).then_some((number, &self.filling))
    }

    /// The page being filled has been programmed.
    pub fn placed(&mut self, location: Ppn) {
        let before = self.on_flash.back().map_or(self.first, |page| page.end);
        let end = self.first + self.entries.len() as u64;
        let from = (before.max(self.first) - self.first) as usize;
        let stamps = self.entries.range(from..).map(|entry| entry.stamp);
        let latest = stamps.max().unwrap_or(0);
        let FillingLogPage { gone, .. } = std::mem::take(&mut self.filling);
        self.on_flash.push_back(OnFlash {
            location,
            end,
            latest,
            gone,
        });
    }

    /// The stamp up to which the window goes when the first log page on flash is given up.
    pub fn next_to_go(&self) -> Option<u64> {
        self.on_flash.front().map(|page| page.latest)
    }

    /// Gives up the first entry. Answers whether it named a value, and the unit of its log page if that holds
    /// nothing any more.
    pub fn drop_first(&mut self) -> Option<(bool, Option<Ppn>)> {
        let entry = self.entries.pop_front()?;
        self.first += 1;
        self.oldest = self.oldest.max(entry.stamp);
        let named = entry.before.is_some();
        let Some(page) = self.on_flash.front() else {
            self.leave_filling(&entry);
            return Some((named, None));
        };
        if page.end > self.first {
            return Some((named, None));
        }
        let location = page.location;
        self.on_flash.pop_front();
        self.first_page = PackId((self.first_page.0 + 1) % RING);
        Some((named, Some(location)))
    }

    fn leave_filling(&mut self, entry: &LogEntry<C>) {
        self.filling.bytes -= entry.bytes();
        match entry.form {
            KeptAs::Nothing => {}
            KeptAs::Parity | KeptAs::Alone => {
                self.filling.values.pop_front();
                self.filling.gone += 1;
            }
            KeptAs::Raw => self.filling.raw = None,
        }
        if self.filling.bytes == 0 {
            self.filling = FillingLogPage::default();
        }
    }

    /// The stamp of the first entry.
    pub fn first_stamp(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.stamp)
    }

    /// The window begins here, or later.
    pub fn begin_at(&mut self, instant: u64) {
        self.oldest = self.oldest.max(instant);
    }

    /// The entries of a page with stamps above an instant, newest first, with their numbers.
    pub fn since(&self, lpn: Lpn, instant: u64) -> impl Iterator<Item = (u64, &LogEntry<C>)> {
        let held = move |&number: &u64| number >= self.first;
        let newest = Some(self.heads[lpn.index()]).filter(held);
        std::iter::successors(newest, move |&n| Some(self.entry(n).older).filter(held))
            .map(|number| (number, self.entry(number)))
            .take_while(move |(_, entry)| entry.stamp > instant)
    }

    /// All entries with stamps above an instant, newest first, with their numbers.
    pub fn all_since(&self, instant: u64) -> impl Iterator<Item = (u64, &LogEntry<C>)> {
        let entries = self.entries.iter().enumerate().rev();
        let numbered = entries.map(|(i, entry)| (self.first + i as u64, entry));
        numbered.filter(move |(_, entry)| entry.stamp > instant)
    }

    fn entry(&self, number: u64) -> &LogEntry<C> {
        &self.entries[(number - self.first) as usize]
    }

    /// Where the value of an entry is.
    pub fn place(&self, number: u64, entry: &LogEntry<C>) -> EncodedPlace {
        let at = self.on_flash.partition_point(|page| page.end <= number);
        match self.on_flash.get(at) {
            Some(page) => EncodedPlace::OnFlash(page.location, PackSlot(entry.slot - page.gone)),
            None => EncodedPlace::InRam(PackSlot(entry.slot - self.filling.gone)),
        }
    }

    /// The page being filled, whatever it holds.
    pub fn in_ram(&self) -> &FillingLogPage<V, P> {
        &self.filling
    }

    /// Bytes held, without values in RAM.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<LogEntry<C>>()
            + self.heads.capacity() * size_of::<u64>()
            + self.on_flash.capacity() * size_of::<OnFlash>()
    }

    /// Recounts everything.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut newest = vec![(0u64, 0u64); self.heads.len()];
        for (number, entry) in (self.first..).zip(&self.entries) {
            let (before, stamp) = newest[entry.lpn.index()];
            if before > 0 && (entry.older != before || stamp > entry.stamp) {
                return Err(format!(
                    "entry {number} of page {} follows {before}, linked is {}; stamps {stamp}, {}",
                    entry.lpn, entry.older, entry.stamp
                ));
            }
            newest[entry.lpn.index()] = (number, entry.stamp);
        }
        for (lpn, (&head, &(number, _))) in self.heads.iter().zip(&newest).enumerate() {
            if head.max(self.first - 1) != number.max(self.first - 1) {
                return Err(format!("page {lpn}: newest entry {number}, noted {head}"));
            }
        }
        let mut from = self.first;
        for page in &self.on_flash {
            if page.end <= from {
                return Err(format!("a log page at unit {} is empty", page.location.0));
            }
            from = page.end;
        }
        let in_ram = self.entries.range((from - self.first) as usize..);
        let bytes: u32 = in_ram.clone().map(LogEntry::bytes).sum();
        let values = in_ram.filter(|e| matches!(e.form, KeptAs::Parity | KeptAs::Alone));
        let (values, noted) = (values.count(), self.filling.values.len());
        if (bytes, values) != (self.filling.bytes, noted) {
            return Err(format!(
                "the page being filled has {values} values and {bytes} bytes, noted are {noted} and {}",
                self.filling.bytes
            ));
        }
        Ok(())
    }
}
