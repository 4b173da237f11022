//! Processes started by the agent.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use wb_model::{Nanos, Placement};
use wb_sys::SysRoot;
use wb_sys::cgroup::Cgroup;
use wb_sys::process::{
    EffectivePlacement, ExitStatus, ExitTimer, HugePagesMethod, LaunchError, LaunchSpec, LaunchState, LaunchedProcess,
    ProcessStat, ReapedChild, SuspendedProcess, huge_pages, launch, tree,
};

use crate::clock::monotonic_ns;
use crate::protocol::{
    Capture, Command, ExitReason, ExitReport, Fault, OWN_PROGRAM, OutputStream, PlacementReport, ProcessHandle,
    WithBytes, call, own_program,
};

use super::groups::{GROUP_VARIABLE, LiveGroup, PROGRAMS_FOLDER};
use super::output::{Output, create_memfd};
use super::{Agent, files};

/// Delay after which a new process is checked again for placement violations. A `taskset` or `setarch` inside of a
/// command moves a process after its start.
const STRAY_CHECK_DELAY: Duration = Duration::from_millis(50);
/// How long a process may take to exit after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum delay of the runtime's timers.
const TIMER_SLACK: Duration = Duration::from_millis(3);
/// How long processes of a synchronised start are left undisturbed.
const START_SETTLE_TIME: Duration = Duration::from_millis(10);
/// Maximum number of reads of a mebibyte to drain a pipe; more than a pipe holds.
const MAX_DRAINS: usize = 64;
/// How long a process may take to exit after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// A process started by this agent; kept with its output until it is discarded.
pub(super) struct LiveProcess {
    pub(super) pid: u32,
    pub(super) group: u32,
    limit: wb_model::Bytes,
    stdout: Rc<Output>,
    stderr: Rc<Output>,
    suspended: RefCell<Option<SuspendedProcess>>,
    program: String,
    huge_pages_method: Option<HugePagesMethod>,
    placement: Placement,
    placement_report: RefCell<PlacementReport>,
    started_ns: Cell<u64>,
    /// None if no thread could be started for it; the reaper's time is used then.
    end_time: Option<ExitTimer>,
    /// Its own cgroup, inside that of its group; none where there are none.
    cgroup: Option<Cgroup>,
    ended: Cell<Option<(ReapedChild, u64)>>,
    /// The largest resident set of its descendants that ended before it and that nobody waited for, in bytes.
    orphans_max_rss: Cell<u64>,
    /// Names of its descendants that were still running at its end.
    outlived_by: RefCell<Vec<String>>,
    /// The time limit at which it was terminated, if it was.
    timed_out: Cell<Option<Nanos>>,
    ending: Notify,
    /// Discarded by the controller.
    discarded: Cell<bool>,
}

impl Agent {
    /// Starts a process in a group.
    pub(super) fn spawn(self: &Rc<Self>, call: &call::Spawn) -> Result<ProcessHandle, Fault> {
        let group = self.group(call.group)?;
        let id = self.next_id();
        let process = Rc::new(self.launch(&group, id, &call.command, call.suspended)?);
        let pid = process.pid;
        group.session_leaders.borrow_mut().insert(pid);
        if call.command.cgroup.is_some() {
            group.leaders_elsewhere.borrow_mut().insert(pid);
        }
        for output in [process.stdout.clone(), process.stderr.clone()] {
            let process = process.clone();
            tokio::task::spawn_local(async move {
                if output.pump().await {
                    process.send_signal(Signal::KILL);
                }
            });
        }
        if process.is_placed() {
            tokio::task::spawn_local(self.clone().check_for_strays_later(process.clone()));
        }
        self.processes.borrow_mut().insert(id, process);
        // SIGCHLD of a process that exited at once may have arrived before it was registered.
        self.reap();
        Ok(ProcessHandle { id, pid })
    }

