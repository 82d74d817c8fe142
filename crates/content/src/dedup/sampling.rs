//! Sampling: which page of several is hashed to tell whether the others are worth it (CAFTL, FAST
//! 2011).
//!
//! The page is chosen by content and not by position: when the same pages are written again, at
//! another offset or as part of another request, the same one is chosen and found.

use crate::page::PageTag;

/// The position of the page whose first bytes are the largest number; of equal ones the first.
/// `None` of no pages.
pub fn sample_of(pages: &[u32]) -> Option<usize> {
    let bytes = |&(_, &value): &(usize, &u32)| PageTag(value).first_bytes();
    let last_first = pages.iter().enumerate().rev();
    last_first.max_by_key(bytes).map(|(position, _)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_pages_have_the_same_sample_wherever_they_stand() {
        let mut pages: Vec<u32> = (100..132).collect();
        let chosen = pages[sample_of(&pages).unwrap()];
        for _ in 0..32 {
            pages.rotate_left(1);
            assert_eq!(pages[sample_of(&pages).unwrap()], chosen);
        }
        // Among other pages it is chosen still, unless one of those is larger.
        let larger = |&value: &u32| PageTag(value).first_bytes() > PageTag(chosen).first_bytes();
        pages.extend((200..300).filter(|value| !larger(value)));
        assert_eq!(pages[sample_of(&pages).unwrap()], chosen);
        pages.extend((200..300).find(larger));
        assert_eq!(sample_of(&pages), Some(pages.len() - 1));
    }

    #[test]
    fn the_first_of_equal_pages_is_the_sample() {
        assert_eq!(sample_of(&[7, 7, 7]), Some(0));
        assert_eq!(sample_of(&[]), None);
    }

    #[test]
    fn every_position_is_chosen_about_as_often() {
        let mut chosen = [0; 8];
        for first in 0..8000 {
            let pages: Vec<u32> = (first * 8..first * 8 + 8).collect();
            chosen[sample_of(&pages).unwrap()] += 1;
        }
        assert!(
            chosen.iter().all(|count| (900..1100).contains(count)),
            "{chosen:?}"
        );
    }
}
