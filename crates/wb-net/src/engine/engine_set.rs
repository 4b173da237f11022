//! The engines of one machine as one: in this process for threads, in child processes for strands that are processes.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    local::LocalEngine,
    protocol::{
        Assignment, EngineCommand, EngineError, EngineEvent, EngineProgress, ExecutorKind, LinkAnnouncement,
        StrandTotals,
    },
    report::EngineReport,
};
use crate::language::StrandKind;

/// Makes the command that carries out strands in a process of its own: it must call [`serve_child`].
pub type ChildCommandFactory = Arc<dyn Fn() -> io::Result<Command> + Send + Sync>;

/// More processes than this are not made; each then has several strands, as threads.
pub const MAX_PROCESSES: u32 = 64;

/// The sites of this machine.
#[derive(Debug, Clone)]
pub struct EngineSet(Sender<EngineSetInput>);

#[derive(Debug)]
enum EngineSetInput {
    Command(EngineCommand),
    Event(usize, EngineEvent),
    Exited(usize, String),
    Quit,
}

impl EngineSet {
    /// Makes ready for an assignment; what there is to say goes to `tell`, which says whether anybody listens.
    pub fn start(
        child: ChildCommandFactory,
        tell: impl Fn(EngineEvent) -> bool + Send + 'static,
    ) -> io::Result<EngineSetHandle> {
        let (input, inputs) = channel();
        let own = input.clone();
        thread::Builder::new().name("team".to_owned()).spawn(move || {
            let mut lead =
                EngineSetDriver { on_event: Box::new(tell), child, own, members: Vec::new(), groups: Vec::new() };
            lead.run(&inputs);
        })?;
        Ok(EngineSetHandle(Self(input)))
    }
}

/// Drives a team; when it is dropped everything of the team ends.
#[derive(Debug)]
pub struct EngineSetHandle(EngineSet);

impl EngineSetHandle {
    /// Tells the team what to do; false when it has ended.
    pub fn send(&self, order: EngineCommand) -> bool {
        self.0.0.send(EngineSetInput::Command(order)).is_ok()
    }
}

impl Drop for EngineSetHandle {
    fn drop(&mut self) {
        // A team that has ended needs no telling.
        let _: Result<(), _> = self.0.0.send(EngineSetInput::Quit);
    }
}

struct EngineSetDriver {
    on_event: Box<dyn Fn(EngineEvent) -> bool + Send>,
    child: ChildCommandFactory,
    own: Sender<EngineSetInput>,
    members: Vec<MemberEngine>,
    groups: Vec<PendingTotals>,
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

/// What the members said of a group's step.
#[derive(Default)]
struct PendingTotals {
    strands: usize,
    expected: usize,
    totals: Vec<StrandTotals>,
}

impl EngineSetDriver {
    fn run(&mut self, inputs: &Receiver<EngineSetInput>) {
        while let Ok(input) = inputs.recv() {
            let on = match input {
                EngineSetInput::Quit => false,
                EngineSetInput::Command(EngineCommand::Prepare(assignment)) => match self.prepare(*assignment) {
                    Ok(()) => true,
                    Err(fault) => (self.on_event)(EngineEvent::Failed(fault)),
                },
                EngineSetInput::Command(order) => {
                    self.forward(order);
                    true
                }
                EngineSetInput::Event(member, event) => self.handle_event(member, event),
                EngineSetInput::Exited(member, why) => {
                    self.members[member].report.is_some() || (self.on_event)(EngineEvent::Failed(EngineError::new(why)))
                }
            };
            if !on {
                return;
            }
        }
    }

