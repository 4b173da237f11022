//! Carrying out a plan in a folder, for every command that measures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use wb_model::WorkerName;
use wb_model::secrets::{mask_arguments, mask_declared_json, mask_value};
use wb_plan::{Plan, PlanWorkers, masking};
use wb_profile::{AppliedProfile, NamedProfile, Preflight, Profile, set_values};
use wb_record::{RunFolder, files};
use wb_run::environment::record_consoles;
use wb_run::resume::{is_complete, restore_facts};
use wb_run::{Publisher, RunEnd, RunError, RunSpec, StoppingRule};
use wb_study::Study;

use super::hosts::{
    ConnectedHosts, HostPreparation, ProfiledHosts, UnmetProfilePolicy, apply_profile, close, preflight_hosts,
    prepare_hosts, refuse_local_kernel_arguments, requested_profiles, start_kernels,
};
use super::publishing::{self, PublishConfig};
use super::selection::MeasureRequest;
use super::tune::all_sets;
use super::{current_program_hash, runtime};
use crate::cli::{HostFlags, PreparationFlags, RunFolderFlags};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::ProgressReporter;
use crate::secrets;

/// What is measured, and where it is recorded.
pub(crate) struct MeasureSession<'a> {
    /// The run folder.
    pub(crate) folder: &'a Path,
    /// Whether it was named, rather than made up.
    pub(crate) is_folder_named: bool,
    /// What was asked for.
    pub(crate) request: &'a MeasureRequest,
    /// What the user says of it.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Where it is measured.
    pub(crate) hosts: &'a HostFlags,
    /// What is done to machines first.
    preparation: HostPreparation,
    /// Whoever publishes it.
    publish: Option<PublishConfig>,
    /// Whoever holds cells against each other meanwhile.
    pub(crate) stopping_rule: Option<&'a StoppingRule>,
    /// The command, where it measures in one profile only.
    pub(crate) single_profile_command: Option<&'static str>,
}

