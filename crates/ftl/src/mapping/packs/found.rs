//! Packed pages as a recovery finds them: made anew as a whole, or the rows of a checkpoint with what has happened since.
//!
//! What a recovery does not look at for that is looked at later: until then a page has no dead bytes that its block knows of,
//! and does not stand in line to be merged.
//!
//! Invariant: a page was looked at once, or was filled since.

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{PackId, Ppn, Table, Tables};

use super::line::{Line, Pages, nth};
use super::row::{NewPack, Pack, PackTallies, RestoredPack};
use super::{Filler, Filling, HEADER_BYTES, Packs, Slot, slot_bytes};

impl<E: Clone, S: Tables> Packs<E, S> {
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
                row.named_bytes = row.named_bytes.saturating_add(slot_bytes(length));
                row.live_slots = row.live_slots.saturating_add(u16::from(live));
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
            let bring = |line: &mut Line, pages: &mut Pages<'_, _>| {
                line.bring_back(pack, row.number, pages)
            };
            let has_turn = row.is_live() && self.with_line(bring);
            self.note_turn(pack, row.in_line, has_turn);
            each(row.location, row.dead_bytes());
        }
        let is_all = end == self.tallies.numbers;
        self.looked_at = if is_all { u32::MAX } else { end };
        !is_all
    }

    /// The page that is looked at next, if there are more.
    pub fn next_to_look_at(&self) -> Option<PackId> {
        (self.looked_at < self.tallies.numbers).then_some(PackId(self.looked_at))
    }

    /// Whether a page was looked at, or filled since the recovery.
    pub(super) fn is_looked_at(&self, pack: PackId, number: u32) -> bool {
        self.looked_at()(pack, number)
    }

    /// The same of any page.
    pub(super) fn looked_at(&self) -> impl Fn(PackId, u32) -> bool + use<E, S> {
        let (looked_at, filled, before) = (self.looked_at, self.tallies.filled, self.filled_before);
        move |pack, number| pack.0 < looked_at || nth(number, filled) >= before
    }

    /// Bytes of a page that nobody refers to, if that was looked at.
    pub(super) fn known_dead(&self, pack: PackId, row: &Pack) -> u32 {
        match self.is_looked_at(pack, row.number) {
            true => row.dead_bytes(),
            false => 0,
        }
    }

    /// A recovery takes the slot of an object out of a page, which may be live.
    pub fn leave(&mut self, pack: PackId, length: u16, live: bool) {
        let bytes = slot_bytes(length);
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
        self.change(pack, |row| {
            row.named_bytes = row.named_bytes.saturating_add(slot_bytes(length))
        });
        if live {
            self.gain_live(pack);
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