    /// Checks once for placement violations after a short delay, because readings are too rare for short samples.
    async fn check_for_strays_later(self: Rc<Self>, process: Rc<LiveProcess>) {
        sleep(STRAY_CHECK_DELAY).await;
        if !process.has_ended()
            && let Ok(group) = self.group(process.group)
        {
            self.check_session_for_strays(&process, &self.members(&group));
        }
    }

    /// Checks the members of a group that belong to the session of a placed process for placement violations.
    fn check_session_for_strays(&self, process: &LiveProcess, members: &[ProcessStat]) {
        for entry in members.iter().filter(|entry| entry.session == process.pid) {
            process.check_for_strays(&self.root, entry.pid);
        }
    }

    /// Checks group members for placement violations; each belongs to the placed process that leads its session.
    pub(super) fn check_members_for_strays(&self, members: &[ProcessStat]) {
        let processes = self.processes.borrow();
        for process in processes.values().filter(|process| process.is_placed() && !process.has_ended()) {
            self.check_session_for_strays(process, members);
        }
    }

    /// Inspects the effective placement of a process and its descendants.
    pub(super) fn inspect(&self, process: u32) -> Result<PlacementReport, Fault> {
        let process = self.process(process)?;
        if process.is_placed() {
            self.check_session_for_strays(&process, &self.members(&*self.group(process.group)?));
        }
        Ok(process.placement_report())
    }

    /// Returns the program of a command; weighbridge itself, called by its path, may be replaced too.
    fn program_of(group: &LiveGroup, command: &Command) -> String {
        let name = command.argv.first().map_or("", String::as_str);
        let replacement = || group.overrides.programs.get(OWN_PROGRAM).filter(|_| name == own_program());
        replacement().map_or(name, String::as_str).to_owned()
    }

    fn launch(&self, group: &LiveGroup, id: u32, command: &Command, suspended: bool) -> Result<LiveProcess, Fault> {
        let name = Self::program_of(group, command);
        let failed = |reason: String| Fault::SpawnFailed { program: name.clone(), reason };
        let cgroup_failed = |error: std::io::Error| failed(format!("cannot join its cgroup: {error}"));
        let cwd = command.cwd.as_ref().map_or_else(|| group.folder.clone(), PathBuf::from);
        let mut env = environment(group, command);
        let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).unwrap_or_default();
        let program = files::find_program(&name, &path, &cwd).ok_or_else(|| Fault::ProgramNotFound {
            program: name.clone(),
            path: (!name.contains('/')).then_some(path),
        })?;
        let huge_pages_method = self.huge_pages(command, &program, &mut env);
        let streams = || {
            let input = if command.stdin.is_empty() { File::open("/dev/null")? } else { create_memfd()? };
            if !command.stdin.is_empty() {
                input.write_all_at(&command.stdin, 0)?;
            }
            let limit = command.output_limit.0;
            let output = |capture| Output::new(capture, limit, command.overflow, self.read_buffer.clone());
            let (mut stdout, writer) = output(command.stdout)?;
            if command.times_output {
                stdout.note_arrivals();
            }
            Ok::<_, std::io::Error>((input, (stdout, writer), output(Capture::Keep)?))
        };
        let (input, (stdout, stdout_writer), (stderr, stderr_writer)) =
            streams().map_err(|error| failed(error.to_string()))?;
        // One of its own, which has the CPU time of whatever the process leaves behind: the kernel adds that of
        // descendants to a process only if somebody in between waited for them.
        let own = group.cgroup.as_ref().filter(|_| command.cgroup.is_none());
        let cgroup = own.and_then(|cgroup| cgroup.create_inside(&format!("process-{id}")));
        let joined = cgroup.as_ref().or(group.cgroup.as_ref());
        let mut join = joined.map(|cgroup| cgroup.join()).transpose().map_err(cgroup_failed)?;
        if let Some(folder) = &command.cgroup {
            // The last one of a hierarchy is where the process stays.
            let members = File::options().write(true).open(format!("{folder}/cgroup.procs"));
            join.get_or_insert_default().push(members.map_err(cgroup_failed)?);
        }
        let LaunchedProcess { pid, start } = launch(&LaunchSpec {
            program: &program,
            argv: &command.argv,
            env: &env,
            cwd: &cwd,
            stdin: input.as_fd(),
            stdout: stdout_writer.as_fd(),
            stderr: stderr_writer.as_fd(),
            placement: &command.placement,
            join: &join.unwrap_or_default(),
            suspended,
        })
        .map_err(|error: LaunchError| failed(error.to_string()))?;
        let end_time = ExitTimer::watch(pid).ok();
        let (started_ns, suspended) = match start {
            LaunchState::Running { started_ns } => (started_ns, None),
            // Replaced on release; a process that is never released has not run at all.
            LaunchState::Suspended(suspended) => (monotonic_ns(), Some(suspended)),
        };
        let process = LiveProcess {
            pid,
            group: group.id,
            limit: command.output_limit,
            stdout: Rc::new(stdout),
            stderr: Rc::new(stderr),
            suspended: RefCell::new(suspended),
            program: name,
            huge_pages_method,
            placement: command.placement.clone(),
            placement_report: RefCell::default(),
            started_ns: Cell::new(started_ns),
            end_time,
            cgroup,
            ended: Cell::new(None),
            orphans_max_rss: Cell::new(0),
            outlived_by: RefCell::default(),
            timed_out: Cell::new(None),
            ending: Notify::new(),
            discarded: Cell::new(false),
        };
        process.verify(&self.root);
        Ok(process)
    }

    /// Determines how the process gets the requested huge pages, and sets the glibc tunable if that is the method.
    fn huge_pages(
        &self,
        command: &Command,
        program: &Path,
        env: &mut Vec<(String, String)>,
    ) -> Option<HugePagesMethod> {
        if !command.placement.huge_pages.are_requested() {
            return None;
        }
        let method = huge_pages::method(&self.root, program);
        if method == HugePagesMethod::GlibcTunable {
            let tunable = huge_pages::GLIBC_TUNABLE;
            match env.iter_mut().find(|(name, _)| name == "GLIBC_TUNABLES") {
                Some((_, value)) => *value = format!("{value}:{tunable}"),
                None => env.push(("GLIBC_TUNABLES".to_owned(), tunable.to_owned())),
            }
        }
        Some(method)
    }
}

