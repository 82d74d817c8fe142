//! Rows of the tables of what is there now: map, objects, packed pages, blocks.
//!
//! | offset | bytes | field of a row of the objects |
//! |---:|---:|---|
//! | 0 | 4 | unit, of a packed object its packed page |
//! | 4 | 4 | what refers to it, and marks: [`flashlore_ftl::mapping::objects`] |
//! | 8 | 4 | of a delta its base, of any other the exclusive or of the deltas that need it |
//! | 12 | 12 | [`ObjectNote`]: write sequence number (8), of a packed object bytes of its slot as the translation layer counts them (2) and its slot (2), 2^15 more if it is known that it cannot be read |
//! | 24 | 8 | lower half of the digest, zero above 32 bits if no more is known; all 16 bytes where digests are trusted, zero if it is not known |
//!
//! [`super::tables`] has the bytes of the others.

use flashlore_content::{Content, Digest, DigestTag};
use flashlore_flash::{Note, ObjectId, PackId, Ppn, Row, Stream};
use flashlore_ftl::mapping::objects::{FoundPack, Object};
use flashlore_ftl::mapping::packs::{Pack, RestoredPack};

use super::PackSlot;
use super::cursor::{Reader, Writer};
use super::journal::stream_of;
use super::superblock::{FIRST_WITH_LIVE_PACKS, FIRST_WITH_LIVE_ROWS, Identity};

/// A row of the map: on a plain volume a unit, otherwise an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MapRow(u32);

impl MapRow {
    /// A page that holds nothing.
    pub const NONE: MapRow = MapRow(u32::MAX);

    /// That of a page of a plain volume.
    pub fn of_unit(ppn: Ppn) -> Self {
        MapRow(ppn.0)
    }

    /// That of a page where there are objects.
    pub fn of_object(object: ObjectId) -> Self {
        MapRow(object.0)
    }

    /// The unit, on a plain volume.
    pub fn as_unit(self) -> Ppn {
        Ppn(self.0)
    }

    /// The object, where there are any.
    pub fn as_object(self) -> ObjectId {
        ObjectId(self.0)
    }

    /// Whether the page holds anything.
    pub fn is_some(self) -> bool {
        self != MapRow::NONE
    }

    /// Writes the row.
    pub fn encode(self, out: &mut Writer<'_>) {
        out.u32(self.0);
    }

    /// Reads a row.
    pub fn decode(row: &mut Reader<'_>) -> Self {
        MapRow(row.u32())
    }
}

/// The digest of an object that cannot be read and would be trusted: no page is taken for equal.
pub const UNSHAREABLE: Digest = Digest(0);

/// The lower half of the digest that an object has, if it is known: where digests are not trusted, an older format had 32
/// bits of it.
pub fn known_half(digest: Digest, is_trusted: bool) -> Option<u64> {
    let half = digest.0 as u64;
    let is_known = match is_trusted {
        true => digest != UNSHAREABLE,
        false => half >> 32 > 0,
    };
    is_known.then_some(half)
}

/// What a volume keeps of an object beside what the translation layer does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectNote {
    /// Its write sequence number; 0 of a free handle.
    pub write_seq: u64,
    /// Of a packed object bytes of its slot, as the translation layer counts them.
    length: u16,
    /// Of a packed object its slot, and the mark of what cannot be read.
    slot: u16,
}

/// Marks what is known to be unreadable; a packed page has fewer slots.
const UNREADABLE: u16 = 1 << 15;

impl ObjectNote {
    /// That of an object of this write; `packed` is the length of its slot, and the slot.
    pub fn new(write_seq: u64, packed: Option<(u16, PackSlot)>) -> Self {
        let (length, slot) = packed.unwrap_or_default();
        ObjectNote {
            write_seq,
            length,
            slot: slot.0,
        }
    }

    /// Whether it is known that it cannot be read.
    pub fn is_unreadable(&self) -> bool {
        self.slot & UNREADABLE != 0
    }

    /// Notes that, or that it can.
    pub fn set_unreadable(&mut self, is_unreadable: bool) {
        match is_unreadable {
            true => self.slot |= UNREADABLE,
            false => self.slot &= !UNREADABLE,
        }
    }
}

impl Row for ObjectNote {
    const BYTES: usize = 12;

    fn encode(self, out: &mut [u8]) {
        let mut out = Writer::new(out);
        out.u64(self.write_seq).u16(self.length).u16(self.slot);
    }

    fn decode(bytes: &[u8]) -> Self {
        let mut fields = Reader::new(bytes);
        ObjectNote {
            write_seq: fields.u64(),
            length: fields.u16(),
            slot: fields.u16(),
        }
    }
}

/// Packed pages of which is remembered when they are to be merged, of how many there may be: looking for as many more takes
/// a look at all of them.
pub const MOST_REMEMBERED: usize = 1 << 21;

impl Note for ObjectNote {
    const MOST_REMEMBERED: usize = MOST_REMEMBERED;

    fn note_slot(&mut self, slot: PackSlot, length: u16) {
        self.length = length;
        self.slot = slot.0 | self.slot & UNREADABLE;
    }

    fn slot(&self) -> Option<(PackSlot, u16)> {
        Some((PackSlot(self.slot & !UNREADABLE), self.length))
    }
}

/// A row of the object table, as far as an opening needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRow {
    /// Where the object lies.
    pub place: ObjectPlace,
    /// Its write sequence number.
    pub write_seq: u64,
    /// Its digest, or as much of it as the policy keeps.
    pub digest: Digest,
    /// Whether it is known that it cannot be read.
    pub is_unreadable: bool,
}

