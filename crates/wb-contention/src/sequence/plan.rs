//! Plans: the stages of each bench, and whether each is executed or there already.

use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use wb_results::contention::{Bench, Instance};

use super::{Job, JobContext, JobStages, Origin, ScheduleError, Throttle, schedule};
use crate::Parameters;
use crate::benches::iocost_qos::stages::QosStage;
use crate::conditions::Mismatch;
use crate::execute::SequenceRequest;
use crate::measurement::Measurement;
use crate::record::SequenceHistory;
use crate::spec::IocostQosProperties;
use crate::stage::Stage;

/// A bench of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedJob {
    /// Its name in the sequence.
    pub instance: Instance,
    /// Its specification, as text.
    pub spec: String,
    /// Why it is in the sequence.
    pub origin: Origin,
    /// Its stages; empty if it follows from the result of another bench.
    pub stages: Vec<PlannedStage>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A stage of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedStage {
    /// What it measures.
    pub label: String,
    /// Whether it is executed.
    pub action: StageAction,
    /// Whether its lowest vrate has been raised, because it would throttle too much.
    pub is_raised: bool,
    /// Why an earlier result cannot be used.
    #[serde(serialize_with = "as_texts")]
    #[schemars(with = "Vec<String>")]
    pub mismatches: Vec<Mismatch>,
}

fn as_texts<S: Serializer>(mismatches: &[Mismatch], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(mismatches.iter().map(ToString::to_string))
}

/// Whether a stage is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageAction {
    /// Its result is there already.
    Present,
    /// It is executed.
    Run,
    /// It is executed from its last checkpoint.
    Resume,
    /// It is left out, because it would throttle too much.
    Skipped,
}

impl fmt::Display for PlannedStage {
    /// `+  [01] …`, with the sign in two columns: `-` present, `+` executed, `-s` left out, `+a` lowest vrate raised.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (self.action, self.is_raised) {
            (StageAction::Skipped, _) => "-s",
            (StageAction::Present, false) => "-",
            (StageAction::Present, true) => "-a",
            (StageAction::Run | StageAction::Resume, false) => "+",
            (StageAction::Run | StageAction::Resume, true) => "+a",
        };
        let resumed = if self.action == StageAction::Resume { " (from its last checkpoint)" } else { "" };
        write!(f, "{sign:2} {}{resumed}", self.label)
    }
}

impl PlannedJob {
    pub fn to_run(&self) -> usize {
        self.stages.iter().filter(|stage| matches!(stage.action, StageAction::Run | StageAction::Resume)).count()
    }
}

/// Plans a sequence from the records of earlier benches. Stages that depend on unfinished benches stay open.
pub fn plan(request: &SequenceRequest, history: &SequenceHistory) -> Result<Vec<PlannedJob>, ScheduleError> {
    let mut parameters = request.initial_parameters();
    let mut open = Vec::new();
    let mut planned = Vec::new();
    for job in schedule(&request.specs, &parameters)? {
        let context = request.job_context(&job, parameters);
        let mut plan = planned_job(&job, &context, history);
        if open.iter().any(|bench| depends_on(job.instance.bench, *bench)) {
            plan.stages
                .iter_mut()
                .filter(|stage| stage.action == StageAction::Present)
                .for_each(|stage| stage.action = StageAction::Run);
        }
        if job.instance.bench == Bench::IocostQos && parameters.iocost.is_none() {
            plan.notes
                .push("iocost-params determines which settings are left out because they throttle too much".to_owned());
        }
        match plan.to_run() {
            0 => parameters = parameters.updated(answered_parameters(&job, &context, history)),
            _ => open.push(job.instance.bench),
        }
        planned.push(plan);
    }
    Ok(planned)
}

fn depends_on(bench: Bench, on: Bench) -> bool {
    match bench {
        Bench::IocostQos => on == Bench::IocostParams,
        Bench::Storage => on == Bench::IocostParams,
        Bench::Protection => matches!(on, Bench::IocostParams | Bench::HashdParams),
        Bench::IocostParams | Bench::HashdParams | Bench::IocostTune => false,
    }
}

