//! The system calls around fork and exec that have no safe wrapper.
//!
//! Between fork and exec only async-signal-safe calls are allowed, because another thread may have
//! held the allocator's lock at the fork: everything is prepared in [`ExecPlan`] beforehand, and the child
//! neither allocates nor panics.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_char, c_int, c_long, c_ulong};

use super::launch::LaunchStep;

/// The length of a report in bytes: a step and an errno, or [`REPORT_HELD`] and zero.
pub(super) const REPORT_LEN: usize = 8;
/// The step number of a process that is placed and waits at the gate.
pub(super) const REPORT_HELD: u32 = 1000;

const MPOL_BIND: c_int = 2;

/// The arguments of the child's system calls, prepared before the fork. The vectors of pointers end with a null and
/// point into strings that outlive the call.
pub(super) struct ExecPlan {
    pub(super) program: CString,
    pub(super) argv: Vec<*const c_char>,
    pub(super) env: Vec<*const c_char>,
    pub(super) cwd: CString,
    pub(super) streams: [RawFd; 3],
    pub(super) join: Vec<RawFd>,
    pub(super) cpus: Vec<c_ulong>,
    pub(super) nodes: Vec<c_ulong>,
    pub(super) no_huge_pages: bool,
    pub(super) no_aslr: bool,
    pub(super) gate: Option<RawFd>,
    pub(super) gate_write_end: Option<RawFd>,
    pub(super) report: RawFd,
    pub(super) start: NonNull<AtomicU64>,
}

/// The start time of a process, in memory that it shares with its parent until execve: recording it there
/// takes no system call and wakes up no thread that would compete for the CPU.
#[derive(Debug)]
pub(super) struct StartTime(NonNull<AtomicU64>);

impl StartTime {
    const LENGTH: usize = mem::size_of::<AtomicU64>();

    /// Maps shared memory for a start time.
    pub(super) fn new() -> io::Result<Self> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping replaces nothing.
        let page = unsafe { libc::mmap(ptr::null_mut(), Self::LENGTH, protection, flags, -1, 0) };
        match NonNull::new(page.cast()) {
            Some(cell) if page != libc::MAP_FAILED => Ok(Self(cell)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The cell that the child writes.
    pub(super) fn cell(&self) -> NonNull<AtomicU64> {
        self.0
    }

    /// When the child was about to call execve, by CLOCK_MONOTONIC in nanoseconds; zero before.
    pub(super) fn ns(&self) -> u64 {
        // SAFETY: the mapping is large enough, page-aligned and zeroed, and lives as long as `self`.
        unsafe { self.0.as_ref() }.load(Ordering::Acquire)
    }
}

impl Drop for StartTime {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and no pointer of this process into it is left; the child has its own.
        unsafe { libc::munmap(self.0.as_ptr().cast(), Self::LENGTH) };
    }
}

/// Decodes a report into its step number and errno.
pub(super) fn decode(bytes: [u8; REPORT_LEN]) -> [u32; 2] {
    let number = |i: usize| u32::from_ne_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
    [number(0), number(4)]
}

/// Forks; the child executes the plan.
pub(super) fn fork_exec(plan: &ExecPlan) -> io::Result<u32> {
    // SAFETY: getpid cannot fail; fork has no preconditions, and the child calls nothing but `run_child`,
    // which restricts itself to async-signal-safe calls.
    unsafe {
        let parent = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => run_child(plan, parent),
            pid => Ok(pid.cast_unsigned()),
        }
    }
}

