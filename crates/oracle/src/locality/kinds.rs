//! Definition 11, first part: where the content of a write was before.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, AccessOp, Page, PageAccess};

/// What a page write with a value is, tested in this order: silent, new, elsewhere, reborn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// The page's content is this value already, known by a write or by a read.
    Silent,
    /// The value was never written before.
    New {
        /// A read returned it before.
        read_before: bool,
    },
    /// Another page's content is this value, known by a write.
    Elsewhere,
    /// The value was written before, and none of the above.
    Reborn,
}

/// Numbers of page writes by [`WriteKind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteKinds {
    pub silent: u64,
    /// Writes of values never written before.
    pub new: u64,
    /// Of these, the value was returned by a read before.
    pub new_read_before: u64,
    /// Writes of values that another page holds.
    pub elsewhere: u64,
    /// Writes of values that no page holds any more.
    pub reborn: u64,
}

/// What is known of a page. Pages never accessed and trimmed pages are not in the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// The value last written.
    Written(u32),
    /// Never written nor trimmed; the value that the last read with a value returned.
    Seen(u32),
    /// The last write had no value.
    Unknown,
}

#[derive(Default)]
struct LocalityState<'a> {
    contents: BTreeMap<Page, Content>,
    trims: Vec<&'a Access>,
    written: BTreeSet<u32>,
    read: BTreeSet<u32>,
}

impl LocalityState<'_> {
    fn kind(&self, page: Page, value: u32) -> WriteKind {
        let content = self.contents.get(&page);
        if content == Some(&Content::Written(value)) || content == Some(&Content::Seen(value)) {
            return WriteKind::Silent;
        }
        if !self.written.contains(&value) {
            let read_before = self.read.contains(&value);
            return WriteKind::New { read_before };
        }
        let mut contents = self.contents.values();
        if contents.any(|&content| content == Content::Written(value)) {
            return WriteKind::Elsewhere;
        }
        WriteKind::Reborn
    }

    fn write(&mut self, write: PageAccess) {
        let content = write.value.map_or(Content::Unknown, Content::Written);
        self.contents.insert(write.page, content);
        self.written.extend(write.value);
    }

    fn read(&mut self, read: PageAccess) {
        let Some(value) = read.value else { return };
        self.read.insert(value);
        let written = matches!(
            self.contents.get(&read.page),
            Some(Content::Written(_) | Content::Unknown)
        );
        let trimmed = self.trims.iter().any(|trim| trim.covers(read.page));
        if !written && !trimmed {
            self.contents.insert(read.page, Content::Seen(value));
        }
    }
}

/// Definition 11: the kind of each page write with a value, in order.
pub fn write_kinds(accesses: &[Access]) -> Vec<WriteKind> {
    let mut kinds = Vec::new();
    let mut state = LocalityState::default();
    for access in accesses {
        match access.op {
            AccessOp::Write => {
                for write in access.pages() {
                    kinds.extend(write.value.map(|value| state.kind(write.page, value)));
                    state.write(write);
                }
            }
            AccessOp::Read => {
                for read in access.pages() {
                    state.read(read);
                }
            }
            AccessOp::Trim => {
                state.contents.retain(|&page, _| !access.covers(page));
                state.trims.push(access);
            }
            AccessOp::Flush => {}
        }
    }
    kinds
}

/// Definition 11: how many page writes are of each kind. They add up to all those with a value.
pub fn count_write_kinds(accesses: &[Access]) -> WriteKinds {
    let mut counts = WriteKinds::default();
    for kind in write_kinds(accesses) {
        match kind {
            WriteKind::Silent => counts.silent += 1,
            WriteKind::New { read_before } => {
                counts.new += 1;
                counts.new_read_before += u64::from(read_before);
            }
            WriteKind::Elsewhere => counts.elsewhere += 1,
            WriteKind::Reborn => counts.reborn += 1,
        }
    }
    counts
}