/// The parameters that the recorded result of a bench gives to later ones.
fn answered_parameters(job: &Job, context: &JobContext<'_>, history: &SequenceHistory) -> Parameters {
    let JobStages::Independent(stages) = context.stages(job) else { return Parameters::default() };
    let measurements = stages.iter().filter_map(|(_, stage)| history.measurement(&stage.key()));
    measurements.fold(Parameters::default(), |all, one| all.updated(given_parameters(job, one)))
}

/// The parameters that a result gives to later benches, if the bench applies it.
pub(crate) fn given_parameters(job: &Job, measurement: &Measurement) -> Parameters {
    use crate::spec::Properties;
    let applies = match &job.spec.properties {
        Properties::IocostParams(properties) => properties.apply || properties.commit,
        Properties::HashdParams(properties) => properties.apply || properties.commit,
        Properties::Storage(properties) => properties.apply || properties.commit,
        Properties::IocostQos(_) | Properties::IocostTune(_) | Properties::Protection(_) => false,
    };
    match measurement {
        _ if !applies => Parameters::default(),
        Measurement::IocostParams(iocost) => Parameters { iocost: Some(*iocost), hashd: None },
        Measurement::HashdParams(hashd) => Parameters { iocost: None, hashd: Some(*hashd) },
        Measurement::Storage(storage) => Parameters { iocost: None, hashd: Some(storage.hashd_at_footprint()) },
        Measurement::MemHog(_) | Measurement::MemHogTune(_) => Parameters::default(),
    }
}

pub(crate) fn planned_job(job: &Job, context: &JobContext<'_>, history: &SequenceHistory) -> PlannedJob {
    let stages = match context.stages(job) {
        JobStages::Derived => Vec::new(),
        JobStages::Independent(stages) => stages
            .into_iter()
            .map(|(label, stage)| {
                let action = action_of(&stage, history);
                PlannedStage { label, action, is_raised: false, mismatches: mismatches_of(action, &stage, history) }
            })
            .collect(),
        JobStages::Qos(properties, stages) => {
            stages.iter().map(|stage| planned_qos(job, stage, properties, context, history)).collect()
        }
    };
    let Job { instance, spec, origin } = job;
    PlannedJob { instance: instance.clone(), spec: spec.to_string(), origin: *origin, stages, notes: Vec::new() }
}

fn planned_qos(
    job: &Job,
    stage: &QosStage,
    properties: &IocostQosProperties,
    context: &JobContext<'_>,
    history: &SequenceHistory,
) -> PlannedStage {
    let label = stage.label(context.parameters.iocost);
    let is_raised = stage.throttle == Throttle::MinRaised;
    if stage.throttle == Throttle::TooMuch {
        return PlannedStage { label, action: StageAction::Skipped, is_raised: false, mismatches: Vec::new() };
    }
    let storage = stage.storage(job, properties, context);
    let action = match history.measurement(&storage.key()) {
        Some(Measurement::Storage(measured)) => {
            let protection = stage.protection(job, properties, measured, context);
            if history.is_done(&protection.key()) { StageAction::Present } else { StageAction::Resume }
        }
        _ => action_of(&storage, history),
    };
    PlannedStage { label, action, is_raised, mismatches: mismatches_of(action, &storage, history) }
}

fn action_of(stage: &Stage, history: &SequenceHistory) -> StageAction {
    let key = stage.key();
    match history.stage(&key) {
        _ if history.is_done(&key) => StageAction::Present,
        Some(recorded) if recorded.checkpoint.is_some() => StageAction::Resume,
        _ => StageAction::Run,
    }
}

fn mismatches_of(action: StageAction, stage: &Stage, history: &SequenceHistory) -> Vec<Mismatch> {
    if action == StageAction::Run { history.mismatches(stage) } else { Vec::new() }
}
