//! How a device is built, and the arithmetic between its addresses.
//!
//! Numbering: planes are numbered channel by channel, package by package, die by die, plane by
//! plane; blocks plane by plane; pages block by block; units page by page. So the block of a unit
//! is a division, and its plane, die and channel are further divisions.
//!
//! Invariant: every unit address fits in 32 bits with `u32::MAX` left over for "none".

use crate::address::{BlockId, DieId, PageId, PageInBlock, PlaneId, Ppn};

/// Bytes of a mapping unit: what one logical page number stands for.
pub const UNIT_BYTES: u32 = 4096;

/// A device cannot be built as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// A count that must be positive is zero.
    #[error("geometry: {field} is 0, expected at least {least}")]
    TooSmall {
        /// The field's name.
        field: &'static str,
        /// The smallest value allowed.
        least: u32,
    },
    /// The page size is not a whole number of units or out of range.
    #[error("geometry: page_size is {found} bytes, expected a multiple of 4096 from 4096 to 65536")]
    PageSize {
        /// What was asked for, in bytes.
        found: u32,
    },
    /// The device has more units than 32-bit addresses can name.
    #[error("geometry: {units} mapping units of 4 KiB, at most {} can be addressed", u32::MAX - 1)]
    TooLarge {
        /// How many units the device would have.
        units: u64,
    },
    /// A block has more units than its record can count.
    #[error(
        "geometry: {units} mapping units in a block, at most {} are supported",
        u16::MAX
    )]
    BlockTooLarge {
        /// How many units a block would have.
        units: u64,
    },
}

/// The parts of a device and how many there are of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    channels: u32,
    dies_per_channel: u32,
    dies_per_package: u32,
    planes_per_die: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    units_per_page: u32,
    units_per_block: Divisor,
    units_per_plane: Divisor,
    units_per_die: Divisor,
}

/// What [`Geometry::new`] takes: counts per level, and the page size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Channels of the device.
    pub channels: u32,
    /// Packages on one channel.
    pub packages_per_channel: u32,
    /// Dies in one package.
    pub dies_per_package: u32,
    /// Planes in one die.
    pub planes_per_die: u32,
    /// Erase blocks in one plane.
    pub blocks_per_plane: u32,
    /// Flash pages in one block.
    pub pages_per_block: u32,
    /// Bytes of a flash page without its out-of-band area: a multiple of 4096 up to 65536.
    pub page_bytes: u32,
}

impl Geometry {
    /// Checks the counts and derives the rest.
    ///
    /// # Errors
    /// A count of zero, a page size that is no whole number of units, or more units than 32-bit
    /// addresses can name.
    pub fn new(counts: Counts) -> Result<Self, GeometryError> {
        for (field, found, least) in [
            ("channels", counts.channels, 1),
            ("packages_per_channel", counts.packages_per_channel, 1),
            ("dies_per_package", counts.dies_per_package, 1),
            ("planes_per_die", counts.planes_per_die, 1),
            ("blocks_per_plane", counts.blocks_per_plane, 1),
            ("pages_per_block", counts.pages_per_block, 2),
        ] {
            if found < least {
                return Err(GeometryError::TooSmall { field, least });
            }
        }
        let page = counts.page_bytes;
        if page == 0 || !page.is_multiple_of(UNIT_BYTES) || page > 65536 {
            return Err(GeometryError::PageSize { found: page });
        }
        let units_per_page = page / UNIT_BYTES;
        let units_per_block = u64::from(counts.pages_per_block) * u64::from(units_per_page);
        if units_per_block > u64::from(u16::MAX) {
            return Err(GeometryError::BlockTooLarge {
                units: units_per_block,
            });
        }
        let units = [
            counts.channels,
            counts.packages_per_channel,
            counts.dies_per_package,
            counts.planes_per_die,
            counts.blocks_per_plane,
        ]
        .iter()
        .fold(u128::from(units_per_block), |n, &f| n * u128::from(f));
        if units > u128::from(u32::MAX - 1) {
            return Err(GeometryError::TooLarge {
                units: u64::try_from(units).unwrap_or(u64::MAX),
            });
        }
        let units_per_block = units_per_block as u32;
        let units_per_plane = units_per_block * counts.blocks_per_plane;
        Ok(Geometry {
            channels: counts.channels,
            dies_per_channel: counts.packages_per_channel * counts.dies_per_package,
            dies_per_package: counts.dies_per_package,
            planes_per_die: counts.planes_per_die,
            blocks_per_plane: counts.blocks_per_plane,
            pages_per_block: counts.pages_per_block,
            units_per_page,
            units_per_block: Divisor::new(units_per_block),
            units_per_plane: Divisor::new(units_per_plane),
            units_per_die: Divisor::new(units_per_plane * counts.planes_per_die),
        })
    }

