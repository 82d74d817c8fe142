//! The client's side of the protocol, for imports, benchmarks and tests.
//!
//! | file | what it holds |
//! |---|---|
//! | `handshake.rs` | the negotiation of an export, or the list of exports |
//! | `requests.rs` | requests as bytes |
//! | `replies.rs` | replies out of the stream, checked against what was asked |

mod handshake;
mod replies;
mod requests;

pub use handshake::{ClientEvent, ClientHandshake, ClientSession, Goal, Listed, Received};
pub use replies::{MAX_IN_FLIGHT, Reply, ReplyReader, Taken};
pub use requests::Call;
