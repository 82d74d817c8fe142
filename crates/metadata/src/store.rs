//! Rows read and changed, and the tables that have them.
//!
//! Invariants: of a page in memory that has not changed, `slot` is what its pointer says; a page that has changed has a
//! changed parent, which counts it, up to the top; a page whose slot only it has, and no root, is written there again.

use std::ops::Range;
use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_medium::{AlignedBuf, Medium};

use crate::address::{Empty, Node, Pointer, Row, Shape, TableId};
use crate::area::Area;
use crate::cache::{Cache, CacheCounters, FrameId};
use crate::error::{Access, MetadataError};
use crate::fetch::{Fetch, Fetched};
use crate::page::{HEADER, Label, PAYLOAD, pointer, pointers, seal, set_pointer};
use crate::root::RootTable;
use crate::space::Space;

/// Rows of pages that were never written.
static ZEROS: [u8; PAYLOAD] = [0; PAYLOAD];
static ONES: [u8; PAYLOAD] = [0xff; PAYLOAD];

/// Pages that leave in one write at most.
const WRITTEN_AT_ONCE: usize = 32;

/// Why the rows of a page of a table cannot be, if they cannot: whoever wrote them was wrong.
pub type Judge = Box<dyn Fn(TableId, &[u8]) -> Option<&'static str> + Send>;

/// Tables on a part of a medium.
pub struct Store {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) area: Area,
    pub(crate) key: VolumeKey,
    pub(crate) tables: Vec<RootTable>,
    pub(crate) cache: Cache,
    pub(crate) space: Space,
    /// The last commit that began, or is durable.
    pub(crate) commit: u64,
    /// A commit has begun and is not durable.
    pub(crate) committing: bool,
    /// A write failed.
    pub(crate) failed: bool,
    /// Says of the rows of a page that was read why they cannot be.
    pub(crate) judge: Option<Judge>,
    /// Pages that leave in one write.
    pub(crate) buffer: AlignedBuf,
}

impl Store {
    /// From now on a page that is read is judged: one whose rows cannot be is as one that cannot be read.
    pub fn set_judge(&mut self, judge: Judge) {
        self.judge = Some(judge);
    }

    /// What a fetch needs besides.
    pub fn place(&self) -> (Arc<dyn Medium>, Area, VolumeKey) {
        (Arc::clone(&self.medium), self.area, self.key)
    }

    /// Tables there are.
    pub fn tables(&self) -> u32 {
        self.tables.len() as u32
    }

    /// The shape of a table.
    pub fn shape(&self, table: TableId) -> Shape {
        self.tables[table.index()].shape
    }

    /// Slots that are free, without those that a commit that is not durable yet gives up.
    pub fn free_slots(&self) -> u32 {
        self.space.free()
    }

    /// Pages in memory that have changed.
    pub fn dirty_pages(&self) -> usize {
        self.cache.dirty().len()
    }

    /// Whether a commit should begin: soon what has changed would find no slots.
    pub fn wants_commit(&self) -> bool {
        self.space.free() as usize <= self.cache.dirty().len() + Store::SPARE_SLOTS as usize
    }

    /// What became of questions to the cache.
    pub fn cache_counters(&self) -> CacheCounters {
        self.cache.counters
    }

    /// Bytes that pages in memory take, and take at most.
    pub fn cache_bytes(&self) -> (u64, u64) {
        let most = self.cache.most() * crate::page::PAGE_BYTES;
        (self.cache.heap_bytes() as u64, most as u64)
    }

    /// Bytes held in memory.
    pub fn heap_bytes(&self) -> usize {
        self.cache.heap_bytes() + self.space.heap_bytes()
    }

    /// The leaf of a row, and which of its bytes behind the header that is.
    #[inline(always)]
    fn leaf_of(&self, table: TableId, row: Row) -> (Node, Range<usize>) {
        let shape = self.shape(table);
        assert!(
            row.0 < shape.rows,
            "row {row} of table {table}, which has {}",
            shape.rows
        );
        let (leaf, at) = Node::of_row(table, row, &shape);
        (leaf, at..at + usize::from(shape.row_bytes))
    }

