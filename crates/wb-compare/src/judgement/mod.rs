//! Builds judged by both methods, and what a reader of the verdicts has to know.
//!
//! Start with [`Judgement::new`].

mod nothing_comparable;
mod primary_metrics;
mod thresholds;

use wb_results::comparison::{
    CheckResult, ComparisonMethod, ComparisonResult, FinalVerdict, SampleCounts, StatisticalSummary,
};
use wb_stats::RunPrior;

pub use nothing_comparable::NothingComparable;

use crate::build::{Builds, EMULATED};
use crate::comparison::{self, BuildHistory, FailOn};
use crate::model::Models;
use crate::run_perf::tolerance;
use crate::statistical;

#[derive(Debug, Clone)]
pub struct JudgementOptions {
    pub tolerance: tolerance::Options,
    pub statistics: statistical::Options,
    /// `None`: see [`ComparisonResult::method`].
    pub method: Option<ComparisonMethod>,
    pub fail_on: FailOn,
    /// Whether the builds between the first and the last are judged by statistics too.
    pub has_history: bool,
}

/// Builds judged by both methods.
#[derive(Debug)]
pub struct Judgement<'a> {
    pub result: ComparisonResult,
    pub by_tolerance: tolerance::Comparison<'a>,
    /// Of every build after the first.
    by_statistics: Vec<Option<statistical::Comparison>>,
    builds: &'a Builds,
    options: &'a JudgementOptions,
}

impl<'a> Judgement<'a> {
    /// Judges the last build, and with the history those before it, against the first.
    pub fn new(builds: &'a Builds, models: &Models, options: &'a JudgementOptions) -> Self {
        let by_tolerance = tolerance::compare(builds, &models.tolerance, &options.tolerance);
        let last = builds.list().len().saturating_sub(1);
        let first_judged = if options.has_history { 1 } else { last };
        let against = |build| {
            (build >= first_judged)
                .then(|| statistical::against(builds, build, &models.noise, &options.statistics))
                .flatten()
        };
        let by_statistics: Vec<_> = (1..=last).map(against).collect();
        let of_last = by_statistics.last().and_then(Option::as_ref);
        let result = comparison::summarize(builds, &by_tolerance, of_last, options.method, options.fail_on);
        Self { result, by_tolerance, by_statistics, builds, options }
    }

    pub fn history(&self) -> BuildHistory<'_> {
        BuildHistory::new(self.builds, &self.by_tolerance, &self.by_statistics, self.options.method)
    }

    /// A warning if single runs with disturbed samples are compared as if runs did not differ.
    pub fn disturbed_single_run_warning(&self) -> Option<String> {
        let rests_on_samples = |check: &CheckResult| {
            let single_runs = |statistics: &StatisticalSummary| !statistics.counts.has_several_runs();
            check.decided_by == ComparisonMethod::Statistical
                && check.reason.is_none()
                && check.statistics.as_ref().is_some_and(single_runs)
        };
        let [reference, .., judged] = &self.result.builds[..] else { return None };
        let counts = [reference, judged].into_iter().filter_map(|build| Some((&build.name, build.samples?)));
        let disturbed = counts.filter(|(_, samples)| samples.disturbed > 0);
        let disturbed: Vec<String> = disturbed
            .map(|(name, SampleCounts { counted, disturbed })| format!("{disturbed} of {counted} in `{name}`"))
            .collect();
        let is_noise_excluded = self.result.within_run.is_none() && self.options.statistics.run_noise == RunPrior::NONE;
        let applies = is_noise_excluded && self.result.checks.iter().any(rests_on_samples);
        (applies && !disturbed.is_empty())
            .then(|| format!("--run-noise 0 lets disturbed samples decide: {}", disturbed.join(", ")))
    }

    /// What the plans of the compared runs disagree about: thresholds, and which metrics are primary.
    pub fn differences_of_plans(&self) -> Vec<String> {
        let thresholds = thresholds::differences(self.options.statistics.threshold, self.builds);
        thresholds.into_iter().chain(primary_metrics::differences(self.builds)).collect()
    }

    pub fn is_any_decided_by_tolerance(&self) -> bool {
        self.result.checks.iter().any(|check| check.decided_by == ComparisonMethod::Tolerance)
    }

    /// Whether a check was refused because one side was measured on an emulated machine.
    pub fn is_refused_for_emulation(&self) -> bool {
        let refused = self.result.checks.iter().filter(|check| check.final_verdict == FinalVerdict::Incomparable);
        refused.flat_map(|check| &check.differences).any(|difference| difference.name == EMULATED)
    }
}
