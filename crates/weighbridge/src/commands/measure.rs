//! Runs a plan and records it in a folder, for all commands that measure.

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

/// A measurement session: what is measured, on which hosts, and where it is recorded.
pub(crate) struct MeasureSession<'a> {
    /// The run folder.
    pub(crate) folder: &'a Path,
    /// Whether the folder was given, rather than generated.
    pub(crate) is_folder_named: bool,
    /// The requested tests and sampling.
    pub(crate) request: &'a MeasureRequest,
    /// Metadata given by the user.
    pub(crate) metadata: BTreeMap<String, String>,
    /// The hosts to measure on.
    pub(crate) hosts: &'a HostFlags,
    /// Preparation of hosts and workers.
    preparation: HostPreparation,
    /// How the run is published, if at all.
    publish: Option<PublishConfig>,
    /// Decides after each sample whether a cell needs more.
    pub(crate) stopping_rule: Option<&'a StoppingRule>,
    /// Name of the command, if it measures in only one profile.
    pub(crate) single_profile_command: Option<&'static str>,
}

/// Refuses a folder that holds another plan: the samples of both would not be interleaved.
pub(crate) fn require_same_plan(folder: &Path, request: &MeasureRequest) -> Result<(), Error> {
    if !folder.join("run.json").is_file() {
        return Ok(());
    }
    let entries = RunFolder::open(folder)?.run_file()?.entries;
    let Some(other) = entries.iter().find(|entry| entry.plan != request.name) else { return Ok(()) };
    Err(Error::Usage {
        what: format!("{} holds another plan: `{}`, not `{}`", folder.display(), other.plan, request.name),
        help: "choose another folder with --into; the plan of a folder is fixed before its first sample".to_owned(),
    })
}

/// Result of a measurement session.
pub(crate) struct MeasureResult {
    /// How the run ended.
    pub(crate) end: RunEnd,
    /// The study of everything in the folder.
    pub(crate) study: Study,
    /// How much of the run is published.
    pub(crate) published: publishing::PublishState,
    /// Number of profiles that could not be applied or reverted.
    unmet_profiles: usize,
}

impl<'a> MeasureSession<'a> {
    /// Creates a session from the flags.
    pub(crate) fn new(
        folder: &'a Path,
        flags: &RunFolderFlags,
        request: &'a MeasureRequest,
        hosts: &'a HostFlags,
        preparation: &PreparationFlags,
    ) -> Result<Self, Error> {
        secrets::declare_all(&flags.secret_from)?;
        let mut metadata: BTreeMap<String, String> = flags.metadata.iter().cloned().collect();
        let publishing = PublishConfig::from_flags(flags, request.publish.as_deref(), &metadata)?;
        for (name, value) in [("distro", &hosts.distro), ("guest-distro", &hosts.guest_distro)] {
            if let Some(value) = value {
                metadata.entry(name.to_owned()).or_insert_with(|| value.clone());
            }
        }
        let ready = HostPreparation::from_flags(preparation)?;
        Ok(Self {
            folder,
            is_folder_named: flags.into.is_some(),
            request,
            metadata,
            hosts,
            preparation: ready,
            publish: publishing,
            stopping_rule: None,
            single_profile_command: None,
        })
    }

