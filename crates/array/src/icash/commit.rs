//! Groups of the log: what makes everything before durable, at once.
//!
//! The order is the promise: data blocks, a sync of the fast medium, the group, a sync of the slow one. What the
//! group replaces is given up after that and not before. In write-through no group needs what the fast medium holds, and
//! that is not synced.

use std::collections::BTreeMap;

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::blocks::{Content, Form, Id};
use crate::icash::content::ZEROS;
use crate::icash::format::RecordKind;
use crate::icash::format::block::group_of;
use crate::icash::log::pack::Group;
use crate::icash::log::{Packed, Recorded, Unpacked, pack};
use crate::icash::parameters::Mode;
use crate::icash::place::{BlockPlace, DataBlock, Frozen, LogPlace};
use crate::icash::state::ICash;
use crate::index::{ArrayBlock, FrozenPlace};

/// What a group records besides what is unrecorded.
#[derive(Debug, Default)]
pub(super) struct Extra {
    /// Blocks whose present content is durable at home, with its checksum.
    pub homes: BTreeMap<ArrayBlock, u32>,
    /// Records of blocks that are not unrecorded, to be moved to the head of the log.
    pub moved: Vec<Unpacked>,
    /// What was written to frozen places, which are free.
    pub frozen: Vec<(FrozenPlace, Frozen)>,
}

impl Extra {
    pub fn homes(homes: BTreeMap<ArrayBlock, u32>) -> Self {
        Extra {
            homes,
            ..Extra::default()
        }
    }

    pub fn frozen(frozen: Vec<(FrozenPlace, Frozen)>) -> Self {
        Extra {
            frozen,
            ..Extra::default()
        }
    }
}

impl ICash {
    /// Makes the present state durable.
    pub(super) fn commit(&mut self) -> Result<(), ArrayError> {
        self.commit_with(Extra::default())
    }

    /// Makes the present state durable, and says of some blocks that it is elsewhere.
    pub(super) fn commit_with(&mut self, extra: Extra) -> Result<(), ArrayError> {
        self.refuse_if_stopped()?;
        let records = self.records(extra);
        if records.is_empty() {
            return Ok(());
        }
        self.media.wait_for_answered();
        if self.options.mode == Mode::WriteBack {
            self.sync(Device::Fast)?;
        }
        self.groups_begun += 1;
        let group = group_of(self.epoch, self.groups_begun);
        let names = Group {
            tag: self.tag,
            group,
            previous: self.group,
            segment_blocks: self.shape.segment_blocks,
        };
        let packed = pack(names, self.space.head, self.space.free(), &records).ok_or(
            ArrayError::NoRoom("the log has too few free segments for a group"),
        )?;
        self.write_group(&packed)?;
        self.group = group;
        self.apply(&records, &packed);
        Ok(())
    }

    /// The records of a group, in the order of their blocks: runs are packed in sequence. Those of frozen places come
    /// first: the others may end what lies there.
    fn records(&self, extra: Extra) -> Vec<Unpacked> {
        let mut records = extra.moved;
        for &block in &self.unrecorded {
            if extra.homes.contains_key(&block) {
                continue;
            }
            records.push(match self.blocks.find(block) {
                Some(id) => self.record_of(block, id),
                None => self.virtual_less_record(block),
            });
        }
        for (&block, &crc) in &extra.homes {
            records.push(self.bare_record(block, RecordKind::Home, crc));
        }
        records.sort_by_key(|record| record.of);
        let frozen = extra.frozen.iter().map(frozen_record);
        frozen.chain(records).collect()
    }

    /// The record of a block without a virtual block that is unrecorded.
    fn virtual_less_record(&self, block: ArrayBlock) -> Unpacked {
        match self.passing.get(&block) {
            Some(passing) => Unpacked {
                payload: passing.page.to_vec(),
                ..self.bare_record(block, RecordKind::Whole, passing.crc)
            },
            None => self.bare_record(block, RecordKind::Zero, 0),
        }
    }

