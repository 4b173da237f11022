//! The system calls around fork and exec that have no safe wrapper.
//!
//! Between fork and exec only async-signal-safe calls are allowed, because another thread may have
//! held the allocator's lock at the fork: everything is prepared in [`ExecPlan`] beforehand, and the child
//! neither allocates nor panics.
//!
//! A child that waits for nothing shares the parent's memory until execve, as with vfork: no page tables are copied, and
//! none of the parent's pages is copied on its next write. The calling thread is suspended meanwhile.
//!
//! Two pipes connect the child with its parent. Through the *report* pipe the child sends the step that failed with its
//! errno; end of file without a report means success, because execve closes the child's end. A child with a *gate* first
//! reports [`STEP_HELD`] and then reads from the gate: one byte lets it call execve, end of file makes it exit.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_char, c_int, c_long, c_ulong, c_void};

use super::launch::LaunchStep;

/// Size of a report in bytes: the number of a step, or [`STEP_HELD`], and an errno, each of four bytes.
pub(super) const REPORT_SIZE: usize = 8;
/// The step number in the report of a child that is set up and waits at its gate; its errno is zero.
pub(super) const STEP_HELD: u32 = 1000;

const MPOL_BIND: c_int = 2;
/// The argument with which personality(2) returns the current value and changes nothing.
const PERSONALITY_QUERY: c_ulong = 0xffff_ffff;
/// Size of the stack of a child that shares the parent's memory; it makes only a few shallow calls.
const CHILD_STACK_SIZE: usize = 64 << 10;
/// Exit status of a child that does not execute its program, as in shells.
const EXIT_NOT_EXECUTED: c_int = 127;

/// The arguments of the child's system calls, prepared before the fork.
pub(super) struct ExecPlan<'a> {
    /// Path of the program.
    pub(super) program: CString,
    /// Arguments, beginning with the program's name.
    pub(super) argv: CStringArray,
    /// The complete environment, as `NAME=VALUE`.
    pub(super) env: CStringArray,
    /// Working folder.
    pub(super) cwd: CString,
    /// Descriptors that become standard input, output and error.
    pub(super) stdio: [RawFd; 3],
    /// Descriptors of the `cgroup.procs` files of the groups to join, open for writing.
    pub(super) cgroup_procs: Vec<RawFd>,
    /// Bit mask of the CPUs to run on; empty: no change.
    pub(super) cpu_mask: Vec<c_ulong>,
    /// Bit mask of the NUMA nodes to allocate memory on; empty: no change.
    pub(super) node_mask: Vec<c_ulong>,
    /// Whether transparent huge pages are disabled.
    pub(super) disable_huge_pages: bool,
    /// Whether address space layout randomisation is disabled.
    pub(super) disable_aslr: bool,
    /// The child's end of the gate, if it is to wait there.
    pub(super) gate_read_end: Option<RawFd>,
    /// The parent's end of the gate, of which the child inherits a copy.
    pub(super) gate_write_end: Option<RawFd>,
    /// The child's end of the report pipe.
    pub(super) report_write_end: RawFd,
    /// Where the child stores its start time; see [`SharedStartTime`].
    pub(super) start_time: &'a AtomicU64,
}

/// Strings with an array of pointers to them that ends with a null, as execve expects.
pub(super) struct CStringArray {
    /// Owns what the pointers point to: the heap buffers stay in place when the strings are moved.
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl CStringArray {
    /// Creates the array of pointers to these strings.
    pub(super) fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { _strings: strings, pointers }
    }

    fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// Memory that a child shares with its parent until execve, where the child stores its start time: that needs no
/// system call and wakes up no thread that would compete for the CPU.
#[derive(Debug)]
pub(super) struct SharedStartTime(NonNull<AtomicU64>);

impl SharedStartTime {
    const SIZE: usize = mem::size_of::<AtomicU64>();

    /// Maps the memory.
    pub(super) fn new() -> io::Result<Self> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping replaces nothing.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), Self::SIZE, protection, flags, -1, 0) };
        match NonNull::new(mapping.cast()) {
            Some(slot) if mapping != libc::MAP_FAILED => Ok(Self(slot)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The number that the child stores.
    pub(super) fn slot(&self) -> &AtomicU64 {
        // SAFETY: the mapping is large enough, page-aligned and zeroed, and lives as long as `self`.
        unsafe { self.0.as_ref() }
    }

    /// When the child was about to call execve, on CLOCK_MONOTONIC, in nanoseconds; zero until then.
    pub(super) fn monotonic_ns(&self) -> u64 {
        self.slot().load(Ordering::Acquire)
    }
}

impl Drop for SharedStartTime {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and `slot` lends it for no longer than `self` lives; the child has its own.
        unsafe { libc::munmap(self.0.as_ptr().cast(), Self::SIZE) };
    }
}

