//! Executes the benches of a sequence one after the other.

use std::collections::BTreeSet;

use wb_record::{RunFolder, files};
use wb_results::contention::{Bench, BenchResult, Instance, SystemInfo};

use super::progress::AfterFailure;
use super::results::read_result;
use super::{SequenceError, SequenceProgress, SequenceRequest};
use crate::Parameters;
use crate::benches::iocost_qos::stages::QosStage;
use crate::conditions::system_under;
use crate::format::Times;
use crate::measurement::{Measurement, StorageMeasurement};
use crate::record::{
    self, EndedBench, SequenceEnd, SequenceEvent, SequenceHistory, SequenceJournal, StartedStage, result_path,
};
use crate::runner::{Checkpoint, Runners, StageContext, StageError, StageFailure, StageNote, StageRunner};
use crate::sequence::{Job, JobContext, JobStages, StageAction, Throttle, given_parameters, planned_job, schedule};
use crate::spec::{BenchSpec, IocostQosProperties, Properties};
use crate::stage::{Stage, StageKey, Work, passive_of};
use crate::study::{self, StudySource};

/// Repetitions of a stage after the machine was suspended.
const SUSPEND_RETRIES: u32 = 3;

pub(super) struct Executor<'a> {
    request: &'a SequenceRequest,
    run: &'a RunFolder,
    journal: SequenceJournal,
    runners: &'a mut dyn Runners,
    progress: &'a mut dyn FnMut(SequenceProgress<'_>),
    parameters: Parameters,
    results: Vec<BenchResult>,
}

#[derive(Clone, Copy)]
struct FailurePolicy {
    /// Repetitions after a failure that may be transient.
    retries: u32,
    /// Whether the sequence continues without a result.
    continues: bool,
}

