//! A volume or an array in its directory, and everything a user may ask of it, served or not.
//!
//! | module | what it is |
//! |---|---|
//! | [`home`] | the directory of a volume: its files, opening it |
//! | `memory` | what a volume needs, against what the machine has |
//! | [`mod@clock`] | the time of a volume |
//! | `names` | names that volumes of an older format have in a file |
//! | [`moment`] | texts that name instants |
//! | [`past`] | the past of a volume: looking at it, going back, snapshots, purges |
//! | [`served`] | what is served, whatever is behind it |
//! | [`service`] | an open volume and what is done with it |
//! | [`mod@array`] | an array: its description, its machines as devices, and what is done with it |
//! | [`request`] | what can be asked of a service, and its answers, as data |
//! | [`control`] | the control socket: requests to a served volume |
//! | [`clients`] | who uses a volume, counted |
//! | [`exports`] | the volume and its instants as exports over NBD |
//! | [`recording`] | what clients do, written down as a trace |
//! | [`troubles`] | what fails while it is open |
//! | [`load`] | a load on a device, to see how fast it is |
//! | [`metrics`] | metrics and health over HTTP |
//! | [`error`] | what can go wrong |
//!
//! A command does the same whether the volume is served or not: it sends its request through the control socket if
//! somebody answers there, and else opens the volume and carries the request out itself ([`control::ask`]).

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod array;
pub mod clients;
pub mod clock;
pub mod control;
pub mod error;
pub mod exports;
pub mod home;
pub mod load;
mod memory;
pub mod metrics;
pub mod moment;
mod names;
pub mod past;
pub mod recording;
pub mod request;
pub mod served;
pub mod service;
pub mod troubles;

pub use error::ServeError;
pub use home::Home;
pub use memory::Budget;
pub use request::{Answer, Request};
pub use served::{Live, Served};
pub use service::Service;
