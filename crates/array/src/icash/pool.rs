//! The pool of data blocks: who uses which, and where they lie.
//!
//! A data block is in use while a virtual block holds it, a durable place names it as its own, or deltas are
//! based on it, durable ones (of blocks) or present ones (of virtual blocks). It ends when none of that is left, and
//! the slot and the frozen place it lies in are free. What is in use is never overwritten.
//!
//! Invariants:
//!
//! - A data block in use lies in one slot, or in one frozen place, or in both. One that lies in no frozen place lies in
//!   the slot in which it was written first, for that is where a recovery looks for it.
//! - `slots` says of each slot which data block lies in it; those in which none does are in `free`, once.
//! - A frozen place is in `free_places` if no data block in use lies in it. The media still say then which one did:
//!   its name is in `reserved` until they say something else, and no new data block gets it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use roaring::RoaringBitmap;

use crate::icash::blocks::Id;
use crate::icash::place::{DataBlock, Frozen};
use crate::index::{ArrayBlock, FrozenPlace, Index, Slot};

#[derive(Debug, Default)]
pub struct Users {
    /// The virtual block whose data block it is.
    pub holder: Option<Id>,
    /// The block whose durable place names it as its own.
    pub named_by: Option<ArrayBlock>,
    /// Blocks whose durable place is a delta from it.
    pub dependents: BTreeSet<ArrayBlock>,
    /// Virtual blocks, not its holder, whose present content is a delta from it in RAM.
    pub associates: BTreeSet<Id>,
    slot: Option<Slot>,
    frozen: Option<FrozenPlace>,
}

static NO_USERS: Users = Users {
    holder: None,
    named_by: None,
    dependents: BTreeSet::new(),
    associates: BTreeSet::new(),
    slot: None,
    frozen: None,
};

impl Users {
    /// Whether deltas of others are based on it: then its holder is a reference.
    pub fn is_base(&self) -> bool {
        !self.dependents.is_empty() || !self.associates.is_empty()
    }

    /// Where it lies on the fast medium, if it does.
    pub fn slot(&self) -> Option<Slot> {
        self.slot
    }

    /// The frozen place it lies in.
    pub fn frozen(&self) -> Option<FrozenPlace> {
        self.frozen
    }

    fn is_none(&self) -> bool {
        self.holder.is_none() && self.named_by.is_none() && !self.is_base()
    }
}

#[derive(Debug)]
pub struct Pool {
    used: HashMap<DataBlock, Users>,
    slots: Vec<Option<DataBlock>>,
    free: VecDeque<Slot>,
    places: u32,
    free_places: BTreeSet<FrozenPlace>,
    /// Where the search for free places goes on, so that one that fails is not tried again at once.
    next_place: FrozenPlace,
    reserved: HashSet<DataBlock>,
    /// Free slots and frozen places in which a data block lay that ended since; the media still hold it.
    unused_slots: RoaringBitmap,
    unused_places: RoaringBitmap,
}

impl Pool {
    /// So many slots and frozen places, and no data block. They are free once [`Pool::lay_out`] was called.
    pub fn new(slots: u32, places: u32) -> Self {
        Pool {
            used: HashMap::new(),
            slots: vec![None; slots as usize],
            free: VecDeque::new(),
            places,
            free_places: BTreeSet::new(),
            next_place: FrozenPlace(0),
            reserved: HashSet::new(),
            unused_slots: RoaringBitmap::new(),
            unused_places: RoaringBitmap::new(),
        }
    }

    /// Free slots and frozen places that may be given back. Whoever does that takes them out.
    pub fn unused(&mut self) -> (&mut RoaringBitmap, &mut RoaringBitmap) {
        (&mut self.unused_slots, &mut self.unused_places)
    }

