//! Formats numbers, durations and outcomes for every output.

use wb_compare::build::EMULATED;
use wb_model::{
    Aggregate, AttemptPurpose, CellId, CellOutcome, Direction, MetricPrecision, Unit, Validity, WorkerName, pluralize,
    strip_worker, unescape_lossy,
};
use wb_results::{AttemptResult, CellResult, Conclusion, CurveSet, Failures, ImportedSource, MetricResult, Study};
use wb_stats::{Interval, MIN_SAMPLES_FOR_INTERVAL, SamplingRule, Summary};

pub(crate) const NO_VALUE: &str = "–";

/// Formats an uncertainty or a spread, with a resolution of a tenth of a percent.
pub(crate) fn format_percent(value: f64) -> String {
    match value.abs() {
        0.0 => "0 %".to_owned(),
        tiny if tiny < 0.05 => "<0.1 %".to_owned(),
        large if large >= 99.5 => format!("{value:.0} %"),
        _ => format!("{value:.1} %"),
    }
}

/// Formats a p-value with four digits, which are never only zeros.
pub(crate) fn format_p_value(p_value: f64) -> String {
    if p_value < 0.0001 { "< 0.0001".to_owned() } else { format!("{p_value:.4}") }
}

/// Formats a percentage with enough digits to show on which side of the limit it is.
fn format_percent_beside(value: f64, limit: f64) -> String {
    let is_shown = |text: &str| {
        let shown = text.trim_start_matches('<').trim_end_matches(" %").parse::<f64>();
        shown.is_ok_and(|shown| (shown > limit) == (value > limit))
    };
    let texts = (2..=9).map(|places| format!("{value:.places$} %"));
    std::iter::once(format_percent(value))
        .chain(texts)
        .find(|text| is_shown(text))
        .unwrap_or_else(|| format!("{value} %"))
}

/// Halves of an interval that differ by less than this part of the larger one are shown as one figure.
const MAX_ASYMMETRY: f64 = 0.2;

/// Whether the halves of an interval differ by so little that one figure is true of both.
pub(crate) fn is_about_symmetric(below: f64, above: f64) -> bool {
    below == above || (below - above).abs() < MAX_ASYMMETRY * below.max(above)
}

/// Formats the interval of an estimate relative to it: `±2.1 %`, or both ends, `[+0.0, +10 %]`, if its halves differ by
/// a fifth or more. With a limit for half its width, there are enough digits to see on which side of the limit it is.
/// `None` if there is no relative width, since the estimate is 0.
pub(crate) fn format_uncertainty(estimate: f64, interval: &Interval, limit: Option<f64>) -> Option<String> {
    let half = interval.half_width_percent(estimate)?;
    let [below, above] =
        [estimate - interval.low, interval.high - estimate].map(|distance| distance / estimate.abs() * 100.0);
    // Of differences that are not shown, one figure is true of both.
    let is_symmetric =
        half == 0.0 || is_about_symmetric(below, above) || below.max(above) < 0.05 && below.min(above) >= 0.0;
    if is_symmetric {
        let text = limit.map_or_else(|| format_percent(half), |limit| format_percent_beside(half, limit));
        return Some(format!("±{text}"));
    }
    let end = |value: f64| match value.abs() {
        size if size >= 9.95 => format!("{value:+.0}"),
        // No zero is negative.
        size if size < 0.05 => "+0.0".to_owned(),
        _ => format!("{value:+.1}"),
    };
    Some(format!("[{}, {} %]", end(-below), end(above)))
}

/// Formats the interval of the median relative to it; see [`format_uncertainty`].
pub(crate) fn format_half_width(summary: &Summary) -> Option<String> {
    format_uncertainty(summary.median, summary.median_interval.as_ref()?, None)
}

/// Formats the interval of a cell's primary median relative to it, with enough digits to see whether its rule is met.
fn format_cell_half_width(cell: &CellResult, summary: &Summary) -> Option<String> {
    let limit = match cell.rule {
        SamplingRule::Precision { percent, .. } => Some(percent),
        SamplingRule::External { .. } | SamplingRule::Compared { .. } | SamplingRule::MaxStddev { .. } => None,
    };
    format_uncertainty(summary.median, summary.median_interval.as_ref()?, limit)
}

pub(crate) fn format_conclusion(conclusion: &Conclusion) -> String {
    let uncertainty =
        conclusion.interval.as_ref().and_then(|interval| format_uncertainty(conclusion.value, interval, None));
    let uncertainty = uncertainty.map(|uncertainty| format!(" {uncertainty}")).unwrap_or_default();
    format!("{}{uncertainty}", conclusion.unit.quantity(conclusion.value))
}