impl<'a> Executor<'a> {
    pub(super) fn new(
        request: &'a SequenceRequest,
        run: &'a RunFolder,
        journal: SequenceJournal,
        runners: &'a mut dyn Runners,
        progress: &'a mut dyn FnMut(SequenceProgress<'_>),
    ) -> Self {
        let parameters = request.initial_parameters();
        Self { request, run, journal, runners, progress, parameters, results: Vec::new() }
    }

    pub(super) async fn run(mut self) -> Result<Vec<BenchResult>, SequenceError> {
        let jobs = schedule(&self.request.specs, &self.parameters)?;
        require_runners(self.request, self.journal.history(), self.runners)?;
        if jobs.iter().any(|job| commits(&job.spec.properties)) {
            // A folder that cannot be written is an error now, rather than after hours.
            self.request.options.parameters_file().check()?;
        }
        let SequenceRequest { specs, seed, .. } = self.request;
        self.journal.write(SequenceEvent::SequenceStarted { specs: specs.clone(), seed: *seed })?;
        let ran = self.run_all(&jobs).await;
        let end = match &ran {
            Ok(()) => SequenceEnd::Finished,
            Err(error) if error.is_interruption() => SequenceEnd::Interrupted,
            Err(_) => SequenceEnd::Failed,
        };
        // If the journal cannot be written any more, the first error says so.
        let ended = self.journal.write(SequenceEvent::SequenceEnded { end });
        ran?;
        ended?;
        Ok(self.results)
    }

    async fn run_all(&mut self, jobs: &[Job]) -> Result<(), SequenceError> {
        for job in jobs {
            self.run_job(job).await?;
        }
        Ok(())
    }

    async fn run_job(&mut self, job: &Job) -> Result<(), SequenceError> {
        let request = self.request;
        let context = request.job_context(job, self.parameters);
        let plan = planned_job(job, &context, self.journal.history());
        (self.progress)(SequenceProgress::BenchPlanned(&plan));
        let was_present =
            plan.stages.iter().all(|stage| matches!(stage.action, StageAction::Present | StageAction::Skipped));
        let (stages, shift) = match context.stages(job) {
            JobStages::Independent(stages) => (self.run_independent(job, stages).await?, 0.0),
            JobStages::Qos(properties, stages) => {
                (self.run_qos(job, properties, &stages, &context).await?, context.shift(properties))
            }
            JobStages::Derived => (Vec::new(), 0.0),
        };
        self.conclude(job, stages, shift, was_present)?;
        self.apply(job)
    }

    async fn run_independent(
        &mut self,
        job: &Job,
        stages: Vec<(String, Stage)>,
    ) -> Result<Vec<StageKey>, SequenceError> {
        let policy = FailurePolicy { retries: 0, continues: false };
        let mut keys = Vec::new();
        for (label, stage) in stages {
            self.run_stage(job, &label, &stage, policy).await?;
            keys.push(stage.key());
        }
        Ok(keys)
    }

    async fn run_qos(
        &mut self,
        job: &Job,
        properties: &IocostQosProperties,
        stages: &[QosStage],
        context: &JobContext<'_>,
    ) -> Result<Vec<StageKey>, SequenceError> {
        let mut keys = Vec::new();
        for stage in stages.iter().filter(|stage| stage.throttle != Throttle::TooMuch) {
            let label = stage.label(context.parameters.iocost);
            let storage = stage.storage(job, properties, context);
            // The others are compared with the baseline.
            let continues = properties.allow_fail && stage.index > 0;
            let policy = FailurePolicy { retries: properties.retries, continues };
            keys.push(storage.key());
            let Some(measured) = self.run_storage(job, &label, &storage, policy).await? else { continue };
            let protection = stage.protection(job, properties, &measured, context);
            keys.push(protection.key());
            let policy = FailurePolicy { retries: 0, continues: true };
            self.run_stage(job, &format!("{label}: protection"), &protection, policy).await?;
        }
        Ok(keys)
    }

    async fn run_storage(
        &mut self,
        job: &Job,
        label: &str,
        stage: &Stage,
        policy: FailurePolicy,
    ) -> Result<Option<StorageMeasurement>, SequenceError> {
        match self.run_stage(job, &format!("{label}: storage"), stage, policy).await? {
            Some(Measurement::Storage(measured)) => Ok(Some(measured)),
            Some(_) => Err(wrong_measurement(&job.instance, label)),
            None => Ok(None),
        }
    }

    /// Executes a stage unless it has a result; `None` if it has none for good.
    async fn run_stage(
        &mut self,
        job: &Job,
        label: &str,
        stage: &Stage,
        policy: FailurePolicy,
    ) -> Result<Option<Measurement>, SequenceError> {
        let key = stage.key();
        let (mut failures, mut suspensions) = (0, 0);
        loop {
            if self.journal.history().is_done(&key) {
                return Ok(self.journal.history().measurement(&key).cloned());
            }
            let bench = runner_bench(&stage.definition.work);
            let Some(runner) = self.runners.runner_for(bench) else { return Err(SequenceError::Unavailable { bench }) };
            match self.attempt(runner, label, stage, &key).await {
                Ok(measurement) if measurement.is_of(&stage.definition.work) => {
                    let measurement = Box::new(measurement);
                    self.journal.write(SequenceEvent::StageEnded { stage: key.clone(), measurement })?;
                    (self.progress)(SequenceProgress::StageEnded { instance: &job.instance, label });
                }
                Ok(_) => return Err(wrong_measurement(&job.instance, label)),
                Err(StageError::Record(error)) => return Err(error.into()),
                Err(StageError::Failed(failure)) => {
                    let count = match &failure {
                        StageFailure::Suspended { .. } => (&mut suspensions, SUSPEND_RETRIES),
                        _ => (&mut failures, policy.retries),
                    };
                    let next = after_failure(&failure, count, policy);
                    self.record_failure(&key, &failure, next)?;
                    (self.progress)(SequenceProgress::StageFailed {
                        instance: &job.instance,
                        label,
                        failure: &failure,
                        next,
                    });
                    if next == AfterFailure::Stop {
                        return Err(SequenceError::Stage {
                            instance: job.instance.clone(),
                            label: label.to_owned(),
                            failure,
                        });
                    }
                }
            }
        }
    }

    fn record_failure(
        &mut self,
        key: &StageKey,
        failure: &StageFailure,
        next: AfterFailure,
    ) -> Result<(), SequenceError> {
        let given_up = next == AfterFailure::GiveUp;
        let event = SequenceEvent::StageFailed { stage: key.clone(), failure: failure.clone(), given_up };
        Ok(self.journal.write(event)?)
    }

    /// Starts at the last checkpoint if there is one; the reports are then added to those of the attempt that reached
    /// it.
    async fn attempt(
        &mut self,
        mut runner: Box<dyn StageRunner>,
        label: &str,
        stage: &Stage,
        key: &StageKey,
    ) -> Result<Measurement, StageError> {
        let recorded = self.journal.history().stage(key);
        let attempt = recorded.map_or(0, |recorded| recorded.start.attempt + 1);
        let resume_from: Option<Checkpoint> = recorded.and_then(|recorded| recorded.checkpoint.clone());
        let reports = match (&resume_from, recorded) {
            (Some(_), Some(recorded)) => recorded.start.reports,
            _ => attempt,
        };
        let resumed = resume_from.is_some();
        (self.progress)(SequenceProgress::StageStarted { instance: &stage.instance, label, resumed });
        self.journal.write(SequenceEvent::StageStarted(Box::new(StartedStage {
            stage: key.clone(),
            attempt,
            reports,
            instance: stage.instance.clone(),
            definition: stage.definition.clone(),
            conditions: stage.conditions.clone(),
        })))?;
        let folder = record::report_folder(&self.run.path().join(record::FOLDER), &stage.instance, key, reports);
        let journal = &mut self.journal;
        let mut record = |note: StageNote| {
            let stage = key.clone();
            journal.write(match note {
                StageNote::Checkpoint(checkpoint) => SequenceEvent::CheckpointReached { stage, checkpoint },
                StageNote::MissedRequirements(requirements) => {
                    SequenceEvent::RequirementsMissed { stage, requirements }
                }
            })
        };
        let mut context = StageContext { resume_from, reports: folder, record: &mut record };
        runner.run(stage, &mut context).await
    }

    /// Derives and keeps the result of a bench, unless it is there already and of the same stages.
    fn conclude(
        &mut self,
        job: &Job,
        stages: Vec<StageKey>,
        shift: f64,
        was_present: bool,
    ) -> Result<(), SequenceError> {
        let Job { instance, spec, .. } = job;
        let system = self.system_of(spec, &stages);
        let end =
            EndedBench { instance: instance.clone(), spec: spec.clone(), system, stages, shift, is_merged: false };
        let path = result_path(self.run, instance);
        let history = self.journal.history();
        let is_derived = matches!(spec.properties, Properties::IocostTune(_));
        let kept: Option<BenchResult> = match history.ended(instance) {
            Some(recorded) if recorded.is_same_result(&end) && !is_derived => read_result(self.run, &path)?,
            _ => None,
        };
        let is_kept = kept.is_some();
        let result = match kept {
            Some(result) => result,
            None => study::study(&StudySource::of_run(self.run, history), &end, &self.results)?,
        };
        if !is_kept {
            write_result(self.run, &result)?;
        }
        // A result that is used again ended when it did, whatever the machine is like now.
        if !is_kept && self.journal.history().ended(instance).is_none_or(|recorded| *recorded != end) {
            self.journal.write(SequenceEvent::BenchEnded(Box::new(end)))?;
        }
        let times = self.journal.history().times(instance).map(|(start, end)| Times { start, end });
        (self.progress)(SequenceProgress::BenchEnded { result: &result, times, was_present });
        self.results.push(result);
        Ok(())
    }

    /// The machine as it is now, with the memory and the missed requirements that the stages found.
    fn system_of(&self, spec: &BenchSpec, stages: &[StageKey]) -> SystemInfo {
        let recorded = || stages.iter().filter_map(|key| self.journal.history().stage(key));
        let mut memory = recorded().filter_map(|stage| match &stage.measurement {
            Some(Measurement::Storage(storage)) => Some(storage.memory),
            Some(Measurement::MemHog(hog)) => hog.memory,
            Some(Measurement::MemHogTune(tune)) => tune.shown()?.run.memory,
            _ => None,
        });
        let missed: BTreeSet<&String> = recorded().flat_map(|stage| &stage.missed_requirements).collect();
        let passive = passive_of(spec);
        let system = system_under(self.request.system.clone(), &passive);
        SystemInfo {
            iocost: self.parameters.iocost,
            profile: memory.next_back().or(system.profile),
            passive,
            time_scale: self.request.options.time_scale,
            missed_requirements: missed.into_iter().cloned().collect(),
            ..system
        }
    }

    /// Applies and commits what a bench gives to later ones.
    fn apply(&mut self, job: &Job) -> Result<(), SequenceError> {
        let given = given_by(job, self.journal.history());
        if given == Parameters::default() {
            return Ok(());
        }
        if commits(&job.spec.properties) {
            let file = self.request.options.parameters_file();
            file.commit(given)?;
            (self.progress)(SequenceProgress::Committed(file.path()));
        }
        let changed = Parameters { iocost: given.iocost.map(|iocost| self.request.changed(iocost)), ..given };
        self.parameters = self.parameters.updated(changed);
        (self.progress)(SequenceProgress::Applied(&self.parameters));
        Ok(())
    }
}

