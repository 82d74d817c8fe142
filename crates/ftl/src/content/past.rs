//! The past of a device: instants, snapshots, the way back, purges.

use std::ops::Range;

use flashlore_content::history::{TooOld, Version};
use flashlore_flash::{Lpn, ObjectId, Time};

use super::device::ContentDevice;
use super::parts::{Failure, PageOf, Parts, TablesOf};
use crate::core::erase_stale::Erased;
use crate::policies::history::{RewindCost, Versions};

impl<T: Parts> ContentDevice<T> {
    /// Old versions are kept from now on.
    pub fn begin_history(&mut self) {
        if let Some(versions) = &mut self.store.policies.versions {
            versions.begin();
        }
    }

    /// What happens next happens at this instant: the stamp of the versions that end. Of one page they
    /// never fall.
    #[inline(always)]
    pub fn set_instant(&mut self, stamp: u64) {
        if let Some(versions) = &mut self.store.policies.versions {
            versions.set_now(stamp);
        }
    }

    /// Until it is called with `None`: no pressure takes away this instant of the window. What would need room
    /// then is refused, or waits.
    pub fn guard_instant(&mut self, instant: Option<u64>) {
        if let Some(versions) = &mut self.store.policies.versions {
            versions.guard(instant);
        }
    }

    /// Gives up the oldest entries of the history while there are as many as may be, as far as they may go.
    pub fn limit_history(&mut self) {
        self.store.limit_history(&mut self.core);
    }

    /// The old versions, if they are kept.
    pub fn versions(&self) -> Option<&Versions<TablesOf<T>>> {
        self.store.policies.versions.as_ref()
    }

    /// What a logical page referred to at an instant, with the present resolved; an object is alive until the window,
    /// or what the page refers to, changes.
    ///
    /// # Errors
    /// An instant that is not remembered.
    pub fn version_at(&self, lpn: Lpn, instant: u64) -> Result<Version, TooOld> {
        self.store.version_at(lpn, instant)
    }

    /// What an object holds; nothing is counted.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn read_version(&mut self, object: ObjectId) -> Result<PageOf<T>, Failure<T>> {
        self.store.decode(&mut self.core, object)
    }

    /// The content that a logical page had at an instant; none also if it was purged.
    ///
    /// # Errors
    /// An instant that is not remembered.
    pub fn content_at_instant(&self, lpn: Lpn, instant: u64) -> Result<Option<T::Content>, TooOld> {
        Ok(match self.store.version_at(lpn, instant)? {
            Version::Object(object) => Some(self.store.objects.content(object)),
            _ => None,
        })
    }

    /// Every logical page holds again what it held at an instant; answers how many have changed. It can be
    /// undone by a rewind to an instant before it.
    ///
    /// # Errors
    /// If the instant is not remembered; then nothing has changed.
    pub fn rewind_to(&mut self, instant: u64) -> Result<u64, TooOld> {
        self.store.rewind_to(&mut self.core, instant)
    }

    /// Reads the entries on flash that a rewind to an instant needs, to be called before it; answers how many
    /// units they take.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn read_entries_since(&mut self, instant: u64) -> Result<u64, Failure<T>> {
        self.store.read_tables(&mut self.core, instant)
    }

    /// Units that old versions may take beside what the present needs now. Packed units count as the present's.
    pub fn room_of_history(&self) -> u64 {
        self.store.room_of_history(&self.core)
    }

    /// What a rewind to the start of the window would take: changes of the map, and the entries on flash.
    pub fn cost_of_longest_rewind(&self) -> RewindCost {
        let mut cost = RewindCost::default();
        if let Some(versions) = &self.store.policies.versions {
            let history = &versions.history;
            // The start of the window is always remembered.
            let changed = history.changed_since(history.oldest());
            cost.pages = changed.map_or(0, |changed| changed.len());
            cost.reads = u64::from(self.store.tables());
        }
        cost
    }

    /// Moves the start of the window on.
    pub fn advance_window(&mut self, to: u64) {
        self.store.advance_window(&mut self.core, to);
    }

    /// Times that do not count towards the least window: their last stamps, and how long they were; oldest first.
    pub fn set_unproven(&mut self, unproven: Vec<(u64, u64)>) {
        if let Some(versions) = &mut self.store.policies.versions {
            versions.set_unproven(unproven);
        }
    }

    /// Keeps an instant, wherever the window begins, until the snapshot is deleted.
    ///
    /// # Errors
    /// If the instant is not remembered.
    pub fn snapshot(&mut self, instant: u64) -> Result<(), TooOld> {
        if let Some(versions) = &mut self.store.policies.versions {
            versions.history.snapshot(instant)?;
        }
        Ok(())
    }

    /// Deletes a snapshot; whether there was one.
    pub fn delete_snapshot(&mut self, instant: u64) -> bool {
        self.store.delete_snapshot(&mut self.core, instant)
    }

    /// Forgets every instant before this one, and the snapshots among them after which anything changed; answers
    /// those.
    pub fn forget_before(&mut self, to: u64) -> Vec<u64> {
        self.store.forget_before(&mut self.core, to)
    }

    /// Forgets every version of these pages but the present one: at instants before that they are
    /// [`Version::Purged`].
    pub fn purge(&mut self, pages: Range<Lpn>) {
        self.store.purge(&mut self.core, pages);
    }

    /// The same, and erases at once what nobody refers to any more: no version that is forgotten, of whatever
    /// page, can be read from the medium afterwards, unless another page or its old versions need it too. The
    /// present versions of these pages are materialized, so that they do not.
    ///
    /// # Errors
    /// No room for what must be copied, or a failure of the device: the versions are forgotten, and some of
    /// them not erased yet.
    pub fn purge_and_erase(&mut self, at: Time, pages: Range<Lpn>) -> Result<Erased, Failure<T>> {
        self.purge(pages.clone());
        self.materialize_pages(at, pages)?;
        self.erase_stale(at)
    }

    /// Erases at once every block that holds something to which nobody refers.
    ///
    /// # Errors
    /// No room for what must be copied, or a failure of the device.
    pub fn erase_stale(&mut self, at: Time) -> Result<Erased, Failure<T>> {
        self.core.erase_stale(&mut self.store, at)
    }

    /// Objects that old versions alone keep alive. It looks at every object.
    pub fn historical_objects(&self) -> u64 {
        self.store.historical_objects()
    }
}
