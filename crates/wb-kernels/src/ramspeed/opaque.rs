//! A fence for the optimiser between passes.

use std::arch::asm;

/// Returns the pointer, while the compiler has to assume that memory may have been read and
/// written meanwhile: passes over unchanged memory cannot be merged or left out. Costs no
/// instruction.
#[inline(always)]
pub(super) fn opaque<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: no instruction at all; the pointer stays what it is.
    unsafe { asm!("/* {0} */", inout(reg) pointer, options(nostack, preserves_flags)) };
    pointer
}

#[cfg(test)]
mod tests {
    use super::opaque;

    #[test]
    fn a_pointer_stays_what_it_is() {
        let mut value = 1;
        let pointer = &raw mut value;
        assert_eq!(opaque(pointer), pointer);
    }
}
