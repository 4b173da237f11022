//! Processes that were started here.

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
use wb_model::{HugePages, Nanos, Placement};
use wb_sys::SysRoot;
use wb_sys::process::{
    EffectivePlacement, ExitStatus, ExitTimer, HeldProcess, HugePagesMethod, LaunchError, LaunchSpec, LaunchState,
    LaunchedProcess, ProcessStat, ReapedChild, huge_pages, launch,
};

use crate::clock::monotonic_ns;
use crate::protocol::{
    Capture, Command, ExitReport, Fault, OWN_PROGRAM, PlacementReport, ProcessHandle, Stream, own_program,
};
use crate::worker::ExitReason;

use super::groups::{GROUP_VARIABLE, LiveGroup, PROGRAMS_FOLDER};
use super::output::{Output, create_memfd};
use super::{Agent, files};

/// After this time a process is looked at again.
const STRAY_CHECK_DELAY: Duration = Duration::from_millis(50);
/// How long a process may take to end itself when it is asked to.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// By how much the runtime's timers may be late.
const TIMER_SLACK: Duration = Duration::from_millis(3);
/// How long processes that start together are left alone.
const START_SETTLE_TIME: Duration = Duration::from_millis(10);
/// How often what is left in a pipe is read, a mebibyte at a time: more than a pipe holds.
const MAX_DRAINS: usize = 64;
/// How long the kernel may take to end a killed one.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// A process that was started here; kept until it is forgotten, its output too.
pub(super) struct LiveProcess {
    pub(super) pid: u32,
    pub(super) group: u32,
    limit: wb_model::Bytes,
    stdout: Rc<Output>,
    stderr: Rc<Output>,
    held: RefCell<Option<HeldProcess>>,
    program: String,
    huge_pages_method: Option<HugePagesMethod>,
    placement: Placement,
    placement_report: RefCell<PlacementReport>,
    started_ns: Cell<u64>,
    /// None where there is no thread to be had for it: then the reaper's time counts.
    end_time: Option<ExitTimer>,
    ended: Cell<Option<(ReapedChild, u64)>>,
    /// After which limit it was ended, if it was.
    timed_out: Cell<Option<Nanos>>,
    ending: Notify,
    /// Nobody will ask for it any more.
    forgotten: Cell<bool>,
}

impl Agent {
    /// Starts a process in a group.
    pub(super) fn spawn(
        self: &Rc<Self>,
        group: u32,
        command: &Command,
        stdin: Vec<u8>,
        hold: bool,
    ) -> Result<ProcessHandle, Fault> {
        let group = self.group(group)?;
        let process = Rc::new(self.launch(&group, command, &stdin, hold)?);
        let (id, pid) = (self.next_id(), process.pid);
        group.roots.borrow_mut().insert(pid);
        for output in [process.stdout.clone(), process.stderr.clone()] {
            let process = process.clone();
            tokio::task::spawn_local(async move {
                if output.pump().await {
                    process.send_signal(Signal::KILL);
                }
            });
        }
        if process.is_placed() {
            tokio::task::spawn_local(self.clone().check_for_strays_later(group.id));
        }
        self.processes.borrow_mut().insert(id, process);
        // One that ended already has sent its signal before it could be known.
        self.reap();
        Ok(ProcessHandle { id, pid })
    }

    /// Looks once for strays when a process has had time to move: readings come too seldom for short samples.
    async fn check_for_strays_later(self: Rc<Self>, group: u32) {
        sleep(STRAY_CHECK_DELAY).await;
        if let Ok(group) = self.group(group) {
            self.check_members_for_strays(&self.members(&group));
        }
    }

    /// Looks for strays among processes: each belongs to the one of ours whose session it is in.
    pub(super) fn check_members_for_strays(&self, members: &[ProcessStat]) {
        let processes = self.processes.borrow();
        let placed = || processes.values().filter(|process| process.is_placed() && !process.has_ended());
        for entry in members {
            if let Some(process) = placed().find(|process| process.pid == entry.session) {
                process.check_for_strays(&self.root, entry.pid);
            }
        }
    }

    /// How a process and those that it started run now.
    pub(super) fn inspect(&self, process: u32) -> Result<PlacementReport, Fault> {
        let process = self.process(process)?;
        if process.is_placed() {
            self.check_members_for_strays(&self.members(&*self.group(process.group)?));
        }
        Ok(process.placement_report())
    }

    /// The program of a command: this one may be replaced too, and is called by its path.
    fn program_of(group: &LiveGroup, command: &Command) -> String {
        let name = command.argv.first().map_or("", String::as_str);
        let replaced = || group.overrides.programs.get(OWN_PROGRAM).filter(|_| name == own_program());
        replaced().map_or(name, String::as_str).to_owned()
    }

