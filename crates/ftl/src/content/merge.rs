//! Pages that are stored as deltas are materialized: because they are read often, written seldom, or because
//! somebody asks. And what waits to be packed is programmed.

use flashlore_flash::{Cause, Flash, Lpn, ObjectId, Ready, Tag, Time, When};

use super::device::ContentDevice;
use super::parts::{Failure, Parts};
use crate::content::encoding::Why;
use crate::mapping::packs::Filler;
use crate::policies::Policy;

impl<T: Parts> ContentDevice<T> {
    /// A page that was read has become read-hot while it is stored as a delta: materializes it, once
    /// what was read is there. Whether it did.
    ///
    /// # Errors
    /// A full device or a failure of it.
    pub fn merge_if_read_hot(&mut self, when: When, lpn: Lpn) -> Result<bool, Failure<T>> {
        let Some(object) = self.delta_of(lpn) else {
            return Ok(false);
        };
        if !self.store.policies.wants_whole(lpn) {
            return Ok(false);
        }
        let core = &mut self.core;
        self.store.merge(core, when, object, lpn, Why::ReadHot)?;
        Ok(true)
    }

    /// The object of a logical page that is stored as a delta.
    fn delta_of(&self, lpn: Lpn) -> Option<ObjectId> {
        let object = self.store.objects.object_of(lpn)?;
        self.store.objects.is_delta(object).then_some(object)
    }

    /// The periodic scan: notes the pages stored as deltas that are not written often any more, and lets all
    /// counts begin anew. They are merged one by one by [`ContentDevice::merge_cold`]. Whether anything had been
    /// counted: if not, and as long as nothing happens, another scan notes the same.
    pub fn begin_cold_scan(&mut self) -> bool {
        self.store.begin_cold_scan()
    }

    /// When the next page that the scan found cold could be read, its dies being idle; `None` if there is
    /// none, or as long as the device has not decided what they do.
    pub fn cold_start(&mut self) -> Option<Time> {
        let (object, _) = self.store.next_cold()?;
        let mut start = self.core.present;
        for ppn in self.store.places(object).into_iter().flatten() {
            let plane = self.core.geometry.plane_of_unit(ppn);
            start = start.max(self.core.flash.idle_since(plane)?);
        }
        Some(start)
    }

    /// Makes the next page whole that the scan found cold, its reads beginning now. Whether there was one.
    ///
    /// # Errors
    /// A full device or a failure of it.
    pub fn merge_cold(&mut self, at: Time) -> Result<bool, Failure<T>> {
        let Some((object, lpn)) = self.store.next_cold() else {
            return Ok(false);
        };
        let core = &mut self.core;
        let read = self
            .store
            .read_places(core, Ready::At(at), object, Cause::Merge, Tag::NONE)?;
        let ready = read.into_iter().flatten().map(Ready::from);
        let ready = ready.fold(Ready::At(at), Ready::and);
        let when = When { ready, at };
        self.store.merge(core, when, object, lpn, Why::WriteCold)?;
        Ok(true)
    }

    /// Makes what logical pages hold whole, where it is a delta: they need no older value any more.
    ///
    /// # Errors
    /// No room, or a failure of the device.
    pub fn materialize_pages(
        &mut self,
        at: Time,
        pages: std::ops::Range<Lpn>,
    ) -> Result<(), Failure<T>> {
        for lpn in Lpn::each(pages.start..pages.end.min(Lpn(self.store.objects.len()))) {
            if let Some(object) = self.delta_of(lpn) {
                let core = &mut self.core;
                self.store
                    .merge(core, When::now(at), object, lpn, Why::Room)?;
            }
        }
        Ok(())
    }

    /// Programs what waits to be packed, as a loss of power would make the device do.
    ///
    /// # Errors
    /// A full device or a failure of it.
    pub fn flush_packs(&mut self, at: Time) -> Result<(), Failure<T>> {
        let when = When::now(at);
        for filler in [Filler::Host, Filler::Gc] {
            let core = &mut self.core;
            self.store
                .program_pack(core, filler, when, Lpn(0), |_| Tag::NONE)?;
        }
        Ok(())
    }
}
