//! Numbers of files, and their attributes.
//!
//! The number of an instant *is* the instant, shifted by [`FIRST_INSTANT`]: nothing has to be remembered between a
//! lookup and what follows, and one number always means the same bytes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};

const AT: u64 = 2;
/// The number of the first disk; the others follow.
const LIVE: u64 = 16;
/// The number of instant 0: behind all disks there can be.
const FIRST_INSTANT: u64 = LIVE + 256;
/// Bytes of the blocks that a file's `blocks` counts.
const SECTOR: u64 = 512;
/// What is read and written best at once, and the unit of holes.
pub(crate) const PAGE: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Root,
    /// The directory of instants.
    At,
    /// A disk that can be written: the live volume, or a machine of an array.
    Live(u8),
    /// An instant, in nanoseconds since 1970.
    Instant(u64),
}

impl Node {
    pub fn of(number: INodeNo) -> Option<Node> {
        match number.0 {
            1 => Some(Node::Root),
            AT => Some(Node::At),
            LIVE..FIRST_INSTANT => Some(Node::Live((number.0 - LIVE) as u8)),
            number => number.checked_sub(FIRST_INSTANT).map(Node::Instant),
        }
    }

    /// Its number; none for an instant at the end of time.
    pub fn number(self) -> Option<INodeNo> {
        match self {
            Node::Root => Some(INodeNo::ROOT),
            Node::At => Some(INodeNo(AT)),
            Node::Live(disk) => Some(INodeNo(LIVE + u64::from(disk))),
            Node::Instant(instant) => instant.checked_add(FIRST_INSTANT).map(INodeNo),
        }
    }

    pub fn kind(self) -> FileType {
        match self {
            Node::Root | Node::At => FileType::Directory,
            Node::Live(_) | Node::Instant(_) => FileType::RegularFile,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// Bytes of the disk.
    pub size: u64,
    /// Pages it occupies.
    pub stored: u64,
    /// When it was last written through this mount, in nanoseconds since 1970.
    pub written: u64,
    pub read_only: bool,
    pub uid: u32,
    pub gid: u32,
}

/// The blocks that a file says it occupies, from the pages it does. Some tools look for holes only in files that
/// occupy less than their size, and some take a file that occupies nothing for empty: it is between the two.
fn blocks(size: u64, pages: u64) -> u64 {
    let a_page = u64::from(PAGE) / SECTOR;
    let all = size / SECTOR;
    (pages * a_page).clamp(a_page, all.saturating_sub(a_page).max(a_page))
}

pub(crate) fn attributes(node: Node, facts: &Facts) -> Option<FileAttr> {
    let (size, blocks, perm, at) = match node {
        Node::Root | Node::At => (0, 0, 0o500, facts.written),
        Node::Live(_) => {
            let perm = if facts.read_only { 0o400 } else { 0o600 };
            (
                facts.size,
                blocks(facts.size, facts.stored),
                perm,
                facts.written,
            )
        }
        // What an instant occupies is not known without a look at each of its pages.
        Node::Instant(instant) => (
            facts.size,
            blocks(facts.size, u64::MAX >> 8),
            0o400,
            instant,
        ),
    };
    let time: SystemTime = UNIX_EPOCH + Duration::from_nanos(at);
    Some(FileAttr {
        ino: node.number()?,
        size,
        blocks,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: node.kind(),
        perm,
        nlink: if size == 0 { 2 } else { 1 },
        uid: facts.uid,
        gid: facts.gid,
        rdev: 0,
        blksize: PAGE,
        flags: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_one_node() {
        let nodes = [
            Node::Root,
            Node::At,
            Node::Live(0),
            Node::Live(255),
            Node::Instant(0),
            Node::Instant(1_767_268_800_000_000_000),
            Node::Instant(u64::MAX - FIRST_INSTANT),
        ];
        for node in nodes {
            assert_eq!(Node::of(node.number().unwrap()), Some(node));
        }
        assert_eq!(Node::Instant(u64::MAX).number(), None);
        assert_eq!(Node::of(INodeNo(7)), None);
    }

    #[test]
    fn a_file_never_occupies_nothing_nor_everything() {
        assert_eq!(blocks(1 << 20, 0), 8);
        assert_eq!(blocks(1 << 20, 5), 40);
        assert_eq!(blocks(1 << 20, 1 << 40), 2040);
        assert_eq!(blocks(4096, 1), 8);
    }
}
