//! Carrying out a plan in a folder, for every command that measures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use wb_model::WorkerName;
use wb_model::secrets::{masked_arguments, masked_json, masked_value};
use wb_plan::{Plan, Workers, masked};
use wb_profile::{Named, Preflight, Profile, Standing, set_values};
use wb_record::{RunFolder, files};
use wb_run::environment::keep_consoles;
use wb_run::resume::{is_complete, recall};
use wb_run::{Job, Publisher, Referee, RunEnd, RunError};
use wb_study::Study;

use super::crew::{
    Hosts, Ready, State, Unmet, close, made_ready, preflights, profiles, put, require_elsewhere, start_kernels,
};
use super::publish::{self, Publishing};
use super::tune::all_sets;
use super::what::Asked;
use super::{runtime, this_programs_hash};
use crate::cli::{HostFlags, IntoFlags, ReadyFlags};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Watcher;
use crate::secrets;

/// What is measured, and where it is recorded.
pub(crate) struct Measuring<'a> {
    /// The run folder.
    pub(crate) folder: &'a Path,
    /// Whether it was named, rather than made up.
    pub(crate) named: bool,
    /// What was asked for.
    pub(crate) asked: &'a Asked,
    /// What the user says of it.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Where it is measured.
    pub(crate) hosts: &'a HostFlags,
    /// What is done to machines first.
    ready: Ready,
    /// Whoever publishes it.
    publishing: Option<Publishing>,
    /// Whoever holds cells against each other meanwhile.
    pub(crate) referee: Option<&'a Referee>,
    /// The command, where it measures in one profile only.
    pub(crate) one_state: Option<&'static str>,
}

/// Refuses a folder in which something else was measured: samples of both would not have been taken in turns.
pub(crate) fn require_same(folder: &Path, asked: &Asked) -> Result<(), Error> {
    if !folder.join("run.json").is_file() {
        return Ok(());
    }
    let entries = RunFolder::open(folder)?.run_file()?.entries;
    let Some(other) = entries.iter().find(|entry| entry.plan != asked.name) else { return Ok(()) };
    Err(Error::Usage {
        what: format!("{} is of something else: `{}`, not `{}`", folder.display(), other.plan, asked.name),
        help: "choose another folder with --into; what is asked is settled before the first sample".to_owned(),
    })
}

/// What came of it.
pub(crate) struct Measured {
    /// How it ended.
    pub(crate) end: RunEnd,
    /// All that the folder has now.
    pub(crate) study: Study,
    /// What is published of it.
    pub(crate) published: publish::State,
    /// How many profiles could not be applied, or not be brought back from.
    unmet: usize,
}

impl<'a> Measuring<'a> {
    /// Into the folder of the flags, or one named after the time.
    pub(crate) fn new(
        folder: &'a Path,
        flags: &IntoFlags,
        asked: &'a Asked,
        hosts: &'a HostFlags,
        ready: &ReadyFlags,
    ) -> Result<Self, Error> {
        secrets::declare_all(&flags.secret_from)?;
        let mut metadata: BTreeMap<String, String> = flags.metadata.iter().cloned().collect();
        let publishing = Publishing::asked(flags, asked.publish.as_deref(), &metadata)?;
        for (name, said) in [("distro", &hosts.distro), ("guest-distro", &hosts.guest_distro)] {
            if let Some(said) = said {
                metadata.entry(name.to_owned()).or_insert_with(|| said.clone());
            }
        }
        let ready = Ready::read(ready)?;
        Ok(Self {
            folder,
            named: flags.into.is_some(),
            asked,
            metadata,
            hosts,
            ready,
            publishing,
            referee: None,
            one_state: None,
        })
    }

