//! The write buffer: pages of the host in RAM, each in its newest version.
//!
//! A write of a page that is held replaces it there. When no place is free, the victim is handed to the
//! translation layer: under FIFO the page that came first, under SLRU the tail of the probationary
//! segment. There a new page begins; a write of a held page brings it to the head of the protected
//! segment, whose tail goes back to the head of the probationary one when it is too long.
//!
//! Invariants ([`WriteBuffer::check`]): a held page is in one segment, a leaving one in none; a page is
//! held at most once; its newest version is found, be it held or leaving, unless it was trimmed since;
//! held, leaving and free places are all there are; the protected segment is not too long.

use flashlore_content::list::{List, Node};
use flashlore_flash::Lpn;
use rustc_hash::FxHashMap;

use super::BufferPlace;

/// Which page makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// The one that came first, however often it was written since.
    Fifo,
    /// The one of the probationary segment that was written least recently.
    Slru {
        /// The most pages of the protected segment.
        protected: u32,
    },
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It replaced the page where it was held.
    Replaced,
    /// It took a free place.
    Placed,
    /// No place is free; nothing changed.
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceState {
    Free,
    Probation,
    Protected,
    Leaving,
}

#[derive(Debug, Clone)]
struct Page<V> {
    lpn: Lpn,
    value: V,
    state: PlaceState,
}

/// The buffer; `V` is what is known of a page.
#[derive(Debug, Clone)]
pub struct WriteBuffer<V> {
    places: u32,
    policy: Replacement,
    /// By place; grows to `places` and no further.
    pages: Vec<Node<Page<V>>>,
    free: Vec<BufferPlace>,
    /// Where the newest version of a page is.
    newest: FxHashMap<Lpn, BufferPlace>,
    probation: List<BufferPlace>,
    protected: List<BufferPlace>,
    leaving: u32,
}

impl<V: Copy> WriteBuffer<V> {
    /// An empty buffer of so many pages.
    pub fn new(places: u32, policy: Replacement) -> Self {
        WriteBuffer {
            places,
            policy,
            pages: Vec::new(),
            free: Vec::new(),
            newest: FxHashMap::default(),
            probation: List::default(),
            protected: List::default(),
            leaving: 0,
        }
    }

    /// Pages held: those that do not leave.
    pub fn held(&self) -> u32 {
        self.probation.len() + self.protected.len()
    }

    /// Pages that leave.
    pub fn leaving(&self) -> u32 {
        self.leaving
    }

    /// Whether a place is free.
    pub fn has_room(&self) -> bool {
        self.held() + self.leaving < self.places
    }

    /// The newest version of a page, if it is here.
    pub fn get(&self, lpn: Lpn) -> Option<V> {
        let place = self.newest.get(&lpn)?;
        Some(self.pages[place.index()].item.value)
    }

    /// Writes a page.
    pub fn put(&mut self, lpn: Lpn, value: V) -> Put {
        if let Some(&place) = self.newest.get(&lpn)
            && self.pages[place.index()].item.state != PlaceState::Leaving
        {
            self.pages[place.index()].item.value = value;
            self.hit(place);
            return Put::Replaced;
        }
        if !self.has_room() {
            return Put::Full;
        }
        let page = Page {
            lpn,
            value,
            state: PlaceState::Probation,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.pages[place.index()].item = page;
                place
            }
            None => {
                self.pages.push(Node::new(page));
                BufferPlace((self.pages.len() - 1) as u32)
            }
        };
        self.probation.push_head(&mut self.pages, place);
        self.newest.insert(lpn, place);
        Put::Placed
    }

    /// A held page is written again.
    fn hit(&mut self, place: BufferPlace) {
        let Replacement::Slru { protected: most } = self.policy else {
            return;
        };
        self.unlink(place);
        self.pages[place.index()].item.state = PlaceState::Protected;
        self.protected.push_head(&mut self.pages, place);
        if self.protected.len() > most
            && let Some(last) = self.protected.tail()
        {
            self.protected.remove(&mut self.pages, last);
            self.pages[last.index()].item.state = PlaceState::Probation;
            self.probation.push_head(&mut self.pages, last);
        }
    }

    fn unlink(&mut self, place: BufferPlace) {
        match self.pages[place.index()].item.state {
            PlaceState::Probation => self.probation.remove(&mut self.pages, place),
            PlaceState::Protected => self.protected.remove(&mut self.pages, place),
            PlaceState::Free | PlaceState::Leaving => {}
        }
    }

    /// The victim begins to leave: its place, its number and what is known of it. `None` if no page is
    /// held.
    pub fn evict(&mut self) -> Option<(BufferPlace, Lpn, V)> {
        let place = self.probation.tail().or_else(|| self.protected.tail())?;
        self.unlink(place);
        let page = &mut self.pages[place.index()].item;
        page.state = PlaceState::Leaving;
        self.leaving += 1;
        Some((place, page.lpn, page.value))
    }

    /// A page that was leaving has left.
    pub fn free(&mut self, place: BufferPlace) {
        let page = &self.pages[place.index()].item;
        debug_assert_eq!(page.state, PlaceState::Leaving);
        if self.newest.get(&page.lpn) == Some(&place) {
            self.newest.remove(&page.lpn);
        }
        self.leaving -= 1;
        self.give_back(place);
    }

    /// Forgets a page; whether it was held. One that leaves is not found any more.
    pub fn trim(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.newest.remove(&lpn) else {
            return false;
        };
        if self.pages[place.index()].item.state == PlaceState::Leaving {
            return false;
        }
        self.unlink(place);
        self.give_back(place);
        true
    }

    fn give_back(&mut self, place: BufferPlace) {
        self.pages[place.index()].item.state = PlaceState::Free;
        self.free.push(place);
    }

    /// The pages of the probationary and of the protected segment, from head to tail.
    pub fn segments(&self) -> [Vec<Lpn>; 2] {
        [&self.probation, &self.protected].map(|list| {
            let places = list.iter(&self.pages);
            places.map(|at| self.pages[at.index()].item.lpn).collect()
        })
    }

    /// Recounts every invariant.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut held = 0;
        for (list, state) in [
            (&self.probation, PlaceState::Probation),
            (&self.protected, PlaceState::Protected),
        ] {
            let places: Vec<BufferPlace> = list.iter(&self.pages).collect();
            if places.len() != list.len() as usize {
                return Err(format!(
                    "{state:?} has {} pages, not {}",
                    places.len(),
                    list.len()
                ));
            }
            for place in places {
                let page = &self.pages[place.index()].item;
                if page.state != state || self.newest.get(&page.lpn) != Some(&place) {
                    return Err(format!("page {} is not the newest in {state:?}", page.lpn));
                }
                held += 1;
            }
        }
        let leaving = |page: &&Node<Page<V>>| page.item.state == PlaceState::Leaving;
        let leave = self.pages.iter().filter(leaving).count();
        if leave != self.leaving as usize || held + leave + self.free.len() != self.pages.len() {
            return Err(format!(
                "{held} held, {leave} leaving (counted {}) and {} free of {} places",
                self.leaving,
                self.free.len(),
                self.pages.len()
            ));
        }
        if self.pages.len() > self.places as usize {
            return Err(format!("{} of {} places", self.pages.len(), self.places));
        }
        let most = match self.policy {
            Replacement::Fifo => 0,
            Replacement::Slru { protected } => protected,
        };
        if self.protected.len() > most {
            return Err(format!(
                "{} protected, at most {most}",
                self.protected.len()
            ));
        }
        Ok(())
    }
}
