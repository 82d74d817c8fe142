//! The heads of the journal: which images of a batch belong to which blocks.
//!
//! With ordered write-back blocks go home in batches that are one state together. A batch is written to the journal
//! first; from its commit until the next batch begins it stands in for what it may have left half written at home.

use crate::icash::format::bytes::{get_u32, get_u64, is_sealed, put, seal};
use crate::icash::parameters::BLOCK_BYTES;
use crate::index::ArrayBlock;

const MAGIC: &[u8; 4] = b"FLAJ";
const TAKEN_AT: usize = 28;
const IMAGES_AT: usize = 32;
const IMAGE_BYTES: usize = 8;

/// Images that one block of heads names.
pub const IMAGES: usize = (BLOCK_BYTES - IMAGES_AT) / IMAGE_BYTES;

/// Blocks of heads of a journal of so many images.
pub fn heads_of(images: u32) -> u64 {
    (images as usize).div_ceil(IMAGES) as u64
}

/// An image of a batch: the block it is of and the CRC-32 of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeImage {
    pub block: ArrayBlock,
    pub crc: u32,
}

/// The bytes of the heads of a batch, whole blocks.
/// `taken` says when the batch was taken, in seconds since 1970; 0 if nobody knows.
pub fn encode(images: &[HomeImage], tag: u64, taken: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let names = names_of(images);
    let parts = images.len().div_ceil(IMAGES).max(1);
    for part in 0..parts {
        let part_images = &images[part * IMAGES..images.len().min((part + 1) * IMAGES)];
        let mut head = vec![0; BLOCK_BYTES];
        put(&mut head, 8, &tag.to_le_bytes());
        put(&mut head, 16, &names.to_le_bytes());
        put(&mut head, 24, &(images.len() as u32).to_le_bytes());
        put(&mut head, TAKEN_AT, &taken.to_le_bytes());
        for (index, image) in part_images.iter().enumerate() {
            let at = IMAGES_AT + IMAGE_BYTES * index;
            put(&mut head, at, &image.block.0.to_le_bytes());
            put(&mut head, at + 4, &image.crc.to_le_bytes());
        }
        seal(&mut head, MAGIC, part as u64);
        bytes.extend(head);
    }
    bytes
}

/// When the batch whose heads these bytes are was taken, in seconds since 1970, if somebody knew.
pub fn taken(bytes: &[u8]) -> Option<u32> {
    Some(get_u32(bytes, TAKEN_AT)).filter(|&taken| taken > 0)
}

/// A checksum of all images, which every head of a batch has.
fn names_of(images: &[HomeImage]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for image in images {
        hasher.update(&image.block.0.to_le_bytes());
        hasher.update(&image.crc.to_le_bytes());
    }
    hasher.finalize()
}

/// The images of a batch, if the bytes are heads that belong together.
pub fn parse(bytes: &[u8], tag: u64) -> Option<Vec<HomeImage>> {
    let first = bytes.get(..BLOCK_BYTES)?;
    let names = get_u32(first, 16);
    let count = get_u32(first, 24) as usize;
    let mut images = Vec::new();
    for part in 0..count.div_ceil(IMAGES).max(1) {
        let head = bytes.get(part * BLOCK_BYTES..(part + 1) * BLOCK_BYTES)?;
        let holds = is_sealed(head, MAGIC, part as u64)
            && get_u64(head, 8) == tag
            && get_u32(head, 16) == names
            && get_u32(head, 24) as usize == count;
        if !holds {
            return None;
        }
        let here = (count - part * IMAGES).min(IMAGES);
        images.extend((0..here).map(|index| HomeImage {
            block: ArrayBlock(get_u32(head, IMAGES_AT + IMAGE_BYTES * index)),
            crc: get_u32(head, IMAGES_AT + IMAGE_BYTES * index + 4),
        }));
    }
    (names_of(&images) == names).then_some(images)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_batch_comes_back(numbers in prop::collection::vec(any::<(u32, u32)>(), 0..1200), lost: prop::sample::Index) {
            let images: Vec<HomeImage> = { numbers.iter() }
                .map(|&(block, crc)| HomeImage { block: ArrayBlock(block), crc })
                .collect();
            let mut bytes = encode(&images, 7, 99);
            prop_assert_eq!(taken(&bytes), Some(99));
            prop_assert_eq!(bytes.len() as u64, heads_of(images.len() as u32).max(1) * BLOCK_BYTES as u64);
            prop_assert_eq!(parse(&bytes, 7), Some(images));
            prop_assert_eq!(parse(&bytes, 8), None);
            let at = lost.index(bytes.len());
            bytes[at] ^= 1;
            prop_assert_eq!(parse(&bytes, 7), None);
        }

        #[test]
        fn any_bytes_are_a_batch_or_none(bytes in prop::collection::vec(any::<u8>(), 0..2 * BLOCK_BYTES), count: u32) {
            let mut bytes = bytes;
            if bytes.len() >= BLOCK_BYTES {
                put(&mut bytes, 24, &count.to_le_bytes());
                seal(&mut bytes[..BLOCK_BYTES], MAGIC, 0);
            }
            let _ = parse(&bytes, 0);
        }
    }
}
