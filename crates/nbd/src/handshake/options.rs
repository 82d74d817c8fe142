//! The data of each option, read. Nothing is believed: lengths have to add up exactly, texts have to
//! be UTF-8 without NUL and no longer than the protocol allows.

use crate::bytes::Fields;
use crate::wire::{MAX_STRING, info};

/// Why data cannot be used; each is a type of error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    Invalid(&'static str),
    /// A text or a list is too long.
    TooBig(&'static str),
}

/// A text of the protocol.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Bad> {
    if bytes.len() > MAX_STRING {
        return Err(Bad::TooBig("a text is longer than 4096 bytes"));
    }
    let text = str::from_utf8(bytes).map_err(|_| Bad::Invalid("a text is not UTF-8"))?;
    if text.contains('\0') {
        return Err(Bad::Invalid("a text contains NUL"));
    }
    Ok(text)
}

/// INFO and GO.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InfoRequest<'a> {
    pub(super) name: &'a str,
    pub(super) wants_name: bool,
    pub(super) wants_description: bool,
    pub(super) wants_block_size: bool,
}

impl<'a> InfoRequest<'a> {
    pub(super) fn read(data: &'a [u8]) -> Result<Self, Bad> {
        const SHORT: Bad = Bad::Invalid("the data end within a field");
        let mut fields = Fields(data);
        let name = text(fields.string().ok_or(SHORT)?)?;
        let count = fields.u16().ok_or(SHORT)?;
        let mut request = Self {
            name,
            wants_name: false,
            wants_description: false,
            wants_block_size: false,
        };
        for _ in 0..count {
            match fields.u16().ok_or(SHORT)? {
                info::NAME => request.wants_name = true,
                info::DESCRIPTION => request.wants_description = true,
                info::BLOCK_SIZE => request.wants_block_size = true,
                // What is not known is not answered.
                _ => {}
            }
        }
        if fields.is_empty() {
            Ok(request)
        } else {
            Err(Bad::Invalid("bytes are left behind the last field"))
        }
    }
}

/// LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MetaRequest<'a> {
    pub(super) name: &'a str,
    pub(super) queries: Vec<&'a str>,
}

/// Queries of one option.
const MAX_QUERIES: u32 = 256;

impl<'a> MetaRequest<'a> {
    pub(super) fn read(data: &'a [u8]) -> Result<Self, Bad> {
        const SHORT: Bad = Bad::Invalid("the data end within a field");
        let mut fields = Fields(data);
        let name = text(fields.string().ok_or(SHORT)?)?;
        let count = fields.u32().ok_or(SHORT)?;
        if count > MAX_QUERIES {
            return Err(Bad::TooBig("more than 256 queries"));
        }
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(text(fields.string().ok_or(SHORT)?)?);
        }
        if fields.is_empty() {
            Ok(Self { name, queries })
        } else {
            Err(Bad::Invalid("bytes are left behind the last field"))
        }
    }
}
