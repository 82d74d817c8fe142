//! Addresses and time: a newtype for every index, so that none is taken for another.
//!
//! All addresses are dense numbers over the whole device. A physical address counts *mapping
//! units* (4 KiB); a flash page holds one or several of them and is programmed at once.

use std::ops::{Add, Range};

/// Simulated time in nanoseconds since the start of a run.
pub type Time = u64;

/// Types for indexes of 32 bits, each of which counts one kind of thing. Crates define those of their own things with it.
#[macro_export]
macro_rules! index {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The address as an index into a table.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<$name> for u64 {
            #[inline(always)]
            fn from(index: $name) -> u64 {
                index.0.into()
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
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
    /// A flash page within its block, from 0.
    PageInBlock
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
    /// A pool: planes that share their free blocks.
    PoolId
);
index!(
    /// A group: planes among which pages are spread in turn.
    GroupId
);
index!(
    /// A logical page: what the host addresses, 4 KiB each.
    Lpn
);
index!(
    /// An object: one stored value, which any number of logical pages may share.
    ObjectId
);
index!(
    /// A packed page: one that holds encoded values.
    PackId
);
index!(
    /// A translation page, or a page of its journal.
    MapPageId
);
index!(
    /// A table of the history.
    TableId
);
index!(
    /// What the caller calls an operation; it comes back with the completion.
    Tag
);

impl Tag {
    /// Nobody waits for the operation.
    pub const NONE: Tag = Tag(u32::MAX);
}

impl Lpn {
    /// No logical page.
    pub const NONE: Lpn = Lpn(u32::MAX);

    /// The pages of a range, in order.
    pub fn each(
        pages: Range<Lpn>,
    ) -> impl DoubleEndedIterator<Item = Lpn> + ExactSizeIterator + Clone {
        (pages.start.0..pages.end.0).map(Lpn)
    }
}

impl ObjectId {
    /// A logical page as its own object, where there are no others.
    #[inline(always)]
    pub fn of_page(lpn: Lpn) -> Self {
        ObjectId(lpn.0)
    }

    /// The logical page that is its own object.
    #[inline(always)]
    pub fn as_page(self) -> Lpn {
        Lpn(self.0)
    }

    /// No object: what a logical page without content refers to.
    pub const NONE: ObjectId = ObjectId(u32::MAX);

    /// Whether this names an object.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self != ObjectId::NONE
    }
}

impl Add<u32> for Lpn {
    type Output = Lpn;

    /// The page so many behind this one.
    #[inline(always)]
    fn add(self, pages: u32) -> Lpn {
        Lpn(self.0 + pages)
    }
}

impl BlockId {
    /// No block.
    pub const NONE: BlockId = BlockId(u32::MAX);

    /// Whether this names a block.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self != BlockId::NONE
    }
}

impl PackId {
    /// No packed page.
    pub const NONE: PackId = PackId(u32::MAX);
}

/// Which encoded value of a packed page, in the order in which they lie there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackSlot(pub u16);

impl PackSlot {
    /// As an index into the slots of a packed page.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Add<u32> for Ppn {
    type Output = Ppn;

    /// The unit so many behind this one.
    #[inline(always)]
    fn add(self, units: u32) -> Ppn {
        Ppn(self.0 + units)
    }
}

impl Ppn {
    /// No physical unit: what an unmapped address points to.
    pub const NONE: Ppn = Ppn(u32::MAX);

    /// The units of a range, in order.
    #[inline(always)]
    pub fn each(
        units: Range<Ppn>,
    ) -> impl DoubleEndedIterator<Item = Ppn> + ExactSizeIterator + Clone {
        (units.start.0..units.end.0).map(Ppn)
    }

    /// Whether this names a unit.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.0 != u32::MAX
    }
}

/// Whose a unit is: an [`Owned`] in 32 bits. It is kept for each unit, and written beside its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub(crate) u32);

/// What a unit holds, and the number of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// The value of an object; where there are no objects, a logical page is its own object.
    Value(ObjectId),
    /// A packed page of encoded values.
    Pack(PackId),
    /// A table with entries of the history.
    Table(TableId),
    /// A translation page.
    MapPage(MapPageId),
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
    /// Translation pages at most.
    pub const MAP_PAGES: u32 = 1 << 29;

    /// An object. Where units hold anything else there are at most [`Owner::VALUES`], which only the device knows.
    #[inline(always)]
    pub fn object(object: ObjectId) -> Self {
        debug_assert!(object.is_some());
        Owner(object.0)
    }

    /// A logical page, where there are no objects.
    #[inline(always)]
    pub fn page(lpn: Lpn) -> Self {
        debug_assert!(lpn != Lpn::NONE);
        Owner(lpn.0)
    }

    /// A packed page.
    #[inline(always)]
    pub fn pack(pack: PackId) -> Self {
        debug_assert!(pack.0 < Owner::PACKS);
        Owner(Owner::FIRST_PACK + pack.0)
    }

    /// A table of the history.
    pub fn table(table: TableId) -> Self {
        debug_assert!(table.0 < Owner::TABLES);
        Owner(Owner::FIRST_TABLE + table.0)
    }

    /// A translation page.
    pub fn map_page(page: MapPageId) -> Self {
        debug_assert!(page.0 < Owner::MAP_PAGES);
        Owner(Owner::FIRST_MAP_PAGE + page.0)
    }

    /// Its 32 bits.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The owner of these.
    pub fn numbered(number: u32) -> Self {
        Owner(number)
    }

    /// The object, on a device whose units hold nothing but objects.
    #[inline(always)]
    pub fn as_object(self) -> ObjectId {
        ObjectId(self.0)
    }

    /// The logical page, on a device without objects.
    #[inline(always)]
    pub fn as_page(self) -> Lpn {
        Lpn(self.0)
    }

    /// What it is, on a device whose units hold values and something else.
    #[inline(always)]
    pub fn owned(self) -> Owned {
        match self.0 {
            0..Owner::FIRST_PACK => Owned::Value(ObjectId(self.0)),
            Owner::FIRST_PACK..Owner::FIRST_TABLE => {
                Owned::Pack(PackId(self.0 - Owner::FIRST_PACK))
            }
            Owner::FIRST_TABLE..Owner::FIRST_MAP_PAGE => {
                Owned::Table(TableId(self.0 - Owner::FIRST_TABLE))
            }
            Owner::FIRST_MAP_PAGE.. => Owned::MapPage(MapPageId(self.0 - Owner::FIRST_MAP_PAGE)),
        }
    }
}
