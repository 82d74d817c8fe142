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
//! Invariants: `named_bytes` is what the named slots take, directory entries included; a page that names
//! no object is on the free list; the values of a page in RAM stand in the order of its slots, all of which
//! are named.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::hints::prefetch;
use flashlore_flash::{Lpn, ObjectId, PackId, PackSlot, Ppn};

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

/// One packed page.
#[derive(Debug, Clone)]
struct Pack {
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
    slots: Vec<Slot>,
}

impl Default for Pack {
    fn default() -> Self {
        Pack {
            location: Ppn::NONE,
            number: 0,
            written_bytes: 0,
            named_bytes: 0,
            live_slots: 0,
            in_line: false,
            slots: Vec::new(),
        }
    }
}

/// A page being filled.
#[derive(Debug, Clone)]
struct Filling<E> {
    pack: PackId,
    values: Vec<E>,
}

/// What a value leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed<E> {
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
#[derive(Debug, Clone)]
pub struct Packs<E> {
    packs: Vec<Pack>,
    free: PackId,
    /// Pages on flash, and those of them with live slots.
    on_flash: u32,
    live: u32,
    line: Line,
    filling: [Option<Filling<E>>; 2],
    /// Room for the slots of pages to be filled.
    spare: Vec<Vec<Slot>>,
    /// Pages that are filled already and wait to be programmed: those of a recovery.
    waiting: VecDeque<Filling<E>>,
    /// Where the next look for an empty page begins.
    next_look: u32,
}

/// A packed page on flash as a recovery found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredPack {
    /// Where it lies.
    pub location: Ppn,
    /// Its slots, in the order in which they lie there; those of no object are not needed.
    pub slots: Vec<Slot>,
}

impl<E: Clone> Default for Packs<E> {
    fn default() -> Self {
        Packs {
            packs: Vec::new(),
            free: PackId::NONE,
            on_flash: 0,
            live: 0,
            line: Line::default(),
            filling: [None, None],
            spare: Vec::new(),
            waiting: VecDeque::new(),
            next_look: 0,
        }
    }
}

impl<E: Clone> Packs<E> {
    /// Packed pages under their numbers, some of which may be free; `is_live` says whether a logical page refers
    /// to an object and that is a delta.
    pub fn restore(found: Vec<Option<RestoredPack>>, is_live: impl Fn(ObjectId) -> bool) -> Self {
        let mut packs = Packs::default();
        for restored in found {
            let pack = PackId(packs.packs.len() as u32);
            let Some(RestoredPack { location, slots }) = restored else {
                packs.packs.push(Pack {
                    location: Ppn(packs.free.0),
                    ..Pack::default()
                });
                packs.free = pack;
                continue;
            };
            let named = slots.iter().filter(|slot| slot.object.is_some());
            let live = named.clone().filter(|slot| is_live(slot.object)).count();
            packs.packs.push(Pack {
                location,
                number: packs.line.next as u32,
                written_bytes: slots.iter().map(Slot::bytes).sum(),
                named_bytes: named.map(Slot::bytes).sum(),
                live_slots: live as u16,
                in_line: true,
                slots,
            });
            packs.on_flash += 1;
            packs.live += u32::from(live > 0);
            packs.line.append(pack);
        }
        packs
    }

