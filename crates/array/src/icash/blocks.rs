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
use crate::index::{ArrayBlock, index};
use crate::lru::Lru;
use crate::put;

index!(
    /// Names a virtual block while it exists. Whatever may replace virtual blocks may end it.
    Id
);

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
    pub block: Option<ArrayBlock>,
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
    free: Vec<Id>,
    of_block: HashMap<ArrayBlock, Id>,
    order: Lru<Id>,
    budget: u32,
    replaceable: ByAge<Id>,
    with_slot: ByAge<Id>,
    held: ByAge<Id>,
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
            replaceable: ByAge::new(),
            with_slot: ByAge::new(),
            held: ByAge::new(),
        }
    }

    pub fn len(&self) -> u32 {
        (self.all.len() - self.free.len()) as u32
    }

    pub fn left(&self) -> u32 {
        self.budget - self.len()
    }

    pub fn find(&self, block: ArrayBlock) -> Option<Id> {
        self.of_block.get(&block).copied()
    }

    pub fn get(&self, id: Id) -> &Virtual {
        self.all[id.index()].as_ref().expect("it exists")
    }

    /// A virtual block that exists. Its block is changed by [`VirtualBlocks::detach`] alone, its data block by
    /// [`VirtualBlocks::set_slot`], its content by [`VirtualBlocks::set_content`].
    pub fn get_mut(&mut self, id: Id) -> &mut Virtual {
        self.all[id.index()].as_mut().expect("it exists")
    }

    /// A new one at the head, for a block that has none or for none. The budget must allow it.
    pub fn insert(&mut self, block: Option<ArrayBlock>) -> Id {
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
        let id = put(&mut self.all, &mut self.free, new);
        if let Some(block) = block {
            let former = self.of_block.insert(block, id);
            debug_assert!(former.is_none());
        }
        self.order.touch(id);
        self.replaceable.insert(id, self.order.stamp_of(id));
        id
    }

    /// Gives one a data block or takes it; answers the one it had. [`VirtualBlocks::set_resident`] says where it is.
    pub fn set_data(&mut self, id: Id, data: Option<DataBlock>) -> Option<DataBlock> {
        if data.is_none() {
            self.with_slot.remove(id);
        }
        std::mem::replace(&mut self.get_mut(id).data, data)
    }

    /// Notes whether the data block of one is on the fast medium.
    pub fn set_resident(&mut self, id: Id, is_resident: bool) {
        match is_resident {
            true => self.with_slot.insert(id, self.order.stamp_of(id)),
            false => self.with_slot.remove(id),
        }
    }

    /// Gives one other content; answers what it had.
    pub fn set_content(&mut self, id: Id, content: Content) -> Content {
        match content {
            Content::Held(..) => self.held.insert(id, self.order.stamp_of(id)),
            _ => self.held.remove(id),
        }
        std::mem::replace(&mut self.get_mut(id).content, content)
    }

    /// Notes that one is no reference any more.
    pub fn is_no_reference(&mut self, id: Id) {
        let stamp = self.order.stamp_of(id);
        self.replaceable.insert(id, stamp);
        if matches!(self.get(id).content, Content::Held(..)) {
            self.held.insert(id, stamp);
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
        let verdict = |id: Id| {
            let found = all[id.index()].as_ref().expect("it exists");
            if class != Class::WithSlot && is_reference(found) {
                Verdict::Drop
            } else if wanted(id, found) {
                Verdict::Take
            } else {
                Verdict::Pass
            }
        };
        members.oldest(most, |id| order.stamp_of(id), verdict)
    }

    pub fn remove(&mut self, id: Id) {
        self.order.remove(id);
        for members in [&mut self.replaceable, &mut self.with_slot, &mut self.held] {
            members.remove(id);
        }
        if let Some(block) = self.get(id).block {
            self.of_block.remove(&block);
        }
        self.all[id.index()] = None;
        self.free.push(id);
    }

    pub fn detach(&mut self, id: Id) {
        if let Some(block) = self.get_mut(id).block.take() {
            self.of_block.remove(&block);
        }
    }

    pub fn touch(&mut self, id: Id) {
        self.order.touch(id);
    }

    pub fn is_newer(&self, a: Id, b: Id) -> bool {
        self.order.is_newer(a, b)
    }

    /// From the one accessed last to the oldest.
    pub fn newest_first(&self) -> impl Iterator<Item = (Id, &Virtual)> {
        self.order.newest_first().map(|id| (id, self.get(id)))
    }

    /// From the oldest to the one accessed last.
    pub fn oldest_first(&self) -> impl Iterator<Item = (Id, &Virtual)> {
        self.order.oldest_first().map(|id| (id, self.get(id)))
    }

    pub fn heap_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Option<Virtual>>()
            + self.free.capacity() * size_of::<Id>()
            + self.order.heap_bytes()
            + self.replaceable.heap_bytes()
            + self.with_slot.heap_bytes()
            + self.held.heap_bytes()
            + self.of_block.capacity() * (size_of::<(ArrayBlock, Id)>() + 1)
    }

    /// Recounts list, map and classes.
    pub fn check(
        &self,
        is_reference: impl Fn(&Virtual) -> bool,
        is_resident: impl Fn(DataBlock) -> bool,
    ) -> Result<(), String> {
        self.order.check()?;
        for members in [&self.replaceable, &self.with_slot, &self.held] {
            members.check(|id| self.order.stamp_of(id))?;
        }
        for (id, found) in self.newest_first() {
            let may_go = !is_reference(found);
            let is_held = matches!(found.content, Content::Held(..));
            let holds = (!may_go || self.replaceable.holds(id))
                && self.with_slot.holds(id) == found.data.is_some_and(&is_resident)
                && (!may_go || !is_held || self.held.holds(id))
                && (is_held || !self.held.holds(id));
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
