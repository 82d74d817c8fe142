//! How journal and heads of encoded values name an object.
//!
//! Up to version 5 by its write sequence number, 0 for none: whoever finds it must know all objects. Since then by its handle,
//! which is that of the object that has it when the name is written; the lower half of its write sequence number says
//! whether it is the one that is meant. All ones are none.

use std::fmt;

use flashlore_flash::ObjectId;

/// An object that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectName {
    /// That of this write, which is not 0.
    Write(u64),
    /// The one with this handle, when the name was written.
    Handle {
        /// The handle.
        object: ObjectId,
        /// The lower half of its write sequence number.
        half: u32,
    },
}

/// How objects are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// By write sequence number.
    ByWrite = 0,
    /// By handle.
    ByHandle = 1,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectName::Write(write_seq) => write!(f, "write sequence number {write_seq:x}"),
            ObjectName::Handle { object, half } => {
                write!(f, "object {object} (of write ..{half:08x})")
            }
        }
    }
}

impl ObjectName {
    /// That of an object with this handle, of this write.
    pub fn of(object: ObjectId, write_seq: u64, naming: Naming) -> Self {
        let half = write_seq as u32;
        match naming {
            Naming::ByWrite => ObjectName::Write(write_seq),
            Naming::ByHandle => ObjectName::Handle { object, half },
        }
    }

    /// Its eight bytes.
    pub fn word(name: Option<ObjectName>, naming: Naming) -> u64 {
        match (name, naming) {
            (Some(ObjectName::Write(write_seq)), _) => write_seq,
            (Some(ObjectName::Handle { object, half }), _) => {
                u64::from(object.0) | u64::from(half) << 32
            }
            (None, Naming::ByWrite) => 0,
            (None, Naming::ByHandle) => u64::MAX,
        }
    }

    /// What these eight bytes name.
    pub fn of_word(word: u64, naming: Naming) -> Option<ObjectName> {
        match naming {
            Naming::ByWrite => (word != 0).then_some(ObjectName::Write(word)),
            Naming::ByHandle => {
                let object = ObjectId(word as u32);
                let half = (word >> 32) as u32;
                object
                    .is_some()
                    .then_some(ObjectName::Handle { object, half })
            }
        }
    }
}
