//! Packed pages: each holds encoded values one after another, with a directory in front
//! (DeltaFTL, EuroSys 2012, section 3.4).
//!
//! A page is filled in RAM and programmed when the next value does not fit; a value never straddles two
//! pages. There are two that are being filled: one takes what the host writes, the other what
//! collection packs anew.
//!
//! A slot is *named* while its object is alive and packed here. It is *live* while that is a delta and
//! a logical page refers to it: what such a page would take more if it were whole is what packed pages must
//! leave room for. A slot may be named for an old version only.
//!
//! What is counted of a page is a row of a table. Its slots are in memory only while it is filled, and in simulation, where
//! nobody writes a directory. A device that notes with each object in which slot it lies ([`Note::slot`]) reads the directory
//! of a page where all of its slots are wanted.
//!
//! Invariants: `named_bytes` is what the named slots take, directory entries included; a page that names
//! no object is on the free list; the values of a page in RAM stand in the order of its slots, all of which
//! are named.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::hints::prefetch;
use flashlore_flash::{Lpn, Note, ObjectId, PackId, PackSlot, Ppn, Row, Table, TableName, Tables};
use rustc_hash::FxHashMap;

/// Bytes in front of the directory: number of slots, and two unused.
pub const HEADER_BYTES: u32 = 4;
/// Bytes of a slot's entry in the directory: logical page, offset, length.
pub const SLOT_BYTES: u32 = 8;
/// The longest encoded value that fits in a page.
pub const MOST_BYTES: u32 = UNIT_BYTES - HEADER_BYTES - SLOT_BYTES;

/// Which of the pages being filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filler {
    /// What the host writes.
    Host = 0,
    /// What collection moves.
    Gc = 1,
}

/// Where an encoded value lies in its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The object, [`ObjectId::NONE`] once nobody refers to it here.
    pub object: ObjectId,
    /// The logical page it was written for.
    pub lpn: Lpn,
    /// Bytes of the encoded value.
    pub length: u16,
}

impl Slot {
    /// What it takes of a page.
    fn bytes(&self) -> u16 {
        self.length + SLOT_BYTES as u16
    }
}

/// What is counted of one packed page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pack {
    /// Where it lies; nowhere while it is being filled; of a free one, the next free one.
    location: Ppn,
    /// Which of the pages that were ever filled it is.
    number: u32,
    /// What all slots take, and the named ones.
    written_bytes: u16,
    named_bytes: u16,
    live_slots: u16,
    /// Whether it stands in line to be merged.
    in_line: bool,
}

impl Pack {
    /// One that is free, before another.
    fn free(next: PackId) -> Self {
        Pack {
            location: Ppn(next.0),
            number: 0,
            written_bytes: 0,
            named_bytes: 0,
            live_slots: 0,
            in_line: false,
        }
    }

    /// One that holds something and lies on flash, if it does.
    pub fn on_flash(&self) -> Option<RestoredPack> {
        let is_it = self.named_bytes > 0 && self.location.is_some();
        is_it.then_some(RestoredPack {
            location: self.location,
            number: self.number,
            written_bytes: self.written_bytes,
        })
    }

    /// Of a free one, the next free one.
    pub fn next_free(&self) -> PackId {
        PackId(self.location.0)
    }

    /// Whether it may be on a device of so many units.
    pub fn is_possible(&self, units: u32) -> bool {
        let lies = self.location.0 < units || !self.location.is_some();
        let written = self.written_bytes;
        lies && self.named_bytes <= written && u32::from(written) + HEADER_BYTES <= UNIT_BYTES
    }

    /// What its slots take, those that name no object too, and what those take that do; how many are live.
    pub fn counted(&self) -> (u16, u16, u16) {
        (self.written_bytes, self.named_bytes, self.live_slots)
    }

    fn is_live(&self) -> bool {
        self.live_slots > 0 && self.location.is_some()
    }

    /// Bytes of its unit that nobody refers to.
    fn dead_bytes(&self) -> u32 {
        u32::from(self.written_bytes.saturating_sub(self.named_bytes))
    }
}

impl Row for Pack {
    const BYTES: usize = 16;