/// Waits for one child that has ended or is about to.
pub(super) fn reap_one(pid: u32) {
    // SAFETY: a null status is allowed.
    while unsafe { libc::waitpid(pid.cast_signed(), ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Reaps one child that has ended: `pid`, or any for -1. None when no such child has ended.
pub(super) fn wait4(pid: c_int, flags: c_int) -> Option<(u32, c_int, libc::rusage)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeros are valid; both pointers are to live locals.
    let (found, usage) = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        (libc::wait4(pid, &raw mut status, flags, &raw mut usage), usage)
    };
    (found > 0).then(|| (found.cast_unsigned(), status, usage))
}

/// The child: applies its placement, waits at the gate, executes the program. Never returns.
///
/// # Safety
/// Must be called only in a freshly forked child, with a plan whose pointers are valid.
unsafe fn run_child(plan: &ExecPlan, parent: c_int) -> ! {
    // SAFETY: async-signal-safe calls on prepared memory, as the caller promises.
    unsafe {
        let step = match apply_placement(plan, parent) {
            Err(step) => step,
            Ok(()) => match wait_at_gate(plan) {
                Err(step) => step,
                Ok(()) => {
                    record_start_time(plan);
                    libc::execve(plan.program.as_ptr(), plan.argv.as_ptr(), plan.env.as_ptr());
                    LaunchStep::Program
                }
            },
        };
        report(plan, step as u32, *libc::__errno_location());
        libc::_exit(127)
    }
}

/// # Safety
/// As [`run_child`].
unsafe fn apply_placement(plan: &ExecPlan, parent: c_int) -> Result<(), LaunchStep> {
    // SAFETY: as the caller promises; masks are passed with their own lengths.
    unsafe {
        check(libc::setsid() as c_long, LaunchStep::Session)?;
        default_signals();
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) as c_long, LaunchStep::ParentDeath)?;
        // If the parent has died before this request, the signal would never be sent.
        if libc::getppid() != parent {
            return Err(LaunchStep::ParentDeath);
        }
        for fd in &plan.join {
            check(libc::write(*fd, c"0".as_ptr().cast(), 1) as c_long, LaunchStep::Cgroup)?;
        }
        if !plan.nodes.is_empty() {
            // One more than the number of bits: the kernel expects the exclusive end of the mask.
            let bits = plan.nodes.len() * c_ulong::BITS as usize + 1;
            let result = libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, plan.nodes.as_ptr(), bits);
            check(result, LaunchStep::MemoryNodes)?;
        }
        if !plan.cpus.is_empty() {
            let bytes = mem::size_of_val(plan.cpus.as_slice());
            check(libc::syscall(libc::SYS_sched_setaffinity, 0, bytes, plan.cpus.as_ptr()), LaunchStep::Cpus)?;
        }
        if plan.no_huge_pages {
            check(libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) as c_long, LaunchStep::HugePages)?;
        }
        if plan.no_aslr {
            let personality = libc::personality(0xffff_ffff);
            check(personality as c_long, LaunchStep::Aslr)?;
            let without_aslr = personality.cast_unsigned() as c_ulong | libc::ADDR_NO_RANDOMIZE as c_ulong;
            check(libc::personality(without_aslr) as c_long, LaunchStep::Aslr)?;
        }
        // Descriptors that this process inherited without close-on-exec must not reach the program. Kernels before
        // 5.11 lack the call; the program then inherits them.
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for (target, fd) in plan.streams.iter().enumerate() {
            check(libc::dup2(*fd, target as c_int) as c_long, LaunchStep::Streams)?;
        }
        check(libc::chdir(plan.cwd.as_ptr()) as c_long, LaunchStep::Folder)
    }
}

/// # Safety
/// As [`run_child`].
unsafe fn wait_at_gate(plan: &ExecPlan) -> Result<(), LaunchStep> {
    let Some(gate) = plan.gate else { return Ok(()) };
    // SAFETY: as the caller promises; the byte is a live local.
    unsafe {
        // The child's copy of the write end would keep the gate open forever when the parent dies.
        if let Some(end) = plan.gate_write_end {
            libc::close(end);
        }
        report(plan, REPORT_HELD, 0);
        let mut byte = 0u8;
        loop {
            match libc::read(gate, (&raw mut byte).cast(), 1) {
                1 => return Ok(()),
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(127),
            }
        }
    }
}

/// Records the time right before execve.
///
/// # Safety
/// As [`run_child`].
unsafe fn record_start_time(plan: &ExecPlan) {
    // SAFETY: clock_gettime is async-signal-safe, and `now` is a live local; the cell is valid as the caller promises.
    unsafe {
        let mut now: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        let ns = now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned();
        plan.start.as_ref().store(ns, Ordering::Release);
    }
}

/// Resets signal dispositions: Rust ignores SIGPIPE, and the program would inherit blocked and ignored signals.
///
/// # Safety
/// As [`run_child`].
unsafe fn default_signals() {
    // SAFETY: the set is initialised by sigemptyset before its use.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// # Safety
/// As [`run_child`].
unsafe fn report(plan: &ExecPlan, step: u32, errno: c_int) {
    let [a, b, c, d] = step.to_ne_bytes();
    let [e, f, g, h] = errno.to_ne_bytes();
    let bytes = [a, b, c, d, e, f, g, h];
    // SAFETY: a pipe accepts eight bytes atomically; the bytes are a live local.
    unsafe { libc::write(plan.report, bytes.as_ptr().cast(), REPORT_LEN) };
}

fn check(result: c_long, step: LaunchStep) -> Result<(), LaunchStep> {
    if result == -1 { Err(step) } else { Ok(()) }
}
