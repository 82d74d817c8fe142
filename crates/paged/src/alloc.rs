//! The global allocator: that of the system, and from [`start`] on the scratch file for what is large.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;

use crate::pager::Pager;
use crate::region::{BLOCK, Region, RegionError};

/// What is at least so many bytes long lies in the scratch file. Tables that grow do so in pieces of 80 KiB or more.
pub const LEAST: usize = BLOCK;

static REGION: Region = Region::new();

/// The global allocator.
///
/// Invariant: a pointer is given back to whom it came from, which its address tells.
pub struct Paged;

/// From now on what is large lies in a scratch file in `directory`, and a thread keeps the memory of the process
/// below `limit` bytes, as far as that is in tables. The file has space for `room` bytes at once; what does not fit in
/// it lies in memory as before. Once for a process.
pub fn start(directory: &Path, limit: u64, room: u64) -> Result<Pager, RegionError> {
    let before = Pager::new(&REGION, limit);
    REGION.open(directory, room)?;
    Ok(before)
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= LEAST && layout.align() <= BLOCK && REGION.is_open()
}

// SAFETY: what comes from the system goes back to it, and its promises are its own. A range of the region is as long
// and as aligned as asked for (a block's alignment is at least the layout's), belongs to one owner until it is given
// back, stays mapped for ever, and is zero where it is said to be. Nothing here panics or allocates.
unsafe impl GlobalAlloc for Paged {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = is_large(layout).then(|| REGION.take(layout.size()));
        match taken.flatten() {
            Some(taken) => taken.start,
            // SAFETY: as the caller says.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let taken = is_large(layout).then(|| REGION.take(layout.size()));
        let Some(taken) = taken.flatten() else {
            // SAFETY: as the caller says.
            return unsafe { System.alloc_zeroed(layout) };
        };
        // SAFETY: the range is this call's alone, and as long as the layout says.
        unsafe {
            if !taken.is_zero && !REGION.clear(taken.start, layout.size()) {
                taken.start.write_bytes(0, layout.size());
            }
        }
        taken.start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller says, it was given out with this layout, by whom its address tells.
        unsafe {
            match REGION.contains(start) {
                true => REGION.give_back(start, layout.size()),
                false => System.dealloc(start, layout),
            }
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that size and alignment make a layout.
        let to = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (from_region, to_region) = (REGION.contains(start), is_large(to));
        // SAFETY: as the caller says; what is copied lies in both ranges, which are different ones.
        unsafe {
            if !from_region && !to_region {
                return System.realloc(start, layout, size);
            }
            if from_region && to_region && REGION.resize(start, layout.size(), size) {
                return start;
            }
            let moved = self.alloc(to);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(start, layout.size().min(size));
                self.dealloc(start, layout);
            }
            moved
        }
    }
}