    fn encode(self, out: &mut [u8]) {
        self.location.encode(&mut out[..4]);
        self.number.encode(&mut out[4..8]);
        let in_line = u16::from(self.in_line);
        let counts = [
            self.written_bytes,
            self.named_bytes,
            self.live_slots,
            in_line,
        ];
        for (count, out) in counts.iter().zip(out[8..16].chunks_exact_mut(2)) {
            out.copy_from_slice(&count.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Self {
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Pack {
            location: Ppn::decode(&bytes[..4]),
            number: u32::decode(&bytes[4..8]),
            written_bytes: number(8),
            named_bytes: number(10),
            live_slots: number(12),
            in_line: number(14) & 1 != 0,
        }
    }
}

/// What is counted of all packed pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackTallies {
    /// Numbers that were ever used.
    pub numbers: u32,
    /// The first free one of them.
    pub free: PackId,
    /// Pages on flash that hold anything.
    pub on_flash: u32,
    /// Those of them with deltas that logical pages need.
    pub live: u32,
    /// How many pages were ever filled.
    pub filled: u64,
}

impl Default for PackTallies {
    fn default() -> Self {
        PackTallies {
            numbers: 0,
            free: PackId::NONE,
            on_flash: 0,
            live: 0,
            filled: 0,
        }
    }
}

/// A page being filled.
#[derive(Debug, Clone)]
struct Filling<E> {
    pack: PackId,
    slots: Vec<Slot>,
    values: Vec<E>,
}

/// What a value leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed<E> {
    /// Its page is not known: the tables could not be read or written before, and nothing of this becomes durable.
    Nothing,
    /// It was in RAM still.
    FromRam(E),
    /// Its page holds others: dead bytes of the unit before and after.
    Slack {
        /// Where the page lies.
        ppn: Ppn,
        /// Dead bytes before.
        before: u32,
        /// And now.
        after: u32,
    },
    /// It was the last of its page, which is given up.
    Page {
        /// Where the page lies.
        ppn: Ppn,
        /// Dead bytes before.
        before: u32,
    },
}

/// All packed pages. `E` is an encoded value in RAM.
#[derive(Debug)]
pub struct Packs<E, S: Tables> {
    rows: S::Of<Pack>,
    /// By number the slots of a page on flash, where they are not noted with the objects.
    slots: Vec<Vec<Slot>>,
    tallies: PackTallies,
    line: Line,
    filling: [Option<Filling<E>>; 2],
    /// Room for the slots of pages to be filled.
    spare: Vec<Vec<Slot>>,
    /// Pages that are filled already and wait to be programmed: those of a recovery.
    waiting: VecDeque<Filling<E>>,
    /// Where the next look for an empty page begins.
    next_look: u32,
    /// Of the pages that a recovery brought back those of these numbers have been looked at, and so many pages were filled
    /// before.
    looked_at: u32,
    filled_before: u64,
}

/// A packed page on flash as a recovery found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredPack {
    /// Where it lies.
    pub location: Ppn,
    /// Which of the pages that were ever filled it is.
    pub number: u32,
    /// What its slots take, those of no object too.
    pub written_bytes: u16,
}

/// A packed page on flash that has no number yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPack {
    /// Where it lies.
    pub location: Ppn,
    /// What its slots take, those of no object too.
    pub written_bytes: u16,
}

impl<E: Clone, S: Tables> Packs<E, S> {
    /// None at all.
    pub fn new(tables: &S) -> Self {
        Packs {
            rows: tables.empty(TableName::Packs, 0),
            slots: Vec::new(),
            tallies: PackTallies::default(),
            line: Line::default(),
            filling: [None, None],
            spare: Vec::new(),
            waiting: VecDeque::new(),
            next_look: 0,
            looked_at: u32::MAX,
            filled_before: 0,
        }
    }

