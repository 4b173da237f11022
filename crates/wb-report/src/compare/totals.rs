//! How many came to what.

use wb_compare::{ComparisonResult, SampleCounts};

use super::context;
use super::figures::regressing_methods;
use crate::text::{Style, definition_list};

/// What differs around the builds, and the totals.
pub(super) fn render_totals(outcome: &ComparisonResult, style: Style) -> String {
    let totals = &outcome.totals;
    let counted = [
        ("gains", totals.gains),
        ("minor gains", totals.minor_gains),
        ("equals", totals.equals),
        ("minor losses", totals.minor_losses),
        ("losses", totals.losses),
        ("differing", totals.differing),
        ("inconclusive", totals.inconclusive),
        ("not primary", totals.not_primary),
        ("not primary, failed", totals.not_primary_failed),
        ("groups lost", totals.groups_lost),
        ("groups gained", totals.groups_gained),
    ];
    let always = ["gains", "minor gains", "equals", "minor losses", "losses"];
    let shown = counted.iter().filter(|(name, count)| *count > 0 || always.contains(name));
    let errors = [
        ("missing", totals.missing),
        ("invalid", totals.invalid),
        ("defined otherwise", totals.incomparable),
        ("ended in an error", totals.errors),
    ];
    let kinds: Vec<String> =
        errors.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    let errors = errors.iter().map(|(_, count)| count).sum::<usize>().to_string();
    let errors = if kinds.is_empty() { errors } else { format!("{errors}: {}", kinds.join(", ")) };
    let pairs = shown
        .map(|(name, count)| (*name, count.to_string()))
        .chain([("errors", errors)])
        .chain(disturbed_samples(outcome).map(|counts| ("disturbed samples", counts)))
        .chain(regressing_methods(outcome).map(|methods| ("regression by", methods)));
    context::render_context(&outcome.context, style) + &style.heading("totals") + &definition_list(pairs, style)
}

/// How many samples of the first and the last build were disturbed; none where neither records it.
fn disturbed_samples(outcome: &ComparisonResult) -> Option<String> {
    let [src, .., dst] = &outcome.builds[..] else { return None };
    let counts = [src, dst].into_iter().filter_map(|build| {
        let SampleCounts { counted, disturbed } = build.samples.filter(|samples| samples.counted > 0)?;
        Some(format!("{disturbed} of {counted} in {}", build.name))
    });
    Some(counts.collect::<Vec<_>>().join(", ")).filter(|counts| !counts.is_empty())
}
