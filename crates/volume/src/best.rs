//! The best unit of every birth, among all that a recovery found.

use std::collections::HashMap;

use crate::scan::FoundUnit;

/// Which unit of a birth counts: a number a birth, as there may be millions.
pub(crate) struct Best<'a> {
    found: &'a [FoundUnit],
    /// By birth, the place among those found.
    places: HashMap<u64, u32>,
}

impl<'a> Best<'a> {
    /// Judges units by their rank, the first among equals. Those without a birth are of no use here.
    pub fn of(found: &'a [FoundUnit]) -> Self {
        let mut places = HashMap::new();
        for (place, unit) in (0..).zip(found) {
            if unit.record.birth == 0 {
                continue;
            }
            let at: &mut u32 = places.entry(unit.record.birth).or_insert(place);
            if found[*at as usize].rank() < unit.rank() {
                *at = place;
            }
        }
        Best { found, places }
    }

    /// The best unit of a birth.
    pub fn get(&self, birth: u64) -> Option<&'a FoundUnit> {
        let place = self.places.get(&birth)?;
        Some(&self.found[*place as usize])
    }

    /// The best unit of each birth, in no order.
    pub fn units(&self) -> impl Iterator<Item = &'a FoundUnit> + '_ {
        let found = self.found;
        self.places
            .values()
            .map(move |&place| &found[place as usize])
    }
}
