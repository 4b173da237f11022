//! Launches processes. Placement is applied by a child's own system calls between fork and exec, so that nothing else is
//! affected. That child executes the starter, whose child becomes the process: the kernel counts the memory of whoever
//! calls execve as that of the program, and this process may have more than the program.

use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use wb_model::{Aslr, HugePages, Placement};

use super::fork_exec::{self, CStringArray, ExecPlan};
pub use super::starter::message::LaunchStep;
use super::starter::message::{MESSAGE_SIZE, Message, RELEASE};
use super::starter::starter;

/// The highest CPU or node number accepted in a placement.
const MAX_CPU_OR_NODE: u32 = 8191;

/// Specification of a process to launch.
pub struct LaunchSpec<'a> {
    /// Path of the program; it is not searched for.
    pub program: &'a Path,
    /// Arguments, beginning with the program's name.
    pub argv: &'a [String],
    /// The complete environment.
    pub env: &'a [(String, String)],
    pub cwd: &'a Path,
    pub stdin: BorrowedFd<'a>,
    pub stdout: BorrowedFd<'a>,
    pub stderr: BorrowedFd<'a>,
    /// Placement: CPUs, memory nodes, huge pages, address randomisation.
    pub placement: &'a Placement,
    /// The `cgroup.procs` files of the groups to join, open for writing.
    pub join: &'a [File],
    /// Whether the process, once placed, waits at a gate until it is released.
    pub suspended: bool,
}

const STEPS: [LaunchStep; 13] = [
    LaunchStep::Starter,
    LaunchStep::Process,
    LaunchStep::Session,
    LaunchStep::ParentDeath,
    LaunchStep::Cgroup,
    LaunchStep::MemoryNodes,
    LaunchStep::Cpus,
    LaunchStep::HugePages,
    LaunchStep::Aslr,
    LaunchStep::Streams,
    LaunchStep::Folder,
    LaunchStep::Gate,
    LaunchStep::Program,
];

impl fmt::Display for LaunchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Starter => "starting its starter",
            Self::Process => "creating its process",
            Self::Session => "starting a session",
            Self::ParentDeath => "setting its parent-death signal",
            Self::Cgroup => "joining its cgroup",
            Self::MemoryNodes => "binding its memory to nodes",
            Self::Cpus => "binding to CPUs",
            Self::HugePages => "disabling huge pages",
            Self::Aslr => "disabling address randomisation",
            Self::Streams => "connecting its streams",
            Self::Folder => "entering its folder",
            Self::Gate => "waiting for its release",
            Self::Program => "executing the program",
        })
    }
}

/// An error while launching a process.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A string with a NUL byte, which no system call accepts.
    #[error("invalid string `{0}`: contains a NUL byte")]
    Nul(String),
    #[error("invalid CPU or node number {0}: expected at most {MAX_CPU_OR_NODE}")]
    Number(u32),
    #[error("cannot create a process: {0}")]
    Fork(#[source] io::Error),
    #[error(
        "cannot store the starter, through which programs are executed, in memory (see the sysctl `vm.memfd_noexec`), \
         nor in the folder of weighbridge or of temporary files: {0}"
    )]
    Starter(#[source] io::Error),
    #[error("it was ended before it executed the program")]
    Ended,
    /// A setup step of the new process failed.
    #[error("{step}: {source}")]
    Step { step: LaunchStep, source: io::Error },
}

#[derive(Debug)]
pub struct LaunchedProcess {
    pub pid: u32,
    /// Whether it runs or waits at its gate.
    pub start: LaunchState,
}

/// Whether a new process runs its program or waits at its gate.
#[derive(Debug)]
pub enum LaunchState {
    Running {
        /// When the process was about to call execve, after all setup such as joining its cgroup: recorded by the
        /// process itself, by CLOCK_MONOTONIC in nanoseconds.
        started_ns: u64,
    },
    /// It waits at its gate until it is released.
    Suspended(SuspendedProcess),
}

/// A child that is set up but has not called execve yet. Dropping it ends the child.
#[derive(Debug)]
pub struct SuspendedProcess(Socket);

