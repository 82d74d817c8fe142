//! What a rival should ask of its media, slowly: lists that are searched from begin to end. Written from
//! docs/array.md.

use flashlore_array::element::OperationKind;
use flashlore_array::rivals::CacheOptions;

use crate::common::Sort;
use crate::heard::{Phase, Step};
use crate::support::{Op, Value};

/// A content on the fast medium, and the blocks that have it there, with whether they are dirty.
#[derive(Debug, Clone)]
struct Copy {
    content: Value,
    blocks: Vec<(usize, bool)>,
}

/// A rival without bytes.
pub struct Oracle {
    sort: Sort,
    options: CacheOptions,
    /// The one used last comes first.
    copies: Vec<Copy>,
    /// What each block holds, if anything was written.
    holds: Vec<Option<Value>>,
    fast_unsynced: bool,
    slow_unsynced: bool,
}

impl Oracle {
    pub fn new(sort: Sort, options: CacheOptions, blocks: usize) -> Oracle {
        Oracle {
            sort,
            options,
            copies: Vec::new(),
            holds: vec![None; blocks],
            fast_unsynced: false,
            slow_unsynced: false,
        }
    }

    /// What a block should read as.
    pub fn value(&self, block: usize) -> Value {
        self.holds[block].unwrap_or(0)
    }

    /// Does a request.
    pub fn run(&mut self, op: Op) -> Step {
        let mut step = Step::default();
        match op {
            Op::Read(block) => {
                if let Some(value) = self.holds[block] {
                    self.read(block, value, &mut step);
                }
            }
            Op::Write(block, value) => {
                self.write(block, value, &mut step.foreground);
                self.holds[block] = Some(value);
            }
            Op::Trim(block) => {
                self.remove(block);
                self.holds[block] = None;
            }
            Op::Flush => {
                self.flush(&mut step.foreground);
                return step;
            }
        }
        if self.options.clean_ahead && self.is_full() && self.oldest_is_dirty() {
            self.write_home(&mut step.background);
        }
        let wrote = |phase: &Phase| {
            phase
                .slow
                .iter()
                .any(|(kind, ..)| *kind == OperationKind::Write)
        };
        self.slow_unsynced |= wrote(&step.foreground) || wrote(&step.background);
        self.fast_unsynced |= step.foreground.fast_writes + step.background.fast_writes > 0;
        step
    }

    fn read(&mut self, block: usize, value: Value, step: &mut Step) {
        match self.sort {
            Sort::PureSsd => step.foreground.fast_reads += 1,
            Sort::Raid0 => step
                .foreground
                .slow
                .push((OperationKind::Read, block as u64, 1)),
            Sort::Lru | Sort::Dedup => match self.position(block) {
                Some(position) => {
                    step.foreground.fast_reads += 1;
                    self.move_to_front(position);
                }
                None => {
                    step.foreground
                        .slow
                        .push((OperationKind::Read, block as u64, 1));
                    self.fill(block, value, &mut step.background);
                }
            },
        }
    }

    fn fill(&mut self, block: usize, value: Value, phase: &mut Phase) {
        if let Some(position) = self.position_of_content(value, phase) {
            self.copies[position].blocks.push((block, false));
            self.move_to_front(position);
        } else {
            self.make_room(phase);
            phase.fast_writes += 1;
            self.add_copy(value, (block, false));
        }
    }

    fn write(&mut self, block: usize, value: Value, phase: &mut Phase) {
        match self.sort {
            Sort::PureSsd => phase.fast_writes += 1,
            Sort::Raid0 => phase.slow.push((OperationKind::Write, block as u64, 1)),
            Sort::Lru | Sort::Dedup => self.write_to_cache(block, value, phase),
        }
    }

    fn write_to_cache(&mut self, block: usize, value: Value, phase: &mut Phase) {
        let own = self.position(block);
        if let Some(position) = self.position_of_content(value, phase) {
            if own != Some(position) {
                self.copies[position].blocks.push((block, true));
                self.remove_except(block, value);
            }
            let now = self.copies.iter().position(|c| c.content == value);
            self.move_to_front(now.unwrap());
            return;
        }
        let is_alone = own.is_some_and(|own| self.copies[own].blocks.len() == 1);
        if !is_alone {
            self.make_room(phase);
        }
        phase.fast_writes += 1;
        self.remove(block);
        self.add_copy(value, (block, true));
    }

    fn flush(&mut self, phase: &mut Phase) {
        if std::mem::take(&mut self.fast_unsynced) {
            phase.fast_syncs += 1;
        }
        if std::mem::take(&mut self.slow_unsynced) {
            phase.slow.push((OperationKind::Sync, 0, 0));
        }
    }

    fn make_room(&mut self, phase: &mut Phase) {
        if self.is_full() {
            if self.oldest_is_dirty() {
                self.write_home(phase);
            }
            self.copies.pop();
        }
    }

    fn write_home(&mut self, phase: &mut Phase) {
        let mut dirty = Vec::new();
        for copy in self.copies.iter_mut().rev() {
            if dirty.len() >= self.options.write_back_batch {
                break;
            }
            let before = dirty.len();
            for (block, is_dirty) in &mut copy.blocks {
                if std::mem::take(is_dirty) {
                    dirty.push(*block as u64);
                }
            }
            phase.fast_reads += u64::from(dirty.len() > before);
        }
        dirty.sort_unstable();
        for block in dirty {
            match phase.slow.last_mut() {
                Some((OperationKind::Write, first, count))
                    if *first + *count == block && *count < 256 =>
                {
                    *count += 1;
                }
                _ => phase.slow.push((OperationKind::Write, block, 1)),
            }
        }
    }

    fn is_full(&self) -> bool {
        self.copies.len() == self.options.slots as usize
    }

    fn oldest_is_dirty(&self) -> bool {
        self.copies.last().unwrap().blocks.iter().any(|b| b.1)
    }

    fn add_copy(&mut self, content: Value, block: (usize, bool)) {
        let blocks = vec![block];
        self.copies.insert(0, Copy { content, blocks });
    }

    fn move_to_front(&mut self, position: usize) {
        let copy = self.copies.remove(position);
        self.copies.insert(0, copy);
    }

    fn position(&self, block: usize) -> Option<usize> {
        let has = |copy: &Copy| copy.blocks.iter().any(|b| b.0 == block);
        self.copies.iter().position(has)
    }

    /// The copy of a content, if that is looked for.
    fn position_of_content(&self, value: Value, phase: &mut Phase) -> Option<usize> {
        if self.sort != Sort::Dedup {
            return None;
        }
        phase.hashes += 1;
        self.copies.iter().position(|c| c.content == value)
    }

    fn remove(&mut self, block: usize) {
        for copy in &mut self.copies {
            copy.blocks.retain(|b| b.0 != block);
        }
        self.copies.retain(|copy| !copy.blocks.is_empty());
    }

    fn remove_except(&mut self, block: usize, content: Value) {
        for copy in self.copies.iter_mut().filter(|c| c.content != content) {
            copy.blocks.retain(|b| b.0 != block);
        }
        self.copies.retain(|copy| !copy.blocks.is_empty());
    }
}