    /// Measures the plans that are made for the machines in each profile, records and studies them.
    pub(crate) fn carry_out(
        self,
        console: &Console,
        mut plan: impl FnMut(&Workers, &Named) -> Result<Plan, Error>,
    ) -> Result<Measured, Error> {
        let profiles = profiles(self.hosts)?;
        if let Some(command) = self.one_state.filter(|_| profiles.len() > 1) {
            let what = format!("`{command}` measures in one profile, and {} were named", profiles.len());
            return Err(Error::Usage { what, help: format!("name one, and `{command}` once for each") });
        }
        require_elsewhere(&profiles, self.hosts)?;
        let program_sha256 = this_programs_hash()?;
        let (end, begun) = runtime()?.block_on(async {
            let cancel = cancelled_by_signals();
            let mut hosts = made_ready(&self.ready, self.hosts, self.folder, console, cancel.clone()).await?;
            // The first is applied at once; an hour may pass before the next.
            for named in profiles.iter().skip(1) {
                warn_of_obstacles(&preflights(named, &hosts, self.hosts).await?);
            }
            let has_arguments = profiles.iter().any(|named| !named.profile.kernel_arguments.is_empty());
            let publisher = Publishing::publisher(self.publishing.as_ref()).await?;
            let unmet = if profiles.len() > 1 { Unmet::IsRecorded } else { Unmet::Ends };
            let means = Means {
                console,
                publisher: publisher.as_ref(),
                program_sha256,
                cancel,
                has_arguments,
                hosts: hosts.said(),
                unmet,
            };
            let mut ends = Ends { begun: false, end: RunEnd::Complete, unmet: 0 };
            let mut result = Ok(());
            for named in &profiles {
                match self.in_profile(named, &mut hosts, &means, &mut plan, &mut ends).await {
                    Ok(RunEnd::Interrupted) => break,
                    Ok(_) => {}
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            if has_arguments && !self.as_started(&mut hosts).await? {
                ends.unmet += 1;
            }
            if let Some(publisher) = publisher {
                publisher.close().await?;
            }
            let closed = close(hosts).await;
            let begun = ends.begun;
            let ends = result.and_then(|()| Ok(closed.map(|()| ends)?));
            Ok::<_, Error>((ends, begun))
        })?;
        let results = || Ok::<_, Error>(wb_study::write_results(&RunFolder::open(self.folder)?, &self.asked.registry)?);
        if end.is_err() && begun {
            // What ended the run comes last.
            if let Err(error) = results() {
                error.warn();
            }
            crate::console::tell!(
                "everything until here is kept in {}; the same line goes on from there",
                self.folder.display()
            );
        }
        let Ends { end, unmet, .. } = end?;
        let study = results()?;
        if end == RunEnd::Interrupted {
            let line = resume_line(self.folder, self.named);
            crate::console::tell!("interrupted; everything taken is kept. To go on:\n  {line}");
        }
        let published = match end {
            RunEnd::Interrupted => publish::State::NotAsked,
            RunEnd::Finished | RunEnd::Complete => publish::at_end(self.publishing.as_ref(), self.folder)?,
        };
        Ok(Measured { end, study, published, unmet })
    }

    /// Measures in one profile: the hosts are put into it, and brought back whatever comes of it.
    async fn in_profile(
        &self,
        named: &Named,
        hosts: &mut Hosts,
        means: &Means<'_>,
        plan: &mut impl FnMut(&Workers, &Named) -> Result<Plan, Error>,
        ends: &mut Ends,
    ) -> Result<RunEnd, Error> {
        let interrupted = |ends: &mut Ends| {
            ends.add(RunEnd::Interrupted);
            Ok(RunEnd::Interrupted)
        };
        if self.is_complete(named, plan) {
            ends.add(RunEnd::Complete);
            return Ok(RunEnd::Complete);
        }
        self.require_same_profile(named)?;
        // Not left off in the middle: a host that reboots has to come back from it.
        if means.has_arguments || !ends.begun {
            self.start_kernels(&named.profile.kernel_arguments, hosts).await?;
        }
        if *means.cancel.borrow() {
            return interrupted(ends);
        }
        let put = put(named, hosts, self.hosts, means.unmet, means.console);
        let Some(state) = in_time(put, means.cancel.clone()).await else { return interrupted(ends) };
        let mut state = state?;
        if state.crew.members.is_empty() {
            ends.unmet += 1;
        }
        let measured = match in_time(self.planned(named, &mut state, plan), means.cancel.clone()).await {
            None => Ok(RunEnd::Interrupted),
            Some(Err(error)) => Err(error),
            Some(Ok(plan)) => match self.measured(plan, &state, means, ends).await {
                // Guests are of this profile alone: the others can be measured all the same.
                Err(error @ Error::Run(RunError::Lost { .. })) if named.profile.guests.is_some() => {
                    error.warn();
                    ends.unmet += 1;
                    Ok(RunEnd::Finished)
                }
                measured => measured,
            },
        };
        let kept = keep_consoles(self.folder, &named.name, &state.consoles().await);
        let changed = state.revert().await;
        ends.unmet += usize::from(!changed.is_empty());
        for host in &changed {
            if let Err(error) = hosts.replace_agent(host).await {
                error.warn();
            }
        }
        let end = measured?;
        kept?;
        ends.add(end);
        Ok(end)
    }

    async fn measured(&self, plan: Plan, state: &State, means: &Means<'_>, ends: &mut Ends) -> Result<RunEnd, Error> {
        let job = self.job(plan, state, means)?;
        let mut watcher = Watcher::new(means.console, self.folder);
        let end = wb_run::run(job, |progress| watcher.tell(&progress)).await;
        watcher.finish();
        ends.begun |= watcher.begun();
        Ok(end?)
    }

    /// Refuses a profile that is otherwise than the one of its name in which this folder has samples.
    fn require_same_profile(&self, named: &Named) -> Result<(), Error> {
        if !self.folder.join("run.json").is_file() {
            return Ok(());
        }
        let run = RunFolder::open(self.folder)?;
        let head = run.run_file()?;
        let Some((entry, _)) = head.last_of(&named.name) else { return Ok(()) };
        let recorded: Option<Vec<Standing>> = files::read_json(&run.environment(&format!("profile-{entry}")))?;
        let before = recorded.and_then(|mut all| all.pop()).map(|standing| (standing.profile.state(), standing.sets));
        let now = (recorded_as(&named.profile)?.state(), set_values(&named.profile, &all_sets()?));
        if before.unwrap_or_default() == now {
            return Ok(());
        }
        Err(Error::Usage {
            what: format!("{} was measured in another `{}` than this one", self.folder.display(), named.name),
            help: "choose another folder with --into, or give this profile a file and a name of its own".to_owned(),
        })
    }

    /// Has the kernels of all hosts run as whatever starts those machines starts them; whether they do.
    async fn as_started(&self, hosts: &mut Hosts) -> Result<bool, Error> {
        let before = hosts.crew.members.len();
        self.start_kernels(&[], hosts).await?;
        Ok(hosts.crew.members.len() == before)
    }

    async fn start_kernels(&self, arguments: &[String], hosts: &mut Hosts) -> Result<(), Error> {
        start_kernels(arguments, self.ready.reboot_limit, self.hosts, self.folder, hosts).await
    }

    /// Whether all that was asked for in a profile that takes guests or a reboot is complete, so that none is needed to say
    /// so: by the plan for the workers that there were.
    fn is_complete(&self, named: &Named, plan: &mut impl FnMut(&Workers, &Named) -> Result<Plan, Error>) -> bool {
        let takes_long = named.profile.guests.is_some() || !named.profile.kernel_arguments.is_empty();
        if !takes_long || self.referee.is_some() || !self.folder.join("run.json").is_file() {
            return false;
        }
        let Ok(head) = RunFolder::open(self.folder).and_then(|run| run.run_file()) else { return false };
        let Some((_, entry)) = head.last_of(&named.name) else { return false };
        let all = entry.facts.iter().map(|(name, facts)| (name.clone(), Ok(facts.clone()))).collect();
        // Where there is no such plan, the guests will say why.
        let plan = plan(&Workers { all, ..Workers::default() }, named);
        plan.is_ok_and(|plan| is_complete(self.folder, &plan, &self.asked.registry).unwrap_or(false))
    }

    /// The plan for the machines of a profile, once their set-up script has run.
    async fn planned(
        &self,
        named: &Named,
        state: &mut State,
        plan: &mut impl FnMut(&Workers, &Named) -> Result<Plan, Error>,
    ) -> Result<Plan, Error> {
        // Where there is none, the plan says why.
        if !state.crew.members.is_empty() {
            self.ready.set_up_workers(self.folder, &mut state.crew).await?;
        }
        let mut workers = state.crew.workers();
        recall(self.folder, &named.name, &mut workers)?;
        let plan = plan(&workers, named)?;
        secrets::refuse_in_names(&plan)?;
        Ok(plan)
    }

    fn job<'b>(&'b self, plan: Plan, state: &State, means: &'b Means<'_>) -> Result<Job<'b>, Error> {
        let states = state.standings.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        Ok(Job {
            folder: self.folder,
            plan_name: self.asked.name.clone(),
            plan_text: self.asked.text.as_deref().map(masked::plan),
            command: masked_arguments(std::env::args()),
            seed: plan.sampling.seed.unwrap_or_else(rand::random),
            hosts: means.hosts.clone(),
            metadata: recorded(&self.metadata),
            version: env!("CARGO_PKG_VERSION"),
            program_sha256: means.program_sha256.clone(),
            registry: &self.asked.registry,
            crew: state.crew.clone(),
            states: states.map_err(|error| unrecordable("the profile", &error))?,
            cancel: means.cancel.clone(),
            referee: self.referee,
            publisher: means.publisher,
            plan,
        })
    }
}

