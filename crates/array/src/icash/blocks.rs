//! Virtual blocks: what is known in RAM of the blocks in use, in the order of their last access.
//!
//! Invariants: a block has at most one virtual block; the LRU list holds each of them once; no more exist than the
//! budget allows. What replacements look for is found without a walk over the whole list: every virtual block that is
//! no reference is in `replaceable`; exactly those whose data block is on the fast medium are in `with_slot`; every one
//! with content in RAM that is no reference is in `held`, and none without.

use std::collections::HashMap;

use flashlore_content::Sketch;

use crate::by_age::{ByAge, Verdict};
use crate::icash::place::DataBlock;
use crate::icash::segments::Chain;
use crate::icash::signature::Signature;
use crate::lru::Lru;
use crate::put;

/// Names a virtual block while it exists. Whatever may replace virtual blocks may end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// How the bytes of a chain give the content of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// They are the delta from this data block. If that is the virtual block's own, the block is a reference that was
    /// written, or was one.
    Delta(DataBlock),
    /// They are the content, compressed by itself.
    Alone,
    /// They are the content.
    Whole,
}

/// Where the present content of a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Where its durable place says.
    Stored,
    /// In its data block.
    Slot,
    /// In RAM.
    Held(Form, Chain),
}

#[derive(Debug, Clone)]
pub struct Virtual {
    /// The block, or none: then this is the frozen content of a reference that has no address any more.
    pub block: Option<u32>,
    /// Its signature, as far as it is known. While deltas are based on its data block, that one's.
    pub signature: Option<Signature>,
    /// Its super-features, where they are used; otherwise as the signature.
    pub sketch: Option<Sketch>,
    /// Its data block: its content, or what deltas are based on.
    pub data: Option<DataBlock>,
    pub content: Content,
    /// CRC-32 of the present content; 0 if that is stored or there is none.
    pub crc: u32,
    /// Bytes its record will take in the log if its durable place does not tell its present content or is to be
    /// given up; 0 if nothing is to be recorded.
    pub unrecorded: u32,
    /// Its content cannot be read or not be written home: it cannot be replaced until it is written or trimmed.
    pub is_stuck: bool,
}

#[derive(Debug)]
pub struct VirtualBlocks {
    all: Vec<Option<Virtual>>,
    free: Vec<u32>,
    of_block: HashMap<u32, Id>,
    order: Lru,
    budget: u32,
    replaceable: ByAge,
    with_slot: ByAge,
    held: ByAge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Virtual blocks that are no references.
    Replaceable,
    /// Those whose data block is on the fast medium.
    WithSlot,
    /// Those with content in RAM that are no references.
    Held,
}

impl VirtualBlocks {
    /// None yet, and at most so many.
    pub fn new(budget: u32) -> Self {
        VirtualBlocks {
            all: Vec::new(),
            free: Vec::new(),
            of_block: HashMap::new(),
            order: Lru::new(),
            budget,
            replaceable: ByAge::default(),
            with_slot: ByAge::default(),
            held: ByAge::default(),
        }
    }

    pub fn len(&self) -> u32 {
        (self.all.len() - self.free.len()) as u32
    }

    pub fn left(&self) -> u32 {
        self.budget - self.len()
    }

    pub fn find(&self, block: u32) -> Option<Id> {
        self.of_block.get(&block).copied()
    }

    pub fn get(&self, id: Id) -> &Virtual {
        self.all[id.0 as usize].as_ref().expect("it exists")
    }

    /// A virtual block that exists. Its block is changed by [`VirtualBlocks::detach`] alone, its data block by
    /// [`VirtualBlocks::set_slot`], its content by [`VirtualBlocks::set_content`].
    pub fn get_mut(&mut self, id: Id) -> &mut Virtual {
        self.all[id.0 as usize].as_mut().expect("it exists")
    }

    /// A new one at the head, for a block that has none or for none. The budget must allow it.
    pub fn insert(&mut self, block: Option<u32>) -> Id {
        debug_assert!(self.left() > 0);
        let new = Some(Virtual {
            block,
            signature: None,
            sketch: None,
            data: None,
            content: Content::Stored,
            crc: 0,
            unrecorded: 0,
            is_stuck: false,
        });
        let number = put(&mut self.all, &mut self.free, new);
        let id = Id(number);
        if let Some(block) = block {
            let former = self.of_block.insert(block, id);
            debug_assert!(former.is_none());
        }
        self.order.touch(number);
        self.replaceable.insert(number, self.order.stamp_of(number));
        id
    }

    /// Gives one a data block or takes it; answers the one it had. [`VirtualBlocks::set_resident`] says where it is.
    pub fn set_data(&mut self, id: Id, data: Option<DataBlock>) -> Option<DataBlock> {
        if data.is_none() {
            self.with_slot.remove(id.0);
        }
        std::mem::replace(&mut self.get_mut(id).data, data)
    }

