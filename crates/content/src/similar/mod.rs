//! Pages that resemble a page, wherever they are (I-CASH, HPCA 2011; here inside the SSD).
//!
//! * [`Sketch`] — what is compared: a few super-features of a page
//! * [`index`] — which stored object shares one of them
//!
//! Two pages that share a super-feature have long stretches in common, most likely. How a page is sketched
//! is its encoder's ([`crate::Encoder::sketch`]): nothing here looks at bytes.

pub mod index;

pub use index::SimilarIndex;

/// Super-features of a page.
pub const SUPER_FEATURES: usize = 4;

/// The super-features of a page: pages that share one are alike, and more so the more they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sketch(pub [u32; SUPER_FEATURES]);

impl Sketch {
    /// Super-features that both have.
    pub fn shared(&self, other: &Sketch) -> u32 {
        let pairs = self.0.iter().zip(&other.0);
        pairs.map(|(a, b)| u32::from(a == b)).sum()
    }
}
