//! Values, pages that hold them whole or encoded, and an encoder that refuses the wrong base.

use flashlore_content::dedup::LruIndex;
use flashlore_content::delta::{Encoder, Value};
use flashlore_content::{Content, Sketch};
use flashlore_flash::{PackSlot, number_rows};

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct V(pub u32);

number_rows!(u32: V);

impl Content for V {
    type Index = LruIndex;

    fn fingerprint(self, bits: u32) -> u64 {
        let spread = u64::from(self.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = spread ^ (spread >> 29);
        if bits >= 64 {
            mixed
        } else {
            mixed & ((1 << bits) - 1)
        }
    }
}

/// What a unit holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    Whole(V),
    Packed(Vec<Encoded>),
}

impl From<V> for Page {
    fn from(value: V) -> Page {
        Page::Whole(value)
    }
}

impl Page {
    pub fn value(&self) -> V {
        match self {
            Page::Whole(value) => *value,
            Page::Packed(_) => panic!("a packed page was taken for a value"),
        }
    }
}

/// An encoded value, and what it is to be decoded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    pub base: Option<V>,
    pub value: V,
}

/// Lengths follow from the values: between `least` and `most` bytes.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    pub least: u16,
    pub most: u16,
    /// Values compressed by themselves are so many percent longer.
    pub alone: u16,
}

impl Lengths {
    pub fn of(&self, base: Option<V>, value: V) -> u16 {
        let key = u64::from(base.map_or(0, |b| b.0 + 1)) << 32 | u64::from(value.0);
        let spread = key.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
        let length = self.least + (spread % u64::from(self.most - self.least + 1)) as u16;
        match base {
            Some(_) => length,
            None => (u32::from(length) * u32::from(100 + self.alone) / 100) as u16,
        }
    }
}

impl Encoder<V, Page> for Lengths {
    type Encoded = Encoded;

    fn delta(
        &mut self,
        base: Value<'_, V, Page>,
        new: Value<'_, V, Page>,
        limit: u16,
    ) -> Option<(u16, Encoded)> {
        assert_eq!(
            base.page.value(),
            base.content,
            "the base holds another value"
        );
        let length = self.of(Some(base.content), new.content);
        let encoded = Encoded {
            base: Some(base.content),
            value: new.content,
        };
        (length <= limit).then_some((length, encoded))
    }

    fn alone(&mut self, new: Value<'_, V, Page>, limit: u16) -> Option<(u16, Encoded)> {
        let length = self.of(None, new.content);
        let encoded = Encoded {
            base: None,
            value: new.content,
        };
        (length <= limit).then_some((length, encoded))
    }

    /// Values with numbers near each other are alike, and more so the nearer.
    fn sketch(&mut self, new: Value<'_, V, Page>) -> Option<Sketch> {
        let number = new.content.0;
        let supers = [
            number / 4,
            number / 16 + 1,
            number / 64 + 2,
            number / 256 + 3,
        ];
        Some(Sketch(supers.map(|s| s.wrapping_mul(0x9E37_79B1))))
    }

    fn decode(&mut self, base: Option<&Page>, encoded: &Encoded) -> Page {
        assert_eq!(
            base.map(Page::value),
            encoded.base,
            "decoded with the wrong base"
        );
        Page::Whole(encoded.value)
    }

    fn pack(&mut self, values: &[Encoded]) -> Page {
        Page::Packed(values.to_vec())
    }

    fn unpack(&mut self, page: &Page, slot: PackSlot) -> Encoded {
        match page {
            Page::Whole(value) => panic!("{value:?} was taken for a packed page"),
            Page::Packed(values) => values[slot.index()],
        }
    }
}
