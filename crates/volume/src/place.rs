//! Where everything lies that something refers to after a replay: rows of objects, and packed pages.
//!
//! An object of the checkpoint lies where its row says, unless a copy of its write was found since, or the block
//! was opened again since: then something else lies there, and without a copy the object is lost. A write since
//! the checkpoint lies in the best copy found. What a packed value needs as base is needed too.
//!
//! Invariants: every object named has a row; the base of a packed one has, and needs none itself; the slots of a
//! packed page are those on the medium, in their order.

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{ObjectId, PackId, PackSlot, Ppn};
use flashlore_ftl::mapping::objects::FoundPack;
use flashlore_ftl::mapping::packs::{
    HEADER_BYTES, MOST_BYTES, NewPack, RestoredPack, SLOT_BYTES, slot_bytes,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::best::Best;
use crate::error::VolumeError;
use crate::format::rows::UNSHAREABLE;
use crate::format::{ObjectPlace, ObjectRow, PackedRow};
use crate::load::Known;
use crate::replay::{ObjectNames, Reopened, RowOverlay};
use crate::scan::{FoundSlot, FoundUnit, Quality, ValueIndex};

/// What is known of copies.
pub(crate) struct Copies<'a> {
    pub known: Known<'a>,
    /// Which objects the heads of values mean.
    pub names: &'a ObjectNames<'a>,
    /// The best copy of every write.
    pub best: &'a Best<'a>,
    /// Everything found, the values of a packed unit together.
    pub found: &'a [FoundUnit],
    /// Whether digests are trusted.
    pub trusted: bool,
    /// Whether the volume encodes values.
    pub encodes: bool,
    /// The most objects.
    pub most: u32,
    /// Where something else lies than the checkpoint says.
    pub reopened: &'a Reopened<'a>,
}

/// Where everything lies.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// By handle, once what has become of the rows of the checkpoint is brought into these.
    pub objects: Vec<ObjectRow>,
    /// Handles whose rows differ from the checkpoint.
    pub changed: Vec<ObjectId>,
    /// Packed pages of the checkpoint by number, of those that were gone through.
    pub packs: Vec<Option<RestoredPack>>,
    /// Those that it does not have.
    pub new_packs: Vec<NewPack>,
    /// Handles of values that stand in the journal alone, and which value it is.
    pub in_journal: FxHashMap<ObjectId, ValueIndex>,
    /// Handles of writes since the checkpoint.
    pub made: FxHashMap<u64, ObjectId>,
    /// One of them has another handle than it had: what the medium says of it until the next checkpoint does not
    /// hold for what is written from here on.
    pub is_renamed: bool,
    /// Handles of values that are nowhere any more; they have no location yet.
    pub lost: Vec<ObjectId>,
}

impl Placed {
    /// All packed pages under their numbers, where `filled` were ever filled before, and the numbers of those that the
    /// checkpoint does not have; nothing if there are not as many.
    pub fn numbered(&self, filled: u64) -> Option<(Vec<Option<RestoredPack>>, Vec<PackId>)> {
        let mut packs = self.packs.clone();
        let free = (0..).map(PackId).zip(&self.packs);
        let mut free = free
            .filter(|(_, pack)| pack.is_none())
            .map(|(pack, _)| pack);
        let mut numbers = Vec::new();
        for (number, new) in (filled..).zip(&self.new_packs) {
            let pack = free.next()?;
            packs[pack.index()] = Some(RestoredPack {
                location: new.location,
                number: number as u32,
                written_bytes: new.written_bytes,
            });
            numbers.push(pack);
        }
        Some((packs, numbers))
    }
}

/// Something that is referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// An object of the checkpoint.
    Old(ObjectId),
    /// A write since.
    New(u64),
}

/// Where a recovery finds a value.
enum Located {
    /// In a copy made since the checkpoint.
    Copy(FoundUnit),
    /// Where the checkpoint has it.
    Row,
    /// It is lost.
    Nowhere,
}

