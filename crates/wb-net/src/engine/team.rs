//! The sites of one machine, seen as one: this process for threads, children of it for strands that are processes.

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
    report::Report,
    site::Site,
    work::{Assignment, Event, Executor, Fault, LinkAnnouncement, Order, Progress, StrandTotals},
};
use crate::language::StrandKind;

/// Makes the command that carries out strands in a process of its own: it must call [`serve_child`].
pub type ChildCommand = Arc<dyn Fn() -> io::Result<Command> + Send + Sync>;

/// More processes than this are not made; each then has several strands, as threads.
pub const PROCESSES: u32 = 64;

/// The sites of this machine.
#[derive(Debug, Clone)]
pub struct Team(Sender<Input>);

#[derive(Debug)]
enum Input {
    Order(Order),
    Event(usize, Event),
    Gone(usize, String),
    Quit,
}

impl Team {
    /// Makes ready for an assignment; what there is to say goes to `tell`, which says whether anybody listens.
    pub fn start(child: ChildCommand, tell: impl Fn(Event) -> bool + Send + 'static) -> io::Result<Handle> {
        let (input, inputs) = channel();
        let own = input.clone();
        thread::Builder::new().name("team".to_owned()).spawn(move || {
            let mut lead = Lead { tell: Box::new(tell), child, own, members: Vec::new(), groups: Vec::new() };
            lead.lead(&inputs);
        })?;
        Ok(Handle(Self(input)))
    }
}

/// Drives a team; when it is dropped everything of the team ends.
#[derive(Debug)]
pub struct Handle(Team);

impl Handle {
    /// Tells the team what to do; false when it has ended.
    pub fn order(&self, order: Order) -> bool {
        self.0.0.send(Input::Order(order)).is_ok()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A team that has ended needs no telling.
        let _: Result<(), _> = self.0.0.send(Input::Quit);
    }
}

struct Lead {
    tell: Box<dyn Fn(Event) -> bool + Send>,
    child: ChildCommand,
    own: Sender<Input>,
    members: Vec<Member>,
    groups: Vec<Gathering>,
}

struct Member {
    drive: Drive,
    assignment: Assignment,
    prepared: Option<(Vec<LinkAnnouncement>, Executor)>,
    met: bool,
    progress: Progress,
    report: Option<Report>,
}

enum Drive {
    Here(Site),
    Child(Box<ChildSite>),
}

/// What the members said of a group's step.
#[derive(Default)]
struct Gathering {
    strands: usize,
    asked: usize,
    totals: Vec<StrandTotals>,
}

impl Lead {
    fn lead(&mut self, inputs: &Receiver<Input>) {
        while let Ok(input) = inputs.recv() {
            let on = match input {
                Input::Quit => false,
                Input::Order(Order::Prepare(assignment)) => match self.prepare(*assignment) {
                    Ok(()) => true,
                    Err(fault) => (self.tell)(Event::Failed(fault)),
                },
                Input::Order(order) => {
                    self.pass_on(order);
                    true
                }
                Input::Event(member, event) => self.hear(member, event),
                Input::Gone(member, why) => {
                    self.members[member].report.is_some() || (self.tell)(Event::Failed(Fault::new(why)))
                }
            };
            if !on {
                return;
            }
        }
    }

    fn prepare(&mut self, assignment: Assignment) -> Result<(), Fault> {
        if !self.members.is_empty() {
            return Err(Fault::new("it was told on what to work twice"));
        }
        let strands = assignment.strands.iter();
        self.groups = strands.map(|strands| Gathering { strands: strands.len(), ..Gathering::default() }).collect();
        for (kind, part) in split(&assignment) {
            let member = self.members.len();
            let tell = self.own.clone();
            let drive = match kind {
                StrandKind::Thread => Site::start(move |event| tell.send(Input::Event(member, event)).is_ok())
                    .map(Drive::Here)
                    .map_err(|error| Fault::new(format!("no thread: {error}")))?,
                StrandKind::Process => ChildSite::start(&self.child, member, tell)
                    .map(|child| Drive::Child(Box::new(child)))
                    .map_err(|error| Fault::new(format!("no process for strands: {error}")))?,
            };
            self.members.push(Member {
                drive,
                assignment: part,
                prepared: None,
                met: false,
                progress: Progress::default(),
                report: None,
            });
        }
        for member in &mut self.members {
            let assignment = Box::new(member.assignment.clone());
            member.drive.order(Order::Prepare(assignment));
        }
        Ok(())
    }

    fn pass_on(&mut self, order: Order) {
        if let Order::Settle { group, totals } = &order
            && let Some(gathering) = self.groups.get_mut(*group)
        {
            gathering.asked = totals.len();
        } else if let Order::Run { group, .. } = &order
            && let Some(gathering) = self.groups.get_mut(*group)
        {
            gathering.asked = gathering.strands;
        }
        for member in &mut self.members {
            match &order {
                Order::Settle { group, totals } => {
                    let mine = member.assignment.strands.get(*group).cloned().unwrap_or_default();
                    let totals: Vec<_> =
                        totals.iter().filter(|totals| mine.contains(&totals.strand)).cloned().collect();
                    if !totals.is_empty() {
                        member.drive.order(Order::Settle { group: *group, totals });
                    }
                }
                Order::Run { group, .. }
                    if member.assignment.strands.get(*group).is_none_or(|mine| mine.is_empty()) => {}
                order => member.drive.order(order.clone()),
            }
        }
    }

