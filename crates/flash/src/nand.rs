//! What a flash device can be asked: the [`Flash`] trait.
//!
//! Time goes in with every operation and comes out with its completion; nobody asks a clock.
//! A completion is either known at once ([`Completion::At`]) or reported later by
//! [`Flash::advance`], when a shared channel decides it.
//!
//! The present is the latest instant given to [`Flash::advance`]: call it first, then submit. Only
//! [`Ready`] may lie ahead of it. A page is programmed at most once between two erases of its
//! block, and the pages of a block in ascending order ([`crate::rules`] checks it).

use crate::address::{BlockId, Owner, PageId, PlaneId, Ppn, Tag, Time};
use crate::geometry::Geometry;
use crate::tables::Tables;

/// Why a page is read; the translation layer counts reads by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The host asked for it.
    Host,
    /// Garbage collection moves valid units out of a victim.
    Gc,
    /// Static wear levelling moves cold units.
    Wear,
    /// A duplicate is compared with the stored page before it is shared.
    Verify,
    /// A stored page is hashed in idle time.
    Scan,
    /// Reading the digest of a stored page whose index entry was discarded.
    Prefetch,
    /// The old content of a partly overwritten unit is read.
    Modify,
    /// A translation page: a piece of the forward map.
    Map,
    /// The base of a delta is read to encode a write.
    Delta,
    /// An encoded value is decoded, to be materialized.
    Merge,
}

/// Who fills a block: each stream has open blocks of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The host.
    Host = 0,
    /// Garbage collection.
    Gc = 1,
    /// Static wear levelling.
    Wear = 2,
    /// Translation pages.
    Map = 3,
    /// Pages packed with values that the host wrote, encoded.
    Log = 4,
    /// Packed pages that garbage collection moves or fills anew: never in a block that the host fills, so that a
    /// collection that has begun finds its room.
    LogGc = 5,
}

impl Stream {
    /// Every stream, by number.
    pub const ALL: [Stream; 6] = [
        Stream::Host,
        Stream::Gc,
        Stream::Wear,
        Stream::Map,
        Stream::Log,
        Stream::LogGc,
    ];
    /// How many there are.
    pub const COUNT: usize = Stream::ALL.len();
}

/// How the data of an operation travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// Over the channel, between die and controller.
    Channel,
    /// Inside the plane: the read or the program half of a copy-back.
    OnChip,
}

/// What goes into one slot of a flash page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit<P> {
    /// New content.
    New {
        /// Whose it is.
        owner: Owner,
        /// The content.
        page: P,
    },
    /// A copy of another unit, which stays intact until its block is erased.
    Copy {
        /// Whose it is.
        owner: Owner,
        /// Where the content is now.
        from: Ppn,
    },
    /// Nothing: the page was programmed before it was full.
    Pad,
}

impl<P> Unit<P> {
    /// Who owns the unit; padding belongs to nobody.
    #[inline(always)]
    pub fn owner(&self) -> Option<Owner> {
        match self {
            Unit::New { owner, .. } | Unit::Copy { owner, .. } => Some(*owner),
            Unit::Pad => None,
        }
    }
}

/// An operation whose completion was not known when it was submitted. The name is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(pub u64);

impl OpId {
    /// Something that nothing can be made to wait for.
    pub const NONE: OpId = OpId(u64::MAX);
}

/// When an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It starts and ends at these instants.
    At {
        /// The resource begins to serve it.
        start: Time,
        /// The last stage is over.
        end: Time,
    },
    /// [`Flash::advance`] will report it under the caller's tag.
    Later(OpId),
}

impl Completion {
    /// An operation that takes no time.
    #[inline(always)]
    pub fn instant(at: Time) -> Self {
        Completion::At { start: at, end: at }
    }
}

/// When an operation may be handed to its die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// At this instant, now or ahead.
    At(Time),
    /// As soon as another operation is done, but not before the instant.
    After(OpId, Time),
}

impl Ready {
    /// Ready when both are. Of two operations the second is waited for, so name the one that is done
    /// last: operations of one die are done in the order in which they were submitted.
    #[must_use]
    pub fn and(self, other: Ready) -> Ready {
        match (self, other) {
            (Ready::At(a), Ready::At(b)) => Ready::At(a.max(b)),
            (Ready::After(op, a), Ready::At(b))
            | (Ready::At(a) | Ready::After(_, a), Ready::After(op, b)) => {
                Ready::After(op, a.max(b))
            }
        }
    }
}

impl From<Completion> for Ready {
    fn from(done: Completion) -> Self {
        match done {
            Completion::At { end, .. } => Ready::At(end),
            Completion::Later(op) => Ready::After(op, 0),
        }
    }
}

/// The instants a caller knows of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// When its content is at hand.
    pub ready: Ready,
    /// The present.
    pub at: Time,
}