/// Decodes a report into its step number and errno.
pub(super) fn decode_report(bytes: [u8; REPORT_SIZE]) -> (u32, c_int) {
    let [a, b, c, d, e, f, g, h] = bytes;
    (u32::from_ne_bytes([a, b, c, d]), c_int::from_ne_bytes([e, f, g, h]))
}

/// Creates a child that executes the plan. Returns its id.
pub(super) fn fork_exec(plan: &ExecPlan) -> io::Result<u32> {
    // A child that waits at its gate must not suspend this thread, which is to release it.
    if plan.gate_read_end.is_some() { fork(plan) } else { clone_with_shared_memory(plan) }
}

/// Forks, and executes the plan in the child.
fn fork(plan: &ExecPlan) -> io::Result<u32> {
    // SAFETY: getpid cannot fail; fork has no preconditions, and the child calls nothing but `run_child`,
    // which restricts itself to async-signal-safe calls. The plan owns or borrows whatever its pointers point to.
    unsafe {
        let parent = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => run_child(plan, parent),
            pid => Ok(pid.cast_unsigned()),
        }
    }
}

/// Executes the plan in a child that shares this process's memory until it calls execve or exits, which this thread
/// waits for. As posix_spawn in glibc: the child has a stack of its own, and all signals are blocked until it has reset
/// their actions, because a handler would run in the parent's memory.
fn clone_with_shared_memory(plan: &ExecPlan) -> io::Result<u32> {
    let mut stack: Vec<u8> = Vec::with_capacity(CHILD_STACK_SIZE);
    // SAFETY: the signal sets are initialised before their use. The stack grows down from its end, which is aligned, and
    // lives as long as the child uses it, as do the arguments: with CLONE_VFORK, clone returns once the child has called
    // execve or has exited. The child calls nothing but `run_child`, of which only async-signal-safe calls are made, so
    // that it needs no lock that another thread may hold; it shares this thread's errno, which nobody else uses meanwhile.
    unsafe {
        let top = stack.as_mut_ptr().add(CHILD_STACK_SIZE);
        let top = top.sub(top.addr() % 16);
        let mut arguments = ChildArguments { plan: ptr::from_ref(plan).cast(), parent: libc::getpid() };
        let (mut all, mut previous): (libc::sigset_t, libc::sigset_t) = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut previous);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(run_cloned_child, top.cast(), flags, (&raw mut arguments).cast());
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const previous, ptr::null_mut());
        if pid == -1 { Err(error) } else { Ok(pid.cast_unsigned()) }
    }
}

/// What a child that shares the parent's memory is given.
struct ChildArguments {
    /// The plan, without its lifetime, which a C function cannot have.
    plan: *const c_void,
    parent: c_int,
}

extern "C" fn run_cloned_child(arguments: *mut c_void) -> c_int {
    // SAFETY: `clone_with_shared_memory` passes arguments that live until the child has called execve or exited.
    unsafe {
        let arguments = &*arguments.cast::<ChildArguments>();
        run_child(&*arguments.plan.cast::<ExecPlan>(), arguments.parent)
    }
}

