//! The logical pages that refer to an object: where it moves, each of their map entries changes.
//!
//! Invariant: a logical page is in the list of the object it refers to, and in no other.

use flashlore_flash::{Lpn, ObjectId};

/// Lists of logical pages by object.
#[derive(Debug, Clone)]
pub struct Referrers {
    /// The first logical page of an object.
    first: Vec<Lpn>,
    /// The object of a logical page, and its neighbours in the list.
    pages: Vec<Link>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    object: ObjectId,
    next: Lpn,
    before: Lpn,
}

impl Referrers {
    /// Nobody refers to anything.
    pub fn new(exported: u32) -> Self {
        let unlinked = Link {
            object: ObjectId::NONE,
            next: Lpn::NONE,
            before: Lpn::NONE,
        };
        Referrers {
            first: Vec::new(),
            pages: vec![unlinked; exported as usize],
        }
    }

    /// A logical page refers to an object, or to none, and not to the one before.
    pub fn set(&mut self, lpn: Lpn, object: Option<ObjectId>) {
        let Link {
            object: old,
            next,
            before,
        } = self.pages[lpn.index()];
        if old.is_some() {
            match self.pages.get_mut(before.index()) {
                Some(link) => link.next = next,
                None => self.first[old.index()] = next,
            }
            if let Some(link) = self.pages.get_mut(next.index()) {
                link.before = before;
            }
        }
        let object = object.unwrap_or(ObjectId::NONE);
        let mut next = Lpn::NONE;
        if object.is_some() {
            if object.index() >= self.first.len() {
                self.first.resize(object.index() + 1, Lpn::NONE);
            }
            next = std::mem::replace(&mut self.first[object.index()], lpn);
            if let Some(link) = self.pages.get_mut(next.index()) {
                link.before = lpn;
            }
        }
        self.pages[lpn.index()] = Link {
            object,
            next,
            before: Lpn::NONE,
        };
    }

    /// The logical pages of an object.
    pub fn of(&self, object: ObjectId) -> impl Iterator<Item = Lpn> + '_ {
        let some = |lpn: Lpn| Some(lpn).filter(|&lpn| lpn != Lpn::NONE);
        let first = self.first.get(object.index()).copied().and_then(some);
        std::iter::successors(first, move |&lpn| some(self.pages[lpn.index()].next))
    }

    /// The object of a logical page.
    pub fn object_of(&self, lpn: Lpn) -> Option<ObjectId> {
        Some(self.pages[lpn.index()].object).filter(|o| o.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_follow_their_pages() {
        let mut found = Referrers::new(6);
        let sorted = |found: &Referrers, object| {
            let mut pages: Vec<Lpn> = found.of(object).collect();
            pages.sort_unstable();
            pages
        };
        for (lpn, object) in [(0, 4), (1, 4), (2, 4), (3, 1), (1, 1), (5, 4)] {
            found.set(Lpn(lpn), Some(ObjectId(object)));
        }
        assert_eq!(sorted(&found, ObjectId(4)), [0, 2, 5].map(Lpn));
        assert_eq!(sorted(&found, ObjectId(1)), [1, 3].map(Lpn));
        for lpn in [2, 5, 0] {
            found.set(Lpn(lpn), None);
        }
        assert_eq!(sorted(&found, ObjectId(4)), []);
        assert_eq!(sorted(&found, ObjectId(9)), []);
        assert_eq!(
            (found.object_of(Lpn(1)), found.object_of(Lpn(2))),
            (Some(ObjectId(1)), None)
        );
    }
}
