//! Definition 12: writes to pages that hold an earlier write.

use super::access::{Access, AccessOp, PageAccess};
use super::numbers::Share;

/// How far back the overwritten write lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwrite {
    /// In page writes: 1 for the very next page write.
    pub page_writes: u64,
    /// In time, in nanoseconds.
    pub time_ns: u64,
}

/// What happens to pages, in order.
enum PageEvent<'a> {
    Write(PageAccess),
    Trim(&'a Access),
}

fn events(accesses: &[Access]) -> Vec<PageEvent<'_>> {
    let mut events = Vec::new();
    for access in accesses {
        match access.op {
            AccessOp::Write => events.extend(access.pages().into_iter().map(PageEvent::Write)),
            AccessOp::Trim => events.push(PageEvent::Trim(access)),
            AccessOp::Read | AccessOp::Flush => {}
        }
    }
    events
}

/// Definition 12: the overwrites in order, with a value or without.
pub fn overwrites(accesses: &[Access]) -> Vec<Overwrite> {
    let events = events(accesses);
    let mut overwrites = Vec::new();
    for (i, event) in events.iter().enumerate() {
        if let PageEvent::Write(write) = event {
            overwrites.extend(overwritten(&events[..i], *write));
        }
    }
    overwrites
}

/// Looks back from a write to the one it overwrites, or to the trim that came between.
fn overwritten(before: &[PageEvent<'_>], write: PageAccess) -> Option<Overwrite> {
    let mut page_writes = 0;
    for event in before.iter().rev() {
        match event {
            PageEvent::Trim(trim) if trim.covers(write.page) => return None,
            PageEvent::Trim(_) => {}
            PageEvent::Write(earlier) => {
                page_writes += 1;
                if earlier.page == write.page {
                    let time_ns = write.time_ns - earlier.time_ns;
                    return Some(Overwrite {
                        page_writes,
                        time_ns,
                    });
                }
            }
        }
    }
    None
}

/// Definition 12: overwrites in all page writes.
pub fn overwrite_share(accesses: &[Access]) -> Share {
    let writes = accesses
        .iter()
        .filter(|access| access.op == AccessOp::Write);
    Share {
        part: overwrites(accesses).len() as u64,
        whole: writes.map(|access| u64::from(access.units)).sum(),
    }
}