    /// Packed pages under their numbers, some of which may be free, of a device that notes slots with their objects: `named`
    /// are the objects in them, with the bytes of the slot and whether that is live. So many pages were ever filled. None of
    /// them has been looked at ([`Packs::look_at`]).
    pub fn restore(
        tables: &S,
        found: &[Option<RestoredPack>],
        named: impl Iterator<Item = (PackId, u16, bool)>,
        filled: u64,
    ) -> Self {
        let mut packs = Packs::new(tables);
        let mut rows: Vec<Option<Pack>> = found.iter().map(|pack| pack.map(restored_row)).collect();
        for (pack, length, live) in named {
            if let Some(Some(row)) = rows.get_mut(pack.index()) {
                row.named_bytes += length + SLOT_BYTES as u16;
                row.live_slots += u16::from(live);
            }
        }
        packs.tallies.numbers = rows.len() as u32;
        packs.tallies.filled = filled;
        packs.filled_before = filled;
        packs.looked_at = 0;
        for (pack, row) in (0..).map(PackId).zip(rows) {
            let Some(row) = row else {
                packs.set_row(pack, Pack::free(packs.tallies.free));
                packs.tallies.free = pack;
                continue;
            };
            packs.tallies.on_flash += 1;
            packs.tallies.live += u32::from(row.is_live());
            packs.set_row(pack, row);
        }
        packs
    }

    /// Looks at so many more of the pages that a recovery brought back: those with live slots come to stand in line, and
    /// `each` is called with where one lies and the bytes of it that nobody refers to. Whether there are more.
    pub fn look_at(&mut self, most: u32, mut each: impl FnMut(Ppn, u32)) -> bool {
        let end = self.looked_at.saturating_add(most);
        let end = end.min(self.tallies.numbers);
        for pack in (self.looked_at..end).map(PackId) {
            let row = self.row(pack);
            if row.on_flash().is_none() || self.is_looked_at(pack, row.number) {
                continue;
            }
            if row.is_live() {
                self.line.bring_back(pack, row.number, self.tallies.filled);
            }
            if row.in_line != row.is_live() {
                self.change(pack, |row| row.in_line = row.is_live());
            }
            each(row.location, row.dead_bytes());
        }
        let is_all = end == self.tallies.numbers;
        self.looked_at = if is_all { u32::MAX } else { end };
        !is_all
    }

    /// Whether a page was looked at, or filled since the recovery.
    fn is_looked_at(&self, pack: PackId, number: u32) -> bool {
        pack.0 < self.looked_at || nth(number, self.tallies.filled) >= self.filled_before
    }

    /// Bytes of a page that nobody refers to, if that was looked at.
    fn known_dead(&self, pack: PackId, row: &Pack) -> u32 {
        match self.is_looked_at(pack, row.number) {
            true => row.dead_bytes(),
            false => 0,
        }
    }

    /// Those of a checkpoint, of which so much was counted. None of them has been looked at ([`Packs::look_at`]).
    pub fn stored(tables: &S, tallies: PackTallies) -> Self {
        let mut packs = Packs::new(tables);
        let rows = packs.rows.len() as u32;
        packs.tallies = PackTallies {
            numbers: tallies.numbers.min(rows),
            ..tallies
        };
        packs.looked_at = 0;
        packs.filled_before = tallies.filled;
        packs
    }

    /// A recovery takes the slot of an object out of a page, which may be live.
    pub fn leave(&mut self, pack: PackId, length: u16, live: bool) {
        let bytes = length + SLOT_BYTES as u16;
        let (before, after) = self.change(pack, |row| {
            let before = *row;
            row.named_bytes = row.named_bytes.saturating_sub(bytes);
            row.live_slots = row.live_slots.saturating_sub(u16::from(live));
            (before, *row)
        });
        let was_last = before.is_live() && !after.is_live();
        self.tallies.live = self.tallies.live.saturating_sub(u32::from(was_last));
        if before.on_flash().is_some() && after.on_flash().is_none() {
            self.give_back(pack);
            self.tallies.on_flash = self.tallies.on_flash.saturating_sub(1);
        }
    }

    /// Gives packed pages that a recovery found their numbers, as pages that were filled last and in which no object has a
    /// slot yet ([`Packs::join`]).
    pub fn number_found(&mut self, found: &[NewPack]) -> Vec<PackId> {
        let numbered = found.iter().map(|found| {
            let pack = self.begin().pack;
            let row = restored_row(RestoredPack {
                location: found.location,
                number: self.tallies.filled as u32,
                written_bytes: found.written_bytes,
            });
            self.set_row(pack, row);
            self.tallies.filled += 1;
            self.tallies.on_flash += 1;
            pack
        });
        let numbers = numbered.collect();
        self.filled_before = self.tallies.filled;
        numbers
    }

