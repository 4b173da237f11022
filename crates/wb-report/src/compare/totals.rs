//! Renders the totals of a comparison.

use wb_model::pluralize;
use wb_results::comparison::{CheckResult, ComparisonResult, SampleCounts, Statistic, Totals};

use super::context;
use super::failures::has_undecisive_failures;
use super::figures::regressing_methods;
use super::wording::Wording;
use crate::text::{Style, definition_list};

pub(super) type NamedTotal = (&'static str, fn(&Totals) -> usize);

pub(super) const VERDICTS: [NamedTotal; 9] = [
    ("improved", |totals| totals.better),
    ("minor-gain", |totals| totals.minor_gain),
    ("equivalent", |totals| totals.equivalent),
    ("minor-loss", |totals| totals.minor_loss),
    ("regressed", |totals| totals.worse),
    ("differs", |totals| totals.differs),
    ("unconfirmed", |totals| totals.unconfirmed),
    ("inconclusive", |totals| totals.inconclusive),
    ("new", |totals| totals.new),
];

/// Other checks, and groups.
pub(super) const OTHERS: [NamedTotal; 4] = [
    ("not primary", |totals| totals.not_primary),
    ("not primary, failed", |totals| totals.not_primary_failed),
    ("groups regressed", |totals| totals.groups_regressed),
    ("groups improved", |totals| totals.groups_improved),
];

/// Number of verdicts that are shown even if they do not occur.
pub(super) const ALWAYS_SHOWN: usize = 5;

/// The counts of the primary checks of each verdict that occurs, with its name.
pub(super) fn count_verdicts(totals: &Totals, wording: Wording) -> Vec<(usize, &'static str)> {
    let counted = [
        (totals.worse, "regressed", "regressed"),
        (totals.groups_regressed, "group regressed", "groups regressed"),
        (totals.better, "improved", "improved"),
        (totals.unconfirmed, "unconfirmed", "unconfirmed"),
        (totals.differs, "differs", "differ"),
        (totals.inconclusive, "inconclusive", "inconclusive"),
        (totals.new, "new", "new"),
        (totals.missing, "missing", "missing"),
        (totals.partly_missing, "missing in some runs", "missing in some runs"),
        (totals.invalid, "invalid", "invalid"),
        (totals.incomparable, "incomparable", "incomparable"),
        (totals.errors, "error", "errors"),
    ];
    let occurring = counted.into_iter().filter(|(count, ..)| *count > 0);
    occurring.map(|(count, one, several)| (count, wording.total(if count == 1 { one } else { several }))).collect()
}

pub(super) fn describe_no_difference(outcome: &ComparisonResult) -> String {
    if outcome.checks.iter().any(has_undecisive_failures) {
        "no relevant difference but in failed attempts".to_owned()
    } else {
        "no relevant difference".to_owned()
    }
}

/// `10 checks and 4 standard deviations compared`: the primary checks, as counted by the first sentence.
pub(super) fn describe_compared(outcome: &ComparisonResult) -> String {
    let is_mean = |check: &&CheckResult| check.primary && check.statistic == Statistic::Mean;
    let means = outcome.checks.iter().filter(is_mean).filter(|check| check.final_verdict.is_compared()).count();
    let checks = pluralize(means, "check");
    match outcome.totals.standard_deviations.compared {
        0 => format!("{checks} compared"),
        1 => format!("{checks} and one standard deviation compared"),
        count => format!("{checks} and {count} standard deviations compared"),
    }
}

pub(super) fn render_totals(outcome: &ComparisonResult, style: Style) -> String {
    let totals = &outcome.totals;
    let wording = Wording::new(outcome);
    let counted = VERDICTS.into_iter().chain(OTHERS);
    let counted = counted.map(|(name, count)| (wording.total(name), count(totals))).enumerate();
    let shown = counted.filter(|(index, (_, count))| *index < ALWAYS_SHOWN || *count > 0);
    let errors = [
        ("missing", totals.missing),
        ("missing in some runs", totals.partly_missing),
        ("invalid", totals.invalid),
        ("incomparable", totals.incomparable),
        ("ended in an error", totals.errors),
    ];
    let kinds: Vec<String> =
        errors.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    let errors = errors.iter().map(|(_, count)| count).sum::<usize>().to_string();
    let errors = if kinds.is_empty() { errors } else { format!("{errors}: {}", kinds.join(", ")) };
    let deviations = totals.standard_deviations;
    let deviations = (deviations != Default::default()).then(|| {
        let kinds = [
            (deviations.worse, "regressed"),
            (deviations.better, "improved"),
            (deviations.not_compared, "not compared"),
        ];
        let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(count, name)| format!("{count} {}", wording.total(name))).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
        format!("{} of these{kinds}", deviations.compared + deviations.not_compared)
    });
    let pairs = shown
        .map(|(_, (name, count))| (name, count.to_string()))
        .chain(deviations.map(|counts| ("standard deviations", counts)))
        .chain([("errors", errors)])
        .chain(disturbed_samples(outcome).map(|counts| ("disturbed samples", counts)))
        .chain(regressing_methods(outcome).map(|methods| (wording.failed_by(outcome), methods)));
    context::render_context(&outcome.context, style) + &style.heading("totals") + &definition_list(pairs, style)
}

/// The counts of disturbed samples in the first and the last build; `None` if neither records them.
pub(super) fn disturbed_samples(outcome: &ComparisonResult) -> Option<String> {
    let [reference, .., judged] = &outcome.builds[..] else { return None };
    let counts = [reference, judged].into_iter().filter_map(|build| {
        let SampleCounts { counted, disturbed } = build.samples.filter(|samples| samples.counted > 0)?;
        Some(format!("{disturbed} of {counted} in {}", build.name))
    });
    Some(counts.collect::<Vec<_>>().join(", ")).filter(|counts| !counts.is_empty())
}

pub(super) fn has_disturbed_samples(outcome: &ComparisonResult) -> bool {
    let [reference, .., judged] = &outcome.builds[..] else { return false };
    [reference, judged].into_iter().filter_map(|build| build.samples).any(|samples| samples.disturbed > 0)
}