/// A copy that counts, of the object with this handle.
struct Chosen {
    handle: ObjectId,
    copy: FoundUnit,
    base: Option<Name>,
}

fn damaged<T>(what: String) -> Result<T, VolumeError> {
    Err(VolumeError::Damaged(what))
}

/// Places what is named, and the bases of it. `stays` says whether something refers to an object of the checkpoint in the
/// end, where not all that do are named.
///
/// # Errors
/// Something that is needed is not there.
pub(crate) fn place<'a>(
    copies: &'a Copies<'a>,
    named: impl Iterator<Item = Name>,
    stays: Option<&dyn Fn(ObjectId) -> bool>,
) -> Result<(Placed, RowOverlay<'a, ObjectRow>), VolumeError> {
    let needed = with_bases(copies, named)?;
    let mut placing = Placing {
        objects: RowOverlay::new(copies.known.handles(), |row| {
            copies.known.object(ObjectId(row as u32))
        }),
        out: Placed::default(),
    };
    let chosen = placing.assign(copies, &needed, stays)?;
    let needed = needed.names;
    placing.locate(copies, &chosen)?;
    placing.out.lost.sort_unstable();
    placing.restore_packs(copies, &needed, &chosen)?;
    placing.refuse_chains(&needed)?;
    Ok((placing.out, placing.objects))
}

/// What is being placed.
struct Placing<'a> {
    /// Rows of objects.
    objects: RowOverlay<'a, ObjectRow>,
    out: Placed,
}

impl Copies<'_> {
    /// Where a value is. A copy that holds counts instead of the row of the checkpoint. Where the row leads to a block
    /// that was opened again since, something else lies there: then a copy that does not hold is all there is, or none.
    fn find(&self, name: Name) -> Located {
        match name {
            Name::Old(handle) => {
                let copy = self.best.get(self.row(handle).write_seq);
                match copy {
                    Some(copy) if copy.quality > Quality::Broken => Located::Copy(*copy),
                    _ if !self.is_gone(handle) => Located::Row,
                    Some(copy) => Located::Copy(*copy),
                    None => Located::Nowhere,
                }
            }
            Name::New(write_seq) => match self.best.get(write_seq) {
                Some(copy) => Located::Copy(*copy),
                None => Located::Nowhere,
            },
        }
    }

    /// Whether what a row of the checkpoint leads to was erased since.
    fn is_gone(&self, handle: ObjectId) -> bool {
        let unit = match self.row(handle).place {
            ObjectPlace::Packed(_) => {
                let pack = self.row(handle).pack();
                let pack = pack.and_then(|pack| self.known.pack(pack));
                pack.map(|pack| pack.location)
            }
            ObjectPlace::Unit(unit) => Some(unit),
        };
        unit.is_some_and(|unit| self.reopened.has(unit))
    }

    /// The row of an object in the checkpoint.
    fn row(&self, handle: ObjectId) -> ObjectRow {
        self.known.object(handle).unwrap_or(ObjectRow::NONE)
    }

    /// What a name needs to be decoded, if that is there and needs nothing itself.
    pub fn needed_base(&self, name: Name) -> Result<Option<Name>, VolumeError> {
        let Some(base) = self.base(name)? else {
            return Ok(None);
        };
        Ok(matches!(self.base(base), Ok(None)).then_some(base))
    }

    /// What a name needs to be decoded.
    fn base(&self, name: Name) -> Result<Option<Name>, VolumeError> {
        match (self.find(name), name) {
            (Located::Copy(copy), _) => {
                let write_seq = copy.record.write_seq;
                let Some(base) = copy.slot.and_then(|slot| slot.base) else {
                    return Ok(None);
                };
                match self.names.meant(base, write_seq) {
                    Some(base) => Ok(Some(base)),
                    None => damaged(format!(
                        "write sequence number {write_seq} is a delta from {base}, which does not exist"
                    )),
                }
            }
            (Located::Row, Name::Old(handle)) => match self.row(handle).base() {
                Some(base) if base.index() >= self.known.handles() => damaged(format!(
                    "object {handle} is a delta from object {base}, which does not exist"
                )),
                base => Ok(base.map(Name::Old)),
            },
            (Located::Row | Located::Nowhere, _) => Ok(None),
        }
    }
}

