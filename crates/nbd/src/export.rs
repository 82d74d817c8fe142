//! What an export says of itself, and where the negotiation looks exports up.
//!
//! Names mean nothing here: `vol@snap` is as opaque as `vol`.

use thiserror::Error;

use crate::wire::export_flags as flags;
use crate::wire::{MAX_STRING, base_allocation};

/// The block sizes of an export, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths of requests are multiples of it: a power of two, at most 64 KiB.
    pub minimum: u32,
    /// What is served fastest: a power of two of at least 512, not below `minimum`.
    pub preferred: u32,
    /// The longest read or write: a multiple of `preferred`, or all bits set. The limit of the
    /// transmission, if that is lower, is told to the client instead.
    pub maximum: u32,
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self {
            minimum: 1,
            preferred: 4096,
            maximum: 32 << 20,
        }
    }
}

/// What an export says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Bytes of the export, a multiple of the minimum block size, at most `i64::MAX`.
    pub size: u64,
    /// Nothing may be written, zeroed or trimmed.
    pub read_only: bool,
    /// FLUSH makes durable what was acknowledged; FUA is known with it.
    pub flush: bool,
    pub trim: bool,
    pub write_zeroes: bool,
    /// WRITE_ZEROES may be asked to fail instead of being slow.
    pub fast_zero: bool,
    pub cache: bool,
    /// A flush on one connection covers what was acknowledged on all.
    pub multi_conn: bool,
    pub block_sizes: BlockSizes,
    /// A sentence for people, empty for none.
    pub description: String,
    /// The name by which the server knows the export, if that is another than the one asked for.
    pub canonical_name: Option<String>,
    /// The metadata contexts that are listed, `base:allocation` among them if it is known.
    pub contexts: Vec<String>,
}

impl ExportInfo {
    /// A writable export that knows everything, with the context `base:allocation`.
    pub fn writable(size: u64) -> Self {
        Self {
            size,
            read_only: false,
            flush: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            cache: true,
            multi_conn: true,
            block_sizes: BlockSizes::default(),
            description: String::new(),
            canonical_name: None,
            contexts: vec![base_allocation::NAME.to_owned()],
        }
    }

    pub fn read_only(size: u64) -> Self {
        Self {
            read_only: true,
            trim: false,
            write_zeroes: false,
            fast_zero: false,
            ..Self::writable(size)
        }
    }

    /// The transmission flags. DF belongs to structured replies alone.
    pub fn flags(&self, structured: bool) -> u16 {
        let writable = !self.read_only;
        [
            (true, flags::HAS_FLAGS),
            (self.read_only, flags::READ_ONLY),
            (self.flush, flags::SEND_FLUSH | flags::SEND_FUA),
            (self.trim && writable, flags::SEND_TRIM),
            (self.write_zeroes && writable, flags::SEND_WRITE_ZEROES),
            (
                self.fast_zero && self.write_zeroes && writable,
                flags::SEND_FAST_ZERO,
            ),
            (structured, flags::SEND_DF),
            (self.multi_conn, flags::CAN_MULTI_CONN),
            (self.cache, flags::SEND_CACHE),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .fold(0, |all, (_, flag)| all | flag)
    }

    pub fn check(&self) -> Result<(), InvalidExport> {
        let BlockSizes {
            minimum,
            preferred,
            maximum,
        } = self.block_sizes;
        if !minimum.is_power_of_two() || minimum > 1 << 16 {
            return Err(InvalidExport::Minimum(minimum));
        }
        if !preferred.is_power_of_two() || preferred < minimum.max(512) {
            return Err(InvalidExport::Preferred(preferred));
        }
        if maximum < preferred || (maximum != u32::MAX && !maximum.is_multiple_of(preferred)) {
            return Err(InvalidExport::Maximum(maximum));
        }
        if self.size > i64::MAX as u64 || !self.size.is_multiple_of(u64::from(minimum)) {
            return Err(InvalidExport::Size(self.size));
        }
        let strings = self.contexts.iter().chain(&self.canonical_name);
        match strings
            .chain([&self.description])
            .find(|text| text.len() > MAX_STRING || text.contains('\0'))
        {
            Some(text) => Err(InvalidExport::Text(text.len())),
            None => Ok(()),
        }
    }
}

/// A field of [`ExportInfo`] that contradicts the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidExport {
    #[error("minimum block size is {0}, expected a power of two up to 65536")]
    Minimum(u32),
    #[error("preferred block size is {0}, expected a power of two from 512 and from the minimum")]
    Preferred(u32),
    #[error("maximum block size is {0}, expected a multiple of the preferred one or 4294967295")]
    Maximum(u32),
    #[error("size is {0}, expected a multiple of the minimum block size up to 2^63 - 1")]
    Size(u64),
    /// A name, a description or a context.
    #[error("a text of {0} bytes, expected at most 4096 and no NUL")]
    Text(usize),
}

/// Why an export is not given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is none of that name. The sentence is shown to the client.
    Unknown(String),
    /// It may not be had (not now, not by this client). The sentence is shown to the client.
    Policy(String),
    /// The server is going away.
    Shutdown,
}

/// Where the negotiation finds exports. The embedding knows what a name means.
pub trait Directory {
    /// What transmission needs of an export; the negotiation passes it on and never looks inside.
    type Export;

    /// The export of a name and what it says of itself. Empty is the default export.
    fn open(&self, name: &str) -> Result<(ExportInfo, Self::Export), Refusal>;

    /// Names and descriptions, as LIST tells them. It need not be complete.
    fn list(&self) -> Vec<(String, String)>;

    /// Whether `export` answers a context that it does not list, such as one with a time in its name.
    fn knows_context(&self, export: &Self::Export, context: &str) -> bool {
        let _ = (export, context);
        false
    }
}
