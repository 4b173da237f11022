//! The part of a session in one profile: applies it, measures, and reverts it. Each profile is an invocation of its own
//! in the same run, because the plan needs the facts of guests.

use std::collections::BTreeMap;

use tokio::sync::watch;
use wb_model::secrets::{mask_arguments, mask_declared_json, mask_value};
use wb_plan::{Plan, PlanWorkers, masking};
use wb_profile::{AppliedProfile, NamedProfile, Profile, set_values};
use wb_record::RunFolder;
use wb_run::environment::record_consoles;
use wb_run::resolved_values::keep_resolved_values;
use wb_run::resume::{is_complete, restore_facts};
use wb_run::{Progress, RunEnd, RunError, RunSpec};

use crate::error::SessionError;
use crate::event::SessionEvent;
use crate::hosts::{ConnectedHosts, ProfiledHosts, require_any_host};
use crate::knob_sets::all_sets;
use crate::measure::{MeasureSession, SessionContext, SessionOutcome};
use crate::secrets;

impl MeasureSession<'_> {
    /// Measures in one profile: applies it to the hosts, and reverts it whatever the result.
    pub(crate) async fn run_in_profile(
        &self,
        named: &NamedProfile,
        hosts: &mut ConnectedHosts,
        context: &SessionContext<'_>,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, SessionError>,
        outcome: &mut SessionOutcome,
    ) -> Result<RunEnd, SessionError> {
        let interrupted = |outcome: &mut SessionOutcome| {
            outcome.merge(RunEnd::Interrupted);
            Ok(RunEnd::Interrupted)
        };
        if self.is_measured_already(named, plan) {
            outcome.merge(RunEnd::AlreadyComplete);
            return Ok(RunEnd::AlreadyComplete);
        }
        // Also before the first measurement without kernel arguments: an interrupted session may have left some. Not
        // cancellable: a rebooting host must come back first.
        if context.has_kernel_arguments || !outcome.has_started {
            self.start_kernels(&named.profile.kernel_arguments, hosts).await?;
        }
        if *context.cancel.borrow() {
            return interrupted(outcome);
        }
        let applying = hosts.apply_profile(named, context.failure_policy, self.folder());
        // Cancelled, the future is dropped, and with it the groups that own what was applied: it is reverted.
        let Some(state) = run_until_cancelled(applying, context.cancel.clone()).await else {
            return interrupted(outcome);
        };
        let mut state = state?;
        if state.pool.workers.is_empty() {
            outcome.has_failed_profiles = true;
        }
        let measured = match run_until_cancelled(self.make_plan(named, &mut state, plan), context.cancel.clone()).await
        {
            None => Ok(RunEnd::Interrupted),
            Some(Err(error)) => Err(error),
            Some(Ok(plan)) => match self.measure_plan(plan, &state, context, outcome).await {
                // Guests belong to this profile alone, so the other profiles can still be measured.
                Err(error @ SessionError::Run(RunError::Lost { .. })) if named.profile.guests.is_some() => {
                    self.events.warn(error);
                    outcome.has_failed_profiles = true;
                    Ok(RunEnd::Finished)
                }
                measured => measured,
            },
        };
        let saved = record_consoles(self.folder(), &named.name, &state.console_output().await);
        let unreverted = state.revert().await;
        outcome.has_failed_profiles |= !unreverted.is_empty();
        for host in &unreverted {
            if let Err(error) = hosts.replace_agent(host).await {
                self.events.warn(error);
            }
        }
        let end = measured?;
        saved?;
        outcome.merge(end);
        Ok(end)
    }

    async fn measure_plan(
        &self,
        plan: Plan,
        state: &ProfiledHosts,
        context: &SessionContext<'_>,
        outcome: &mut SessionOutcome,
    ) -> Result<RunEnd, SessionError> {
        let spec = self.build_spec(plan, state, context)?;
        self.events.emit(SessionEvent::RunStarted(self.folder().to_owned()));
        let end = wb_run::run(spec, |progress| {
            outcome.has_started |= matches!(progress, Progress::Started { .. });
            self.events.emit(SessionEvent::RunProgress(Box::new(progress)));
        })
        .await;
        self.events.emit(SessionEvent::RunEnded);
        Ok(end?)
    }

    /// Refuses a profile if this folder has samples of another profile of the same name.
    pub(crate) fn require_same_profile(&self, named: &NamedProfile) -> Result<(), SessionError> {
        if !self.folder().join("run.json").is_file() {
            return Ok(());
        }
        let run = RunFolder::open(self.folder())?;
        let run_file = run.run_file()?;
        let Some((invocation, _)) = run_file.last_invocation_for(&named.name) else { return Ok(()) };
        let recorded: Option<Vec<AppliedProfile>> =
            run.read_json(&run.environment_path(&format!("profile-{invocation}")))?;
        // All hosts have the same profile, so that any of them will do; one that changes nothing is not recorded.
        let previous = recorded.and_then(|mut all| all.pop()).map(|applied| (applied.profile.state(), applied.sets));
        let now = (mask_profile(&named.profile)?.state(), set_values(&named.profile, &all_sets()?));
        if previous.unwrap_or_default() == now {
            return Ok(());
        }
        Err(SessionError::RedefinedProfile { folder: self.folder().to_owned(), profile: named.name.clone() })
    }

    /// Restores the default kernel parameters of all hosts. Returns whether all hosts came back.
    pub(crate) async fn restore_kernel_arguments(&self, hosts: &mut ConnectedHosts) -> Result<bool, SessionError> {
        let before = hosts.pool.workers.len();
        self.start_kernels(&[], hosts).await?;
        Ok(hosts.pool.workers.len() == before)
    }

    async fn start_kernels(&self, arguments: &[String], hosts: &mut ConnectedHosts) -> Result<(), SessionError> {
        hosts.start_kernels(arguments, self.preparation.reboot_limit, self.folder()).await
    }

    /// Whether everything requested in a profile that needs guests or a reboot is already measured, by the plan for the
    /// recorded workers; this avoids starting guests or rebooting only to find nothing to do.
    fn is_measured_already(
        &self,
        named: &NamedProfile,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, SessionError>,
    ) -> bool {
        let takes_long = named.profile.guests.is_some() || !named.profile.kernel_arguments.is_empty();
        if !takes_long || self.stopping_rule.is_some() || !self.folder().join("run.json").is_file() {
            return false;
        }
        let Ok(run_file) = RunFolder::open(self.folder()).and_then(|run| run.run_file()) else { return false };
        let Some((_, invocation)) = run_file.last_invocation_for(&named.name) else { return false };
        let all = invocation.facts.iter().map(|(name, facts)| (name.clone(), Ok(facts.clone()))).collect();
        // If there is no such plan, planning for the actual guests reports why.
        let plan = plan(&PlanWorkers { workers: all, ..PlanWorkers::default() }, named);
        plan.is_ok_and(|plan| is_complete(self.folder(), &plan, &self.request.registry).unwrap_or(false))
    }

    /// Makes the plan for the machines of a profile, after running their setup scripts.
    async fn make_plan(
        &self,
        named: &NamedProfile,
        state: &mut ProfiledHosts,
        plan: &mut impl FnMut(&PlanWorkers, &NamedProfile) -> Result<Plan, SessionError>,
    ) -> Result<Plan, SessionError> {
        // Without workers, planning reports why there are none.
        if !state.pool.workers.is_empty() {
            self.preparation.set_up_workers(self.folder(), &mut state.pool, &self.events).await?;
            // The last action before the plan, which is made from the facts: whatever prepared the machines may have
            // changed them.
            state.pool.read_facts().await?;
            require_any_host(&state.pool)?;
        }
        let mut workers = state.pool.plan_workers();
        restore_facts(self.folder(), &named.name, &mut workers)?;
        let expand = |workers: &PlanWorkers| self.request.expand(Some(workers), named);
        let workers = keep_resolved_values(self.folder(), &named.name, workers, expand)?;
        let plan = plan(&workers, named)?;
        secrets::refuse_secret_names(&plan)?;
        Ok(plan)
    }

    fn build_spec<'b>(
        &'b self,
        plan: Plan,
        state: &ProfiledHosts,
        context: &'b SessionContext<'_>,
    ) -> Result<RunSpec<'b>, SessionError> {
        let states = state.applied.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        Ok(RunSpec {
            folder: self.folder(),
            plan_name: self.request.name.clone(),
            plan_text: self.request.text.as_deref().map(masking::mask_plan),
            command: mask_arguments(&self.options.command),
            seed: plan.sampling.seed.unwrap_or_else(rand::random),
            hosts: context.hosts.clone(),
            metadata: mask_metadata(&self.metadata),
            version: env!("CARGO_PKG_VERSION"),
            program_sha256: context.programs.weighbridge.clone(),
            agent_sha256: context.programs.agent.clone(),
            registry: &self.request.registry,
            pool: state.pool.clone(),
            host_states: states.map_err(SessionError::UnrecordableProfile)?,
            cancel: context.cancel.clone(),
            stopping_rule: self.stopping_rule,
            publisher: context.publisher,
            input_recorder: self.input_recorder,
            plan,
        })
    }
}

/// Awaits a future; `None` if the run is cancelled first.
async fn run_until_cancelled<T>(future: impl Future<Output = T>, mut cancel: watch::Receiver<bool>) -> Option<T> {
    tokio::select! {
        output = future => Some(output),
        _ = cancel.wait_for(|cancelled| *cancelled) => None,
    }
}

fn mask_profile(profile: &Profile) -> Result<Profile, SessionError> {
    let masked = serde_json::to_value(profile.without_secrets()).map(mask_declared_json);
    masked.and_then(serde_json::from_value).map_err(SessionError::UnrecordableProfile)
}

pub(crate) fn mask_metadata(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let masked_entry = |(name, value): (&String, &String)| (name.clone(), mask_value(name, value));
    metadata.iter().map(masked_entry).collect()
}
