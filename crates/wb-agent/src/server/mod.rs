//! The agent's side: one thread, one task per call.
//!
//! One thread, because a process is killed with the thread that started it, and because whoever
//! measures must not be disturbed by whoever watches.

mod agent_folder;
mod announcements;
mod files;
mod groups;
mod machine_lock;
mod output;
mod processes;
mod reaper;
mod recordings;
mod tuning;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, mpsc};
use tokio::task::LocalSet;
use wb_knobs::doctor::doctor;
use wb_sys::cgroup::Cgroups;
use wb_sys::process::Owner;
use wb_sys::{Environment, SysRoot, UndoLog};

use crate::clock::{ClockReading, monotonic_ns, wall_ns};
use crate::frame::{self, FrameError};
use crate::keepalive::ActivityReader;
use crate::protocol::{Call, Fault, Hello, Request, Response, VERSION};
use crate::session::{ActiveRuns, AgentSession, Controller, HelloReply, SessionConfig};
use crate::worker::RecoveryReport;

use agent_folder::AgentFolder;
pub use announcements::announced_runs;
use announcements::{Announcement, AnnouncementKind};
use groups::LiveGroup;
use machine_lock::MachineLock;
use processes::LiveProcess;
use recordings::LiveRecording;
pub use tuning::RUN;

/// Why an agent ended otherwise than by the end of its input.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The other side speaks another version.
    #[error(
        "the controller speaks version {0} of the protocol, this agent {VERSION}: use the same weighbridge on both"
    )]
    Version(u32),
    /// The pipe.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The agent could not set itself up.
    #[error("the agent cannot {what}: {source}")]
    Setup {
        /// What it could not do.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The controller said nothing for so long.
    #[error("the controller has said nothing for {}", wb_model::Nanos(.0.as_nanos().try_into().unwrap_or(u64::MAX)))]
    IdleTimeout(Duration),
}

/// Serves one controller until its input ends, it is told to close, or it gets SIGTERM, SIGINT or
/// SIGHUP, or it is silent for longer than it said it would be; then ends every process and removes every file and cgroup that it made.
///
/// It waits for all children of the calling thread, adopted ones included, and they die with it: run it on a
/// current-thread runtime, on the first thread of a process that has no other children.
///
/// # Errors
/// When it cannot be set up, or the other side is no controller of this version.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + 'static,
    root: SysRoot,
) -> Result<(), AgentError> {
    LocalSet::new().run_until(run(input, output, root)).await
}

async fn run(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin + 'static,
    root: SysRoot,
) -> Result<(), AgentError> {
    let watch = |kind| signal(kind).map_err(|source| AgentError::Setup { what: "watch signals", source });
    let mut ends = [watch(SignalKind::terminate())?, watch(SignalKind::interrupt())?, watch(SignalKind::hangup())?];
    let children = watch(SignalKind::child())?;
    let [terminate, interrupt, hangup] = &mut ends;

    let mut input = ActivityReader::new(input);
    let last_word = input.last_activity();
    let Some(terms) = handshake(&mut input, &mut output).await? else { return Ok(()) };
    let held = terms.exclusive.as_ref().map(|controller| MachineLock::acquire(&root, controller)).transpose();
    let held = held.map_err(|source| AgentError::Setup { what: "take the machine for its controller", source })?;
    let _held = match held.transpose() {
        Ok(held) => held,
        Err(holder) => return Ok(frame::write(&mut output, &HelloReply::InUse(holder), &[]).await?),
    };

    let owner = Owner::current(&root);
    let alone = terms
        .exclusive
        .as_ref()
        .map(|controller| announcements::announce_exclusive(&announcements::folder(), owner, controller));
    let _alone = match alone.transpose() {
        Ok(alone) => alone,
        Err(holder) => return Ok(frame::write(&mut output, &HelloReply::InUse(Some(holder)), &[]).await?),
    };

    let agent = Rc::new(Agent::new(root, terms.exclusive)?);
    frame::write(&mut output, &HelloReply::Ready, &[]).await?;
    let silence = terms.idle_timeout.map(Duration::from);
    tokio::task::spawn_local(reaper::run(agent.clone(), children));
    let (answers, queue) = mpsc::channel(64);
    let writer = tokio::task::spawn_local(write_responses(output, queue));
    let result = tokio::select! {
        result = read_calls(&agent, &mut input, answers) => result,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        _ = hangup.recv() => Ok(()),
        () = last_word.wait_until_idle(silence) => Err(AgentError::IdleTimeout(silence.unwrap_or_default())),
    };
    agent.close().await;
    // The answers of what was still under way, the one to `close` too; nobody may be reading them.
    let _ = tokio::time::timeout(Duration::from_millis(200), writer).await;
    result
}

