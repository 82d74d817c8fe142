//! The server's side of transmission: requests out of a stream of bytes, replies into buffers.
//!
//! Reading and replying share nothing but the cookie in a [`Request`], so replies may be given in any
//! order and by any thread.
//!
//! | file | what it holds |
//! |---|---|
//! | `request.rs` | a request, and which requests an export accepts |
//! | `reader.rs` | requests and payloads out of the stream |
//! | `reply.rs` | simple and structured replies |
//! | `status.rs` | the extents of a BLOCK_STATUS reply |

mod reader;
mod reply;
mod request;
mod status;

pub use reader::{ReceivedRequest, RequestEvent, RequestReader};
pub use reply::{Piece, ReadHeader, Replies};
pub use request::{Command, Refused, Request, Rules};
pub use status::Extents;