impl LiveProcess {
    /// Lets the process start, if it is suspended.
    pub(super) fn release(&self, root: &SysRoot) -> Result<(), Fault> {
        if self.release_suspended()? {
            self.verify(root);
        }
        Ok(())
    }

    /// Lets the process start at a time by CLOCK_MONOTONIC; returns its actual start time, also if it had started
    /// already.
    pub(super) async fn release_at(&self, root: &SysRoot, at_ns: u64) -> Result<u64, Fault> {
        let remaining = || Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
        // The runtime's timers have a resolution of 1 ms; a blocking sleep for the rest is exact and short.
        sleep(remaining().saturating_sub(TIMER_SLACK)).await;
        if self.suspended.borrow().is_some() {
            std::thread::sleep(remaining());
        }
        if self.release_suspended()? {
            // Other processes start at this time too and must not wait for this check; it was also checked while it was
            // suspended.
            sleep(START_SETTLE_TIME).await;
            if !self.has_ended() {
                self.verify(root);
            }
        }
        Ok(self.started_ns.get())
    }

    /// Releases the process; returns whether it was suspended.
    fn release_suspended(&self) -> Result<bool, Fault> {
        let Some(suspended) = self.suspended.borrow_mut().take() else { return Ok(false) };
        let failed =
            |error: LaunchError| Fault::SpawnFailed { program: self.program.clone(), reason: error.to_string() };
        self.started_ns.set(suspended.release().map_err(failed)?);
        Ok(true)
    }

