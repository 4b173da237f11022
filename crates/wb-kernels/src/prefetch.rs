//! Prefetching of cache lines.

macro_rules! prefetch {
    ($name:ident, $hint:ident, $levels:literal) => {
        #[doc = concat!("Fetches the cache line at an address, which need not be valid, into ", $levels, ".")]
        #[inline(always)]
        pub(crate) fn $name<T>(line: *const T) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: prefetching is part of SSE, hence of every x86-64, and never faults.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::$hint }>(line.cast());
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = line;
        }
    };
}

prefetch!(prefetch, _MM_HINT_T0, "all levels of the cache");
prefetch!(prefetch_to_second_level, _MM_HINT_T1, "the second level of the cache and those below");

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