pub(crate) fn format_interval(summary: &Summary, unit: &Unit) -> Option<String> {
    let interval = summary.median_interval?;
    let common = unit.common([interval.low, interval.high]);
    Some(format!("{} to {}", common.format(interval.low), common.format(interval.high)))
}

/// Formats the standard deviation relative to the mean.
fn format_spread(summary: &Summary) -> Option<String> {
    summary.stddev_percent.map(format_percent)
}

/// The figures of a summary: n, median, half-width of its interval (`no_half_width` without one), minimum, quartiles,
/// maximum, mean and standard deviation.
pub(crate) fn summary_figures(summary: &Summary, unit: &Unit, no_half_width: &str) -> [String; 9] {
    // The deviation is of another size.
    let common = unit.common([summary.min, summary.median, summary.max]);
    let figure = |value: f64| common.format(value);
    [
        summary.n.to_string(),
        figure(summary.median),
        format_half_width(summary).unwrap_or_else(|| no_half_width.to_owned()),
        figure(summary.min),
        figure(summary.q1),
        figure(summary.q3),
        figure(summary.max),
        figure(summary.mean),
        summary.stddev.map_or_else(|| NO_VALUE.to_owned(), figure),
    ]
}

/// `4.25 s`, `3 min 41 s`.
pub(crate) fn format_duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => Unit::new("s").quantity(seconds).to_string(),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats a time since the start of a run: `2:05`, `1:02:05`.
pub(crate) fn format_elapsed(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole % 3600 / 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

pub(crate) fn describe_direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "neither higher nor lower is better",
    }
}

pub(crate) fn outcome_label(outcome: &CellOutcome) -> String {
    outcome.as_str().replace('-', " ")
}

/// The figures of a cell at a glance, by its first primary metric.
pub(crate) fn overview_values(cell: &CellResult) -> [String; 4] {
    metric_values(cell, cell.primary())
}

/// The figures of a primary metric at a glance: median, half-width of its interval, spread and number of samples.
pub(crate) fn metric_values(cell: &CellResult, result: Option<&MetricResult>) -> [String; 4] {
    let summary = result.and_then(|result| result.summary.as_ref());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NO_VALUE.to_owned());
    let median = result.zip(summary).map(|(result, summary)| result.metric.unit.quantity(summary.median).to_string());
    [
        or_none(median),
        summary.and_then(|summary| format_cell_half_width(cell, summary)).unwrap_or_default(),
        or_none(summary.and_then(format_spread)),
        summary.map_or(0, |summary| summary.n).to_string(),
    ]
}

/// Describes why a cell was not measured as requested; `None` if it was.
pub(crate) fn describe_incompleteness(cell: &CellResult) -> Option<String> {
    match &cell.outcome {
        CellOutcome::Measured => None,
        CellOutcome::NotConverged { percent, metrics } => {
            let reached = describe_reached(cell, *percent, metrics);
            Some(format!("{reached} reached, required: {}{}", describe_rule(&cell.rule), end_reason(cell)))
        }
        CellOutcome::Partial { valid, required } => {
            Some(format!("{} of at least {required}{}", pluralize(*valid, "valid sample"), end_reason(cell)))
        }
        CellOutcome::Failed { reason } | CellOutcome::Unsupported { reason } => Some(reason.clone()),
    }
}

/// Describes the dispersion that a cell which did not converge has reached: of its only primary metric, or of each of
/// several that did not converge, with its name.
fn describe_reached(cell: &CellResult, percent: f64, metrics: &[MetricPrecision]) -> String {
    if metrics.is_empty() {
        return describe_dispersion(cell, cell.primary(), percent);
    }
    let reached = metrics.iter().map(|MetricPrecision { metric, percent }| {
        let result = cell.primary_metrics().find(|result| result.key() == *metric);
        format!("{} {}", metric.name, describe_dispersion(cell, result, *percent))
    });
    reached.collect::<Vec<_>>().join(", ")
}

/// Describes the dispersion of a primary metric, by the measure of the cell's rule.
fn describe_dispersion(cell: &CellResult, result: Option<&MetricResult>, percent: f64) -> String {
    let limit = match cell.rule {
        SamplingRule::MaxStddev { max_stddev_percent, .. } => {
            return format!("{} standard deviation", format_percent_beside(percent, max_stddev_percent));
        }
        SamplingRule::Precision { percent, .. } => Some(percent),
        SamplingRule::External { .. } | SamplingRule::Compared { .. } => None,
    };
    let half = limit.map_or_else(|| format_percent(percent), |limit| format_percent_beside(percent, limit));
    let summary = result.and_then(|result| result.summary.as_ref());
    match summary.and_then(|summary| format_cell_half_width(cell, summary)).filter(|ends| !ends.starts_with('±')) {
        Some(ends) => format!("{ends} (half its width: {half})"),
        None => format!("±{half}"),
    }
}