    fn bare_record(&self, block: ArrayBlock, kind: RecordKind, crc: u32) -> Unpacked {
        Unpacked {
            of: Recorded::Block(block),
            lba: self.addresses.lba(block),
            kind,
            data: DataBlock::NONE,
            crc,
            payload: Vec::new(),
        }
    }

    /// The record of the present content of a virtual block.
    fn record_of(&self, block: ArrayBlock, id: Id) -> Unpacked {
        let found = self.blocks.get(id);
        let mut record = self.bare_record(block, RecordKind::Slot, found.crc);
        record.data = found.data.unwrap_or(DataBlock::NONE);
        if let Content::Held(form, chain) = found.content {
            self.segments.read(chain, &mut record.payload);
            (record.kind, record.data) = match form {
                Form::Delta(base) if found.data == Some(base) => (RecordKind::Own, base),
                Form::Delta(base) => (RecordKind::Delta, base),
                Form::Alone => (RecordKind::Alone, DataBlock::NONE),
                Form::Whole => (RecordKind::Whole, DataBlock::NONE),
            };
        }
        record
    }

    /// Writes a group. If that fails, what of it may be there is made void, so that it never counts.
    fn write_group(&mut self, packed: &Packed) -> Result<(), ArrayError> {
        for (block, bytes) in &packed.writes {
            let written = self
                .media
                .write(Device::Slow, self.areas.log_block(*block), bytes);
            if let Err(error) = written {
                self.make_void(self.areas.log_block(packed.writes[0].0))?;
                return Err(error.into());
            }
        }
        self.sync(Device::Slow)
    }

    /// Overwrites the begin of what could not be written as a whole, or stops for good.
    pub(super) fn make_void(&mut self, offset: u64) -> Result<(), ArrayError> {
        if let Err(error) = self.media.write(Device::Slow, offset, &ZEROS) {
            self.media.halt().set(error.to_string());
            return Err(error.into());
        }
        self.sync(Device::Slow)
    }

    /// Takes over what a durable group says.
    fn apply(&mut self, records: &[Unpacked], packed: &Packed) {
        // The names of data blocks that end may be given to others.
        self.thawed = None;
        self.space.advance(packed.head, &packed.taken);
        self.counters.groups += 1;
        self.counters.records += records.len() as u64;
        self.counters.log_blocks += u64::from(packed.blocks);
        for (record, &at) in records.iter().zip(&packed.places) {
            let place = place_of(record.kind, record.data, at);
            let (Recorded::Block(block), Some(place)) = (record.of, place) else {
                self.take_frozen(record);
                continue;
            };
            self.counters.encoded_records += u64::from(place.at().is_some());
            self.set_place(block, place, record.crc);
            if let Some(id) = self.blocks.find(block) {
                self.need_not_record(id);
            }
            self.note_passed(block, &place);
            self.end_bare(block);
        }
    }

    fn take_frozen(&mut self, record: &Unpacked) {
        let Recorded::FrozenPlace(place) = record.of else {
            return;
        };
        let &Unpacked { data, crc, .. } = record;
        let before = self.table.frozen(place);
        self.table.set_frozen(place, Frozen { data, crc });
        self.pool.freeze(data, place, before);
    }
}

/// The record of what is in a frozen place.
fn frozen_record(&(place, frozen): &(FrozenPlace, Frozen)) -> Unpacked {
    Unpacked {
        of: Recorded::FrozenPlace(place),
        lba: place.into(),
        kind: RecordKind::Frozen,
        data: frozen.data,
        crc: frozen.crc,
        payload: Vec::new(),
    }
}

/// The place of a block that a record tells, if it is of a block.
pub(super) fn place_of(kind: RecordKind, data: DataBlock, at: LogPlace) -> Option<BlockPlace> {
    Some(match kind {
        RecordKind::Frozen => return None,
        RecordKind::Zero => BlockPlace::Zero,
        RecordKind::Home => BlockPlace::Home,
        RecordKind::Slot => BlockPlace::Slot(data),
        RecordKind::Own => BlockPlace::Own { data, at },
        RecordKind::Delta => BlockPlace::Delta { base: data, at },
        RecordKind::Alone => BlockPlace::Alone(at),
        RecordKind::Whole => BlockPlace::Whole(at.block),
    })
}
