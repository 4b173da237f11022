//! Values that are opaque to the optimiser, at the cost of no instruction.

use std::arch::asm;

/// Returns the pointer and makes the compiler assume that memory was read and written meanwhile: passes over unchanged
/// memory can neither be merged nor eliminated.
#[inline(always)]
pub(crate) fn pointer<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: emits no instruction; the pointer is unchanged.
    unsafe { asm!("/* {0} */", inout(reg) pointer, options(nostack, preserves_flags)) };
    pointer
}

macro_rules! number {
    ($name:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_mut))]
        pub(crate) fn $name(mut number: $type) -> $type {
            // SAFETY: emits no instruction; the number is unchanged.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                asm!("/* {0} */", inout(xmm_reg) number, options(pure, nomem, nostack, preserves_flags));
            }
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            unsafe {
                asm!("/* {0} */", inout(vreg) number, options(pure, nomem, nostack, preserves_flags));
            }
            number
        }
    };
}

number!(single, f32, "Returns the number in a register of its own, so that it cannot become part of a vector.");
number!(double, f64, "Returns the number in a register of its own, so that it cannot become part of a vector.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_unchanged() {
        let mut value = 1;
        let address = &raw mut value;
        assert_eq!(pointer(address), address);
        assert_eq!((single(1.5), double(-2.5)), (1.5, -2.5));
    }
}