    fn launch(&self, group: &LiveGroup, command: &Command, stdin: &[u8], hold: bool) -> Result<LiveProcess, Fault> {
        let name = Self::program_of(group, command);
        let failed = |why: String| Fault::SpawnFailed { program: name.clone(), why };
        let cwd = command.cwd.as_ref().map_or_else(|| group.folder.clone(), PathBuf::from);
        let mut env = environment(group, command);
        let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).unwrap_or_default();
        let program = files::find_program(&name, &path, &cwd).ok_or_else(|| Fault::ProgramNotFound {
            program: name.clone(),
            path: (!name.contains('/')).then_some(path),
        })?;
        let means = self.huge_pages(command, &program, &mut env);
        let streams = || {
            let input = if stdin.is_empty() { File::open("/dev/null")? } else { create_memfd()? };
            if !stdin.is_empty() {
                input.write_all_at(stdin, 0)?;
            }
            let limit = command.output_limit.0;
            Ok::<_, std::io::Error>((input, Output::new(command.stdout, limit)?, Output::new(Capture::Keep, limit)?))
        };
        let (input, (stdout, stdout_end), (stderr, stderr_end)) =
            streams().map_err(|error| failed(error.to_string()))?;
        let join = group.cgroup.as_ref().map(|cgroup| cgroup.join()).transpose();
        let LaunchedProcess { pid, start } = launch(&LaunchSpec {
            program: &program,
            argv: &command.argv,
            env: &env,
            cwd: &cwd,
            stdin: input.as_fd(),
            stdout: stdout_end.as_fd(),
            stderr: stderr_end.as_fd(),
            placement: &command.placement,
            join: &join.map_err(|error| failed(error.to_string()))?.unwrap_or_default(),
            hold,
        })
        .map_err(|error: LaunchError| failed(error.to_string()))?;
        let end_time = ExitTimer::watch(pid).ok();
        let (started_ns, held) = match start {
            LaunchState::Running { started_ns } => (started_ns, None),
            // Until it is released; one that never is did not run at all.
            LaunchState::Held(held) => (monotonic_ns(), Some(held)),
        };
        let process = LiveProcess {
            pid,
            group: group.id,
            limit: command.output_limit,
            stdout: Rc::new(stdout),
            stderr: Rc::new(stderr),
            held: RefCell::new(held),
            program: name,
            huge_pages_method: means,
            placement: command.placement.clone(),
            placement_report: RefCell::default(),
            started_ns: Cell::new(started_ns),
            end_time,
            ended: Cell::new(None),
            timed_out: Cell::new(None),
            ending: Notify::new(),
            forgotten: Cell::new(false),
        };
        process.verify(&self.root);
        Ok(process)
    }

    /// By which means the process gets the huge pages it asked for; its environment says so where it must.
    fn huge_pages(
        &self,
        command: &Command,
        program: &Path,
        env: &mut Vec<(String, String)>,
    ) -> Option<HugePagesMethod> {
        if command.placement.huge_pages != HugePages::Always {
            return None;
        }
        let means = huge_pages::method(&self.root, program);
        if means == HugePagesMethod::GlibcTunable {
            let tunable = huge_pages::GLIBC_TUNABLE;
            match env.iter_mut().find(|(name, _)| name == "GLIBC_TUNABLES") {
                Some((_, value)) => *value = format!("{value}:{tunable}"),
                None => env.push(("GLIBC_TUNABLES".to_owned(), tunable.to_owned())),
            }
        }
        Some(means)
    }
}

impl LiveProcess {
    /// Lets it start, if it is held.
    pub(super) fn release(&self, root: &SysRoot) -> Result<(), Fault> {
        if self.release_held()? {
            self.verify(root);
        }
        Ok(())
    }

    /// The same at a time, by CLOCK_MONOTONIC; when it really was. One that had started already says when.
    pub(super) async fn release_at(&self, root: &SysRoot, at_ns: u64) -> Result<u64, Fault> {
        let left = || Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
        // The runtime's timers tick by milliseconds; the system's sleep for the rest is exact, and holds up nobody for long.
        sleep(left().saturating_sub(TIMER_SLACK)).await;
        if self.held.borrow().is_some() {
            std::thread::sleep(left());
        }
        if self.release_held()? {
            // Others start at this time too, and must not wait for a look at this one, which was looked at held.
            sleep(START_SETTLE_TIME).await;
            if !self.has_ended() {
                self.verify(root);
            }
        }
        Ok(self.started_ns.get())
    }

    /// Whether it was held until now.
    fn release_held(&self) -> Result<bool, Fault> {
        let Some(held) = self.held.borrow_mut().take() else { return Ok(false) };
        let failed = |error: LaunchError| Fault::SpawnFailed { program: self.program.clone(), why: error.to_string() };
        self.started_ns.set(held.release().map_err(failed)?);
        Ok(true)
    }

