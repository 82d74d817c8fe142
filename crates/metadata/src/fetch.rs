//! A page that is to be read: named by the store, read by whoever wants it, without the store.

use flashlore_content::VolumeKey;
use flashlore_medium::{AlignedBuf, Medium};

use crate::address::{Node, Pointer};
use crate::area::Area;
use crate::error::MetadataError;
use crate::page::{Label, PAGE_BYTES, verify};

/// A page that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    pub(crate) node: Node,
    pub(crate) kind: u8,
    pub(crate) pointer: Pointer,
}

/// A page that was read, and is the one that was meant.
#[derive(Debug)]
pub struct Fetched {
    pub(crate) fetch: Fetch,
    pub(crate) bytes: AlignedBuf,
}

impl Fetch {
    /// The page.
    pub fn node(&self) -> Node {
        self.node
    }

    /// Reads it.
    ///
    /// # Errors
    /// The medium failed, or what lies there is not the page. That may be since it was written elsewhere meanwhile: who
    /// asks the store again sees.
    pub fn carry_out(
        &self,
        medium: &dyn Medium,
        area: &Area,
        key: &VolumeKey,
    ) -> Result<Fetched, MetadataError> {
        let damaged = |why| MetadataError::Damaged {
            node: self.node,
            slot: self.pointer.slot,
            why,
        };
        if self.pointer.slot.0 >= area.slots {
            return Err(damaged("there is no such slot"));
        }
        let mut bytes = AlignedBuf::zeroed(PAGE_BYTES);
        medium.read(area.slot(self.pointer.slot), &mut bytes)?;
        verify(&bytes, Label::of(self.kind, self.node), self.pointer, key).map_err(damaged)?;
        Ok(Fetched {
            fetch: *self,
            bytes,
        })
    }
}
