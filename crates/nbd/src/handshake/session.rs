//! What a negotiation ends with.

use crate::export::ExportInfo;
use crate::limits::Limits;

/// A metadata context that the client chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The number by which replies name it.
    pub id: u32,
    pub name: String,
}

/// An export chosen by a client, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session<E> {
    /// What the directory gave.
    pub export: E,
    /// The name as the client said it.
    pub name: String,
    pub info: ExportInfo,
    /// Replies to reads and errors are structured.
    pub structured: bool,
    /// The contexts that BLOCK_STATUS answers, in the order of their choice. Empty: the request is
    /// refused.
    pub contexts: Vec<Context>,
}

/// The longest read or write of an export under `limits`, in bytes, as the client is told.
pub(crate) fn longest_payload(info: &ExportInfo, limits: &Limits) -> u32 {
    let preferred = info.block_sizes.preferred.max(1);
    let most = info.block_sizes.maximum.min(limits.payload_bytes);
    (most / preferred * preferred).max(preferred)
}
