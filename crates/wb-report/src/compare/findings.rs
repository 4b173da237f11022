//! The findings of both sides of a comparison, one line for each kind.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wb_compare::comparison::CheckResult;
use wb_compare::{CheckId, ComparisonResult, Statistic};

use super::figures::readable_id;
use crate::findings::{FindingGroup, group_findings_of};

/// Findings of one kind in the first build, in the last, or in both.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct BuildFindings {
    pub(super) builds: String,
    /// The cells that have it: their names, or how many they are.
    pub(super) cells: String,
    pub(super) text: String,
}

/// Groups the findings about primary metrics by kind; `build_name` formats the names of builds.
pub(super) fn group_findings(outcome: &ComparisonResult, build_name: impl Fn(&str) -> String) -> Vec<BuildFindings> {
    group_findings_of_cells(outcome, build_name, |_| true)
}

/// Groups the findings about the cells of which all primary means are selected.
pub(super) fn group_findings_of_cells(
    outcome: &ComparisonResult,
    build_name: impl Fn(&str) -> String,
    is_selected: impl Fn(&CheckResult) -> bool,
) -> Vec<BuildFindings> {
    let [reference, .., judged] = &outcome.builds[..] else { return Vec::new() };
    // All metrics of a cell have its findings.
    let is_primary = |check: &&CheckResult| check.primary && check.statistic == Statistic::Mean;
    let primary = || outcome.checks.iter().filter(is_primary);
    let left_out: BTreeSet<String> = primary().filter(|check| !is_selected(check)).map(cell_name).collect();
    let mut cells: BTreeMap<String, [&[String]; 2]> = BTreeMap::new();
    for check in primary().filter(|check| !left_out.contains(&cell_name(check))) {
        let sides = cells.entry(cell_name(check)).or_default();
        for (side, findings) in sides.iter_mut().zip(&check.findings) {
            if side.is_empty() {
                *side = findings;
            }
        }
    }
    let names: Vec<&String> = cells.keys().collect();
    let total = names.len() + left_out.len();
    let groups_of = |side: usize| {
        let of_side = cells.values().map(|sides| sides[side]).enumerate();
        let all = of_side.flat_map(|(at, findings)| findings.iter().map(move |text| (at, text.as_str())));
        group_findings_of(all, |at| names[at].clone(), total)
    };
    let [first, mut last] = [0, 1].map(groups_of);
    let [reference, judged] = [reference, judged].map(|build| build_name(&build.name));
    let line = |builds: String, FindingGroup { cells, text }| BuildFindings { builds, cells, text };
    let mut lines = Vec::new();
    for group in first {
        let in_both = last.iter().position(|other| *other == group);
        let builds = match in_both.map(|at| last.remove(at)) {
            Some(_) => format!("{reference} and {judged}"),
            None => reference.clone(),
        };
        lines.push(line(builds, group));
    }
    lines.extend(last.into_iter().map(|group| line(judged.clone(), group)));
    lines
}

/// The name of the cell that a check belongs to.
fn cell_name(check: &CheckResult) -> String {
    let Ok(CheckId { profile, test, serial, case, .. }) = CheckId::parse(&check.id) else { return check.id.clone() };
    readable_id(&format!("{profile}/{test}/{serial}:{case}"))
}
