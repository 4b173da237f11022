//! The findings of both sides of a comparison, one line for each kind.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wb_results::comparison::{CheckId, CheckResult, ComparisonResult, Statistic};
use wb_results::finding::with_ranges;

use super::figures::readable_id;
use crate::findings::{describe_texts, group_by_kind, name_cells};

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct BuildFindings {
    pub(super) builds: String,
    pub(super) cells: String,
    pub(super) text: String,
}

/// Groups the findings about primary metrics by kind; `build_name` formats the names of builds. Findings of one kind
/// that the same cells of both builds have, with the same figures, are one line.
pub(super) fn group_findings(outcome: &ComparisonResult, build_name: impl Fn(&str) -> String) -> Vec<BuildFindings> {
    let [reference, .., judged] = &outcome.builds[..] else { return Vec::new() };
    // All metrics of a cell have its findings.
    let is_primary = |check: &&CheckResult| check.primary && check.statistic == Statistic::Mean;
    let mut cells: BTreeMap<String, [Option<&[String]>; 2]> = BTreeMap::new();
    // Within one run, the parts that a cell is of, by side.
    let mut parts: BTreeMap<(usize, String), BTreeSet<&str>> = BTreeMap::new();
    for check in outcome.checks.iter().filter(is_primary) {
        let judged = cell_name(check);
        let reference = check.reference_cell.as_deref().map_or_else(|| judged.clone(), readable_id);
        for (side, name) in [reference, judged].into_iter().enumerate() {
            if let Some(sides) = &check.sides {
                parts.entry((side, name.clone())).or_default().insert(&sides[side]);
            }
            let of_side = &mut cells.entry(name).or_default()[side];
            if of_side.is_none_or(<[String]>::is_empty) {
                *of_side = Some(&check.findings[side]);
            }
        }
    }
    let names: Vec<&String> = cells.keys().collect();
    let of_side = |side: usize| {
        let cells = cells.values().map(move |sides| sides[side]).enumerate();
        let findings = cells.flat_map(|(cell, findings)| findings.into_iter().flatten().map(move |text| (cell, text)));
        findings.map(move |(cell, text)| ((side, cell), text.as_str()))
    };
    // Within one run the sides have other cells.
    let counts = [0, 1].map(|side| cells.values().filter(|sides| sides[side].is_some()).count());
    let builds = [reference, judged].map(|build| build_name(&build.name));
    let label = |side: usize, of: &[usize]| {
        let of_cell = |cell: &usize| parts.get(&(side, names[*cell].clone())).into_iter().flatten().copied();
        let with: BTreeSet<&str> = of.iter().flat_map(of_cell).collect();
        // In the order of the plan.
        let judged = outcome.within_run.iter().flat_map(|it| std::iter::once(&it.reference).chain(&it.judged));
        let named: Vec<String> =
            judged.filter(|part| with.contains(part.as_str())).map(|part| build_name(part)).collect();
        if named.is_empty() { builds[side].clone() } else { named.join(", ") }
    };
    let mut lines = Vec::new();
    for findings in group_by_kind(of_side(0).chain(of_side(1))) {
        let cells_of = |side: usize| {
            let cells: BTreeSet<usize> =
                findings.iter().filter(|((of, _), _)| *of == side).map(|((_, cell), _)| *cell).collect();
            cells.into_iter().collect::<Vec<usize>>()
        };
        let mut line = |builds: &str, all: usize, cells: &[usize], texts: &[&str], places: usize| {
            let cells = name_cells(cells, |index| names[index].clone(), all);
            lines.push(BuildFindings { builds: builds.to_owned(), cells, text: describe_texts(texts, places) });
        };
        let [of_reference, of_judged] = [0, 1].map(cells_of);
        let texts_of = |side: usize| -> Vec<&str> {
            findings.iter().filter(|((of, _), _)| *of == side).map(|(_, text)| *text).collect()
        };
        // One range over both would hide that a build has more of it.
        if of_reference == of_judged && with_ranges(&texts_of(0)) == with_ranges(&texts_of(1)) {
            let texts: Vec<&str> = findings.iter().map(|(_, text)| *text).collect();
            let both = format!("{} and {}", label(0, &of_reference), label(1, &of_judged));
            line(&both, counts[0], &of_reference, &texts, 2 * of_reference.len());
            continue;
        }
        for (side, cells) in [of_reference, of_judged].iter().enumerate().filter(|(_, cells)| !cells.is_empty()) {
            line(&label(side, cells), counts[side], cells, &texts_of(side), cells.len());
        }
    }
    lines
}

fn cell_name(check: &CheckResult) -> String {
    let Ok(CheckId { profile, test, serial, case, .. }) = CheckId::parse(&check.id) else { return check.id.clone() };
    readable_id(&format!("{profile}/{test}/{serial}:{case}"))
}
