//! Definition 4: the pages that are touched.

use std::collections::BTreeMap;

use super::access::{Access, AccessOp, Page, page_accesses};

/// Definition 4, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Distinct pages read or written.
    pub pages: u64,
    /// Of these, read and never written.
    pub only_read: u64,
    /// Of these, written and never read.
    pub only_written: u64,
    /// Of these, both read and written.
    pub both: u64,
    /// Of all pages, those whose first access is a read.
    pub first_read: u64,
}

/// Definition 4: distinct pages, by what is done to them.
pub fn footprint(accesses: &[Access]) -> Footprint {
    let mut ops_of_page: BTreeMap<Page, Vec<AccessOp>> = BTreeMap::new();
    for access in page_accesses(accesses) {
        ops_of_page.entry(access.page).or_default().push(access.op);
    }
    let mut footprint = Footprint::default();
    for ops in ops_of_page.values() {
        footprint.pages += 1;
        match (
            ops.contains(&AccessOp::Read),
            ops.contains(&AccessOp::Write),
        ) {
            (true, true) => footprint.both += 1,
            (true, false) => footprint.only_read += 1,
            (false, _) => footprint.only_written += 1,
        }
        footprint.first_read += u64::from(ops[0] == AccessOp::Read);
    }
    footprint
}