    /// Measures in each profile the plan made for its machines, and records and studies the results.
    pub(crate) fn run(
        self,
        console: &Console,
        mut plan: impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, Error>,
    ) -> Result<MeasureResult, Error> {
        let profiles = requested_profiles(self.hosts)?;
        if let Some(command) = self.single_profile_command.filter(|_| profiles.len() > 1) {
            let what = format!("`{command}` measures in one profile, but {} were given", profiles.len());
            return Err(Error::Usage { what, help: format!("run `{command}` once for each profile") });
        }
        refuse_local_kernel_arguments(&profiles, self.hosts)?;
        let program_sha256 = current_program_hash()?;
        let (end, begun) = runtime()?.block_on(async {
            let cancel = cancel_on_signals();
            let mut hosts = prepare_hosts(&self.preparation, self.hosts, self.folder, console, cancel.clone()).await?;
            // The first profile is applied at once; hours may pass before the others, so check them now.
            for named in profiles.iter().skip(1) {
                warn_obstacles(&preflight_hosts(named, &hosts, self.hosts).await?);
            }
            let has_arguments = profiles.iter().any(|named| !named.profile.kernel_arguments.is_empty());
            let publisher = PublishConfig::start_publisher(self.publish.as_ref()).await?;
            let unmet = if profiles.len() > 1 { UnmetProfilePolicy::Record } else { UnmetProfilePolicy::Abort };
            let context = SessionContext {
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
                match self.run_in_profile(named, &mut hosts, &context, &mut plan, &mut ends).await {
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
            // Print the error that ended the run last.
            if let Err(error) = results() {
                error.warn();
            }
            crate::console::message!(
                "results so far are kept in {}; run the same command again to resume",
                self.folder.display()
            );
        }
        let SessionEnd { end, unmet_profiles: unmet, .. } = end?;
        let study = results()?;
        if end == RunEnd::Interrupted {
            let line = resume_command(self.folder, self.is_folder_named);
            crate::console::message!("interrupted: samples are kept. To resume:\n  {line}");
        }
        let published = match end {
            RunEnd::Interrupted => publishing::PublishState::NotRequested,
            RunEnd::Finished | RunEnd::Complete => publishing::publish_run(self.publish.as_ref(), self.folder)?,
        };
        Ok(MeasureResult { end, study, published, unmet_profiles: unmet })
    }

    /// Measures in one profile: applies it to the hosts, and reverts it whatever the result.
    async fn run_in_profile(
        &self,
        named: &NamedProfile,
        hosts: &mut ConnectedHosts,
        context: &SessionContext<'_>,
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
        // Not cancellable: a rebooting host must come back first.
        if context.has_arguments || !ends.has_started {
            self.start_kernels(&named.profile.kernel_arguments, hosts).await?;
        }
        if *context.cancel.borrow() {
            return interrupted(ends);
        }
        let put = apply_profile(named, hosts, self.hosts, context.unmet_policy, context.console);
        let Some(state) = run_until_cancelled(put, context.cancel.clone()).await else { return interrupted(ends) };
        let mut state = state?;
        if state.pool.workers.is_empty() {
            ends.unmet_profiles += 1;
        }
        let measured = match run_until_cancelled(self.make_plan(named, &mut state, plan), context.cancel.clone()).await
        {
            None => Ok(RunEnd::Interrupted),
            Some(Err(error)) => Err(error),
            Some(Ok(plan)) => match self.measure_plan(plan, &state, context, ends).await {
                // Guests belong to this profile alone, so the other profiles can still be measured.
                Err(error @ Error::Run(RunError::Lost { .. })) if named.profile.guests.is_some() => {
                    error.warn();
                    ends.unmet_profiles += 1;
                    Ok(RunEnd::Finished)
                }
                measured => measured,
            },
        };
        let saved = record_consoles(self.folder, &named.name, &state.console_output().await);
        let changed = state.revert().await;
        ends.unmet_profiles += usize::from(!changed.is_empty());
        for host in &changed {
            if let Err(error) = hosts.replace_agent(host).await {
                error.warn();
            }
        }
        let end = measured?;
        saved?;
        ends.merge(end);
        Ok(end)
    }

    async fn measure_plan(
        &self,
        plan: Plan,
        state: &ProfiledHosts,
        context: &SessionContext<'_>,
        ends: &mut SessionEnd,
    ) -> Result<RunEnd, Error> {
        let job = self.build_job(plan, state, context)?;
        let mut watcher = ProgressReporter::new(context.console, self.folder);
        let end = wb_run::run(job, |progress| watcher.report(&progress)).await;
        watcher.finish();
        ends.has_started |= watcher.has_started();
        Ok(end?)
    }

    /// Refuses a profile whose definition differs from the one of its name in which this folder has samples.
    fn require_same_profile(&self, named: &NamedProfile) -> Result<(), Error> {
        if !self.folder.join("run.json").is_file() {
            return Ok(());
        }
        let run = RunFolder::open(self.folder)?;
        let head = run.run_file()?;
        let Some((entry, _)) = head.last_entry_for(&named.name) else { return Ok(()) };
        let recorded: Option<Vec<AppliedProfile>> =
            files::read_json(&run.environment_path(&format!("profile-{entry}")))?;
        let previous = recorded.and_then(|mut all| all.pop()).map(|standing| (standing.profile.state(), standing.sets));
        let now = (mask_profile(&named.profile)?.state(), set_values(&named.profile, &all_sets()?));
        if previous.unwrap_or_default() == now {
            return Ok(());
        }
        Err(Error::Usage {
            what: format!(
                "{} was measured with a different definition of profile `{}`",
                self.folder.display(),
                named.name
            ),
            help: "choose another folder with --into, or save this profile in a file under another name".to_owned(),
        })
    }

    /// Restores the default kernel arguments of all hosts. Returns whether all hosts came back.
    async fn restore_kernels(&self, hosts: &mut ConnectedHosts) -> Result<bool, Error> {
        let before = hosts.pool.workers.len();
        self.start_kernels(&[], hosts).await?;
        Ok(hosts.pool.workers.len() == before)
    }

    async fn start_kernels(&self, arguments: &[String], hosts: &mut ConnectedHosts) -> Result<(), Error> {
        start_kernels(arguments, self.preparation.reboot_limit, self.hosts, self.folder, hosts).await
    }

    /// Whether everything requested in a profile that needs guests or a reboot is already measured, by the plan for the
    /// recorded workers; this avoids starting guests or rebooting only to find nothing to do.
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
        // If there is no such plan, planning for the actual guests reports why.
        let plan = plan(&PlanWorkers { workers: all, ..PlanWorkers::default() }, named);
        plan.is_ok_and(|plan| is_complete(self.folder, &plan, &self.request.registry).unwrap_or(false))
    }

    /// Makes the plan for the machines of a profile, after running their setup scripts.
    async fn make_plan(
        &self,
        named: &NamedProfile,
        state: &mut ProfiledHosts,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, Error>,
    ) -> Result<Plan, Error> {
        // Without workers, planning reports why there are none.
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
        context: &'b SessionContext<'_>,
    ) -> Result<RunSpec<'b>, Error> {
        let states = state.standings.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        Ok(RunSpec {
            folder: self.folder,
            plan_name: self.request.name.clone(),
            plan_text: self.request.text.as_deref().map(masking::mask_plan),
            command: mask_arguments(std::env::args()),
            seed: plan.sampling.seed.unwrap_or_else(rand::random),
            hosts: context.hosts.clone(),
            metadata: mask_metadata(&self.metadata),
            version: env!("CARGO_PKG_VERSION"),
            program_sha256: context.program_sha256.clone(),
            registry: &self.request.registry,
            pool: state.pool.clone(),
            host_states: states.map_err(|error| record_error("the profile", &error))?,
            cancel: context.cancel.clone(),
            stopping_rule: self.stopping_rule,
            publisher: context.publisher,
            plan,
        })
    }
}

/// Context shared by the runs in all profiles.
struct SessionContext<'a> {
    console: &'a Console,
    publisher: Option<&'a Publisher>,
    program_sha256: String,
    cancel: watch::Receiver<bool>,
    /// Whether any of the profiles has kernel arguments.
    has_arguments: bool,
    /// Address and parameters of hosts, as recorded.
    hosts: BTreeMap<WorkerName, serde_json::Value>,
    /// What to do when a profile cannot be applied to any host.
    unmet_policy: UnmetProfilePolicy,
}

