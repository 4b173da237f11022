//! The state of sequences, folded from the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use wb_results::contention::Instance;

use super::{EndedBench, SequenceEvent, StartedStage};
use crate::Parameters;
use crate::conditions::Mismatch;
use crate::measurement::Measurement;
use crate::merge::MergeReport;
use crate::runner::{Checkpoint, StageFailure};
use crate::sequence::{Origin, schedule};
use crate::spec::BenchSpec;
use crate::stage::{Stage, StageKey};

#[derive(Debug, Clone, Default)]
pub struct SequenceHistory {
    stages: BTreeMap<StageKey, RecordedStage>,
    /// In the order in which their stages were first started.
    order: Vec<StageKey>,
    ended: BTreeMap<Instance, EndedBench>,
    /// When each bench ended, for people.
    end_times: BTreeMap<Instance, String>,
    merged: BTreeMap<Instance, MergeReport>,
    seed: Option<u64>,
    /// The benches of the last sequence, as requested.
    requested: Vec<BenchSpec>,
}

#[derive(Debug, Clone)]
pub struct RecordedStage {
    pub start: StartedStage,
    /// When it was first started, for people.
    pub first_started: String,
    pub checkpoint: Option<Checkpoint>,
    pub measurement: Option<Measurement>,
    pub failure: Option<StageFailure>,
    /// Whether it has no result for good.
    pub given_up: bool,
    pub failures: u32,
    /// Requirements that were not met, by name.
    pub missed_requirements: BTreeSet<String>,
}

/// A bench that was requested and has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedBench<'a> {
    pub instance: Instance,
    /// Stages that were started; 0: the sequence ended before.
    pub started: usize,
    pub done: usize,
    /// Why the last attempt failed; `None` if it was killed.
    pub failure: Option<&'a StageFailure>,
}

impl fmt::Display for UnfinishedBench<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, started, done, failure } = self;
        if *started == 0 {
            return write!(f, "{instance}: not started");
        }
        write!(f, "{instance}: not finished: {done} of {started} started stages have a result")?;
        match failure {
            Some(failure) => write!(f, "; then: {failure}"),
            None => Ok(()),
        }
    }
}

impl SequenceHistory {
    pub(super) fn add(&mut self, time: &str, event: SequenceEvent) {
        match event {
            SequenceEvent::SequenceStarted { seed, specs } => {
                self.seed.get_or_insert(seed);
                self.requested = specs;
            }
            SequenceEvent::StageStarted(start) => self.start(time, *start),
            SequenceEvent::CheckpointReached { stage, checkpoint } => {
                self.change(&stage, |recorded| recorded.checkpoint = Some(checkpoint));
            }
            SequenceEvent::RequirementsMissed { stage, requirements } => {
                self.change(&stage, |recorded| recorded.missed_requirements.extend(requirements));
            }
            SequenceEvent::StageEnded { stage, measurement } => {
                self.change(&stage, |recorded| recorded.measurement = Some(*measurement));
            }
            SequenceEvent::StageFailed { stage, failure, given_up } => self.change(&stage, |recorded| {
                recorded.failure = Some(failure);
                recorded.given_up |= given_up;
                recorded.failures += 1;
            }),
            SequenceEvent::BenchEnded(end) => {
                self.end_times.insert(end.instance.clone(), time.to_owned());
                self.ended.insert(end.instance.clone(), *end);
            }
            SequenceEvent::Merged(report) => drop(self.merged.insert(report.instance.clone(), *report)),
            SequenceEvent::SequenceEnded { .. } => {}
        }
    }

    fn start(&mut self, time: &str, start: StartedStage) {
        let key = start.stage.clone();
        match self.stages.get_mut(&key) {
            Some(recorded) => recorded.start = start,
            None => {
                self.order.push(key.clone());
                let recorded = RecordedStage {
                    start,
                    first_started: time.to_owned(),
                    checkpoint: None,
                    measurement: None,
                    failure: None,
                    given_up: false,
                    failures: 0,
                    missed_requirements: BTreeSet::new(),
                };
                self.stages.insert(key, recorded);
            }
        }
    }

