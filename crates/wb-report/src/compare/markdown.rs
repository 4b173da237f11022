//! Comparisons as a comment on a pull request.

use wb_compare::Outcome;
use wb_compare::outcome::{Checked, Decided};

use super::figures::{difference, in_unit, readable, sides, why_beside};
use super::totals::surrounding_differences;

/// What a comment on GitHub may have, in characters, less some room.
const LENGTH: usize = 60_000;

/// The totals in a line, a table of what is not as it was, and what else differs; cut before it gets too long for a
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
        ("missing or invalid", "missing or invalid", totals.missing + totals.invalid + totals.incomparable),
    ];
    let told: Vec<String> = counted
        .iter()
        .filter(|(.., count)| *count > 0)
        .map(|(one, many, count)| format!("**{count} {}**", if *count == 1 { one } else { many }))
        .collect();
    let told = if told.is_empty() { "**no difference that counts**".to_owned() } else { told.join(", ") };
    text += &format!("{told}; {} primary checks compared.\n\n", totals.compared());
    let rows: Vec<&Checked> = outcome.checks.iter().filter(|check| check.primary && is_told(check.decided)).collect();
    if !rows.is_empty() {
        text += "| | check | first | last | difference | why |\n|---|---|--:|--:|--:|---|\n";
    }
    let mut left = rows.len();
    for check in rows {
        let [src, dst] = sides(check);
        let row = format!(
            "| {} | `{}` | {} | {} | {} | {} |\n",
            check.decided.as_str(),
            escaped(&readable(&check.id)),
            src,
            dst,
            in_unit(check.statistic, difference(check)),
            escaped(&why_beside(check)),
        );
        if text.len() + row.len() > LENGTH {
            break;
        }
        text += &row;
        left -= 1;
    }
    if left > 0 {
        text += &format!("\n… and {left} more.\n");
    }
    if let [src, .., dst] = &outcome.builds[..] {
        let differing = surrounding_differences(src, dst);
        if !differing.is_empty() && text.len() < LENGTH {
            text += "\n<details><summary>what else differs</summary>\n\n";
            for (name, src, dst) in differing {
                let line = format!("- {}: `{}` → `{}`\n", escaped(&name), escaped(&src), escaped(&dst));
                if text.len() + line.len() > LENGTH {
                    text += "- …\n";
                    break;
                }
                text += &line;
            }
            text += "\n</details>\n";
        }
    }
    text
}

fn is_told(decided: Decided) -> bool {
    !matches!(decided, Decided::Equal | Decided::MinorGain | Decided::MinorLoss)
}

/// What would end a cell or a code span.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('`', "'").replace('\n', " ").replace('<', "&lt;")
}
