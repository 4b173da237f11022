//! Comparisons as a comment on a pull request.

use wb_compare::Outcome;
use wb_compare::outcome::{Checked, Decided};

use super::context::{Row, Section, sections};
use super::figures::{difference, failed, in_unit, readable, regressed_by, sides, why_beside};

/// What a comment on GitHub may have, in characters, less some room.
const LENGTH: usize = 60_000;

/// The totals in a line, a table of errors and of what is not as it was, and what else differs; cut before it gets too long for a
/// comment.
pub fn markdown(outcome: &Outcome) -> String {
    let totals = &outcome.totals;
    let names: Vec<String> = outcome.builds.iter().map(|build| format!("`{}`", escaped(&build.name))).collect();
    let mut text = format!("### {}\n\n", names.join(" → "));
    let counted = [
        ("loss", "losses", totals.losses),
        ("gain", "gains", totals.gains),
        ("differs", "differ", totals.differing),
        ("inconclusive", "inconclusive", totals.inconclusive),
        ("error", "errors", totals.errors),
        ("missing or invalid", "missing or invalid", totals.missing + totals.invalid + totals.incomparable),
    ];
    let told: Vec<String> = counted
        .iter()
        .filter(|(.., count)| *count > 0)
        .map(|(one, many, count)| format!("**{count} {}**", if *count == 1 { one } else { many }))
        .collect();
    let told = if told.is_empty() { "**no difference that counts**".to_owned() } else { told.join(", ") };
    let by = regressed_by(outcome).map_or(String::new(), |methods| format!("; regression by {methods}"));
    text += &format!("{told}; {} primary checks compared{by}.\n\n", totals.compared());
    let rows: Vec<&Checked> = outcome.checks.iter().filter(|check| check.primary && is_told(check.decided)).collect();
    let errors = outcome.errors().map(|(build, place, text)| {
        format!("| error | `{}` | | | | {} |\n", escaped(place), escaped(&failed(build, text)))
    });
    let checks = rows.into_iter().map(|check| {
        let [src, dst] = sides(check);
        format!(
            "| {} | `{}` | {} | {} | {} | {} |\n",
            check.decided.as_str(),
            escaped(&readable(&check.id)),
            src,
            dst,
            in_unit(check.statistic, difference(check)),
            escaped(&why_beside(check)),
        )
    });
    let rows: Vec<String> = errors.chain(checks).collect();
    if !rows.is_empty() {
        text += "| | check | first | last | difference | why |\n|---|---|--:|--:|--:|---|\n";
    }
    let mut left = rows.len();
    for row in rows {
        if text.len() + row.len() > LENGTH {
            break;
        }
        text += &row;
        left -= 1;
    }
    if left > 0 {
        text += &format!("\n… and {left} more.\n");
    }
    text += &else_differing(outcome, LENGTH.saturating_sub(text.len()));
    text
}

/// What else differs, in no more than this many bytes.
fn else_differing(outcome: &Outcome, length: usize) -> String {
    const HEAD: &str = "\n<details><summary>what else differs</summary>\n\n";
    const TAIL: &str = "\n</details>\n";
    let row = |Row { name, src, dst, cells }: &Row| {
        let name = if name.is_empty() { String::new() } else { format!("{}: ", escaped(name)) };
        format!("  - {name}`{}` → `{}`{cells}\n", escaped(src), escaped(dst))
    };
    let lines = |Section { title, rows }: &Section| {
        [format!("- {}\n", escaped(title))].into_iter().chain(rows.iter().map(row)).collect::<Vec<String>>()
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

fn is_told(decided: Decided) -> bool {
    !matches!(decided, Decided::Equal | Decided::MinorGain | Decided::MinorLoss)
}

/// What would end a cell or a code span.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('`', "'").replace('\n', " ").replace('<', "&lt;")
}