    /// A value that a recovery found and that is in no page on flash; answers its page, which waits to be
    /// programmed.
    pub fn restore_in_ram(&mut self, slot: Slot, live: bool, value: E) -> PackId {
        let fits = |filling: &Filling<E>| {
            let used = u32::from(self.packs[filling.pack.index()].written_bytes);
            HEADER_BYTES + used + u32::from(slot.bytes()) <= UNIT_BYTES
        };
        if !self.waiting.back().is_some_and(fits) {
            let filling = Filling {
                pack: self.allocate(),
                values: Vec::new(),
            };
            self.waiting.push_back(filling);
        }
        let Some(filling) = self.waiting.back_mut() else {
            unreachable!("one was added")
        };
        filling.values.push(value);
        let record = &mut self.packs[filling.pack.index()];
        record.written_bytes += slot.bytes();
        record.named_bytes += slot.bytes();
        record.live_slots += u16::from(live);
        record.slots.push(slot);
        filling.pack
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

    /// Pages in RAM that hold anything.
    pub fn in_ram_count(&self) -> u32 {
        let filled = self.in_ram_pages().filter(|page| !page.values.is_empty());
        filled.count() as u32
    }

    /// All pages that are in RAM.
    fn in_ram_pages(&self) -> impl Iterator<Item = &Filling<E>> {
        self.filling.iter().flatten().chain(&self.waiting)
    }

    /// Packed pages on flash that hold anything.
    pub fn on_flash(&self) -> u32 {
        self.on_flash
    }

    /// Those of them with deltas that logical pages need.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Whether a value of so many bytes fits into the page being filled, in which the object `leaving`
    /// has its slot no longer.
    pub fn fits(&self, filler: Filler, length: u16, leaving: Option<ObjectId>) -> bool {
        match &self.filling[filler as usize] {
            None => true,
            Some(filling) => {
                let slot = leaving.and_then(|object| self.slot_of(filling.pack, object));
                let freed = slot.map_or(0, |(_, slot)| slot.bytes());
                let used = u32::from(self.packs[filling.pack.index()].written_bytes - freed);
                HEADER_BYTES + used + u32::from(length) + SLOT_BYTES <= UNIT_BYTES
            }
        }
    }

    /// Adds a value to the page being filled, where it fits, as soon as an object that is leaving has
    /// left; answers the page.
    pub fn push(&mut self, filler: Filler, slot: Slot, live: bool, value: E) -> PackId {
        let pack = match &self.filling[filler as usize] {
            Some(filling) => filling.pack,
            None => {
                let pack = self.allocate();
                self.filling[filler as usize] = Some(Filling {
                    pack,
                    values: Vec::new(),
                });
                pack
            }
        };
        let record = &mut self.packs[pack.index()];
        record.written_bytes += slot.bytes();
        record.named_bytes += slot.bytes();
        record.live_slots += u16::from(live);
        record.slots.push(slot);
        if let Some(filling) = &mut self.filling[filler as usize] {
            filling.values.push(value);
        }
        pack
    }

    fn allocate(&mut self) -> PackId {
        if self.free == PackId::NONE {
            self.free = PackId(self.packs.len() as u32);
            self.packs.push(Pack {
                location: Ppn(PackId::NONE.0),
                ..Pack::default()
            });
        }
        let pack = self.free;
        let record = &mut self.packs[pack.index()];
        self.free = PackId(std::mem::replace(&mut record.location, Ppn::NONE).0);
        record.slots = self.spare.pop().unwrap_or_default();
        pack
    }

    /// The page being filled and its values, if there are any.
    pub fn full(&self, filler: Filler) -> Option<(PackId, &[E])> {
        let filling = self.filling[filler as usize].as_ref()?;
        (!filling.values.is_empty()).then_some((filling.pack, &filling.values))
    }

    /// The page being filled has been programmed.
    pub fn placed(&mut self, filler: Filler, ppn: Ppn) {
        let Some(Filling { pack, .. }) = self.filling[filler as usize].take() else {
            return;
        };
        let record = &mut self.packs[pack.index()];
        record.location = ppn;
        record.number = self.line.append(pack);
        record.in_line = true;
        let mut filled = std::mem::take(&mut record.slots);
        record.slots = filled.as_slice().into();
        filled.clear();
        self.spare.push(filled);
        self.on_flash += 1;
        self.live += u32::from(record.live_slots > 0);
        if self.line.first.len() > 2 * self.on_flash as usize + SPARE_TURNS {
            let packs = &self.packs;
            self.line.first.retain(|&turn| is_current(packs, turn));
        }
    }

    /// A logical page refers to a delta packed here, to which none did.
    pub fn gain_live(&mut self, pack: PackId) {
        let record = &mut self.packs[pack.index()];
        record.live_slots += 1;
        if record.live_slots > 1 || record.location == Ppn::NONE {
            return;
        }
        self.live += 1;
        if !std::mem::replace(&mut record.in_line, true) {
            self.line.bring_back(pack, record.number);
        }
    }

    /// No logical page refers any more to a delta packed here.
    pub fn lose_live(&mut self, pack: PackId) {
        let record = &mut self.packs[pack.index()];
        record.live_slots -= 1;
        self.live -= u32::from(record.live_slots == 0 && record.location != Ppn::NONE);
    }

    /// A page lies elsewhere from now on.
    pub fn relocate(&mut self, pack: PackId, ppn: Ppn) {
        self.packs[pack.index()].location = ppn;
    }

    /// Where a page lies, [`Ppn::NONE`] while it is being filled.
    pub fn at(&self, pack: PackId) -> Ppn {
        self.packs[pack.index()].location
    }

    /// The slots of a page, dead ones too.
    pub fn slots(&self, pack: PackId) -> &[Slot] {
        &self.packs[pack.index()].slots
    }

    /// Asks for the record of a page.
    #[inline(always)]
    pub fn prefetch(&self, pack: PackId) {
        prefetch(&self.packs, pack.index());
    }

    /// Asks for its slots, once that is near.
    #[inline(always)]
    pub fn prefetch_slots(&self, pack: PackId) {
        if let Some(record) = self.packs.get(pack.index()) {
            prefetch(&record.slots, 0);
        }
    }

    /// The slot of an object in its page, and what it says.
    pub fn slot_of(&self, pack: PackId, object: ObjectId) -> Option<(PackSlot, Slot)> {
        let slots = &self.packs[pack.index()].slots;
        let at = slots.iter().position(|slot| slot.object == object)?;
        Some((PackSlot(at as u16), slots[at]))
    }

    /// A value of a page that is still being filled.
    pub fn in_ram(&self, pack: PackId, slot: PackSlot) -> Option<&E> {
        let filling = self.in_ram_pages().find(|f| f.pack == pack)?;
        filling.values.get(slot.index())
    }

    /// Numbers of packed pages there are, free ones too.
    pub fn numbers(&self) -> u32 {
        self.packs.len() as u32
    }

    /// Bytes of all slots of a page, dead ones too, with their entries in the directory.
    pub fn written_bytes(&self, pack: PackId) -> u16 {
        self.packs[pack.index()].written_bytes
    }

    /// Bytes of the unit of a page on flash that nobody refers to.
    pub fn dead_bytes(&self, pack: PackId) -> u32 {
        let record = &self.packs[pack.index()];
        u32::from(record.written_bytes - record.named_bytes)
    }

    /// An object is not packed in this page any more; it is not live.
    pub fn remove(&mut self, pack: PackId, object: ObjectId) -> Removed<E> {
        let Some((at, slot)) = self.slot_of(pack, object) else {
            unreachable!("a packed object has a slot in its page")
        };
        let before = self.dead_bytes(pack);
        let record = &mut self.packs[pack.index()];
        record.named_bytes -= slot.bytes();
        let ppn = record.location;
        let mut fillings = self.filling.iter_mut().flatten().chain(&mut self.waiting);
        if let Some(filling) = fillings.find(|f| f.pack == pack) {
            record.written_bytes -= slot.bytes();
            record.slots.remove(at.index());
            return Removed::FromRam(filling.values.remove(at.index()));
        }
        record.slots[at.index()].object = ObjectId::NONE;
        if record.named_bytes > 0 {
            let after = before + u32::from(slot.bytes());
            return Removed::Slack { ppn, before, after };
        }
        self.free(pack);
        Removed::Page { ppn, before }
    }

    fn free(&mut self, pack: PackId) {
        self.give_back(pack);
        self.on_flash -= 1;
    }

    fn give_back(&mut self, pack: PackId) {
        let record = &mut self.packs[pack.index()];
        *record = Pack::default();
        record.location = Ppn(self.free.0);
        self.free = pack;
    }

    /// The page on flash with live slots that was filled longest ago. What stands before it in line leaves that.
    pub fn oldest_live(&mut self) -> Option<PackId> {
        loop {
            let turn = self.line.foremost()?;
            let current = is_current(&self.packs, turn);
            let record = &mut self.packs[turn.0.index()];
            if current && record.live_slots > 0 {
                return Some(turn.0);
            }
            if current {
                record.in_line = false;
            }
            self.line.pop();
        }
    }

    /// Whether all that is named of a page fits into one that is being filled.
    pub fn fits_into(&self, filler: Filler, pack: PackId) -> bool {
        self.fits(filler, self.packs[pack.index()].named_bytes, None)
    }

    /// Of the next few pages on flash with live slots the one with the fewest named bytes, if two like it share one
    /// page: packed anew, what it holds is never alone in a page that would be asked for again.
    pub fn emptiest(&mut self) -> Option<PackId> {
        let count = self.numbers();
        let looks = (0..count.min(LOOKS)).map(|i| PackId((self.next_look + i) % count));
        let record = |pack: PackId| &self.packs[pack.index()];
        let on_flash =
            |&pack: &PackId| record(pack).live_slots > 0 && record(pack).location.is_some();
        let emptiest = looks
            .filter(on_flash)
            .min_by_key(|&pack| record(pack).named_bytes);
        let half =
            |&pack: &PackId| 2 * u32::from(record(pack).named_bytes) <= UNIT_BYTES - HEADER_BYTES;
        let found = emptiest.filter(half);
        self.next_look = (self.next_look + LOOKS.min(count)) % count.max(1);
        found
    }

    /// Pages that hold anything, those in RAM too, and whether they are on flash.
    pub fn used(&self) -> impl Iterator<Item = (PackId, bool)> + '_ {
        let records = self.packs.iter().enumerate();
        let used = records.filter(|(_, record)| !record.slots.is_empty());
        used.map(|(pack, _)| {
            let pack = PackId(pack as u32);
            (pack, !self.is_filling(pack))
        })
    }