    /// A recovery finds the slot of an object in a page, which may be live.
    pub fn join(&mut self, pack: PackId, length: u16, live: bool) {
        self.change(pack, |row| row.named_bytes += length + SLOT_BYTES as u16);
        if live {
            self.gain_live(pack);
        }
    }

    fn set_row(&mut self, pack: PackId, row: Pack) {
        match pack.index().cmp(&self.rows.len()) {
            Ordering::Equal => self.rows.push(row),
            Ordering::Less if self.rows.get(pack.index()) != row => {
                self.rows.set(pack.index(), row);
            }
            Ordering::Less | Ordering::Greater => {}
        }
    }

    /// A value that a recovery found and that is in no page on flash; answers its page, which waits to be
    /// programmed.
    pub fn restore_in_ram(&mut self, slot: Slot, live: bool, value: E) -> PackId {
        let fits = |filling: &Filling<E>| {
            let used = u32::from(self.row(filling.pack).written_bytes);
            HEADER_BYTES + used + u32::from(slot.bytes()) <= UNIT_BYTES
        };
        if !self.waiting.back().is_some_and(fits) {
            let filling = self.begin();
            self.waiting.push_back(filling);
        }
        let Some(filling) = self.waiting.back_mut() else {
            unreachable!("one was added")
        };
        let pack = filling.pack;
        filling.values.push(value);
        filling.slots.push(slot);
        self.count_in(pack, slot, live);
        pack
    }

    /// Takes the next page that waits as the one the host fills, there being none; whether there was one.
    pub fn take_waiting(&mut self) -> bool {
        while let Some(filling) = self.waiting.pop_front() {
            if !filling.values.is_empty() {
                // What was begun there holds nothing.
                if let Some(empty) = self.filling[Filler::Host as usize].replace(filling) {
                    self.give_back(empty.pack);
                }
                return true;
            }
            self.give_back(filling.pack);
        }
        false
    }

    /// Gives the numbers of pages back that are being filled and hold nothing.
    pub fn give_back_empty(&mut self) {
        for filler in [Filler::Host as usize, Filler::Gc as usize] {
            let empty = self.filling[filler].take_if(|filling| filling.values.is_empty());
            if let Some(empty) = empty {
                self.give_back(empty.pack);
            }
        }
    }

    /// Pages in RAM that hold anything.
    pub fn in_ram_count(&self) -> u32 {
        let filled = self.in_ram_pages().filter(|page| !page.values.is_empty());
        filled.count() as u32
    }

    /// All pages that are in RAM.
    fn in_ram_pages(&self) -> impl Iterator<Item = &Filling<E>> {
        self.filling.iter().flatten().chain(&self.waiting)
    }

    fn in_ram_page(&self, pack: PackId) -> Option<&Filling<E>> {
        self.in_ram_pages().find(|filling| filling.pack == pack)
    }

    /// Packed pages on flash that hold anything.
    pub fn on_flash(&self) -> u32 {
        self.tallies.on_flash
    }

    /// Those of them with deltas that logical pages need.
    pub fn live(&self) -> u32 {
        self.tallies.live
    }

    /// What is counted of all of them.
    pub fn tallies(&self) -> PackTallies {
        self.tallies
    }

    #[inline(always)]
    fn row(&self, pack: PackId) -> Pack {
        match S::Note::ON && pack.index() >= self.rows.len() {
            true => Pack::free(PackId::NONE),
            false => self.rows.get(pack.index()),
        }
    }

    /// Changes what is counted of a page. Tables that outlive a run may name one that does not exist, if a program was wrong
    /// that wrote them.
    #[inline(always)]
    fn change<A>(&mut self, pack: PackId, change: impl FnOnce(&mut Pack) -> A) -> A {
        match S::Note::ON && pack.index() >= self.rows.len() {
            true => change(&mut Pack::free(PackId::NONE)),
            false => self.rows.change(pack.index(), change),
        }
    }

