//! Signatures: eight bytes that say of a block what the heatmap counts and a scan compares.
//!
//! A sub-signature is the sum, modulo 256, of four bytes of a sub-block. Two blocks with many sub-signatures in
//! common at the same positions may be alike; whether they are, only their delta tells.

use flashlore_delta::Page;

use crate::icash::parameters::{SAMPLED_OFFSETS, SUB_BLOCK_BYTES, SUB_BLOCKS};

/// The sub-signatures of a block, in the order of its sub-blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signature(pub [u8; SUB_BLOCKS]);

/// The sub-signature of a sub-block of at least 65 bytes.
pub fn sub_signature(sub_block: &[u8]) -> u8 {
    let sampled = SAMPLED_OFFSETS.iter().map(|&offset| sub_block[offset]);
    sampled.fold(0, u8::wrapping_add)
}

impl Signature {
    pub fn of(page: &Page) -> Self {
        let mut signature = [0; SUB_BLOCKS];
        for (of_sub_block, sub_block) in signature.iter_mut().zip(page.chunks(SUB_BLOCK_BYTES)) {
            *of_sub_block = sub_signature(sub_block);
        }
        Signature(signature)
    }

    /// Positions at which both have the same sub-signature.
    pub fn shared(&self, other: &Signature) -> u32 {
        let differing = u64::from_le_bytes(self.0) ^ u64::from_le_bytes(other.0);
        // The highest bit of each byte that is not zero.
        let low = 0x7f7f_7f7f_7f7f_7f7f;
        let set = (((differing & low) + low) | differing) & !low;
        SUB_BLOCKS as u32 - set.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn vector_c_the_sum_of_four_bytes_and_of_no_others() {
        let mut sub_block = [0xA5; SUB_BLOCK_BYTES];
        (sub_block[0], sub_block[16], sub_block[32], sub_block[64]) = (200, 100, 7, 1);
        assert_eq!(sub_signature(&sub_block), 52);
        for unseen in [5, 511] {
            let mut changed = sub_block;
            changed[unseen] ^= 0xFF;
            assert_eq!(sub_signature(&changed), 52, "offset {unseen}");
        }
        sub_block[32] += 1;
        assert_eq!(sub_signature(&sub_block), 53);
    }

    #[test]
    fn each_sub_block_has_its_own() {
        let mut page = [0; 4096];
        for (number, sub_block) in page.chunks_mut(SUB_BLOCK_BYTES).enumerate() {
            sub_block[16] = number as u8 + 1;
        }
        assert_eq!(Signature::of(&page), Signature([1, 2, 3, 4, 5, 6, 7, 8]));
    }

    proptest! {
        #[test]
        fn shared_counts_equal_positions(a: [u8; SUB_BLOCKS], mask: [bool; SUB_BLOCKS], b: [u8; SUB_BLOCKS]) {
            let mut other = a;
            for position in 0..SUB_BLOCKS {
                if mask[position] {
                    other[position] = b[position];
                }
            }
            let naive = (0..SUB_BLOCKS).filter(|&p| a[p] == other[p]).count();
            prop_assert_eq!(Signature(a).shared(&Signature(other)), naive as u32);
        }
    }
}
