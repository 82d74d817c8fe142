//! Pages that were not hashed are read and hashed in idle time.

use flashlore_flash::{Cause, Completion, Flash, ObjectId, PlaneId, Ready, Tag, Time};

use super::device::ContentDevice;
use super::parts::{Failure, Parts};
use crate::policies::out_of_line::Scanned;

impl<T: Parts> ContentDevice<T> {
    /// The plane of the next page to be hashed in idle time.
    fn next_to_scan(&mut self) -> Option<(ObjectId, PlaneId)> {
        let scan = self
            .store
            .policies
            .scan
            .as_mut()
            .filter(|scan| scan.reading.is_none())?;
        let object = scan.next(&self.store.objects)?;
        let geometry = &self.core.geometry;
        Some((
            object,
            geometry.plane_of_unit(self.store.objects.at(object)),
        ))
    }

    /// From when on, the present or later, the next page that was not hashed can be read: whatever
    /// serves its plane is idle. `None` if there is no such page, if one is being hashed, or as long as
    /// the device has not decided what it does.
    pub fn scan_start(&mut self) -> Option<Time> {
        let (_, plane) = self.next_to_scan()?;
        let idle = self.core.flash.idle_since(plane)?;
        Some(idle.max(self.core.present))
    }

    /// Reads the next page that was not hashed, at the present, unless collection has work for its die:
    /// that comes first and is started here. `None` if nothing is read.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn scan(&mut self, at: Time, tag: Tag) -> Result<Option<Completion>, Failure<T>> {
        self.core.start_background(&mut self.store)?;
        let Some((object, plane)) = self.next_to_scan() else {
            return Ok(None);
        };
        let idle = self.core.flash.idle_since(plane);
        if idle.is_none_or(|since| since > at) {
            return Ok(None);
        }
        let ppn = self.store.objects.at(object);
        let done = self.core.read(Ready::At(at), ppn, Cause::Scan, tag)?;
        if let Some(scan) = &mut self.store.policies.scan {
            scan.pop();
            scan.reading = Some((object, self.store.objects.content(object)));
        }
        Ok(Some(done))
    }

    /// The page that was read last has been hashed: it is looked up.
    ///
    /// # Errors
    /// A failure of the device, or what the map entry of a duplicate meets.
    pub fn end_scan(&mut self, at: Time) -> Result<Scanned, Failure<T>> {
        let objects = &self.store.objects;
        let Some((object, read, lpn)) = self.store.policies.scan.as_mut().and_then(|scan| {
            let (object, read) = scan.reading.take()?;
            Some((object, read, scan.referrer(objects, object)))
        }) else {
            return Ok(Scanned::Gone);
        };
        self.store.policies.dedup.counters.scanned += 1;
        // The handle may have been used again; then the new object waits for its own turn.
        let Some(lpn) = lpn.filter(|_| self.store.objects.content(object) == read) else {
            return Ok(Scanned::Gone);
        };
        let Some(found) = self.candidate(read) else {
            self.store.objects.hashed(object);
            self.store.index(object);
            return Ok(Scanned::Indexed);
        };
        self.core.access_map(&mut self.store, at, lpn, Tag::NONE)?;
        self.store.policies.dedup.counters.scan_duplicates += 1;
        self.store.share_found(&mut self.core, lpn, read, found);
        Ok(Scanned::Duplicate)
    }
}