    /// Whether a value of so many bytes fits into the page being filled, in which the object `leaving`
    /// has its slot no longer.
    pub fn fits(&self, filler: Filler, length: u16, leaving: Option<ObjectId>) -> bool {
        match &self.filling[filler as usize] {
            None => true,
            Some(filling) => {
                let leaves = |slot: &&Slot| Some(slot.object) == leaving;
                let freed = filling.slots.iter().find(leaves).map_or(0, Slot::bytes);
                let used = u32::from(self.row(filling.pack).written_bytes - freed);
                HEADER_BYTES + used + u32::from(length) + SLOT_BYTES <= UNIT_BYTES
            }
        }
    }

    /// Adds a value to the page being filled, where it fits, as soon as an object that is leaving has
    /// left; answers the page.
    pub fn push(&mut self, filler: Filler, slot: Slot, live: bool, value: E) -> PackId {
        let mut filling = match self.filling[filler as usize].take() {
            Some(filling) => filling,
            None => self.begin(),
        };
        let pack = filling.pack;
        filling.slots.push(slot);
        filling.values.push(value);
        self.filling[filler as usize] = Some(filling);
        self.count_in(pack, slot, live);
        pack
    }

    /// A page being filled has one slot more.
    fn count_in(&mut self, pack: PackId, slot: Slot, live: bool) {
        self.change(pack, |row| {
            row.written_bytes += slot.bytes();
            row.named_bytes += slot.bytes();
            row.live_slots += u16::from(live);
        });
    }

    /// A page to be filled.
    fn begin(&mut self) -> Filling<E> {
        let being_filled = Pack::free(PackId::NONE);
        let pack = self.tallies.free;
        let pack = match pack.0 >= self.tallies.numbers {
            true => {
                let pack = PackId(self.tallies.numbers);
                self.tallies.numbers += 1;
                self.set_row(pack, being_filled);
                pack
            }
            false => {
                let next = self.change(pack, |row| std::mem::replace(row, being_filled).location);
                self.tallies.free = PackId(next.0);
                pack
            }
        };
        Filling {
            pack,
            slots: self.spare.pop().unwrap_or_default(),
            values: Vec::new(),
        }
    }

    /// The page being filled and its values, if there are any.
    pub fn full(&self, filler: Filler) -> Option<(PackId, &[E])> {
        let filling = self.filling[filler as usize].as_ref()?;
        (!filling.values.is_empty()).then_some((filling.pack, &filling.values))
    }

    /// The page being filled has been programmed; calls `each` with its slots.
    pub fn placed(&mut self, filler: Filler, ppn: Ppn, mut each: impl FnMut(PackSlot, Slot)) {
        let Some(Filling {
            pack, mut slots, ..
        }) = self.filling[filler as usize].take()
        else {
            return;
        };
        for (at, &slot) in (0..).map(PackSlot).zip(&slots) {
            each(at, slot);
        }
        if !S::Note::ON {
            if self.slots.len() <= pack.index() {
                self.slots.resize(pack.index() + 1, Vec::new());
            }
            self.slots[pack.index()] = slots.as_slice().into();
        }
        slots.clear();
        self.spare.push(slots);
        let number = self.tallies.filled as u32;
        self.tallies.filled += 1;
        self.tallies.on_flash += 1;
        let is_live = self.change(pack, |row| {
            row.location = ppn;
            row.number = number;
            row.in_line = row.live_slots > 0;
            row.in_line
        });
        if is_live {
            self.tallies.live += 1;
            self.line.first.push_back((pack, number));
            self.tidy_line();
        }
    }

    /// Takes out of line what needs not stand there, once that may be more than all that must.
    fn tidy_line(&mut self) {
        if self.line.first.len() <= 2 * self.tallies.live as usize + SPARE_TURNS {
            return;
        }
        let rows = &mut self.rows;
        self.line.first.retain(|&turn| stays_in_line(rows, turn));
    }

    /// A logical page refers to a delta packed here, to which none did.
    pub fn gain_live(&mut self, pack: PackId) {
        let (before, number) = self.change(pack, |row| {
            let before = *row;
            row.live_slots += 1;
            row.in_line |= row.is_live();
            (before, row.number)
        });
        if before.live_slots > 0 || !before.location.is_some() {
            return;
        }
        self.tallies.live += 1;
        if !before.in_line && self.is_looked_at(pack, number) {
            self.line.bring_back(pack, number, self.tallies.filled);
        }
    }

