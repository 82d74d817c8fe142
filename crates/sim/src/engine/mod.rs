//! The simulation itself: what a run does between its configuration and its results.
//!
//! | module | what it is |
//! |---|---|
//! | `array` | runs of an array of an SSD and disks |
//! | [`build`] | from a configuration to a device of the core |
//! | [`devices`] | which device a configuration asks for |
//! | [`system`] | what the host model asks of a device, and which devices answer |
//! | [`precondition`] | the state in which a run finds the device |
//! | [`driver`] | the host model: requests in time order, their units, their responses |
//! | [`buffering`] | a write buffer or a sorting queue before the translation layer |
//! | [`lengths`] | how long encoded values are |
//! | [`read_cache`] | pages that were read, kept for later reads |
//! | [`order`] | the order of changes to one page |
//! | [`barrier`] | reads that wait for all changes before them |
//! | [`requests`] | requests in flight |
//! | [`recovery`] | whether old versions are what the host had written |
//! | [`measure`] | what is recorded while requests are served |
//! | [`run`] | one run from start to result |
//! | [`report`] | the figures of a run |
//! | [`ssd`] | a device that somebody else submits requests to |
//! | [`trap`] | the system that keeps old versions as parities |
//! | [`error`] | what can go wrong |

mod array;
pub mod barrier;
pub mod buffering;
pub mod build;
pub mod devices;
pub mod driver;
pub mod error;
pub mod lengths;
pub mod measure;
pub mod order;
pub mod precondition;
pub mod read_cache;
pub mod recovery;
pub mod report;
pub mod requests;
pub mod run;
pub mod ssd;
pub mod system;
pub mod trap;

pub use driver::Response;
pub use error::RunError;
pub use measure::{MeasureOptions, Measured};
pub use run::{RunOptions, Ticker, check, simulate};
pub use ssd::{Ssd, SsdError, SsdRequest};