pub(crate) fn describe_outcome(cell: &CellResult) -> String {
    match &cell.outcome {
        CellOutcome::NotConverged { percent, metrics } => {
            let separator = if metrics.is_empty() { "," } else { ":" };
            format!("not converged{separator} {}", describe_reached(cell, *percent, metrics))
        }
        outcome => outcome.to_string(),
    }
}

/// `3 of 9 attempts failed`; `None` if none did.
pub(crate) fn describe_failures(failures: &Failures) -> Option<String> {
    let Failures { failed, attempts, .. } = failures;
    (*failed > 0).then(|| format!("{failed} of {} failed", pluralize(*attempts, "attempt")))
}

/// Describes how many attempts failed, and the most frequent cause; how many had it, if not all.
pub(crate) fn describe_failures_with_cause(failures: &Failures) -> Option<String> {
    let text = describe_failures(failures)?;
    let Some(cause) = &failures.cause else { return Some(text) };
    Some(match failures.cause_count {
        0 if failures.failed > 1 => format!("{text}: most often {cause}"),
        count if (1..failures.failed).contains(&count) => format!("{text}: {cause} in {count} of them"),
        _ => format!("{text}: {cause}"),
    })
}

pub(crate) fn all_failures(study: &Study) -> Failures {
    let sum = |count: fn(&Failures) -> usize| study.cells.iter().map(|cell| count(&cell.failures)).sum();
    Failures {
        failed: sum(|failures| failures.failed),
        attempts: sum(|failures| failures.attempts),
        ..Failures::default()
    }
}

/// Describes why a measured cell has a wider interval than its rule requires, or none.
pub(crate) fn describe_imprecision(cell: &CellResult) -> Option<String> {
    match &cell.outcome {
        CellOutcome::NotConverged { percent, metrics } => {
            let which = match metrics.as_slice() {
                // The table shows what was reached.
                [] => String::new(),
                several => format!("not converged: {}; ", describe_reached(cell, *percent, several)),
            };
            Some(format!("{which}required: {}{}", describe_rule(&cell.rule), end_reason(cell)))
        }
        CellOutcome::Measured => {
            let n = cell.primary()?.summary.as_ref().filter(|summary| summary.median_interval.is_none())?.n;
            Some(format!("{}: a 95 % interval requires {MIN_SAMPLES_FOR_INTERVAL}", pluralize(n, "sample")))
        }
        _ => None,
    }
}

/// Describes why measuring a cell ended before its rule was met.
fn end_reason(cell: &CellResult) -> String {
    cell.ended_by.as_ref().map_or("; not done yet".to_owned(), |reason| format!("; {reason}"))
}

pub(crate) fn describe_rule(rule: &SamplingRule) -> String {
    match *rule {
        SamplingRule::Precision { percent, min_samples, max_samples } => {
            let samples = match max_samples.saturating_sub(min_samples) {
                0 => pluralize(min_samples, "sample"),
                _ => format!("{min_samples} to {max_samples} samples"),
            };
            format!("±{percent} % of the median, {samples}")
        }
        SamplingRule::External { min_samples, max_samples } | SamplingRule::Compared { min_samples, max_samples }
            if min_samples == max_samples =>
        {
            pluralize(max_samples, "sample")
        }
        SamplingRule::External { min_samples, max_samples } | SamplingRule::Compared { min_samples, max_samples } => {
            format!("{min_samples} to {max_samples} samples, as required by the comparison")
        }
        SamplingRule::MaxStddev { samples, max_stddev_percent, max_failures } => {
            format!("{samples} samples within {max_stddev_percent} % standard deviation, {max_failures} tries")
        }
    }
}

pub(crate) fn purpose_label(purpose: AttemptPurpose) -> &'static str {
    match purpose {
        AttemptPurpose::WarmUp => "warm-up",
        AttemptPurpose::Sample => "sample",
    }
}

/// `warm-up 0`, `sample 3`.
pub(crate) fn sample_name(sample: &AttemptResult) -> String {
    format!("{} {}", purpose_label(sample.purpose), sample.sample)
}

/// The unescaped name of a cell for people; cells are selected by the text of [`CellId`].
pub(crate) fn cell_name(cell: &CellId) -> String {
    unescape_lossy(&cell.to_string())
}

