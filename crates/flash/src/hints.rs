//! Hints about memory that is used at random. None ever changes a result.
//!
//! A replay touches the map, the object table and the block records at random. [`prefetch`] asks the
//! processor for a line some requests ahead, which hides most of the latency. [`on_large_pages`] asks the
//! system for large pages: with small ones nearly every touch would also miss the processor's cache
//! of address translations. A system without them ignores the wish.

/// Asks for the cache line of `slice[index]`; an index outside the slice is ignored.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = slice.get(index) {
        // SAFETY: a prefetch of any address is free of effects; this one is even valid.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// The same vector, on large pages if it is large and the system has them. To be called before its
/// memory is touched: on one that is new, or all zero.
pub fn on_large_pages<T>(mut table: Vec<T>) -> Vec<T> {
    #[cfg(target_os = "linux")]
    {
        /// No page of the system is larger than this, and no large page than that.
        const SMALL: usize = 1 << 16;
        const LARGE: usize = 1 << 21;
        let bytes = table.capacity() * size_of::<T>();
        if bytes >= LARGE {
            let begin = table.as_mut_ptr().cast::<u8>();
            let skipped = begin.align_offset(SMALL);
            let whole = (bytes - skipped) / SMALL * SMALL;
            // SAFETY: the range lies within the vector's allocation, and this advice changes neither
            // its content nor who may access it. A refusal is harmless.
            unsafe { libc::madvise(begin.add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }
    table
}
