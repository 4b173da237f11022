//! Starts the processes of strands: one process of this program forks them on request. A fork takes a fraction of a
//! millisecond, where starting the program takes several, so that a thousand strands begin together.

use std::io::{self, IoSlice, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;

use super::child::run_child;
use super::engine_set::ChildCommandFactory;
use crate::transport::descriptors::receive_with_descriptors;

/// How long a process may take to exit once its input has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// The process that forks. Dropping it ends it, but not the processes that it has forked.
pub(super) struct ForkServer {
    process: Child,
    requests: Option<UnixStream>,
}

/// A forked process. It exits when its input ends.
pub(super) struct ForkedProcess {
    /// `None` if it had already exited.
    pidfd: Option<OwnedFd>,
}

impl ForkServer {
    // The process that forks has one thread. What it forks are children of it, and end with their input.
    pub(super) fn start(command: &ChildCommandFactory) -> io::Result<Self> {
        let (requests, stdin) = UnixStream::pair()?;
        let mut command = command()?;
        let process = command.stdin(Stdio::from(OwnedFd::from(stdin))).stdout(Stdio::null()).spawn()?;
        Ok(Self { process, requests: Some(requests) })
    }

    pub(super) fn fork(&mut self, input: UnixStream, output: PipeWriter) -> io::Result<ForkedProcess> {
        let exited = || io::Error::other("the process that starts strand processes has exited");
        let requests = self.requests.as_mut().ok_or_else(exited)?;
        let descriptors: [BorrowedFd<'_>; 2] = [input.as_fd(), output.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&*requests, &[IoSlice::new(&[1])], &mut ancillary, SendFlags::NOSIGNAL)?;
        let mut reply = [0; 4];
        requests.read_exact(&mut reply).map_err(|_| exited())?;
        match i32::from_le_bytes(reply) {
            pid @ 1.. => {
                let pid = Pid::from_raw(pid);
                Ok(ForkedProcess { pidfd: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) })
            }
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        self.requests = None;
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                // Ignored: the process may have exited meanwhile.
                let _: io::Result<()> = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for ForkedProcess {
    fn drop(&mut self) {
        let Some(pidfd) = &self.pidfd else { return };
        let timeout = Timespec { tv_sec: EXIT_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        let has_exited = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0);
        if !has_exited {
            // Ignored: the process may have exited meanwhile.
            let _: rustix::io::Result<()> = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}

/// Forks a process for each request at standard input, a UNIX socket, until that ends; each executes strands as
/// [`run_child`] does. Fails if a request is not of this protocol, or strands fail as in [`run_child`].
#[allow(unsafe_code)]
pub fn run_fork_server() -> io::Result<()> {
    // SAFETY: no handler is installed. The kernel then reaps the forked processes, for which nobody here waits.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let mut requests = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    while let Some([input, output]) = receive_request(&requests)? {
        // SAFETY: this process has one thread, so that the forked one may do whatever this one may.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(requests);
            for (descriptor, standard) in [(input, libc::STDIN_FILENO), (output, libc::STDOUT_FILENO)] {
                // SAFETY: both descriptors are open, and nothing else uses the standard ones, which are replaced.
                if unsafe { libc::dup2(descriptor.as_raw_fd(), standard) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            return run_child();
        }
        let reply = if pid > 0 { pid } else { -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN) };
        requests.write_all(&reply.to_le_bytes())?;
    }
    Ok(())
}

/// The input and output of the next process; `None` at the end.
fn receive_request(requests: &UnixStream) -> io::Result<Option<[OwnedFd; 2]>> {
    let (received, descriptors) = receive_with_descriptors(requests, &mut [0])?;
    if received == 0 {
        return Ok(None);
    }
    let missing = |_| io::Error::new(io::ErrorKind::InvalidData, "a request without two descriptors");
    descriptors.try_into().map(Some).map_err(missing)
}