    /// No logical page refers any more to a delta packed here.
    pub fn lose_live(&mut self, pack: PackId) {
        let is_last = self.change(pack, |row| {
            row.live_slots = row.live_slots.saturating_sub(1);
            row.live_slots == 0 && row.location.is_some()
        });
        self.tallies.live = self.tallies.live.saturating_sub(u32::from(is_last));
    }

    /// A page lies elsewhere from now on.
    pub fn relocate(&mut self, pack: PackId, ppn: Ppn) {
        self.change(pack, |row| row.location = ppn);
    }

    /// Where a page lies, [`Ppn::NONE`] while it is being filled.
    pub fn at(&self, pack: PackId) -> Ppn {
        let location = self.row(pack).location;
        let is_wrong = S::Note::ON && !location.is_some() && self.in_ram_page(pack).is_none();
        // What lies there proves to be something else.
        if is_wrong { Ppn(0) } else { location }
    }

    /// The slots of a page, dead ones too, if they are in memory.
    pub fn slots(&self, pack: PackId) -> Option<&[Slot]> {
        match self.in_ram_page(pack) {
            Some(filling) => Some(&filling.slots),
            None if S::Note::ON => None,
            None => self.slots.get(pack.index()).map(Vec::as_slice),
        }
    }

    /// Asks for what is counted of a page.
    #[inline(always)]
    pub fn prefetch(&self, pack: PackId) {
        self.rows.prefetch(pack.index());
        if !S::Note::ON {
            prefetch(&self.slots, pack.index());
        }
    }

    /// Asks for its slots, once that is near.
    #[inline(always)]
    pub fn prefetch_slots(&self, pack: PackId) {
        if let Some(slots) = self.slots.get(pack.index()) {
            prefetch(slots, 0);
        }
    }

    /// The slot of an object in its page, and its bytes; the device notes this of the object.
    pub fn slot_of(
        &self,
        pack: PackId,
        object: ObjectId,
        note: S::Note,
    ) -> Option<(PackSlot, u16)> {
        let slots = match self.slots(pack) {
            None => return note.slot(),
            Some(slots) => slots,
        };
        let at = slots.iter().position(|slot| slot.object == object)?;
        Some((PackSlot(at as u16), slots[at].length))
    }

    /// A value of a page that is still being filled.
    pub fn in_ram(&self, pack: PackId, slot: PackSlot) -> Option<&E> {
        self.in_ram_page(pack)?.values.get(slot.index())
    }

    /// What the named slots of a page take.
    pub fn named_bytes(&self, pack: PackId) -> u32 {
        self.row(pack).named_bytes.into()
    }

    /// Whether the unit of a page on flash has values to which nobody refers.
    pub fn has_dead(&self, pack: PackId) -> bool {
        self.row(pack).dead_bytes() > 0
    }

    /// Bytes of the unit of a page on flash that nobody refers to, as far as it was looked at ([`Packs::look_at`]).
    pub fn dead_bytes(&self, pack: PackId) -> u32 {
        self.known_dead(pack, &self.row(pack))
    }

    /// An object is not packed in this page any more; it is not live. The device notes this of it.
    pub fn remove(&mut self, pack: PackId, object: ObjectId, note: S::Note) -> Removed<E> {
        let Some((at, length)) = self.slot_of(pack, object, note) else {
            assert!(S::Note::ON, "a packed object has a slot in its page");
            return Removed::Nothing;
        };
        let bytes = length + SLOT_BYTES as u16;
        let mut fillings = self.filling.iter_mut().flatten().chain(&mut self.waiting);
        if let Some(filling) = fillings.find(|f| f.pack == pack) {
            filling.slots.remove(at.index());
            let value = filling.values.remove(at.index());
            self.change(pack, |row| {
                row.written_bytes = row.written_bytes.saturating_sub(bytes);
                row.named_bytes = row.named_bytes.saturating_sub(bytes);
            });
            return Removed::FromRam(value);
        }
        if let Some(slots) = self.slots.get_mut(pack.index()) {
            slots[at.index()].object = ObjectId::NONE;
        }
        let (before, row) = self.change(pack, |row| {
            let before = *row;
            row.named_bytes = row.named_bytes.saturating_sub(bytes);
            (before, *row)
        });
        if before.on_flash().is_none() {
            return Removed::Nothing;
        }
        let (ppn, after) = (row.location, self.known_dead(pack, &row));
        let before = after.saturating_sub(u32::from(bytes));
        if row.named_bytes > 0 {
            return Removed::Slack { ppn, before, after };
        }
        self.give_back(pack);
        self.tallies.on_flash = self.tallies.on_flash.saturating_sub(1);
        Removed::Page { ppn, before }
    }