/// What measuring takes in every profile.
struct Means<'a> {
    console: &'a Console,
    publisher: Option<&'a Publisher>,
    program_sha256: String,
    cancel: watch::Receiver<bool>,
    /// Whether any of the profiles has kernel arguments.
    has_arguments: bool,
    /// What is said of hosts.
    hosts: BTreeMap<WorkerName, serde_json::Value>,
    /// What becomes of a profile that cannot be.
    unmet: Unmet,
}

/// How the runs in all profiles ended.
struct Ends {
    /// Whether anything was begun to be measured.
    begun: bool,
    /// All of them together.
    end: RunEnd,
    /// How many profiles could not be applied, or not be brought back from.
    unmet: usize,
}

impl Ends {
    fn add(&mut self, next: RunEnd) {
        self.end = match (self.end, next) {
            (RunEnd::Interrupted, _) | (_, RunEnd::Interrupted) => RunEnd::Interrupted,
            (RunEnd::Complete, RunEnd::Complete) => RunEnd::Complete,
            _ => RunEnd::Finished,
        };
    }
}

/// Warns of hosts that cannot be put into a profile whose turn comes later.
fn warn_of_obstacles(preflights: &[Preflight]) {
    for Preflight { profile, host, obstacles, .. } in preflights {
        for why in obstacles {
            crate::console::tell!("warning: `{profile}` on `{host}` will not be measured: {why}");
            why.help().iter().for_each(|help| crate::console::tell!("help: {help}"));
        }
    }
}

