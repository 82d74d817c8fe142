//! Bytes laid over a small valid volume, which is then checked, shown and opened. Nothing of it may
//! panic. Shared by a test and the fuzzer.
//!
//! The first byte names the policy (bits 0 and 1), whether checksums are made to hold again (bit 2), and whether old
//! versions are kept and values encoded (bit 3).
//! Then follow patches: which part (1 byte), where in it (2 bytes), how many bytes (1 byte), the bytes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use flashlore_content::{PAGE_BYTES, VolumeKey};
use flashlore_flash::{Lpn, ObjectId, PageId, Ppn};
use flashlore_medium::MemoryMedium;
use flashlore_metadata::{Area, PAGE_BYTES as TABLE_PAGE_BYTES, Slot};
use flashlore_volume::dump::{DumpParts, dump};
use flashlore_volume::format::journal::{ENTRY_BYTES, HEADER_BYTES};
use flashlore_volume::format::packed;
use flashlore_volume::format::record::RECORD_BYTES;
use flashlore_volume::format::superblock::SUPERBLOCK_BYTES;
use flashlore_volume::format::{Areas, Identity, Policy};
use flashlore_volume::{Encoding, HistoryIdentity, Volume, bytes_needed, check, create};

/// A part of a volume that is checked as a whole.
#[derive(Debug, Clone, Copy)]
enum Part {
    Superblock(u64),
    Root(u64),
    Journal(u64),
    Table(Slot),
    Record(u32),
    Data(u32),
}

fn identity(policy: Policy, all: bool) -> Identity {
    Identity {
        version: flashlore_volume::format::superblock::VERSION,
        policy,
        history: all.then_some(HistoryIdentity {
            entries: 300,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: all,
            compression: all,
        },
        uuid: [1; 16],
        key: VolumeKey([9; 32]),
        created: 5,
        exported: 20,
        blocks: if all { 20 } else { 10 },
        pages_per_block: 3,
        units_per_page: 2,
        alignment: 512,
        index_entries: 20,
        journal_bytes: 64 << 10,
    }
}

/// A volume with a checkpoint, events after it, and two epochs.
fn image(policy: Policy, all: bool) -> &'static (Areas, Vec<u8>) {
    static IMAGES: [OnceLock<(Areas, Vec<u8>)>; 6] = [const { OnceLock::new() }; 6];
    IMAGES[policy as usize + 3 * usize::from(all)].get_or_init(|| {
        let id = identity(policy, all);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&*medium, &id).unwrap();
        for life in 0..3 {
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            for n in 0..30u32 {
                let lpn = (n * 7 + life) % 20;
                volume
                    .write(1, Lpn(lpn), &[(n % 9) as u8; PAGE_BYTES])
                    .unwrap();
                if all && n % 11 == 10 {
                    let instant = volume.snapshot(1).unwrap();
                    volume.rewind_to(1, instant - 3).unwrap();
                    volume.purge(1, Lpn(lpn)..Lpn(lpn + 1)).unwrap();
                }
                if n % 6 == 0 {
                    volume.trim(0, Lpn((lpn + 3) % 20)).unwrap();
                    volume.flush().unwrap();
                }
                if life == 1 && n == 15 {
                    volume.checkpoint().unwrap();
                }
            }
            volume.flush().unwrap();
        }
        let medium = Arc::into_inner(medium).unwrap();
        (Areas::new(&id).unwrap(), medium.into_bytes())
    })
}

impl Part {
    fn choose(number: u8, areas: &Areas) -> Part {
        let number = u32::from(number);
        match number {
            0 | 1 => Part::Superblock(u64::from(number)),
            2 | 3 => Part::Root(u64::from(number)),
            4 | 5 => Part::Journal(u64::from(number)),
            6..64 => Part::Table(Slot((number - 6) % areas.store.slots)),
            64..160 => Part::Record((number - 64) % 60),
            _ => Part::Data((number - 160) % 60),
        }
    }

