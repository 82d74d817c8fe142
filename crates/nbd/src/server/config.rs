//! How a server serves: limits and time-outs.

use std::time::Duration;

use thiserror::Error;

use super::tls::TlsPolicy;
use crate::limits::Limits;

#[derive(Clone, Debug)]
pub struct Config {
    /// What one client may make the server hold.
    pub limits: Limits,
    /// Connections that use an export at once.
    pub connections: usize,
    /// Connections of Unix sockets that may use an export beyond those.
    pub local_connections: usize,
    /// Connections that negotiate at once; beyond it the oldest of them is dropped.
    pub negotiating: usize,
    /// Requests of one connection carried out at once, at least 1.
    pub workers: usize,
    /// Bytes that all requests above [`super::SMALL_BYTES`] may hold together; beyond it they are carried out in
    /// pieces of that size.
    pub budget_bytes: usize,
    /// The part of it that one connection may hold.
    pub client_bytes: usize,
    /// How long a negotiation may take.
    pub negotiation: Duration,
    /// How long a message that has begun may take, plus one second for each MiB.
    pub message: Duration,
    /// How long a connection may be silent between requests; none: for ever.
    pub idle: Option<Duration>,
    pub tls: TlsPolicy,
    /// Allow addresses beyond the machine itself without TLS.
    pub insecure: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            connections: 128,
            local_connections: 8,
            negotiating: 64,
            workers: 4,
            budget_bytes: 256 << 20,
            client_bytes: 64 << 20,
            negotiation: Duration::from_secs(10),
            message: Duration::from_secs(30),
            idle: None,
            tls: TlsPolicy::Absent,
            insecure: false,
        }
    }
}

#[derive(Debug, Error)]
pub enum ServerError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: String,
        source: std::io::Error,
    },
    #[error(
        "{0} can be reached from other machines: demand TLS, or allow it explicitly as insecure"
    )]
    Exposed(String),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
