//! The engines of one machine as one: in this process for threads, in child processes for strands that are processes.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::child::ChildEngine;
use super::clock::Nanos;
use super::fork_server::ForkServer;
use super::local::LocalEngine;
use super::protocol::{
    Assignment, EngineCommand, EngineError, EngineEvent, EngineProgress, ExecutorKind, LinkAnnouncement, StrandTotals,
};
use super::report::EngineReport;
use crate::transport::data_ports::DataPorts;
use wb_net_profile::StrandKind;

/// Creates the command of the process that forks those of strands: it must call
/// [`run_fork_server`](super::fork_server::run_fork_server), on its only thread.
pub type ChildCommandFactory = Arc<dyn Fn() -> io::Result<Command> + Send + Sync>;

/// The engines of this machine. Dropping it ends them.
#[derive(Debug)]
pub struct EngineSet(Sender<EngineSetInput>);

#[derive(Debug)]
pub(super) enum EngineSetInput {
    Command(EngineCommand),
    Event(usize, EngineEvent),
    Exited(usize, String),
    Quit,
}

impl EngineSet {
    /// Starts the engines' driver thread. Engines of this process accept connections on `ports`; `on_event` gets the
    /// events, and returns whether anybody still receives them.
    pub fn start(
        child: ChildCommandFactory,
        ports: Arc<DataPorts>,
        on_event: impl Fn(EngineEvent) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (input, inputs) = channel();
        let own = input.clone();
        thread::Builder::new().name("engine-set".to_owned()).spawn(move || {
            let mut driver = EngineSetDriver {
                on_event: Box::new(on_event),
                child,
                ports,
                own,
                members: Vec::new(),
                groups: Vec::new(),
                processes: None,
            };
            driver.run(&inputs);
        })?;
        Ok(Self(input))
    }

    /// Sends a command to the engines; false when they have ended.
    pub fn send(&self, command: EngineCommand) -> bool {
        self.0.send(EngineSetInput::Command(command)).is_ok()
    }
}

impl Drop for EngineSet {
    fn drop(&mut self) {
        // Ignored: the engines may have ended already.
        let _: Result<(), _> = self.0.send(EngineSetInput::Quit);
    }
}

struct EngineSetDriver {
    on_event: Box<dyn Fn(EngineEvent) -> bool + Send>,
    child: ChildCommandFactory,
    ports: Arc<DataPorts>,
    own: Sender<EngineSetInput>,
    members: Vec<MemberEngine>,
    groups: Vec<PendingTotals>,
    /// The parent of the members that are processes, which it outlives.
    processes: Option<ForkServer>,
}

impl Drop for EngineSetDriver {
    fn drop(&mut self) {
        // All at once: each is waited for when it is dropped.
        for member in &mut self.members {
            if let AnyEngine::Child(child) = &mut member.engine {
                child.close();
            }
        }
    }
}

struct MemberEngine {
    engine: AnyEngine,
    assignment: Assignment,
    prepared: Option<(Vec<LinkAnnouncement>, ExecutorKind)>,
    ready: bool,
    progress: EngineProgress,
    report: Option<EngineReport>,
}

enum AnyEngine {
    Local(LocalEngine),
    Child(Box<ChildEngine>),
}

/// The totals that the members have reported for one step of a group.
#[derive(Default)]
struct PendingTotals {
    strands: usize,
    expected: usize,
    totals: Vec<StrandTotals>,
}

impl EngineSetDriver {
    fn run(&mut self, inputs: &Receiver<EngineSetInput>) {
        while let Ok(input) = inputs.recv() {
            let running = match input {
                EngineSetInput::Quit => false,
                EngineSetInput::Command(EngineCommand::Prepare(assignment)) => match self.prepare(*assignment) {
                    Ok(()) => true,
                    Err(fault) => (self.on_event)(EngineEvent::Failed(fault)),
                },
                EngineSetInput::Command(command) => {
                    self.forward(command);
                    true
                }
                EngineSetInput::Event(member, event) => self.handle_event(member, event),
                EngineSetInput::Exited(member, reason) => {
                    self.members[member].report.is_some()
                        || (self.on_event)(EngineEvent::Failed(EngineError::new(reason)))
                }
            };
            if !running {
                return;
            }
        }
    }

    fn prepare(&mut self, assignment: Assignment) -> Result<(), EngineError> {
        if !self.members.is_empty() {
            return Err(EngineError::new("protocol error: second `Prepare`"));
        }
        let strands = assignment.strands.iter();
        self.groups =
            strands.map(|strands| PendingTotals { strands: strands.len(), ..PendingTotals::default() }).collect();
        for (kind, mut part) in partition_strands(&assignment) {
            let member = self.members.len();
            let sender = self.own.clone();
            let engine = match kind {
                StrandKind::Thread => LocalEngine::start(self.ports.clone(), move |event| {
                    sender.send(EngineSetInput::Event(member, event)).is_ok()
                })
                .map(AnyEngine::Local)
                .map_err(|error| EngineError::new(format!("cannot start thread: {error}")))?,
                StrandKind::Process => {
                    let start = || {
                        let processes = match &mut self.processes {
                            Some(processes) => processes,
                            none => none.insert(ForkServer::start(&self.child)?),
                        };
                        ChildEngine::start(processes, member, sender, &mut part, &self.ports)
                    };
                    start()
                        .map(|child| AnyEngine::Child(Box::new(child)))
                        .map_err(|error| EngineError::new(format!("cannot start strand process: {error}")))?
                }
            };
            self.members.push(MemberEngine {
                engine,
                assignment: part,
                prepared: None,
                ready: false,
                progress: EngineProgress::default(),
                report: None,
            });
        }
        for member in &mut self.members {
            let assignment = Box::new(member.assignment.clone());
            member.engine.send(EngineCommand::Prepare(assignment));
        }
        Ok(())
    }

