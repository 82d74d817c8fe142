//! Reading a logical page: one unit, or a base and what is encoded against it.

use flashlore_flash::{Cause, Completion, Lpn, ObjectId, Tag, Time};

use super::device::ContentDevice;
use super::parts::{Failure, PageOf, Parts};
use crate::core::PageRead;
use crate::policies::Policy;

/// The flash pages read for a logical page.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartsRead {
    /// Its object, if it was ever written.
    object: Option<ObjectId>,
    /// When each is there; `None` for one that is in RAM or does not exist.
    pub done: [Option<Completion>; 2],
    /// Whether they have to be decoded.
    pub encoded: bool,
}

impl PartsRead {
    /// A page that lies whole in one unit.
    pub(crate) fn whole(object: ObjectId, done: Completion) -> Self {
        PartsRead {
            object: Some(object),
            done: [Some(done), None],
            encoded: false,
        }
    }

    /// Whether the page holds anything.
    pub fn is_mapped(&self) -> bool {
        self.object.is_some()
    }
}

/// Of two completions the one that is later, as far as is known.
pub(super) fn later(a: Completion, b: Completion) -> Completion {
    match (a, b) {
        (Completion::At { start, end }, Completion::At { start: s, end: e }) => Completion::At {
            start: start.min(s),
            end: end.max(e),
        },
        (Completion::At { .. }, _) => b,
        _ => a,
    }
}

impl<T: Parts> ContentDevice<T> {
    /// Reads a logical page; one that was never written costs nothing. Of an encoded one the completion is
    /// that of the page that is read last, where it is known.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    #[inline(always)]
    pub fn read(
        &mut self,
        at: Time,
        lpn: Lpn,
        cause: Cause,
        tag: Tag,
    ) -> Result<PageRead<PageOf<T>>, Failure<T>> {
        if !T::ENCODES {
            if cause == Cause::Host {
                self.store.policies.on_read(lpn);
            }
            return self.core.read_page(&mut self.store, at, lpn, cause, tag);
        }
        let read = self.read_parts(at, lpn, cause, tag)?;
        let done = read.done.iter().flatten().copied().reduce(later);
        let done = done.unwrap_or(Completion::instant(at));
        let page = match read.object {
            None => None,
            Some(object) => Some(self.store.decode(&mut self.core, object)?),
        };
        Ok((page, done))
    }

    /// Reads what a logical page is held in: up to two flash pages, each reported under `tag` where its
    /// end is not known.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    pub fn read_parts(
        &mut self,
        at: Time,
        lpn: Lpn,
        cause: Cause,
        tag: Tag,
    ) -> Result<PartsRead, Failure<T>> {
        let ready = self.core.begin_read(&mut self.store, at, lpn, cause)?;
        for place in 0..2 {
            let object = self.store.objects.object_of(lpn);
            let place = object.and_then(|object| self.store.places(object)[place]);
            if let Some(ppn) = place {
                self.core.collect_before_read(&mut self.store, at, ppn)?;
            }
        }
        let object = self.store.objects.object_of(lpn);
        let mut read = PartsRead {
            object,
            done: [None, None],
            encoded: false,
        };
        let Some(object) = object else {
            return Ok(read);
        };
        if cause == Cause::Host {
            self.store.policies.on_read(lpn);
        }
        read.encoded = self.store.objects.is_packed(object);
        read.done = self
            .store
            .read_places(&mut self.core, ready, object, cause, tag)?;
        if read.encoded && cause == Cause::Host {
            let both = read.done.iter().all(Option::is_some);
            self.store.count(|counters| {
                counters.reads += 1;
                counters.double_reads += u64::from(both);
            });
        }
        Ok(read)
    }
}