/// Exchanges greetings; the controller's terms, unless it went before it said a word.
async fn handshake(
    input: &mut (impl AsyncRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
) -> Result<Option<SessionConfig>, AgentError> {
    frame::write(output, &Hello::new(SessionConfig::default()), &[]).await?;
    match frame::read::<Hello>(input).await? {
        None => Ok(None),
        Some((hello, _)) if hello.protocol != VERSION => Err(AgentError::Version(hello.protocol)),
        Some((hello, _)) => Ok(Some(hello.terms)),
    }
}

type ResponseSender = mpsc::Sender<(Response, Vec<u8>)>;

/// Reads calls and starts a task for each, until the input ends or a call says so.
async fn read_calls(
    agent: &Rc<Agent>,
    input: &mut (impl AsyncRead + Unpin),
    answers: ResponseSender,
) -> Result<(), AgentError> {
    while let Some((Call { id, request }, payload)) = frame::read::<Call>(input).await? {
        let received_ns = monotonic_ns();
        if matches!(request, Request::Close) {
            agent.close().await;
            let _ = answers.send((Response { id, result: Ok(Value::Null) }, Vec::new())).await;
            return Ok(());
        }
        let (agent, answers) = (agent.clone(), answers.clone());
        tokio::task::spawn_local(async move {
            let (result, payload) = match agent.handle(request, payload, received_ns).await {
                Ok(CallResult { value, payload }) => (Ok(value), payload),
                Err(fault) => (Err(fault), Vec::new()),
            };
            let _ = answers.send((Response { id, result }, payload)).await;
        });
    }
    Ok(())
}

/// Writes answers until there are no more; what cannot be written is of interest to nobody.
async fn write_responses(mut output: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<(Response, Vec<u8>)>) {
    while let Some((answer, payload)) = queue.recv().await {
        let written = match frame::write(&mut output, &answer, &payload).await {
            Err(error @ FrameError::TooLarge(_)) => {
                let result = Err(Fault::Refused { why: error.to_string() });
                frame::write(&mut output, &Response { id: answer.id, result }, &[]).await
            }
            written => written,
        };
        if written.is_err() {
            return;
        }
    }
}

/// What a call comes to.
struct CallResult {
    value: Value,
    payload: Vec<u8>,
}

impl CallResult {
    fn new(value: impl Serialize) -> Result<Self, Fault> {
        Self::with_payload(value, Vec::new())
    }

    /// With what may be too long for a header as the payload, in JSON.
    fn json_payload(value: &impl Serialize) -> Result<Self, Fault> {
        Self::with_json_payload((), value)
    }

    /// The same beside something short.
    fn with_json_payload(short: impl Serialize, long: &impl Serialize) -> Result<Self, Fault> {
        let json = serde_json::to_vec(long).map_err(|error| Fault::Refused { why: error.to_string() })?;
        Self::with_payload(short, json)
    }

    fn with_payload(value: impl Serialize, payload: Vec<u8>) -> Result<Self, Fault> {
        let value = serde_json::to_value(value).map_err(|error| Fault::Refused { why: error.to_string() })?;
        Ok(Self { value, payload })
    }
}

/// Everything that an agent has made and not yet removed.
struct Agent {
    root: SysRoot,
    /// Whom it serves; none where that is the process that started it on this machine.
    controller: Option<Controller>,
    home: AgentFolder,
    cgroups: Cgroups,
    groups: RefCell<BTreeMap<u32, Rc<LiveGroup>>>,
    processes: RefCell<BTreeMap<u32, Rc<LiveProcess>>>,
    recordings: RefCell<BTreeMap<u32, Rc<LiveRecording>>>,
    /// The undo log, while anything is changed for a group.
    log: Mutex<Option<UndoLog>>,
    recovery: RecoveryReport,
    /// The run that this agent measures for, announced to others.
    run: RefCell<Option<(Controller, Announcement)>>,
    last_id: Cell<u32>,
}

impl Agent {
    fn new(root: SysRoot, controller: Option<Controller>) -> Result<Self, AgentError> {
        let set_up = |what| move |source: io::Error| AgentError::Setup { what, source };
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)
            .map_err(set_up("adopt orphaned processes"))?;
        // Before its groups are found: with version 2 they are made inside.
        tuning::enter_shield(&root);
        let cgroups = Cgroups::find(&root);
        cgroups.remove_stale(&root);
        groups::kill_stale(&root);
        let left_behind = tuning::restore(&root);
        let home = AgentFolder::new(&root).map_err(set_up("make its folder"))?;
        Ok(Self {
            root,
            controller,
            home,
            cgroups,
            groups: RefCell::default(),
            processes: RefCell::default(),
            recordings: RefCell::default(),
            log: Mutex::default(),
            recovery: left_behind,
            run: RefCell::default(),
            last_id: Cell::new(0),
        })
    }

    fn next_id(&self) -> u32 {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

    async fn handle(
        self: &Rc<Self>,
        request: Request,
        payload: Vec<u8>,
        received_ns: u64,
    ) -> Result<CallResult, Fault> {
        match request {
            Request::Ping => CallResult::new(()),
            Request::Clock => {
                let wall_ns = wall_ns();
                CallResult::new(ClockReading { received_ns, replied_ns: monotonic_ns(), wall_ns })
            }
            Request::Facts => CallResult::new(wb_sys::facts(&self.root)),
            Request::Environment { programs } => CallResult::json_payload(&Environment::read(&self.root, &programs)),
            Request::Doctor => CallResult::json_payload(&doctor(&self.root)),
            Request::Which { program } => CallResult::new(files::which(&program)?),
            Request::Scratch { base } => CallResult::new(self.home.create_scratch(self.next_id(), base)?),
            Request::RemoveScratch { id } => CallResult::new(self.home.remove_scratch(id)?),
            Request::Put { path, offset, mode } => CallResult::new(files::put(&path, offset, mode, &payload)?),
            Request::Get { path, offset } => {
                let (length, payload) = files::get(&path, offset)?;
                CallResult::with_payload(length, payload)
            }
            Request::List { path } => CallResult::json_payload(&files::list(&path)?),
            Request::Remove { path } => CallResult::new(files::remove(&self.home, &path)?),
            Request::Group { overrides: found } => CallResult::new(self.create_group(found)?),
            Request::CheckKnobs { knobs } => CallResult::new(tuning::check_knobs(&self.root, &knobs)),
            Request::Refusal { step } => CallResult::new(step.refusal(&self.root).map(|refusal| refusal.to_string())),
            Request::Tune { group, knobs, strict } => CallResult::new(self.tune(group, &knobs, strict).await?),
            Request::RecoveryReport => CallResult::new(&self.recovery),
            Request::ApplyStep { group, step, state } => CallResult::new(self.change(group, *step, state).await?),
            Request::Teardown { group } => CallResult::new(self.teardown(group).await?),
            Request::Spawn { group, command, hold } => CallResult::new(self.spawn(group, &command, payload, hold)?),
            Request::Release { process } => CallResult::new(self.process(process)?.release(&self.root)?),
            Request::ReleaseAt { process, at_ns } => {
                CallResult::new(self.process(process)?.release_at(&self.root, at_ns).await?)
            }
            Request::Wait { process, limit } => {
                let (ended, end_of_output) = self.process(process)?.wait(limit).await?;
                CallResult::with_payload(ended, end_of_output)
            }
            Request::Inspect { process } => CallResult::new(self.inspect(process)?),
            Request::Signal { process, signal } => CallResult::new(self.process(process)?.signal(signal)?),
            Request::Output { process, stream, offset, follow } => {
                let (more, payload) = self.process(process)?.output(stream, offset, follow).await;
                CallResult::with_payload(more, payload)
            }
            Request::Forget { process } => {
                self.forget(process);
                CallResult::new(())
            }
            Request::StartRecording { group, interval } => CallResult::new(self.record(group, interval)?),
            Request::FinishRecording { recording } => {
                let (telemetry, other_runs) = self.finish_recording(recording)?;
                CallResult::with_json_payload(other_runs, &telemetry)
            }
            Request::Announce { controller } => CallResult::new(self.announce(controller)?),
            Request::Close => CallResult::new(()),
        }
    }

    /// Announces a run, and finds the others that are under way.
    fn announce(&self, controller: Controller) -> Result<ActiveRuns, Fault> {
        let folder = announcements::folder();
        // One that was announced before is withdrawn first: its file has the same name.
        self.run.take();
        let others = announcements::read_announcements(&folder, AnnouncementKind::Run);
        let announced = Announcement::new(&folder, self.home.owner(), AnnouncementKind::Run, controller.clone());
        let announcement = announced.map_err(|error| files::file_fault(folder.display(), &error))?;
        let own = announcement.holder.clone();
        self.run.replace(Some((controller, announcement)));
        Ok(ActiveRuns { own, others })
    }

    /// A run of another controller that is under way on this machine, whether this agent measures already or not.
    fn foreign_run(&self) -> Option<AgentSession> {
        let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid().unsigned_abs());
        // The controller of this machine has started its agent itself.
        let is_ours = |holder: &AgentSession| match &self.controller {
            Some(controller) => holder.controller == *controller,
            None => Some(holder.controller.pid) == parent,
        };
        announcements::read_announcements(&announcements::folder(), AnnouncementKind::Run)
            .into_iter()
            .find(|holder| !is_ours(holder))
    }

    /// The runs of other controllers that are under way on this machine, for an agent that measures for one.
    fn other_runs(&self) -> Vec<AgentSession> {
        let run = self.run.borrow();
        run.as_ref().map_or_else(Vec::new, |(controller, _)| {
            announcements::read_others(&announcements::folder(), AnnouncementKind::Run, controller)
        })
    }

    fn process(&self, id: u32) -> Result<Rc<LiveProcess>, Fault> {
        self.processes.borrow().get(&id).cloned().ok_or(Fault::NoSuchId { what: "process".to_owned(), id })
    }

    fn group(&self, id: u32) -> Result<Rc<LiveGroup>, Fault> {
        self.groups.borrow().get(&id).cloned().ok_or(Fault::NoSuchId { what: "group".to_owned(), id })
    }

    /// Forgets a process, now or when it ends.
    fn forget(&self, id: u32) {
        let mut processes = self.processes.borrow_mut();
        if processes.get(&id).is_some_and(|process| process.forget_when_ended()) {
            processes.remove(&id);
        }
    }

    /// Ends and removes everything. To be called again does nothing.
    async fn close(&self) {
        // The last first: what it changed may stand on what an earlier one did.
        let groups: Vec<u32> = self.groups.borrow().keys().rev().copied().collect();
        for group in groups {
            let _ = self.teardown(group).await;
        }
        self.kill_strays().await;
        self.run.take();
        self.home.remove();
    }
}
