//! What lies on a medium, in words: every structure as docs/format.md describes it, one line each.
//! Broken structures are shown as such; nothing stops at them.

use std::io::{self, Write};

use flashlore_flash::{ObjectId, PackId, PageId, Ppn};
use flashlore_medium::{AlignedBuf, Medium};

use crate::error::VolumeError;
use crate::format::areas::geometry;
use crate::format::journal::JournalValue;
use crate::format::packed::{self, Head};
use crate::format::superblock::{EPOCH_SHIFT, SUPERBLOCK_BYTES, Unusable};
use crate::format::{
    Areas, AreasError, BlockState, Change, Identity, JournalEntry, ObjectPlace, PackedRow, Root,
    Slot, Superblock, UnitKind,
};
use crate::load::{self, Tables};
use crate::unit::read_slot;

/// Which parts of a volume to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpParts {
    /// Superblocks and roots.
    pub heads: bool,
    /// The tables of the last checkpoint.
    pub tables: bool,
    /// The journal after it.
    pub journal: bool,
    /// The records of every flash page.
    pub records: bool,
}

/// Why a dump ended early.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// There is no volume to show.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Shows parts of the volume on a medium.
///
/// # Errors
/// No superblock holds, or the output fails.
pub fn dump(medium: &dyn Medium, parts: DumpParts, out: &mut impl Write) -> Result<(), DumpError> {
    if parts.heads {
        superblocks(medium, out)?;
    }
    let superblock = load::superblock(medium)?;
    let id = &superblock.identity;
    let areas = Areas::at(id, superblock.metadata).map_err(VolumeError::from)?;
    if parts.heads {
        roots(medium, id, &areas, out)?;
    }
    let root = load::root(medium, id, &areas);
    let root = match root {
        Ok(root) => root,
        Err(error) => {
            writeln!(out, "no further: {error}")?;
            return Ok(());
        }
    };
    if parts.tables {
        match load::tables(medium, id, &areas, &root) {
            Ok(tables) => rows(id, &tables, out)?,
            Err(error) => writeln!(out, "tables: {error}")?,
        }
    }
    if parts.journal {
        journal(medium, id, &areas, &root, out)?;
    }
    if parts.records {
        records(medium, id, &areas, out)?;
    }
    Ok(())
}

fn superblocks(medium: &dyn Medium, out: &mut impl Write) -> io::Result<()> {
    for copy in 0..2 {
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        let read = medium.read(copy * SUPERBLOCK_BYTES as u64, &mut bytes);
        let decoded = match (read, bytes.first_chunk()) {
            (Err(error), _) => {
                writeln!(out, "superblock {copy}: {error}")?;
                continue;
            }
            (Ok(()), Some(bytes)) => Superblock::decode(bytes),
            (Ok(()), None) => Err(Unusable::Broken),
        };
        match decoded {
            Ok(found) => superblock(copy, &found, out)?,
            Err(why) => writeln!(out, "superblock {copy}: not usable, {why:?}")?,
        }
    }
    Ok(())
}

fn superblock(copy: u64, found: &Superblock, out: &mut impl Write) -> io::Result<()> {
    let id = &found.identity;
    let uuid: String = id.uuid.iter().map(|b| format!("{b:02x}")).collect();
    writeln!(
        out,
        "superblock {copy}: write {} epoch {} policy {:?} uuid {uuid} created {} exported {} \
         blocks {} pages_per_block {} units_per_page {} alignment {} index_entries {} journal_bytes {} \
         history {:?} encoding {:?} metadata at byte {}{}",
        found.write,
        found.epoch,
        id.policy,
        id.created,
        id.exported,
        id.blocks,
        id.pages_per_block,
        id.units_per_page,
        id.alignment,
        id.index_entries,
        id.journal_bytes,
        id.history,
        id.encoding,
        found.metadata,
        if found.in_use { " in use" } else { "" },
    )?;
    for start in &found.epochs {
        writeln!(
            out,
            "superblock {copy}: epoch {} goes on after event {}",
            start.epoch,
            EventNumber(start.after)
        )?;
    }
    Ok(())
}

/// A sequence number, write sequence number or generation as epoch and number within it.
struct EventNumber(u64);

impl std::fmt::Display for EventNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let within = self.0 & ((1 << EPOCH_SHIFT) - 1);
        write!(f, "{}.{within}", self.0 >> EPOCH_SHIFT)
    }
}

/// An object of the history.
struct Handle(ObjectId);

