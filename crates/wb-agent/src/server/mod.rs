//! The agent: one thread, one task per request.
//!
//! It is single-threaded because a child is killed with the thread that started it, and because observing must not
//! disturb what is measured.

mod agent_folder;
mod announcements;
mod files;
mod groups;
mod machine_lock;
mod output;
mod pending_cleanup;
mod ports;
mod processes;
mod reaper;
mod recordings;
mod tuning;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, mpsc};
use tokio::task::LocalSet;
use wb_knobs::doctor::doctor;
use wb_sys::cgroup::Cgroups;
use wb_sys::process::Owner;
use wb_sys::{Environment, SysRoot, UndoLog};

use crate::clock::{monotonic_ns, wall_ns};
use crate::frame::{self, FrameError};
use crate::keepalive::ActivityReader;
use crate::protocol::{
    ActiveRuns, AgentSession, Call, ClockReading, Controller, EncodedReply, Fault, Hello, HelloReply, RecoveryReport,
    Request, RequestMessage, ResponseMessage, SessionConfig, VERSION,
};

use agent_folder::AgentFolder;
pub use announcements::announced_runs;
use announcements::{Announcement, AnnouncementKind};
use groups::LiveGroup;
use machine_lock::MachineLock;
use output::ReadBuffer;
use processes::LiveProcess;
use recordings::LiveRecording;
pub use tuning::RUN;

/// Error that ends an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(
        "the controller has protocol version {0}, this agent has {VERSION}: use the same weighbridge release on both"
    )]
    Version(u32),
    /// Reading or writing the pipe failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Setting up the agent failed.
    #[error("the agent cannot {step}: {source}")]
    Setup { step: &'static str, source: io::Error },
    /// The idle timeout passed without data from the controller.
    #[error("no data received from the controller for {}", wb_model::Nanos(.0.as_nanos().try_into().unwrap_or(u64::MAX)))]
    IdleTimeout(Duration),
}

/// Serves one controller until the input ends, a close request, SIGTERM, SIGINT or SIGHUP arrives, or the idle timeout
/// passes; then kills all its processes and removes all files and cgroups that it created.
///
/// It reaps all children of the calling thread, adopted ones included, and they die with that thread: run it on a
/// current-thread runtime, on the main thread of a process that has no other children.
///
/// # Errors
/// If the setup fails, or the other side is not a controller of this version.
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
    let watch = |kind| signal(kind).map_err(|source| AgentError::Setup { step: "watch signals", source });
    let mut stop_signals =
        [watch(SignalKind::terminate())?, watch(SignalKind::interrupt())?, watch(SignalKind::hangup())?];
    let children = watch(SignalKind::child())?;
    let [terminate, interrupt, hangup] = &mut stop_signals;

    let input = ActivityReader::new(input);
    let last_word = input.last_activity();
    let mut input = frame::buffered(input);
    let Some(config) = handshake(&mut input, &mut output).await? else { return Ok(()) };
    let lock = config.exclusive.as_ref().map(|controller| MachineLock::acquire(&root, controller)).transpose();
    let lock = lock.map_err(|source| AgentError::Setup { step: "lock the machine for its controller", source })?;
    let _lock = match lock.transpose() {
        Ok(lock) => lock,
        Err(holder) => return Ok(frame::write(&mut output, &HelloReply::InUse(holder), &[]).await?),
    };

    let owner = Owner::current(&root);
    let announcement = config
        .exclusive
        .as_ref()
        .map(|controller| announcements::announce_exclusive(&root, &announcements::folder(), owner, controller));
    let _announcement = match announcement.transpose() {
        Ok(announcement) => announcement,
        Err(holder) => return Ok(frame::write(&mut output, &HelloReply::InUse(Some(holder)), &[]).await?),
    };

    let agent = Rc::new(Agent::new(root, config.exclusive)?);
    frame::write(&mut output, &HelloReply::Ready, &[]).await?;
    let idle_timeout = config.idle_timeout.map(Duration::from);
    tokio::task::spawn_local(reaper::run(agent.clone(), children));
    let (responses, queue) = mpsc::channel(64);
    let writer = tokio::task::spawn_local(write_responses(output, queue));
    let result = tokio::select! {
        result = read_requests(&agent, &mut input, responses) => result,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        _ = hangup.recv() => Ok(()),
        () = last_word.wait_until_idle(idle_timeout) => Err(AgentError::IdleTimeout(idle_timeout.unwrap_or_default())),
    };
    agent.close().await;
    // Flush the responses of pending calls and of `close`; the reader may be gone already.
    let _ = tokio::time::timeout(Duration::from_millis(200), writer).await;
    result
}