/// Refuses a folder in which something else was measured: samples of both would not have been taken in turns.
pub(crate) fn require_same_plan(folder: &Path, asked: &MeasureRequest) -> Result<(), Error> {
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
pub(crate) struct MeasureResult {
    /// How it ended.
    pub(crate) end: RunEnd,
    /// All that the folder has now.
    pub(crate) study: Study,
    /// What is published of it.
    pub(crate) published: publishing::PublishState,
    /// How many profiles could not be applied, or not be brought back from.
    unmet_profiles: usize,
}

impl<'a> MeasureSession<'a> {
    /// Into the folder of the flags, or one named after the time.
    pub(crate) fn new(
        folder: &'a Path,
        flags: &RunFolderFlags,
        asked: &'a MeasureRequest,
        hosts: &'a HostFlags,
        ready: &PreparationFlags,
    ) -> Result<Self, Error> {
        secrets::declare_all(&flags.secret_from)?;
        let mut metadata: BTreeMap<String, String> = flags.metadata.iter().cloned().collect();
        let publishing = PublishConfig::from_flags(flags, asked.publish.as_deref(), &metadata)?;
        for (name, said) in [("distro", &hosts.distro), ("guest-distro", &hosts.guest_distro)] {
            if let Some(said) = said {
                metadata.entry(name.to_owned()).or_insert_with(|| said.clone());
            }
        }
        let ready = HostPreparation::from_flags(ready)?;
        Ok(Self {
            folder,
            is_folder_named: flags.into.is_some(),
            request: asked,
            metadata,
            hosts,
            preparation: ready,
            publish: publishing,
            stopping_rule: None,
            single_profile_command: None,
        })
    }

    /// Measures the plans that are made for the machines in each profile, records and studies them.
    pub(crate) fn run(
        self,
        console: &Console,
        mut plan: impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, Error>,
    ) -> Result<MeasureResult, Error> {
        let profiles = requested_profiles(self.hosts)?;
        if let Some(command) = self.single_profile_command.filter(|_| profiles.len() > 1) {
            let what = format!("`{command}` measures in one profile, and {} were named", profiles.len());
            return Err(Error::Usage { what, help: format!("name one, and `{command}` once for each") });
        }
        refuse_local_kernel_arguments(&profiles, self.hosts)?;
        let program_sha256 = current_program_hash()?;
        let (end, begun) = runtime()?.block_on(async {
            let cancel = cancel_on_signals();
            let mut hosts = prepare_hosts(&self.preparation, self.hosts, self.folder, console, cancel.clone()).await?;
            // The first is applied at once; an hour may pass before the next.
            for named in profiles.iter().skip(1) {
                warn_obstacles(&preflight_hosts(named, &hosts, self.hosts).await?);
            }
            let has_arguments = profiles.iter().any(|named| !named.profile.kernel_arguments.is_empty());
            let publisher = PublishConfig::start_publisher(self.publish.as_ref()).await?;
            let unmet = if profiles.len() > 1 { UnmetProfilePolicy::Record } else { UnmetProfilePolicy::Abort };
            let means = SessionContext {
                console,
                publisher: publisher.as_ref(),
                program_sha256,
                cancel,
                has_arguments,
                hosts: hosts.to_record(),
                unmet_policy: unmet,
            };
            let mut ends = SessionEnd { has_started: false, end: RunEnd::Complete, unmet_profiles: 0 };
            let mut result = Ok(());
            for named in &profiles {
                match self.run_in_profile(named, &mut hosts, &means, &mut plan, &mut ends).await {
                    Ok(RunEnd::Interrupted) => break,
                    Ok(_) => {}
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            if has_arguments && !self.restore_kernels(&mut hosts).await? {
                ends.unmet_profiles += 1;
            }
            if let Some(publisher) = publisher {
                publisher.close().await?;
            }
            let closed = close(hosts).await;
            let begun = ends.has_started;
            let ends = result.and_then(|()| Ok(closed.map(|()| ends)?));
            Ok::<_, Error>((ends, begun))
        })?;
        let results =
            || Ok::<_, Error>(wb_study::write_results(&RunFolder::open(self.folder)?, &self.request.registry)?);
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
        let SessionEnd { end, unmet_profiles: unmet, .. } = end?;
        let study = results()?;
        if end == RunEnd::Interrupted {
            let line = resume_command(self.folder, self.is_folder_named);
            crate::console::tell!("interrupted; everything taken is kept. To go on:\n  {line}");
        }
        let published = match end {
            RunEnd::Interrupted => publishing::PublishState::NotRequested,
            RunEnd::Finished | RunEnd::Complete => publishing::publish_run(self.publish.as_ref(), self.folder)?,
        };
        Ok(MeasureResult { end, study, published, unmet_profiles: unmet })
    }

    /// Measures in one profile: the hosts are put into it, and brought back whatever comes of it.
    async fn run_in_profile(
        &self,
        named: &NamedProfile,
        hosts: &mut ConnectedHosts,
        means: &SessionContext<'_>,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, Error>,
        ends: &mut SessionEnd,
    ) -> Result<RunEnd, Error> {
        let interrupted = |ends: &mut SessionEnd| {
            ends.merge(RunEnd::Interrupted);
            Ok(RunEnd::Interrupted)
        };
        if self.is_complete(named, plan) {
            ends.merge(RunEnd::Complete);
            return Ok(RunEnd::Complete);
        }
        self.require_same_profile(named)?;
        // Not left off in the middle: a host that reboots has to come back from it.
        if means.has_arguments || !ends.has_started {
            self.start_kernels(&named.profile.kernel_arguments, hosts).await?;
        }
        if *means.cancel.borrow() {
            return interrupted(ends);
        }
        let put = apply_profile(named, hosts, self.hosts, means.unmet_policy, means.console);
        let Some(state) = run_until_cancelled(put, means.cancel.clone()).await else { return interrupted(ends) };
        let mut state = state?;
        if state.pool.workers.is_empty() {
            ends.unmet_profiles += 1;
        }
        let measured = match run_until_cancelled(self.make_plan(named, &mut state, plan), means.cancel.clone()).await {
            None => Ok(RunEnd::Interrupted),
            Some(Err(error)) => Err(error),
            Some(Ok(plan)) => match self.measure_plan(plan, &state, means, ends).await {
                // Guests are of this profile alone: the others can be measured all the same.
                Err(error @ Error::Run(RunError::Lost { .. })) if named.profile.guests.is_some() => {
                    error.warn();
                    ends.unmet_profiles += 1;
                    Ok(RunEnd::Finished)
                }
                measured => measured,
            },
        };
        let kept = record_consoles(self.folder, &named.name, &state.console_output().await);
        let changed = state.revert().await;
        ends.unmet_profiles += usize::from(!changed.is_empty());
        for host in &changed {
            if let Err(error) = hosts.replace_agent(host).await {
                error.warn();
            }
        }
        let end = measured?;
        kept?;
        ends.merge(end);
        Ok(end)
    }

    async fn measure_plan(
        &self,
        plan: Plan,
        state: &ProfiledHosts,
        means: &SessionContext<'_>,
        ends: &mut SessionEnd,
    ) -> Result<RunEnd, Error> {
        let job = self.build_job(plan, state, means)?;
        let mut watcher = ProgressReporter::new(means.console, self.folder);
        let end = wb_run::run(job, |progress| watcher.report(&progress)).await;
        watcher.finish();
        ends.has_started |= watcher.has_started();
        Ok(end?)
    }

    /// Refuses a profile that is otherwise than the one of its name in which this folder has samples.
    fn require_same_profile(&self, named: &NamedProfile) -> Result<(), Error> {
        if !self.folder.join("run.json").is_file() {
            return Ok(());
        }
        let run = RunFolder::open(self.folder)?;
        let head = run.run_file()?;
        let Some((entry, _)) = head.last_entry_for(&named.name) else { return Ok(()) };
        let recorded: Option<Vec<AppliedProfile>> =
            files::read_json(&run.environment_path(&format!("profile-{entry}")))?;
        let before = recorded.and_then(|mut all| all.pop()).map(|standing| (standing.profile.state(), standing.sets));
        let now = (mask_profile(&named.profile)?.state(), set_values(&named.profile, &all_sets()?));
        if before.unwrap_or_default() == now {
            return Ok(());
        }
        Err(Error::Usage {
            what: format!("{} was measured in another `{}` than this one", self.folder.display(), named.name),
            help: "choose another folder with --into, or give this profile a file and a name of its own".to_owned(),
        })
    }

    /// Has the kernels of all hosts run as whatever starts those machines starts them; whether they do.
    async fn restore_kernels(&self, hosts: &mut ConnectedHosts) -> Result<bool, Error> {
        let before = hosts.pool.workers.len();
        self.start_kernels(&[], hosts).await?;
        Ok(hosts.pool.workers.len() == before)
    }

    async fn start_kernels(&self, arguments: &[String], hosts: &mut ConnectedHosts) -> Result<(), Error> {
        start_kernels(arguments, self.preparation.reboot_limit, self.hosts, self.folder, hosts).await
    }

    /// Whether all that was asked for in a profile that takes guests or a reboot is complete, so that none is needed to say
    /// so: by the plan for the workers that there were.
    fn is_complete(
        &self,
        named: &NamedProfile,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, Error>,
    ) -> bool {
        let takes_long = named.profile.guests.is_some() || !named.profile.kernel_arguments.is_empty();
        if !takes_long || self.stopping_rule.is_some() || !self.folder.join("run.json").is_file() {
            return false;
        }
        let Ok(head) = RunFolder::open(self.folder).and_then(|run| run.run_file()) else { return false };
        let Some((_, entry)) = head.last_entry_for(&named.name) else { return false };
        let all = entry.facts.iter().map(|(name, facts)| (name.clone(), Ok(facts.clone()))).collect();
        // Where there is no such plan, the guests will say why.
        let plan = plan(&PlanWorkers { workers: all, ..PlanWorkers::default() }, named);
        plan.is_ok_and(|plan| is_complete(self.folder, &plan, &self.request.registry).unwrap_or(false))
    }

    /// The plan for the machines of a profile, once their set-up script has run.
    async fn make_plan(
        &self,
        named: &NamedProfile,
        state: &mut ProfiledHosts,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, Error>,
    ) -> Result<Plan, Error> {
        // Where there is none, the plan says why.
        if !state.pool.workers.is_empty() {
            self.preparation.set_up_workers(self.folder, &mut state.pool).await?;
        }
        let mut workers = state.pool.plan_workers();
        restore_facts(self.folder, &named.name, &mut workers)?;
        let plan = plan(&workers, named)?;
        secrets::refuse_secret_names(&plan)?;
        Ok(plan)
    }

    fn build_job<'b>(
        &'b self,
        plan: Plan,
        state: &ProfiledHosts,
        means: &'b SessionContext<'_>,
    ) -> Result<RunSpec<'b>, Error> {
        let states = state.standings.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        Ok(RunSpec {
            folder: self.folder,
            plan_name: self.request.name.clone(),
            plan_text: self.request.text.as_deref().map(masking::mask_plan),
            command: mask_arguments(std::env::args()),
            seed: plan.sampling.seed.unwrap_or_else(rand::random),
            hosts: means.hosts.clone(),
            metadata: mask_metadata(&self.metadata),
            version: env!("CARGO_PKG_VERSION"),
            program_sha256: means.program_sha256.clone(),
            registry: &self.request.registry,
            pool: state.pool.clone(),
            host_states: states.map_err(|error| record_error("the profile", &error))?,
            cancel: means.cancel.clone(),
            stopping_rule: self.stopping_rule,
            publisher: means.publisher,
            plan,
        })
    }
}

/// What measuring takes in every profile.
struct SessionContext<'a> {
    console: &'a Console,
    publisher: Option<&'a Publisher>,
    program_sha256: String,
    cancel: watch::Receiver<bool>,
    /// Whether any of the profiles has kernel arguments.
    has_arguments: bool,
    /// What is said of hosts.
    hosts: BTreeMap<WorkerName, serde_json::Value>,
    /// What becomes of a profile that cannot be.
    unmet_policy: UnmetProfilePolicy,
}

