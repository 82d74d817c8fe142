//! Encoded bytes to the page.

use crate::form::{Codec, Form, HEADER_BYTES};
use crate::{PAGE_BYTES, Page, copy, lz4};

/// Why bytes are not an encoded page. Positions count from the begin of the body.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within the header.
    #[error("an encoded page begins with {HEADER_BYTES} bytes of header, found {found} bytes")]
    NoHeader {
        /// How many bytes there are.
        found: usize,
    },
    /// A kind that does not exist.
    #[error("an encoded page begins with its kind, 1 to 4, found {found}")]
    Kind {
        /// The first byte.
        found: u8,
    },
    /// The header says another length.
    #[error("the header says {said} bytes of body, found {found}")]
    Length {
        /// Bytes of body after the header.
        said: usize,
        /// Bytes there are.
        found: usize,
    },
    /// A delta without its base.
    #[error("this is a delta, and no base was given")]
    NoBase,
    /// The body ends before the page is complete.
    #[error("the body ends when {filled} of {PAGE_BYTES} bytes of the page are known")]
    Ends {
        /// Bytes of the page known by then.
        filled: usize,
    },
    /// A length or distance of more than two bytes.
    #[error(
        "byte {at} of the body continues a number that already has two bytes, the most there are"
    )]
    Number {
        /// Where the second byte is.
        at: usize,
    },
    /// Literals or a copy go beyond the page.
    #[error("{length} bytes are to follow byte {filled} of the page, expected at most {left}")]
    Beyond {
        /// Bytes of the page known by then.
        filled: usize,
        /// Bytes that are to follow.
        length: usize,
        /// Bytes that the page lacks.
        left: usize,
    },
    /// A copy from before the base, or from before the page if there is no base; or from nowhere.
    #[error(
        "byte {filled} of the page is to be copied from {distance} bytes before, expected 1 to {reach}"
    )]
    Distance {
        /// Bytes of the page known by then.
        filled: usize,
        /// How far back the copy begins.
        distance: usize,
        /// How far back there is something.
        reach: usize,
    },
    /// Bytes after the page is complete.
    #[error("{left} bytes of the body are left over when the page is complete")]
    LeftOver { left: usize },
    /// A body that is not LZ4's.
    #[error("the body is not a block of LZ4")]
    Lz4(#[source] lz4_flex::block::DecompressError),
}

/// Decodes an encoded page, which must be all of `encoded`. `base` is ignored where the page is not
/// a delta. Whether it is one, [`Form::read`] tells.
///
/// # Errors
/// When the bytes are not an encoded page, or need a base and there is none; `page` may hold
/// anything then. Another base than the one of the encoding is not noticed: it gives another page or
/// an error.
pub fn decode(encoded: &[u8], base: Option<&Page>, page: &mut Page) -> Result<(), DecodeError> {
    let form = Form::read(encoded)?;
    let body = &encoded[HEADER_BYTES..];
    if body.len() != usize::from(form.body_bytes) {
        return Err(DecodeError::Length {
            said: form.body_bytes.into(),
            found: body.len(),
        });
    }
    let base = match (form.has_base, base) {
        (true, None) => return Err(DecodeError::NoBase),
        (true, base) => base,
        (false, _) => None,
    };
    match form.codec {
        Codec::Lz4 => lz4::decode(body, base, page),
        Codec::Copy => copy::decode(body, base, page),
    }
}