/// Performs the handshake; returns the controller's session configuration, or none if the pipe ended before it.
async fn handshake(
    input: &mut (impl AsyncRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
) -> Result<Option<SessionConfig>, AgentError> {
    frame::write(output, &Hello::new(SessionConfig::default()), &[]).await?;
    match frame::read::<Hello>(input).await? {
        None => Ok(None),
        Some((hello, _)) if hello.protocol != VERSION => Err(AgentError::Version(hello.protocol)),
        Some((hello, _)) => Ok(Some(hello.config)),
    }
}

type ResponseSender = mpsc::Sender<(u64, Result<EncodedReply, Fault>)>;

/// Reads requests and spawns a task for each, until the input ends or a close request is fulfilled.
async fn read_requests(
    agent: &Rc<Agent>,
    input: &mut (impl AsyncRead + Unpin),
    responses: ResponseSender,
) -> Result<(), AgentError> {
    while let Some((RequestMessage { id, mut request }, payload)) = frame::read(input).await? {
        let received_ns = monotonic_ns();
        request.set_bytes(payload);
        let is_close = matches!(request, Request::Close(_));
        let (agent, responses) = (agent.clone(), responses.clone());
        let answer = async move {
            let result = agent.answer(request, received_ns).await;
            // The writer has ended: nobody reads responses any more.
            let _ = responses.send((id, result)).await;
        };
        if is_close {
            answer.await;
            return Ok(());
        }
        tokio::task::spawn_local(answer);
    }
    Ok(())
}

/// Writes responses until the channel is closed or the pipe fails.
async fn write_responses(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<(u64, Result<EncodedReply, Fault>)>,
) {
    while let Some((id, result)) = queue.recv().await {
        let (response, payload) = ResponseMessage::new(id, result);
        let result = match frame::write(&mut output, &response, &payload).await {
            Err(error) if error.is_of_message() => {
                let (response, _) = ResponseMessage::new(id, Err(Fault::Refused { why: error.to_string() }));
                frame::write(&mut output, &response, &[]).await
            }
            result => result,
        };
        if result.is_err() {
            return;
        }
    }
}

/// State of an agent: everything it has created and not yet removed.
struct Agent {
    root: SysRoot,
    /// The controller; none if that is the local process that started this agent.
    controller: Option<Controller>,
    agent_folder: AgentFolder,
    cgroups: Cgroups,
    groups: RefCell<BTreeMap<u32, Rc<LiveGroup>>>,
    processes: RefCell<BTreeMap<u32, Rc<LiveProcess>>>,
    recordings: RefCell<BTreeMap<u32, Rc<LiveRecording>>>,
    /// The undo log, open while any group has changes.
    log: Mutex<Option<UndoLog>>,
    recovery: RecoveryReport,
    /// The announced run of this agent.
    run: RefCell<Option<(Controller, Announcement)>>,
    /// Buffer for reading the outputs of its processes.
    read_buffer: ReadBuffer,
    last_id: Cell<u32>,
}

impl Agent {
    fn new(root: SysRoot, controller: Option<Controller>) -> Result<Self, AgentError> {
        let set_up = |step| move |source: io::Error| AgentError::Setup { step, source };
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)
            .map_err(set_up("adopt orphaned processes"))?;
        // Before its own cgroup is looked up: with version 2, new groups are created inside it.
        tuning::enter_shield(&root);
        let cgroups = Cgroups::find(&root);
        cgroups.remove_stale(&root);
        groups::kill_stale(&root);
        // In the reverse order of what the dead agents did: their groups set knobs first.
        tuning::run_pending_cleanups(&root);
        let left_behind = tuning::restore(&root);
        let agent_folder = AgentFolder::new(&root).map_err(set_up("create its folder"))?;
        Ok(Self {
            root,
            controller,
            agent_folder,
            cgroups,
            groups: RefCell::default(),
            processes: RefCell::default(),
            recordings: RefCell::default(),
            log: Mutex::default(),
            recovery: left_behind,
            run: RefCell::default(),
            read_buffer: ReadBuffer::default(),
            last_id: Cell::new(0),
        })
    }

    fn next_id(&self) -> u32 {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

    /// Answers a request, which was received at this time.
    async fn answer(self: &Rc<Self>, request: Request, received_ns: u64) -> Result<EncodedReply, Fault> {
        match request {
            Request::Ping(call) => call.reply(()),
            Request::Clock(call) => {
                let wall_ns = wall_ns();
                call.reply(ClockReading { received_ns, replied_ns: monotonic_ns(), wall_ns })
            }
            Request::Facts(call) => call.reply(wb_sys::facts(&self.root)),
            Request::Environment(call) => call.reply(Environment::read(&self.root, &call.programs)),
            Request::Doctor(call) => call.reply(doctor(&self.root)),
            Request::Which(call) => call.reply(files::locate_program(&call.program)?),
            Request::Scratch(call) => {
                call.reply(self.agent_folder.create_scratch(self.next_id(), call.base.as_deref())?)
            }
            Request::RemoveScratch(call) => call.reply(self.agent_folder.remove_scratch(call.id)?),
            Request::Put(call) => call.reply(files::put(&call)?),
            Request::Get(call) => call.reply(files::get(&call.path, call.offset)?),
            Request::List(call) => call.reply(files::list(&call.path)?),
            Request::FreePort(call) => call.reply(ports::find_free_port(call.first..=call.last)?),
            Request::Remove(call) => {
                call.reply(files::remove(&call.path, self.agent_folder.contains(Path::new(&call.path)))?)
            }
            Request::Group(call) => call.reply(self.create_group(call.overrides.clone())?),
            Request::CheckKnobs(call) => call.reply(tuning::check_knobs(&self.root, &call.knobs)),
            Request::Refusal(call) => call.reply(call.resource.refusal(&self.root).map(|refusal| refusal.to_string())),
            Request::Tune(call) => call.reply(self.tune(&call).await?),
            Request::Recovery(call) => call.reply(self.recovery.clone()),
            Request::ApplyChange(call) => call.reply(self.apply_change(&call).await?),
            Request::SetCleanup(call) => call.reply(self.set_cleanup(call.group, &call.commands)?),
            Request::Teardown(call) => call.reply(self.teardown(call.group).await?),
            Request::Spawn(call) => call.reply(self.spawn(&call)?),
            Request::Release(call) => call.reply(self.process(call.process)?.release(&self.root)?),
            Request::ReleaseAt(call) => {
                call.reply(self.process(call.process)?.release_at(&self.root, call.at_ns).await?)
            }
            Request::Wait(call) => call.reply(self.process(call.process)?.wait(call.limit).await?),
            Request::Inspect(call) => call.reply(self.inspect(call.process)?),
            Request::Signal(call) => call.reply(self.process(call.process)?.signal(call.signal)?),
            Request::Output(call) => {
                let process = self.process(call.process)?;
                call.reply(process.output(call.stream, call.offset, call.follow).await)
            }
            Request::Forget(call) => {
                self.discard(call.process);
                call.reply(())
            }
            Request::StartRecording(call) => call.reply(self.record(call.group, call.interval)?),
            Request::FinishRecording(call) => call.reply(self.finish_recording(call.recording)?),
            Request::Announce(call) => call.reply(self.announce(&call.controller)?),
            Request::Close(call) => {
                self.close().await;
                call.reply(())
            }
        }
    }

    /// Announces a run and returns the other active runs.
    fn announce(&self, controller: &Controller) -> Result<ActiveRuns, Fault> {
        let folder = announcements::folder();
        // Withdraw a previous announcement first: its file has the same name.
        self.run.take();
        // Two runs on one machine are a warning, not an error: both record which of their samples the other disturbed.
        let others = announcements::read_announcements(&self.root, &folder, AnnouncementKind::Run);
        let announcement =
            Announcement::new(&folder, self.agent_folder.owner(), AnnouncementKind::Run, controller.clone());
        let announcement = announcement.map_err(|error| files::file_fault(folder.display(), &error))?;
        let own = announcement.holder.clone();
        self.run.replace(Some((controller.clone(), announcement)));
        Ok(ActiveRuns { own, others })
    }

    /// Finds an active run of another controller on this machine, whether or not this agent has announced a run.
    fn foreign_run(&self) -> Option<AgentSession> {
        let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid().unsigned_abs());
        // A local controller is the parent of its agent.
        let is_own = |holder: &AgentSession| match &self.controller {
            Some(controller) => holder.controller == *controller,
            None => Some(holder.controller.pid) == parent,
        };
        announcements::read_announcements(&self.root, &announcements::folder(), AnnouncementKind::Run)
            .into_iter()
            .find(|holder| !is_own(holder))
    }

    /// Returns the active runs of other controllers on this machine; empty if this agent has announced none.
    fn other_runs(&self) -> Vec<AgentSession> {
        let run = self.run.borrow();
        run.as_ref().map_or_else(Vec::new, |(controller, _)| {
            announcements::read_others(&self.root, &announcements::folder(), AnnouncementKind::Run, controller)
        })
    }

    fn process(&self, id: u32) -> Result<Rc<LiveProcess>, Fault> {
        self.processes.borrow().get(&id).cloned().ok_or(Fault::NoSuchId { noun: "process".to_owned(), id })
    }

    fn group(&self, id: u32) -> Result<Rc<LiveGroup>, Fault> {
        self.groups.borrow().get(&id).cloned().ok_or(Fault::NoSuchId { noun: "group".to_owned(), id })
    }

    /// Discards a process, now or when it exits.
    fn discard(&self, id: u32) {
        let mut processes = self.processes.borrow_mut();
        if processes.get(&id).is_some_and(|process| process.discard_when_exited()) {
            processes.remove(&id);
        }
    }

    /// Kills all processes and removes everything. Idempotent.
    async fn close(&self) {
        // Latest first: its changes may depend on those of an earlier group.
        let groups: Vec<u32> = self.groups.borrow().keys().rev().copied().collect();
        for group in groups {
            // What cannot be reverted stays in the undo log: the next agent tries again and reports it.
            let _ = self.teardown(group).await;
        }
        self.kill_remaining().await;
        self.run.take();
        self.agent_folder.remove();
    }
}