/// How the runs in all profiles ended.
struct SessionEnd {
    /// Whether anything was begun to be measured.
    has_started: bool,
    /// All of them together.
    end: RunEnd,
    /// How many profiles could not be applied, or not be brought back from.
    unmet_profiles: usize,
}

impl SessionEnd {
    fn merge(&mut self, next: RunEnd) {
        self.end = match (self.end, next) {
            (RunEnd::Interrupted, _) | (_, RunEnd::Interrupted) => RunEnd::Interrupted,
            (RunEnd::Complete, RunEnd::Complete) => RunEnd::Complete,
            _ => RunEnd::Finished,
        };
    }
}

/// Warns of hosts that cannot be put into a profile whose turn comes later.
fn warn_obstacles(preflights: &[Preflight]) {
    for Preflight { profile, host, obstacles, .. } in preflights {
        for why in obstacles {
            crate::console::tell!("warning: `{profile}` on `{host}` will not be measured: {why}");
            why.help().iter().for_each(|help| crate::console::tell!("help: {help}"));
        }
    }
}

/// Waits for something, unless the user wants to end before.
async fn run_until_cancelled<T>(wanted: impl Future<Output = T>, mut cancel: watch::Receiver<bool>) -> Option<T> {
    tokio::select! {
        done = wanted => Some(done),
        _ = cancel.wait_for(|cancelled| *cancelled) => None,
    }
}