    fn is_filling(&self, pack: PackId) -> bool {
        self.in_ram_pages().any(|f| f.pack == pack)
    }

    /// Recounts bytes and pages; `is_live` says whether a logical page refers to an object,
    /// and that is a delta.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, is_live: impl Fn(ObjectId) -> bool) -> Result<(), String> {
        let (mut on_flash, mut live) = (0, 0);
        for (pack, filled) in self.used() {
            let record = &self.packs[pack.index()];
            let named = record.slots.iter().filter(|s| s.object.is_some());
            let bytes: u16 = named.clone().map(Slot::bytes).sum();
            let written: u16 = record.slots.iter().map(Slot::bytes).sum();
            let noted = (record.named_bytes, record.written_bytes);
            let fits = u32::from(written) + HEADER_BYTES <= UNIT_BYTES;
            if noted != (bytes, written) || bytes == 0 || !fits {
                return Err(format!(
                    "packed page {pack} notes {noted:?} named and written bytes, its slots take {bytes} of \
                     {written}"
                ));
            }
            if !filled && named.count() != record.slots.len() {
                return Err(format!("packed page {pack} in RAM has a dead slot"));
            }
            let counted = record.slots.iter().filter(|s| is_live(s.object)).count();
            if counted != usize::from(record.live_slots) {
                return Err(format!(
                    "packed page {pack} notes {} live slots, has {counted}",
                    record.live_slots
                ));
            }
            on_flash += u32::from(filled);
            live += u32::from(filled && counted > 0);
        }
        for filling in self.in_ram_pages() {
            let slots = self.packs[filling.pack.index()].slots.len();
            if slots != filling.values.len() {
                return Err(format!(
                    "packed page {} in RAM has {slots} slots and {} values",
                    filling.pack,
                    filling.values.len()
                ));
            }
        }
        if (on_flash, live) != (self.on_flash, self.live) {
            return Err(format!(
                "{on_flash} packed pages lie on flash, {live} with live slots; counted are {} and {}",
                self.on_flash, self.live
            ));
        }
        Ok(())
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let slots = self.packs.iter().map(|p| p.slots.capacity());
        self.packs.capacity() * size_of::<Pack>()
            + slots.sum::<usize>() * size_of::<Slot>()
            + self.spare.iter().map(Vec::capacity).sum::<usize>() * size_of::<Slot>()
            + self.line.heap_bytes()
    }
}

