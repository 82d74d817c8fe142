//! What the tables of the translation layer say beside each other, counted anew: references of objects, owners of units,
//! free handles, valid units, and what the root tells of them.
//!
//! Nothing is taken from them that they say of each other: all of it follows from the map, the history and where objects
//! lie.

use std::collections::{BTreeMap, HashMap};

use flashlore_content::history::{ChainsAt, History, HistoryTables};
use flashlore_content::{Content, Digest, DigestTag, PURGED};
use flashlore_flash::{Chunks, InMemory, Lpn, ObjectId, Owner, PackId, Ppn, Queue, Row};
use flashlore_ftl::mapping::objects::{Object, References, SpilledPart};
use flashlore_ftl::mapping::packs::{Pack, PackTallies, slot_bytes};
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_medium::Medium;
use flashlore_metadata::{LinkedRows, Stored};

use super::stored::Rows;
use super::{Tables, objects_of, of_store};
use crate::error::VolumeError;
use crate::format::tables::UNITS_PER_WORD;
use crate::format::{Areas, Identity, ObjectNote, ObjectPlace, Root, Table};
use crate::policies::history_options;

/// Compares what is stored of the tables of a checkpoint with what follows from the others.
///
/// # Errors
/// A sentence that names what is wrong, or a page cannot be read.
pub(super) fn check(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
    tables: &Tables,
) -> Result<(), VolumeError> {
    let stored = Stored::open(medium, areas.store, id.key).map_err(of_store)?;
    let rows = Rows { stored, id };
    if !id.has_objects() {
        let pages = (0..).map(|lpn| Owner::page(Lpn(lpn))).zip(&tables.map);
        let mapped = pages.filter(|(_, row)| row.is_some());
        let owners: BTreeMap<Ppn, Owner> =
            mapped.map(|(owner, row)| (row.as_unit(), owner)).collect();
        let tallies = Tallies {
            stored: owners.len() as u32,
            ..Tallies::default()
        };
        check_owners(&rows, &owners)?;
        return check_tallies(root, tallies);
    }
    check_history(&rows, root, tables)?;
    let references = references(tables);
    let spilled = spilled(&rows, root.tallies.spilled)?;
    match id.trusts_digests() {
        false => check_objects::<DigestTag>(&rows, &references, &spilled)?,
        true => check_objects::<Digest>(&rows, &references, &spilled)?,
    }
    check_packs(&rows, root, tables, &references)?;
    check_free(&rows, |handle| references.get(handle.index()).copied())?;
    check_owners(&rows, &owners(tables, &references))?;
    check_tallies(root, tallies(root, tables, &references))
}

/// What the root must tell.
fn tallies(root: &Root, tables: &Tables, references: &[References]) -> Tallies {
    let alive = || references.iter().filter(|references| !references.is_none());
    let count = |is: &dyn Fn(&References) -> bool| alive().filter(|r| is(r)).count() as u32;
    let packed = references.iter().zip(&tables.objects);
    let packed = packed.filter(|(references, row)| !references.is_none() && row.packed().is_some());
    Tallies {
        stored: count(&|_| true),
        referenced: count(&|references| references.live > 0),
        packed: packed.count() as u32,
        pinned: count(&|references| references.live + references.kept == 0),
        // How many rows were used before, nothing else says.
        spilled: root.tallies.spilled,
        packs: PackTallies {
            on_flash: tables.packs.iter().flatten().count() as u32,
            ..root.tallies.packs
        },
    }
}