    fn give_back(&mut self, pack: PackId) {
        if let Some(slots) = self.slots.get_mut(pack.index()) {
            *slots = Vec::new();
        }
        self.set_row(pack, Pack::free(self.tallies.free));
        self.tallies.free = pack;
    }

    /// The page on flash with live slots that was filled longest ago, of those that were looked at. What stands before it in
    /// line leaves that.
    pub fn oldest_live(&mut self) -> Option<PackId> {
        loop {
            let turn = self.line.foremost(self.tallies.filled)?;
            if stays_in_line(&mut self.rows, turn) {
                return Some(turn.0);
            }
            self.line.pop(self.tallies.filled);
        }
    }

    /// Whether all that is named of a page fits into one that is being filled.
    pub fn fits_into(&self, filler: Filler, pack: PackId) -> bool {
        self.fits(filler, self.row(pack).named_bytes, None)
    }

    /// Of the next few pages on flash with live slots the one with the fewest named bytes, if two like it share one
    /// page: packed anew, what it holds is never alone in a page that would be asked for again.
    pub fn emptiest(&mut self) -> Option<PackId> {
        let count = self.tallies.numbers;
        let looks = (0..count.min(LOOKS)).map(|i| PackId((self.next_look + i) % count));
        let rows = looks.map(|pack| (pack, self.row(pack)));
        let live = rows.filter(|(_, row)| row.is_live());
        let emptiest = live.min_by_key(|(_, row)| row.named_bytes);
        let half = |row: &Pack| 2 * u32::from(row.named_bytes) <= UNIT_BYTES - HEADER_BYTES;
        let found = emptiest.filter(|(_, row)| half(row));
        self.next_look = (self.next_look + LOOKS.min(count)) % count.max(1);
        found.map(|(pack, _)| pack)
    }

    /// Pages that hold anything, those in RAM too, and whether they are on flash.
    pub fn used(&self) -> impl Iterator<Item = (PackId, bool)> + '_ {
        let rows = (0..self.tallies.numbers).map(PackId);
        let rows = rows.map(|pack| (pack, self.row(pack)));
        let used = rows.filter(|(_, row)| row.named_bytes > 0);
        used.map(|(pack, row)| (pack, row.location.is_some()))
    }

    /// Recounts bytes and pages: `named` are the packed objects with their pages, what the device notes of them, and whether
    /// a logical page refers to them and they are deltas.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(
        &self,
        named: impl Iterator<Item = (PackId, ObjectId, S::Note, bool)>,
    ) -> Result<(), String> {
        let mut counted: FxHashMap<PackId, (u16, u16)> = FxHashMap::default();
        for (pack, object, note, live) in named {
            let Some((_, length)) = self.slot_of(pack, object, note) else {
                return Err(format!("object {object} has no slot in packed page {pack}"));
            };
            let (bytes, live_slots) = counted.entry(pack).or_default();
            *bytes += length + SLOT_BYTES as u16;
            *live_slots += u16::from(live);
        }
        let (mut on_flash, mut live) = (0, 0);
        for (pack, is_on_flash) in self.used() {
            let row = self.row(pack);
            let (named, live_slots) = counted.remove(&pack).unwrap_or_default();
            let noted = (row.named_bytes, row.live_slots);
            if noted != (named, live_slots) || !row.is_possible(u32::MAX) {
                return Err(format!(
                    "packed page {pack} notes {noted:?} named bytes and live slots, counted are {:?} of {}",
                    (named, live_slots),
                    row.written_bytes
                ));
            }
            self.check_slots(pack, &row)?;
            on_flash += u32::from(is_on_flash);
            live += u32::from(row.is_live());
        }
        if let Some(pack) = counted.keys().next() {
            return Err(format!("packed page {pack} holds something, and is free"));
        }
        let tallies = (self.tallies.on_flash, self.tallies.live);
        match (on_flash, live) == tallies {
            true => Ok(()),
            false => Err(format!(
                "{on_flash} packed pages lie on flash, {live} with live slots; counted are {tallies:?}"
            )),
        }
    }

    /// What is in memory of the slots of a page is what is counted of it.
    fn check_slots(&self, pack: PackId, row: &Pack) -> Result<(), String> {
        let Some(slots) = self.slots(pack) else {
            return Ok(());
        };
        let named = slots.iter().filter(|slot| slot.object.is_some());
        let bytes: u16 = named.clone().map(Slot::bytes).sum();
        let written: u16 = slots.iter().map(Slot::bytes).sum();
        if (row.named_bytes, row.written_bytes) != (bytes, written) {
            return Err(format!(
                "packed page {pack} is {row:?}, its slots take {bytes} of {written}"
            ));
        }
        let in_ram = self.in_ram_page(pack);
        let is_whole = |filling: &Filling<E>| {
            filling.values.len() == slots.len() && named.count() == slots.len()
        };
        match in_ram.is_none_or(is_whole) {
            true => Ok(()),
            false => Err(format!(
                "packed page {pack} in RAM has a dead slot, or one without a value"
            )),
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let lists = self.slots.iter().chain(&self.spare);
        let slots: usize = lists.map(Vec::capacity).sum();
        self.rows.heap_bytes()
            + self.slots.capacity() * size_of::<Vec<Slot>>()
            + slots * size_of::<Slot>()
            + self.line.heap_bytes()
    }
}

