use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use wb_agent::protocol::{
    ActiveRuns, AgentSession, Call, CapturedOutput, ClockReading, Command, Controller, EncodedReply, ExitReport, Fault,
    GroupHandle, InstalledProgram, OutputStream, PlacementReport, ProcessHandle, RecoveryReport, Request,
    ScratchHandle, TeardownReport, TuneReport, WithBytes, call,
};
use wb_agent::{Connection, Worker, WorkerError};
use wb_model::facts::{Cpu, Node};
use wb_model::{Bytes, Facts, Sha256, WorkerName};
use wb_sys::Environment;
use wb_sys::process::ResourceUsage;
use wb_sys::telemetry::Telemetry;

use crate::FakeProcess;
use crate::state::State;

/// A simulated agent. Clones share its state.
#[derive(Clone)]
pub struct FakeAgent(Arc<Inner>);

struct Inner {
    name: WorkerName,
    facts: Mutex<Facts>,
    program: Box<dyn Fn(&Command) -> FakeProcess + Send + Sync>,
    started: Instant,
    state: Mutex<State>,
    lost: Notify,
}

/// Facts of a machine with two CPUs and 8 GiB of memory.
pub fn facts() -> Facts {
    let cpu = |id| Cpu { id, core: id, package: 0, node: 0 };
    Facts {
        hostname: "fake".to_owned(),
        kernel: "6.1.0".to_owned(),
        arch: "x86_64".to_owned(),
        cpu_model: "Simulated CPU".to_owned(),
        cpus: vec![cpu(0), cpu(1)],
        nodes: vec![Node { id: 0, cpus: vec![0, 1], memory: Bytes(8 << 30) }],
        memory: Bytes(8 << 30),
        memory_available: Bytes(6 << 30),
        boot_id: "00000000-0000-0000-0000-000000000001".to_owned(),
        ..Facts::default()
    }
}

impl FakeAgent {
    /// Creates an agent on a machine with [`facts`]; the function determines the behaviour of a process from its
    /// command. Call it within a tokio runtime, whose clock is used as the machine's.
    pub fn new(name: WorkerName, program: impl Fn(&Command) -> FakeProcess + Send + Sync + 'static) -> Self {
        Self::with_facts(name, facts(), program)
    }