/// A profile as it is recorded.
fn mask_profile(profile: &Profile) -> Result<Profile, Error> {
    let masked = serde_json::to_value(profile.without_secrets()).map(mask_declared_json);
    masked.and_then(serde_json::from_value).map_err(|error| record_error("the profile", &error))
}

fn record_error(what: &str, error: &serde_json::Error) -> Error {
    Error::Internal(format!("cannot record {what}: {error}"))
}

/// What is recorded of what the user said of the run.
fn mask_metadata(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = |(name, value): (&String, &String)| (name.clone(), mask_value(name, value));
    metadata.iter().map(shown).collect()
}

impl MeasureResult {
    /// How many cells are not what was asked for.
    pub(crate) fn shortfall_count(&self) -> usize {
        self.study.cells.iter().filter(|cell| cell.outcome.is_incomplete()).count()
    }

    /// The exit status where something fell short or the user ended it; none where all is well.
    pub(crate) fn exit(&self) -> Option<Exit> {
        match self.end {
            RunEnd::Interrupted => Some(Exit::Interrupted),
            _ if self.shortfall_count() + self.unmet_profiles > 0
                || self.published == publishing::PublishState::Incomplete =>
            {
                Some(Exit::Incomplete)
            }
            _ => None,
        }
    }
}

/// The folder of the flags, or one that does not exist yet, named after a word and the time.
pub(crate) fn run_folder(flags: &RunFolderFlags, word: &str) -> PathBuf {
    let new = || {
        let name = jiff::Timestamp::now().strftime(&format!("{word}-%Y%m%d-%H%M%S")).to_string();
        let numbered = |number: u32| if number == 0 { name.clone() } else { format!("{name}-{number}") };
        (0..).map(|number| PathBuf::from(numbered(number))).find(|path| !path.exists()).unwrap_or_default()
    };
    flags.into.clone().unwrap_or_else(new)
}

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP.
pub(super) fn cancel_on_signals() -> watch::Receiver<bool> {
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
fn resume_command(folder: &Path, named: bool) -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if !named {
        // Before the variants, which end a line that has some.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(at..at, ["--into".to_owned(), folder.display().to_string()]);
    }
    shell_words::join(words)
}
