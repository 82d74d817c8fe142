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

mod check;
mod found;
mod line;
mod row;

use std::cmp::Ordering;
use std::collections::VecDeque;

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::hints::prefetch;
use flashlore_flash::{Lpn, Note, ObjectId, PackId, PackSlot, Ppn, Table, TableName, Tables};

use self::line::{Line, Pages};

pub use self::row::{NewPack, Pack, PackTallies, RestoredPack};

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
        slot_bytes(self.length)
    }
}

/// What the slot of a value of so many bytes takes of a page; a table that is wrong may name more than a page has.
pub fn slot_bytes(length: u16) -> u16 {
    length.saturating_add(SLOT_BYTES as u16)
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

impl<E: Clone, S: Tables> Packs<E, S> {
    /// None at all.
    pub fn new(tables: &S) -> Self {
        Packs {
            rows: tables.empty(TableName::Packs, 0),
            slots: Vec::new(),
            tallies: PackTallies::default(),
            line: Line::new(S::Note::MOST_REMEMBERED),
            filling: [None, None],
            spare: Vec::new(),
            waiting: VecDeque::new(),
            next_look: 0,
            looked_at: u32::MAX,
            filled_before: 0,
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
                let written = self.row(filling.pack).written_bytes;
                let used = u32::from(written.saturating_sub(freed));
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
            row.live_slots = row.live_slots.saturating_add(u16::from(live));
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
            let has_turn = self.with_line(|line, pages| line.push(pack, pages));
            self.note_turn(pack, true, has_turn);
        }
    }

    /// Does something with the line and the rows.
    fn with_line<A>(&mut self, act: impl FnOnce(&mut Line, &mut Pages<'_, S::Of<Pack>>) -> A) -> A {
        let mut pages = Pages {
            rows: &mut self.rows,
            numbers: self.tallies.numbers,
            filled: self.tallies.filled,
            live: self.tallies.live,
        };
        act(&mut self.line, &mut pages)
    }

    /// Marks in its row whether a page has a turn in line, if the mark is another.
    fn note_turn(&mut self, pack: PackId, before: bool, has_turn: bool) {
        if before != has_turn {
            self.change(pack, |row| row.in_line = has_turn);
        }
    }

    /// A logical page refers to a delta packed here, to which none did.
    pub fn gain_live(&mut self, pack: PackId) {
        let before = self.change(pack, |row| {
            let before = *row;
            // Tables that outlive a run may have been written by a program that was wrong.
            row.live_slots = row.live_slots.saturating_add(1);
            before
        });
        if before.live_slots > 0 || !before.location.is_some() {
            return;
        }
        self.tallies.live += 1;
        if !before.in_line && self.is_looked_at(pack, before.number) {
            let has_turn =
                self.with_line(|line, pages| line.bring_back(pack, before.number, pages));
            self.note_turn(pack, false, has_turn);
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
        let bytes = slot_bytes(length);
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
        let looked_at = self.looked_at();
        self.with_line(|line, pages| line.foremost(pages, &looked_at))
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

/// Pages that are looked at to find one that is nearly empty.
const LOOKS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_flash::InMemory;

    /// Tables that outlive a run may have been written by a program that was wrong.
    #[test]
    fn live_slots_that_are_too_many_stay_so() {
        let mut packs = Packs::<u8, InMemory>::new(&InMemory);
        let slot = |object| Slot {
            object: ObjectId(object),
            lpn: Lpn(0),
            length: 100,
        };
        let pack = packs.push(Filler::Host, slot(0), false, 0);
        packs.rows[pack.index()].live_slots = u16::MAX;
        packs.push(Filler::Host, slot(1), true, 1);
        packs.gain_live(pack);
        assert_eq!(packs.rows[pack.index()].live_slots, u16::MAX);
    }
}