impl SuspendedProcess {
    /// Lets the process execute its program; returns the start time, as in [`LaunchState::Running`].
    ///
    /// # Errors
    /// When the program cannot be executed.
    pub fn release(self) -> Result<u64, LaunchError> {
        let Self(socket) = self;
        socket.release().map_err(|source| LaunchError::Step { step: LaunchStep::Gate, source: source.into() })?;
        let start = socket.receive()?;
        match (start, socket.receive()) {
            // After a successful execve, which closes the child's end, nothing follows.
            (Message::Started(started_ns), Err(LaunchError::Ended)) => Ok(started_ns),
            (_, Err(error)) => Err(error),
            (_, Ok(_)) => Err(LaunchError::Ended),
        }
    }
}

/// This process's end of the socket to a new process.
#[derive(Debug)]
struct Socket(OwnedFd);

impl Socket {
    /// Releases the process, and waits until it has executed its program or ended.
    fn release(&self) -> Result<(), Errno> {
        retry_on_intr(|| send(&self.0, &RELEASE, SendFlags::NOSIGNAL))?;
        // No event is asked for but the end, which always counts: the message about the start wakes up nothing that
        // would compete with the program.
        retry_on_intr(|| poll(&mut [PollFd::new(&self.0, PollFlags::empty())], None))?;
        Ok(())
    }

    /// Waits for the next message; a failed step is returned as an error.
    fn receive(&self) -> Result<Message, LaunchError> {
        let mut bytes = [0; MESSAGE_SIZE];
        let (length, _) = retry_on_intr(|| recv(&self.0, &mut bytes, RecvFlags::empty()))
            .map_err(|error| LaunchError::Fork(error.into()))?;
        if length == 0 {
            return Err(LaunchError::Ended);
        }
        match Message::decode(bytes) {
            Some(Message::Failed(step, errno)) => {
                let step = STEPS.into_iter().find(|candidate| *candidate as u32 == step).unwrap_or(LaunchStep::Program);
                Err(LaunchError::Step { step, source: io::Error::from_raw_os_error(errno.cast_signed()) })
            }
            message => message.ok_or_else(|| LaunchError::Fork(io::ErrorKind::InvalidData.into())),
        }
    }
}

/// Launches a process, which the caller must reap.
///
/// The process gets a session of its own, default signals, and SIGKILL when the calling *thread* ends: the thread
/// that launches must live as long as its processes.
pub fn launch(launch: &LaunchSpec) -> Result<LaunchedProcess, LaunchError> {
    let text = |text: &str| CString::new(text).map_err(|_| LaunchError::Nul(text.to_owned()));
    let path = |path: &Path| {
        CString::new(path.as_os_str().as_bytes()).map_err(|_| LaunchError::Nul(path.display().to_string()))
    };
    let arguments = launch.argv.iter().map(|argument| text(argument));
    let argv = [path(launch.program)].into_iter().chain(arguments).collect::<Result<Vec<_>, _>>()?;
    let env = launch.env.iter().map(|(name, value)| text(&format!("{name}={value}"))).collect::<Result<Vec<_>, _>>()?;
    let (socket, child_end) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|error| LaunchError::Fork(error.into()))?;

    let plan = ExecPlan {
        starter: starter().map_err(LaunchError::Starter)?.as_raw_fd(),
        argv: CStringArray::new(argv),
        env: CStringArray::new(env),
        cwd: path(launch.cwd)?,
        stdio: [launch.stdin.as_raw_fd(), launch.stdout.as_raw_fd(), launch.stderr.as_raw_fd()],
        cpu_mask: mask(&launch.placement.cpus)?,
        node_mask: mask(&launch.placement.memory_nodes)?,
        disable_huge_pages: launch.placement.huge_pages == HugePages::Never,
        disable_aslr: launch.placement.aslr == Aslr::Off,
        socket: child_end.as_raw_fd(),
    };
    let starter = fork_exec::fork_exec(&plan).map_err(LaunchError::Fork)?;
    drop(child_end);
    // It ends as soon as it has created the process.
    fork_exec::wait_and_discard(starter);

    let socket = Socket(socket);
    let pid = match socket.receive()? {
        Message::Created(pid) => pid,
        _ => return Err(LaunchError::Ended),
    };
    start(launch, pid, socket).inspect_err(|_| fork_exec::wait_and_discard(pid))
}