impl std::fmt::Display for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ObjectId::NONE => f.write_str("nothing"),
            object => write!(f, "object {object}"),
        }
    }
}

fn roots(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    out: &mut impl Write,
) -> io::Result<()> {
    let roots = match load::roots(medium, id, areas) {
        Ok(roots) => roots,
        Err(error) => return writeln!(out, "roots: {error}"),
    };
    for (parity, root) in roots.into_iter().enumerate() {
        match root {
            Some(root) => writeln!(
                out,
                "root {parity}: checkpoint {} epoch {} event {} stamp {} oldest {} entries {} pins {}",
                root.checkpoint,
                root.epoch,
                EventNumber(root.sequence),
                root.stamp,
                root.history.oldest,
                root.history
                    .window
                    .queue
                    .len
                    .saturating_sub(root.history.window.gaps),
                root.history.pins,
            )?,
            None => writeln!(out, "root {parity}: does not hold")?,
        }
    }
    Ok(())
}

fn rows(id: &Identity, tables: &Tables, out: &mut impl Write) -> io::Result<()> {
    for (lpn, &row) in tables.map.iter().enumerate() {
        match id.has_objects() {
            _ if !row.is_some() => {}
            true => writeln!(out, "map: page {lpn} object {}", row.as_object())?,
            false => writeln!(out, "map: page {lpn} unit {}", row.as_unit())?,
        }
    }
    for (handle, object) in tables.objects.iter().enumerate() {
        let place = match object.place {
            // Nothing was ever written under a free handle.
            _ if object.write_seq == 0 => continue,
            ObjectPlace::Unit(Ppn::NONE) => continue,
            ObjectPlace::Unit(unit) => format!("unit {unit}"),
            ObjectPlace::Packed(_) => {
                let pack = object.pack().unwrap_or(PackId::NONE);
                format!("packed page {pack}")
            }
        };
        writeln!(
            out,
            "object {handle}: {place} write sequence number {} digest {:x}",
            EventNumber(object.write_seq),
            object.digest.0,
        )?;
        if let Some(packed) = object.packed() {
            let base = Handle(packed.base);
            let PackedRow { slot, length, .. } = packed;
            writeln!(out, "  slot {} bytes {length} base {base}", slot.0)?;
        }
    }
    for (pack, row) in tables.packs.iter().enumerate() {
        if let Some(row) = row {
            writeln!(
                out,
                "packed page {pack}: unit {} bytes {} number {}",
                row.location.0, row.written_bytes, row.number
            )?;
        }
    }
    for (what, entries) in [("version", &tables.versions), ("kept", &tables.kept)] {
        for entry in entries {
            let (lpn, object, stamp) = (entry.lpn, Handle(entry.object), entry.stamp);
            writeln!(out, "{what}: page {lpn} referred to {object} until {stamp}")?;
        }
    }
    for pin in &tables.pins {
        writeln!(
            out,
            "pin: instant {} snapshot {}",
            pin.instant, pin.snapshot
        )?;
    }
    for note in &tables.notes {
        writeln!(out, "note: {note:?}")?;
    }
    for (block, row) in tables.blocks.iter().enumerate() {
        let state = match row.state {
            BlockState::Free => continue,
            BlockState::Sealed => "sealed".to_string(),
            BlockState::Open(stream) => format!("open for {stream:?}"),
        };
        writeln!(
            out,
            "block {block}: {state} erases {} generation {} pages {}",
            row.erases,
            EventNumber(row.generation),
            row.taken,
        )?;
    }
    Ok(())
}

