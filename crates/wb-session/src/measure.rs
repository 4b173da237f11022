//! Runs a plan in each requested profile and records it in a folder.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::sync::watch;
use wb_model::WorkerName;
use wb_model::secrets::mask_arguments;
use wb_plan::{Plan, PlanWorkers};
use wb_profile::{NamedProfile, Preflight, ProfileError, ProfileErrorKind};
use wb_record::{Preparation, RunFolder};
use wb_run::preparation::{abort_run, begin_run};
use wb_run::{InputRecorder, Publisher, RunEnd, StoppingRule};

use crate::error::SessionError;
use crate::event::{EventSink, HostEvent, KeptRun, SessionEvent};
use crate::hosts::{
    HostPreparation, ProfileFailurePolicy, prepare_hosts, refuse_local_kernel_arguments, requested_profiles,
};
use crate::options::{RunFolderOptions, SessionOptions};
use crate::profile_run::mask_metadata;
use crate::program::{current_program_hash, runtime};
use crate::publishing::{PublishConfig, PublishState, publish_run};
use crate::request::MeasureRequest;
use crate::result::MeasureResult;
use crate::secrets;
use crate::worker_program::worker_program_hash;

/// A measurement session: the tests, the hosts and the run folder.
pub struct MeasureSession<'a> {
    pub(crate) request: &'a MeasureRequest,
    pub(crate) options: &'a SessionOptions,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) preparation: HostPreparation,
    publish: Option<PublishConfig>,
    /// Decides after each sample whether a cell needs more.
    pub(crate) stopping_rule: Option<&'a StoppingRule>,
    pub(crate) input_recorder: Option<&'a InputRecorder<'a>>,
    /// Name of the command, if it measures in only one profile.
    pub(crate) single_profile_command: Option<&'static str>,
    pub(crate) events: EventSink,
}

/// Refuses a folder that holds another plan: samples of two plans are not interleaved, and thus not comparable.
pub(crate) fn require_same_plan(folder: &Path, request: &MeasureRequest) -> Result<(), SessionError> {
    if !folder.join("run.json").is_file() {
        return Ok(());
    }
    let invocations = RunFolder::open(folder)?.run_file()?.invocations;
    match invocations.into_iter().find(|invocation| invocation.plan != request.name) {
        None => Ok(()),
        Some(other) => Err(SessionError::OtherPlan {
            folder: folder.to_owned(),
            recorded: other.plan,
            requested: request.name.clone(),
        }),
    }
}

impl<'a> MeasureSession<'a> {
    pub fn new(
        request: &'a MeasureRequest,
        options: &'a SessionOptions,
        events: &EventSink,
    ) -> Result<Self, SessionError> {
        let SessionOptions { run_folder, hosts, preparation, .. } = options;
        secrets::declare_all(&run_folder.secret_from)?;
        let mut metadata: BTreeMap<String, String> = run_folder.metadata.iter().cloned().collect();
        let command = run_folder.publish.as_deref().or(request.publish.as_deref());
        let publish = PublishConfig::new(command, &metadata, events)?;
        for (name, value) in [("distro", &hosts.distro), ("guest-distro", &hosts.guest_distro)] {
            if let Some(value) = value {
                metadata.entry(name.to_owned()).or_insert_with(|| value.clone());
            }
        }
        Ok(Self {
            request,
            options,
            metadata,
            preparation: HostPreparation::new(preparation)?,
            publish,
            stopping_rule: None,
            input_recorder: None,
            single_profile_command: None,
            events: events.clone(),
        })
    }

    /// Sets the function that records the programs and files that the tests use, before the first sample.
    #[must_use]
    pub fn record_inputs(self, recorder: Option<&'a InputRecorder<'a>>) -> Self {
        Self { input_recorder: recorder, ..self }
    }