/// Has the new process join its cgroups, and releases it unless it is to be suspended. After an error, it ends.
fn start(launch: &LaunchSpec, pid: u32, socket: Socket) -> Result<LaunchedProcess, LaunchError> {
    if socket.receive()? != Message::Held {
        return Err(LaunchError::Ended);
    }
    for mut members in launch.join {
        // A single write: the kernel reads one process id from each.
        let joined = members.write_all(pid.to_string().as_bytes());
        joined.map_err(|source| LaunchError::Step { step: LaunchStep::Cgroup, source })?;
    }
    let suspended = SuspendedProcess(socket);
    let start = if launch.suspended {
        LaunchState::Suspended(suspended)
    } else {
        LaunchState::Running { started_ns: suspended.release()? }
    };
    Ok(LaunchedProcess { pid, start })
}

/// Converts numbers to a bit mask of whole words; empty for no numbers.
fn mask(numbers: &[u32]) -> Result<Vec<libc::c_ulong>, LaunchError> {
    let Some(highest) = numbers.iter().copied().max() else { return Ok(Vec::new()) };
    if highest > MAX_CPU_OR_NODE {
        return Err(LaunchError::Number(highest));
    }
    let bits = libc::c_ulong::BITS;
    let mut mask = vec![0; (highest / bits) as usize + 1];
    for number in numbers {
        mask[(number / bits) as usize] |= 1 << (number % bits);
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::process::Command;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;
    use crate::process::exit_time::now_ns;
    use crate::process::reap::{ExitStatus, reap};

    /// A launch attempt and the standard output of the process.
    struct Trial {
        launched: Result<LaunchedProcess, LaunchError>,
        out: File,
    }

    fn trial(argv: &[&str], placement: &Placement, suspended: bool, join: &[File]) -> Trial {
        let (out, end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
        let launched = launch(&LaunchSpec {
            program: Path::new(&argv[0]),
            argv: &argv,
            env: &[("A".into(), "1".into())],
            cwd: Path::new("/"),
            stdin: null.as_fd(),
            stdout: end.as_fd(),
            stderr: null.as_fd(),
            placement,
            join,
            suspended,
        });
        Trial { launched, out: out.into() }
    }

    impl Trial {
        fn running(argv: &[&str]) -> Self {
            trial(argv, &Placement::default(), false, &[])
        }

        /// The id, the gate and the output of a process that waits to echo `hello`.
        fn suspended() -> (u32, SuspendedProcess, File) {
            let Trial { launched, out } = trial(&["/bin/echo", "hello"], &Placement::default(), true, &[]);
            let LaunchedProcess { pid, start: LaunchState::Suspended(suspended) } = launched.unwrap() else {
                panic!("it runs")
            };
            (pid, suspended, out)
        }

        fn error(argv: &[&str], placement: &Placement, suspended: bool) -> LaunchError {
            trial(argv, placement, suspended, &[]).launched.unwrap_err()
        }
    }

    fn output(mut file: File) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_program_gets_exactly_its_arguments_environment_and_folder() {
        let Trial { launched, out } = Trial::running(&["/bin/sh", "-c", "pwd; env | grep -v PWD | grep -v ^_; exit 3"]);
        assert_eq!(output(out), "/\nA=1\n");
        assert_eq!(reap(launched.unwrap().pid).unwrap().status, ExitStatus::Exited(3));
    }

    #[test]
    fn a_suspended_process_does_nothing_until_it_is_released() {
        let (pid, suspended, out) = Trial::suspended();
        let before = now_ns();
        let started_ns = suspended.release().unwrap();
        assert_eq!(output(out), "hello\n");
        assert_eq!(reap(pid).unwrap().status, ExitStatus::Exited(0));
        assert!(before <= started_ns && started_ns <= now_ns());
    }

    #[test]
    fn a_suspended_process_that_is_dropped_never_executes_the_program() {
        let (pid, suspended, out) = Trial::suspended();
        drop(suspended);
        assert_eq!(output(out), "");
        assert!(reap(pid).is_some());
    }

    #[test]
    fn the_start_time_is_after_joining_the_cgroup() {
        // Instead of `cgroup.procs`: a full pipe, in which the write blocks until it is drained.
        let (drain, join) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::ioctl_fionbio(&join, true).unwrap();
        let mut full = File::from(join.try_clone().unwrap());
        while full.write(&[0; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&join, false).unwrap();
        let slow = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let joined_ns = now_ns();
            let mut drain = File::from(drain);
            let length = drain.read(&mut [0; 1 << 16]).unwrap();
            // Kept open: there must be a reader when the write goes on.
            (joined_ns, length, drain)
        });
        let Trial { launched, out } = trial(&["/bin/true"], &Placement::default(), false, &[join.into()]);
        let LaunchedProcess { pid, start: LaunchState::Running { started_ns } } = launched.unwrap() else {
            panic!("not running")
        };
        assert_eq!(output(out), "");
        assert_eq!(reap(pid).unwrap().status, ExitStatus::Exited(0));
        let (joined_ns, ..) = slow.join().unwrap();
        assert!(joined_ns <= started_ns && started_ns <= now_ns(), "joined at {joined_ns}, started at {started_ns}");
    }

    #[test]
    fn the_failed_step_is_named() {
        let unplaced = Placement::default();
        let missing = Trial::error(&["/nosuch"], &unplaced, false);
        assert_eq!(missing.to_string(), "executing the program: No such file or directory (os error 2)");
        let on_cpu = |cpu| Placement { cpus: vec![cpu], ..Placement::default() };
        let no_such_cpu = Trial::error(&["/bin/true"], &on_cpu(8000), true);
        assert!(matches!(no_such_cpu, LaunchError::Step { step: LaunchStep::Cpus, .. }));
        assert!(matches!(Trial::error(&["/bin/true"], &on_cpu(u32::MAX), true), LaunchError::Number(u32::MAX)));
        assert!(matches!(Trial::error(&["/bin/echo", "a\0b"], &unplaced, false), LaunchError::Nul(_)));
    }

    #[test]
    fn arguments_that_are_too_long_are_no_fault_of_the_starter() {
        let argument = "x".repeat(1 << 20);
        let error = Trial::error(&["/bin/echo", &argument], &Placement::default(), false);
        assert!(matches!(error, LaunchError::Step { step: LaunchStep::Program, .. }), "{error}");
    }

    /// Fills the memory whose size in KiB is its argument, and prints the largest resident set that the kernel has seen.
    const PEAK_PROGRAM: &str = r#"
        #include <fcntl.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(int count, char **arguments) {
            size_t size = strtoul(arguments[1], 0, 10) << 10;
            if (size)
                memset(mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, size);
            static char status[8192];
            int file = open("/proc/self/status", O_RDONLY);
            char *peak = read(file, status, sizeof status - 1) > 0 ? strstr(status, "VmHWM:") : 0;
            return !peak || write(1, peak, strcspn(peak, "\n")) < 0;
        }"#;

    #[test]
    fn the_largest_resident_set_is_that_of_the_program_not_of_what_launches_it() {
        // More than any of the programs: the kernel would count it as theirs.
        let own = black_box(vec![1u8; 100 << 20]);
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("peak.c"), folder.path().join("peak"));
        std::fs::write(&source, PEAK_PROGRAM).unwrap();
        let compiled = Command::new("cc").args(["-O1", "-static", "-o"]).arg(&program).arg(&source).status().unwrap();
        assert!(compiled.success());
        // The kernel counts pages by CPU (`percpu_counter`), and a reader misses what no CPU has added to the sum yet: up to
        // a batch on each that the program ran on, of anonymous memory and of files. Here it runs on one.
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let online = stat.lines().filter(|line| line.starts_with("cpu")).count() - 1;
        let missed_kib = (2 * 4 * (2 * online).max(32) + 128) as f64;
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = (0..).find(|cpu| allowed.is_set(*cpu)).unwrap();
        let pinned = Placement { cpus: vec![cpu.try_into().unwrap()], ..Placement::default() };
        // The smallest is as large as its C library.
        for (kib, expected_mib) in [(0, 0.7), (20 << 10, 20.7), (60 << 10, 60.7)] {
            for suspended in [false, true] {
                let argv = [program.to_str().unwrap(), &kib.to_string()];
                let Trial { launched, out } = trial(&argv, &pinned, suspended, &[]);
                let LaunchedProcess { pid, start } = launched.unwrap();
                if let LaunchState::Suspended(process) = start {
                    process.release().unwrap();
                }
                let text = output(out);
                let own_kib: f64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
                let max_rss = reap(pid).unwrap().usage.max_rss as f64 / 1024.0;
                assert!((max_rss - own_kib).abs() <= missed_kib, "{max_rss} KiB, by itself {own_kib} KiB");
                assert!((own_kib - 1024.0 * expected_mib).abs() <= missed_kib, "{own_kib} KiB");
            }
        }
        drop(own);
    }
}