    fn place(self, areas: &Areas) -> std::ops::Range<usize> {
        let (at, len) = match self {
            Part::Superblock(copy) => (areas.superblock(copy), SUPERBLOCK_BYTES),
            Part::Root(parity) => (areas.store.root(parity), areas.store.root_bytes()),
            Part::Journal(parity) => (areas.journal(parity), 8192),
            Part::Table(slot) => (areas.store.slot(slot), TABLE_PAGE_BYTES),
            Part::Record(unit) => {
                let within = u64::from(unit % 2) * RECORD_BYTES as u64;
                (areas.records(PageId(unit / 2)) + within, RECORD_BYTES)
            }
            Part::Data(unit) => (areas.unit(Ppn(unit)), PAGE_BYTES),
        };
        at as usize..at as usize + len
    }

    /// Makes the checksum hold.
    fn seal(self, medium: &mut [u8], areas: &Areas) {
        let key = VolumeKey([9; 32]);
        let place = self.place(areas);
        let bytes = &mut medium[place];
        match self {
            Part::Data(unit) => seal_unit(medium, areas, unit, &key),
            Part::Superblock(_) => {
                let mut own = [0; 32];
                own.copy_from_slice(&bytes[32..64]);
                let end = SUPERBLOCK_BYTES - 8;
                put(bytes, end, VolumeKey(own).checksum(0, &[&bytes[..end]]));
            }
            Part::Journal(_) => seal_batches(bytes, &key),
            // A root has the checks of what it leads to.
            Part::Root(_) | Part::Table(_) => seal_store(medium, &areas.store, &key),
            Part::Record(unit) => put(bytes, 56, key.checksum(u64::from(unit), &[&bytes[..56]])),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, check: u64) {
    bytes[at..at + 8].copy_from_slice(&check.to_le_bytes());
}

/// The record of a unit says what its data are now, and what their heads are if it is packed.
fn seal_unit(medium: &mut [u8], areas: &Areas, unit: u32, key: &VolumeKey) {
    let data = &medium[Part::Data(unit).place(areas)];
    let digest = data.first_chunk().map(|page| key.digest(page));
    let heads = packed::front_bytes(data).and_then(|front| data.get(..front));
    let heads = heads.map(|heads| key.checksum(heads.len() as u64, &[heads]));
    let record = &mut medium[Part::Record(unit).place(areas)];
    if let Some(digest) = digest {
        record[40..56].copy_from_slice(&digest.0.to_le_bytes());
    }
    if let Some(heads) = heads.filter(|_| record[0] == 3) {
        put(record, 8, heads);
    }
    put(record, 56, key.checksum(u64::from(unit), &[&record[..56]]));
}

/// The header of what a store writes has its checksum; answers that.
fn seal_page(bytes: &mut [u8], position: u64, key: &VolumeKey) -> u64 {
    let sum = key.checksum(position, &[&bytes[..24], &bytes[32..]]);
    put(bytes, 24, sum);
    sum
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// Both roots of a store, and all that either leads to, have the checks of what is there.
pub fn seal_store(medium: &mut [u8], area: &Area, key: &VolumeKey) {
    let mut sealed = HashMap::new();
    for parity in 0..2 {
        let at = area.root(parity) as usize;
        let mut root = medium[at..at + area.root_bytes()].to_vec();
        let tables = (u32_at(&root, 4) as usize).min(area.tables.into());
        for pointer in (0..tables).map(|table| 32 + 16 * table + 8) {
            let check = seal_tree(medium, area, u32_at(&root, pointer), key, &mut sealed);
            root[pointer + 4..pointer + 8].copy_from_slice(&check.to_le_bytes());
        }
        for page in 0..area.count_pages() {
            let place = 32 + 16 * tables + 4 * page as usize;
            let copy = u32_at(&root, place) >> 31;
            if u32_at(&root, place) != 0 {
                let at = area.counts(page, copy) as usize;
                let counts = &mut medium[at..at + TABLE_PAGE_BYTES];
                let sum = seal_page(counts, at as u64, key) as u32 & !(1 << 31);
                root[place..place + 4].copy_from_slice(&(sum.max(1) | copy << 31).to_le_bytes());
            }
        }
        seal_page(&mut root, at as u64, key);
        medium[at..at + root.len()].copy_from_slice(&root);
    }
}

/// A page of a table and those below it; answers the check that a pointer to it has.
fn seal_tree(
    medium: &mut [u8],
    area: &Area,
    slot: u32,
    key: &VolumeKey,
    sealed: &mut HashMap<u32, u32>,
) -> u32 {
    if slot >= area.slots {
        return u32::MAX;
    }
    if let Some(&check) = sealed.get(&slot) {
        return check;
    }
    sealed.insert(slot, 0);
    let at = area.slot(Slot(slot)) as usize;
    let mut page = medium[at..at + TABLE_PAGE_BYTES].to_vec();
    if page[5] > 0 {
        for pointer in (32..TABLE_PAGE_BYTES).step_by(8) {
            let check = seal_tree(medium, area, u32_at(&page, pointer), key, sealed);
            page[pointer + 4..pointer + 8].copy_from_slice(&check.to_le_bytes());
        }
    }
    let check = seal_page(&mut page, slot.into(), key) as u32;
    medium[at..at + TABLE_PAGE_BYTES].copy_from_slice(&page);
    sealed.insert(slot, check);
    check
}

/// Each batch with its checksum, chained to the one before.
fn seal_batches(bytes: &mut [u8], key: &VolumeKey) {
    let (mut at, mut chain) = (0, 0u64);
    while let Some(batch) = bytes.get_mut(at..).filter(|b| b.len() >= HEADER_BYTES) {
        let count = u32::from_le_bytes([batch[4], batch[5], batch[6], batch[7]]) as usize;
        let values = u32::from_le_bytes([batch[36], batch[37], batch[38], batch[39]]) as usize;
        let end = HEADER_BYTES.saturating_add(count.saturating_mul(ENTRY_BYTES));
        let end = end.saturating_add(values);
        if batch[..4] != *b"FLJB" || end > batch.len() {
            return;
        }
        put(batch, 24, chain);
        chain = key.checksum(at as u64, &[&batch[..56], &batch[HEADER_BYTES..end]]);
        put(batch, 56, chain);
        at += end.next_multiple_of(512);
    }
}

/// Lays the patches over the image of the policy they name.
fn patched(input: &[u8]) -> Vec<u8> {
    let first = input.first().copied().unwrap_or(0);
    let policies = [Policy::Plain, Policy::Dedup, Policy::DedupTrusted];
    let (areas, bytes) = image(policies[usize::from(first & 3) % 3], first & 8 != 0);
    let mut bytes = bytes.clone();
    let mut rest = input.get(1..).unwrap_or(&[]);
    while let [part, low, high, count, tail @ ..] = rest {
        let part = Part::choose(*part, areas);
        let place = &mut bytes[part.place(areas)];
        let (new, after) = tail.split_at(tail.len().min(usize::from(*count)));
        let at = usize::from(u16::from_le_bytes([*low, *high])) % place.len();
        for (old, new) in place[at..].iter_mut().zip(new) {
            *old = *new;
        }
        if first & 4 != 0 {
            part.seal(&mut bytes, areas);
        }
        rest = after;
    }
    bytes
}

/// Checks, shows and opens; answers whether it could be opened.
pub fn exercise(input: &[u8]) -> bool {
    let medium = Arc::new(MemoryMedium::from_bytes(patched(input)));
    let _ = check(Arc::clone(&medium), true);
    let parts = DumpParts {
        heads: true,
        tables: true,
        journal: true,
        records: true,
    };
    let _ = dump(&medium, parts, &mut std::io::sink());
    let Ok((mut volume, _)) = Volume::open(medium) else {
        return false;
    };
    let mut page = [0; PAGE_BYTES];
    for lpn in 0..volume.exported().min(1000) {
        let _ = volume.read(Lpn(lpn), &mut page);
        if let Ok(plan) = volume.plan_read(Lpn(lpn)) {
            volume.reader().fetch(&[plan], &mut page);
        }
    }
    if let Ok(status) = volume.history_status() {
        for lpn in 0..volume.exported().min(1000) {
            let _ = volume.read_at(status.oldest, Lpn(lpn), &mut page);
        }
        let _ = volume.rewind_to(9, status.oldest);
    }
    for lpn in 0..volume.exported().min(1000) {
        let _ = volume.write(9, Lpn(lpn), &page);
    }
    let _ = volume.checkpoint();
    volume.scrub(ObjectId(0), 1000);
    volume.take_findings();
    true
}