/// What each packed page notes of its slots, and which numbers are free.
fn check_packs(
    rows: &Rows<'_>,
    root: &Root,
    tables: &Tables,
    references: &[References],
) -> Result<(), VolumeError> {
    let told = root.tallies.packs;
    let mut counted = vec![(0u16, 0u16); told.numbers as usize];
    for (references, row) in references.iter().zip(&tables.objects) {
        let packed = row.packed().filter(|_| !references.is_none());
        let page = row.pack().and_then(|pack| counted.get_mut(pack.index()));
        let Some((packed, page)) = packed.zip(page) else {
            continue;
        };
        page.0 = page.0.saturating_add(slot_bytes(packed.length));
        page.1 += u16::from(references.live > 0 && packed.base.is_some());
    }
    let mut links = vec![None; counted.len()];
    let mut wrong = None;
    let mut live = 0;
    rows.each(Table::Packs, |row, bytes| {
        let Some(&counted) = counted.get(row.index()) else {
            return;
        };
        let page = Pack::decode(bytes);
        let (_, named, live_slots) = page.counted();
        live += u32::from(live_slots > 0);
        links[row.index()] = page.on_flash().is_none().then(|| page.next_free());
        if counted != (named, live_slots) {
            wrong.get_or_insert((row, page, counted));
        }
    })?;
    if let Some((row, page, (named, live_slots))) = wrong {
        return Err(damaged(format!(
            "packed page {row} is stored as {page:?}, its objects take {named} bytes, {live_slots} are live"
        )));
    }
    let mut free = told.free;
    while let Some(next) = links.get_mut(free.index()).and_then(Option::take) {
        free = next;
    }
    match (live == told.live, links.iter().flatten().count()) {
        (true, 0) if free == PackId::NONE => Ok(()),
        (_, lost) => Err(damaged(format!(
            "{live} packed pages hold live values, the root tells {}; {lost} free ones are not listed, \
             the list ends with {free}",
            told.live
        ))),
    }
}

/// The chains of old versions, and how many of them there are.
fn check_history(rows: &Rows<'_>, root: &Root, tables: &Tables) -> Result<(), VolumeError> {
    let Some(options) = history_options(rows.id) else {
        return Ok(());
    };
    let chains = |entries: Table, heads: Table, at: &ChainsAt| {
        let mut queue = Chunks::starting_at(at.queue.first);
        let all = rows.chain(entries, at)?;
        all.into_iter().for_each(|entry| queue.push(entry));
        let mut newest = vec![0; heads.rows(rows.id) as usize];
        rows.each(heads, |row, bytes| newest[row.index()] = u32::decode(bytes))?;
        Ok::<_, VolumeError>((queue, newest))
    };
    let at = root.history.at(&tables.pins);
    let (versions, heads) = chains(Table::Versions, Table::Heads, &at.window)?;
    let kept = chains(Table::Kept, Table::KeptHeads, &at.kept)?;
    let of = HistoryTables::<InMemory> {
        versions,
        heads,
        kept: Some(kept),
    };
    let history = History::of_tables(&InMemory, options, &at, of);
    history
        .check()
        .map_err(|what| damaged(format!("the history: {what}")))
}

fn check_tallies(root: &Root, counted: Tallies) -> Result<(), VolumeError> {
    match root.tallies == counted {
        true => Ok(()),
        false => Err(damaged(format!(
            "the root tells {:?}, counted are {counted:?}",
            root.tallies
        ))),
    }
}

/// What is spilled of the counts of each object.
pub(super) type SpilledCounts = HashMap<ObjectId, [u32; 3]>;

/// The spilled counts, in so many rows.
pub(super) fn spilled(rows: &Rows<'_>, used: u32) -> Result<SpilledCounts, VolumeError> {
    let mut found = SpilledCounts::new();
    let mut wrong = None;
    rows.each(Table::Spilled, |row, bytes| {
        let SpilledPart { object, kind, part } = SpilledPart::decode(bytes);
        if row.0 >= used || part == 0 {
            return;
        }
        match found.entry(object).or_default().get_mut(kind as usize) {
            Some(before) if *before == 0 => *before = part,
            _ => _ = wrong.get_or_insert((object, kind)),
        }
    })?;
    wrong.map_or(Ok(found), |(object, kind)| {
        Err(damaged(format!(
            "object {object} has two spilled counts of kind {kind}, or there is no such kind"
        )))
    })
}

/// What refers to each object.
fn references(tables: &Tables) -> Vec<References> {
    let mut references = vec![References::default(); tables.objects.len()];
    let named = |object: &ObjectId| object.is_some() && *object < PURGED;
    for object in objects_of(&tables.map).filter(|object| object.is_some()) {
        references[object.index()].live += 1;
    }
    for object in tables.kept_objects().filter(named) {
        references[object.index()].kept += 1;
    }
    for handle in (0..tables.objects.len() as u32).map(ObjectId) {
        let base = tables.objects[handle.index()].base();
        let is_named = !references[handle.index()].is_none();
        let base = base.filter(|_| is_named).map(ObjectId::index);
        if let Some(base) = base.and_then(|base| references.get_mut(base)) {
            base.pins += 1;
            base.dependents ^= handle.0;
        }
    }
    references
}

