//! The listener: sockets, threads and time-outs around the state machines.
//!
//! Threads and blocking calls, no executor: what an export does blocks anyway, and a request that
//! comes alone is answered by the thread that read it, without a change of threads.
//!
//! | file | what it holds |
//! |---|---|
//! | `export.rs` | `trait Export`: what a served disk can do |
//! | `config.rs` | addresses, limits, time-outs |
//! | `local.rs` | Unix sockets that are held by their directory and removed only by their owner |
//! | `socket.rs` | Unix and TCP sockets as one, and addresses that are listened on |
//! | `transport.rs` | bytes over a socket, plain or through TLS, with deadlines |
//! | `tls.rs` | certificates from files |
//! | `registry.rs` | which connections there are, and the bound on their memory |
//! | `connection.rs` | one connection: negotiation, then its workers |
//! | `input.rs` | the reading side of a connection in transmission |
//! | `jobs.rs` | carrying out requests |
//! | `long.rs` | long requests in pieces |
//! | `listener.rs` | accepting, draining |
//!
//! What a client cannot do:
//! - keep others out: a negotiation has a deadline, when too many negotiate the oldest is dropped, and some places are
//!   kept for clients of Unix sockets;
//! - block others: its requests run on its own threads, and nobody waits for memory that others hold;
//! - take memory: requests above [`SMALL_BYTES`] share a budget of which one client gets a part; one that finds no room
//!   in it is carried out in pieces of that size.

mod config;
mod connection;
mod export;
mod input;
mod jobs;
mod listener;
pub mod local;
mod long;
mod registry;
mod socket;
mod tls;
mod transport;

pub use config::{Config, ServerError};
pub use export::Export;
pub use jobs::is_zero;
pub use listener::Server;
pub use registry::SMALL_BYTES;
pub use socket::{Address, HeldDirectory};
pub use tls::{TlsError, TlsFiles, TlsPolicy};
