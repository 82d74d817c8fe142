//! What a device over bytes needs besides: to begin with what a recovery found, to say where a value is to be read, and
//! to write one anew that has rotted.

use flashlore_content::Encoder;
use flashlore_content::dedup::FingerprintIndex;
use flashlore_content::history::History;
use flashlore_flash::{
    Cause, Completion, Flash, Lpn, ObjectId, Owned, Owner, PackId, PackSlot, Ppn, Ready, Tag, Time,
    Unit, When,
};

use super::device::{ContentDevice, Policies};
use super::encoding::Encoded;
use super::parts::{EncodedOf, Failure, NoteOf, ObjectsOf, PacksOf, PageOf, Parts, TablesOf};
use super::store::{Store, nowhere};
use crate::core::Core;
use crate::core::restore::{RestoredBlocks, RestoredUnits};
use crate::error::OptionsError;
use crate::map_cache::Resident;
use crate::mapping::packing::Packing;
use crate::mapping::packs::{PackTallies, Slot};
use crate::mapping::tallies::Tallies;
use crate::options::FtlOptions;
use crate::policies::history::Versions;
use crate::policies::{Asked, Policy, PolicySet};

/// Packed pages that are programmed one after the other, each leading to a collection that begins the next: with so
/// many in a row there is no end.
const MOST_ROUNDS: u32 = 1000;

/// An encoded value found by a recovery that is in no packed page yet.
#[derive(Debug, Clone, Copy)]
pub struct RestoredInRam<V> {
    /// Its slot, which names its object.
    pub slot: Slot,
    /// The value.
    pub value: V,
}

/// Where a value is to be read, so that whoever asked can do it while the device goes on. What is named holds as
/// long as the blocks are not erased.
#[derive(Debug, Clone)]
pub enum HeldValue<P, V> {
    /// It is at hand.
    Here(P),
    /// A unit on flash holds it.
    Unit(Ppn),
    /// It is encoded.
    Encoded {
        /// The encoded value.
        value: HeldEncoded<V>,
        /// What it was encoded against, which is not encoded itself or only by itself.
        base: Option<Box<HeldValue<P, V>>>,
    },
}

/// Where a value is to be read on a device, or that what waits there cannot be read any more.
pub type HeldOn<T> = Result<HeldValue<PageOf<T>, EncodedOf<T>>, Failure<T>>;

impl<P, V> HeldValue<P, V> {
    /// The same with another form of the encoded values at hand.
    pub fn map<W>(self, to: &impl Fn(V) -> W) -> HeldValue<P, W> {
        match self {
            HeldValue::Here(page) => HeldValue::Here(page),
            HeldValue::Unit(ppn) => HeldValue::Unit(ppn),
            HeldValue::Encoded { value, base } => HeldValue::Encoded {
                value: match value {
                    HeldEncoded::Here(value) => HeldEncoded::Here(to(value)),
                    HeldEncoded::Slot(ppn, slot) => HeldEncoded::Slot(ppn, slot),
                },
                base: base.map(|base| Box::new(base.map(to))),
            },
        }
    }
}

/// Where an encoded value is to be read.
#[derive(Debug, Clone)]
pub enum HeldEncoded<V> {
    /// It is at hand.
    Here(V),
    /// In a slot of a packed page.
    Slot(Ppn, PackSlot),
}

/// What a recovery found.
#[derive(Debug)]
pub struct Restored<O, P, V, H> {
    /// The map and the objects, in their tables.
    pub objects: O,
    /// What is counted of them.
    pub tallies: Tallies,
    /// Values that are encoded and in no packed page.
    pub in_ram: Vec<RestoredInRam<V>>,
    /// Packed pages on flash, in their table.
    pub packs: P,
    /// Old versions, where they are kept.
    pub history: Option<H>,
    /// The blocks.
    pub blocks: RestoredBlocks,
    /// What is valid in them.
    pub units: RestoredUnits,
}

impl<T: Parts<Cache = Resident>> ContentDevice<T> {
    /// The most objects of a device, and the bits of a fingerprint: what its tables of objects are made with.
    pub fn most_and_bits(
        flash: &T::Flash,
        options: &FtlOptions,
        policies: &Policies<T::Encoder>,
    ) -> (u32, u32) {
        let most = Self::most_objects(flash, options);
        (most, policies.dedup.fingerprint_bits)
    }

