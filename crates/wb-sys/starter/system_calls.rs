//! The entry point and the system calls of each architecture, without a C library.

use core::arch::{asm, naked_asm};

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(crate) const READ: usize = 0;
    pub(crate) const WRITE: usize = 1;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const CLONE: usize = 56;
    pub(crate) const EXECVE: usize = 59;
    pub(crate) const FCNTL: usize = 72;
    pub(crate) const SETSID: usize = 112;
    pub(crate) const PRCTL: usize = 157;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const EXIT_GROUP: usize = 231;
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(crate) const FCNTL: usize = 25;
    pub(crate) const READ: usize = 63;
    pub(crate) const WRITE: usize = 64;
    pub(crate) const EXIT_GROUP: usize = 94;
    pub(crate) const CLOCK_GETTIME: usize = 113;
    pub(crate) const SETSID: usize = 157;
    pub(crate) const PRCTL: usize = 167;
    pub(crate) const GETPID: usize = 172;
    pub(crate) const CLONE: usize = 220;
    pub(crate) const EXECVE: usize = 221;
}

pub(crate) use numbers::*;

/// Where the kernel starts the program: passes the stack, which has the arguments, to [`crate::start`].
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {start}", "ud2", start = sym crate::start)
}

/// As for x86-64.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("mov x29, #0", "mov x30, #0", "mov x0, sp", "b {start}", start = sym crate::start)
}

/// Makes a system call; an error is a negated errno.
///
/// # Safety
/// As that of the call: its pointers must be valid.
pub(crate) unsafe fn call(number: usize, arguments: [usize; 5]) -> Result<usize, u32> {
    let [a, b, c, d, e] = arguments;
    let result: isize;
    // SAFETY: as the caller promises; the registers are those of the kernel's calling convention.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e,
            options(nostack),
        );
    }
    if result < 0 { Err(-result as u32) } else { Ok(result as usize) }
}