/// Combined outcome of the runs in all profiles.
struct SessionEnd {
    /// Whether measuring has started.
    has_started: bool,
    /// Their combined end.
    end: RunEnd,
    /// Number of profiles that could not be applied or reverted.
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

/// Warns about hosts to which a later profile cannot be applied.
fn warn_obstacles(preflights: &[Preflight]) {
    for Preflight { profile, host, obstacles, .. } in preflights {
        for obstacle in obstacles {
            let reason = obstacle.message_on(host);
            crate::console::message!("warning: `{profile}` on `{host}` will not be measured: {reason}");
            obstacle.help().iter().for_each(|help| crate::console::message!("help: {help}"));
        }
    }
}

/// Awaits a future; `None` if the run is cancelled first.
async fn run_until_cancelled<T>(future: impl Future<Output = T>, mut cancel: watch::Receiver<bool>) -> Option<T> {
    tokio::select! {
        output = future => Some(output),
        _ = cancel.wait_for(|cancelled| *cancelled) => None,
    }
}

/// A profile as recorded, with secrets masked.
fn mask_profile(profile: &Profile) -> Result<Profile, Error> {
    let masked = serde_json::to_value(profile.without_secrets()).map(mask_declared_json);
    masked.and_then(serde_json::from_value).map_err(|error| record_error("the profile", &error))
}

fn record_error(what: &str, error: &serde_json::Error) -> Error {
    Error::Internal(format!("cannot record {what}: {error}"))
}

/// The user's metadata as recorded, with secrets masked.
fn mask_metadata(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let masked_entry = |(name, value): (&String, &String)| (name.clone(), mask_value(name, value));
    metadata.iter().map(masked_entry).collect()
}

impl MeasureResult {
    /// Number of cells that are incomplete or failed.
    pub(crate) fn shortfall_count(&self) -> usize {
        self.study.cells.iter().filter(|cell| cell.outcome.is_incomplete()).count()
    }

    /// The exit status if something is incomplete or the run was interrupted; `None` if all is well.
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

/// The folder given by the flags, or a new one named after a prefix and the time.
pub(crate) fn run_folder(flags: &RunFolderFlags, prefix: &str) -> PathBuf {
    let new = || {
        let name = jiff::Timestamp::now().strftime(&format!("{prefix}-%Y%m%d-%H%M%S")).to_string();
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
                // The receiver is gone once the run is over.
                let _ = sender.send(true);
            }
        });
    }
    receiver
}

/// The command line that resumes this run: the one that was typed, with `--into` added unless the folder was given.
fn resume_command(folder: &Path, is_given: bool) -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if !is_given {
        // Before `--`, after which only variants may follow.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(at..at, ["--into".to_owned(), folder.display().to_string()]);
    }
    shell_words::join(words)
}
