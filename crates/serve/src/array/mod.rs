//! An array in its directory: I-CASH on a fast and a slow medium as disks that are served.
//!
//! | module | what it is |
//! |---|---|
//! | [`description`] | the file `array.json`: where the media are, and how the array is opened |
//! | [`create`](mod@create) | a new array: its sizes, and its media |
//! | `parts` | the media of an array, opened and locked, and the element on them |
//! | [`adopt`] | an array around a disk image that is there |
//! | [`leave`] | the image is given back |
//! | [`grow`] | more or larger machines, in place |
//! | `store` | the array, or its slow medium alone, page by page |
//! | [`machines`] | the virtual machines as block devices for many threads |
//! | `background` | the thread that does what follows requests |
//! | [`rebuild`] | an array on new media, of another size or number of machines |
//! | [`replace`] | a fast medium that was lost, replaced by a new one |
//! | [`service`] | an open array and what can be asked of it |
//! | [`tune`] | what of an array can be changed while it is open |
//! | [`check`](mod@check) | whether an array holds that nobody has open |
//!
//! The element takes one request at a time, so one lock stands around it, for the time of a page or a flush.

pub mod adopt;
pub mod check;
pub mod create;
pub mod description;
pub mod grow;
pub mod leave;
pub mod machines;
pub mod rebuild;
pub mod replace;
pub mod service;
pub mod tune;

mod background;
mod parts;
mod store;

pub use create::{CreateArray, Made};
pub use description::Description;
pub use machines::Machines;
pub use service::ArrayService;
