//! The header of an encoded page: how it is encoded, and how long it is.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | kind: 1 LZ4 of the exclusive or with the base, 2 copies with the base, 3 LZ4 of the page, 4 copies without a base |
//! | 1–2 | bytes of the body, little endian |
//! | 3– | the body |

use serde::{Deserialize, Serialize};

use crate::decode::DecodeError;

pub const HEADER_BYTES: usize = 3;

/// How pages are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// LZ4, of the exclusive or with the base if there is one: what DeltaFTL does, with LZ4 for LZF.
    Lz4,
    /// Copies from the base and from the page itself.
    #[default]
    Copy,
}

impl Codec {
    pub const ALL: [Codec; 2] = [Codec::Lz4, Codec::Copy];
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// How the page is encoded.
    pub codec: Codec,
    /// Whether it is a delta, which only its base decodes.
    pub has_base: bool,
    pub body_bytes: u16,
}

impl Form {
    /// Reads the header that `bytes` begin with; more than the encoded page may follow.
    ///
    /// # Errors
    /// When the bytes end within the header, or no kind has this number.
    pub fn read(bytes: &[u8]) -> Result<Form, DecodeError> {
        let Some(&[kind, low, high]) = bytes.first_chunk() else {
            return Err(DecodeError::NoHeader { found: bytes.len() });
        };
        let (codec, has_base) = match kind {
            1 => (Codec::Lz4, true),
            2 => (Codec::Copy, true),
            3 => (Codec::Lz4, false),
            4 => (Codec::Copy, false),
            _ => return Err(DecodeError::Kind { found: kind }),
        };
        Ok(Form {
            codec,
            has_base,
            body_bytes: u16::from_le_bytes([low, high]),
        })
    }

    /// Bytes of header and body.
    pub fn encoded_bytes(&self) -> usize {
        HEADER_BYTES + usize::from(self.body_bytes)
    }

    /// The header's bytes.
    pub(crate) fn header(&self) -> [u8; HEADER_BYTES] {
        let kind = match (self.codec, self.has_base) {
            (Codec::Lz4, true) => 1,
            (Codec::Copy, true) => 2,
            (Codec::Lz4, false) => 3,
            (Codec::Copy, false) => 4,
        };
        let [low, high] = self.body_bytes.to_le_bytes();
        [kind, low, high]
    }
}
