//! The forms of a value in fewer bytes than a page.

use flashlore_content::Sketch;
use flashlore_flash::ObjectId;

use super::similar::Base;

/// The forms that a write can take in fewer bytes than a page.
pub(crate) struct Forms<V> {
    /// As a delta: from what, its length, and it.
    pub delta: Option<(Base, u16, V)>,
    /// By itself.
    pub alone: Option<(u16, V)>,
    /// What it resembles others by, if it was sketched.
    pub sketch: Option<Sketch>,
}

/// A write in fewer bytes than a page.
pub(crate) struct Encoding<V> {
    pub length: u16,
    /// What it is a delta from, or [`ObjectId::NONE`].
    pub base: ObjectId,
    /// Whether that resembles it, and is not its page's own.
    pub similar: bool,
    /// What it resembles others by, if it was sketched.
    pub sketch: Option<Sketch>,
    pub value: V,
}