    /// Waits for the process to exit, terminating it after the limit; returns its report, and the tail of its standard
    /// output if that is hashed.
    pub(super) async fn wait(&self, limit: Option<Nanos>) -> Result<WithBytes<ExitReport>, Fault> {
        if let Some(limit) = limit
            && timeout(limit.into(), self.wait_for_exit()).await.is_err()
        {
            self.timed_out.set(Some(limit));
            self.send_signal(Signal::TERM);
            if timeout(TERM_TIMEOUT, self.wait_for_exit()).await.is_err() {
                self.send_signal(Signal::KILL);
                timeout(KILL_TIMEOUT, self.wait_for_exit()).await.map_err(|_| Fault::Unkillable { pid: self.pid })?;
            }
        }
        let (reaped, ended_ns) = self.wait_for_exit().await;
        for output in [&self.stdout, &self.stderr] {
            // Descendants that are still running may write for ever.
            for _ in 0..MAX_DRAINS {
                if output.drain() || output.has_exceeded_limit() {
                    break;
                }
                sleep(Duration::ZERO).await;
            }
        }
        let (stdout, tail) = self.stdout.capture_result();
        let report = ExitReport {
            exit_reason: self.exit_reason(reaped.status),
            started_ns: self.started_ns.get(),
            ended_ns,
            usage: reaped.usage,
            outlived_by: self.outlived_by.borrow().clone(),
            stdout,
            arrivals: self.stdout.arrivals(),
            placement: self.placement_report.borrow().clone(),
        };
        Ok(WithBytes { value: report, bytes: tail })
    }

    /// Sends a signal to the process and its process group.
    pub(super) fn signal(&self, number: i32) -> Result<(), Fault> {
        let signal =
            Signal::from_named_raw(number).ok_or_else(|| Fault::Refused { why: format!("unknown signal {number}") })?;
        self.send_signal(signal);
        Ok(())
    }

    /// Reads a chunk of its output; returns whether more may come.
    pub(super) async fn output(&self, stream: OutputStream, offset: u64, follow: bool) -> WithBytes<bool> {
        let output = match stream {
            OutputStream::Stdout => &self.stdout,
            OutputStream::Stderr => &self.stderr,
        };
        loop {
            let (changed, ending) = (output.changed.notified(), self.ending.notified());
            output.drain();
            let more = output.is_open() && !output.has_exceeded_limit() && !self.has_ended();
            if follow && output.is_cut() {
                // What was cut is not shown as it arrives either.
                self.wait_for_exit().await;
                return WithBytes { value: false, bytes: Vec::new() };
            }
            if !follow || !more || output.length() > offset {
                return WithBytes { value: more, bytes: output.chunk_at(offset) };
            }
            tokio::select! {
                () = changed => {}
                () = ending => {}
            }
        }
    }

    /// Marks the process as discarded; returns whether it has exited and can be removed at once.
    pub(super) fn discard_when_exited(&self) -> bool {
        self.discarded.set(true);
        self.has_ended()
    }

