//! The system calls around fork and exec that have no safe wrapper.
//!
//! Between fork and exec only async-signal-safe calls are allowed, because another thread may have
//! held the allocator's lock at the fork: everything is prepared in [`ExecPlan`] beforehand, and the child
//! neither allocates nor panics.
//!
//! The child shares the parent's memory until execve, as with vfork: no page tables are copied, and none of the
//! parent's pages is copied on its next write. The calling thread is suspended meanwhile. It executes the starter (see
//! [`super::starter`]), and has done nothing that the kernel counts as the workload's.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_char, c_int, c_long, c_ulong, c_void};

use super::starter::message::{EXIT_NOT_EXECUTED, LaunchStep, MESSAGE_SIZE, Message, SOCKET};

const MPOL_BIND: c_int = 2;
/// The argument with which personality(2) returns the current value and changes nothing.
const PERSONALITY_QUERY: c_ulong = 0xffff_ffff;
/// Size of the stack of a child that shares the parent's memory; it makes only a few shallow calls.
const CHILD_STACK_SIZE: usize = 64 << 10;

/// The arguments of the child's system calls, prepared before the fork.
pub(super) struct ExecPlan {
    /// Descriptor of the starter, above [`SOCKET`].
    pub(super) starter: RawFd,
    /// Arguments of the starter: the path of the program, then the program's arguments.
    pub(super) argv: CStringArray,
    /// The complete environment, as `NAME=VALUE`.
    pub(super) env: CStringArray,
    pub(super) cwd: CString,
    /// Descriptors that become standard input, output and error.
    pub(super) stdio: [RawFd; 3],
    /// Bit mask of the CPUs to run on; empty: no change.
    pub(super) cpu_mask: Vec<c_ulong>,
    /// Bit mask of the NUMA nodes to allocate memory on; empty: no change.
    pub(super) node_mask: Vec<c_ulong>,
    /// Whether transparent huge pages are disabled.
    pub(super) disable_huge_pages: bool,
    /// Whether address space layout randomisation is disabled.
    pub(super) disable_aslr: bool,
    /// The child's end of the socket.
    pub(super) socket: RawFd,
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

/// Executes the plan in a child that shares this process's memory until it calls execve or exits, which this thread
/// waits for; returns the child's id. As posix_spawn in glibc: the child has a stack of its own, and all signals are
/// blocked until it has reset their actions, because a handler would run in the parent's memory.
pub(super) fn fork_exec(plan: &ExecPlan) -> io::Result<u32> {
    let mut stack: Vec<u8> = Vec::with_capacity(CHILD_STACK_SIZE);
    // SAFETY: the signal sets are initialised before their use. The stack grows down from its end, which is aligned, and
    // lives as long as the child uses it, as do the arguments: with CLONE_VFORK, clone returns once the child has called
    // execve or has exited. The child calls nothing but `run_child`, of which only async-signal-safe calls are made, so
    // that it needs no lock that another thread may hold; it shares this thread's errno, which nobody else uses meanwhile.
    unsafe {
        let top = stack.as_mut_ptr().add(CHILD_STACK_SIZE);
        let top = top.sub(top.addr() % 16);
        let mut arguments = ChildArguments { plan: ptr::from_ref(plan), parent: libc::getpid() };
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
    plan: *const ExecPlan,
    parent: c_int,
}

extern "C" fn run_cloned_child(arguments: *mut c_void) -> c_int {
    // SAFETY: `fork_exec` passes arguments that live until the child has called execve or exited.
    unsafe {
        let arguments = &*arguments.cast::<ChildArguments>();
        run_child(&*arguments.plan, arguments.parent)
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

/// The id of any child of the calling thread, adopted ones included, that has ended and is left to be reaped; None when
/// there is none.
pub(super) fn find_ended() -> Option<u32> {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WNOTHREAD;
    // SAFETY: siginfo_t is plain numbers, for which zeros are valid; without a child that has ended the kernel leaves the
    // id at zero, with one it has set this field of the union.
    let pid = unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        if libc::waitid(libc::P_ALL, 0, &raw mut info, flags) == 0 { info.si_pid() } else { 0 }
    };
    (pid > 0).then(|| pid.cast_unsigned())
}

/// Runs the child: sets it up and executes the starter. Never returns.
///
/// # Safety
/// Must be called only in a freshly forked child.
unsafe fn run_child(plan: &ExecPlan, parent: c_int) -> ! {
    // SAFETY: async-signal-safe calls on prepared memory, in the child as the caller promises.
    unsafe {
        let failed = match set_up_child(plan, parent) {
            Err(step) => step,
            Ok(()) => {
                let (argv, env) = (plan.argv.as_ptr(), plan.env.as_ptr());
                libc::syscall(libc::SYS_execveat, plan.starter, c"".as_ptr(), argv, env, libc::AT_EMPTY_PATH);
                // The starter has the arguments of the program.
                if *libc::__errno_location() == libc::E2BIG { LaunchStep::Program } else { LaunchStep::Starter }
            }
        };
        let message = Message::Failed(failed as u32, (*libc::__errno_location()).cast_unsigned()).encode();
        libc::write(plan.socket, message.as_ptr().cast(), MESSAGE_SIZE);
        libc::_exit(EXIT_NOT_EXECUTED)
    }
}

/// Applies the settings that the new process inherits from the starter; after an error, errno is set by the failed
/// step.
///
/// # Safety
/// As [`run_child`].
unsafe fn set_up_child(plan: &ExecPlan, parent: c_int) -> Result<(), LaunchStep> {
    // SAFETY: as the caller promises; masks are passed with their own lengths.
    unsafe {
        reset_signals();
        step_result(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) as c_long, LaunchStep::ParentDeath)?;
        // If the parent died before this request, the signal will never be sent, and nobody is left to report to.
        if libc::getppid() != parent {
            libc::_exit(EXIT_NOT_EXECUTED);
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
        // The starter's end of the socket; dup2 of a descriptor to itself would leave it close-on-exec.
        let socket =
            if plan.socket == SOCKET { libc::fcntl(SOCKET, libc::F_SETFD, 0) } else { libc::dup2(plan.socket, SOCKET) };
        step_result(socket as c_long, LaunchStep::Streams)?;
        step_result(libc::chdir(plan.cwd.as_ptr()) as c_long, LaunchStep::Folder)
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

/// Converts the result of a system call, of which -1 is a failure of the step.
fn step_result(result: c_long, step: LaunchStep) -> Result<(), LaunchStep> {
    if result == -1 { Err(step) } else { Ok(()) }
}
