//! The media of an array, opened and locked, and the element on them.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flashlore_array::ArrayError;
use flashlore_array::icash::{self, ICash, Kept, lba};
use flashlore_medium::{Access, FileMedium, Medium, Mode, Overlay, Piece, Pieced};

use super::create::memory_needed;
use super::description::Description;
use crate::error::ServeError;
use crate::home::{DESCRIPTION, Home};
use crate::memory::{available, refuse_more_than};
use crate::served::LastUse;
use crate::troubles::watched;

/// The slow medium: its file or device, whose parts may lie in another order than the array counts them.
pub(super) type Slow = Pieced<Arc<FileMedium>>;

/// The media of an array, locked.
pub(super) fn media(
    home: &Home,
    mode: Mode,
    access: Access,
) -> Result<(Description, FileMedium, Slow), ServeError> {
    let (description, slow) = slow(home, mode, access)?;
    let fast = fast(&description, &slow, mode, access)?;
    Ok((description, fast, slow))
}

/// The description of an array, and the file or device of its slow medium, locked. Whoever changes the description has
/// this lock, so it stays as it is until the file is given up.
pub(super) fn locked(
    home: &Home,
    mode: Mode,
    access: Access,
) -> Result<(Description, Arc<FileMedium>), ServeError> {
    loop {
        let description = Description::load(home)?;
        let medium = FileMedium::open_for(&description.slow, mode, access)?;
        // It may have been another one until the lock was there.
        if Description::load(home)? == description {
            return Ok((description, Arc::new(medium)));
        }
    }
}

/// The description of an array and its slow medium, locked.
///
/// # Errors
/// It is not there, no part of this array, or not all of one that a disk image becomes or that is left.
pub(super) fn slow(
    home: &Home,
    mode: Mode,
    access: Access,
) -> Result<(Description, Slow), ServeError> {
    Description::load(home)?.demand_whole()?;
    let (description, file) = locked(home, mode, access)?;
    description.demand_whole()?;
    let path = &description.slow;
    let medium = pieced(file, &description.pieces(), path)?;
    demand_part(&medium, path, &description)?;
    Ok((description, medium))
}

/// The fast medium beside a slow one, locked; and there is the memory to open the array.
pub(super) fn fast(
    description: &Description,
    slow: &Slow,
    mode: Mode,
    access: Access,
) -> Result<FileMedium, ServeError> {
    let path = &description.fast;
    let found = icash::find(slow);
    let opened = FileMedium::open_for(path, mode, access).map_err(ServeError::from);
    let opened = opened.and_then(|medium| {
        demand_part(&medium, path, description)?;
        Ok(medium)
    });
    let medium = opened.map_err(|error| {
        let is_ordered = found.as_ref().is_some_and(|found| found.shape.journal_blocks > 0);
        match is_ordered {
            true => ServeError::Refused(format!(
                "{error}; an older state can be read from the slow medium: serve, mount or export it with --slow-alone, \
                 or give the array a new fast medium: flashlore array replace-fast"
            )),
            false if error.is_missing() => ServeError::Refused(format!(
                "{error}; if the fast medium is lost, the array gets a new one: flashlore array replace-fast"
            )),
            false => error,
        }
    })?;
    let needed = found.map(|found| memory_needed(&found.shape, description.options()));
    refuse_more_than(
        available(),
        ("open it takes up to", needed.unwrap_or(0)),
        "virtual_blocks and segments in array.json may be less",
    )?;
    Ok(medium)
}

/// A medium behind the pieces that its description names.
pub(super) fn pieced(
    medium: Arc<FileMedium>,
    pieces: &[Piece],
    path: &Path,
) -> Result<Slow, ServeError> {
    let made = Pieced::new(medium, pieces);
    made.map_err(|why| {
        ServeError::Refused(format!(
            "slow_pieces in {DESCRIPTION} do not fit {}: {why}",
            path.display()
        ))
    })
}

/// Refuses a medium that is no part of the array.
fn demand_part(
    medium: &dyn Medium,
    path: &Path,
    description: &Description,
) -> Result<(), ServeError> {
    match icash::find(medium) {
        Some(found) if description.is_of(found.id) => Ok(()),
        found => Err(ServeError::Refused(format!(
            "{} holds {}, expected a part of this array",
            path.display(),
            match found {
                Some(_) => "a part of another array",
                None => "no part of an array",
            }
        ))),
    }
}

/// Opens the element on the media of an array; those that are to be looked at are not written.
pub(super) fn element(
    home: &Home,
    description: &Description,
    fast: FileMedium,
    slow: Slow,
    access: Access,
) -> Result<ICash, ServeError> {
    let (fast, slow) = (
        watched(fast, home.troubles()),
        watched(slow, home.troubles()),
    );
    let media: (Arc<dyn Medium>, Arc<dyn Medium>) = match access {
        Access::Change => (Arc::new(fast), Arc::new(slow)),
        Access::Look => (looked_at(fast), looked_at(slow)),
    };
    let opened = ICash::open(media.0, media.1, description.options().clone());
    let mut element = opened.map_err(|error| match error {
        ArrayError::Stale { fast, slow } => stale(description, fast, slow),
        other => ServeError::from(other),
    })?;
    element.tell_time(seconds);
    Ok(element)
}

/// The same, and how whoever used the array last left it.
pub(super) fn element_and_last_use(
    home: &Home,
    description: &Description,
    fast: FileMedium,
    slow: Slow,
    access: Access,
) -> Result<(ICash, LastUse), ServeError> {
    // Opening it makes a fresh medium one of the array.
    let is_fresh = icash::find(&fast).is_some_and(|found| found.is_fresh);
    let element = element(home, description, fast, slow, access)?;
    let last_use = LastUse::of(element.was_closed(), is_fresh);
    Ok((element, last_use))
}

/// How many of some blocks of a machine hold something.
pub(super) fn holding(
    element: &ICash,
    machine: u8,
    blocks: std::ops::Range<u64>,
) -> Result<u64, ArrayError> {
    let mut count = 0;
    for block in blocks {
        count += u64::from(element.kept(lba(machine, block))? != Kept::Nothing);
    }
    Ok(count)
}

/// The wall clock, in seconds since 1970; 0 where that is no number of 32 bits.
fn seconds() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u32::try_from(since.as_secs()).unwrap_or(0))
}

/// One of the media is an older copy of itself.
fn stale(description: &Description, fast: u32, slow: u32) -> ServeError {
    let (fast, slow) = (
        (description.fast.display(), fast),
        (description.slow.display(), slow),
    );
    let (older, newer) = match fast.1 < slow.1 {
        true => (fast, slow),
        false => (slow, fast),
    };
    ServeError::Refused(format!(
        "{} is an older copy of itself: it is of session {} of the array, {} is of session {}. Nothing was written. Put \
         the present one in its place, or copies of both that were made at one time while the array was closed; \
         docs/array-volume.md says what else helps",
        older.0, older.1, newer.0, newer.1
    ))
}

/// What lies on a medium that is only looked at.
fn looked_at<M: Medium + 'static>(medium: M) -> Arc<dyn Medium> {
    Arc::new(Overlay::new(medium))
}
