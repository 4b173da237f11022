//! Writes comparisons as Markdown for a comment on a pull request.

use wb_results::comparison::{CheckResult, ComparisonResult};

use crate::markdown::{code, escape};

use super::context::{ContextSection, DifferenceRow, sections};
use super::figures::{
    describe_difference, describe_error, explain_briefly, explain_group, format_percent, readable_id,
    regressing_methods, secondary_note, side_figures, unmatched_note,
};
use super::findings::{BuildFindings, group_findings};
use super::headline::headline_with;
use super::lines::{is_listed, revealing_groups};
use super::threshold_range::ThresholdRange;
use super::totals::{count_verdicts, describe_compared, describe_no_difference};
use super::wording::Wording;

/// Maximum length in characters: GitHub's limit for a comment with some reserve.
const MAX_LENGTH: usize = 60_000;

/// Writes the totals in a line, a table of errors, changed checks and groups, the findings, and other differences;
/// truncated to the length of a comment.
pub fn markdown(outcome: &ComparisonResult) -> String {
    let names: Vec<String> = outcome.builds.iter().map(|build| code(&build.name)).collect();
    let mut text = format!("### {}\n\n", names.join(" → "));
    text += &format!("{}.\n\n", headline_with(outcome, code, escape));
    let wording = Wording::new(outcome);
    let counted = count_verdicts(&outcome.totals, wording).into_iter();
    let summary: Vec<String> = counted.map(|(count, name)| format!("**{count} {name}**")).collect();
    let summary =
        if summary.is_empty() { format!("**{}**", describe_no_difference(outcome)) } else { summary.join(", ") };
    let by = regressing_methods(outcome)
        .map_or(String::new(), |methods| format!("; {} {methods}", wording.failed_by(outcome)));
    let within = ThresholdRange::of_primary(outcome).map_or_else(String::new, |it| format!("; thresholds {it}"));
    text += &format!("{summary}; {}{within}{by}.\n\n", describe_compared(outcome));
    let rows: Vec<&CheckResult> = outcome.checks.iter().filter(|check| is_listed(check)).collect();
    let errors = outcome.errors().map(|(build, location, text)| {
        format!("| error | {} | | | | {} |\n", code(location), escape(&describe_error(&build, text)))
    });
    let checks = rows.into_iter().map(|check| {
        let [reference, judged] = side_figures(check);
        format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            check.final_verdict.as_str(),
            code(&readable_id(&check.id)),
            reference,
            judged,
            describe_difference(check),
            escape(&(sides(check) + &explain_briefly(check))),
        )
    });
    let groups = revealing_groups(outcome).into_iter().map(|group| {
        let id = code(&readable_id(&group.id));
        let reason = explain_group(group);
        let average = format_percent(group.improvement.or(Some(group.score)));
        format!("| group {} | {id} | | | {average} | {reason} |\n", group.final_verdict.as_str())
    });
    let rows: Vec<String> = errors.chain(checks).chain(groups).collect();
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
    for note in unmatched_note(outcome).into_iter().chain(secondary_note(outcome)) {
        text += &format!("\n{}.\n", escape(&note));
    }
    text += &finding_list(outcome, MAX_LENGTH.saturating_sub(text.len()));
    text += &context_details(outcome, MAX_LENGTH.saturating_sub(text.len()));
    text
}

fn sides(check: &CheckResult) -> String {
    check.sides.as_ref().map(|[reference, judged]| format!("{reference} → {judged}; ")).unwrap_or_default()
}

/// The findings about the samples of both builds, one line for each kind, in at most `length` bytes.
fn finding_list(outcome: &ComparisonResult, length: usize) -> String {
    let findings = group_findings(outcome, code).into_iter();
    let line = |BuildFindings { builds, cells, text }| format!("- {builds}, {}: {}\n", escape(&cells), escape(&text));
    let head = "\n**findings**\n\n";
    truncate_lines(head, findings.map(line), "", length)
}

/// Other differences, in at most `length` bytes.
fn context_details(outcome: &ComparisonResult, length: usize) -> String {
    let row = |DifferenceRow { name, before, after, cells }: &DifferenceRow| {
        let name = if name.is_empty() { String::new() } else { format!("{}: ", escape(name)) };
        format!("  - {name}{} → {}{cells}\n", code(before), code(after))
    };
    let lines = |ContextSection { title, rows }: &ContextSection| {
        [format!("- {}\n", escape(title))].into_iter().chain(rows.iter().map(row)).collect::<Vec<String>>()
    };
    let sections = sections(&outcome.context);
    let head = "\n<details><summary>other differences</summary>\n\n";
    truncate_lines(head, sections.iter().flat_map(lines), "\n</details>\n", length)
}

/// Joins as many lines as fit between the head and the tail; empty without lines.
fn truncate_lines(head: &str, lines: impl Iterator<Item = String>, tail: &str, length: usize) -> String {
    let mut text = head.to_owned();
    for line in lines {
        if text.len() + line.len() + tail.len() > length {
            text += "- …\n";
            break;
        }
        text += &line;
    }
    if text.len() == head.len() { String::new() } else { text + tail }
}
