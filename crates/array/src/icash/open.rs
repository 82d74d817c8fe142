//! Opening an array: the newest root, the table it names, the groups of the log behind it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flashlore_delta::Encoder;
use flashlore_medium::Medium;

use crate::addresses::Addresses;
use crate::element::{Device, Statistics};
use crate::error::ArrayError;
use crate::icash::blocks::VirtualBlocks;
use crate::icash::clean;
use crate::icash::commit::place_of;
use crate::icash::content::ZEROS;
use crate::icash::counters::Counters;
use crate::icash::format::block::MOST_EPOCHS;
use crate::icash::format::root::Head;
use crate::icash::format::{Areas, Root, Superblock, bytes};
use crate::icash::heatmap::Heatmap;
use crate::icash::log::Space;
use crate::icash::log::replay::{FoundGroup, LogShape};
use crate::icash::parameters::{BLOCK_BYTES, Options, SIGNATURE_VALUES, SUB_BLOCKS, TABLE_PAGES};
use crate::icash::place::{BlockEntry, BlockPlace, DataBlock, Frozen};
use crate::icash::pool::Pool;
use crate::icash::ram::DataBlocks;
use crate::icash::segments::Segments;
use crate::icash::state::ICash;
use crate::icash::table::{Table, TableSource};
use crate::index::{ArrayBlock, FrozenPlace, LogBlock, LogSegment, Slot};
use crate::media::Media;

/// What a recovery found, before anything is written.
pub(super) struct Recovered {
    pub superblock: Superblock,
    pub areas: Areas,
    pub addresses: Addresses,
    pub tag: u64,
    pub root: Root,
    pub table: Table,
    /// The last group, and where the log goes on behind it.
    pub group: u64,
    pub head: Head,
}

/// The superblock of a medium: the newer copy of those that hold.
pub(super) fn superblock(media: &mut Media, device: Device) -> Result<Superblock, ArrayError> {
    let (mut why, mut newest): (_, Option<Superblock>) = (String::new(), None);
    for copy in 0..2 {
        let mut page = ZEROS;
        let read = media.read(device, copy * BLOCK_BYTES as u64, &mut page);
        match read
            .map_err(|error| error.to_string())
            .and_then(|()| Superblock::parse(&page, copy))
        {
            Ok(found) if found.is_fast != (device == Device::Fast) => {
                why = "it is that of the other medium".into();
            }
            Ok(found) => {
                let is_newer = newest.as_ref().is_none_or(|n| found.is_newer_than(n));
                newest = Some(found).filter(|_| is_newer).or(newest);
            }
            Err(error) => why = error,
        }
    }
    newest.ok_or_else(|| {
        ArrayError::Damaged(format!(
            "there is no superblock of an array on the {} medium: {why}",
            device.name()
        ))
    })
}

/// Reads what the slow medium says for whoever does not open the array, and refuses places that cannot be.
pub(super) fn recover_whole(media: &mut Media) -> Result<Recovered, ArrayError> {
    let recovered = recover(media, TABLE_PAGES)?;
    recovered.check_places()?;
    Ok(recovered)
}

/// Reads what the slow medium says: the newest root, and the groups behind it. So many pages of the table may be in
/// memory. What the table says is not looked at: [`Recovered::check_places`] does, and an opening.
fn recover(media: &mut Media, table_pages: u32) -> Result<Recovered, ArrayError> {
    let superblock = superblock(media, Device::Slow)?;
    let areas = Areas::of(&superblock.shape);
    if media.len(Device::Slow) < areas.slow_blocks * BLOCK_BYTES as u64 {
        return Err(ArrayError::Damaged(format!(
            "the slow medium has {} bytes, the array needs {}",
            media.len(Device::Slow),
            areas.slow_blocks * BLOCK_BYTES as u64
        )));
    }
    let tag = bytes::get_u64(&superblock.id, 0);
    let root = newest_root(media, &areas, tag)?;
    let source = TableSource {
        medium: media.slow_medium(),
        areas,
        tag,
        checkpoint: root.checkpoint,
        halt: media.halt().clone(),
    };
    let shape = &superblock.shape;
    let entries = (shape.blocks(), shape.frozen_blocks);
    let table = Table::new(source, entries, root.copies.clone(), table_pages);
    let mut recovered = Recovered {
        addresses: Addresses::new(&superblock.shape.machines),
        group: root.group,
        head: root.head,
        superblock,
        areas,
        tag,
        root,
        table,
    };
    recovered.replay(media)?;
    Ok(recovered)
}

