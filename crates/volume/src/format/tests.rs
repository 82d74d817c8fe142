//! What is encoded is decoded the same; anything else is refused and nothing panics.

use flashlore_content::history::ChainsAt;
use flashlore_content::{Digest, VolumeKey};
use flashlore_flash::{
    BlockId, EntryNumber, Lpn, Note as _, ObjectId, Owner, PackId, PageId, Ppn, QueueAt, Row,
    Stream,
};
use flashlore_ftl::mapping::objects::FoundPack;
use flashlore_ftl::mapping::packs::PackTallies;
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_metadata::Slot as StoreSlot;
use proptest::prelude::*;

use super::cursor::{Reader, Writer};
use super::journal::{Batch, Change, JournalEntry, JournalValue};
use super::name::{Naming, ObjectName};
use super::notes::NOTE_BYTES;
use super::old::root::OldRoot;
use super::old::tables::{TablePage, TableSlot, decode_page};
use super::packed::{self, Head};
use super::record::{PlacedRecord, RECORD_BYTES, Record, Slot, UnitKind};
use super::root::{HistoryRoot, Root};
use super::superblock::{
    Encoding, EpochStart, HistoryIdentity, Identity, MOST_EPOCHS, Policy, SUPERBLOCK_BYTES,
    Superblock, VERSION,
};
use super::{
    Areas, ClockNote, Note, NoteKind, ObjectNote, ObjectPlace, ObjectRow, PackSlot, PackedRow,
    PurgeNote, Table,
};

fn key() -> impl Strategy<Value = VolumeKey> {
    any::<[u8; 32]>().prop_map(VolumeKey)
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Plain),
        Just(Policy::Dedup),
        Just(Policy::DedupTrusted)
    ]
}

fn identity() -> impl Strategy<Value = Identity> {
    let sizes = (any::<[u32; 6]>(), any::<[u64; 2]>());
    let history = prop::option::of(any::<(u32, u64, bool)>().prop_map(
        |(entries, least_window, protected)| HistoryIdentity {
            entries,
            least_window,
            protected,
        },
    ));
    let encoding = any::<(bool, bool)>().prop_map(|(deltas, compression)| Encoding {
        deltas,
        compression,
    });
    let policies = (policy(), history, encoding);
    let all = (policies, any::<[u8; 16]>(), key(), sizes);
    all.prop_map(
        |((policy, history, encoding), uuid, key, (a, b))| Identity {
            version: VERSION,
            policy,
            history,
            encoding,
            uuid,
            key,
            created: b[0],
            exported: a[0],
            blocks: a[1],
            pages_per_block: a[2],
            units_per_page: a[3],
            alignment: a[4],
            index_entries: a[5],
            journal_bytes: b[1],
        },
    )
}

fn epochs() -> impl Strategy<Value = Vec<EpochStart>> {
    let start = any::<(u32, u64)>().prop_map(|(epoch, after)| EpochStart { epoch, after });
    prop::collection::vec(start, 0..=MOST_EPOCHS)
}

