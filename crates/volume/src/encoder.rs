//! How pages become encoded values, and values pages again.
//!
//! Invariant: a page that a value decodes to has the digest that its head names, or it is lost.

use std::sync::Arc;

use flashlore_content::delta::{Short, Value};
use flashlore_content::{Encoder, PAGE_BYTES, Sketch, VolumeKey};
use flashlore_delta::Codec;
use flashlore_flash::{Lpn, ObjectId, PackSlot};
use flashlore_ftl::mapping::packs::MOST_BYTES;
use flashlore_metadata::StoredTables;

use crate::format::packed::{self, EXTRA_BYTES, Head};
use crate::format::{Identity, Naming, ObjectName, ObjectNote, Record, UnitKind};
use crate::nand::write_seq_in;
use crate::unit::StoredUnit;
use crate::values::{PackedValue, SharedWaiting, ValueState};

/// The most bytes that an encoded value is looked for in, without its head.
pub(crate) const LONGEST: usize = (MOST_BYTES - EXTRA_BYTES as u32) as usize;

/// Encodes pages of bytes.
pub(crate) struct Bytes {
    codec: flashlore_delta::Encoder,
    key: VolumeKey,
    naming: Naming,
    tables: StoredTables<ObjectNote>,
    waiting: SharedWaiting,
}

impl Bytes {
    pub fn new(id: &Identity, tables: StoredTables<ObjectNote>, waiting: SharedWaiting) -> Self {
        Bytes {
            codec: flashlore_delta::Encoder::new(),
            key: id.key,
            naming: id.naming(),
            tables,
            waiting,
        }
    }

    /// How a base is named, if there is one.
    fn name_of(&self, base: ObjectId) -> Option<ObjectName> {
        let write_seq = base.is_some().then(|| write_seq_in(&self.tables, base));
        Some(ObjectName::of(base, write_seq??, self.naming))
    }
}

/// The head of a value. What it is a delta from is told when it is written, as is the object that it is the value of.
fn head_of(record: &Record, bytes: &[u8]) -> Head {
    Head {
        lpn: record.lpn,
        length: bytes.len() as u16,
        lost: false,
        write_seq: record.write_seq,
        base: None,
        stamp: record.stamp,
        digest: record.digest,
        object: ObjectId::NONE,
    }
}

fn encoded(record: &Record, bytes: Option<&[u8]>) -> Short<Arc<PackedValue>> {
    let head = head_of(record, bytes?);
    Some((
        head.slot_length(),
        Arc::new(PackedValue::stored(head, bytes?)),
    ))
}

impl<C> Encoder<C, StoredUnit> for Bytes {
    type Encoded = Arc<PackedValue>;

    fn delta(
        &mut self,
        base: Value<'_, C, StoredUnit>,
        new: Value<'_, C, StoredUnit>,
        limit: u16,
    ) -> Option<(u16, Arc<PackedValue>)> {
        if base.page.record.kind != UnitKind::Data {
            return None;
        }
        let limit = usize::from(limit.saturating_sub(EXTRA_BYTES));
        let (old, page) = (&base.page.bytes, &new.page.bytes);
        let bytes = self.codec.delta(Codec::default(), old, page, limit);
        encoded(&new.page.record, bytes)
    }

    fn delta_ahead(
        &mut self,
        base: ObjectId,
        new: &Value<'_, C, StoredUnit>,
    ) -> Option<Short<Arc<PackedValue>>> {
        let found = new.page.ahead.as_ref()?.delta.as_ref()?;
        let record = &new.page.record;
        (found.base.object == base).then(|| encoded(record, found.bytes.as_deref()))
    }

    fn alone(
        &mut self,
        new: Value<'_, C, StoredUnit>,
        limit: u16,
    ) -> Option<(u16, Arc<PackedValue>)> {
        if let Some(found) = new
            .page
            .ahead
            .as_ref()
            .and_then(|ahead| ahead.alone.as_ref())
        {
            return encoded(&new.page.record, found.as_deref());
        }
        let limit = usize::from(limit.saturating_sub(EXTRA_BYTES));
        let bytes = self.codec.alone(Codec::default(), &new.page.bytes, limit);
        encoded(&new.page.record, bytes)
    }

    fn sketch(&mut self, new: Value<'_, C, StoredUnit>) -> Option<Sketch> {
        Some(Sketch(flashlore_delta::sketch(&new.page.bytes)))
    }

    fn decode(&mut self, base: Option<&StoredUnit>, value: &Arc<PackedValue>) -> StoredUnit {
        decode(&self.key, base, value)
    }

    fn hold(&mut self, object: ObjectId, base: ObjectId, value: &Arc<PackedValue>) {
        value.note_holder(object, self.name_of(base));
        self.waiting.lock().hold(value);
    }

    fn give_up(&mut self, value: &Arc<PackedValue>) {
        self.waiting.lock().give_up(value);
    }

    fn lost(&mut self, object: ObjectId, lpn: Lpn, length: u16) -> Option<Arc<PackedValue>> {
        Some(Arc::new(PackedValue::lost(object, lpn, length)))
    }

    fn lost_page(&mut self) -> Option<StoredUnit> {
        Some(StoredUnit::lost(0, Lpn(0)))
    }

    fn is_lost(&self, page: &StoredUnit) -> bool {
        page.record.kind == UnitKind::Lost
    }

    fn pack(&mut self, values: &[Arc<PackedValue>]) -> StoredUnit {
        let mut unit = StoredUnit::lost(0, Lpn(0));
        unit.record.kind = UnitKind::Packed;
        unit.values = Some(values.into());
        unit
    }