/// Where an object lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectPlace {
    /// It has a unit of its own; none if it is nowhere.
    Unit(Ppn),
    /// It is a value of a packed page.
    Packed(PackedRow),
}

/// What is stored of a packed object besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedRow {
    /// Its packed page.
    pub pack: FoundPack,
    /// The row of what it is a delta from; all ones for none.
    pub base: ObjectId,
    /// Bytes of its slot, as the translation layer counts them.
    pub length: u16,
    pub slot: PackSlot,
}

impl ObjectRow {
    /// No object.
    pub const NONE: ObjectRow = ObjectRow {
        place: ObjectPlace::Unit(Ppn::NONE),
        write_seq: 0,
        digest: Digest(0),
        is_unreadable: false,
    };

    /// What is stored of it if it is packed.
    pub fn packed(&self) -> Option<PackedRow> {
        match self.place {
            ObjectPlace::Packed(packed) => Some(packed),
            ObjectPlace::Unit(_) => None,
        }
    }

    /// The number of its packed page, if it has one.
    pub fn pack(&self) -> Option<PackId> {
        match self.packed()?.pack {
            FoundPack::Numbered(pack) => Some(pack),
            FoundPack::New(_) | FoundPack::Waiting => None,
        }
    }

    /// What it is a delta from, if from anything.
    pub fn base(&self) -> Option<ObjectId> {
        let base = self.packed().map(|packed| packed.base);
        base.filter(|base| base.is_some())
    }

    /// Reads a row.
    pub fn decode(id: &Identity, row: &[u8]) -> Self {
        match (id.version < FIRST_WITH_LIVE_ROWS, id.trusts_digests()) {
            (true, is_trusted) => ObjectRow::decode_old(is_trusted, row),
            (false, false) => ObjectRow::of::<DigestTag>(row),
            (false, true) => ObjectRow::of::<Digest>(row),
        }
    }

    fn of<C: Content + Into<Digest>>(row: &[u8]) -> Self {
        let object = Object::<C, ObjectNote>::decode(row);
        let note = object.note();
        let place = match object.packed() {
            None => ObjectPlace::Unit(object.location()),
            Some((pack, base)) => ObjectPlace::Packed(PackedRow {
                pack: FoundPack::Numbered(pack),
                base,
                length: note.length,
                slot: PackSlot(note.slot & !UNREADABLE),
            }),
        };
        ObjectRow {
            place,
            write_seq: note.write_seq,
            digest: object.content().into(),
            is_unreadable: note.is_unreadable(),
        }
    }

    /// A row of version 5: unit or packed page, base, write sequence number, length, slot, digest.
    fn decode_old(is_trusted: bool, row: &[u8]) -> Self {
        let mut row = Reader::new(row);
        let (location, base, write_seq) = (row.u32(), row.u32(), row.u64());
        let (length, slot) = (row.u16(), row.u16());
        row.u32();
        let place = match length {
            0 => ObjectPlace::Unit(Ppn(location)),
            _ => ObjectPlace::Packed(PackedRow {
                pack: FoundPack::Numbered(PackId(location)),
                base: ObjectId(base),
                length,
                slot: PackSlot(slot),
            }),
        };
        ObjectRow {
            place,
            write_seq,
            digest: match is_trusted {
                true => Digest(row.u128()),
                false => Digest(u128::from(row.u64())),
            },
            is_unreadable: false,
        }
    }

    /// What the volume keeps of it.
    pub fn note(&self) -> ObjectNote {
        let packed = self.packed().map(|packed| (packed.length, packed.slot));
        let mut note = ObjectNote::new(self.write_seq, packed);
        note.set_unreadable(self.is_unreadable);
        note
    }
}

/// A row of the table of packed pages: one that holds something. Up to version 7 nothing else is said of it.
pub fn pack_of(id: &Identity, number: PackId, row: &[u8]) -> Option<RestoredPack> {
    if id.version >= FIRST_WITH_LIVE_PACKS {
        return Pack::decode(row).on_flash();
    }
    let mut row = Reader::new(row);
    let (location, written_bytes, slots) = (Ppn(row.u32()), row.u16(), row.u16());
    (slots > 0).then_some(RestoredPack {
        location,
        number: number.0,
        written_bytes,
    })
}

/// A row of the block table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRow {
    /// Whether it holds pages, and whether it takes more.
    pub state: BlockState,
    /// Times it was erased.
    pub erases: u32,
    /// The generation it was last programmed in.
    pub generation: u64,
    /// Flash pages taken.
    pub taken: u32,
}

/// State of a block in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    /// Nothing in it is needed.
    Free,
    /// It takes no more pages.
    Sealed,
    /// It takes pages of a stream.
    Open(Stream),
}

impl BlockRow {
    /// Writes the row.
    pub fn encode(&self, out: &mut Writer<'_>) {
        let (state, stream) = match self.state {
            BlockState::Free => (0, 0),
            BlockState::Sealed => (1, 0),
            BlockState::Open(stream) => (2, stream as u8),
        };
        out.u8(state).u8(stream).u16(0).u32(self.erases);
        out.u64(self.generation).u32(self.taken).u32(0);
    }

    /// Reads a row.
    pub fn decode(row: &mut Reader<'_>) -> Self {
        let (state, stream) = (row.u8(), row.u8());
        row.u16();
        let state = match (state, stream_of(stream)) {
            (1, _) => BlockState::Sealed,
            (2, Some(stream)) => BlockState::Open(stream),
            _ => BlockState::Free,
        };
        BlockRow {
            state,
            erases: row.u32(),
            generation: row.u64(),
            taken: row.u32(),
        }
    }
}
