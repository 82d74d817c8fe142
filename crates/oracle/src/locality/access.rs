//! What the statistics are computed from: requests, and the page accesses they consist of.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessOp {
    Read,
    Write,
    Trim,
    /// Make everything acknowledged so far durable.
    Flush,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Nanoseconds since the trace began; must not decrease from one access to the next.
    pub time_ns: u64,
    pub op: AccessOp,
    pub device: u32,
    /// First byte within the device.
    pub offset: u64,
    pub length: u64,
    /// First unit touched, within the device.
    pub unit: u64,
    /// Number of units touched; 0 for a flush.
    pub units: u32,
    /// Value ids, one a unit, where known: what a write stores or what a read returns.
    pub values: Option<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page {
    pub device: u32,
    pub unit: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageAccess {
    /// Time of the request, in nanoseconds.
    pub time_ns: u64,
    pub op: AccessOp,
    pub page: Page,
    /// Its value id, where known.
    pub value: Option<u32>,
}

impl Access {
    /// Whether this request, a trim for instance, covers a page.
    pub(super) fn covers(&self, page: Page) -> bool {
        self.device == page.device
            && self.unit <= page.unit
            && page.unit < self.unit + u64::from(self.units)
    }

    /// The page accesses of this request: none for a trim or a flush.
    ///
    /// # Panics
    /// When there are value ids, but not one a unit.
    pub(super) fn pages(&self) -> Vec<PageAccess> {
        if self.op == AccessOp::Trim || self.op == AccessOp::Flush {
            return Vec::new();
        }
        if let Some(values) = &self.values {
            assert_eq!(values.len(), self.units as usize, "one value id a unit");
        }
        (0..self.units)
            .map(|i| PageAccess {
                time_ns: self.time_ns,
                op: self.op,
                page: Page {
                    device: self.device,
                    unit: self.unit + u64::from(i),
                },
                value: self.values.as_ref().map(|values| values[i as usize]),
            })
            .collect()
    }
}

/// All page accesses of a trace in order.
///
/// # Panics
/// When a read or a write has value ids, but not one a unit.
pub fn page_accesses(accesses: &[Access]) -> Vec<PageAccess> {
    accesses.iter().flat_map(Access::pages).collect()
}

/// The values of the page accesses of a kind that carry one, in order.
pub(super) fn values(accesses: &[Access], op: AccessOp) -> Vec<u32> {
    let pages = page_accesses(accesses).into_iter();
    let of_kind = pages.filter(|access| access.op == op);
    of_kind.filter_map(|access| access.value).collect()
}

/// The trace cut at every multiple of `slice_ns`: by number k, the accesses of [k T, (k + 1) T),
/// their times counted from k T. Slices without accesses are left out.
///
/// # Panics
/// When `slice_ns` is 0.
pub fn slices(accesses: &[Access], slice_ns: u64) -> BTreeMap<u64, Vec<Access>> {
    let mut slices: BTreeMap<u64, Vec<Access>> = BTreeMap::new();
    for access in accesses {
        let mut access = access.clone();
        let number = access.time_ns / slice_ns;
        access.time_ns -= number * slice_ns;
        slices.entry(number).or_default().push(access);
    }
    slices
}