fn newest_root(media: &mut Media, areas: &Areas, tag: u64) -> Result<Root, ArrayError> {
    let mut newest: Option<Root> = None;
    for (number, copy) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let offset = areas.root(number, copy);
        let mut bytes = vec![0; areas.root_blocks as usize * BLOCK_BYTES];
        if media.read(Device::Slow, offset, &mut bytes).is_err() {
            continue;
        }
        let root = Root::parse(&bytes, tag, offset, areas.table_pages as usize);
        let is_newer = |root: &Root| {
            newest
                .as_ref()
                .is_none_or(|n| n.checkpoint < root.checkpoint)
        };
        newest = root.filter(is_newer).or(newest);
    }
    newest.ok_or_else(|| ArrayError::Damaged("no copy of the two roots holds".into()))
}

impl Recovered {
    /// Whether the last user closed the array. One that an older program left open has no mark, but a log that goes on.
    pub(super) fn was_closed(&self) -> bool {
        !self.root.in_use && self.group == self.root.group
    }

    /// Takes over the groups behind the root, up to the first gap.
    fn replay(&mut self, media: &mut Media) -> Result<(), ArrayError> {
        let shape = &self.superblock.shape;
        let log = LogShape {
            tag: self.tag,
            segments: shape.log_segments,
            segment_blocks: shape.segment_blocks,
            epoch: self.root.epoch,
        };
        let areas = self.areas;
        let mut read = |block: LogBlock, bytes: &mut [u8]| {
            media
                .read(Device::Slow, areas.log_block(block), bytes)
                .is_ok()
        };
        while let Some(group) = log.next_group(self.head, self.group, &mut read) {
            self.take(&group)?;
        }
        log.must_be_the_end(self.head, self.group, &mut read)
            .map_err(ArrayError::Damaged)?;
        let head = self.head;
        let exist = log.has(head.segment) && log.has(head.next);
        if !exist || head.segment == head.next {
            return Err(ArrayError::Damaged(format!(
                "the log goes on in segment {} and then {}, expected two of {}",
                head.segment, head.next, log.segments
            )));
        }
        Ok(())
    }

    fn take(&mut self, group: &FoundGroup) -> Result<(), ArrayError> {
        let damaged = |what: String| {
            ArrayError::Damaged(format!("group {:#x} of the log: {what}", group.group))
        };
        for record in &group.records {
            let Some(place) = place_of(record.kind, record.data, record.at) else {
                let place = FrozenPlace(u32::try_from(record.lba).unwrap_or(u32::MAX));
                let places = self.table.frozen_places();
                if place.0 >= places {
                    return Err(damaged(format!(
                        "frozen place {} does not exist, there are {places}",
                        record.lba
                    )));
                }
                let (data, crc) = (record.data, record.crc);
                self.table.set_frozen(place, Frozen { data, crc });
                continue;
            };
            let block = self.addresses.block(record.lba);
            let block = block.map_err(|error| damaged(error.to_string()))?;
            let has_home = self.table.get(block).has_home || place == BlockPlace::Home;
            let entry = BlockEntry {
                place,
                crc: record.crc,
                has_home,
            };
            self.table.set(block, entry);
        }
        self.group = group.group;
        self.head = group.head;
        Ok(())
    }

    /// The data blocks that are said to be frozen, each in one place.
    pub(super) fn frozen(&self) -> Result<HashSet<DataBlock>, ArrayError> {
        let mut all = HashSet::new();
        for place in FrozenPlace::first(self.table.frozen_places()) {
            let Some(Frozen { data, .. }) = self.table.frozen(place) else {
                continue;
            };
            if !all.insert(data) {
                return Err(ArrayError::Damaged(format!(
                    "frozen place {place} holds data block {data}, as another one does"
                )));
            }
        }
        Ok(all)
    }

