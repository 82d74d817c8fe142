//! The answer to a write.

use super::encoding::forms::Encoding;
use flashlore_flash::ObjectId;

/// What becomes of a write. `V` is an encoded value.
pub(crate) enum Decision<V> {
    /// The address refers to this object already.
    Unchanged(ObjectId),
    /// The address comes to refer to this object.
    Share(ObjectId),
    /// The value is stored as its delta from another one.
    Delta(Encoding<V>),
    /// The value is stored compressed by itself.
    Compressed(Encoding<V>),
    /// The value is stored as it is.
    Whole,
}