    fn forward(&mut self, command: EngineCommand) {
        if let EngineCommand::Drain { group, totals } = &command
            && let Some(pending) = self.groups.get_mut(*group)
        {
            pending.expected = totals.len();
        } else if let EngineCommand::Run { group, .. } = &command
            && let Some(pending) = self.groups.get_mut(*group)
        {
            pending.expected = pending.strands;
        }
        for member in &mut self.members {
            match &command {
                EngineCommand::Drain { group, totals } => {
                    let own = member.assignment.strands.get(*group).cloned().unwrap_or_default();
                    let totals: Vec<_> = totals.iter().filter(|totals| own.contains(&totals.strand)).cloned().collect();
                    if !totals.is_empty() {
                        member.engine.send(EngineCommand::Drain { group: *group, totals });
                    }
                }
                EngineCommand::Run { group, .. }
                    if member.assignment.strands.get(*group).is_none_or(|strands| strands.is_empty()) => {}
                command => member.engine.send(command.clone()),
            }
        }
    }

    fn handle_event(&mut self, member: usize, event: EngineEvent) -> bool {
        match event {
            EngineEvent::Prepared { links, executor } => {
                self.members[member].prepared = Some((links, executor));
                if self.members.iter().any(|member| member.prepared.is_none()) {
                    return true;
                }
                let prepared: Vec<_> = self.members.iter_mut().filter_map(|member| member.prepared.take()).collect();
                let executor =
                    prepared.iter().map(|(_, executor)| *executor).max().unwrap_or(ExecutorKind::ThreadPerStrand);
                let links = prepared.into_iter().flat_map(|(links, _)| links).collect();
                (self.on_event)(EngineEvent::Prepared { links, executor })
            }
            EngineEvent::Ready => {
                self.members[member].ready = true;
                !self.members.iter().all(|member| member.ready) || (self.on_event)(EngineEvent::Ready)
            }
            EngineEvent::Ended { group, progress, strands } => {
                self.members[member].progress = progress;
                let strands = self.collect_totals(group, strands);
                let progress = self.total_progress(progress.time);
                strands.is_none_or(|strands| (self.on_event)(EngineEvent::Ended { group, progress, strands }))
            }
            EngineEvent::Drained { group, strands } => self
                .collect_totals(group, strands)
                .is_none_or(|strands| (self.on_event)(EngineEvent::Drained { group, strands })),
            EngineEvent::Progress(progress) => {
                self.members[member].progress = progress;
                // One member triggers the report of the sum.
                member > 0 || (self.on_event)(EngineEvent::Progress(self.total_progress(progress.time)))
            }
            EngineEvent::Report(report) => {
                self.members[member].report = Some(*report);
                if self.members.iter().any(|member| member.report.is_none()) {
                    return true;
                }
                let reports = self.members.iter_mut().filter_map(|member| member.report.take());
                if let Some(all) = reports.reduce(EngineReport::merge) {
                    (self.on_event)(EngineEvent::Report(Box::new(all)));
                }
                false
            }
            event @ (EngineEvent::Heartbeat
            | EngineEvent::Raw(_)
            | EngineEvent::StrandProgress(_)
            | EngineEvent::Failed(_)) => (self.on_event)(event),
        }
    }

    fn total_progress(&self, time: Nanos) -> EngineProgress {
        let mut total = EngineProgress { time, ..EngineProgress::default() };
        self.members.iter().for_each(|member| total.add(&member.progress));
        total
    }

    fn collect_totals(&mut self, group: usize, strands: Vec<StrandTotals>) -> Option<Vec<StrandTotals>> {
        let pending = self.groups.get_mut(group)?;
        pending.totals.extend(strands);
        (pending.totals.len() >= pending.expected).then(|| std::mem::take(&mut pending.totals))
    }
}

/// Distributes the strands of an assignment over this process and child processes.
fn partition_strands(assignment: &Assignment) -> Vec<(StrandKind, Assignment)> {
    let groups = &assignment.profile.groups;
    let empty = || assignment.strands.iter().map(|strands| strands.start..strands.start).collect::<Vec<_>>();
    let mut local = empty();
    let mut parts = Vec::new();
    for (group, strands) in assignment.strands.iter().enumerate() {
        if groups.get(group).is_none_or(|group| group.kind == StrandKind::Thread) {
            local[group] = strands.clone();
            continue;
        }
        for strand in strands.clone() {
            let mut own = empty();
            own[group] = strand..strand + 1;
            parts.push((StrandKind::Process, Assignment { strands: own, ..assignment.clone() }));
        }
    }
    if parts.is_empty() || local.iter().any(|strands| !strands.is_empty()) {
        parts.insert(0, (StrandKind::Thread, Assignment { strands: local, ..assignment.clone() }));
    }
    parts
}

impl AnyEngine {
    fn send(&mut self, command: EngineCommand) {
        match self {
            Self::Local(engine) => {
                // Ignored: an engine that has ended has reported why.
                engine.send(command);
            }
            Self::Child(child) => child.send(&command),
        }
    }
}