/// Refuses a sequence of which a bench that is to be measured cannot be run, before anything is.
pub fn require_runners(
    request: &SequenceRequest,
    history: &SequenceHistory,
    runners: &mut dyn Runners,
) -> Result<(), SequenceError> {
    let planned = crate::sequence::plan(request, history)?;
    let measured = planned.iter().filter(|plan| plan.to_run() > 0).map(|plan| plan.instance.bench);
    match measured.flat_map(runner_benches).find(|bench| runners.runner_for(**bench).is_none()) {
        Some(bench) => Err(SequenceError::Unavailable { bench: *bench }),
        None => Ok(()),
    }
}

/// Writes the result of a bench, atomically.
pub(crate) fn write_result(run: &RunFolder, result: &BenchResult) -> Result<(), wb_record::RecordError> {
    let folder = record::instance_folder(run, &result.instance);
    std::fs::create_dir_all(&folder).map_err(wb_record::RecordError::io("create", &folder))?;
    files::write_json(&result_path(run, &result.instance), result)
}

fn given_by(job: &Job, history: &SequenceHistory) -> Parameters {
    let stages = history.ended(&job.instance).map(|end| end.stages.as_slice()).unwrap_or_default();
    let measurements = stages.iter().filter_map(|key| history.measurement(key));
    measurements.fold(Parameters::default(), |all, one| all.updated(given_parameters(job, one)))
}