    /// Refuses places that cannot be, whatever wrote them. All pages of the table are read for that.
    fn check_places(&self) -> Result<(), ArrayError> {
        let mut rules = PlaceRules::of(self)?;
        for pages in self.table.ranges() {
            for (block, entry) in self.table.all_noted_in(pages)? {
                rules.demand(block, &entry.place)?;
            }
        }
        self.table.demand_whole()
    }
}

/// What must hold of all places together.
struct PlaceRules {
    slots: u32,
    log_blocks: u32,
    segment_blocks: u32,
    /// The segment of the log that is to be written next.
    next: LogSegment,
    /// Whether data blocks can be frozen: then those have other names than there are slots.
    has_frozen: bool,
    frozen: HashSet<DataBlock>,
    /// Data blocks that are the own one of a block, and those in slots. How many there are is not proved by the size of
    /// a medium.
    owned: HashSet<DataBlock>,
    in_slots: HashMap<Slot, DataBlock>,
}

impl PlaceRules {
    /// Before any place was seen.
    ///
    /// # Errors
    /// Two frozen places hold the same.
    fn of(recovered: &Recovered) -> Result<Self, ArrayError> {
        let shape = &recovered.superblock.shape;
        Ok(PlaceRules {
            slots: shape.slots,
            log_blocks: shape.log_segments * shape.segment_blocks,
            segment_blocks: shape.segment_blocks,
            next: recovered.head.next,
            has_frozen: shape.frozen_blocks > 0,
            frozen: recovered.frozen()?,
            owned: HashSet::new(),
            in_slots: HashMap::new(),
        })
    }

    /// Refuses a place that cannot be, or not beside those that were seen.
    fn demand(&mut self, block: ArrayBlock, place: &BlockPlace) -> Result<(), ArrayError> {
        let damaged = |what: String| {
            Err(ArrayError::Damaged(format!(
                "the place of block {block} {what}"
            )))
        };
        if let Some(data) = place.data().filter(|data| !self.frozen.contains(data)) {
            let name = data.name();
            if !self.has_frozen && name >= self.slots {
                return damaged(format!("names data block {name}, there are {}", self.slots));
            }
            let other = self.in_slots.insert(data.first_slot(self.slots), data);
            if let Some(other) = other.filter(|&other| other != data) {
                let other = other.name();
                return damaged(format!(
                    "names data block {name}, and {other} is in its slot"
                ));
            }
        }
        if let Some(data) = place.own_data()
            && !self.owned.insert(data)
        {
            let name = data.name();
            return damaged(format!("names data block {name}, which another's does too"));
        }
        let Some((log, _)) = place.log() else {
            return Ok(());
        };
        if log.0 >= self.log_blocks {
            let blocks = self.log_blocks;
            return damaged(format!("names block {log} of the log, there are {blocks}"));
        }
        match log.segment(self.segment_blocks) == self.next {
            true => damaged(format!(
                "names block {log} of the log, which is to be written next"
            )),
            false => Ok(()),
        }
    }
}