/// Describes where a cell was measured, as a suffix of its outcome: the workers, how their figures were combined, and
/// whether they are emulated.
pub(crate) fn describe_workers(cell: &CellResult) -> String {
    let names: Vec<&str> = cell.workers.iter().take(MAX_NAMED_WORKERS).map(WorkerName::as_str).collect();
    let names = match cell.workers.len() {
        count if count > MAX_NAMED_WORKERS => format!("{}, … ({count} workers)", names.join(", ")),
        _ => names.join(" and "),
    };
    let is_measured = match cell.outcome {
        CellOutcome::Measured | CellOutcome::NotConverged { .. } | CellOutcome::Partial { .. } => true,
        CellOutcome::Failed { .. } | CellOutcome::Unsupported { .. } => false,
    };
    let workers = match cell.workers.len() {
        0 => String::new(),
        1 => format!(", on {names}"),
        _ if !is_measured => format!(", on {names}"),
        _ => match cell.primary().map(|primary| primary.metric.aggregate) {
            Some(Aggregate::Sum) => format!(", sum of {names}"),
            Some(Aggregate::Merge | Aggregate::Max) => format!(", the largest of {names}"),
            Some(Aggregate::None) | None => format!(", on {names}"),
        },
    };
    workers + if is_emulated(cell) { ", emulated" } else { "" }
}

const MAX_NAMED_WORKERS: usize = 3;

fn is_emulated(cell: &CellResult) -> bool {
    cell.provenance.iter().any(|(name, value)| strip_worker(name) == EMULATED && value == "true")
}

/// Number of counted samples of a cell that were disturbed.
pub(crate) fn disturbed_count(cell: &CellResult) -> usize {
    let is_disturbed = |sample: &&AttemptResult| sample.counted && !sample.disturbances.is_empty();
    cell.attempts.iter().filter(is_disturbed).count()
}

/// Number of invalid samples of a cell, without warm-ups.
pub(crate) fn invalid_count(cell: &CellResult) -> usize {
    let is_invalid = |sample: &&AttemptResult| {
        sample.purpose == AttemptPurpose::Sample && matches!(sample.validity, Some(Validity::Invalid { .. }))
    };
    let excluded = cell.series.iter().flat_map(|series| &series.excluded);
    let invalid = excluded.filter(|excluded| matches!(excluded.validity, Some(Validity::Invalid { .. })));
    cell.attempts.iter().filter(is_invalid).count() + invalid.count()
}

/// A sentence on samples that are too many to be listed; `None` if all are listed.
pub(crate) fn unlisted_samples(cell: &CellResult) -> Option<String> {
    let count = Some(cell.series_count()).filter(|count| *count > 0)?;
    Some(format!("{count} imported samples are not listed: `weighbridge report RUN --csv PREFIX` writes all of them"))
}

/// Sentences about why a sample is not counted, and what disturbed it.
pub(crate) fn sample_remarks(sample: &AttemptResult) -> Vec<String> {
    let failure = (!sample.outcome.is_completed()).then(|| sample.outcome.to_string());
    failure.into_iter().chain(value_remarks(sample)).collect()
}

/// Sentences about why a sample's values are invalid, and what disturbed them.
pub(crate) fn value_remarks(sample: &AttemptResult) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(invalid @ Validity::Invalid { .. }) = &sample.validity {
        remarks.push(invalid.to_string());
    }
    remarks.extend(sample.disturbances.iter().map(|disturbance| format!("disturbed: {disturbance}")));
    remarks
}

