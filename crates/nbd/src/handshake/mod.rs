//! The server's side of the negotiation: from the greeting to the choice of an export.
//!
//! | file | what it holds |
//! |---|---|
//! | `machine.rs` | the state machine: framing, limits, what is allowed before TLS |
//! | `options.rs` | the data of each option, read |
//! | `answers.rs` | what each option is answered |
//! | `session.rs` | what a negotiation ends with |

mod answers;
mod machine;
mod options;
mod session;

pub use machine::{HandshakeEvent, Received, ServerHandshake, Tls};
pub(crate) use session::longest_payload;
pub use session::{Context, Session};