    /// Like [`FakeAgent::new`], on a machine with other facts.
    pub fn with_facts(
        name: WorkerName,
        facts: Facts,
        program: impl Fn(&Command) -> FakeProcess + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            name,
            facts: Mutex::new(facts),
            program: Box::new(program),
            started: Instant::now(),
            state: Mutex::default(),
            lost: Notify::new(),
        }))
    }

    /// Returns the handle of its worker.
    pub fn worker(&self) -> Worker {
        Worker::from_connection(self.0.name.clone(), "/usr/bin/weighbridge", self.clone())
    }

    /// Returns the number of groups that were created and not torn down.
    pub fn open_groups(&self) -> usize {
        self.state().open_groups()
    }

    /// Sets the result of all further teardowns.
    pub fn set_teardown(&self, teardown: impl Fn() -> TeardownReport + Send + 'static) {
        self.state().teardown = Some(Box::new(teardown));
    }

    /// Sets the result of setting knobs from now on; without it, there is none for any knob.
    pub fn set_tune(&self, tune: impl Fn(&call::Tune) -> Result<TuneReport, Fault> + Send + 'static) {
        self.state().tune = Some(Box::new(tune));
    }

    /// Returns its announcement of a run by this process; it differs from those of agents with other names.
    pub fn holder(&self) -> AgentSession {
        let agent = self.0.name.as_str().bytes().fold(1, |sum, byte| sum * 31 + u32::from(byte));
        AgentSession { controller: Controller::current(), agent, owner: None, since: jiff::Timestamp::UNIX_EPOCH }
    }

    /// Sets the announcements of other agents on its machine.
    pub fn set_announced(&self, announced: Vec<AgentSession>) {
        self.state().announced = announced;
    }

    /// Installs a program with this content, in place of one of the same name.
    pub fn install(&self, program: &str, content: &str) {
        self.state().programs.insert(program.to_owned(), content.to_owned());
    }

    /// Changes the machine.
    pub fn change_facts(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts());
    }

    /// Sets the telemetry of all further recordings.
    pub fn set_telemetry(&self, telemetry: Telemetry) {
        self.state().telemetry = telemetry;
    }

    /// Breaks the connection: all further and pending calls fail.
    pub fn disconnect(&self, reason: &str) {
        self.state().lost = Some(reason.to_owned());
        self.0.lost.notify_waiters();
    }

    /// Breaks the connection at the first matching request, before it is answered.
    pub fn disconnect_at(&self, matches: impl Fn(&Request) -> bool + Send + 'static) {
        self.state().breaks_at = Some(Box::new(matches));
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    async fn answer(&self, request: Request) -> Result<EncodedReply, Fault> {
        match request {
            Request::Ping(call) => call.reply(()),
            Request::Clock(call) => {
                let now = self.now_ns();
                call.reply(ClockReading { received_ns: now, replied_ns: now, wall_ns: now })
            }
            Request::Facts(call) => call.reply(self.facts().clone()),
            Request::Environment(call) => call.reply(Environment::default()),
            Request::Doctor(_) => Err(Fault::Refused { why: "a simulated machine has no noise".to_owned() }),
            Request::Which(call) => call.reply(self.installed_program(&call.program)),
            Request::Scratch(call) => {
                let id = self.state().next_id();
                call.reply(ScratchHandle { id, path: folder_path(id) })
            }
            Request::RemoveScratch(call) => call.reply(()),
            Request::Put(call) => {
                self.state().write(&call);
                call.reply(())
            }
            Request::Get(call) => {
                let state = self.state();
                let bytes = state.read(&call.path)?;
                call.reply(WithBytes { value: bytes.len() as u64, bytes: bytes_from(bytes, call.offset) })
            }
            Request::FreePort(call) => call.reply(call.first),
            Request::List(call) => call.reply(self.state().list(&call.path)),
            Request::Remove(call) => {
                self.state().remove(&call.path);
                call.reply(())
            }
            Request::Group(call) => {
                let id = self.state().open_group();
                call.reply(GroupHandle { id, folder: folder_path(id), cgroup: None })
            }
            Request::CheckKnobs(call) => call.reply(Vec::new()),
            Request::Refusal(call) => call.reply(None),
            Request::Tune(call) => {
                let report = self.state().tune.as_ref().map_or_else(|| Ok(TuneReport(Vec::new())), |tune| tune(&call));
                call.reply(report?)
            }
            Request::Recovery(call) => call.reply(RecoveryReport::default()),
            Request::ApplyChange(call) => call.reply(true),
            Request::SetCleanup(call) => call.reply(()),
            Request::Teardown(call) => call.reply(self.state().close_group(call.group)?),
            Request::Spawn(call) => {
                let process = (self.0.program)(&call.command);
                let started_ns = (!call.suspended).then(|| self.now_ns());
                let id = self.state().start(process, started_ns);
                call.reply(ProcessHandle { id, pid: id })
            }
            Request::Release(call) => {
                let now = self.now_ns();
                self.state().process(call.process)?.started_ns.get_or_insert(now);
                call.reply(())
            }
            Request::ReleaseAt(call) => {
                sleep(Duration::from_nanos(call.at_ns.saturating_sub(self.now_ns()))).await;
                let now = self.now_ns();
                call.reply(*self.state().process(call.process)?.started_ns.get_or_insert(now))
            }
            Request::Wait(call) => {
                let running = self.state().process(call.process)?.clone();
                let started_ns = running.started_ns.unwrap_or_default();
                let (exit_reason, elapsed) = running.end(call.limit);
                let ended_ns = started_ns + elapsed.0;
                sleep(Duration::from_nanos(ended_ns.saturating_sub(self.now_ns()))).await;
                let report = ExitReport {
                    exit_reason,
                    started_ns,
                    ended_ns,
                    // It computes all the time.
                    usage: ResourceUsage { user_ns: elapsed.0, ..ResourceUsage::default() },
                    outlived_by: Vec::new(),
                    stdout: CapturedOutput::Kept,
                    arrivals: Vec::new(),
                    placement: PlacementReport::default(),
                };
                call.reply(WithBytes { value: report, bytes: Vec::new() })
            }
            Request::Inspect(call) => call.reply(PlacementReport::default()),
            Request::Signal(call) => call.reply(()),
            Request::Output(call) => {
                let mut state = self.state();
                let running = state.process(call.process)?;
                let bytes = match call.stream {
                    OutputStream::Stdout => &running.process.stdout,
                    OutputStream::Stderr => &running.process.stderr,
                };
                call.reply(WithBytes { value: false, bytes: bytes_from(bytes, call.offset) })
            }
            Request::Forget(call) => {
                self.state().forget(call.process);
                call.reply(())
            }
            Request::StartRecording(call) => call.reply(self.state().next_id()),
            Request::FinishRecording(call) => call.reply((self.state().telemetry.clone(), Vec::new())),
            Request::Announce(call) => {
                call.reply(ActiveRuns { own: self.holder(), others: self.state().announced.clone() })
            }
            Request::Close(call) => call.reply(()),
        }
    }

    /// Looks up a program; every program is installed.
    fn installed_program(&self, program: &str) -> Option<InstalledProgram> {
        let state = self.state();
        let content = state.programs.get(program).map_or(program, String::as_str);
        let sha256 = Sha256::digest(content.as_bytes()).to_string();
        Some(InstalledProgram { path: format!("/usr/bin/{program}"), sha256, version: None })
    }

    fn lost(&self) -> Option<WorkerError> {
        let reason = self.state().lost.clone()?;
        Some(WorkerError::Lost { worker: self.0.name.clone(), reason })
    }
}

fn folder_path(id: u32) -> String {
    format!("/tmp/fake-{id}")
}

/// Returns the bytes from an offset; none beyond the end.
fn bytes_from(bytes: &[u8], offset: u64) -> Vec<u8> {
    bytes.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).copied().collect()
}

impl fmt::Debug for FakeAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FakeAgent").field(&self.0.name).finish()
    }
}

#[async_trait]
impl Connection for FakeAgent {
    async fn call(&self, request: Request) -> Result<EncodedReply, WorkerError> {
        let disconnected = self.0.lost.notified();
        let breaks = self.state().breaks_at.as_ref().is_some_and(|matches| matches(&request));
        if breaks {
            self.disconnect("the cable was pulled");
        }
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        let reply = tokio::select! {
            reply = self.answer(request) => reply,
            () = disconnected => return Err(self.lost().unwrap_or_else(|| unreachable!("a lost connection has a reason"))),
        };
        reply.map_err(|fault| WorkerError::Fault { worker: self.0.name.clone(), fault })
    }

    fn notify(&self, request: Request) {
        let mut state = self.state();
        match request {
            // A group that is gone already is ignored.
            Request::Teardown(call) => drop(state.close_group(call.group)),
            Request::Forget(call) => state.forget(call.process),
            _ => {}
        }
    }

    async fn closed(&self) {}
}
