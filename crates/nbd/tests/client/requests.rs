//! Requests as bytes.

use flashlore_nbd::transmission::Command;
use flashlore_nbd::wire::{REQUEST_BYTES, REQUEST_MAGIC, command};

/// A request of a client. The payload of a write is not in it: `length` bytes have to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The client's number for it, unlike any that is not answered yet.
    pub cookie: u64,
    /// What it asks for.
    pub command: Command,
    /// Flags of `wire::command_flags`.
    pub flags: u16,
    /// First byte; 0 for a flush.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub length: u32,
}

impl Call {
    /// The bytes of the request.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        encode(
            self.flags,
            self.command.code(),
            self.cookie,
            self.offset,
            self.length,
        )
    }

    /// The bytes with which a client takes its leave. Nothing may follow.
    #[must_use]
    pub fn disconnect() -> [u8; REQUEST_BYTES] {
        encode(0, command::DISC, 0, 0, 0)
    }
}

fn encode(flags: u16, code: u16, cookie: u64, offset: u64, length: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&code.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}
