//! Launches processes. Placement is applied by the child's own system calls between fork and exec, so that
//! nothing else is affected and no helper program is needed.

use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::pipe::{PipeFlags, pipe_with};
use wb_model::{Aslr, HugePages, Placement};

use super::fork_exec::{self, CStringArray, ExecPlan, REPORT_SIZE, STEP_HELD, SharedStartTime};

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
    /// Working folder.
    pub cwd: &'a Path,
    /// Standard input.
    pub stdin: BorrowedFd<'a>,
    /// Standard output.
    pub stdout: BorrowedFd<'a>,
    /// Standard error.
    pub stderr: BorrowedFd<'a>,
    /// Placement: CPUs, memory nodes, huge pages, address randomisation.
    pub placement: &'a Placement,
    /// The `cgroup.procs` files of the groups to join, open for writing.
    pub join: &'a [File],
    /// Whether the process, once placed, waits at a gate until it is released.
    pub suspended: bool,
}

/// A setup step that the new process performs before it executes the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum LaunchStep {
    /// Leave the terminal and the process group.
    Session = 1,
    /// Set the parent-death signal.
    ParentDeath,
    /// Join the cgroups.
    Cgroup,
    /// Bind memory to nodes.
    MemoryNodes,
    /// Bind to CPUs.
    Cpus,
    /// Disable transparent huge pages.
    HugePages,
    /// Disable address randomisation.
    Aslr,
    /// Connect the standard streams.
    Streams,
    /// Enter the working folder.
    Folder,
    /// Wait at the gate.
    Gate,
    /// Execute the program.
    Program,
}

const STEPS: [LaunchStep; 11] = [
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
    /// A CPU or node number that is too high for any machine.
    #[error("invalid CPU or node number {0}: expected at most {MAX_CPU_OR_NODE}")]
    Number(u32),
    /// The process could not be created.
    #[error("cannot create a process: {0}")]
    Fork(#[source] io::Error),
    /// A setup step of the new process failed.
    #[error("{step}: {source}")]
    Step {
        /// The failed step.
        step: LaunchStep,
        /// The cause.
        source: io::Error,
    },
}

/// A launched process.
#[derive(Debug)]
pub struct LaunchedProcess {
    /// Process id.
    pub pid: u32,
    /// Whether it runs or waits at its gate.
    pub start: LaunchState,
}

/// Whether a new process runs its program or waits at its gate.
#[derive(Debug)]
pub enum LaunchState {
    /// It runs.
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
pub struct SuspendedProcess {
    gate: File,
    report: File,
    start: SharedStartTime,
}

impl SuspendedProcess {
    /// Lets the process execute its program; returns the start time, as in [`LaunchState::Running`].
    ///
    /// # Errors
    /// When the program cannot be executed.
    pub fn release(mut self) -> Result<u64, LaunchError> {
        self.gate.write_all(b"g").map_err(|source| LaunchError::Step { step: LaunchStep::Gate, source })?;
        read_report(&mut self.report)?;
        Ok(self.start.monotonic_ns())
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
    let argv = launch.argv.iter().map(|argument| text(argument)).collect::<Result<Vec<_>, _>>()?;
    let env = launch.env.iter().map(|(name, value)| text(&format!("{name}={value}"))).collect::<Result<Vec<_>, _>>()?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| LaunchError::Fork(error.into()));
    let (report, report_end) = pipe()?;
    let gate = launch.suspended.then(pipe).transpose()?;
    let start = SharedStartTime::new().map_err(LaunchError::Fork)?;

    let plan = ExecPlan {
        program: path(launch.program)?,
        argv: CStringArray::new(argv),
        env: CStringArray::new(env),
        cwd: path(launch.cwd)?,
        stdio: [launch.stdin.as_raw_fd(), launch.stdout.as_raw_fd(), launch.stderr.as_raw_fd()],
        cgroup_procs: launch.join.iter().map(AsRawFd::as_raw_fd).collect(),
        cpu_mask: mask(&launch.placement.cpus)?,
        node_mask: mask(&launch.placement.memory_nodes)?,
        disable_huge_pages: launch.placement.huge_pages == HugePages::Never,
        disable_aslr: launch.placement.aslr == Aslr::Off,
        gate_read_end: gate.as_ref().map(|(read_end, _)| read_end.as_raw_fd()),
        gate_write_end: gate.as_ref().map(|(_, write_end)| write_end.as_raw_fd()),
        report_write_end: report_end.as_raw_fd(),
        start_time: start.slot(),
    };
    let pid = fork_exec::fork_exec(&plan).map_err(LaunchError::Fork)?;
    drop(report_end);

    let mut report = File::from(report);
    if let Err(error) = read_report(&mut report) {
        fork_exec::wait_and_discard(pid);
        return Err(error);
    }
    let start = match gate {
        Some((_, gate)) => LaunchState::Suspended(SuspendedProcess { gate: gate.into(), report, start }),
        None => LaunchState::Running { started_ns: start.monotonic_ns() },
    };
    Ok(LaunchedProcess { pid, start })
}

/// Waits until the new process has executed its program or is suspended; a failed step is returned as an error.
fn read_report(report: &mut File) -> Result<(), LaunchError> {
    let mut bytes = [0; REPORT_SIZE];
    match report.read_exact(&mut bytes) {
        // End of file after a successful execve, which closes the child's end.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        Err(error) => return Err(LaunchError::Fork(error)),
        Ok(()) => {}
    }
    let (step, errno) = fork_exec::decode_report(bytes);
    if step == STEP_HELD {
        return Ok(());
    }
    let step = STEPS.into_iter().find(|candidate| *candidate as u32 == step).unwrap_or(LaunchStep::Program);
    Err(LaunchError::Step { step, source: io::Error::from_raw_os_error(errno) })
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
    use std::os::fd::AsFd;

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
            (joined_ns, File::from(drain).read(&mut [0; 1 << 16]).unwrap())
        });
        let Trial { launched, out } = trial(&["/bin/true"], &Placement::default(), false, &[join.into()]);
        let LaunchedProcess { pid, start: LaunchState::Running { started_ns } } = launched.unwrap() else {
            panic!("not running")
        };
        assert_eq!(output(out), "");
        assert_eq!(reap(pid).unwrap().status, ExitStatus::Exited(0));
        let (joined_ns, _) = slow.join().unwrap();
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
}