fn entry() -> impl Strategy<Value = JournalEntry> {
    let stream = prop_oneof![Just(Stream::Host), Just(Stream::Gc), Just(Stream::Wear)];
    let change = any::<(u8, u32, u64, u32)>().prop_map(|(kind, lpn, number, end)| match kind % 8 {
        0 => Change::Share {
            lpn: Lpn(lpn),
            object: name(number),
        },
        1 => Change::Trim { lpn: Lpn(lpn) },
        2 => Change::Rewind { instant: number },
        3 => Change::Snapshot {
            instant: number,
            name: (end % 65) as u8,
        },
        4 => Change::DeleteSnapshot { instant: number },
        5 => Change::Forget { before: number },
        6 => Change::Note {
            kind: [NoteKind::Mark, NoteKind::Clock, NoteKind::Window][lpn as usize % 3],
            bytes: (end % 65) as u8,
            instant: number,
        },
        _ => Change::Purge {
            first: Lpn(lpn),
            end: Lpn(end),
        },
    });
    prop_oneof![
        (any::<(u64, u64)>(), change).prop_map(|((sequence, stamp), change)| JournalEntry::Event {
            sequence,
            stamp,
            change,
        }),
        any::<(u32, u64, u64, u32)>().prop_map(|(lpn, write_seq, stamp, object)| {
            JournalEntry::Dead {
                lpn: Lpn(lpn),
                write_seq,
                stamp,
                object: ObjectId(object),
            }
        }),
        any::<u64>().prop_map(|oldest| JournalEntry::Window { oldest }),
        any::<(u64, u8, [u8; 16])>().prop_map(|(sequence, number, bytes)| JournalEntry::Part {
            sequence,
            number,
            bytes,
        }),
        (any::<(u32, u64, u32)>(), stream).prop_map(|((block, generation, erases), stream)| {
            JournalEntry::Open {
                block: BlockId(block),
                stream,
                generation,
                erases,
            }
        }),
    ]
}

fn note() -> impl Strategy<Value = Note> {
    let numbers = any::<(u64, u64, u64, u64, u64)>();
    let pages = prop::option::of((any::<u32>(), 0..u32::MAX))
        .prop_map(|pages| pages.map(|(first, end)| (Lpn(first), Lpn(end))));
    (0..4, numbers, pages, "[a-z]{1,64}").prop_map(|(kind, numbers, pages, name)| {
        let (instant, boot, since_boot, wall, unproven) = numbers;
        match kind {
            0 => Note::Snapshot { instant, name },
            1 => Note::Mark { instant, name },
            2 => Note::Purge(PurgeNote {
                stamp: instant,
                pages,
            }),
            _ => Note::Clock(ClockNote {
                time: instant,
                boot,
                since_boot,
                wall,
                unproven,
            }),
        }
    })
}

/// The name of an object.
fn name(number: u64) -> ObjectName {
    let object = ObjectId((number as u32).min(u32::MAX - 1));
    ObjectName::of(object, number >> 32, Naming::ByHandle)
}

/// The same as version 5 had it.
fn old_name(name: ObjectName) -> ObjectName {
    ObjectName::Write(ObjectName::word(Some(name), Naming::ByHandle) | 1)
}

/// What version 5 wrote in place of a batch.
fn old_batch(batch: &Batch) -> Batch {
    let mut old = Batch {
        naming: Naming::ByWrite,
        ..batch.clone()
    };
    for entry in &mut old.entries {
        match entry {
            JournalEntry::Event {
                change: Change::Share { object, .. },
                ..
            } => *object = old_name(*object),
            JournalEntry::Dead { object, .. } => *object = ObjectId::NONE,
            _ => {}
        }
    }
    for value in &mut old.values {
        value.head = old_head(&value.head);
    }
    old
}

fn old_head(head: &Head) -> Head {
    Head {
        base: head.base.map(old_name),
        object: ObjectId::NONE,
        ..*head
    }
}

fn head() -> impl Strategy<Value = Head> {
    let numbers = any::<(u32, bool, u64, Option<u64>, u64, u128, u32)>();
    (numbers, 0..900u16).prop_map(
        |((lpn, lost, write_seq, base, stamp, digest, object), length)| Head {
            lpn: Lpn(lpn),
            length,
            lost,
            write_seq,
            base: base.map(name),
            stamp,
            digest: Digest(digest),
            object: ObjectId(object),
        },
    )
}

fn value() -> impl Strategy<Value = JournalValue> {
    let bytes = prop::collection::vec(any::<u8>(), 900);
    (head(), bytes).prop_map(|(head, mut bytes)| {
        bytes.truncate(usize::from(head.length));
        JournalValue {
            head,
            bytes: bytes.into(),
        }
    })
}