impl ICash {
    /// Opens an array: recovers what is durable, and makes it known that nothing beyond counts.
    ///
    /// # Errors
    /// The media hold no array or not the same one, it is damaged, the options do not fit it, or a medium fails.
    pub fn open(
        fast: Arc<dyn Medium>,
        slow: Arc<dyn Medium>,
        options: Options,
    ) -> Result<ICash, ArrayError> {
        let mut media = Media::new(fast, slow);
        let mut recovered = recover(&mut media, options.table_pages)?;
        let on_fast = superblock(&mut media, Device::Fast)?;
        let shape = recovered.superblock.shape.clone();
        // An array that grew may say so on the slow medium alone.
        if on_fast.id != recovered.superblock.id || on_fast.shape.slots != shape.slots {
            return Err(ArrayError::Damaged(
                "the two media belong to different arrays".into(),
            ));
        }
        let needed = recovered.areas.fast_blocks * BLOCK_BYTES as u64;
        if media.len(Device::Fast) < needed {
            return Err(ArrayError::Damaged(format!(
                "the fast medium has {} bytes, the array needs {needed}",
                media.len(Device::Fast)
            )));
        }
        on_fast.session.demand(recovered.root.session)?;
        options.validate(shape.data_blocks())?;
        clean::validate(&shape, &options)?;
        let epoch = recovered.root.epoch.saturating_add(1);
        if epoch >= MOST_EPOCHS {
            let often =
                format!("the array was opened {epoch} times, which is the most there can be");
            return Err(ArrayError::Damaged(often));
        }
        if on_fast.is_fresh {
            recovered.check_places()?;
            recovered.do_without_fast(&mut media);
        }
        let rules = PlaceRules::of(&recovered)?;
        let slow_session = recovered.root.session;
        let mut element = ICash::assemble(media, recovered, options, epoch, &on_fast);
        element.use_places(rules)?;
        element.confirm_session(slow_session)?;
        element.next_session()?;
        element.finish_batch()?;
        element.secure_all()?;
        Ok(element)
    }

    fn assemble(
        media: Media,
        recovered: Recovered,
        options: Options,
        epoch: u32,
        on_fast: &Superblock,
    ) -> ICash {
        let id = recovered.superblock.id;
        let was_closed = recovered.was_closed();
        let shape = recovered.superblock.shape;
        ICash {
            media,
            id,
            session: on_fast.session,
            is_fresh: on_fast.is_fresh,
            in_use: true,
            was_closed,
            tag: recovered.tag,
            areas: recovered.areas,
            addresses: recovered.addresses,
            table: recovered.table,
            space: Space::new(shape.log_segments, shape.segment_blocks, recovered.head),
            pool: Pool::new(shape.slots, shape.frozen_blocks),
            blocks: VirtualBlocks::new(options.virtual_blocks),
            segments: Segments::new(options.segments),
            heatmap: Heatmap::new(SUB_BLOCKS, SIGNATURE_VALUES),
            ram: DataBlocks::new(options.ram_blocks),
            trimmed: Default::default(),
            passing: Default::default(),
            to_home: Default::default(),
            streams: Default::default(),
            dirty: 0,
            next_ahead: ArrayBlock(0),
            unused_homes: Default::default(),
            unrecorded: Default::default(),
            unrecorded_bytes: 0,
            away: Default::default(),
            is_copying: false,
            epoch,
            group: recovered.group,
            groups_begun: 0,
            checkpoint: recovered.root.checkpoint,
            encoder: Encoder::new(),
            thawed: None,
            requests_since_scan: 0,
            leaves_work: false,
            scanning: None,
            cleaning: None,
            continues_request: false,
            counters: Counters::default(),
            statistics: Statistics::default(),
            exposed: Default::default(),
            clock: None,
            options,
            shape,
        }
    }

    /// Notes who uses what, and gives every data block in use its virtual block. All pages of the table are read.
    ///
    /// # Errors
    /// What it says cannot be.
    fn use_places(&mut self, mut rules: PlaceRules) -> Result<(), ArrayError> {
        // Checksums of what is whole in a data block: its page need not be read again for it.
        let mut whole = HashMap::new();
        for pages in self.table.ranges() {
            for (block, entry) in self.table.all_noted_in(pages)? {
                rules.demand(block, &entry.place)?;
                self.use_place(block, &entry.place);
                self.note_away(block, &entry);
                self.note_dirty(&BlockPlace::Zero, &entry.place);
                // Whatever was not given back before the last user ended.
                self.note_unused_home(block, &entry);
                if let BlockPlace::Slot(data) = entry.place {
                    whole.insert(data, entry.crc);
                }
            }
        }
        self.pool.lay_out(|place| self.table.frozen(place));
        self.table.demand_whole()?;
        for data in self.pool.in_use() {
            let block = self.pool.users(data).named_by;
            let id = self.blocks.insert(block);
            self.hold_data(id, data);
            if let Some(&crc) = whole.get(&data) {
                self.set_content(id, crate::icash::blocks::Content::Slot, crc);
            }
        }
        Ok(())
    }
}
