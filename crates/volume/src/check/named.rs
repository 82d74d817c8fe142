//! Which objects there are: those that pages refer to, those that old versions refer to, and the bases of either.
//!
//! Invariant: what is said follows from map and history alone, and of an object that they name from its base.

use flashlore_flash::ObjectId;

use super::bits::HandleBits;
use super::view::RowView;
use crate::error::VolumeError;
use crate::format::Table;

/// What refers to objects.
pub(super) struct NamedObjects {
    /// Logical pages do.
    pub mapped: HandleBits,
    /// Logical pages or old versions do.
    pub named: HandleBits,
    /// Anything does, a delta too.
    pub alive: HandleBits,
    /// Logical pages that hold something.
    pub pages: u64,
}

impl NamedObjects {
    /// Those of a view; nothing on a volume without objects.
    ///
    /// # Errors
    /// As [`NamedObjects::of`].
    pub fn in_view(view: &RowView<'_>) -> Result<Option<Self>, VolumeError> {
        match view.id.has_objects() {
            true => NamedObjects::of(view).map(Some),
            false => Ok(None),
        }
    }

    /// Those of a volume with objects.
    ///
    /// # Errors
    /// An object is named that cannot be, or a page of the tables cannot be read.
    fn of(view: &RowView<'_>) -> Result<Self, VolumeError> {
        let handles = Table::Objects.rows(view.id);
        let is_there = |object: ObjectId| object.0 < handles;
        let mut beyond = None;
        let mut mapped = HandleBits::none_of(handles);
        let mut pages = 0;
        view.each_mapped(|_, row| {
            pages += 1;
            match is_there(row.as_object()) {
                true => mapped.set(row.as_object()),
                false => beyond = Some(row.as_object()),
            }
        })?;
        let mut named = HandleBits::none_of(handles);
        named.add(&mapped);
        let mut since = view.kept_since();
        view.each_kept(&mut |object| match since.get_mut(&object) {
            Some(references) => *references += 1,
            None if is_there(object) => named.set(object),
            None => beyond = Some(object),
        })?;
        let kept = since.into_iter().filter(|(_, references)| *references > 0);
        kept.filter(|(object, _)| is_there(*object))
            .for_each(|(object, _)| named.set(object));
        if let Some(object) = beyond {
            return Err(VolumeError::Damaged(format!(
                "the map or the history names object {object}, there are {handles}"
            )));
        }
        let mut alive = HandleBits::none_of(handles);
        alive.add(&named);
        view.each_object(0..handles, |object, row| {
            if named.has(object)
                && let Some(base) = row.base().filter(|base| is_there(*base))
            {
                alive.set(base);
            }
        })?;
        Ok(NamedObjects {
            mapped,
            named,
            alive,
            pages,
        })
    }
}