    /// A device with content. Nothing is hashed in idle time; without a history nothing becomes one. The fingerprint index
    /// is empty ([`ContentDevice::fill_index`]), and packed pages are to be looked at ([`ContentDevice::look_at_packs`]).
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn restore(
        flash: T::Flash,
        options: FtlOptions,
        policies: Policies<T::Encoder>,
        ledger: T::Ledger,
        found: Restored<ObjectsOf<T>, PacksOf<T>, EncodedOf<T>, History<TablesOf<T>>>,
    ) -> Result<Self, OptionsError> {
        let Restored {
            objects,
            tallies,
            in_ram,
            packs,
            history,
            blocks,
            units,
        } = found;
        let dedup = policies.dedup;
        let most = Self::most_objects(&flash, &options);
        let log = policies.encoding.is_some();
        let packing = policies.encoding.map(|_| Packing::new(packs, 0));
        let options = FtlOptions { log, ..options };
        let tables = flash.tables();
        let core = Core::restore(flash, options, &blocks, units)?;
        let mut set = PolicySet::new(&Asked {
            tables: &tables,
            dedup,
            encoding: policies.encoding,
            versions: None,
            exported: objects.len(),
            most_objects: most,
        });
        let kept = policies.versions.zip(history);
        set.versions = kept.map(|(options, history)| Versions::restore(history, options));
        let store = Store {
            referenced: tallies.referenced,
            objects,
            packing,
            encoded: policies.encoding.as_ref().map(Encoded::new),
            policies: set,
            ledger,
            encoder: policies.encoder,
            located: Vec::new(),
        };
        let mut ftl = ContentDevice { core, store };
        ftl.restore_packed(&tallies, in_ram);
        // Versions given up since the last barrier are there again.
        ftl.store.make_room_of_history(&mut ftl.core);
        ftl.store.note_beyond(&ftl.core);
        Ok(ftl)
    }

    fn restore_packed(&mut self, tallies: &Tallies, in_ram: Vec<RestoredInRam<EncodedOf<T>>>) {
        let Store {
            objects,
            packing,
            encoder,
            ..
        } = &mut self.store;
        let Some(packing) = packing else {
            return;
        };
        packing.most_packs = Self::most_packs(&self.core);
        let is_live = |objects: &ObjectsOf<T>, object: ObjectId| {
            object.is_some() && objects.references(object) > 0 && objects.is_delta(object)
        };
        for RestoredInRam { slot, value } in in_ram {
            let base = objects.packed(slot.object).map(|(_, base)| base);
            encoder.hold(slot.object, base.unwrap_or(ObjectId::NONE), &value);
            let live = is_live(objects, slot.object);
            let page = packing.packs.restore_in_ram(slot, live, value);
            objects.repack(slot.object, page);
        }
        packing.packed = tallies.packed;
        packing.pinned = tallies.pinned;
    }

    /// Looks at so many more of the packed pages that a recovery brought back: until then nobody knows which of them has the
    /// most bytes to which nothing refers, and which was filled first. Whether there are more.
    pub fn look_at_packs(&mut self, most: u32) -> bool {
        self.store.look_at_packs(&mut self.core, most)
    }

    /// The packed page that [`ContentDevice::look_at_packs`] looks at next.
    pub fn next_pack_to_look_at(&self) -> Option<PackId> {
        let packing = self.store.packing.as_ref();
        packing.and_then(|packing| packing.packs.next_to_look_at())
    }

    /// Enters objects that are stored and were not entered into the fingerprint index, from a handle on: of so many handles
    /// at most. Answers where to go on; nothing once it has seen all.
    pub fn fill_index(&mut self, from: ObjectId, most: u32) -> Option<ObjectId> {
        if !self.store.policies.dedup.is_on() {
            return None;
        }
        let objects = &mut self.store.objects;
        let end = from.0.saturating_add(most).min(objects.handles());
        for object in (from.0..end).map(ObjectId) {
            if !objects.is_dead(object) {
                self.store.policies.dedup.index.refill(objects, object);
            }
        }
        let is_incomplete = end < objects.handles();
        self.store
            .policies
            .dedup
            .index
            .set_incomplete(is_incomplete);
        is_incomplete.then_some(ObjectId(end))
    }

    /// Programs all packed pages that are in RAM, those that a recovery found there too. Programming one may
    /// collect, which begins another.
    ///
    /// # Errors
    /// A full device or a failure of it.
    pub fn program_packs(&mut self) -> Result<(), Failure<T>> {
        for _ in 0..MOST_ROUNDS {
            self.flush_packs(0)?;
            let Some(packing) = &mut self.store.packing else {
                return Ok(());
            };
            if !packing.packs.take_waiting() && packing.packs.in_ram_count() == 0 {
                packing.packs.give_back_empty();
                return Ok(());
            }
        }
        Err(self.core.full())
    }

    /// What is counted of the tables.
    pub fn tallies(&self) -> Tallies {
        let Store {
            objects, packing, ..
        } = &self.store;
        Tallies {
            stored: objects.live(),
            referenced: match T::HOLDS_MORE {
                true => self.store.referenced,
                false => objects.live(),
            },
            packed: packing.as_ref().map_or(0, |packing| packing.packed),
            pinned: packing.as_ref().map_or(0, |packing| packing.pinned),
            spilled: objects.spilled(),
            packs: packing
                .as_ref()
                .map_or_else(PackTallies::default, |packing| packing.packs.tallies()),
        }
    }

    /// The flash pages that hold an object: that of its base, if it has one, and its own.
    pub fn places(&self, object: ObjectId) -> [Option<Ppn>; 2] {
        self.store.places(object)
    }

