//! Why a client ends a connection.

use thiserror::Error;

/// Why a connection cannot go on. Each is final: the machine that gave it takes no more input.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("a {message} begins with {found:#x}, expected {expected:#x}")]
    Magic {
        /// What should have come.
        message: &'static str,
        found: u64,
        expected: u64,
    },
    /// The server does not speak the fixed newstyle.
    #[error("the server's flags are {0:#x}: it does not speak the fixed newstyle negotiation")]
    ServerFlags(u16),
    /// The server sent something a client cannot make sense of.
    #[error("the server's {message} cannot be used: {reason}")]
    Server {
        message: &'static str,
        reason: String,
    },
    /// The server answered an option with an error.
    #[error("the server refuses {option}: error {code:#x}{}{message}", if message.is_empty() { "" } else { ", " })]
    Refused {
        option: &'static str,
        /// The type of the reply.
        code: u32,
        /// What the server says, control characters removed.
        message: String,
    },
    /// Input after an error or an end.
    #[error("the connection has ended, nothing more is taken")]
    Ended,
}
