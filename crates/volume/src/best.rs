//! The best unit of every write, among all that a recovery found.

use rustc_hash::FxHashMap;

use crate::scan::FoundUnit;

/// Which unit of a write counts: a number a write, as there may be millions.
pub(crate) struct Best<'a> {
    found: &'a [FoundUnit],
    /// By write sequence number, the place among those found.
    places: FxHashMap<u64, u32>,
}

impl<'a> Best<'a> {
    /// Judges units by their rank, the first among equals. Those without a write sequence number are of no use here.
    pub fn of(found: &'a [FoundUnit]) -> Self {
        let mut places = FxHashMap::default();
        for (place, unit) in (0..).zip(found) {
            if unit.record.write_seq == 0 {
                continue;
            }
            let at: &mut u32 = places.entry(unit.record.write_seq).or_insert(place);
            if found[*at as usize].rank() < unit.rank() {
                *at = place;
            }
        }
        Best { found, places }
    }

    /// The best unit of a write.
    pub fn get(&self, write_seq: u64) -> Option<&'a FoundUnit> {
        let place = self.places.get(&write_seq)?;
        Some(&self.found[*place as usize])
    }

    /// The best unit of each write, in no order.
    pub fn units(&self) -> impl Iterator<Item = &'a FoundUnit> + '_ {
        let found = self.found;
        self.places
            .values()
            .map(move |&place| &found[place as usize])
    }
}