    /// The objects that lie in a valid unit.
    ///
    /// # Errors
    /// A failure of the device, but not that the unit is lost.
    pub fn objects_in(&mut self, ppn: Ppn) -> Result<Vec<ObjectId>, Failure<T>> {
        let owner = self.core.owner_of(ppn);
        let (Owned::Pack(pack), true) = (owner.owned(), self.store.packing.is_some()) else {
            return Ok(vec![owner.as_object()]);
        };
        let slots = self.store.borrow_slots(&mut self.core, pack, None)?;
        let objects = slots.iter().map(|slot| slot.object);
        let objects = objects.filter(|object| object.is_some()).collect();
        self.store.give_back_slots(slots);
        Ok(objects)
    }

    /// Changes what the device keeps of an object.
    pub fn change_note(&mut self, object: ObjectId, change: impl FnOnce(&mut NoteOf<T>)) {
        self.store.objects.change_note(object, change);
    }

    /// Erases the blocks in which nothing is valid.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn reclaim_empty(&mut self, at: Time) -> Result<(), Failure<T>> {
        self.core.reclaim_empty(&mut self.store, at)
    }

    /// Before each write of the host, where collection goes in steps: as many of them as it owes.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn keep_pace(&mut self) -> Result<(), Failure<T>> {
        self.core.keep_pace(&mut self.store, 0)
    }

    /// One step of collection; whether there was anything to do.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn collect_step(&mut self) -> Result<bool, Failure<T>> {
        self.core.collect_step(&mut self.store, 0)
    }

    /// Reads what an object holds, to compare it.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn read_object(&mut self, object: ObjectId) -> Result<PageOf<T>, Failure<T>> {
        if T::ENCODES {
            return self.store.decode(&mut self.core, object);
        }
        let ppn = self.store.objects.at(object);
        self.core
            .read(Ready::At(0), ppn, Cause::Verify, Tag::NONE)?;
        self.core.content(ppn)
    }

    /// The object whose value the host reads at a logical page; nothing is timed.
    pub fn begin_read(&mut self, lpn: Lpn) -> Option<ObjectId> {
        let object = self.store.objects.object_of(lpn)?;
        self.core.counters.host_reads += 1;
        self.store.policies.on_read(lpn);
        Some(object)
    }

    /// Where the value of an object is to be read.
    ///
    /// # Errors
    /// A failure of the device: what waits in a page buffer may be a copy of what it cannot read.
    pub fn held(&mut self, object: ObjectId) -> HeldOn<T> {
        let Some((pack, base)) = self.store.objects.packed(object) else {
            return self.held_unit(self.store.objects.at(object));
        };
        let base = match base {
            ObjectId::NONE => None,
            base => Some(Box::new(self.held(base)?)),
        };
        let packs = self.store.packing.as_ref().map(|packing| &packing.packs);
        let note = self.store.objects.note(object);
        let found = packs.and_then(|packs| {
            let (slot, _) = packs.slot_of(pack, object, note)?;
            Some((slot, packs.in_ram(pack, slot).cloned(), packs.at(pack)))
        });
        let Some((slot, in_ram, at)) = found else {
            return self.held_unit(nowhere::<T>());
        };
        let value = match in_ram {
            Some(value) => HeldEncoded::Here(value),
            None => match self.held_unit(at)? {
                HeldValue::Here(page) => HeldEncoded::Here(self.store.encoder.unpack(&page, slot)),
                _ => HeldEncoded::Slot(at, slot),
            },
        };
        Ok(HeldValue::Encoded { value, base })
    }

    fn held_unit(&mut self, at: Ppn) -> HeldOn<T> {
        match self.core.is_buffered(at) {
            true => self.core.content(at).map(HeldValue::Here),
            false => Ok(HeldValue::Unit(at)),
        }
    }

    /// What waits in a page buffer to be programmed at `ppn`, unless it is a copy.
    pub fn waiting(&self, ppn: Ppn) -> Option<&PageOf<T>> {
        match self.core.buffered(ppn) {
            Some(Unit::New { page, .. }) => Some(page),
            _ => None,
        }
    }

    /// Writes the content of an object anew, because the stored page has rotted.
    ///
    /// # Errors
    /// As [`ContentDevice::write`].
    pub fn rewrite(
        &mut self,
        when: When,
        lpn: Lpn,
        object: ObjectId,
        page: PageOf<T>,
    ) -> Result<Completion, Failure<T>> {
        let (ppn, done) = self.core.append_host(
            &mut self.store,
            when,
            lpn,
            Owner::object(object),
            page,
            Tag::NONE,
        )?;
        if T::ENCODES && self.store.objects.is_packed(object) {
            self.store.materialized(&mut self.core, object, ppn);
        } else {
            self.core.invalidate(self.store.objects.at(object));
            self.store.objects.place(object, ppn);
        }
        Ok(done)
    }
}
