//! A page as its delta from another, or compressed by itself.
//!
//! | module | what it is |
//! |---|---|
//! | [`encoder`] | [`Encoder`]: pages in, encoded bytes out, no longer than a limit |
//! | [`form`] | [`Codec`], and the header that every encoded page begins with |
//! | [`mod@decode`] | encoded bytes, and perhaps a base, to the page; or an error |
//! | `lz4` | exclusive or with the base, then LZ4 |
//! | [`mod@sketch`] | numbers that pages which are alike have in common |
//! | `copy` | copies from the base and from the page itself: survives shifts |
//!
//! Invariants: what [`Encoder`] gives decodes to the same page against the same base; decoding takes
//! any bytes whatever, gives exactly [`PAGE_BYTES`] bytes or an error, and allocates nothing. The
//! format and the measurements behind the default are in `docs/delta.md`.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

mod copy;
pub mod decode;
pub mod encoder;
pub mod form;
mod lz4;
pub mod sketch;

pub use decode::{DecodeError, decode};
pub use encoder::Encoder;
pub use form::{Codec, Form, HEADER_BYTES};
pub use sketch::sketch;

pub const PAGE_BYTES: usize = 4096;

pub type Page = [u8; PAGE_BYTES];

/// The longest that an encoded page can be: the page and the header.
pub const MAX_BYTES: usize = PAGE_BYTES + HEADER_BYTES;
