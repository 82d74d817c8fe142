//! Packed pages counted anew.

use flashlore_flash::{ObjectId, PackId, Tables};
use rustc_hash::FxHashMap;

use super::{Filling, Pack, Packs, Slot, slot_bytes};

impl<E: Clone, S: Tables> Packs<E, S> {
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
            *bytes = bytes.saturating_add(slot_bytes(length));
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
        let rows = self.used().map(|(pack, _)| (pack, self.row(pack)));
        let looked_at = |&(pack, row): &(PackId, Pack)| self.is_looked_at(pack, row.number);
        let in_line = rows.filter(|(_, row)| row.is_live()).filter(looked_at);
        self.line.check(in_line, self.tallies.filled)?;
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
}