    fn change(&mut self, stage: &StageKey, change: impl FnOnce(&mut RecordedStage)) {
        if let Some(recorded) = self.stages.get_mut(stage) {
            change(recorded);
        }
    }

    pub fn stage(&self, key: &StageKey) -> Option<&RecordedStage> {
        self.stages.get(key)
    }

    pub fn measurement(&self, key: &StageKey) -> Option<&Measurement> {
        self.stage(key)?.measurement.as_ref()
    }

    pub fn is_done(&self, key: &StageKey) -> bool {
        self.stage(key).is_some_and(|recorded| recorded.measurement.is_some() || recorded.given_up)
    }

    /// Why the last result of the same definition cannot be used for a stage; empty if it never had a result.
    pub fn mismatches(&self, stage: &Stage) -> Vec<Mismatch> {
        let is_same = |recorded: &&RecordedStage| {
            recorded.measurement.is_some()
                && recorded.start.instance == stage.instance
                && recorded.start.definition == stage.definition
        };
        let recorded = self.order.iter().rev().filter_map(|key| self.stages.get(key)).find(is_same);
        recorded.map(|recorded| stage.conditions.mismatches(&recorded.start.conditions)).unwrap_or_default()
    }

    pub fn ended(&self, instance: &Instance) -> Option<&EndedBench> {
        self.ended.get(instance)
    }

    /// The instances that ended, in the order in which their last results came.
    pub fn instances(&self) -> Vec<&Instance> {
        let mut instances: Vec<&Instance> = self.ended.keys().collect();
        instances.sort_by_key(|instance| self.end_times.get(instance));
        instances
    }

    /// The benches without a result: first those that were started, in the order of their starts, then those that the
    /// last sequence did not reach.
    pub fn unfinished(&self) -> Vec<UnfinishedBench<'_>> {
        let mut benches: Vec<UnfinishedBench<'_>> = Vec::new();
        for recorded in self.order.iter().filter_map(|key| self.stages.get(key)) {
            let instance = &recorded.start.instance;
            if self.ended.contains_key(instance) {
                continue;
            }
            let index = benches.iter().position(|bench| bench.instance == *instance).unwrap_or_else(|| {
                benches.push(UnfinishedBench { instance: instance.clone(), started: 0, done: 0, failure: None });
                benches.len() - 1
            });
            let bench = &mut benches[index];
            bench.started += 1;
            match recorded.measurement {
                Some(_) => bench.done += 1,
                None => bench.failure = recorded.failure.as_ref().or(bench.failure),
            }
        }
        for instance in self.requested_instances() {
            if !self.ended.contains_key(&instance) && !benches.iter().any(|bench| bench.instance == instance) {
                benches.push(UnfinishedBench { instance, started: 0, done: 0, failure: None });
            }
        }
        benches
    }

    /// The instances that the last sequence was to have; what it added for them depends on parameters of its time.
    fn requested_instances(&self) -> Vec<Instance> {
        // A sequence that cannot be ordered was refused before it started.
        let jobs = schedule(&self.requested, &Parameters::default()).unwrap_or_default();
        jobs.into_iter().filter(|job| job.origin == Origin::Requested).map(|job| job.instance).collect()
    }

    /// When the first stage of an instance's result started, and when the bench ended, for people.
    pub fn times(&self, instance: &Instance) -> Option<(&str, &str)> {
        if let Some(report) = self.merged.get(instance) {
            return Some((&report.start, &report.end));
        }
        let stages = &self.ended.get(instance)?.stages;
        let end = self.end_times.get(instance)?.as_str();
        let started = stages.iter().filter_map(|key| Some(self.stage(key)?.first_started.as_str())).min();
        Some((started.unwrap_or(end), end))
    }

    pub fn merged(&self, instance: &Instance) -> Option<&MergeReport> {
        self.merged.get(instance)
    }

    /// The seed of the first sequence.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }
}