fn commits(properties: &Properties) -> bool {
    match properties {
        Properties::IocostParams(properties) => properties.commit,
        Properties::HashdParams(properties) => properties.commit,
        Properties::Storage(properties) => properties.commit,
        Properties::IocostQos(_) | Properties::IocostTune(_) | Properties::Protection(_) => false,
    }
}

fn after_failure(failure: &StageFailure, (count, retries): (&mut u32, u32), policy: FailurePolicy) -> AfterFailure {
    if failure.is_transient() && *count < retries {
        *count += 1;
        return AfterFailure::Retry;
    }
    if failure.concerns_settings() && policy.continues { AfterFailure::GiveUp } else { AfterFailure::Stop }
}

fn runner_benches(bench: Bench) -> &'static [Bench] {
    match bench {
        Bench::Storage => &[Bench::Storage],
        Bench::IocostParams => &[Bench::IocostParams],
        Bench::HashdParams => &[Bench::HashdParams],
        Bench::Protection => &[Bench::Protection],
        Bench::IocostQos => &[Bench::Storage, Bench::Protection],
        Bench::IocostTune => &[],
    }
}

fn runner_bench(work: &Work) -> Bench {
    match work {
        Work::IocostParams => Bench::IocostParams,
        Work::HashdParams(_) => Bench::HashdParams,
        Work::Storage(_) => Bench::Storage,
        Work::MemHog(_) | Work::MemHogTune(_) => Bench::Protection,
    }
}

fn wrong_measurement(instance: &Instance, label: &str) -> SequenceError {
    SequenceError::WrongMeasurement { instance: instance.clone(), label: label.to_owned() }
}

impl Measurement {
    fn is_of(&self, work: &Work) -> bool {
        matches!(
            (self, work),
            (Self::IocostParams(_), Work::IocostParams)
                | (Self::HashdParams(_), Work::HashdParams(_))
                | (Self::Storage(_), Work::Storage(_))
                | (Self::MemHog(_), Work::MemHog(_))
                | (Self::MemHogTune(_), Work::MemHogTune(_))
        )
    }
}

impl EndedBench {
    /// Whether another end has the same result: of the same stages, by the same specification.
    fn is_same_result(&self, other: &Self) -> bool {
        self.stages == other.stages && self.spec == other.spec && self.shift == other.shift
    }
}