    fn unpack(&mut self, page: &StoredUnit, slot: PackSlot) -> Arc<PackedValue> {
        unpack(page, slot)
    }

    fn each_slot(&mut self, page: &StoredUnit, take: &mut dyn FnMut(ObjectId, Lpn, u16)) {
        match &page.values {
            Some(values) => {
                for value in &**values {
                    let (object, lpn, length) = value.slot();
                    take(object, lpn, length);
                }
            }
            None => {
                for head in packed::read(&*page.bytes).unwrap_or_default() {
                    take(head.object, head.lpn, head.slot_length());
                }
            }
        }
    }
}

/// The page again; wrong data are never returned, whatever went wrong before.
pub(crate) fn decode(
    key: &VolumeKey,
    base: Option<&StoredUnit>,
    value: &PackedValue,
) -> StoredUnit {
    let ValueState::Stored { head, bytes } = &value.what else {
        return StoredUnit::lost(0, Lpn(0));
    };
    let lost = || StoredUnit::lost(head.write_seq, head.lpn);
    if head.lost || base.is_some_and(|base| base.record.kind != UnitKind::Data) {
        return lost();
    }
    let mut page = Arc::new([0; PAGE_BYTES]);
    let Some(space) = Arc::get_mut(&mut page) else {
        unreachable!("it was just made")
    };
    let base = base.map(|base| &*base.bytes);
    if flashlore_delta::decode(bytes, base, space).is_err() || key.digest(space) != head.digest {
        return lost();
    }
    let record = Record {
        kind: UnitKind::Data,
        lpn: head.lpn,
        write_seq: head.write_seq,
        stamp: head.stamp,
        digest: head.digest,
    };
    StoredUnit::new(record, page)
}

/// The value in a slot of a packed page.
pub(crate) fn unpack(page: &StoredUnit, slot: PackSlot) -> Arc<PackedValue> {
    if let Some(values) = &page.values {
        return Arc::clone(&values[slot.index()]);
    }
    Arc::new(match packed::value(&*page.bytes, slot) {
        Some((head, bytes)) => PackedValue::stored(head, bytes),
        // Its checksum held, so only a program that is wrong can have written it.
        None => PackedValue::lost(ObjectId::NONE, Lpn(0), EXTRA_BYTES),
    })
}

#[cfg(test)]
mod tests {
    use flashlore_medium::{Medium, MemoryMedium};

    use super::*;
    use crate::format::Areas;
    use crate::tables::TableStore;
    use crate::{CreateOptions, bytes_needed, create};

    const KEY: VolumeKey = VolumeKey([9; 32]);

    fn whole(write_seq: u64, fill: u8) -> StoredUnit {
        let mut bytes = [fill; PAGE_BYTES];
        bytes[..8].copy_from_slice(&write_seq.to_le_bytes());
        let record = Record {
            kind: UnitKind::Data,
            lpn: Lpn(3),
            write_seq,
            stamp: 100 + write_seq,
            digest: KEY.digest(&bytes),
        };
        StoredUnit::new(record, Arc::new(bytes))
    }

    /// That of a small volume with this key.
    fn encoder() -> Bytes {
        let id = Identity {
            key: KEY,
            ..CreateOptions::small().identity().unwrap()
        };
        let medium = MemoryMedium::new(bytes_needed(&id).unwrap() as usize);
        let medium: Arc<dyn Medium> = Arc::new(medium);
        create(&*medium, &id).unwrap();
        let areas = Areas::new(&id).unwrap();
        let tables = TableStore::open(medium, &id, &areas, 1, 0).unwrap();
        Bytes::new(&id, tables.stored(), SharedWaiting::default())
    }

    fn value(page: &StoredUnit) -> Value<'_, (), StoredUnit> {
        Value { content: (), page }
    }

    fn decode(
        bytes: &mut Bytes,
        base: Option<&StoredUnit>,
        value: &Arc<PackedValue>,
    ) -> StoredUnit {
        Encoder::<(), StoredUnit>::decode(bytes, base, value)
    }

    #[test]
    fn a_delta_decodes_with_its_own_base_and_is_lost_with_another() {
        let mut bytes = encoder();
        let (base, new) = (whole(1, 7), whole(2, 7));
        let (_, delta) = bytes
            .delta(value(&base), value(&new), PAGE_BYTES as u16)
            .expect("they are alike");
        let decoded = decode(&mut bytes, Some(&base), &delta);
        assert_eq!((decoded.record, &decoded.bytes), (new.record, &new.bytes));
        let lost = decode(&mut bytes, Some(&whole(1, 8)), &delta);
        let Record {
            kind,
            write_seq,
            lpn,
            ..
        } = lost.record;
        assert_eq!((kind, write_seq, lpn), (UnitKind::Lost, 2, Lpn(3)));
    }

    #[test]
    fn a_compressed_value_that_decodes_to_another_page_is_lost() {
        let mut bytes = encoder();
        let (_, compressed) = bytes
            .alone(value(&whole(1, 7)), PAGE_BYTES as u16)
            .expect("it is nearly all the same");
        let ValueState::Stored {
            head,
            bytes: stored,
        } = &compressed.what
        else {
            panic!("it is stored")
        };
        let digest = whole(2, 7).record.digest;
        let other = Arc::new(PackedValue::stored(Head { digest, ..*head }, stored));
        assert_eq!(decode(&mut bytes, None, &other).record.kind, UnitKind::Lost);
        assert_eq!(
            decode(&mut bytes, None, &compressed).record.kind,
            UnitKind::Data
        );
    }
}
