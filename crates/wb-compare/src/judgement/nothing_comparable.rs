//! Why nothing of two builds, or of parts of a run, can be compared: which cells, what prevents it, and the way out.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::pluralize;
use wb_results::comparison::{CheckId, CheckResult, ComparisonResult, FinalVerdict, ParamDifference};

use crate::build::{DEFINING_PARAMS, DEFINITION_KEY, EMULATED};

/// A comparison in which no primary check has a value on both sides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing to compare: {what}")]
pub struct NothingComparable {
    what: String,
    help: String,
}

/// Cells named in the message.
const MAX_NAMED: usize = 3;

/// What prevents the comparison of a cell. If there are several reasons, the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    /// Both sides measured it with different definitions.
    Definitions,
    /// A side has no valid value.
    Invalid,
    OnlyReference,
    OnlyJudged,
    NoValue,
}

impl NothingComparable {
    /// Says which cells are not compared, and why, if nothing of the result is.
    pub fn new(outcome: &ComparisonResult) -> Self {
        let mut cells: BTreeMap<String, (Obstacle, &CheckResult)> = BTreeMap::new();
        for check in outcome.checks.iter().filter(|check| check.primary) {
            let found = (obstacle(check), check);
            let known = cells.entry(cell_name(check)).or_insert(found);
            if found.0 < known.0 {
                *known = found;
            }
        }
        let mut by_obstacle: BTreeMap<Obstacle, Vec<(&str, &CheckResult)>> = BTreeMap::new();
        for (cell, (obstacle, check)) in &cells {
            by_obstacle.entry(*obstacle).or_default().push((cell, check));
        }
        let parts: Vec<String> = by_obstacle.iter().map(|(obstacle, cells)| describe(*obstacle, cells)).collect();
        let what = if parts.is_empty() {
            "no primary metric, which decides, is in any build".to_owned()
        } else {
            parts.join("; ")
        };
        let help = match by_obstacle.get(&Obstacle::Definitions) {
            Some(cells) => way_out_of_definitions(cells),
            None if by_obstacle.is_empty() => {
                "--metric lets others decide; `weighbridge analyze` shows what each build has".to_owned()
            }
            None if outcome.within_run.is_some() => "`weighbridge summary` shows what the run has".to_owned(),
            None => "`weighbridge analyze` shows what each build has; --map pairs profiles".to_owned(),
        };
        Self { what, help }
    }

    pub fn help(&self) -> &str {
        &self.help
    }
}

fn obstacle(check: &CheckResult) -> Obstacle {
    match (check.final_verdict, check.before, check.after) {
        (FinalVerdict::Incomparable, ..) => Obstacle::Definitions,
        (FinalVerdict::Invalid, ..) => Obstacle::Invalid,
        (_, Some(_), None) => Obstacle::OnlyReference,
        (_, None, Some(_)) => Obstacle::OnlyJudged,
        _ => Obstacle::NoValue,
    }
}

fn cell_name(check: &CheckResult) -> String {
    let id = check.id.to_string();
    match CheckId::parse(&id) {
        Ok(CheckId { profile, test, serial, case, .. }) => format!("{profile}/{test}/{serial}:{case}"),
        Err(_) => id,
    }
}

fn describe(obstacle: Obstacle, cells: &[(&str, &CheckResult)]) -> String {
    let head = match obstacle {
        Obstacle::Definitions => "with different definitions",
        Obstacle::Invalid => "without a valid value",
        Obstacle::OnlyReference => "in the reference alone",
        Obstacle::OnlyJudged => "in the judged build alone",
        Obstacle::NoValue => "without a value",
    };
    let named = cells.iter().take(MAX_NAMED).map(|(cell, check)| match obstacle {
        Obstacle::Definitions => format!("`{cell}` ({})", describe_differences(&check.differences)),
        _ => format!("`{cell}`"),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let others = cells.len().saturating_sub(MAX_NAMED);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!("{} {head}: {named}{others}", pluralize(cells.len(), "cell"))
}

/// The parameters that a user has set; without any, another version of the test.
fn parameters(differences: &[ParamDifference]) -> impl Iterator<Item = &ParamDifference> {
    differences.iter().filter(|difference| !DEFINING_PARAMS.contains(&difference.name.as_str()))
}

fn describe_differences(differences: &[ParamDifference]) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let describe = |it: &ParamDifference| format!("{} {} → {}", it.name, side(&it.before), side(&it.after));
    let is_shown = |it: &&ParamDifference| it.name != DEFINITION_KEY;
    let shown: Vec<String> = differences.iter().filter(is_shown).map(describe).collect();
    if shown.is_empty() { "another version of the test".to_owned() } else { shown.join(", ") }
}

fn way_out_of_definitions(cells: &[(&str, &CheckResult)]) -> String {
    let differences = || cells.iter().flat_map(|(_, check)| &check.differences);
    if differences().any(|difference| difference.name == EMULATED) {
        return "--allow-emulated compares emulated machines with hardware".to_owned();
    }
    let names: BTreeSet<&str> =
        cells.iter().flat_map(|(_, check)| parameters(&check.differences)).map(|it| it.name.as_str()).collect();
    let reasons = cells.iter().filter_map(|(_, check)| check.reason.clone()).collect::<BTreeSet<String>>();
    if names.is_empty() && !reasons.is_empty() {
        return reasons.into_iter().collect::<Vec<_>>().join("; ");
    }
    if names.is_empty() {
        "the test itself differs: measure both sides with one version of it".to_owned()
    } else {
        let names = names.into_iter().collect::<Vec<_>>().join(",");
        format!("measure both sides with the same parameters, or compare them all the same: --allow-different {names}")
    }
}