    /// A row as it is.
    ///
    /// # Errors
    /// Its page is to be read first, or that of a page above it.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&mut self, table: TableId, row: Row) -> Result<&[u8], Access> {
        let (leaf, within) = self.leaf_of(table, row);
        self.row_in(leaf, within)
    }

    /// The same of a row, or of some that follow each other, whose leaf and whose bytes in it are known.
    #[inline(always)]
    pub(crate) fn row_in(&mut self, leaf: Node, within: Range<usize>) -> Result<&[u8], Access> {
        if let Some(frame) = self.cache.find(leaf) {
            self.cache.touch(frame);
            self.cache.counters.hits += 1;
            let page = self.cache.page(frame);
            return Ok(&page[HEADER..][within]);
        }
        match self.absent(leaf)? {
            Some(fetch) => {
                self.cache.counters.misses += 1;
                Err(Access::Absent(fetch))
            }
            None => Ok(&self.never_written(leaf.table)[within]),
        }
    }

    /// What is to be read of a page that is not in memory; nothing if it was never written.
    fn absent(&mut self, leaf: Node) -> Result<Option<Fetch>, Access> {
        let pointer = self.pointer(leaf)?;
        Ok(pointer.is_some().then(|| self.fetch(leaf, pointer)))
    }

    /// The rows of a page that was never written.
    fn never_written(&self, table: TableId) -> &'static [u8; PAYLOAD] {
        match self.shape(table).empty {
            Empty::Zeros => &ZEROS,
            Empty::Ones => &ONES,
        }
    }

    /// A row as it is, for somebody who will ask for it again: nothing is counted.
    ///
    /// # Errors
    /// As [`Store::row`].
    ///
    /// # Panics
    /// If there is no such row.
    pub fn glimpse(&mut self, table: TableId, row: Row) -> Result<&[u8], Access> {
        let (leaf, within) = self.leaf_of(table, row);
        match self.cache.find(leaf) {
            Some(frame) => {
                self.cache.touch(frame);
                Ok(&self.cache.page(frame)[HEADER..][within])
            }
            None => match self.absent(leaf)? {
                Some(fetch) => Err(Access::Absent(fetch)),
                None => Ok(&self.never_written(table)[within]),
            },
        }
    }

    /// A row, to be changed.
    ///
    /// # Errors
    /// Its page is to be read first, or that of a page above it; or there is no room in memory or on the medium.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_mut(&mut self, table: TableId, row: Row) -> Result<&mut [u8], Access> {
        let (leaf, within) = self.leaf_of(table, row);
        self.row_in_mut(leaf, within)
    }

    /// The same of a row whose leaf and whose bytes in it are known.
    pub(crate) fn row_in_mut(
        &mut self,
        leaf: Node,
        within: Range<usize>,
    ) -> Result<&mut [u8], Access> {
        let frame = self.frame_to_change(leaf)?;
        self.cache.counters.hits += 1;
        let page = self.cache.page_mut(frame);
        Ok(&mut page[HEADER..][within])
    }

    /// A row whose leaf and whose bytes in it are known, to be changed, if its page is in memory and has changed already.
    #[inline]
    pub(crate) fn changed_row(&mut self, leaf: Node, within: Range<usize>) -> Option<&mut [u8]> {
        let frame = self.cache.find(leaf)?;
        if !self.cache.frame(frame).dirty {
            return None;
        }
        self.cache.touch(frame);
        self.cache.counters.hits += 1;
        Some(&mut self.cache.page_mut(frame)[HEADER..][within])
    }

    /// The rows of a page, the one with this row among them, to be set all of them: what they held is not read. Behind the
    /// last row of the table they are to be as if never written, for the table may grow.
    ///
    /// # Errors
    /// A page above them is to be read first, or there is no room in memory or on the medium.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn rows_to_set(&mut self, table: TableId, row: Row) -> Result<&mut [u8], Access> {
        let (leaf, _) = self.leaf_of(table, row);
        let mut placed = None;
        if self.cache.find(leaf).is_none() {
            let pointer = self.pointer(leaf)?;
            if pointer.is_some() {
                let frame = self.room_for(leaf)?;
                self.cache.frame_mut(frame).slot = Some(pointer.slot);
                placed = Some(frame);
            }
        }
        match (self.frame_to_change(leaf), placed) {
            (Ok(frame), _) => Ok(&mut self.cache.page_mut(frame)[HEADER..]),
            (Err(error), None) => Err(error),
            (Err(error), Some(unread)) => {
                self.cache.remove(unread);
                Err(error)
            }
        }
    }

    fn fetch(&self, node: Node, pointer: Pointer) -> Fetch {
        Fetch {
            node,
            kind: self.tables[node.table.index()].kind,
            pointer,
        }
    }

    /// What leads to a page; its parent has to be in memory.
    fn pointer(&mut self, node: Node) -> Result<Pointer, Access> {
        let table = &self.tables[node.table.index()];
        if node.level == table.shape.top() {
            return Ok(table.top);
        }
        let (parent, at) = node.parent();
        if let Some(frame) = self.cache.find(parent) {
            self.cache.touch(frame);
            return Ok(pointer(self.cache.page(frame), at));
        }
        let above = self.pointer(parent)?;
        match above.is_some() {
            true => Err(Access::Absent(self.fetch(parent, above))),
            false => Ok(Pointer::NONE),
        }
    }

    /// The frame of a page that is changed now, with everything above it.
    fn frame_to_change(&mut self, node: Node) -> Result<FrameId, Access> {
        if let Some(frame) = self.cache.find(node) {
            self.cache.touch(frame);
            if self.cache.frame(frame).dirty {
                return Ok(frame);
            }
            self.cache.frame_mut(frame).pins += 1;
            let above = self.dirty_above(node);
            self.cache.frame_mut(frame).pins -= 1;
            above?;
            self.leave_slot(frame);
            self.cache.set_dirty(frame, true);
            return Ok(frame);
        }
        let pointer = self.pointer(node)?;
        if pointer.is_some() {
            self.cache.counters.misses += 1;
            return Err(Access::Absent(self.fetch(node, pointer)));
        }
        let above = self.dirty_above(node)?;
        let frame = match self.room_for(node) {
            Ok(frame) => frame,
            Err(error) => {
                if let Some(parent) = above {
                    self.cache.frame_mut(parent).dirty_children -= 1;
                }
                return Err(error);
            }
        };
        let empty = match node.level {
            0 => self.tables[node.table.index()].shape.empty.byte(),
            _ => 0xff,
        };
        self.cache.page_mut(frame).fill(empty);
        self.cache.set_dirty(frame, true);
        Ok(frame)
    }

    /// The parent of a page that is to change, changed too and counting it.
    fn dirty_above(&mut self, node: Node) -> Result<Option<FrameId>, Access> {
        if node.level == self.tables[node.table.index()].shape.top() {
            return Ok(None);
        }
        let parent = self.frame_to_change(node.parent().0)?;
        self.cache.frame_mut(parent).dirty_children += 1;
        Ok(Some(parent))
    }

    /// A page will differ from what lies in its slot. Where others share that, it has a place of its own from now on, and
    /// what it leads to is shared.
    fn leave_slot(&mut self, frame: FrameId) {
        let Some(slot) = self.cache.frame(frame).slot else {
            return;
        };
        if self.space.is_own(slot) {
            return;
        }
        self.cache.frame_mut(frame).slot = None;
        let is_shared = self.space.count(slot) > 1;
        self.space.give_up(slot);
        if is_shared && self.cache.frame(frame).node.level > 0 {
            for (_, child) in pointers(self.cache.page(frame)) {
                self.space.share(child.slot);
            }
        }
    }

    /// A frame for a page that is not in memory.
    fn room_for(&mut self, node: Node) -> Result<FrameId, Access> {
        loop {
            if let Some(frame) = self.cache.add(node) {
                return Ok(frame);
            }
            self.evict()?;
        }
    }

    /// A page leaves memory.
    fn evict(&mut self) -> Result<(), MetadataError> {
        let victim = self.cache.victim()?;
        match self.cache.frame(victim).dirty {
            true => {
                let node = self.cache.frame(victim).node;
                let with_it = self.leaving_with(node);
                self.write_level(&with_it)?;
                self.cache.counters.written_for_room += with_it.len() as u64;
            }
            false => self.cache.counters.evicted_clean += 1,
        }
        self.cache.remove(victim);
        Ok(())
    }

    /// A page that must be written before it leaves, and those behind it in its table that will have to be, too.
    fn leaving_with(&self, node: Node) -> Vec<Node> {
        let most = if node.level == 0 { WRITTEN_AT_ONCE } else { 1 };
        let behind = self.cache.dirty().range((node.level, node)..);
        let level = behind.take_while(|&&(level, _)| level == node.level);
        level.take(most).map(|&(_, node)| node).collect()
    }

    /// Takes over a page that was read, if it is still wanted and still lies there.
    ///
    /// # Errors
    /// There is no room in memory or on the medium.
    pub fn install(&mut self, fetched: &Fetched) -> Result<(), Access> {
        if self.is_wanted(fetched)? {
            let frame = self.room_for(fetched.fetch.node)?;
            self.take_over(frame, fetched);
        }
        Ok(())
    }

    /// Whether a page that was read is not in memory, and is still what lies there.
    fn is_wanted(&mut self, fetched: &Fetched) -> Result<bool, Access> {
        let Fetch { node, pointer, .. } = fetched.fetch;
        if node.table.index() >= self.tables.len() || self.cache.find(node).is_some() {
            return Ok(false);
        }
        match self.pointer(node) {
            Ok(now) if now == pointer => {}
            // It was written elsewhere, or what is above it has left.
            Ok(_) | Err(Access::Absent(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        match self.why_impossible(fetched) {
            Some(why) => {
                let slot = pointer.slot;
                Err(MetadataError::Damaged { node, slot, why }.into())
            }
            None => Ok(true),
        }
    }

    /// Why a page cannot be what was written last, though its checksum holds: whoever wrote it was wrong.
    fn why_impossible(&self, fetched: &Fetched) -> Option<&'static str> {
        let node = fetched.fetch.node;
        if node.level > 0 {
            let mut below = pointers(&fetched.bytes);
            let leads_nowhere = below.any(|(_, pointer)| !self.space.has(pointer.slot));
            return leads_nowhere.then_some("it leads to a slot that there is not");
        }
        let judge = self.judge.as_ref()?;
        judge(node.table, &fetched.bytes[HEADER..])
    }

    fn take_over(&mut self, frame: FrameId, fetched: &Fetched) {
        self.cache.page_mut(frame).copy_from_slice(&fetched.bytes);
        self.cache.frame_mut(frame).slot = Some(fetched.fetch.pointer.slot);
    }

    /// Takes over a page that is needed once: no other one leaves for it. Whether it is to be given back
    /// ([`Store::give_back`]); not where there was room, or it is above others. A page that cannot be had is left to who
    /// asks for it.
    pub fn lend(&mut self, fetched: &Fetched) -> bool {
        let node = fetched.fetch.node;
        if node.level > 0 || self.cache.has_room() {
            let _ = self.install(fetched);
            return false;
        }
        let is_wanted = matches!(self.is_wanted(fetched), Ok(true));
        if is_wanted {
            let frame = self.cache.lend(node);
            self.take_over(frame, fetched);
        }
        is_wanted
    }

    /// A page that was lent leaves, unless it has changed meanwhile.
    pub fn give_back(&mut self, fetched: &Fetched) {
        self.cache.give_back();
        let frame = self.cache.find(fetched.fetch.node);
        let is_clean = |frame: &FrameId| {
            let frame = self.cache.frame(*frame);
            !frame.dirty && frame.pins == 0
        };
        if let Some(frame) = frame.filter(is_clean) {
            self.cache.remove(frame);
        }
    }

    /// The first row from one on, of so many that are looked at, whose page was ever written, as far as pages in memory say;
    /// else the one behind them.
    pub fn first_written(&mut self, table: TableId, from: Row, most: u32) -> Row {
        let shape = self.shape(table);
        let end = from.0.saturating_add(most).min(shape.rows);
        let mut row = from.0;
        while row < end {
            let (leaf, _) = Node::of_row(table, Row(row), &shape);
            let is_written = self.cache.find(leaf).is_some()
                || !matches!(self.pointer(leaf), Ok(pointer) if !pointer.is_some());
            if is_written {
                return Row(row);
            }
            row = (row / shape.rows_per_page() + 1) * shape.rows_per_page();
        }
        Row(end)
    }

    /// A page is about to be read.
    pub(crate) fn count_miss(&mut self) {
        self.cache.counters.misses += 1;
    }

    /// From now on so many pages may be in memory, at least as many as now.
    pub fn grow_cache(&mut self, frames: usize) {
        self.cache.grow(frames);
    }

    /// Reads a page and takes it over, while nobody else has the store.
    ///
    /// # Errors
    /// It cannot be read, or there is no room in memory or on the medium.
    pub fn fetch_at_once(&mut self, fetch: &Fetch) -> Result<(), MetadataError> {
        let fetched = fetch.carry_out(&self.medium, &self.area, &self.key)?;
        match self.install(&fetched) {
            Ok(()) | Err(Access::Absent(_)) => Ok(()),
            Err(Access::Error(error)) => Err(error),
        }
    }

    /// Writes pages of one level that have changed, none of whose children has. Their parents name the new places. Those
    /// that get slots side by side leave in one write.
    fn write_level(&mut self, nodes: &[Node]) -> Result<(), MetadataError> {
        for batch in nodes.chunks(WRITTEN_AT_ONCE) {
            let (mut sealed, full) = self.seal_all(batch);
            sealed.sort_unstable_by_key(|&(pointer, _)| pointer.slot);
            for run in sealed.chunk_by(|(a, _), (b, _)| a.slot.0 + 1 == b.slot.0) {
                self.write_run(run)?;
            }
            full?;
        }
        Ok(())
    }

    /// Gives pages slots and seals them, until no slot is free.
    fn seal_all(&mut self, nodes: &[Node]) -> (Vec<(Pointer, FrameId)>, Result<(), MetadataError>) {
        let mut sealed = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let Some(frame) = self.cache.find(node) else {
                continue;
            };
            debug_assert_eq!(self.cache.frame(frame).dirty_children, 0);
            let slot = match self.cache.frame(frame).slot {
                Some(slot) => slot,
                None => match self.space.take() {
                    Ok(slot) => slot,
                    Err(full) => return (sealed, Err(full)),
                },
            };
            let label = Label::of(self.tables[node.table.index()].kind, node);
            let page = self.cache.page_mut(frame);
            sealed.push((seal(page, label, slot, self.commit + 1, &self.key), frame));
            self.cache.frame_mut(frame).slot = Some(slot);
        }
        (sealed, Ok(()))
    }

    /// Writes pages whose slots lie side by side.
    fn write_run(&mut self, run: &[(Pointer, FrameId)]) -> Result<(), MetadataError> {
        let Some(&(first, _)) = run.first() else {
            return Ok(());
        };
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        for &(_, frame) in run {
            bytes.extend_from_slice(self.cache.page(frame));
        }
        let written = self.put(self.area.slot(first.slot), &bytes);
        self.buffer = bytes;
        written?;
        for &(pointer, frame) in run {
            let node = self.cache.frame(frame).node;
            self.cache.set_dirty(frame, false);
            self.point_to(node, pointer);
        }
        Ok(())
    }

    /// Writes to the medium, unless a write has failed.
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), MetadataError> {
        if self.failed {
            return Err(MetadataError::Failed);
        }
        let written = self.medium.write(at, bytes);
        self.failed = written.is_err();
        Ok(written?)
    }

    /// The parent of a page, which has changed for that, names its place.
    fn point_to(&mut self, node: Node, pointer: Pointer) {
        if node.level == self.tables[node.table.index()].shape.top() {
            self.tables[node.table.index()].top = pointer;
            return;
        }
        let (parent, at) = node.parent();
        let Some(parent) = self.cache.find(parent) else {
            unreachable!("the parent of a page that has changed stays in memory")
        };
        self.cache.frame_mut(parent).dirty_children -= 1;
        set_pointer(self.cache.page_mut(parent), at, pointer);
    }

    /// Writes up to so many pages that have changed, leaves first; answers how many it wrote. What was written need not be
    /// written by the next commit, unless it changes again.
    ///
    /// # Errors
    /// No slot is free, or the medium failed.
    pub fn clean(&mut self, most: usize) -> Result<usize, MetadataError> {
        let dirty = self
            .cache
            .dirty()
            .iter()
            .take_while(|&&(level, _)| level == 0);
        let leaves: Vec<Node> = dirty.take(most).map(|&(_, node)| node).collect();
        self.write_all(&leaves)?;
        Ok(leaves.len())
    }

    /// Makes a table: its number. `kind` tells its pages from those of others.
    ///
    /// # Panics
    /// If the area has no room for one more.
    pub fn add_table(&mut self, kind: u8, shape: Shape) -> TableId {
        self.push_table(RootTable {
            kind,
            shape,
            top: Pointer::NONE,
        })
    }

    fn push_table(&mut self, table: RootTable) -> TableId {
        assert!(
            self.tables.len() < usize::from(self.area.tables),
            "one table too many"
        );
        self.tables.push(table);
        TableId(self.tables.len() as u32 - 1)
    }

    /// A second table that holds what a table holds now; from here on each changes by itself. Pages of both are shared
    /// until one of them changes. Writes what has changed of it, and no more.
    ///
    /// # Errors
    /// No slot is free, or the medium failed.
    ///
    /// # Panics
    /// If the area has no room for one more.
    pub fn fork(&mut self, table: TableId) -> Result<TableId, MetadataError> {
        self.write_dirty(Some(table))?;
        let fork = self.tables[table.index()];
        if fork.top.is_some() {
            self.space.share(fork.top.slot);
        }
        Ok(self.push_table(fork))
    }

    /// A table may have more rows from now on.
    ///
    /// # Errors
    /// There is no room in memory or on the medium, or a page is to be read first.
    ///
    /// # Panics
    /// If it had more.
    pub fn grow(&mut self, table: TableId, rows: u32) -> Result<(), Access> {
        let before = self.tables[table.index()].shape;
        assert!(rows >= before.rows, "tables do not shrink");
        let after = Shape { rows, ..before };
        if after.top() > before.top() {
            // The present top becomes the first page below a new one.
            self.write_dirty(Some(table))?;
            for level in before.top() + 1..=after.top() {
                let below = self.tables[table.index()].top;
                if !below.is_some() {
                    break;
                }
                let node = Node {
                    table,
                    level,
                    index: 0,
                };
                let frame = self.room_for(node)?;
                self.cache.page_mut(frame).fill(0xff);
                set_pointer(self.cache.page_mut(frame), 0, below);
                self.cache.set_dirty(frame, true);
                // As the top of a table of so many rows it is written, and its place known.
                self.tables[table.index()].shape.rows = rows_below(level, &after);
                self.write_level(&[node])?;
            }
        }
        self.tables[table.index()].shape = after;
        Ok(())
    }

    /// Writes all pages that have changed, of one table or of all, leaves first and each level in order.
    pub(crate) fn write_dirty(&mut self, table: Option<TableId>) -> Result<(), MetadataError> {
        let wanted = |node: Node| table.is_none_or(|table| node.table == table);
        let dirty = self.cache.dirty().iter().map(|&(_, node)| node);
        let dirty: Vec<Node> = dirty.filter(|&node| wanted(node)).collect();
        self.write_all(&dirty)
    }

    fn write_all(&mut self, nodes: &[Node]) -> Result<(), MetadataError> {
        let mut levels = nodes.chunk_by(|a, b| a.level == b.level);
        levels.try_for_each(|level| self.write_level(level))
    }

    /// Looks at what is in memory, and at the marks of slots.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.space.check()?;
        let mut dirty = 0;
        let mut children = rustc_hash::FxHashMap::<Node, u32>::default();
        for (_, frame) in self.cache.all() {
            let node = frame.node;
            let is_top = node.level == self.tables[node.table.index()].shape.top();
            if frame.dirty {
                dirty += 1;
                if !is_top {
                    *children.entry(node.parent().0).or_default() += 1;
                }
            }
            if frame.pins > 0 {
                return Err(format!("{node} is pinned, and nobody uses it"));
            }
            let Some(slot) = frame.slot else {
                match frame.dirty {
                    true => continue,
                    false => return Err(format!("{node} has not changed and lies nowhere")),
                }
            };
            if frame.dirty && !self.space.is_own(slot) || self.space.count(slot) == 0 {
                return Err(format!(
                    "{node} has slot {slot}, which it may not write again"
                ));
            }
        }
        for (_, frame) in self.cache.all() {
            let counted = children.remove(&frame.node).unwrap_or(0);
            if counted != frame.dirty_children || counted > 0 && !frame.dirty {
                return Err(format!(
                    "{} has {counted} changed children, noted are {}, and it has changed: {}",
                    frame.node, frame.dirty_children, frame.dirty
                ));
            }
        }
        if let Some(parent) = children.keys().next() {
            return Err(format!(
                "{parent} has changed children and is not in memory"
            ));
        }
        match dirty == self.cache.dirty().len() {
            true => Ok(()),
            false => Err(format!(
                "{dirty} pages have changed, counted are {}",
                self.cache.dirty().len()
            )),
        }
    }
}

/// So many rows of a table that its top page is of a level, or all of them.
fn rows_below(level: u8, shape: &Shape) -> u32 {
    let leaves = u64::from(crate::page::FANOUT).saturating_pow(level.into());
    let rows = leaves.saturating_mul(u64::from(shape.rows_per_page()));
    rows.min(shape.rows.into()) as u32
}