    /// Notes whether the data block of one is on the fast medium.
    pub fn set_resident(&mut self, id: Id, is_resident: bool) {
        match is_resident {
            true => self.with_slot.insert(id.0, self.order.stamp_of(id.0)),
            false => self.with_slot.remove(id.0),
        }
    }

    /// Gives one other content; answers what it had.
    pub fn set_content(&mut self, id: Id, content: Content) -> Content {
        match content {
            Content::Held(..) => self.held.insert(id.0, self.order.stamp_of(id.0)),
            _ => self.held.remove(id.0),
        }
        std::mem::replace(&mut self.get_mut(id).content, content)
    }

    /// Notes that one is no reference any more.
    pub fn is_no_reference(&mut self, id: Id) {
        let stamp = self.order.stamp_of(id.0);
        self.replaceable.insert(id.0, stamp);
        if matches!(self.get(id).content, Content::Held(..)) {
            self.held.insert(id.0, stamp);
        }
    }

    /// The oldest of a class that are wanted, at most so many, the oldest first.
    pub fn oldest(
        &mut self,
        class: Class,
        most: usize,
        is_reference: impl Fn(&Virtual) -> bool,
        wanted: impl Fn(Id, &Virtual) -> bool,
    ) -> Vec<Id> {
        let (all, order) = (&self.all, &self.order);
        let members = match class {
            Class::Replaceable => &mut self.replaceable,
            Class::WithSlot => &mut self.with_slot,
            Class::Held => &mut self.held,
        };
        let verdict = |number: u32| {
            let found = all[number as usize].as_ref().expect("it exists");
            if class != Class::WithSlot && is_reference(found) {
                Verdict::Drop
            } else if wanted(Id(number), found) {
                Verdict::Take
            } else {
                Verdict::Pass
            }
        };
        let oldest = members.oldest(most, |number| order.stamp_of(number), verdict);
        oldest.into_iter().map(Id).collect()
    }

    pub fn remove(&mut self, id: Id) {
        self.order.remove(id.0);
        for members in [&mut self.replaceable, &mut self.with_slot, &mut self.held] {
            members.remove(id.0);
        }
        if let Some(block) = self.get(id).block {
            self.of_block.remove(&block);
        }
        self.all[id.0 as usize] = None;
        self.free.push(id.0);
    }

    pub fn detach(&mut self, id: Id) {
        if let Some(block) = self.get_mut(id).block.take() {
            self.of_block.remove(&block);
        }
    }

    pub fn touch(&mut self, id: Id) {
        self.order.touch(id.0);
    }

    pub fn is_newer(&self, a: Id, b: Id) -> bool {
        self.order.is_newer(a.0, b.0)
    }

    /// From the one accessed last to the oldest.
    pub fn newest_first(&self) -> impl Iterator<Item = (Id, &Virtual)> {
        self.order.newest_first().map(|n| (Id(n), self.get(Id(n))))
    }

    /// From the oldest to the one accessed last.
    pub fn oldest_first(&self) -> impl Iterator<Item = (Id, &Virtual)> {
        self.order.oldest_first().map(|n| (Id(n), self.get(Id(n))))
    }

    pub fn heap_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Option<Virtual>>()
            + self.free.capacity() * size_of::<u32>()
            + self.order.heap_bytes()
            + self.replaceable.heap_bytes()
            + self.with_slot.heap_bytes()
            + self.held.heap_bytes()
            + self.of_block.capacity() * (size_of::<(u32, Id)>() + 1)
    }

    /// Recounts list, map and classes.
    pub fn check(
        &self,
        is_reference: impl Fn(&Virtual) -> bool,
        is_resident: impl Fn(DataBlock) -> bool,
    ) -> Result<(), String> {
        self.order.check()?;
        for members in [&self.replaceable, &self.with_slot, &self.held] {
            members.check(|number| self.order.stamp_of(number))?;
        }
        for (Id(number), found) in self.newest_first() {
            let may_go = !is_reference(found);
            let is_held = matches!(found.content, Content::Held(..));
            let holds = (!may_go || self.replaceable.holds(number))
                && self.with_slot.holds(number) == found.data.is_some_and(&is_resident)
                && (!may_go || !is_held || self.held.holds(number))
                && (is_held || !self.held.holds(number));
            if !holds {
                return Err(format!(
                    "replacements look for a virtual block in the wrong place: {found:?}"
                ));
            }
        }
        let mut addressed = 0;
        for (id, found) in self.newest_first() {
            if let Some(block) = found.block {
                addressed += 1;
                if self.find(block) != Some(id) {
                    return Err(format!("the virtual block of block {block} is not found"));
                }
            }
        }
        if self.order.len() != self.len() || addressed != self.of_block.len() {
            return Err(format!(
                "the LRU list has {} virtual blocks, {addressed} with an address; there are {}, {} with an address",
                self.order.len(),
                self.len(),
                self.of_block.len()
            ));
        }
        if self.len() > self.budget {
            return Err(format!(
                "there are {} virtual blocks, {} may be",
                self.len(),
                self.budget
            ));
        }
        Ok(())
    }
}