pub(crate) fn x_values(curve: &CurveSet) -> Vec<f64> {
    let mut values: Vec<f64> = curve.lines.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

pub(crate) fn percentile_label(percentile: f64) -> String {
    match percentile {
        0.0 => "min".to_owned(),
        100.0 => "max".to_owned(),
        p => format!("p{p}"),
    }
}

/// The counts of cells by outcome: `3 measured, 1 failed`.
pub(crate) fn outcome_counts(study: &Study) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for cell in &study.cells {
        let word = outcome_label(&cell.outcome);
        match counts.iter_mut().find(|(existing, _)| *existing == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Shorter preparations are not mentioned.
const MIN_PREPARATION_SECONDS: f64 = 1.0;

/// Describes how long a run took, with the shares of its workload, and how long preparing its machines took.
pub(crate) fn describe_duration(study: &Study) -> String {
    let share = describe_workload_share(study).map(|share| format!(", {share}")).unwrap_or_default();
    let text = format!("{}{share}", format_duration(study.run.seconds));
    match study.run.preparation_seconds {
        seconds if seconds < MIN_PREPARATION_SECONDS => text,
        seconds => format!("{text}; {} to prepare machines", format_duration(seconds)),
    }
}

const MAX_NAMED_FILES: usize = 10;

pub(crate) fn describe_imports(study: &Study) -> Vec<String> {
    let line = |source: &ImportedSource| {
        let ImportedSource { file, program, cells, samples, metrics } = source;
        let counts = [(*cells, "cell"), (*samples, "sample"), (*metrics, "metric")].map(|(n, noun)| pluralize(n, noun));
        format!("imported from {file} ({program}): {}", counts.join(", "))
    };
    let (named, others) = study.run.imports.split_at(study.run.imports.len().min(MAX_NAMED_FILES));
    let samples = others.iter().map(|source| source.samples).sum();
    let rest = format!("imported from {}: {}", pluralize(others.len(), "other file"), pluralize(samples, "sample"));
    named.iter().map(line).chain((!others.is_empty()).then_some(rest)).collect()
}

/// Whether a run has nothing but imported samples, so that its own times are of no interest.
pub(crate) fn is_import(study: &Study) -> bool {
    !study.run.imports.is_empty() && study.run.workload_seconds == 0.0
}

/// Describes how much of the wall time the workload ran, and how much of it was measured.
fn describe_workload_share(study: &Study) -> Option<String> {
    let share = |seconds: f64| seconds / study.run.seconds * 100.0;
    let (workload, measured) = (share(study.run.workload_seconds), share(study.run.measured_seconds));
    let text = || format!("{workload:.0} % of it workload, {measured:.0} % measured");
    (workload.is_finite() && workload > 0.0).then(text)
}

/// Joins names in a sentence: `case, metric and profile`.
pub(crate) fn join_names(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncertainty_is_formatted_to_a_tenth_of_a_percent() {
        let texts: Vec<String> = [0.0, 0.01, 0.26, 12.34, 250.0].into_iter().map(format_percent).collect();
        assert_eq!(texts, ["0 %", "<0.1 %", "0.3 %", "12.3 %", "250 %"]);
    }

    fn interval(low: f64, high: f64) -> Interval {
        Interval { low, high, confidence: 0.97 }
    }

    // Half the width of an interval from 100 to 110 around 100 is not ±5 %.
    #[test]
    fn half_of_an_interval_is_shown_only_if_both_halves_are_about_as_wide() {
        let text = |low, high| format_uncertainty(100.0, &interval(low, high), None).unwrap();
        assert_eq!(text(98.0, 102.0), "±2.0 %");
        assert_eq!(text(98.0, 102.4), "±2.2 %");
        assert_eq!(text(98.0, 102.5), "[-2.0, +2.5 %]");
        assert_eq!(text(100.0, 110.0), "[+0.0, +10 %]");
        assert_eq!(text(-50.0, 350.0), "[-150, +250 %]");
        assert_eq!(text(100.0, 100.0), "±0 %");
        assert_eq!(text(99.99, 100.0), "±<0.1 %");
        assert_eq!(format_uncertainty(-100.0, &interval(-110.0, -100.0), None).unwrap(), "[-10, +0.0 %]");
        assert_eq!(format_uncertainty(0.0, &interval(-1.0, 1.0), None), None);
        assert_eq!(format_uncertainty(0.0, &interval(0.0, 0.0), None).unwrap(), "±0 %");
    }

    // ±5.0 % was shown as more than the ±5 % that it had missed.
    #[test]
    fn a_width_beside_its_limit_has_enough_digits_to_show_on_which_side_it_is() {
        let text = |half, limit| format_uncertainty(100.0, &interval(100.0 - half, 100.0 + half), Some(limit)).unwrap();
        assert_eq!(text(5.04, 5.0), "±5.04 %");
        assert_eq!(text(5.004, 5.0), "±5.004 %");
        assert_eq!(text(4.96, 5.0), "±5.0 %");
        assert_eq!(text(5.06, 5.0), "±5.1 %");
        assert_eq!(text(0.25, 0.22), "±0.25 %");
        assert_eq!(text(0.152, 0.16), "±0.15 %");
    }

    #[test]
    fn durations_and_times_are_readable() {
        assert_eq!(format_duration(4.25), "4.25 s");
        assert_eq!(format_duration(221.0), "3 min 41 s");
        assert_eq!(format_duration(7325.0), "2 h 2 min");
        assert_eq!((format_elapsed(125.0), format_elapsed(3725.4)), ("2:05".to_owned(), "1:02:05".to_owned()));
    }
}
