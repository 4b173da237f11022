//! Writes comparisons as Markdown for a comment on a pull request.

use wb_compare::ComparisonResult;
use wb_compare::comparison::CheckResult;

use crate::markdown::{code, escape};

use super::context::{ContextSection, DifferenceRow, sections};
use super::figures::{
    describe_error, difference, explain_briefly, format_difference, readable_id, regressing_methods, side_figures,
    unmatched_note,
};
use super::headline::headline_with;
use super::wording::{Wording, verdict_word};

/// Maximum length in characters: GitHub's limit for a comment with some reserve.
const MAX_LENGTH: usize = 60_000;

/// Writes the totals in a line, a table of errors and changed checks, and other differences; truncated to the length of
/// a comment.
pub fn markdown(outcome: &ComparisonResult) -> String {
    let totals = &outcome.totals;
    let names: Vec<String> = outcome.builds.iter().map(|build| code(&build.name)).collect();
    let mut text = format!("### {}\n\n", names.join(" → "));
    text += &format!("{}.\n\n", headline_with(outcome, code, escape));
    let counted = [
        ("loss", "losses", totals.losses),
        ("gain", "gains", totals.gains),
        ("unconfirmed", "unconfirmed", totals.unconfirmed),
        ("differs", "differ", totals.differing),
        ("inconclusive", "inconclusive", totals.inconclusive),
        ("error", "errors", totals.errors),
        ("missing or invalid", "missing or invalid", totals.missing + totals.invalid + totals.incomparable),
    ];
    let wording = Wording::of(outcome);
    let summary: Vec<String> = counted
        .iter()
        .filter(|(.., count)| *count > 0)
        .map(|(singular, plural, count)| {
            format!("**{count} {}**", wording.total(if *count == 1 { singular } else { plural }))
        })
        .collect();
    let summary = if summary.is_empty() { "**no relevant difference**".to_owned() } else { summary.join(", ") };
    let by =
        regressing_methods(outcome).map_or(String::new(), |methods| format!("; {} {methods}", wording.failed_by()));
    text += &format!("{summary}; {} primary checks compared{by}.\n\n", totals.compared());
    let rows: Vec<&CheckResult> =
        outcome.checks.iter().filter(|check| check.primary && check.final_verdict.is_notable()).collect();
    let errors = outcome.errors().map(|(build, location, text)| {
        format!("| error | {} | | | | {} |\n", code(location), escape(&describe_error(build, text)))
    });
    let checks = rows.into_iter().map(|check| {
        let [reference, judged] = side_figures(check);
        format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            verdict_word(check),
            code(&readable_id(&check.id)),
            reference,
            judged,
            format_difference(check.statistic, difference(check)),
            escape(&(sides(check) + &explain_briefly(check))),
        )
    });
    let rows: Vec<String> = errors.chain(checks).collect();
    if !rows.is_empty() {
        text += "| | check | first | last | difference | why |\n|---|---|--:|--:|--:|---|\n";
    }
    let mut remaining = rows.len();
    for row in rows {
        if text.len() + row.len() > MAX_LENGTH {
            break;
        }
        text += &row;
        remaining -= 1;
    }
    if remaining > 0 {
        text += &format!("\n… and {remaining} more.\n");
    }
    if let Some(note) = unmatched_note(outcome) {
        text += &format!("\n{}.\n", escape(&note));
    }
    text += &context_details(outcome, MAX_LENGTH.saturating_sub(text.len()));
    text
}

/// The names of both sides of a check within one run.
fn sides(check: &CheckResult) -> String {
    check.sides.as_ref().map(|[reference, judged]| format!("{reference} → {judged}; ")).unwrap_or_default()
}

/// Other differences, in at most this many bytes.
fn context_details(outcome: &ComparisonResult, length: usize) -> String {
    const HEAD: &str = "\n<details><summary>other differences</summary>\n\n";
    const TAIL: &str = "\n</details>\n";
    let row = |DifferenceRow { name, before, after, cells }: &DifferenceRow| {
        let name = if name.is_empty() { String::new() } else { format!("{}: ", escape(name)) };
        format!("  - {name}{} → {}{cells}\n", code(before), code(after))
    };
    let lines = |ContextSection { title, rows }: &ContextSection| {
        [format!("- {}\n", escape(title))].into_iter().chain(rows.iter().map(row)).collect::<Vec<String>>()
    };
    let mut text = HEAD.to_owned();
    for line in sections(&outcome.context).iter().flat_map(lines) {
        if text.len() + line.len() + TAIL.len() > length {
            text += "- …\n";
            break;
        }
        text += &line;
    }
    if text.len() == HEAD.len() { String::new() } else { text + TAIL }
}