    pub(super) fn is_discarded(&self) -> bool {
        self.discarded.get()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Records the exit; called once, by the reaper.
    pub(super) fn record_exit(&self, root: &SysRoot, reaped: ReapedChild) {
        let left = self.cgroup.as_ref().map(Cgroup::members).unwrap_or_default();
        let left: Vec<_> = left.into_iter().filter_map(|pid| tree::read_stat(root, pid)).collect();
        let running = left.iter().filter(|entry| !entry.is_zombie());
        let max_rss = running.clone().filter_map(|entry| tree::max_rss(root, entry.pid)).max();
        let mut names: Vec<_> = running.map(|entry| entry.name.clone()).collect();
        names.sort_unstable();
        self.outlived_by.replace(names);
        let usage = reaped.usage.with_group(self.cgroup.as_ref().and_then(Cgroup::cpu_times));
        let usage = usage.with_max_rss(self.orphans_max_rss.get().max(max_rss.unwrap_or_default()));
        let reaped = ReapedChild { usage, ..reaped };
        let ended_ns = self.end_time.as_ref().and_then(ExitTimer::ns).unwrap_or_else(monotonic_ns);
        self.ended.set(Some((reaped, ended_ns)));
        self.suspended.borrow_mut().take();
        self.ending.notify_waiters();
    }

    /// Records the exit of a descendant that nobody waited for.
    pub(super) fn record_orphan(&self, orphan: &ReapedChild) {
        self.orphans_max_rss.update(|max| max.max(orphan.usage.max_rss));
    }

    async fn wait_for_exit(&self) -> (ReapedChild, u64) {
        loop {
            let ending = self.ending.notified();
            match self.ended.get() {
                Some(ended) => return ended,
                None => ending.await,
            }
        }
    }

    fn exit_reason(&self, status: ExitStatus) -> ExitReason {
        if let Some(after) = self.timed_out.get() {
            return ExitReason::TimedOut { limit: after };
        }
        for (output, stream) in [(&self.stdout, OutputStream::Stdout), (&self.stderr, OutputStream::Stderr)] {
            if output.has_exceeded_limit() {
                return ExitReason::TooMuchOutput { stream, limit: self.limit };
            }
        }
        match status {
            ExitStatus::Exited(status) => ExitReason::Exited { status },
            ExitStatus::Signalled(signal) => ExitReason::Signalled { signal },
        }
    }

    /// Reads its effective placement.
    fn verify(&self, root: &SysRoot) {
        let effective = EffectivePlacement::read(root, self.pid, &self.placement);
        self.placement_report.borrow_mut().effective =
            EffectivePlacement { huge_pages_method: self.huge_pages_method, ..effective };
    }

    /// Whether a placement was requested.
    pub(super) fn is_placed(&self) -> bool {
        self.placement != Placement::default()
    }

    /// Checks whether a process of its session violates the requested placement, as one that moves itself does. The
    /// kernel still reports the placement of a process that has exited and is not reaped yet.
    pub(super) fn check_for_strays(&self, root: &SysRoot, pid: u32) {
        if !self.is_placed() {
            return;
        }
        let violations = EffectivePlacement::find_escapes(root, pid, &self.placement);
        if !violations.is_empty() {
            let name = root.text(format!("/proc/{pid}/comm")).unwrap_or_default();
            let sentences = violations.iter().map(|difference| format!("{} moved itself: {difference}", name.trim()));
            self.placement_report.borrow_mut().escapes.extend(sentences);
        }
    }

    /// Returns its effective placement as last observed.
    pub(super) fn placement_report(&self) -> PlacementReport {
        self.placement_report.borrow().clone()
    }

    /// Sends a signal to its process group. Its id cannot be reused until it is reaped.
    fn send_signal(&self, signal: Signal) {
        if !self.has_ended()
            && let Some(pid) = Pid::from_raw(self.pid.cast_signed())
        {
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// Builds the environment of a process: a fixed base, then the additions and overrides of its group and the command.
pub(super) fn environment(group: &LiveGroup, command: &Command) -> Vec<(String, String)> {
    let home = std::env::var("HOME").unwrap_or_else(|_| "/".to_owned());
    let mut path = files::search_path();
    if !group.overrides.programs.is_empty() {
        path = format!("{}:{path}", group.folder.join(PROGRAMS_FOLDER).display());
    }
    let fixed = [
        ("PATH", path),
        ("HOME", home),
        ("LANG", "C".to_owned()),
        ("LC_ALL", "C".to_owned()),
        ("TMPDIR", group.folder.display().to_string()),
        (GROUP_VARIABLE, group.name.clone()),
    ];
    let mut env: Vec<(String, String)> = fixed.map(|(name, value)| (name.to_owned(), value)).into();
    let from_agent = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
    let inherited = command.inherit.iter().filter_map(from_agent);
    let from_group = group.overrides.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    for (name, value) in inherited.chain(from_group).chain(command.env.iter().cloned()) {
        match env.iter_mut().find(|(existing, _)| *existing == name) {
            Some(existing) => existing.1 = value,
            None => env.push((name, value)),
        }
    }
    env
}
