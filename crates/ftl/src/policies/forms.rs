//! The forms of a value in fewer bytes than a page, and the rule that chooses among them: the one that costs least is
//! taken, where a cost is the bytes programmed and what the form keeps alive besides. The price of the latter is the
//! policy's that offers the form.

use flashlore_content::Sketch;
use flashlore_flash::ObjectId;
use flashlore_flash::geometry::UNIT_BYTES;

use crate::mapping::packs::SLOT_BYTES;

/// A form that a policy offers for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// What it is a delta from; nothing, if the value is compressed by itself.
    pub base: Option<ObjectId>,
    /// What it costs besides its bytes, in thousandths of a byte.
    pub keeps: u64,
}

impl Form {
    /// By itself.
    pub const ALONE: Form = Form {
        base: None,
        keeps: 0,
    };

    /// What it is a delta from, or [`ObjectId::NONE`].
    pub fn base_object(&self) -> ObjectId {
        self.base.unwrap_or(ObjectId::NONE)
    }
}

/// A write in fewer bytes than a page.
pub(crate) struct Encoding<V> {
    pub form: Form,
    /// Bytes, without the entry in the directory.
    pub length: u16,
    pub value: V,
}

/// What became of the forms that were offered for a write.
pub(crate) struct Offers<V> {
    /// What a page resembles others by, if it was sketched.
    pub sketch: Option<Sketch>,
    /// The cheapest one, and its cost, in thousandths of a byte.
    best: Option<(u64, Encoding<V>)>,
    /// The shortest one, cheap or not.
    pub shortest: Option<u16>,
}

impl<V> Offers<V> {
    /// None yet.
    pub fn new(sketch: Option<Sketch>) -> Self {
        Offers {
            sketch,
            best: None,
            shortest: None,
        }
    }

    /// Takes a form that was encoded, at most `most_bytes` long, if it costs less than all before it and than the
    /// page as it is.
    pub fn add(&mut self, encoding: Encoding<V>, most_bytes: u16) {
        let length = encoding.length;
        self.shortest = Some(self.shortest.map_or(length, |other| other.min(length)));
        let cost = (u64::from(length) + u64::from(SLOT_BYTES)) * 1000 + encoding.form.keeps;
        let least = self.best.as_ref().map_or(WHOLE, |(least, _)| *least);
        if length <= most_bytes && cost < least {
            self.best = Some((cost, encoding));
        }
    }

    /// The cheapest one, if any is cheaper than the page as it is.
    pub fn cheapest(self) -> Option<Encoding<V>> {
        self.best.map(|(_, encoding)| encoding)
    }
}

/// What a page costs as it is.
const WHOLE: u64 = UNIT_BYTES as u64 * 1000;
