//! Exclusive or with the base, then LZ4's block format; without a base, LZ4 alone.
//!
//! Bytes that did not change become zeros, which LZ4 makes short. Bytes that moved become noise.

use lz4_flex::block::CompressTable;

use crate::decode::DecodeError;
use crate::{PAGE_BYTES, Page};

/// Room that LZ4 asks for.
const ROOM: usize = lz4_flex::block::get_maximum_output_size(PAGE_BYTES);

/// What compression needs besides the pages.
pub(crate) struct Scratch {
    delta: Box<Page>,
    compressed: Box<[u8; ROOM]>,
    table: CompressTable,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            delta: Box::new([0; PAGE_BYTES]),
            compressed: Box::new([0; ROOM]),
            table: CompressTable::small(),
        }
    }

    /// The body, however long.
    pub fn encode(&mut self, base: Option<&Page>, page: &Page) -> &[u8] {
        let input = match base {
            None => page,
            Some(base) => {
                self.delta.copy_from_slice(page);
                exclusive_or(&mut self.delta, base);
                &self.delta
            }
        };
        let into = &mut self.compressed[..];
        let bytes = lz4_flex::block::compress_into_with_table(input, into, &mut self.table)
            .expect("room for the largest output");
        &self.compressed[..bytes]
    }
}

pub(crate) fn decode(body: &[u8], base: Option<&Page>, page: &mut Page) -> Result<(), DecodeError> {
    let filled = lz4_flex::block::decompress_into(body, page).map_err(DecodeError::Lz4)?;
    if filled < PAGE_BYTES {
        return Err(DecodeError::Ends { filled });
    }
    if let Some(base) = base {
        exclusive_or(page, base);
    }
    Ok(())
}

fn exclusive_or(page: &mut Page, base: &Page) {
    for (byte, base) in page.iter_mut().zip(base) {
        *byte ^= base;
    }
}
