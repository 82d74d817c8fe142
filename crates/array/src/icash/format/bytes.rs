//! Little-endian numbers, and the checksum that every structure has.
//!
//! A checksum covers where the structure belongs, too: one that was written to the wrong place does not hold.

use crc32fast::Hasher;

pub fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|n| bytes[at + n]))
}

pub fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|n| bytes[at + n]))
}

pub fn put(bytes: &mut [u8], at: usize, number: &[u8]) {
    bytes[at..at + number.len()].copy_from_slice(number);
}

/// The CRC-32 of a position and of bytes.
pub fn checksum(position: u64, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&position.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Writes magic and checksum (of what follows them) into the first 8 bytes.
pub fn seal(bytes: &mut [u8], magic: &[u8; 4], position: u64) {
    put(bytes, 0, magic);
    let sum = checksum(position, &bytes[8..]);
    put(bytes, 4, &sum.to_le_bytes());
}

/// Whether magic and checksum hold.
pub fn is_sealed(bytes: &[u8], magic: &[u8; 4], position: u64) -> bool {
    bytes.len() >= 8 && bytes[..4] == *magic && get_u32(bytes, 4) == checksum(position, &bytes[8..])
}
