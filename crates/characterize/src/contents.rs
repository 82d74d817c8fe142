//! The content of every page at this point of the trace, and who holds which value.
//!
//! Content is the value last written, or, while the page was never written or trimmed, the value the
//! last read returned. A page *holds* a value by a write only. Where values are sampled, a page whose
//! content is not followed counts as one of unknown content; a page never seen with a followed value
//! counts as never written.
//!
//! Invariant: `holders[v]` is the number of written pages whose content is v.

use crate::structures::ranges::RangeSet;

/// Content that is not known.
const UNKNOWN: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageState {
    /// Never written, never trimmed.
    Fresh,
    Written,
    Trimmed,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    content: u32,
    state: PageState,
}

#[derive(Debug, Clone, Copy)]
struct Value {
    holders: u32,
    /// The page that the value was last written to, if it was.
    last_page: u32,
    read: bool,
}

/// What a write of a value found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The page's content is this value.
    pub silent: bool,
    /// A page holds this value by a write.
    pub held: bool,
    /// The value was written before.
    pub written: bool,
    /// The value was seen in a read before.
    pub read: bool,
    /// The last write of the value went to this page.
    pub same_page: bool,
}

/// What a write of a page does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwrite {
    /// The page's content before, if known.
    pub old: Option<u32>,
    /// For a write with a value, what it found.
    pub found: Option<Found>,
    /// The value that no page holds any more.
    pub died: Option<u32>,
}

/// Contents of pages, and facts about values, by their dense numbers.
#[derive(Debug, Default)]
pub struct Contents {
    pages: Vec<Page>,
    values: Vec<Value>,
    /// Keys of pages that were trimmed, seen before or not.
    trimmed: RangeSet,
}

impl Contents {
    /// Makes room for a page, which has this key; pages come in the order of their numbers.
    pub fn add_page(&mut self, page: u32, key: u64) {
        if page as usize == self.pages.len() {
            let state = match self.trimmed.contains(key) {
                true => PageState::Trimmed,
                false => PageState::Fresh,
            };
            self.pages.push(Page {
                content: UNKNOWN,
                state,
            });
        }
    }

    /// Makes room for a value; values come in the order of their numbers.
    pub fn add_value(&mut self, value: u32) {
        if value as usize == self.values.len() {
            self.values.push(Value {
                holders: 0,
                last_page: UNKNOWN,
                read: false,
            });
        }
    }

    /// A read of a page returned a value; `None` if that is not followed.
    pub fn read(&mut self, page: Option<u32>, value: Option<u32>) {
        if let Some(value) = value {
            self.values[value as usize].read = true;
        }
        if let Some(page) = page.map(|page| &mut self.pages[page as usize])
            && page.state == PageState::Fresh
        {
            page.content = value.unwrap_or(UNKNOWN);
        }
    }

    /// A page is written; `value` is `None` if it is not known or not followed.
    pub fn write(&mut self, page: u32, value: Option<u32>) -> Overwrite {
        let place = self.pages[page as usize];
        let old = (place.content != UNKNOWN).then_some(place.content);
        let found = value.map(|value| {
            let known = &mut self.values[value as usize];
            let found = Found {
                silent: old == Some(value),
                held: known.holders > 0,
                written: known.last_page != UNKNOWN,
                read: known.read,
                same_page: known.last_page == page,
            };
            known.last_page = page;
            known.holders += 1;
            found
        });
        self.pages[page as usize] = Page {
            content: value.unwrap_or(UNKNOWN),
            state: PageState::Written,
        };
        Overwrite {
            old,
            found,
            died: self.release(place),
        }
    }

    /// The keys of a trim, of pages followed or not.
    pub fn trim_keys(&mut self, keys: std::ops::Range<u64>) {
        self.trimmed.insert(keys.start, keys.end);
    }

    /// A page is trimmed. Gives the value that no page holds any more.
    pub fn trim(&mut self, page: u32) -> Option<u32> {
        let place = &mut self.pages[page as usize];
        let before = *place;
        *place = Page {
            content: UNKNOWN,
            state: PageState::Trimmed,
        };
        self.release(before)
    }

    /// A page no longer holds what it held.
    fn release(&mut self, page: Page) -> Option<u32> {
        if page.state != PageState::Written || page.content == UNKNOWN {
            return None;
        }
        let holders = &mut self.values[page.content as usize].holders;
        *holders -= 1;
        (*holders == 0).then_some(page.content)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Page>()
            + self.values.capacity() * size_of::<Value>()
            + self.trimmed.heap_bytes()
    }
}
