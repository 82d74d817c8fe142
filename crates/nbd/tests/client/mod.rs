//! The client's side of the protocol, which only tests need. Shared by them and the fuzz target.
//!
//! | file | what it holds |
//! |---|---|
//! | `error.rs` | why a client ends a connection |
//! | `handshake.rs` | the negotiation of an export, or the list of exports |
//! | `requests.rs` | requests as bytes |
//! | `replies.rs` | replies out of the stream, checked against what was asked |
#![allow(dead_code, unused_imports)]

// The server's own reader of fields.
#[path = "../../src/bytes.rs"]
mod bytes;
mod error;
mod handshake;
mod replies;
mod requests;

pub use handshake::{ClientEvent, ClientHandshake, ClientSession, Goal};
pub use replies::{MAX_IN_FLIGHT, Reply, ReplyReader};
pub use requests::Call;
