//! Prefetching of cache lines.

/// Fetches the cache line at an address, which need not be valid, into all levels of the cache.
#[inline(always)]
pub(crate) fn prefetch<T>(line: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT0 is part of SSE, hence of every x86-64, and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Fetches the cache line at an address, which need not be valid, into the second level of the cache and those below.
#[inline(always)]
pub(crate) fn prefetch_to_second_level<T>(line: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT1 is part of SSE, hence of every x86-64, and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_address_may_be_prefetched() {
        for address in [std::ptr::null::<u8>(), usize::MAX as *const u8] {
            super::prefetch(address);
            super::prefetch_to_second_level(address);
        }
    }
}
