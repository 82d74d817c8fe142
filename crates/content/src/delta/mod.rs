//! A value stored in fewer bytes than a page: as its delta from another value, or compressed by
//! itself.
//!
//! * [`Encoder`] — what the translation layer asks: how long, and the encoded value itself
//! * [`drawn`] — lengths drawn at random, for simulation without bytes (DeltaFTL, EuroSys 2012)
//!
//! The translation layer never looks into an encoded value. It packs several into one page and takes
//! them out again.

pub mod drawn;

pub use drawn::{Drawn, Ratio};

use crate::similar::Sketch;
use flashlore_flash::{Lpn, ObjectId, PackSlot};

/// A value and the page that holds it.
#[derive(Debug)]
pub struct Value<'a, C, P> {
    pub content: C,
    pub page: &'a P,
}

impl<C: Copy, P> Clone for Value<'_, C, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Copy, P> Copy for Value<'_, C, P> {}

/// A value in fewer bytes, and how many; nothing if it takes more than a limit.
pub type Short<V> = Option<(u16, V)>;

/// Turns pages into fewer bytes and back. `C` names a value, `P` is what a mapping unit holds.
pub trait Encoder<C, P> {
    /// Whether anything is ever encoded: without, a device has no code for it.
    const ON: bool = true;

    /// An encoded value as it is kept in RAM until it is programmed.
    type Encoded: Clone;

    /// What the host's trace says of the write that comes next: R_c, in 1/65535, or 0 if it says nothing.
    fn tell_ratio(&mut self, _ratio: u16) {}

    /// The value as its delta from a base, and its length in bytes, if that is at most `limit`.
    fn delta(
        &mut self,
        base: Value<'_, C, P>,
        new: Value<'_, C, P>,
        limit: u16,
    ) -> Short<Self::Encoded>;

    /// What [`Encoder::delta`] would answer for the value of an object, if that was found before the write began:
    /// the base is not read then.
    fn delta_ahead(
        &mut self,
        _base: ObjectId,
        _new: &Value<'_, C, P>,
    ) -> Option<Short<Self::Encoded>> {
        None
    }

    /// The value compressed by itself, and its length in bytes, if that is at most `limit`.
    fn alone(&mut self, new: Value<'_, C, P>, limit: u16) -> Short<Self::Encoded>;

    /// The super-features of a value, by which pages that resemble it are found; nothing where its bytes are
    /// not known.
    fn sketch(&mut self, _new: Value<'_, C, P>) -> Option<Sketch> {
        None
    }

    /// The page again; `base` is what the delta was taken from.
    fn decode(&mut self, base: Option<&P>, encoded: &Self::Encoded) -> P;

    /// An encoded value waits in RAM for its page to be filled, as what an object holds, with what it is a delta from, or
    /// [`ObjectId::NONE`]: until it is given up, or given to [`Encoder::pack`].
    fn hold(&mut self, _object: ObjectId, _base: ObjectId, _encoded: &Self::Encoded) {}

    /// A value that waits is needed no more.
    fn give_up(&mut self, _encoded: &Self::Encoded) {}

    /// In place of an encoded value of so many bytes that cannot be read any more: that of an object, for which
    /// a logical page was written. `None` where content is not lost: then the failure to read it is an error.
    fn lost(&mut self, _object: ObjectId, _lpn: Lpn, _length: u16) -> Option<Self::Encoded> {
        None
    }

    /// In place of a page that cannot be read any more, as [`Encoder::lost`].
    fn lost_page(&mut self) -> Option<P> {
        None
    }

    /// Whether a page stands in place of one that cannot be read any more.
    fn is_lost(&self, _page: &P) -> bool {
        false
    }

    /// A page that holds these encoded values in this order.
    fn pack(&mut self, values: &[Self::Encoded]) -> P;

    /// The encoded value in the slot of a packed page.
    fn unpack(&mut self, page: &P, slot: PackSlot) -> Self::Encoded;

    /// The slots of a packed page in their order: the object whose value lies there, or [`ObjectId::NONE`] where the page does
    /// not tell, the logical page that it was written for, and its bytes. Asked where the device notes slots with their objects
    /// and the translation layer keeps none.
    fn each_slot(&mut self, _page: &P, _take: &mut dyn FnMut(ObjectId, Lpn, u16)) {}
}

/// Nothing is encoded.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEncoder;

/// No encoded value exists.
#[derive(Debug, Clone, Copy)]
pub enum Never {}

impl<C, P> Encoder<C, P> for NoEncoder {
    const ON: bool = false;
    type Encoded = Never;

    fn delta(&mut self, _: Value<'_, C, P>, _: Value<'_, C, P>, _: u16) -> Option<(u16, Never)> {
        None
    }

    fn alone(&mut self, _: Value<'_, C, P>, _: u16) -> Option<(u16, Never)> {
        None
    }

    fn decode(&mut self, _: Option<&P>, encoded: &Never) -> P {
        match *encoded {}
    }

    fn pack(&mut self, values: &[Never]) -> P {
        match values[0] {}
    }

    fn unpack(&mut self, _: &P, _: PackSlot) -> Never {
        unreachable!("nothing was packed")
    }
}