    fn hear(&mut self, member: usize, event: Event) -> bool {
        match event {
            Event::Prepared { links, executor } => {
                self.members[member].prepared = Some((links, executor));
                if self.members.iter().any(|member| member.prepared.is_none()) {
                    return true;
                }
                let prepared: Vec<_> = self.members.iter_mut().filter_map(|member| member.prepared.take()).collect();
                let executor = prepared.iter().map(|(_, executor)| *executor).max().unwrap_or(Executor::Threads);
                let links = prepared.into_iter().flat_map(|(links, _)| links).collect();
                (self.tell)(Event::Prepared { links, executor })
            }
            Event::Met => {
                self.members[member].met = true;
                !self.members.iter().all(|member| member.met) || (self.tell)(Event::Met)
            }
            Event::Ended { group, strands } => {
                self.gather(group, strands).is_none_or(|strands| (self.tell)(Event::Ended { group, strands }))
            }
            Event::Settled { group, strands } => {
                self.gather(group, strands).is_none_or(|strands| (self.tell)(Event::Settled { group, strands }))
            }
            Event::Progress(progress) => {
                self.members[member].progress = progress;
                // One of them tells for all.
                member > 0 || {
                    let all = self.members.iter().map(|member| member.progress);
                    let sum = all.fold(Progress { at: progress.at, ..Progress::default() }, |sum, one| Progress {
                        at: sum.at,
                        sent: sum.sent + one.sent,
                        received: sum.received + one.received,
                        operations: sum.operations + one.operations,
                    });
                    (self.tell)(Event::Progress(sum))
                }
            }
            Event::Report(report) => {
                self.members[member].report = Some(*report);
                if self.members.iter().any(|member| member.report.is_none()) {
                    return true;
                }
                let reports = self.members.iter_mut().filter_map(|member| member.report.take());
                if let Some(all) = reports.reduce(Report::with) {
                    (self.tell)(Event::Report(Box::new(all)));
                }
                false
            }
            event @ (Event::Alive | Event::Raw(_) | Event::Failed(_)) => (self.tell)(event),
        }
    }

    fn gather(&mut self, group: usize, strands: Vec<StrandTotals>) -> Option<Vec<StrandTotals>> {
        let gathering = self.groups.get_mut(group)?;
        gathering.totals.extend(strands);
        (gathering.totals.len() >= gathering.asked).then(|| std::mem::take(&mut gathering.totals))
    }
}

/// Which strands are carried out where.
fn split(assignment: &Assignment) -> Vec<(StrandKind, Assignment)> {
    let groups = &assignment.profile.groups;
    let nothing = || assignment.strands.iter().map(|strands| strands.start..strands.start).collect::<Vec<_>>();
    let mut here = nothing();
    let mut parts = Vec::new();
    for (group, strands) in assignment.strands.iter().enumerate() {
        if groups.get(group).is_none_or(|group| group.kind == StrandKind::Thread) {
            here[group] = strands.clone();
            continue;
        }
        let per_process = (strands.len() as u32).div_ceil(PROCESSES).max(1);
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

impl Drive {
    fn order(&mut self, order: Order) {
        match self {
            Self::Here(site) => {
                // A site that has ended told why.
                site.order(order);
            }
            Self::Child(child) => child.order(&order),
        }
    }
}

/// A process that carries out strands. It reads orders and writes events, a line of JSON each.
struct ChildSite {
    child: Child,
    input: Option<ChildStdin>,
}

impl ChildSite {
    fn start(command: &ChildCommand, member: usize, tell: Sender<Input>) -> io::Result<Self> {
        let mut child = command()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| io::Error::other("the process has no output"))?;
        thread::Builder::new().name("child".to_owned()).spawn(move || {
            for line in BufReader::new(output).lines() {
                let heard = line.and_then(|line| serde_json::from_str(&line).map_err(io::Error::other));
                let input = match heard {
                    Ok(event) => Input::Event(member, event),
                    Err(error) => {
                        Input::Gone(member, format!("a process of the run said what cannot be read: {error}"))
                    }
                };
                if tell.send(input).is_err() {
                    return;
                }
            }
            // Nobody listens any more when the run is over.
            let _: Result<(), _> = tell.send(Input::Gone(member, "a process of the run ended by itself".to_owned()));
        })?;
        Ok(Self { child, input })
    }

    fn order(&mut self, order: &Order) {
        let Some(input) = &mut self.input else { return };
        let Ok(mut line) = serde_json::to_vec(order) else { return };
        line.push(b'\n');
        if input.write_all(&line).is_err() {
            // It is gone, and the reader of its output tells.
            self.input = None;
        }
    }
}

impl Drop for ChildSite {
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
pub fn serve_child() -> io::Result<()> {
    let (tell, told) = channel::<Event>();
    let site = Site::start(move |event| tell.send(event).is_ok())?;
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
        if !site.order(serde_json::from_str(&line?)?) {
            break;
        }
    }
    drop(site);
    writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tells events panicked")))
}
