//! The NAND device.