    fn prepare(&mut self, assignment: Assignment) -> Result<(), EngineError> {
        if !self.members.is_empty() {
            return Err(EngineError::new("it was told on what to work twice"));
        }
        let strands = assignment.strands.iter();
        self.groups =
            strands.map(|strands| PendingTotals { strands: strands.len(), ..PendingTotals::default() }).collect();
        for (kind, part) in partition_strands(&assignment) {
            let member = self.members.len();
            let tell = self.own.clone();
            let drive = match kind {
                StrandKind::Thread => {
                    LocalEngine::start(move |event| tell.send(EngineSetInput::Event(member, event)).is_ok())
                        .map(AnyEngine::Local)
                        .map_err(|error| EngineError::new(format!("no thread: {error}")))?
                }
                StrandKind::Process => ChildEngine::start(&self.child, member, tell)
                    .map(|child| AnyEngine::Child(Box::new(child)))
                    .map_err(|error| EngineError::new(format!("no process for strands: {error}")))?,
            };
            self.members.push(MemberEngine {
                engine: drive,
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

    fn forward(&mut self, order: EngineCommand) {
        if let EngineCommand::Drain { group, totals } = &order
            && let Some(gathering) = self.groups.get_mut(*group)
        {
            gathering.expected = totals.len();
        } else if let EngineCommand::Run { group, .. } = &order
            && let Some(gathering) = self.groups.get_mut(*group)
        {
            gathering.expected = gathering.strands;
        }
        for member in &mut self.members {
            match &order {
                EngineCommand::Drain { group, totals } => {
                    let mine = member.assignment.strands.get(*group).cloned().unwrap_or_default();
                    let totals: Vec<_> =
                        totals.iter().filter(|totals| mine.contains(&totals.strand)).cloned().collect();
                    if !totals.is_empty() {
                        member.engine.send(EngineCommand::Drain { group: *group, totals });
                    }
                }
                EngineCommand::Run { group, .. }
                    if member.assignment.strands.get(*group).is_none_or(|mine| mine.is_empty()) => {}
                order => member.engine.send(order.clone()),
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
            EngineEvent::Ended { group, strands } => self
                .collect_totals(group, strands)
                .is_none_or(|strands| (self.on_event)(EngineEvent::Ended { group, strands })),
            EngineEvent::Drained { group, strands } => self
                .collect_totals(group, strands)
                .is_none_or(|strands| (self.on_event)(EngineEvent::Drained { group, strands })),
            EngineEvent::Progress(progress) => {
                self.members[member].progress = progress;
                // One of them tells for all.
                member > 0 || {
                    let all = self.members.iter().map(|member| member.progress);
                    let sum =
                        all.fold(EngineProgress { time: progress.time, ..EngineProgress::default() }, |sum, one| {
                            EngineProgress {
                                time: sum.time,
                                sent: sum.sent + one.sent,
                                received: sum.received + one.received,
                                operations: sum.operations + one.operations,
                            }
                        });
                    (self.on_event)(EngineEvent::Progress(sum))
                }
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
            event @ (EngineEvent::Heartbeat | EngineEvent::Raw(_) | EngineEvent::Failed(_)) => (self.on_event)(event),
        }
    }

    fn collect_totals(&mut self, group: usize, strands: Vec<StrandTotals>) -> Option<Vec<StrandTotals>> {
        let gathering = self.groups.get_mut(group)?;
        gathering.totals.extend(strands);
        (gathering.totals.len() >= gathering.expected).then(|| std::mem::take(&mut gathering.totals))
    }
}

/// Which strands are carried out where.
fn partition_strands(assignment: &Assignment) -> Vec<(StrandKind, Assignment)> {
    let groups = &assignment.profile.groups;
    let nothing = || assignment.strands.iter().map(|strands| strands.start..strands.start).collect::<Vec<_>>();
    let mut here = nothing();
    let mut parts = Vec::new();
    for (group, strands) in assignment.strands.iter().enumerate() {
        if groups.get(group).is_none_or(|group| group.kind == StrandKind::Thread) {
            here[group] = strands.clone();
            continue;
        }
        let per_process = (strands.len() as u32).div_ceil(MAX_PROCESSES).max(1);
        for start in strands.clone().step_by(per_process as usize) {
            let mut mine = nothing();
            mine[group] = start..(start + per_process).min(strands.end);
            parts.push((StrandKind::Process, Assignment { strands: mine, ..assignment.clone() }));
        }
    }
    if parts.is_empty() || here.iter().any(|strands| !strands.is_empty()) {
        parts.insert(0, (StrandKind::Thread, Assignment { strands: here, ..assignment.clone() }));
    }
    parts
}

impl AnyEngine {
    fn send(&mut self, order: EngineCommand) {
        match self {
            Self::Local(site) => {
                // A site that has ended told why.
                site.send(order);
            }
            Self::Child(child) => child.send(&order),
        }
    }
}

/// A process that carries out strands. It reads orders and writes events, a line of JSON each.
struct ChildEngine {
    child: Child,
    input: Option<ChildStdin>,
}

impl ChildEngine {
    fn start(command: &ChildCommandFactory, member: usize, tell: Sender<EngineSetInput>) -> io::Result<Self> {
        let mut child = command()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| io::Error::other("the process has no output"))?;
        thread::Builder::new().name("child".to_owned()).spawn(move || {
            for line in BufReader::new(output).lines() {
                let heard = line.and_then(|line| serde_json::from_str(&line).map_err(io::Error::other));
                let input = match heard {
                    Ok(event) => EngineSetInput::Event(member, event),
                    Err(error) => EngineSetInput::Exited(
                        member,
                        format!("a process of the run said what cannot be read: {error}"),
                    ),
                };
                if tell.send(input).is_err() {
                    return;
                }
            }
            // Nobody listens any more when the run is over.
            let _: Result<(), _> =
                tell.send(EngineSetInput::Exited(member, "a process of the run ended by itself".to_owned()));
        })?;
        Ok(Self { child, input })
    }

    fn send(&mut self, order: &EngineCommand) {
        let Some(input) = &mut self.input else { return };
        let Ok(mut line) = serde_json::to_vec(order) else { return };
        line.push(b'\n');
        if input.write_all(&line).is_err() {
            // It is gone, and the reader of its output tells.
            self.input = None;
        }
    }
}

impl Drop for ChildEngine {
    fn drop(&mut self) {
        self.input = None;
        let patience = Instant::now() + Duration::from_secs(2);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > patience {
                // It cannot be ended twice.
                let _: io::Result<()> = self.child.kill();
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Carries out strands in this process, as a child of a team: orders come from standard input, until it ends.
pub fn run_child() -> io::Result<()> {
    let (tell, told) = channel::<EngineEvent>();
    let site = LocalEngine::start(move |event| tell.send(event).is_ok())?;
    let writer = thread::Builder::new().name("events".to_owned()).spawn(move || -> io::Result<()> {
        let mut output = io::stdout().lock();
        for event in told {
            serde_json::to_writer(&mut output, &event)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
        Ok(())
    })?;
    for line in io::stdin().lock().lines() {
        if !site.send(serde_json::from_str(&line?)?) {
            break;
        }
    }
    drop(site);
    writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tells events panicked")))
}
