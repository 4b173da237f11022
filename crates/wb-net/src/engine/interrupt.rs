//! Interrupts a system call in which another thread of this process is blocked.
//!
//! A strand blocks in the kernel, like the programs that it stands for; to end a window or a run it has to leave the
//! call. Only a signal achieves that for every system call. Since a signal that arrives just before the call is lost,
//! the caller repeats the interrupt until the strand has responded. So no call needs a timeout or a preceding poll.

use std::sync::Once;

use rustix::thread::{Pid, gettid};

#[derive(Debug, Clone, Copy)]
pub(crate) struct InterruptHandle(Pid);

impl InterruptHandle {
    pub(crate) fn current_thread() -> Self {
        install_handler();
        Self(gettid())
    }

    /// Ends its blocking system call, if any, with EINTR. The thread must still run.
    #[allow(unsafe_code)]
    pub(crate) fn interrupt(self) {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: tgkill takes three numbers and touches no memory. A thread that has ended is not signalled, since
        // thread and process must belong together; the handler of this signal does nothing.
        unsafe {
            libc::syscall(libc::SYS_tgkill, process, self.0.as_raw_nonzero().get(), signal_number());
        }
    }
}

/// A real-time signal beyond the first ones, which other programs use.
fn signal_number() -> libc::c_int {
    libc::SIGRTMIN() + 7
}

#[allow(unsafe_code)]
fn install_handler() {
    extern "C" fn nothing(_: libc::c_int) {}
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the action is zeroed, which is a valid value of it, then given a handler that does nothing and so
        // is safe in a signal; without SA_RESTART blocked calls end with EINTR. Nothing else in this program uses the
        // signal.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal_number(), &action, std::ptr::null_mut());
        }
    });
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_blocked_in_a_read_is_interrupted() {
        let (mut one, _other) = UnixStream::pair().expect("a pair");
        let (handles_in, handles) = channel();
        let (done_in, done) = channel();
        let reader = thread::spawn(move || {
            handles_in.send(InterruptHandle::current_thread()).expect("the receiver exists");
            let read = one.read(&mut [0]);
            done_in.send(()).expect("the receiver exists");
            read
        });
        let thread = handles.recv().expect("the thread sends its handle");
        while done.recv_timeout(Duration::from_millis(1)).is_err() {
            thread.interrupt();
        }
        let error = reader.join().expect("the thread ends").expect_err("nothing to read");
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    }
}