    /// Says of each data block in use where it lies: in the frozen place that is said to hold it, else in the first
    /// slot it had. No two may be in one.
    pub fn lay_out(&mut self, frozen: impl Fn(FrozenPlace) -> Option<Frozen>) {
        for place in FrozenPlace::first(self.places) {
            let said = frozen(place).map(|frozen| frozen.data);
            match said.and_then(|data| self.used.get_mut(&data)) {
                Some(users) => users.frozen = Some(place),
                None => {
                    self.reserved.extend(said);
                    self.free_places.insert(place);
                }
            }
        }
        for (&data, users) in self.used.iter_mut().filter(|(_, u)| u.frozen.is_none()) {
            let slot = data.first_slot(self.slots.len() as u32);
            users.slot = Some(slot);
            self.slots[slot.index()] = Some(data);
        }
        let is_free = |slot: &Slot| self.slots[slot.index()].is_none();
        self.free = Slot::first(self.slots()).filter(is_free).collect();
    }

    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Slots that hold nothing.
    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    pub fn free_places(&self) -> u32 {
        self.free_places.len() as u32
    }

    /// The data blocks in use, by their names.
    pub fn in_use(&self) -> Vec<DataBlock> {
        let mut all: Vec<DataBlock> = self.used.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// Who uses a data block; nobody if there is none of this name.
    pub fn users(&self, data: DataBlock) -> &Users {
        self.used.get(&data).unwrap_or(&NO_USERS)
    }

    /// Whether deltas of others are based on a data block, if there is one.
    pub fn is_base(&self, data: Option<DataBlock>) -> bool {
        data.is_some_and(|data| self.users(data).is_base())
    }

    /// Whether a data block, if there is one, lies in a frozen place.
    pub fn is_frozen(&self, data: Option<DataBlock>) -> bool {
        data.is_some_and(|data| self.users(data).frozen.is_some())
    }

    /// Whether a data block lies on the fast medium.
    pub fn is_resident(&self, data: DataBlock) -> bool {
        self.users(data).slot.is_some()
    }

    /// Who uses a data block. [`Pool::release`] must be called when a user went.
    pub fn users_mut(&mut self, data: DataBlock) -> &mut Users {
        self.used.entry(data).or_default()
    }

    /// A new data block in a free slot; it must get a user or be given back with [`Pool::release`]. The slot that was
    /// free longest, so that one that fails is not tried again at once.
    pub fn take(&mut self) -> Option<(DataBlock, Slot)> {
        for _ in 0..self.free.len() {
            let slot = self.free.pop_front()?;
            let Some(data) = self.new_name(slot) else {
                self.free.push_back(slot);
                continue;
            };
            self.users_mut(data).slot = Some(slot);
            self.slots[slot.index()] = Some(data);
            self.unused_slots.remove(slot.0);
            return Some((data, slot));
        }
        None
    }

    /// A name that nobody has, by which a recovery finds a slot. There is none only if frozen data blocks, all from
    /// this slot, have them all.
    fn new_name(&self, slot: Slot) -> Option<DataBlock> {
        let names = (slot.0..u32::MAX).step_by(self.slots.len());
        let mut names = names.map(DataBlock::named);
        names.find(|data| !self.used.contains_key(data) && !self.reserved.contains(data))
    }

    /// Notes that a user went: a data block without users ends.
    pub fn release(&mut self, data: DataBlock) {
        if !self.used.get(&data).is_some_and(Users::is_none) {
            return;
        }
        self.leave_slot(data);
        if let Some(place) = self.users(data).frozen {
            self.reserved.insert(data);
            self.free_places.insert(place);
            self.unused_places.insert(place.0);
        }
        self.used.remove(&data);
    }

    /// Lets a data block that is frozen lie on the slow medium alone.
    pub fn leave_slot(&mut self, data: DataBlock) {
        let users = self.used.get_mut(&data);
        if let Some(slot) = users.and_then(|users| users.slot.take()) {
            self.slots[slot.index()] = None;
            self.free.push_back(slot);
            self.unused_slots.insert(slot.0);
        }
    }

    /// A free slot for a data block that lies in none. If it cannot be written, [`Pool::leave_slot`] gives it back.
    pub fn enter_slot(&mut self, data: DataBlock) -> Option<Slot> {
        let slot = self.free.pop_front()?;
        self.unused_slots.remove(slot.0);
        self.users_mut(data).slot = Some(slot);
        self.slots[slot.index()] = Some(data);
        Some(slot)
    }

    /// Free frozen places, at most so many, in runs where there are any. They stay free until [`Pool::freeze`].
    pub fn some_free_places(&mut self, most: usize) -> Vec<FrozenPlace> {
        let (before, behind) = (..self.next_place, self.next_place..);
        let places = self.free_places.range(behind);
        let places = places.chain(self.free_places.range(before));
        let places: Vec<FrozenPlace> = places.take(most).copied().collect();
        self.next_place = places.last().map_or(FrozenPlace(0), |&last| last + 1);
        places
    }

    /// Notes that a data block lies in a free place, durably, in which another one was said to lie before.
    pub fn freeze(&mut self, data: DataBlock, place: FrozenPlace, before: Option<Frozen>) {
        if let Some(before) = before {
            self.reserved.remove(&before.data);
        }
        self.free_places.remove(&place);
        self.unused_places.remove(place.0);
        self.users_mut(data).frozen = Some(place);
    }

    /// Bytes held, without the sets of users.
    pub fn heap_bytes(&self) -> usize {
        self.used.capacity() * (size_of::<(DataBlock, Users)>() + 1)
            + self.slots.capacity() * size_of::<Option<DataBlock>>()
            + self.free.capacity() * size_of::<Slot>()
            + self.reserved.capacity() * (size_of::<DataBlock>() + 1)
    }

    /// Recounts where data blocks lie and what is free, given what the media say of the frozen places.
    pub fn check(&self, frozen: impl Fn(FrozenPlace) -> Option<Frozen>) -> Result<(), String> {
        let mut slots = vec![None; self.slots.len()];
        let mut places = vec![None; self.places as usize];
        for (&data, users) in &self.used {
            if users.is_none() {
                return Err(format!("{data:?} has no users"));
            }
            let first = data.first_slot(self.slots());
            let is_found = match (users.slot, users.frozen) {
                (Some(slot), None) => slot == first,
                (None, None) => false,
                (_, Some(place)) => frozen(place).is_some_and(|frozen| frozen.data == data),
            };
            let here = users.slot.map(|slot| &mut slots[slot.index()]);
            let there = users.frozen.map(|place| &mut places[place.index()]);
            let shares = [here, there].into_iter().flatten();
            let shares = shares.map(|here| here.replace(data).is_some());
            if !is_found || shares.fold(false, |a, b| a | b) {
                return Err(format!(
                    "{data:?} cannot be found where it lies, or not alone: {users:?}"
                ));
            }
        }
        let mut free: Vec<Slot> = self.free.iter().copied().collect();
        free.sort_unstable();
        let free_places: Vec<FrozenPlace> = self.free_places.iter().copied().collect();
        if slots != self.slots
            || free != are_free::<Slot>(&slots)
            || free_places != are_free::<FrozenPlace>(&places)
        {
            return Err(format!(
                "slots hold {slots:?}, counted are {:?}; free are {free:?} and the frozen places {free_places:?}",
                self.slots
            ));
        }
        let is_in_use = self
            .unused_slots
            .iter()
            .any(|slot| slots[slot as usize].is_some())
            || self
                .unused_places
                .iter()
                .any(|place| places[place as usize].is_some());
        if is_in_use {
            return Err(format!(
                "slots {:?} and frozen places {:?} would be given back, and one is in use",
                self.unused_slots, self.unused_places
            ));
        }
        let said = free_places.iter().filter_map(|&place| frozen(place));
        let reserved: HashSet<DataBlock> = said.map(|frozen| frozen.data).collect();
        match reserved == self.reserved {
            true => Ok(()),
            false => Err(format!(
                "free frozen places name {reserved:?}, counted are {:?}",
                self.reserved
            )),
        }
    }
}

/// Those that hold nothing.
fn are_free<I: Index>(of: &[Option<DataBlock>]) -> Vec<I> {
    let free = { (0..).zip(of) }.filter(|(_, data)| data.is_none());
    free.map(|(number, _)| I::numbered(number)).collect()
}
