//! Groups findings for display: one line for each kind, with the cells that have it. JSON has all of them.

use wb_model::pluralize;
use wb_results::CellResult;
use wb_results::finding::{finding_kind, with_ranges};
use wb_stats::{DependenceCheck, MIN_SAMPLES_FOR_DEPENDENCE};

use crate::phrasing;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FindingGroup {
    /// The names of the cells that have it, or how many they are; `note` if it is about all of them.
    pub(crate) cells: String,
    /// The finding, with the range of its figures; where these are names, the first one and how many others there are.
    pub(crate) text: String,
}

const MAX_NAMED_CELLS: usize = 3;

/// Groups the findings of cells by kind, in the order of their first occurrence.
pub(crate) fn group_findings(cells: &[CellResult]) -> Vec<FindingGroup> {
    let all = cells.iter().enumerate();
    let all = all.flat_map(|(index, cell)| cell.findings.iter().map(move |finding| (index, finding.as_str())));
    let names = |index: usize| phrasing::cell_name(&cells[index].id);
    group_findings_of(all, names, cells.len()).into_iter().chain(dependence_note(cells)).collect()
}

/// Like [`group_findings`], of findings with the number of their cell.
pub(crate) fn group_findings_of<'a>(
    findings: impl Iterator<Item = (usize, &'a str)>,
    cell_name: impl Fn(usize) -> String,
    cells: usize,
) -> Vec<FindingGroup> {
    let groups = group_by_kind(findings).into_iter().map(|findings| {
        let mut with: Vec<usize> = findings.iter().map(|(cell, _)| *cell).collect();
        with.dedup();
        let texts: Vec<&str> = findings.iter().map(|(_, finding)| *finding).collect();
        FindingGroup { cells: name_cells(&with, &cell_name, cells), text: describe_texts(&texts, with.len()) }
    });
    groups.collect()
}

/// The names of some of all cells, or how many they are.
pub(crate) fn name_cells(with: &[usize], cell_name: impl Fn(usize) -> String, all: usize) -> String {
    let names = with.iter().map(|cell| cell_name(*cell));
    match with.len() {
        1 => names.collect(),
        count if count == all => "every cell".to_owned(),
        count if count > MAX_NAMED_CELLS => pluralize(count, "cell"),
        _ => names.collect::<Vec<_>>().join(", "),
    }
}

/// Findings of one kind: the text with the range of its figures, and their number unless there is one for each of
/// `places`; or the first and how many others there are.
pub(crate) fn describe_texts(texts: &[&str], places: usize) -> String {
    match with_ranges(texts) {
        Some(text) if texts.len() == places => text,
        Some(text) => format!("{text}; {} of this kind", texts.len()),
        None => first_of(texts),
    }
}

pub(crate) fn group_findings_of_cell(cell: &CellResult) -> Vec<String> {
    let all = cell.findings.iter().map(|finding| (0, finding.as_str()));
    let texts = |group: Vec<(_, &str)>| describe_texts(&group.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), 1);
    group_by_kind(all).into_iter().map(texts).collect()
}

/// Groups findings, each with its place, by kind, in the order of their first occurrence.
pub(crate) fn group_by_kind<'a, P>(findings: impl Iterator<Item = (P, &'a str)>) -> Vec<Vec<(P, &'a str)>> {
    let mut positions: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    let mut groups: Vec<Vec<(P, &str)>> = Vec::new();
    for (place, finding) in findings {
        let position = *positions.entry(finding_kind(finding)).or_insert(groups.len());
        match groups.get_mut(position) {
            Some(group) => group.push((place, finding)),
            None => groups.push(vec![(place, finding)]),
        }
    }
    groups
}

fn first_of(texts: &[&str]) -> String {
    let first = texts.first().copied().unwrap_or_default();
    match texts.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first}; and {} more of this kind", count - 1),
    }
}

/// One note for all cells with too few samples to check whether they depend on each other.
fn dependence_note(cells: &[CellResult]) -> Option<FindingGroup> {
    let is_unchecked = |cell: &&CellResult| cell.dependence_check() == Some(DependenceCheck::TooFewSamples);
    let count = Some(cells.iter().filter(is_unchecked).count()).filter(|count| *count > 0)?;
    Some(FindingGroup {
        cells: "note".to_owned(),
        text: format!(
            "dependence between samples could not be checked in {} with fewer than {MIN_SAMPLES_FOR_DEPENDENCE} samples",
            pluralize(count, "cell")
        ),
    })
}

#[cfg(test)]
mod tests {
    use wb_model::{CellOutcome, DefinitionKey, Params, TestName};
    use wb_results::Failures;
    use wb_stats::SamplingRule;

    use super::*;

    fn cell(case: u32, findings: &[&str]) -> CellResult {
        CellResult {
            id: format!("Localhost/t/0000:n={case}").parse().unwrap(),
            key: DefinitionKey::new(&TestName::new("t").unwrap(), 1, &Params::new()),
            description: String::new(),
            params: Params::new(),
            workers: Vec::new(),
            rule: SamplingRule::External { min_samples: 1, max_samples: 1 },
            outcome: CellOutcome::Measured,
            ended_by: None,
            metrics: Vec::new(),
            attempts: Vec::new(),
            series: Vec::new(),
            failures: Failures::default(),
            exit_status: None,
            dependence: None,
            curves: Vec::new(),
            latency: Vec::new(),
            findings: findings.iter().map(|finding| (*finding).to_owned()).collect(),
            provenance: Default::default(),
        }
    }

    fn shown(cells: &[CellResult]) -> Vec<(String, String)> {
        group_findings(cells).into_iter().map(|group| (group.cells, group.text)).collect()
    }

    // Two runs at once filled hundreds of lines.
    #[test]
    fn other_runs_in_many_cells_are_one_line() {
        let run =
            |n: u32| format!("another run measured on this machine at the same time: anna@desk (process {n} there)");
        let (one, two, three) = (run(1), format!("{} (in 2 of 6 samples)", run(2)), run(3));
        let cells: Vec<CellResult> = (0..8).map(|case| cell(case, &[&one, &two, &three])).collect();
        assert_eq!(shown(&cells), [("every cell".to_owned(), format!("{one}; and 23 more of this kind"))]);
        assert_eq!(group_findings_of_cell(&cells[0]), [format!("{one}; and 2 more of this kind")]);
    }

    #[test]
    fn few_cells_are_named_and_equal_findings_are_not_counted() {
        let pair = |cells: &str, text: &str| (cells.to_owned(), text.to_owned());
        let mut cells: Vec<CellResult> = (0..6).map(|case| cell(case, &[])).collect();
        let mut add = |range: std::ops::Range<usize>, text: &str| {
            cells[range].iter_mut().for_each(|cell| cell.findings.push(text.to_owned()));
        };
        add(0..1, "swapped 5 pages");
        add(1..2, "swapped 9 pages");
        add(0..4, "the cache is small");
        add(2..3, "the device is slow");
        let [first, second, third] = [0, 1, 2].map(|case| format!("Localhost/t/0000:n={case}"));
        assert_eq!(
            shown(&cells),
            [
                pair(&format!("{first}, {second}"), "swapped 5 to 9 pages"),
                pair("4 cells", "the cache is small"),
                pair(&third, "the device is slow"),
            ]
        );
    }
}