fn batch() -> impl Strategy<Value = Batch> {
    let entries = prop::collection::vec(entry(), 0..60);
    let head = any::<(u64, u64, u64, u32)>();
    let values = prop::collection::vec(value(), 0..6);
    (head, entries, values).prop_map(
        |((segment, durable, chain, epoch), entries, values)| Batch {
            after: durable ^ chain,
            naming: Naming::ByHandle,
            values,
            segment,
            durable,
            chain,
            epoch,
            entries,
        },
    )
}

fn placed() -> impl Strategy<Value = PlacedRecord> {
    let kind = prop_oneof![Just(UnitKind::Data), Just(UnitKind::Lost)];
    let numbers = any::<(u32, u64, u64, u128, u64, u32, u32)>();
    (kind, numbers).prop_map(
        |(kind, (lpn, write_seq, stamp, digest, generation, epoch, owner))| PlacedRecord {
            record: Record {
                kind,
                lpn: Lpn(lpn),
                write_seq,
                stamp,
                digest: Digest(digest),
            },
            generation,
            epoch,
            owner: Owner::numbered(owner),
        },
    )
}

fn flip(bytes: &mut [u8], bit: usize) {
    let at = bit / 8 % bytes.len();
    bytes[at] ^= 1 << (bit % 8);
}