    /// A device of one die with one plane: for tests and for byte volumes.
    ///
    /// # Errors
    /// As [`Geometry::new`].
    pub fn single_plane(
        blocks: u32,
        pages_per_block: u32,
        page_bytes: u32,
    ) -> Result<Self, GeometryError> {
        Geometry::new(Counts {
            channels: 1,
            packages_per_channel: 1,
            dies_per_package: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block,
            page_bytes,
        })
    }

    /// Channels of the device.
    pub fn channels(&self) -> u32 {
        self.channels
    }
    /// Dies on one channel, over all its packages.
    pub fn dies_per_channel(&self) -> u32 {
        self.dies_per_channel
    }
    /// Packages on one channel.
    pub fn packages_per_channel(&self) -> u32 {
        self.dies_per_channel / self.dies_per_package
    }
    /// Dies in one package.
    pub fn dies_per_package(&self) -> u32 {
        self.dies_per_package
    }
    /// Dies of the device.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }
    /// Planes in one die.
    pub fn planes_per_die(&self) -> u32 {
        self.planes_per_die
    }
    /// Planes of the device.
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }
    /// Blocks in one plane.
    pub fn blocks_per_plane(&self) -> u32 {
        self.blocks_per_plane
    }
    /// Blocks of the device.
    pub fn blocks(&self) -> u32 {
        self.planes() * self.blocks_per_plane
    }
    /// Flash pages in one block.
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }
    /// Mapping units in one flash page.
    #[inline(always)]
    pub fn units_per_page(&self) -> u32 {
        self.units_per_page
    }
    /// Mapping units in one block.
    #[inline(always)]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block.value
    }
    /// Mapping units of the device.
    pub fn units(&self) -> u32 {
        self.blocks() * self.units_per_block.value
    }

    /// The block a unit lies in.
    #[inline(always)]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.units_per_block.divide(ppn.0))
    }
    /// The flash page a unit lies in.
    #[inline(always)]
    pub fn page_of(&self, ppn: Ppn) -> PageId {
        PageId(ppn.0 / self.units_per_page)
    }
    /// The plane a unit lies in.
    #[inline(always)]
    pub fn plane_of_unit(&self, ppn: Ppn) -> PlaneId {
        PlaneId(self.units_per_plane.divide(ppn.0))
    }
    /// The die a unit lies in.
    #[inline(always)]
    pub fn die_of_unit(&self, ppn: Ppn) -> DieId {
        DieId(self.units_per_die.divide(ppn.0))
    }
    /// The plane a block lies in.
    pub fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(block.0 / self.blocks_per_plane)
    }
    /// The die a plane lies in.
    pub fn die_of(&self, plane: PlaneId) -> DieId {
        DieId(plane.0 / self.planes_per_die)
    }
    /// The first unit of a block.
    #[inline(always)]
    pub fn first_unit(&self, block: BlockId) -> Ppn {
        Ppn(block.0 * self.units_per_block.value)
    }
    /// The first flash page of a block.
    pub fn first_page(&self, block: BlockId) -> PageId {
        PageId(block.0 * self.pages_per_block)
    }
    /// The block a flash page lies in.
    pub fn block_of_page(&self, page: PageId) -> BlockId {
        BlockId(page.0 / self.pages_per_block)
    }
    /// Which page of its block a flash page is.
    pub fn page_in_block(&self, page: PageId) -> PageInBlock {
        PageInBlock(page.0 % self.pages_per_block)
    }
    /// The first unit of a flash page.
    pub fn first_unit_of_page(&self, page: PageId) -> Ppn {
        Ppn(page.0 * self.units_per_page)
    }
}