impl When {
    /// Everything is at hand.
    #[inline(always)]
    pub fn now(at: Time) -> Self {
        When {
            ready: Ready::At(at),
            at,
        }
    }
}

/// A completion reported by [`Flash::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The caller's name for the operation.
    pub tag: Tag,
    /// When its first stage began.
    pub start: Time,
    /// When its last stage ended; may lie ahead of the instant advanced to.
    pub end: Time,
}

/// A NAND flash device.
pub trait Flash {
    /// What one mapping unit holds: nothing in simulated time, a tag or bytes elsewhere.
    type Page;
    /// Why an operation failed.
    type Error: std::error::Error + Send + Sync + 'static;
    /// Where the tables of what lies on it are.
    type Tables: Tables;
    /// Whether what lies in a unit may be lost or something else: then what is read is proven ([`Flash::prove`]), and a
    /// block is looked at before it is emptied ([`Flash::prove_copy`]).
    const PROVES: bool = false;

    /// Whether an error of an erase means that the block, and nothing else, has failed: it is to be
    /// retired. Otherwise the error is the device's.
    fn is_block_failure(_error: &Self::Error) -> bool {
        false
    }

    /// Whether an error of a read means that what lies there cannot be read any more; anything else is the
    /// device's.
    fn is_loss(_error: &Self::Error) -> bool {
        false
    }

    /// How the device is built.
    fn geometry(&self) -> &Geometry;

    /// Where the tables of what lies on it are made.
    fn tables(&self) -> Self::Tables;

    /// Senses the flash page of `ppn` and brings `units` of its units out by `route`, as soon as it is
    /// `ready`. What they hold, [`Flash::content`] says.
    ///
    /// # Errors
    /// The back end's own; a wrapper may refuse addresses that were never programmed.
    fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        units: u32,
        cause: Cause,
        route: Route,
        tag: Tag,
    ) -> Result<Completion, Self::Error>;

    /// What a unit holds that has been read, or that its caller keeps in RAM: it takes no time and is not counted.
    ///
    /// # Errors
    /// The back end's own.
    fn content(&mut self, ppn: Ppn) -> Result<Self::Page, Self::Error>;

    /// Whether `page`, read from `ppn`, is what the map means there: something of `owner`. A device that stores no
    /// identities takes it as it is.
    ///
    /// # Errors
    /// The unit holds something else, which counts as a loss ([`Flash::is_loss`]).
    fn prove(&self, _ppn: Ppn, _owner: Owner, _page: &Self::Page) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether a unit of `owner` can be copied. Its flash page is read for that if it was not, and kept for the copy.
    ///
    /// # Errors
    /// What lies there cannot be read, or is not the owner's.
    fn prove_copy(&mut self, _from: Ppn, _owner: Owner) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Programs a whole flash page of a block that `stream` fills; `units` has one entry a slot, and padding alone makes
    /// the summary page of a block. `tags` are reported together.
    ///
    /// # Errors
    /// The back end's own; a wrapper may refuse a page out of order or not erased.
    fn program(
        &mut self,
        ready: Ready,
        page: PageId,
        units: &[Unit<Self::Page>],
        stream: Stream,
        route: Route,
        tags: &[Tag],
    ) -> Result<Completion, Self::Error>;

    /// Erases a block. A `background` erase may be suspended by host operations, where the part
    /// can, and is always reported by [`Flash::advance`] under `tag`, once its end has been reached.
    ///
    /// # Errors
    /// The back end's own.
    fn erase(
        &mut self,
        at: Time,
        block: BlockId,
        background: bool,
        tag: Tag,
    ) -> Result<Completion, Self::Error>;

    /// Makes everything programmed so far durable. Without a volatile cache there is nothing to do.
    ///
    /// # Errors
    /// The back end's own; what was programmed since the last barrier may be lost.
    fn barrier(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Old versions that ended at this instant or before are given up, and what holds them may be erased: a
    /// device that outlives its memory remembers that with the next barrier.
    fn window_begins(&mut self, _instant: u64) {}

    /// A unit holds something valid from now on, or nothing that is: a device that outlives its memory keeps that.
    #[inline(always)]
    fn validity_changed(&mut self, _ppn: Ppn) {}

    /// Lets time pass to `until` and appends what has been decided meanwhile to `done`.
    fn advance(&mut self, until: Time, done: &mut Vec<Finished>);

    /// From when on whatever serves this plane has nothing to do; `None` while something waits for
    /// it or the end of its work is open.
    fn idle_since(&self, plane: PlaneId) -> Option<Time>;

    /// The next instant at which [`Flash::advance`] may have something to decide, if anything is
    /// open; advancing to it makes progress.
    fn next_event(&self) -> Option<Time>;
}