/// Whose each unit is that is needed.
fn owners(tables: &Tables, references: &[References]) -> BTreeMap<Ppn, Owner> {
    let mut owners = BTreeMap::new();
    for (handle, row) in (0..).map(ObjectId).zip(&tables.objects) {
        if references[handle.index()].is_none() {
            continue;
        }
        match row.place {
            ObjectPlace::Unit(unit) => owners.insert(unit, Owner::object(handle)),
            ObjectPlace::Packed(_) => row.pack().and_then(|pack| {
                let page = tables.packs.get(pack.index())?.as_ref()?;
                owners.insert(page.location, Owner::pack(pack))
            }),
        };
    }
    owners
}

fn damaged(what: String) -> VolumeError {
    VolumeError::Damaged(what)
}

fn check_objects<C: Content>(
    rows: &Rows<'_>,
    references: &[References],
    spilled: &SpilledCounts,
) -> Result<(), VolumeError> {
    let mut wrong = None;
    rows.each(Table::Objects, |row, bytes| {
        let object = Object::<C, ObjectNote>::decode(bytes);
        let counted = references.get(row.index()).copied().unwrap_or_default();
        let spilled = spilled.get(&ObjectId(row.0)).copied().unwrap_or_default();
        if !object.has(&counted, spilled) {
            wrong.get_or_insert((row, object, counted, spilled));
        }
    })?;
    let Some((row, object, counted, spilled)) = wrong else {
        return Ok(());
    };
    Err(damaged(format!(
        "object {row} is stored as {object:?} with {spilled:?} elsewhere, counted are {counted:?}"
    )))
}

/// A handle is free if nothing refers to it.
fn check_free(
    rows: &Rows<'_>,
    references: impl Fn(ObjectId) -> Option<References>,
) -> Result<(), VolumeError> {
    let shape = Table::Objects.shape(rows.id);
    let linked = LinkedRows::of(&shape);
    let mut first = vec![0u8; shape.leaves() as usize];
    rows.each(Table::FreeHandles, |row, bytes| {
        first[row.index()] = bytes[0]
    })?;
    let mut links = vec![0u32; shape.rows as usize];
    rows.each(Table::Objects, |row, bytes| {
        links[row.index()] = u32::decode(&bytes[..4])
    })?;
    let mut is_free = vec![false; links.len()];
    for (page, &first) in first.iter().enumerate() {
        let free = linked
            .list(page, first, |row| links[row])
            .map_err(damaged)?;
        free.into_iter().for_each(|row| is_free[row] = true);
    }
    // The last row is nobody's.
    is_free.pop();
    let handles = (0..).map(ObjectId).zip(&is_free);
    let is_wrong = |&(handle, &is_free): &(ObjectId, &bool)| {
        references(handle).unwrap_or_default().is_none() != is_free
    };
    match handles.into_iter().find(is_wrong) {
        None => Ok(()),
        Some((handle, true)) => Err(damaged(format!(
            "object {handle} is in use, and listed as free"
        ))),
        Some((handle, false)) => Err(damaged(format!(
            "nothing refers to object {handle}, and it is not listed as free"
        ))),
    }
}

/// A unit is valid if it has an owner, and that is the one that is noted.
fn check_owners(rows: &Rows<'_>, owners: &BTreeMap<Ppn, Owner>) -> Result<(), VolumeError> {
    let mut stored = vec![Owner::page(Lpn(0)); Table::Owners.rows(rows.id) as usize];
    rows.each(Table::Owners, |row, bytes| {
        stored[row.index()] = Owner::decode(bytes)
    })?;
    let mut valid = vec![0u64; Table::Valid.rows(rows.id) as usize];
    for (unit, owner) in owners {
        let noted = stored.get(unit.index());
        if noted != Some(owner) {
            return Err(damaged(format!(
                "unit {unit} is noted as that of {noted:?}, it is that of {owner:?}"
            )));
        }
        valid[unit.index() / 64] |= 1 << (unit.0 % 64);
    }
    rows.each(Table::Valid, |row, bytes| {
        valid[row.index()] ^= u64::decode(bytes);
    })?;
    let Some(word) = valid.iter().position(|word| *word != 0) else {
        return Ok(());
    };
    let unit = Ppn(word as u32 * UNITS_PER_WORD + valid[word].trailing_zeros());
    Err(damaged(match owners.get(&unit) {
        Some(owner) => format!("unit {unit} is that of {owner:?}, and noted as free"),
        None => format!("nothing lies on unit {unit}, and it is noted as valid"),
    }))
}