/// The row of a page that was found, in which no slot is named yet.
fn restored_row(found: RestoredPack) -> Pack {
    Pack {
        location: found.location,
        number: found.number,
        written_bytes: found.written_bytes,
        ..Pack::free(PackId::NONE)
    }
}

/// A page and its number.
type Turn = (PackId, u32);

/// Pages on flash in the order in which they were filled: to be merged when there are too many. Some are given
/// up by now. A page without live slots is not in line, or leaves it when its turn comes, and comes back to its place
/// when it has one again.
#[derive(Debug, Clone, Default)]
struct Line {
    first: VecDeque<Turn>,
    /// Those that came back: number and page.
    back: BinaryHeap<Reverse<(u64, PackId)>>,
}

impl Line {
    /// A page comes to its place; so many were ever filled.
    fn bring_back(&mut self, pack: PackId, number: u32, filled: u64) {
        self.back.push(Reverse((nth(number, filled), pack)));
    }

    /// The next that came back, if it was filled before the first of the others.
    fn foremost_back(&self, filled: u64) -> Option<Turn> {
        let &Reverse((back, pack)) = self.back.peek()?;
        let first = self.first.front().map(|&(_, number)| nth(number, filled));
        first
            .is_none_or(|first| back < first)
            .then_some((pack, back as u32))
    }

    fn foremost(&self, filled: u64) -> Option<Turn> {
        let back = self.foremost_back(filled);
        back.or_else(|| self.first.front().copied())
    }

    fn pop(&mut self, filled: u64) {
        match self.foremost_back(filled) {
            Some(_) => _ = self.back.pop(),
            None => _ = self.first.pop_front(),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.first.capacity() * size_of::<Turn>()
            + self.back.capacity() * size_of::<Reverse<(u64, PackId)>>()
    }
}

/// Which of so many pages that were ever filled has this number, the lower half of it.
fn nth(number: u32, filled: u64) -> u64 {
    let ago = (filled as u32).wrapping_sub(number);
    filled.wrapping_sub(u64::from(ago))
}

/// Pages that are looked at to find one that is nearly empty.
const LOOKS: u32 = 64;

/// Turns of pages given up that may stand in the order besides as many as there are live pages.
const SPARE_TURNS: usize = 1024;

/// Whether a page is still what it was when it got this turn, and has live slots. Without these it leaves the line.
fn stays_in_line(rows: &mut impl Table<Pack>, (pack, number): Turn) -> bool {
    let row = rows.get(pack.index());
    let is_current = row.number == number && row.named_bytes > 0 && row.location.is_some();
    if is_current && row.live_slots == 0 {
        rows.change(pack.index(), |row| row.in_line = false);
    }
    is_current && row.live_slots > 0
}
