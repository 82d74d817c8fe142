//! The content of a page as bytes: what a persistent volume asks of it.
//!
//! One keyed BLAKE3 hash a page serves as fingerprint and as checksum. The key belongs to the volume,
//! so nobody who does not hold it can prepare pages whose digests agree, and pages of another volume
//! never pass for pages of this one.
//!
//! Two instances of [`Content`]: [`DigestTag`] keeps 64 bits a stored page and relies on the caller
//! to compare bytes before a page is shared; [`Digest`] keeps 128 bits and is trusted.

use flashlore_flash::number_rows;

use crate::dedup::BoundedIndex;
use crate::page::Content;

/// Bytes of a mapping unit.
pub const PAGE_BYTES: usize = 4096;

/// The bytes of one mapping unit.
pub type PageBytes = [u8; PAGE_BYTES];

/// The key of a volume's digests and checksums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VolumeKey(pub [u8; 32]);

impl std::fmt::Debug for VolumeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VolumeKey(..)")
    }
}

impl VolumeKey {
    pub fn digest(&self, page: &PageBytes) -> Digest {
        let mut wide = [0; 16];
        wide.copy_from_slice(&blake3::keyed_hash(&self.0, page).as_bytes()[..16]);
        Digest(u128::from_le_bytes(wide))
    }

    /// The checksum of a record of metadata that lies at `position`: moved or mixed up records fail.
    pub fn checksum(&self, position: u64, parts: &[&[u8]]) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&position.to_le_bytes());
        for part in parts {
            hasher.update(part);
        }
        let mut short = [0; 8];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(short)
    }
}

/// A keyed digest of 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest(pub u128);

impl Digest {
    /// The part of it that is kept where bytes are compared anyway.
    pub fn tag(self) -> DigestTag {
        DigestTag(self.0 as u64)
    }
}

number_rows!(u128: Digest);

impl Content for Digest {
    type Index = BoundedIndex;

    #[inline]
    fn fingerprint(self, bits: u32) -> u64 {
        cut(self.0 as u64, bits)
    }

    /// Fingerprints of fewer bits are for the index alone: what is known is compared.
    #[inline]
    fn may_equal(self, sought: Self, _: u32) -> bool {
        self == sought
    }
}

/// 64 bits of a digest: says which page may be equal. Those above the lower half are zero where they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DigestTag(pub u64);

number_rows!(u64: DigestTag);

/// What is known of the whole.
impl From<DigestTag> for Digest {
    fn from(tag: DigestTag) -> Self {
        Digest(u128::from(tag.0))
    }
}

impl Content for DigestTag {
    type Index = BoundedIndex;

    #[inline]
    fn fingerprint(self, bits: u32) -> u64 {
        cut(self.0, bits)
    }

    /// Here, too: of the pages of a tebibyte one in sixteen has a fingerprint of 32 bits that another one has, and what may
    /// be equal is read. Of what is zero in the upper half the lower one is all that is known.
    #[inline]
    fn may_equal(self, sought: Self, _: u32) -> bool {
        self == sought || self.0 == u64::from(sought.0 as u32)
    }
}

fn cut(digest: u64, bits: u32) -> u64 {
    if bits >= 64 {
        digest
    } else {
        digest & ((1 << bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_depend_on_key_and_page_and_checksums_on_the_position() {
        let (a, b) = (VolumeKey([1; 32]), VolumeKey([2; 32]));
        let mut page = [7; PAGE_BYTES];
        let first = a.digest(&page);
        assert_ne!(first, b.digest(&page));
        page[4095] ^= 1;
        assert_ne!(first, a.digest(&page));
        assert_eq!(first.tag().0, first.fingerprint(64));
        assert_ne!(a.checksum(0, &[b"record"]), a.checksum(1, &[b"record"]));
        assert_eq!(
            a.checksum(1, &[b"rec", b"ord"]),
            a.checksum(1, &[b"record"])
        );
    }
}
