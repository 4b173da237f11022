//! The thresholds, tolerances and models that decide a comparison, in words.

use wb_compare::build::{Build, Builds};
use wb_compare::run_perf::tolerance;
use wb_compare::statistical::Threshold;
use wb_compare::statistical::threshold::DEFAULT_PERCENT;
use wb_report::compare::format_threshold;

use crate::cli::compare::CompareArgs;

/// The tolerated difference of a mean, in percent.
pub(super) fn tolerance(args: &CompareArgs) -> f64 {
    args.tolerance.unwrap_or(tolerance::Options::default().tolerance)
}

pub(super) fn describe(args: &CompareArgs, builds: &Builds) -> Vec<String> {
    let threshold = describe_threshold(args.threshold.unwrap_or_default(), builds);
    // A noise model replaces the assumption where it knows a check, which is said beside the check.
    let runs = match args.by {
        Some(_) => Some("no noise between runs, as both sides are of one run".to_owned()),
        None => {
            args.model.is_empty().then(|| format!("runs of one build are assumed to differ by {} %", args.run_noise))
        }
    };
    let confidence = Some(format!("intervals hold with {} % confidence or more", wb_stats::CONFIDENCE * 100.0));
    let tolerance = format!("tolerances of {} % and {} points", tolerance(args), args.stddev_tolerance);
    let models = args.model.iter().map(|file| format!("by the model {}", file.display()));
    [Some(threshold), runs, confidence, Some(tolerance)].into_iter().flatten().chain(models).collect()
}

fn describe_threshold(threshold: Threshold, builds: &Builds) -> String {
    let within = |percent: f64| format!("differences within {} do not matter", format_threshold(percent));
    match threshold {
        Threshold::FromNoise => "each metric's threshold is from its noise model".to_owned(),
        Threshold::Percent(percent) => within(percent),
        Threshold::FromPlans => {
            let has_planned = |build: &Build| builds.rows().any(|row| build.threshold(row).is_some());
            let others = if builds.list().iter().any(has_planned) { ", or within the plan's thresholds" } else { "" };
            within(DEFAULT_PERCENT) + others
        }
    }
}
