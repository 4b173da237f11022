//! Tables of variants per case: each variant's comparison with the first, and the reason why measuring stopped.

use wb_model::{CommonUnit, pluralize};
use wb_results::comparison::{AttemptCounts, FinalVerdict};
use wb_results::experiment::{ComparedMetric, StoppingState, VariantCase, VariantExperiment, VariantSummary};

use super::ratio_scale::RatioScale;
use super::{CaseSection, describe_direction, title};
use crate::chart::RatioEstimate;
use crate::compare::figures::tone;
use crate::phrasing::{NO_VALUE, format_p_value};
use crate::text::{Align, Table, TableCell, Tone};

/// Creates a section for each case; `with_scale` adds a column in which the ratios are drawn on one scale.
pub(crate) fn sections(variants: &VariantExperiment, with_scale: bool) -> Vec<CaseSection> {
    let section = |case: &[VariantCase]| {
        let first = case.first()?;
        let of_metric = |of_case: &VariantCase| {
            let metric = variants.metric(of_case);
            // A single metric is named below the tables.
            let head = if case.len() > 1 { describe_metric(&metric) } else { "variant".to_owned() };
            table(of_case, &metric, &head, with_scale)
        };
        Some(CaseSection {
            title: title(&first.case, &variants.criterion),
            about: describe_specs(case),
            tables: case.iter().map(of_metric).collect(),
            remarks: remarks(first, variants.max_blocks),
            end: Some(stop_summary(case, variants)),
        })
    };
    variants.by_case().filter_map(section).collect()
}

/// What each variant changes, if its name does not say it.
fn describe_specs(case: &[VariantCase]) -> Option<String> {
    let spec = |variant: &VariantSummary| {
        let prefix = format!("{}:", variant.name);
        let spec = variant.spec.strip_prefix(&prefix).unwrap_or(&variant.spec);
        (spec != variant.name).then(|| format!("{} is {spec}", variant.name))
    };
    let specs: Vec<String> = case.first()?.variants.iter().filter_map(spec).collect();
    (!specs.is_empty()).then(|| specs.join("; "))
}

pub(crate) fn describe_metric(metric: &ComparedMetric) -> String {
    format!("{}, {}", metric.metric, describe_direction(metric.direction))
}

fn table(case: &VariantCase, metric: &ComparedMetric, head: &str, with_scale: bool) -> Table {
    let ruler = RatioScale::new(case.variants.iter().filter_map(ratio)).filter(|_| with_scale);
    let scale = ruler.as_ref().map(RatioScale::header);
    // Omit the column if no sample was disturbed.
    let with_disturbed = case.variants.iter().any(|variant| variant.disturbed.is_some_and(|count| count > 0));
    let mut heads = vec![(head, Align::Left), ("samples", Align::Right)];
    heads.extend(with_disturbed.then_some(("disturbed", Align::Right)));
    heads.extend(["median", "ratio", "interval", "p"].map(|head| (head, Align::Right)));
    heads.push(("verdict", Align::Left));
    heads.extend(scale.as_deref().map(|scale| (scale, Align::Left)));
    let mut table = Table::new(&heads);
    let unit = common_unit(case, metric);
    for variant in &case.variants {
        let (word, tone) = verdict(variant);
        let disturbed = || variant.disturbed.map_or_else(|| NO_VALUE.to_owned(), |disturbed| disturbed.to_string());
        let mut row: Vec<TableCell> = vec![variant.name.as_str().into(), variant.samples.to_string().into()];
        row.extend(with_disturbed.then(|| disturbed().into()));
        row.extend(format_figures(variant, &unit).map(TableCell::from));
        row.push(TableCell::with_tone(word, tone));
        row.extend(ruler.as_ref().map(|ruler| TableCell::from(ratio_line(ruler, variant))));
        table.row(row);
    }
    table
}

/// Draws a variant's ratio; empty if it was compared but has no ratio.
fn ratio_line(ruler: &RatioScale, variant: &VariantSummary) -> String {
    match (variant.result, ratio(variant)) {
        (Some(_), None) => String::new(),
        (_, ratio) => ruler.line(ratio),
    }
}

/// To the first variant.
pub(crate) fn ratio(variant: &VariantSummary) -> Option<RatioEstimate> {
    let result = variant.result?;
    Some(RatioEstimate { estimate: result.ratio?, interval: result.interval.map(|ci| (ci.low, ci.high)) })
}

pub(crate) fn common_unit<'a>(case: &VariantCase, metric: &'a ComparedMetric) -> CommonUnit<'a> {
    metric.unit.common(case.variants.iter().filter_map(|variant| variant.median))
}

/// Median, ratio, its interval and its p-value.
pub(crate) fn format_figures(variant: &VariantSummary, unit: &CommonUnit<'_>) -> [String; 4] {
    let none = || NO_VALUE.to_owned();
    let ratio = ratio(variant);
    let interval = ratio.and_then(|ratio| ratio.interval).map(|(low, high)| format!("{low:.3} – {high:.3}"));
    [
        variant.median.map_or_else(none, |median| unit.format(median)),
        ratio.map_or_else(none, |ratio| format!("{:.3}", ratio.estimate)),
        interval.unwrap_or_else(none),
        variant.result.and_then(|result| result.adjusted_p_value).map_or_else(none, format_p_value),
    ]
}

