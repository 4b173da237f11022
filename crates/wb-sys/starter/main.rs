//! The starter: a program of a few kilobytes that creates the process of a workload and ends.
//!
//! The kernel keeps the largest resident set of a process across execve, with fork as with vfork, so that `/bin/true`
//! would seem to need as much memory as the process that executed it. A process created by this program begins with
//! next to none. It is a child of the process that launches, not of the starter, and keeps what was set up before:
//! descriptors, placement, folder, environment.
//!
//! Its arguments are the path of the program and then the arguments of that. `build.rs` compiles it, without the standard
//! library, whose start alone needs more memory than a small workload.

#![no_std]
#![no_main]

#[allow(dead_code, reason = "the launching process uses the rest")]
mod message;
mod system_calls;

use message::{EXIT_NOT_EXECUTED, LaunchStep, MESSAGE_SIZE, Message, SOCKET};
use system_calls::{CLOCK_GETTIME, CLONE, EXECVE, EXIT_GROUP, FCNTL, GETPID, PRCTL, READ, SETSID, WRITE, call};

/// The new process gets the starter's parent.
const CLONE_PARENT: usize = 0x8000;
const F_SETFD: usize = 2;
const FD_CLOEXEC: usize = 1;
const PR_SET_PDEATHSIG: usize = 1;
const SIGKILL: usize = 9;
const CLOCK_MONOTONIC: usize = 1;

/// Starts with the stack that the kernel has prepared: the number of arguments, pointers to them, null, pointers to the
/// environment, null.
///
/// # Safety
/// Must be called only by the entry point.
unsafe extern "C" fn start(stack: *const usize) -> ! {
    // SAFETY: the kernel's layout of the stack; a fork needs no memory of its own.
    unsafe {
        let (count, arguments) = (*stack, stack.add(1));
        let environment = arguments.add(count + 1);
        match call(CLONE, [CLONE_PARENT, 0, 0, 0, 0]) {
            Ok(0) => run_process(arguments, environment),
            Ok(_) => exit(0),
            Err(errno) => fail(LaunchStep::Process, errno),
        }
    }
}

/// Waits in the new process until it is released, and executes the program.
///
/// # Safety
/// The arguments must be arrays of pointers that end with a null.
unsafe fn run_process(arguments: *const usize, environment: *const usize) -> ! {
    let step = |number, arguments, step| {
        // SAFETY: none of these calls has a pointer.
        unsafe { call(number, arguments) }.unwrap_or_else(|errno| fail(step, errno))
    };
    send(Message::Created(step(GETPID, [0; 5], LaunchStep::Process) as u32));
    step(FCNTL, [SOCKET as usize, F_SETFD, FD_CLOEXEC, 0, 0], LaunchStep::Streams);
    step(SETSID, [0; 5], LaunchStep::Session);
    step(PRCTL, [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0], LaunchStep::ParentDeath);
    // From here on, the end of the parent is the end of the file below, or a signal.
    send(Message::Held);
    // Joining a cgroup waits in the kernel for 6 to 15 ms. So the clock is read here, when that and everything else is
    // done and only execve is left; whoever released the process wakes up only for what follows.
    let (mut byte, mut now) = (0u8, [0i64; 2]);
    // SAFETY: the pointers are those of live locals, and of what the kernel prepared.
    unsafe {
        if call(READ, [SOCKET as usize, (&raw mut byte) as usize, 1, 0, 0]) != Ok(1) {
            exit(EXIT_NOT_EXECUTED);
        }
        // It cannot fail for this clock.
        let _ = call(CLOCK_GETTIME, [CLOCK_MONOTONIC, (&raw mut now) as usize, 0, 0, 0]);
        send(Message::Started(now[0] as u64 * 1_000_000_000 + now[1] as u64));
        let (program, arguments) = (*arguments, arguments.add(1));
        match call(EXECVE, [program, arguments as usize, environment as usize, 0, 0]) {
            Ok(_) => exit(EXIT_NOT_EXECUTED),
            Err(errno) => fail(LaunchStep::Program, errno),
        }
    }
}

fn fail(step: LaunchStep, errno: u32) -> ! {
    send(Message::Failed(step as u32, errno));
    exit(EXIT_NOT_EXECUTED)
}

fn send(message: Message) {
    let bytes = message.encode();
    // SAFETY: the bytes are a live local. An error means that nobody listens: SIGPIPE has ended the process before.
    let _ = unsafe { call(WRITE, [SOCKET as usize, bytes.as_ptr() as usize, MESSAGE_SIZE, 0, 0]) };
}

fn exit(status: i32) -> ! {
    loop {
        // SAFETY: it has no pointers. It does not return.
        let _ = unsafe { call(EXIT_GROUP, [status as usize, 0, 0, 0, 0]) };
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    exit(EXIT_NOT_EXECUTED)
}
