//! Simulated time: a device that holds nothing and says how long everything takes.
//!
//! * [`timing`] — the durations of a part and how its buses are built
//! * [`nand`] — the device: one server a die (or plane), and the shared channels between them
//!
//! **A resource is reserved when an operation is ready for it, in order of readiness** (ties: order
//! of submission). Booking a later stage ahead would lose the gaps before it.

pub mod nand;
pub mod timing;

pub use nand::{Busy, NandSim, Worked};
pub use timing::{Concurrency, Timing, TimingError};