/// What must be placed.
struct Needed {
    /// What is named and the bases of it, each once, in order.
    names: Vec<Name>,
    /// Those of them, in order, whose base is found as a delta alone: it was materialized before it became a base, and
    /// that copy cannot be read. Without it they cannot be decoded.
    undecodable: Vec<Name>,
}

fn with_bases(
    copies: &Copies<'_>,
    named: impl Iterator<Item = Name>,
) -> Result<Needed, VolumeError> {
    let mut names: Vec<Name> = named.collect();
    names.sort_unstable();
    names.dedup();
    let (mut bases, mut undecodable) = (Vec::new(), Vec::new());
    for &name in &names {
        let Some(base) = copies.base(name)? else {
            continue;
        };
        match copies.base(base) {
            Ok(None) => bases.push(base),
            _ => undecodable.push(name),
        }
    }
    names.extend(bases);
    names.sort_unstable();
    names.dedup();
    Ok(Needed { names, undecodable })
}

impl Placing<'_> {
    /// The row of an object.
    fn row(&self, handle: ObjectId) -> ObjectRow {
        self.objects.get(handle.index()).unwrap_or(ObjectRow::NONE)
    }

    /// Gives writes rows; answers the copies that count.
    fn assign(
        &mut self,
        copies: &Copies<'_>,
        needed: &Needed,
        stays: Option<&dyn Fn(ObjectId) -> bool>,
    ) -> Result<Vec<Chosen>, VolumeError> {
        self.give_handles(copies, &needed.names, stays)?;
        let mut chosen = Vec::new();
        for &name in &needed.names {
            let handle = self.handle_of(name);
            match copies.find(name) {
                _ if needed.undecodable.binary_search(&name).is_ok() => {
                    self.lose(copies, name, handle);
                }
                Located::Copy(copy) => {
                    let base = copies.base(name)?;
                    chosen.push(Chosen { handle, copy, base });
                }
                Located::Row => {}
                Located::Nowhere => self.lose(copies, name, handle),
            }
        }
        Ok(chosen)
    }

    /// Gives each write the handle that its object had. What was given up in memory alone may be there again and have that
    /// handle: then it gets another.
    fn give_handles(
        &mut self,
        copies: &Copies<'_>,
        names: &[Name],
        stays: Option<&dyn Fn(ObjectId) -> bool>,
    ) -> Result<(), VolumeError> {
        let stays = |handle: ObjectId| match stays {
            Some(stays) => stays(handle),
            None => names.binary_search(&Name::Old(handle)).is_ok(),
        };
        let mut given = FxHashSet::default();
        let mut others = Vec::new();
        for name in names {
            let &Name::New(write_seq) = name else {
                continue;
            };
            let had = copies.names.made_by(write_seq);
            let had = had.filter(|had| had.index() < copies.most as usize);
            match had.filter(|&had| !stays(had) && !given.contains(&had)) {
                Some(handle) => {
                    given.insert(handle);
                    self.out.made.insert(write_seq, handle);
                }
                None => others.push(write_seq),
            }
        }
        self.out.is_renamed = !others.is_empty();
        let unused = (0..copies.most).map(ObjectId);
        let mut unused = unused.filter(|&handle| !stays(handle) && !given.contains(&handle));
        for write_seq in others {
            let Some(handle) = unused.next() else {
                return damaged("more objects than the table holds".to_string());
            };
            self.out.made.insert(write_seq, handle);
        }
        let rows = self.out.made.values().map(|handle| handle.index() + 1);
        self.objects
            .extend_to(rows.max().unwrap_or(0), ObjectRow::NONE);
        Ok(())
    }

    /// A value is nowhere any more: its row says which it was.
    fn lose(&mut self, copies: &Copies<'_>, name: Name, handle: ObjectId) {
        let before = self.row(handle);
        let lost = ObjectRow {
            place: ObjectPlace::Unit(Ppn::NONE),
            write_seq: match name {
                Name::Old(_) => before.write_seq,
                Name::New(write_seq) => write_seq,
            },
            digest: match name {
                Name::Old(_) if !copies.trusted => before.digest,
                _ => UNSHAREABLE,
            },
            is_unreadable: true,
        };
        self.objects.set(handle.index(), lost);
        self.out.changed.push(handle);
        self.out.lost.push(handle);
    }

    fn handle_of(&self, name: Name) -> ObjectId {
        match name {
            Name::Old(handle) => handle,
            Name::New(write_seq) => self
                .out
                .made
                .get(&write_seq)
                .copied()
                .unwrap_or(ObjectId::NONE),
        }
    }

    /// Rows of what has a copy that counts; those of packed values get their page later.
    fn locate(&mut self, copies: &Copies<'_>, chosen: &[Chosen]) -> Result<(), VolumeError> {
        for Chosen { handle, copy, base } in chosen {
            if copy.slot.is_some() && !copies.encodes {
                return damaged(format!(
                    "write sequence number {} is stored encoded, and the volume encodes nothing",
                    copy.record.write_seq
                ));
            }
            let before = self.row(*handle);
            let digest = match copy.quality {
                Quality::Lost | Quality::Broken if copies.trusted => UNSHAREABLE,
                Quality::Good => copy.record.digest,
                _ if before.write_seq == copy.record.write_seq => before.digest,
                _ => copy.record.digest,
            };
            let packed = copy.slot.map(|slot| PackedRow {
                pack: FoundPack::Waiting,
                base: base.map_or(ObjectId::NONE, |base| self.handle_of(base)),
                length: slot.length,
                slot: slot.index.slot(),
            });
            let row = ObjectRow {
                place: packed.map_or(ObjectPlace::Unit(copy.ppn), ObjectPlace::Packed),
                write_seq: copy.record.write_seq,
                digest,
                is_unreadable: matches!(copy.quality, Quality::Lost | Quality::Broken),
            };
            self.objects.set(handle.index(), row);
            self.out.changed.push(*handle);
            if let Some(FoundSlot {
                index,
                in_journal: true,
                ..
            }) = copy.slot
            {
                self.out.in_journal.insert(*handle, index);
            }
        }
        Ok(())
    }

    /// The packed pages that hold anything: those of the checkpoint under their numbers, others under free ones.
    fn restore_packs(
        &mut self,
        copies: &Copies<'_>,
        needed: &[Name],
        chosen: &[Chosen],
    ) -> Result<(), VolumeError> {
        if let Known::Loaded(tables) = copies.known {
            self.out.packs.resize(tables.packs.len(), None);
        }
        let with_copies: FxHashSet<ObjectId> = chosen.iter().map(|c| c.handle).collect();
        let mut old = OldPacks::default();
        for &name in needed {
            let handle = self.handle_of(name);
            if with_copies.contains(&handle) || self.out.lost.binary_search(&handle).is_ok() {
                continue;
            }
            if let Some(packed) = self.row(handle).packed() {
                let (number, page) = old.take(copies.known, handle, &packed)?;
                if let Some(pack) = self.out.packs.get_mut(number.index()) {
                    *pack = Some(page);
                }
            }
        }
        old.refuse_longer(copies.known)?;
        self.restore_new_packs(copies, chosen)
    }

    /// Packed pages found since the checkpoint.
    fn restore_new_packs(
        &mut self,
        copies: &Copies<'_>,
        chosen: &[Chosen],
    ) -> Result<(), VolumeError> {
        let in_units = chosen
            .iter()
            .filter(|c| c.copy.slot.is_some_and(|slot| !slot.in_journal));
        // By unit, how many values it has, and their bytes.
        let mut units: FxHashMap<Ppn, (u32, u16)> = FxHashMap::default();
        for c in in_units.clone() {
            units.entry(c.copy.ppn).or_default();
        }
        for unit in copies.found {
            if let (Some(slot), Some((slots, bytes))) = (unit.slot, units.get_mut(&unit.ppn)) {
                *slots += 1;
                *bytes += slot_bytes(slot.length);
            }
        }
        let mut numbers: FxHashMap<Ppn, u32> = FxHashMap::default();
        for Chosen { handle, copy, .. } in in_units {
            let (slots, written_bytes) = units[&copy.ppn];
            let number = *numbers.entry(copy.ppn).or_insert_with(|| {
                self.out.new_packs.push(NewPack {
                    location: copy.ppn,
                    written_bytes,
                });
                self.out.new_packs.len() as u32 - 1
            });
            let row = self.row(*handle);
            let ObjectPlace::Packed(mut packed) = row.place else {
                continue;
            };
            packed.pack = FoundPack::New(number);
            let place = ObjectPlace::Packed(packed);
            self.objects.set(handle.index(), ObjectRow { place, ..row });
            if u32::from(packed.slot.0) >= slots {
                return damaged(format!(
                    "object {handle} has slot {} of the packed page in unit {}, which was found without it",
                    packed.slot.0, copy.ppn
                ));
            }
        }
        Ok(())
    }

    /// A base needs none itself.
    fn refuse_chains(&self, needed: &[Name]) -> Result<(), VolumeError> {
        let base_of = |handle: ObjectId| self.row(handle).base();
        for &name in needed {
            let handle = self.handle_of(name);
            if let Some(base) = base_of(handle)
                && base_of(base).is_some()
            {
                return damaged(format!(
                    "object {handle} is a delta from object {base}, which is one itself"
                ));
            }
        }
        Ok(())
    }
}