/// Division by a number fixed at start-up, as one multiplication.
///
/// For a 32-bit dividend and `magic = ceil(2^64 / d)` the quotient is the high word of the product
/// (D. Lemire, O. Kaser, N. Kurz, "Faster remainder by direct computation", 2019).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Divisor {
    value: u32,
    magic: u64,
}

impl Divisor {
    fn new(value: u32) -> Self {
        debug_assert!(value >= 2, "ceil(2^64 / 1) does not fit in 64 bits");
        Divisor {
            value,
            magic: u64::MAX / u64::from(value) + 1,
        }
    }

    #[inline(always)]
    fn divide(self, n: u32) -> u32 {
        ((u128::from(self.magic) * u128::from(n)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        Counts {
            channels: 2,
            packages_per_channel: 3,
            dies_per_package: 2,
            planes_per_die: 4,
            blocks_per_plane: 7,
            pages_per_block: 5,
            page_bytes: 16384,
        }
    }

    #[test]
    fn every_unit_is_in_the_page_block_plane_die_and_channel_that_counting_gives() {
        let g = Geometry::new(counts()).unwrap();
        assert_eq!(g.units(), 2 * 3 * 2 * 4 * 7 * 5 * 4);
        let mut n = 0;
        for channel in 0..2 {
            for die in 0..6 {
                for plane in 0..4 {
                    for block in 0..7 {
                        for page in 0..5 {
                            for _slot in 0..4 {
                                let ppn = Ppn(n);
                                let die_id = channel * 6 + die;
                                let plane_id = die_id * 4 + plane;
                                let block_id = plane_id * 7 + block;
                                assert_eq!(g.die_of_unit(ppn), DieId(die_id));
                                assert_eq!(g.plane_of_unit(ppn), PlaneId(plane_id));
                                assert_eq!(g.block_of(ppn), BlockId(block_id));
                                assert_eq!(g.plane_of(BlockId(block_id)), PlaneId(plane_id));
                                let page_id = PageId(block_id * 5 + page);
                                assert_eq!(g.page_of(ppn), page_id);
                                assert_eq!(g.page_in_block(page_id), PageInBlock(page));
                                n += 1;
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn division_by_multiplication_is_exact() {
        for d in [2, 3, 5, 7, 63, 64, 1000, 3072, 65535, u32::MAX] {
            let divisor = Divisor::new(d);
            for n in [
                0,
                1,
                d - 1,
                d,
                d.saturating_add(1),
                u32::MAX / 2,
                u32::MAX - 1,
                u32::MAX,
            ] {
                assert_eq!(divisor.divide(n), n / d, "{n} / {d}");
            }
        }
    }

    #[test]
    fn impossible_devices_are_refused_by_name() {
        let zero = Counts {
            channels: 0,
            ..counts()
        };
        assert_eq!(
            Geometry::new(zero),
            Err(GeometryError::TooSmall {
                field: "channels",
                least: 1
            })
        );
        let odd = Counts {
            page_bytes: 5000,
            ..counts()
        };
        assert_eq!(
            Geometry::new(odd),
            Err(GeometryError::PageSize { found: 5000 })
        );
        let huge = Counts {
            channels: u32::MAX,
            blocks_per_plane: u32::MAX,
            ..counts()
        };
        assert!(matches!(
            Geometry::new(huge),
            Err(GeometryError::TooLarge { .. })
        ));
        let block = Counts {
            pages_per_block: 40000,
            ..counts()
        };
        assert!(matches!(
            Geometry::new(block),
            Err(GeometryError::BlockTooLarge { .. })
        ));
    }
}
