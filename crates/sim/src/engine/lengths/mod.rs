//! How long encoded values are in a run. The device has no bytes, so a length is all that it learns.
//!
//! | module | where lengths come from |
//! |---|---|
//! | [`flashlore_content::delta::drawn`] | a distribution: `codec.ratio = "drawn"` |
//! | [`rated`] | the trace, for deltas: `"trace"` |
//! | [`measured`] | the codecs of [`flashlore_delta`], on the bytes of the values: `"codec"` |

pub mod measured;
pub mod rated;

use flashlore_content::delta::{Drawn, Value};
use flashlore_content::{Encoder, PageTag, Sketch};
use flashlore_flash::PackSlot;

pub use measured::MeasuredLengths;
pub use rated::Rated;

/// Where the lengths of a run come from.
pub enum Lengths<'a> {
    /// They are drawn.
    Drawn(Drawn),
    /// Those of deltas are the trace's.
    Rated(Rated),
    /// They are those of encoded bytes.
    Measured(Box<MeasuredLengths<'a>>),
}

impl Encoder<PageTag, ()> for Lengths<'_> {
    type Encoded = ();

    fn tell_ratio(&mut self, ratio: u16) {
        if let Lengths::Rated(rated) = self {
            rated.tell_ratio(ratio);
        }
    }

    fn delta(
        &mut self,
        base: Value<'_, PageTag, ()>,
        new: Value<'_, PageTag, ()>,
        limit: u16,
    ) -> Option<(u16, ())> {
        match self {
            Lengths::Drawn(drawn) => drawn.delta(base, new, limit),
            Lengths::Rated(rated) => within(rated.delta(), limit),
            Lengths::Measured(measured) => {
                within(measured.delta(base.content, new.content)?, limit)
            }
        }
    }

    fn alone(&mut self, new: Value<'_, PageTag, ()>, limit: u16) -> Option<(u16, ())> {
        match self {
            Lengths::Drawn(drawn) => drawn.alone(new, limit),
            Lengths::Rated(rated) => rated.drawn().alone(new, limit),
            Lengths::Measured(measured) => within(measured.alone(new.content)?, limit),
        }
    }

    fn sketch(&mut self, new: Value<'_, PageTag, ()>) -> Option<Sketch> {
        match self {
            Lengths::Measured(measured) => measured.sketch(new.content),
            Lengths::Drawn(_) | Lengths::Rated(_) => None,
        }
    }

    fn decode(&mut self, _base: Option<&()>, _encoded: &()) {}

    fn pack(&mut self, _values: &[()]) {}

    fn unpack(&mut self, _page: &(), _slot: PackSlot) {}
}

/// A length, if it is at most `limit`.
fn within(length: u16, limit: u16) -> Option<(u16, ())> {
    (length <= limit).then_some((length, ()))
}
