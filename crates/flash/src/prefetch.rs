//! A hint to the processor that a cache line will be needed soon.
//!
//! A replay touches the map, the object table and the block records at random; asking for the lines
//! some requests ahead hides most of the memory latency. The hint never changes a result.

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