    pub(crate) fn folder(&self) -> &'a Path {
        &self.options.run_folder.path
    }

    /// Makes the plan for the hosts in each profile, and measures it; then evaluates and writes the results.
    pub fn run(
        self,
        mut plan: impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, SessionError>,
    ) -> Result<MeasureResult, SessionError> {
        let profiles = requested_profiles(&self.options.hosts)?;
        if let Some(command) = self.single_profile_command.filter(|_| profiles.len() > 1) {
            return Err(SessionError::SeveralProfiles { command, profiles: profiles.len() });
        }
        refuse_local_kernel_arguments(&profiles, &self.options.hosts)?;
        // Before anything is measured in another profile. Cells have only the name of their profile: those of another
        // definition would count as measured.
        profiles.iter().try_for_each(|named| self.require_same_profile(named))?;
        let programs = ProgramHashes { weighbridge: current_program_hash()?, agent: worker_program_hash()? };
        // Only a folder in which nothing happened to a machine is removed again after an error.
        let is_new = !self.folder().join("run.json").is_file();
        begin_run(self.folder(), self.to_record())?;
        let measured = self.run_in_profiles(&profiles, programs, &mut plan);
        // A folder that cannot be read any more is reported by what follows, or is the reason why the run ended.
        let run_file = RunFolder::open(self.folder()).and_then(|run| run.run_file());
        let has_no_invocation = run_file.is_ok_and(|run_file| run_file.invocations.is_empty());
        let (outcome, has_started) = match measured {
            Ok((Ok(outcome), _)) if outcome.end == RunEnd::Interrupted && has_no_invocation => {
                let interrupted = self.interrupted();
                self.abort(&interrupted, is_new);
                return Err(interrupted);
            }
            Err(error) | Ok((Err(error), false)) => {
                self.abort(&error, is_new);
                return Err(error);
            }
            Ok(ended) => ended,
        };
        let results = || {
            Ok::<_, SessionError>(wb_study::write_results(&RunFolder::open(self.folder())?, &self.request.registry)?)
        };
        if outcome.is_err() && has_started {
            // The error that ended the run is reported last.
            if let Err(error) = results() {
                self.events.warn(error);
            }
            self.events.emit(SessionEvent::ResultsKeptAfterError(self.kept_run()));
        }
        let SessionOutcome { end, has_failed_profiles, .. } = outcome?;
        let study = results()?;
        let published = match end {
            RunEnd::Interrupted => {
                self.events.emit(SessionEvent::Interrupted(self.kept_run()));
                PublishState::NotRequested
            }
            RunEnd::Finished | RunEnd::AlreadyComplete => {
                publish_run(self.publish.as_ref(), self.kept_run(), &self.events)?
            }
        };
        Ok(MeasureResult { end, study, published, expected_failures: 0, has_failed_profiles })
    }

    /// What is recorded of the session before anything else.
    fn to_record(&self) -> Preparation {
        Preparation {
            started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: mask_arguments(&self.options.command),
            plan: self.request.name.clone(),
            metadata: mask_metadata(&self.metadata),
        }
    }

    fn kept_run(&self) -> KeptRun {
        let RunFolderOptions { path, is_given, .. } = &self.options.run_folder;
        KeptRun { folder: path.clone(), is_folder_given: *is_given }
    }

    fn interrupted(&self) -> SessionError {
        let KeptRun { folder, is_folder_given } = self.kept_run();
        SessionError::Interrupted { folder, is_folder_given }
    }

    /// Records why the session ended before its first invocation. The error that is returned matters more than one in
    /// recording it.
    fn abort(&self, error: &SessionError, is_new: bool) {
        let is_interrupted = matches!(error, SessionError::Interrupted { .. });
        let reason = (!is_interrupted).then(|| error.to_string());
        if let Err(error) = abort_run(self.folder(), reason, is_new) {
            self.events.warn(error);
        }
    }

    /// Prepares the hosts and measures in each profile. The inner result is that of the profiles; returned with it is
    /// whether measuring has started.
    fn run_in_profiles(
        &self,
        profiles: &[NamedProfile],
        programs: ProgramHashes,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, SessionError>,
    ) -> Result<(Result<SessionOutcome, SessionError>, bool), SessionError> {
        runtime()?.block_on(async {
            let cancel = cancel_on_signals();
            let RunFolderOptions { path, is_given, .. } = &self.options.run_folder;
            let hosts = &self.options.hosts;
            let mut hosts =
                prepare_hosts(&self.preparation, hosts, path, *is_given, &self.events, cancel.clone()).await?;
            // The first profile is applied at once, with a misspelt value after other changes; hours may pass before the
            // others, so check them now.
            for (index, named) in profiles.iter().enumerate() {
                if index > 0 || !named.profile.knobs.is_empty() {
                    let preflights = require_known_knob_values(hosts.preflight(named).await?)?;
                    if index > 0 {
                        self.report_obstacles(preflights);
                    }
                }
            }
            let has_kernel_arguments = profiles.iter().any(|named| !named.profile.kernel_arguments.is_empty());
            let publisher = PublishConfig::start_publisher(self.publish.as_ref()).await?;
            let failure_policy =
                if profiles.len() > 1 { ProfileFailurePolicy::Record } else { ProfileFailurePolicy::Abort };
            let context = SessionContext {
                publisher: publisher.as_ref(),
                programs,
                cancel,
                has_kernel_arguments,
                hosts: hosts.to_record(),
                failure_policy,
            };
            let mut outcome =
                SessionOutcome { has_started: false, end: RunEnd::AlreadyComplete, has_failed_profiles: false };
            let mut result = Ok(());
            for named in profiles {
                match self.run_in_profile(named, &mut hosts, &context, plan, &mut outcome).await {
                    Ok(RunEnd::Interrupted) => break,
                    Ok(_) => {}
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            if has_kernel_arguments && !self.restore_kernel_arguments(&mut hosts).await? {
                outcome.has_failed_profiles = true;
            }
            if let Some(publisher) = publisher {
                publisher.close().await?;
            }
            let closed = hosts.close().await;
            let has_started = outcome.has_started;
            let outcome = result.and_then(|()| Ok(closed.map(|()| outcome)?));
            Ok((outcome, has_started))
        })
    }

    fn report_obstacles(&self, preflights: Vec<Preflight>) {
        for Preflight { profile, host, obstacles, .. } in preflights {
            for obstacle in obstacles {
                self.events.emit_host(&host, HostEvent::ProfileObstacle(profile.clone(), Box::new(obstacle)));
            }
        }
    }
}

/// Refuses a profile with a value of a knob that its host does not offer, before anything is measured in another one.
fn require_known_knob_values(mut preflights: Vec<Preflight>) -> Result<Vec<Preflight>, SessionError> {
    let is_unknown =
        |obstacle: &ProfileErrorKind| matches!(obstacle, ProfileErrorKind::Knob { is_unknown_value: true, .. });
    for Preflight { profile, host, obstacles, .. } in &mut preflights {
        if let Some(position) = obstacles.iter().position(is_unknown) {
            let kind = Box::new(obstacles.swap_remove(position));
            return Err(ProfileError { profile: profile.clone(), host: host.clone(), kind }.into());
        }
    }
    Ok(preflights)
}

/// SHA-256 of the programs of a session.
pub(crate) struct ProgramHashes {
    pub(crate) weighbridge: String,
    pub(crate) agent: String,
}

/// Context shared by the runs in all profiles.
pub(crate) struct SessionContext<'a> {
    pub(crate) publisher: Option<&'a Publisher>,
    pub(crate) programs: ProgramHashes,
    pub(crate) cancel: watch::Receiver<bool>,
    pub(crate) has_kernel_arguments: bool,
    /// Address and parameters of hosts, as recorded.
    pub(crate) hosts: BTreeMap<WorkerName, serde_json::Value>,
    pub(crate) failure_policy: ProfileFailurePolicy,
}

pub(crate) struct SessionOutcome {
    pub(crate) has_started: bool,
    pub(crate) end: RunEnd,
    /// Whether a profile could not be applied or reverted.
    pub(crate) has_failed_profiles: bool,
}

impl SessionOutcome {
    pub(crate) fn merge(&mut self, next: RunEnd) {
        self.end = match (self.end, next) {
            (RunEnd::Interrupted, _) | (_, RunEnd::Interrupted) => RunEnd::Interrupted,
            (RunEnd::AlreadyComplete, RunEnd::AlreadyComplete) => RunEnd::AlreadyComplete,
            _ => RunEnd::Finished,
        };
    }
}

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP.
pub(crate) fn cancel_on_signals() -> watch::Receiver<bool> {
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
