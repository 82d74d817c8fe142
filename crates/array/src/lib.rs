//! Arrays of storage: what stands behind an address besides one flash device.
//!
//! | module | what it is |
//! |---|---|
//! | [`hdd`] | hard disks in simulated time, and RAID-0 over them |

pub mod hdd;