/// Waits until a child has ended, and discards its status.
pub(super) fn wait_and_discard(pid: u32) {
    // SAFETY: a null status is allowed.
    while unsafe { libc::waitpid(pid.cast_signed(), ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Reaps a child that has ended: `pid`, or any for -1. Returns its id, wait status and resource usage.
///
/// Without WNOHANG in `flags` it waits for one to end. None if there is no such child, or with WNOHANG none that has
/// ended; also if a signal interrupts the wait.
pub(super) fn wait4(pid: c_int, flags: c_int) -> Option<(u32, c_int, libc::rusage)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeros are valid; both pointers point to live locals.
    let (reaped, usage) = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        (libc::wait4(pid, &raw mut status, flags, &raw mut usage), usage)
    };
    (reaped > 0).then(|| (reaped.cast_unsigned(), status, usage))
}

/// Runs the child: sets it up, waits at the gate if there is one, and executes the program. Never returns.
///
/// # Safety
/// Must be called only in a freshly forked child.
unsafe fn run_child(plan: &ExecPlan, parent: c_int) -> ! {
    // SAFETY: async-signal-safe calls on prepared memory, in the child as the caller promises.
    unsafe {
        let failed = match set_up_child(plan, parent) {
            Err(step) => step,
            Ok(()) => {
                wait_at_gate(plan);
                record_start_time(plan);
                libc::execve(plan.program.as_ptr(), plan.argv.as_ptr(), plan.env.as_ptr());
                LaunchStep::Program
            }
        };
        send_report(plan, failed as u32, *libc::__errno_location());
        libc::_exit(EXIT_NOT_EXECUTED)
    }
}

/// Applies everything but the gate and the program; after an error, errno is that of the failed step.
///
/// # Safety
/// As [`run_child`].
unsafe fn set_up_child(plan: &ExecPlan, parent: c_int) -> Result<(), LaunchStep> {
    // SAFETY: as the caller promises; masks are passed with their own lengths.
    unsafe {
        step_result(libc::setsid() as c_long, LaunchStep::Session)?;
        reset_signals();
        step_result(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) as c_long, LaunchStep::ParentDeath)?;
        // If the parent died before this request, the signal will never be sent, and nobody is left to report to.
        if libc::getppid() != parent {
            libc::_exit(EXIT_NOT_EXECUTED);
        }
        for fd in &plan.cgroup_procs {
            // 0 stands for the writing process.
            step_result(libc::write(*fd, c"0".as_ptr().cast(), 1) as c_long, LaunchStep::Cgroup)?;
        }
        if !plan.node_mask.is_empty() {
            // One more than the number of bits: set_mempolicy(2) reads `maxnode - 1` bits of the mask.
            let maxnode = plan.node_mask.len() * c_ulong::BITS as usize + 1;
            let result = libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, plan.node_mask.as_ptr(), maxnode);
            step_result(result, LaunchStep::MemoryNodes)?;
        }
        if !plan.cpu_mask.is_empty() {
            let bytes = mem::size_of_val(plan.cpu_mask.as_slice());
            let result = libc::syscall(libc::SYS_sched_setaffinity, 0, bytes, plan.cpu_mask.as_ptr());
            step_result(result, LaunchStep::Cpus)?;
        }
        if plan.disable_huge_pages {
            step_result(libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) as c_long, LaunchStep::HugePages)?;
        }
        if plan.disable_aslr {
            let personality = libc::personality(PERSONALITY_QUERY);
            step_result(personality as c_long, LaunchStep::Aslr)?;
            let without_aslr = personality.cast_unsigned() as c_ulong | libc::ADDR_NO_RANDOMIZE as c_ulong;
            step_result(libc::personality(without_aslr) as c_long, LaunchStep::Aslr)?;
        }
        // Descriptors that this process inherited without close-on-exec must not reach the program. Kernels before
        // 5.11 lack the flag, those before 5.9 the call; the program then inherits them.
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for (target, fd) in plan.stdio.iter().enumerate() {
            step_result(libc::dup2(*fd, target as c_int) as c_long, LaunchStep::Streams)?;
        }
        step_result(libc::chdir(plan.cwd.as_ptr()) as c_long, LaunchStep::Folder)
    }
}

/// Returns once the parent has released the child, at once without a gate; exits if the parent closes the gate.
///
/// # Safety
/// As [`run_child`].
unsafe fn wait_at_gate(plan: &ExecPlan) {
    let Some(gate) = plan.gate_read_end else { return };
    // SAFETY: as the caller promises; the byte is a live local.
    unsafe {
        // With the child's own copy of the write end open, the gate would never report end of file, and the child
        // would wait forever if the parent died.
        if let Some(end) = plan.gate_write_end {
            libc::close(end);
        }
        send_report(plan, STEP_HELD, 0);
        let mut byte = 0u8;
        loop {
            match libc::read(gate, (&raw mut byte).cast(), 1) {
                1 => return,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(EXIT_NOT_EXECUTED),
            }
        }
    }
}

/// Records the time right before execve.
///
/// # Safety
/// As [`run_child`].
unsafe fn record_start_time(plan: &ExecPlan) {
    // SAFETY: clock_gettime is async-signal-safe, and `now` is a live local.
    unsafe {
        let mut now: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        let ns = now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned();
        plan.start_time.store(ns, Ordering::Release);
    }
}

/// Resets the standard signals (not the real-time signals) to their default actions, then unblocks all: the program
/// would inherit blocked and ignored signals, and Rust ignores SIGPIPE.
///
/// # Safety
/// As [`run_child`].
unsafe fn reset_signals() {
    // SAFETY: an action of zeros is the default one with no flags; the set is initialised by sigemptyset before its use.
    unsafe {
        let default: libc::sigaction = mem::zeroed();
        for signal in 1..32 {
            // Fails for SIGKILL and SIGSTOP, whose action is always the default.
            libc::sigaction(signal, &raw const default, ptr::null_mut());
        }
        let mut empty: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut empty);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const empty, ptr::null_mut());
    }
}

/// Sends a report, which a pipe passes on as a whole.
///
/// # Safety
/// As [`run_child`].
unsafe fn send_report(plan: &ExecPlan, step: u32, errno: c_int) {
    let [a, b, c, d] = step.to_ne_bytes();
    let [e, f, g, h] = errno.to_ne_bytes();
    let bytes = [a, b, c, d, e, f, g, h];
    // SAFETY: the bytes are a live local.
    unsafe { libc::write(plan.report_write_end, bytes.as_ptr().cast(), REPORT_SIZE) };
}

/// Converts the result of a system call, of which -1 is a failure of the step.
fn step_result(result: c_long, step: LaunchStep) -> Result<(), LaunchStep> {
    if result == -1 { Err(step) } else { Ok(()) }
}