    /// Its end, when it comes, and the end of its standard output where that is hashed; brought about after the limit.
    pub(super) async fn wait(&self, limit: Option<Nanos>) -> Result<(ExitReport, Vec<u8>), Fault> {
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
            // What it left running may write for ever.
            for _ in 0..MAX_DRAINS {
                if output.drain() || output.has_exceeded() {
                    break;
                }
                sleep(Duration::ZERO).await;
            }
        }
        let (stdout, end_of_output) = self.stdout.capture_result();
        let ended = ExitReport {
            ending: self.exit_reason(reaped.status),
            started_ns: self.started_ns.get(),
            ended_ns,
            usage: reaped.usage,
            stdout,
            placement: self.placement_report.borrow().clone(),
        };
        Ok((ended, end_of_output))
    }

    /// Sends a signal to it and its process group.
    pub(super) fn signal(&self, number: i32) -> Result<(), Fault> {
        let signal = Signal::from_named_raw(number)
            .ok_or_else(|| Fault::Refused { why: format!("there is no signal {number}") })?;
        self.send_signal(signal);
        Ok(())
    }

    /// A part of what it wrote, and whether more may come.
    pub(super) async fn output(&self, stream: Stream, offset: u64, follow: bool) -> (bool, Vec<u8>) {
        let output = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        loop {
            let (changed, ending) = (output.changed.notified(), self.ending.notified());
            output.drain();
            let more = output.is_open() && !output.has_exceeded() && !self.has_ended();
            if !follow || !more || output.length() > offset {
                return (more, output.chunk_at(offset));
            }
            tokio::select! {
                () = changed => {}
                () = ending => {}
            }
        }
    }

    /// Nobody will ask for it any more; whether it can be forgotten at once.
    pub(super) fn forget_when_ended(&self) -> bool {
        self.forgotten.set(true);
        self.has_ended()
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.forgotten.get()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// To be told once, by the reaper.
    pub(super) fn record_exit(&self, reaped: ReapedChild) {
        let ended_ns = self.end_time.as_ref().and_then(ExitTimer::ns).unwrap_or_else(monotonic_ns);
        self.ended.set(Some((reaped, ended_ns)));
        self.held.borrow_mut().take();
        self.ending.notify_waiters();
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
        for (output, stream) in [(&self.stdout, Stream::Stdout), (&self.stderr, Stream::Stderr)] {
            if output.has_exceeded() {
                return ExitReason::TooMuchOutput { stream, limit: self.limit };
            }
        }
        match status {
            ExitStatus::Exited(status) => ExitReason::Exited { status },
            ExitStatus::Signalled(signal) => ExitReason::Signalled { signal },
        }
    }

    /// Looks how it really runs, unless it ended already.
    fn verify(&self, root: &SysRoot) {
        let seen = EffectivePlacement::read(root, self.pid);
        self.placement_report.borrow_mut().effective =
            EffectivePlacement { huge_pages_method: self.huge_pages_method, ..seen };
    }

    /// Whether anything was asked of how it runs.
    pub(super) fn is_placed(&self) -> bool {
        self.placement != Placement::default()
    }

    /// Looks whether a process that belongs to it runs outside what was asked, as one does that moves itself. Of one
    /// that has ended and is not reaped yet the kernel still says where it was.
    pub(super) fn check_for_strays(&self, root: &SysRoot, pid: u32) {
        if !self.is_placed() {
            return;
        }
        let strayed = EffectivePlacement::read(root, pid).escaped_bounds(&self.placement);
        if !strayed.is_empty() {
            let name = root.text(format!("/proc/{pid}/comm")).unwrap_or_default();
            let sentences = strayed.iter().map(|difference| format!("{} moved itself: {difference}", name.trim()));
            self.placement_report.borrow_mut().escapes.extend(sentences);
        }
    }

    /// How it runs, as far as it was looked at.
    pub(super) fn placement_report(&self) -> PlacementReport {
        self.placement_report.borrow().clone()
    }

    /// While it is not reaped, its id is nobody else's.
    fn send_signal(&self, signal: Signal) {
        if !self.has_ended()
            && let Some(pid) = Pid::from_raw(self.pid.cast_signed())
        {
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// The whole environment of a process: a fixed one, then what its group and the command add or replace.
fn environment(group: &LiveGroup, command: &Command) -> Vec<(String, String)> {
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
    let as_here = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
    let inherited = command.inherit.iter().filter_map(as_here);
    let found = group.overrides.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    for (name, value) in inherited.chain(found).chain(command.env.iter().cloned()) {
        match env.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => env.push((name, value)),
        }
    }
    env
}