fn journal(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
    out: &mut impl Write,
) -> io::Result<()> {
    let tail = match load::journal(medium, id, areas, root) {
        Ok(tail) => tail,
        Err(error) => return writeln!(out, "journal: {error}"),
    };
    for (number, batch) in tail.batches.iter().enumerate() {
        writeln!(
            out,
            "batch {number}: segment {} epoch {} durable {} entries {}",
            batch.segment,
            batch.epoch,
            EventNumber(batch.durable),
            batch.entries.len(),
        )?;
        for JournalValue { head, .. } in &batch.values {
            value(head, out)?;
        }
        for entry in &batch.entries {
            match *entry {
                JournalEntry::Event {
                    sequence,
                    stamp,
                    change,
                } => {
                    write!(out, "  event {} stamp {stamp}: ", EventNumber(sequence))?;
                    match change {
                        Change::Share { lpn, object } => {
                            writeln!(out, "page {lpn} shares {object}")?
                        }
                        Change::Trim { lpn } => writeln!(out, "page {lpn} trimmed")?,
                        Change::Rewind { instant } => writeln!(out, "rewind to {instant}")?,
                        Change::Snapshot { instant, name: 0 } => {
                            writeln!(out, "snapshot of {instant}")?;
                        }
                        Change::Snapshot { instant, name } => {
                            writeln!(out, "snapshot of {instant}, with a name of {name} bytes")?;
                        }
                        Change::DeleteSnapshot { instant } => {
                            writeln!(out, "snapshot of {instant} deleted")?;
                        }
                        Change::Purge { first, end } => {
                            writeln!(out, "old versions of pages {first} to {end} purged")?;
                        }
                        Change::Forget { before } => {
                            writeln!(out, "everything before {before} purged")?;
                        }
                        Change::Note { kind, instant, .. } => {
                            writeln!(out, "{kind:?} noted of {instant}")?;
                        }
                    }
                }
                JournalEntry::Open {
                    block,
                    stream,
                    generation,
                    erases,
                } => writeln!(
                    out,
                    "  block {block} opened for {stream:?}: generation {} erases {erases}",
                    EventNumber(generation)
                )?,
                JournalEntry::Dead {
                    lpn,
                    write_seq,
                    stamp,
                    object,
                } => writeln!(
                    out,
                    "  write sequence number {} of page {lpn} stamp {stamp} may be erased, it made object {object}",
                    EventNumber(write_seq)
                )?,
                JournalEntry::Window { oldest } => {
                    writeln!(out, "  the window begins at {oldest}")?
                }
                JournalEntry::Part {
                    sequence, bytes, ..
                } => writeln!(
                    out,
                    "  for event {}: {:?}",
                    EventNumber(sequence),
                    String::from_utf8_lossy(&bytes)
                )?,
            }
        }
    }
    writeln!(out, "journal: {} bytes used", tail.position.offset)
}

/// What is known of an encoded value.
fn value(head: &Head, out: &mut impl Write) -> io::Result<()> {
    let base = head
        .base
        .map_or("nothing".to_string(), |base| base.to_string());
    writeln!(
        out,
        "  {} of page {} object {} write sequence number {} base {base} stamp {} bytes {} digest {:032x}",
        if head.lost { "lost value" } else { "value" },
        head.lpn,
        head.object,
        EventNumber(head.write_seq),
        head.stamp,
        head.length,
        head.digest.0,
    )
}

fn records(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    out: &mut impl Write,
) -> Result<(), DumpError> {
    let geometry = geometry(id).map_err(|e| VolumeError::from(AreasError::from(e)))?;
    let mut bytes = AlignedBuf::zeroed(areas.page_stride as usize);
    for page in (0..geometry.blocks() * geometry.pages_per_block()).map(PageId) {
        let block = geometry.block_of_page(page);
        if let Err(error) = medium.read(areas.page(page), &mut bytes) {
            writeln!(out, "block {block} page {page}: {error}")?;
            continue;
        }
        let first = geometry.first_unit_of_page(page).0;
        for ppn in (first..first + geometry.units_per_page()).map(Ppn) {
            match read_slot(&bytes, areas, id, ppn) {
                Slot::Empty => {}
                Slot::Broken => writeln!(out, "unit {ppn}: record does not hold")?,
                Slot::Record(placed) if placed.record.kind == UnitKind::Packed => {
                    writeln!(
                        out,
                        "unit {}: packed block {} generation {} epoch {} digest {:032x}",
                        ppn.0,
                        block.0,
                        EventNumber(placed.generation),
                        placed.epoch,
                        placed.record.digest.0,
                    )?;
                    let data = &bytes[areas.data_in_page(ppn)];
                    match packed::heads(&id.key, data, placed.record.write_seq) {
                        Some(heads) => heads.iter().try_for_each(|head| value(head, out))?,
                        None => writeln!(out, "  the heads of its values do not hold")?,
                    }
                }
                Slot::Record(placed) => writeln!(
                    out,
                    "unit {}: {} page {} write sequence number {} block {} generation {} epoch {} stamp {} digest {:032x}",
                    ppn.0,
                    match placed.record.kind {
                        UnitKind::Data | UnitKind::Packed => "data of",
                        UnitKind::Lost => "lost data of",
                    },
                    placed.record.lpn,
                    EventNumber(placed.record.write_seq),
                    block.0,
                    EventNumber(placed.generation),
                    placed.epoch,
                    placed.record.stamp,
                    placed.record.digest.0,
                )?,
            }
        }
    }
    Ok(())
}
