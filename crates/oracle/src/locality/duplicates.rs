//! Definition 11, second part: where a duplicate was written last.

use super::access::{Access, AccessOp, PageAccess, page_accesses};

/// Page writes of values written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Duplicates {
    /// The last write of the value went to this page.
    pub same_address: u64,
    /// It went to another page.
    pub other_address: u64,
}

/// Definition 11: duplicates by the page of the last write of their value. What became of that
/// page since does not matter.
pub fn duplicates(accesses: &[Access]) -> Duplicates {
    let writes: Vec<PageAccess> = page_accesses(accesses)
        .into_iter()
        .filter(|access| access.op == AccessOp::Write && access.value.is_some())
        .collect();
    let mut duplicates = Duplicates::default();
    for (i, write) in writes.iter().enumerate() {
        let mut earlier = writes[..i].iter().rev();
        match earlier.find(|earlier| earlier.value == write.value) {
            Some(last) if last.page == write.page => duplicates.same_address += 1,
            Some(_) => duplicates.other_address += 1,
            None => {}
        }
    }
    duplicates
}