/// A page and its number.
type Turn = (PackId, u32);

/// Pages on flash in the order in which they were filled: to be merged when there are too many. Some are given
/// up by now. A page without live slots leaves the line when its turn comes, and comes back to its place
/// when it has one again.
///
/// Invariant: those that came back were filled before all others in line.
#[derive(Debug, Clone, Default)]
struct Line {
    first: VecDeque<Turn>,
    /// Those that came back: number and page.
    back: BinaryHeap<Reverse<(u64, PackId)>>,
    /// How many pages were ever filled. Numbers are the lower half of it.
    next: u64,
}

impl Line {
    /// The page filled last goes to the end; answers its number.
    fn append(&mut self, pack: PackId) -> u32 {
        let number = self.next as u32;
        self.first.push_back((pack, number));
        self.next += 1;
        number
    }

    /// A page that has left comes back.
    fn bring_back(&mut self, pack: PackId, number: u32) {
        let ago = (self.next as u32).wrapping_sub(number);
        let filled = self.next - u64::from(ago);
        self.back.push(Reverse((filled, pack)));
    }

    fn foremost(&self) -> Option<Turn> {
        let back = self.back.peek();
        let back = back.map(|&Reverse((filled, pack))| (pack, filled as u32));
        back.or_else(|| self.first.front().copied())
    }

    fn pop(&mut self) {
        if self.back.pop().is_none() {
            self.first.pop_front();
        }
    }

    fn heap_bytes(&self) -> usize {
        self.first.capacity() * size_of::<Turn>()
            + self.back.capacity() * size_of::<Reverse<(u64, PackId)>>()
    }
}

/// Pages that are looked at to find one that is nearly empty.
const LOOKS: u32 = 64;

/// Turns of pages given up that may stand in the order besides as many as there are pages.
const SPARE_TURNS: usize = 1024;

/// Whether a page is still what it was when it got this turn.
fn is_current(packs: &[Pack], (pack, number): Turn) -> bool {
    let record = &packs[pack.index()];
    record.number == number && record.named_bytes > 0 && record.location.is_some()
}
