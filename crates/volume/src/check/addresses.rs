//! Which logical pages need what cannot be read: looked for in all rows, for that alone.
//!
//! A page needs its object, the packed page of that, and the same of the base. The rows of objects are gone through twice, since
//! a base may have the higher handle, and the map once.

use flashlore_flash::{Lpn, ObjectId, Owner, PackSlot};
use rustc_hash::{FxHashMap, FxHashSet};

use super::data::Damage;
use super::named::NamedObjects;
use super::view::{RowView, pack_owner};
use crate::error::VolumeError;
use crate::findings::Finding;
use crate::format::{ObjectPlace, ObjectRow, Table};
use crate::unit::LOST;

/// The findings with the pages that need them; how many pages and objects there was no room for, of so many.
pub(super) fn findings(
    view: &RowView<'_>,
    named: Option<&NamedObjects>,
    damage: Damage,
    room: usize,
) -> Result<(Vec<Finding>, u64), VolumeError> {
    let mut needed = Needers {
        units: FxHashMap::default(),
        values: FxHashMap::default(),
        met: FxHashSet::default(),
        objects: FxHashMap::default(),
        left: room,
        more: 0,
    };
    let mut found = Vec::with_capacity(damage.units.len() + damage.values.len());
    for (unit, owner, why) in damage.units {
        needed
            .units
            .entry(owner)
            .or_default()
            .push(found.len() as u32);
        let addresses = Vec::new();
        found.push(Finding {
            unit,
            why,
            addresses,
        });
    }
    let units = found.len();
    for (unit, owner, slot) in damage.values {
        needed.values.insert((owner, slot), found.len() as u32);
        found.push(Finding {
            unit,
            why: LOST.to_owned(),
            addresses: Vec::new(),
        });
    }
    if found.is_empty() {
        return Ok((found, 0));
    }
    match named {
        None => needed.own_pages(&mut found),
        Some(named) => {
            needed.find_objects(view, named)?;
            needed.find_pages(view, &mut found)?;
        }
    }
    // Of the values those count that something refers to.
    let mut number = 0..;
    found.retain(|_| {
        let number = number.next().unwrap_or(u32::MAX);
        (number as usize) < units || needed.met.contains(&number)
    });
    Ok((found, needed.more))
}

/// What needs what cannot be read.
struct Needers {
    /// By owner, and of a packed page by slot, which finding it is.
    units: FxHashMap<Owner, Vec<u32>>,
    values: FxHashMap<(Owner, PackSlot), u32>,
    /// Findings that an object needs by itself.
    met: FxHashSet<u32>,
    /// The findings that each object needs.
    objects: FxHashMap<ObjectId, Vec<u32>>,
    /// Room for objects and pages, and of how many there was none for.
    left: usize,
    more: u64,
}

impl Needers {
    fn has_room(&mut self) -> bool {
        let has_room = self.left > 0;
        self.left = self.left.saturating_sub(1);
        self.more += u64::from(!has_room);
        has_room
    }

    /// On a plain volume the owner of a unit is the page that needs it.
    fn own_pages(&self, found: &mut [Finding]) {
        for (owner, findings) in &self.units {
            for &finding in findings {
                found[finding as usize].addresses.push(owner.as_page());
            }
        }
    }

    /// What an object needs by itself.
    fn needed_by(&self, object: ObjectId, row: &ObjectRow) -> impl Iterator<Item = u32> {
        let (unit, value) = match &row.place {
            ObjectPlace::Unit(_) => {
                // Handles are numbers below those of packed pages.
                (Some(Owner::numbered(object.0)), None)
            }
            ObjectPlace::Packed(packed) => {
                let owner = pack_owner(packed.pack);
                (owner, owner.map(|owner| (owner, packed.slot)))
            }
        };
        let units = unit.and_then(|unit| self.units.get(&unit));
        let value = value.and_then(|value| self.values.get(&value));
        units.into_iter().flatten().chain(value).copied()
    }

    fn find_objects(
        &mut self,
        view: &RowView<'_>,
        named: &NamedObjects,
    ) -> Result<(), VolumeError> {
        let handles = Table::Objects.rows(view.id);
        view.each_object(0..handles, |object, row| {
            if named.alive.has(object) {
                let needed: Vec<u32> = self.needed_by(object, row).collect();
                self.met.extend(&needed);
                self.add(object, &needed);
            }
        })?;
        if !view.id.encoding.is_on() {
            return Ok(());
        }
        view.each_object(0..handles, |object, row| {
            let of_base = row.base().and_then(|base| self.objects.get(&base));
            if let Some(needed) = of_base.filter(|_| named.alive.has(object)).cloned() {
                self.add(object, &needed);
            }
        })
    }

    fn add(&mut self, object: ObjectId, needed: &[u32]) {
        if !needed.is_empty() && self.has_room() {
            let all = self.objects.entry(object).or_default();
            all.extend(needed);
            all.sort_unstable();
            all.dedup();
        }
    }

    fn find_pages(&mut self, view: &RowView<'_>, found: &mut [Finding]) -> Result<(), VolumeError> {
        view.each_mapped(|lpn: Lpn, row| {
            let Some(needed) = self.objects.get(&row.as_object()).cloned() else {
                return;
            };
            for finding in needed {
                if self.has_room() {
                    found[finding as usize].addresses.push(lpn);
                }
            }
        })
    }
}
