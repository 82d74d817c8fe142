//! The logical pages that refer to an object: where it moves, each of their map entries changes.
//!
//! Invariant: a logical page is in the list of the object it refers to, and in no other.

/// No logical page, or no object.
const NONE: u32 = u32::MAX;

/// Lists of logical pages by object.
#[derive(Debug, Clone)]
pub struct Referrers {
    /// The first logical page of an object.
    first: Vec<u32>,
    /// The object of a logical page, and its neighbours in the list.
    pages: Vec<Link>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    object: u32,
    next: u32,
    before: u32,
}

impl Referrers {
    /// Nobody refers to anything.
    pub fn new(exported: u32) -> Self {
        let unlinked = Link {
            object: NONE,
            next: NONE,
            before: NONE,
        };
        Referrers {
            first: Vec::new(),
            pages: vec![unlinked; exported as usize],
        }
    }

    /// A logical page refers to an object, or to none, and not to the one before.
    pub fn set(&mut self, lpn: u32, object: Option<u32>) {
        let Link {
            object: old,
            next,
            before,
        } = self.pages[lpn as usize];
        if old != NONE {
            match self.pages.get_mut(before as usize) {
                Some(link) => link.next = next,
                None => self.first[old as usize] = next,
            }
            if let Some(link) = self.pages.get_mut(next as usize) {
                link.before = before;
            }
        }
        let object = object.unwrap_or(NONE);
        let mut next = NONE;
        if object != NONE {
            if object as usize >= self.first.len() {
                self.first.resize(object as usize + 1, NONE);
            }
            next = std::mem::replace(&mut self.first[object as usize], lpn);
            if let Some(link) = self.pages.get_mut(next as usize) {
                link.before = lpn;
            }
        }
        self.pages[lpn as usize] = Link {
            object,
            next,
            before: NONE,
        };
    }

    /// The logical pages of an object.
    pub fn of(&self, object: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |lpn: u32| Some(lpn).filter(|&lpn| lpn != NONE);
        let first = self.first.get(object as usize).copied().and_then(some);
        std::iter::successors(first, move |&lpn| some(self.pages[lpn as usize].next))
    }

    /// The object of a logical page.
    pub fn object_of(&self, lpn: u32) -> Option<u32> {
        Some(self.pages[lpn as usize].object).filter(|&o| o != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_follow_their_pages() {
        let mut found = Referrers::new(6);
        let sorted = |found: &Referrers, object| {
            let mut pages: Vec<u32> = found.of(object).collect();
            pages.sort_unstable();
            pages
        };
        for (lpn, object) in [(0, 4), (1, 4), (2, 4), (3, 1), (1, 1), (5, 4)] {
            found.set(lpn, Some(object));
        }
        assert_eq!(sorted(&found, 4), [0, 2, 5]);
        assert_eq!(sorted(&found, 1), [1, 3]);
        for lpn in [2, 5, 0] {
            found.set(lpn, None);
        }
        assert_eq!(sorted(&found, 4), []);
        assert_eq!(sorted(&found, 9), []);
        assert_eq!((found.object_of(1), found.object_of(2)), (Some(1), None));
    }
}
