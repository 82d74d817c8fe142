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

/// Whose a unit is: an [`Owned`] in 32 bits. It is kept for each unit, and written beside its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(u32);

/// What a unit holds, and the number of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// The value of an object, or of a logical page where there are no objects.
    Value(u32),
    /// A packed page of encoded values.
    Pack(u32),
    /// A table with entries of the history.
    Table(u32),
    /// A translation page.
    MapPage(u32),
}

impl Owner {
    /// Packed pages begin here, tables and translation pages behind them. A device that has any of these has fewer
    /// values.
    const FIRST_PACK: u32 = 1 << 31;
    const FIRST_TABLE: u32 = Owner::FIRST_PACK + Owner::PACKS;
    const FIRST_MAP_PAGE: u32 = Owner::FIRST_TABLE + Owner::TABLES;
    /// Values, where there is anything else.
    pub const VALUES: u32 = Owner::FIRST_PACK;
    /// Packed pages at most.
    pub const PACKS: u32 = 1 << 30;
    /// Tables at most.
    pub const TABLES: u32 = 1 << 29;

    /// An object, or a logical page where there are no objects.
    #[inline(always)]
    pub fn value(number: u32) -> Self {
        Owner(number)
    }

    /// A packed page.
    #[inline(always)]
    pub fn pack(number: u32) -> Self {
        debug_assert!(number < Owner::PACKS);
        Owner(Owner::FIRST_PACK + number)
    }

    /// A table of the history.
    pub fn table(number: u32) -> Self {
        debug_assert!(number < Owner::TABLES);
        Owner(Owner::FIRST_TABLE + number)
    }

    /// A translation page.
    pub fn map_page(number: u32) -> Self {
        Owner(Owner::FIRST_MAP_PAGE + number)
    }

    /// The number of an object, or of a logical page, on a device whose units hold nothing else.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0
    }

    /// What it is, on a device whose units hold values and something else.
    #[inline(always)]
    pub fn owned(self) -> Owned {
        match self.0 {
            0..Owner::FIRST_PACK => Owned::Value(self.0),
            Owner::FIRST_PACK..Owner::FIRST_TABLE => Owned::Pack(self.0 - Owner::FIRST_PACK),
            Owner::FIRST_TABLE..Owner::FIRST_MAP_PAGE => Owned::Table(self.0 - Owner::FIRST_TABLE),
            Owner::FIRST_MAP_PAGE.. => Owned::MapPage(self.0 - Owner::FIRST_MAP_PAGE),
        }
    }
}
