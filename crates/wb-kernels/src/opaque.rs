//! Values the optimiser cannot see through. Costs no instruction.

use std::arch::asm;

/// Returns the pointer, while the compiler has to assume that memory may have been read and
/// written meanwhile: passes over unchanged memory cannot be merged or left out.
#[inline(always)]
pub(crate) fn pointer<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: no instruction at all; the pointer stays what it is.
    unsafe { asm!("/* {0} */", inout(reg) pointer, options(nostack, preserves_flags)) };
    pointer
}

macro_rules! number {
    ($name:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_mut))]
        pub(crate) fn $name(mut number: $type) -> $type {
            // SAFETY: no instruction at all; the number stays what it is.
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

number!(single, f32, "Returns the number in a register of its own: it cannot become part of a vector.");
number!(double, f64, "Returns the number in a register of its own: it cannot become part of a vector.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_stays_what_it_is() {
        let mut value = 1;
        let there = &raw mut value;
        assert_eq!(pointer(there), there);
        assert_eq!((single(1.5), double(-2.5)), (1.5, -2.5));
    }
}