proptest! {
    #[test]
    fn superblocks_come_back(
        identity in identity(), metadata: u64, write: u64, epoch: u32, in_use: bool, epochs in epochs(), bit: usize,
    ) {
        let superblock = Superblock { identity, metadata, write, epoch, in_use, epochs };
        let mut bytes = superblock.encode();
        prop_assert_eq!(Superblock::decode(&bytes), Ok(superblock));
        flip(&mut bytes, bit);
        prop_assert!(Superblock::decode(&bytes).is_err());
    }

    #[test]
    fn notes_come_back(note in note(), other: [u8; NOTE_BYTES]) {
        let mut row = [0; NOTE_BYTES];
        note.encode(&mut Writer::new(&mut row));
        prop_assert_eq!(Note::decode(&mut Reader::new(&row)), Some(note));
        // Anything else is one or none, without a panic.
        let _ = Note::decode(&mut Reader::new(&other));
    }

    #[test]
    fn packed_units_come_back(
        key in key(), values in prop::collection::vec(value(), 0..4), bit: usize, old: bool,
    ) {
        let mut page = [0; 4096];
        let naming = if old { Naming::ByWrite } else { Naming::ByHandle };
        let values: Vec<JournalValue> = values.into_iter().map(|value| JournalValue {
            head: if old { old_head(&value.head) } else { value.head },
            ..value
        }).collect();
        let all = values.iter().map(|v| (v.head, &*v.bytes));
        let check = packed::encode(&key, all, naming, &mut page);
        let heads: Vec<Head> = values.iter().map(|v| v.head).collect();
        prop_assert_eq!(packed::heads(&key, &page, check), Some(heads.clone()));
        for (slot, v) in (0..).map(PackSlot).zip(&values) {
            prop_assert_eq!(packed::value(&page, slot), Some((v.head, &*v.bytes)));
        }
        prop_assert_eq!(packed::value(&page, PackSlot(values.len() as u16)), None);
        let front = packed::FRONT_BYTES + values.len() * naming.head_bytes();
        prop_assert_eq!(packed::front_bytes(&page), Some(front));
        flip(&mut page[..front], bit);
        prop_assert_eq!(packed::heads(&key, &page, check), None);
    }

    #[test]
    fn any_bytes_are_no_packed_unit_or_one(bytes in prop::collection::vec(any::<u8>(), 4096)) {
        let found = packed::read(&bytes).map_or(0, |heads| heads.len());
        for slot in (0..found as u16).map(PackSlot) {
            prop_assert!(packed::value(&bytes, slot).is_some());
        }
    }

    #[test]
    fn roots_come_back(
        checkpoint: u64, numbers: (u32, u64, u64), places: (u64, u32, u32), queues: [(u32, u32, u32, u32); 2],
        tallies: (u32, u32, u32, u32, u32),
        packs: (u32, u32, u32, u32, u64),
    ) {
        let (epoch, sequence, stamp) = numbers;
        let (oldest, pins, notes) = places;
        let [window, kept] = queues.map(|(row, len, first, gaps)| {
            let first = EntryNumber(first);
            ChainsAt { queue: QueueAt { first, len, row }, gaps }
        });
        let history = HistoryRoot { oldest, window, kept, pins, notes };
        let (stored, referenced, packed, pinned, spilled) = tallies;
        let (numbers, free, on_flash, live, filled) = packs;
        let packs = PackTallies { numbers, free: PackId(free), on_flash, live, filled };
        let tallies = Tallies { stored, referenced, packed, pinned, spilled, packs };
        let root = Root { checkpoint, epoch, sequence, stamp, history, tallies };
        let bytes = root.encode();
        prop_assert_eq!(Root::decode(checkpoint, &bytes), Some(root));
        prop_assert_eq!(Root::decode(checkpoint, &bytes[1..]), None);
    }

    /// What cannot be read stays so wherever it is packed.
    #[test]
    fn a_slot_that_is_noted_leaves_the_mark(write_seq: u64, slots: [u16; 2], length: u16, mark: bool) {
        let [before, after] = slots.map(|slot| PackSlot(slot % 400));
        let mut note = ObjectNote::new(write_seq, Some((length, before)));
        note.set_unreadable(mark);
        note.note_slot(after, length / 2);
        let noted = Some((after, length / 2));
        prop_assert_eq!((note.slot(), note.is_unreadable()), (noted, mark));
        note.set_unreadable(!mark);
        prop_assert_eq!((note.slot(), note.is_unreadable()), (noted, !mark));
        let mut bytes = [0; 12];
        note.encode(&mut bytes);
        prop_assert_eq!(ObjectNote::decode(&bytes), note);
    }

    /// A row is what docs/format.md says.
    #[test]
    fn rows_of_objects_are_read(
        identity in identity(), trusted: bool, form in 0u32..3, numbers: (u32, u32, u64, u16, u16),
        is_unreadable: bool, digest: u128,
    ) {
        let (location, base, write_seq, length, slot) = numbers;
        let slot = slot % (1 << 15);
        let mut id = identity;
        id.version = VERSION;
        id.policy = if trusted { Policy::DedupTrusted } else { Policy::Dedup };
        let (packed, delta) = (1 << 30, 1 << 29);
        let marks = [0, packed, packed | delta][form as usize];
        let mut bytes = vec![0; Table::Objects.row_bytes(&id).into()];
        let mut out = Writer::new(&mut bytes);
        out.u32(location).u32(marks | 1).u32(base).u64(write_seq).u16(length);
        out.u16(slot | u16::from(is_unreadable) << 15);
        match trusted {
            true => out.u128(digest),
            false => out.u64(digest as u64),
        };
        prop_assert_eq!(out.written(), bytes.len());
        let place = match form {
            0 => ObjectPlace::Unit(Ppn(location)),
            _ => ObjectPlace::Packed(PackedRow {
                pack: FoundPack::Numbered(PackId(location)),
                base: if form == 2 { ObjectId(base) } else { ObjectId::NONE },
                length,
                slot: PackSlot(slot),
            }),
        };
        let kept = if trusted { digest } else { u128::from(digest as u64) };
        let row = ObjectRow { place, write_seq, digest: Digest(kept), is_unreadable };
        prop_assert_eq!(ObjectRow::decode(&id, &bytes), row);
    }

    #[test]
    fn batches_come_back_at_their_offset_alone(
        key in key(), batch in batch(), offset: u64, alignment in prop_oneof![Just(512), Just(4096)],
        bit: usize, old: bool,
    ) {
        let batch = if old { old_batch(&batch) } else { batch };
        let naming = batch.naming;
        let length = Batch::bytes(batch.entries.len(), batch.value_bytes(), alignment);
        prop_assert_eq!(length % alignment, 0);
        let mut bytes = vec![1; length];
        let check = batch.encode(&key, offset, &mut bytes);
        let used = 64 + 24 * batch.entries.len();
        prop_assert_eq!(Batch::decode(&bytes, &key, offset, naming), Some((batch, check)));
        prop_assert_eq!(Batch::decode(&bytes, &key, offset ^ 512, naming), None);
        flip(&mut bytes[..used], bit);
        prop_assert_eq!(Batch::decode(&bytes, &key, offset, naming), None);
    }

    #[test]
    fn records_come_back_on_their_unit_alone(
        key in key(), placed in placed(), ppn: u32, bit: usize,
    ) {
        let mut bytes = placed.encode(&key, Ppn(ppn));
        prop_assert_eq!(Slot::decode(&bytes, &key, Ppn(ppn)), Slot::Record(placed));
        prop_assert_eq!(Slot::decode(&bytes, &key, Ppn(ppn ^ 1)), Slot::Broken);
        flip(&mut bytes, bit);
        prop_assert_eq!(Slot::decode(&bytes, &key, Ppn(ppn)), Slot::Broken);
        prop_assert_eq!(Slot::decode(&[0; RECORD_BYTES], &key, Ppn(ppn)), Slot::Empty);
    }

    #[test]
    fn arbitrary_bytes_are_refused(
        key in key(), bytes in prop::collection::vec(any::<u8>(), 0..5000), place: u64, magic in 0usize..5,
    ) {
        // With the magic of each structure, so that more than it is looked at.
        let magics: [&[u8]; 5] = [b"", b"FLSHLORE", b"FLRT", b"FLTP", b"FLJB"];
        let mut bytes = bytes;
        let count = magics[magic].len().min(bytes.len());
        bytes[..count].copy_from_slice(&magics[magic][..count]);
        prop_assert_eq!(Batch::decode(&bytes, &key, place, Naming::ByHandle), None);
        bytes.resize(SUPERBLOCK_BYTES, 0xA5);
        prop_assert_eq!(OldRoot::decode(&bytes, &key, place, 1000), None);
        prop_assert_eq!(decode_page(&key, TableSlot(place as u32), TablePage(place as u32), &bytes), None);
        prop_assert!(Superblock::decode(bytes.first_chunk().unwrap()).is_err());
        for record in bytes.chunks_exact(RECORD_BYTES) {
            let empty = record.iter().all(|&b| b == 0);
            let slot = Slot::decode(record, &key, Ppn(place as u32));
            prop_assert_eq!(slot, if empty { Slot::Empty } else { Slot::Broken });
        }
    }

    #[test]
    fn areas_of_any_identity_are_in_order_or_an_error(identity in identity(), small: bool) {
        let mut id = identity;
        if small {
            id.exported = id.exported % 100_000 + 1;
            id.blocks = id.blocks % 10_000 + 1;
            id.pages_per_block = id.pages_per_block % 256 + 2;
            id.units_per_page = id.units_per_page % 16 + 1;
            id.alignment = 512 << (id.alignment % 4);
            id.journal_bytes = (id.journal_bytes % 1000 + 16) * 4096;
        }
        let Ok(areas) = Areas::new(&id) else {
            prop_assert!(!small);
            return Ok(());
        };
        let starts = [
            areas.superblock(0), areas.superblock(1), areas.page(PageId(0)),
            areas.page(PageId(id.blocks * id.pages_per_block)), areas.journal(0), areas.journal(1),
            areas.store.root(0), areas.store.root(1), areas.store.slot(StoreSlot(0)),
            areas.store.slot(StoreSlot(areas.store.slots)), areas.len,
        ];
        prop_assert!(starts.is_sorted());
        prop_assert!(starts.iter().all(|s| s % u64::from(id.alignment) == 0));
        let pages: u64 = Table::all(&id).iter().map(|t| t.shape(&id).pages()).sum();
        prop_assert_eq!(u64::from(areas.store.slots), 2 * pages + 64);
    }
}
