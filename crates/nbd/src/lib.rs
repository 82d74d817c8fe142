//! The NBD protocol, sans-I/O: bytes in, bytes and events out. No socket, thread or clock is known
//! to anything but `server`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`wire`] | the numbers of the protocol |
//! | [`error`] | error numbers of replies, and why a connection ends |
//! | [`export`] | what an export says of itself, and where exports are looked up |
//! | [`Limits`] | what a client may make the server hold |
//! | [`handshake`] | the server's side of the negotiation |
//! | [`transmission`] | the server's side of requests and replies |
//! | `server` | the listener (feature `server`, on by default) |
//!
//! Invariants of all of them:
//! - The events do not depend on how the bytes are cut.
//! - What a state machine holds is bounded by its limits, whatever a length field says: memory grows
//!   with the bytes that have come, never with those that are announced.
//! - No input makes anything panic. After an error a state machine takes nothing more.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

mod bytes;
pub mod error;
pub mod export;
pub mod handshake;
mod limits;
#[cfg(feature = "server")]
pub mod server;
pub mod transmission;
pub mod wire;

pub use error::{Errno, ProtocolError};
pub use export::{BlockSizes, Directory, ExportInfo, Refusal};
pub use limits::Limits;
