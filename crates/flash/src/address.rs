//! Addresses and time: a newtype for every index, so that none is taken for another.
//!
//! All addresses are dense numbers over the whole device. A physical address counts *mapping
//! units* (4 KiB); a flash page holds one or several of them and is programmed at once.

/// Simulated time in nanoseconds since the start of a run.
pub type Time = u64;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The address as an index into a table.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// A physical unit: one 4 KiB mapping unit of one flash page (block, page, slot).
    Ppn
);
index!(
    /// A flash page over the whole device.
    PageId
);
index!(
    /// An erase block over the whole device.
    BlockId
);
index!(
    /// A plane over the whole device.
    PlaneId
);
index!(
    /// A die over the whole device.
    DieId
);
index!(
    /// A channel.
    ChannelId
);
index!(
    /// What the caller calls an operation; it comes back with the completion.
    Tag
);

impl Tag {
    /// Nobody waits for the operation.
    pub const NONE: Tag = Tag(u32::MAX);
}

impl Ppn {
    /// No physical unit: what an unmapped address points to.
    pub const NONE: Ppn = Ppn(u32::MAX);

    /// Whether this names a unit.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.0 != u32::MAX
    }
}