/// Of the comparison with the first variant.
pub(crate) fn verdict(variant: &VariantSummary) -> (&'static str, Tone) {
    match variant.result {
        None => ("reference", Tone::Quiet),
        Some(_) if variant.failures_rose => ("fails more", Tone::Bad),
        Some(_) if variant.samples == 0 => ("not measured", Tone::Bad),
        Some(result) => {
            let verdict = FinalVerdict::from(result.verdict);
            (verdict.as_str(), tone(verdict))
        }
    }
}

/// Warnings about duplicate variants, failed attempts, and the reasons why variants have fewer samples than required.
pub(crate) fn remarks(case: &VariantCase, max_blocks: usize) -> Vec<(String, String)> {
    let warnings = case.duplicates.iter().map(|duplicate| ("warning".to_owned(), duplicate.to_string()));
    let short = case.variants.iter().filter_map(|variant| Some((variant.name.clone(), variant.shortfall.clone()?)));
    warnings.chain(failure_remarks(case, max_blocks)).chain(short).collect()
}

/// The failed attempts of each variant beside those of the first, if any failed.
fn failure_remarks(case: &VariantCase, max_blocks: usize) -> Vec<(String, String)> {
    let Some((first, others)) = case.variants.split_first() else { return Vec::new() };
    let compared = others.iter().filter_map(|variant| Some((variant, variant.failure_p_value?)));
    let max_blocks = max_blocks as u64;
    let remark = |(variant, p_value): (&VariantSummary, f64)| {
        (variant.name.clone(), count_failures(variant) + &describe_failures(variant, first, p_value, max_blocks))
    };
    let of_others: Vec<(String, String)> = compared.map(remark).collect();
    // Its failures are beside those of each other variant, unless there is nothing to compare.
    let alone =
        (first.failures.failed > 0 && of_others.is_empty()).then(|| (first.name.clone(), count_failures(first)));
    alone.into_iter().chain(of_others).collect()
}

/// `3 of 29 attempts failed`.
fn count_failures(variant: &VariantSummary) -> String {
    let noun = if variant.failures.attempts == 1 { "attempt" } else { "attempts" };
    format!("{} {noun} failed", failed_of(variant.failures))
}

/// `3 of 29`.
fn failed_of(AttemptCounts { failed, attempts }: AttemptCounts) -> String {
    let failed = if failed == 0 { "none".to_owned() } else { failed.to_string() };
    format!("{failed} of {attempts}")
}

/// Compares a variant's failures with the first variant's, and names what would decide the comparison if nothing does.
fn describe_failures(variant: &VariantSummary, first: &VariantSummary, p_value: f64, max_blocks: u64) -> String {
    let first_failures = variant.failures_of_first.unwrap_or(first.failures);
    let of_first = format!("of {} ({})", first.name, failed_of(first_failures));
    let p_value = format!("p {}", format_p_value(p_value));
    if variant.failures_rose {
        return format!(", significantly more than {of_first}, {p_value}");
    }
    if !variant.failures_undecided {
        let is_equal = variant.failures == first_failures;
        let compared = if is_equal { "as many as" } else { "significantly fewer than" };
        return format!(", {compared} {of_first}, {p_value}");
    }
    let who = match [first, variant].map(|side| side.makes_no_more_attempts) {
        [false, true] => &first.name,
        [true, false] => &variant.name,
        _ => "each",
    };
    let remedy = match variant.failure_attempts_to_decide {
        None => match [first, variant].into_iter().find(|side| side.makes_no_more_attempts) {
            Some(ended) => format!("{} makes no more attempts", ended.name),
            None => "they differ too little for any number of attempts to decide it".to_owned(),
        },
        Some(attempts) => {
            let decide = format!("if as many fail as so far, {attempts} attempts of {who} would decide it");
            // With as many blocks as this run can have, a new one would end like it.
            if u64::from(attempts) > max_blocks {
                format!("{decide}: --samples {attempts} in a new folder")
            } else {
                decide
            }
        }
    };
    let beside = failed_of(first_failures);
    format!(", beside {beside} of {}: undecided which fails more, {p_value}; {remedy}", first.name)
}

/// Describes why measuring stopped, for the metric with the most blocks.
fn stop_summary(case: &[VariantCase], variants: &VariantExperiment) -> String {
    let Some(case) = case.iter().max_by_key(|case| case.blocks) else { return String::new() };
    let blocks = pluralize(case.blocks, "block");
    let uncounted = case.measured_blocks.filter(|measured| *measured > case.blocks);
    match case.state {
        StoppingState::Continue if let Some(measured) = uncounted => {
            format!(
                "not decided: {} of at most {} measured, {} counted",
                pluralize(measured, "block"),
                variants.max_blocks,
                case.blocks
            )
        }
        StoppingState::Decided if case.blocks == 0 => "decided by failed attempts".to_owned(),
        StoppingState::Decided => format!("decided after {blocks}{}", undecided_failures(case)),
        StoppingState::AtLimit => {
            format!("{blocks}, the maximum{}: raise --max-blocks in a new folder", undecided_failures(case))
        }
        StoppingState::Continue => format!("{blocks} of at most {}: not decided", variants.max_blocks),
    }
}

/// What a decision leaves open: which variants fail more or less often than the first.
fn undecided_failures(case: &VariantCase) -> String {
    let undecided = case.variants.iter().filter(|variant| variant.failures_undecided);
    let names: Vec<&str> = undecided.map(|variant| variant.name.as_str()).collect();
    match (&names[..], case.variants.first()) {
        ([], _) | (_, None) => String::new(),
        (names, Some(first)) => format!(", undecided whether {} or {} fails more often", names.join(", "), first.name),
    }
}