/// What is in use of the packed pages of a checkpoint.
#[derive(Default)]
struct OldPacks {
    /// By page, what the slots in use take.
    named: FxHashMap<PackId, u32>,
    slots: FxHashSet<(PackId, PackSlot)>,
}

impl OldPacks {
    /// An object has its slot; answers its page.
    fn take(
        &mut self,
        known: Known<'_>,
        handle: ObjectId,
        packed: &PackedRow,
    ) -> Result<(PackId, RestoredPack), VolumeError> {
        let PackedRow { length, slot, .. } = *packed;
        let FoundPack::Numbered(number) = packed.pack else {
            return damaged(format!("object {handle} lies in no packed page"));
        };
        if u32::from(length) > MOST_BYTES {
            return damaged(format!(
                "object {handle} takes {length} bytes of a packed page, at most {MOST_BYTES} fit"
            ));
        }
        let Some(page) = known.pack(number) else {
            return damaged(format!(
                "object {handle} lies in packed page {number}, which does not exist"
            ));
        };
        if u32::from(page.written_bytes) + HEADER_BYTES > UNIT_BYTES {
            return damaged(format!(
                "packed page {number} is said to hold {} bytes",
                page.written_bytes
            ));
        }
        if !self.slots.insert((number, slot)) {
            return damaged(format!(
                "object {handle} has slot {} of packed page {number}, which is no free one",
                slot.0
            ));
        }
        *self.named.entry(number).or_default() += u32::from(length) + SLOT_BYTES;
        Ok((number, page))
    }

    /// Slots in use take no more than all of them do.
    fn refuse_longer(&self, known: Known<'_>) -> Result<(), VolumeError> {
        for (&number, &named) in &self.named {
            let page = known.pack(number);
            let written = page.map_or(0, |page| u32::from(page.written_bytes));
            if named > written {
                return damaged(format!(
                    "the values of packed page {number} take {named} bytes, more than its {written}"
                ));
            }
        }
        Ok(())
    }
}
