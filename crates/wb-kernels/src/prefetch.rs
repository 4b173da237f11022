//! Asking for a cache line before it is needed.

/// Asks for the cache line at an address, which need not be valid.
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

#[cfg(test)]
mod tests {
    #[test]
    fn any_address_will_do() {
        super::prefetch(std::ptr::null::<u8>());
        super::prefetch(usize::MAX as *const u8);
    }
}