/// Waits for something, unless the user wants to end before.
async fn in_time<T>(wanted: impl Future<Output = T>, mut cancel: watch::Receiver<bool>) -> Option<T> {
    tokio::select! {
        done = wanted => Some(done),
        _ = cancel.wait_for(|cancelled| *cancelled) => None,
    }
}

/// A profile as it is recorded.
fn recorded_as(profile: &Profile) -> Result<Profile, Error> {
    let masked = serde_json::to_value(profile.without_secrets()).map(masked_json);
    masked.and_then(serde_json::from_value).map_err(|error| unrecordable("the profile", &error))
}

fn unrecordable(what: &str, error: &serde_json::Error) -> Error {
    Error::Kernel(format!("cannot record {what}: {error}"))
}

/// What is recorded of what the user said of the run.
fn recorded(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = |(name, value): (&String, &String)| (name.clone(), masked_value(name, value));
    metadata.iter().map(shown).collect()
}

impl Measured {
    /// How many cells are not what was asked for.
    pub(crate) fn short(&self) -> usize {
        self.study.cells.iter().filter(|cell| cell.outcome.falls_short()).count()
    }

    /// The exit status where something fell short or the user ended it; none where all is well.
    pub(crate) fn exit(&self) -> Option<Exit> {
        match self.end {
            RunEnd::Interrupted => Some(Exit::Interrupted),
            _ if self.short() + self.unmet > 0 || self.published == publish::State::Behind => Some(Exit::FellShort),
            _ => None,
        }
    }
}

/// The folder of the flags, or one that does not exist yet, named after a word and the time.
pub(crate) fn folder(flags: &IntoFlags, word: &str) -> PathBuf {
    let new = || {
        let name = jiff::Timestamp::now().strftime(&format!("{word}-%Y%m%d-%H%M%S")).to_string();
        let numbered = |number: u32| if number == 0 { name.clone() } else { format!("{name}-{number}") };
        (0..).map(|number| PathBuf::from(numbered(number))).find(|path| !path.exists()).unwrap_or_default()
    };
    flags.into.clone().unwrap_or_else(new)
}

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP.
pub(super) fn cancelled_by_signals() -> watch::Receiver<bool> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = watch::channel(false);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let Ok(mut signals) = signal(kind) else { continue };
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                // Nobody listens any more once the run is over.
                let _ = sender.send(true);
            }
        });
    }
    receiver
}

/// The line that goes on with this run: what was typed, into its folder, which may have been `named`.
fn resume_line(folder: &Path, named: bool) -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if !named {
        // Before the variants, which end a line that has some.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(at..at, ["--into".to_owned(), folder.display().to_string()]);
    }
    shell_words::join(words)
}
