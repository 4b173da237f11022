//! What both programs report of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::case::Runner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// Its score is within the tolerance.
    Pass,
    /// Its score is below it.
    Fail,
    /// Its score is above it, or one of the sides is missing.
    Error,
}

struct Row {
    mark: Mark,
    /// The score, with two decimals.
    score: String,
    explanation: String,
}

impl Row {
    fn is_missing(&self) -> bool {
        self.explanation.contains("Not present in ")
    }
}

/// All rows of compare-perf, by build from the second, and identifier.
pub(super) struct Reference {
    builds: Vec<BTreeMap<String, Row>>,
}

impl Reference {
    /// Parses its log. `None` if it does not have so many builds.
    pub(super) fn parse(log: &str, builds: usize) -> Option<Self> {
        let lines = log.lines().filter_map(|line| Some(line.split_once("| ")?.1));
        let mut found: Vec<BTreeMap<String, Row>> = Vec::new();
        for line in lines {
            if line.starts_with("Processing ") {
                found.push(BTreeMap::new());
            } else if let (Some((id, row)), Some(rows)) = (parse_row(line), found.last_mut()) {
                rows.insert(id, row);
            }
        }
        // The first one is the source.
        (found.len() == builds + 1).then(|| Self { builds: found.split_off(1) })
    }

    /// The checks of the last build that a model scores.
    fn modelled(&self) -> BTreeSet<String> {
        let last = self.builds.iter().last().into_iter().flatten();
        last.filter(|(_, row)| row.explanation.contains(" model")).map(|(id, _)| id.clone()).collect()
    }

    /// Whether a group of the last build is worse by more than its tolerance.
    fn has_worse_group(&self) -> bool {
        let mut last = self.builds.iter().last().into_iter().flatten();
        last.any(|(id, row)| is_group(id) && row.mark == Mark::Fail)
    }
}

/// Whether an identifier is one of a group of checks.
pub(super) fn is_group(id: &str) -> bool {
    id.contains('*') && !id.ends_with(".error")
}

/// Parses `STATUS: ID SCORE (EXPLANATION)`.
fn parse_row(line: &str) -> Option<(String, Row)> {
    let marks = [("PASS: ", Mark::Pass), ("FAIL: ", Mark::Fail), ("ERR : ", Mark::Error)];
    let (mark, rest) = marks.iter().find_map(|(start, mark)| Some((*mark, line.strip_prefix(start)?)))?;
    let (named, explanation) = rest.split_once(" (")?;
    let (id, score) = named.rsplit_once(' ')?;
    let row = Row { mark, score: score.to_owned(), explanation: explanation.to_owned() };
    Some((id.to_owned(), row))
}

/// What weighbridge has of a check or a group, by build from the second.
#[derive(Debug)]
struct OurRow {
    scores: Vec<Option<f64>>,
    statuses: Vec<String>,
    /// Whether the mean of the source is zero.
    is_from_zero: bool,
}

#[derive(Debug, Default)]
pub(super) struct OurReport {
    checks: BTreeMap<String, OurRow>,
    /// The groups of the last build.
    groups: BTreeMap<String, OurRow>,
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl OurReport {
    pub(super) fn new(report: &Value) -> Self {
        let check = |check: &Value| {
            let is_from_zero = check["statistic"] == "mean" && check["before"].as_f64() == Some(0.0);
            let row = OurRow {
                scores: list(&check["scores"]).map(Value::as_f64).collect(),
                statuses: list(&check["statuses"]).map(text).collect(),
                is_from_zero,
            };
            (text(&check["id"]), row)
        };
        let group = |group: &Value| {
            let row = OurRow {
                scores: vec![group["score"].as_f64()],
                statuses: vec![text(&group["status"])],
                is_from_zero: false,
            };
            (text(&group["id"]), row)
        };
        Self {
            checks: list(&report["checks"]).map(check).collect(),
            groups: list(&report["groups"]).map(group).collect(),
        }
    }

    /// Compares each check in each build, and each group in the last.
    pub(super) fn compare(&self, reference: &Reference, runner: &mut Runner) {
        for (build, rows) in reference.builds.iter().enumerate() {
            for (id, row) in rows.iter().filter(|(id, _)| !is_group(id) && !id.ends_with(".error")) {
                let ours = self.checks.get(id);
                let difference = match ours {
                    // What only builds between the first and the last have is not judged.
                    None if row.is_missing() && build + 1 < reference.builds.len() => None,
                    None => Some("is missing".to_owned()),
                    Some(ours) => difference(ours, build, row),
                };
                runner.require(difference.is_none(), || {
                    format!("`{id}` in build {}: {}", build + 1, difference.unwrap_or_default())
                });
            }
        }
        let Some(last) = reference.builds.last() else { return };
        for (id, row) in last.iter().filter(|(id, _)| is_group(id)) {
            let difference = self.groups.get(id).map_or(Some("is missing".to_owned()), |ours| difference(ours, 0, row));
            runner.require(difference.is_none(), || format!("group `{id}`: {}", difference.unwrap_or_default()));
        }
        let known: BTreeSet<&String> = reference.builds.iter().flat_map(BTreeMap::keys).collect();
        let further: Vec<_> = self.checks.keys().chain(self.groups.keys()).filter(|id| !known.contains(id)).collect();
        runner.require(further.is_empty(), || format!("checks that run-perf does not have: {further:?}"));
    }
}

fn difference(ours: &OurRow, build: usize, row: &Row) -> Option<String> {
    let score = ours.scores.get(build).copied().flatten();
    let status = ours.statuses.get(build).map_or("", String::as_str);
    let agrees = if row.is_missing() {
        score.is_none() && ["missing", "new"].contains(&status)
    } else if ours.is_from_zero && build > 0 {
        // The averages and counts over the builds before it have them as what they are here.
        true
    } else if let Some(score) = score {
        let is_beyond = ["improved", "regressed"].contains(&status);
        format!("{score:.2}").trim_start_matches('-') == row.score.trim_start_matches('-')
            && (score.abs() < 0.005 || score.is_sign_negative() == row.score.starts_with('-'))
            && is_beyond == (row.mark != Mark::Pass)
    } else {
        // From zero to another value: infinite here, and equal there.
        ours.is_from_zero && ["improved", "regressed"].contains(&status)
    };
    (!agrees).then(|| {
        let Row { mark, score: their_score, explanation } = row;
        format!("{status} with {score:?}; compare-perf has {mark:?} with {their_score} ({explanation}")
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaseResult {
    Passed,
    Worse,
    Better,
    MissingInSource,
    OtherError,
}

/// Whether a test case is worse: a deviation rises with the score of a model, and falls with the difference.
fn is_worse(id: &str, result: CaseResult, modelled: &BTreeSet<String>) -> bool {
    match result {
        CaseResult::Worse => !(id.ends_with(".stddev") && modelled.contains(id)),
        CaseResult::Better => id.ends_with(".stddev") && modelled.contains(id),
        _ => false,
    }
}

/// The test cases of a JUnit file, by name, without groups: run-perf writes the file before it has them.
pub(super) fn test_cases(xml: &str) -> BTreeMap<String, CaseResult> {
    let mut cases = BTreeMap::new();
    for element in xml.split("<testcase ").skip(1) {
        let attribute = |name: &str| element.split(&format!("{name}=\"")).nth(1)?.split('"').next();
        let (Some(class), Some(name)) = (attribute("classname"), attribute(" name")) else { continue };
        let result = if element.contains("<failure") {
            CaseResult::Worse
        } else if element.contains("<skipped") {
            CaseResult::Better
        } else if element.contains("Not present in source") {
            CaseResult::MissingInSource
        } else if element.contains("<error") {
            CaseResult::OtherError
        } else {
            CaseResult::Passed
        };
        cases.insert(format!("{class}/{name}"), result);
    }
    cases.retain(|id, _| !is_group(id));
    cases
}

/// The exit status of weighbridge's compare-perf where run-perf's has these test cases (docs/run-perf.md): gains and
/// what only the last build has do not fail, and errors of either side do.
pub(super) fn expected_exit(cases: &BTreeMap<String, CaseResult>, reference: &Reference) -> i32 {
    let modelled = reference.modelled();
    let fails = |(id, result): (&String, &CaseResult)| {
        id.ends_with(".error") || *result == CaseResult::OtherError || is_worse(id, *result, &modelled)
    };
    if reference.has_worse_group() || cases.iter().any(fails) {
        return 2;
    }
    let is_compared = |result: &CaseResult| *result != CaseResult::MissingInSource;
    if cases.values().any(is_compared) { 0 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_status_a_score_and_an_explanation() {
        let log = "DEBUG| Processing a\nDEBUG| Processing b\n\
            ERROR| FAIL: L/fio/0000:./r 4/throughput/x.mean -7.10 (SMALL raw -7.10% (1; 2) +-5% tolerance)\n";
        let reference = Reference::parse(log, 1).unwrap();
        let row = &reference.builds[0]["L/fio/0000:./r 4/throughput/x.mean"];
        assert_eq!((row.mark, row.score.as_str()), (Mark::Fail, "-7.10"));
        assert!(Reference::parse(log, 2).is_none());
    }

    #[test]
    fn gains_and_new_checks_do_not_fail() {
        let case = |body: &str| format!("<testcase classname=\"a/b\" name=\"c.mean\">{body}</testcase>");
        let exit = |body: &str| expected_exit(&test_cases(&case(body)), &Reference { builds: Vec::new() });
        assert_eq!([exit("<failure/>"), exit("<skipped/>"), exit("")], [2, 0, 0]);
        assert_eq!(exit("<error message=\"ERROR Not present in source results\"/>"), 4);
        let log = "| Processing a\n| Processing b\n| ERR : a/b/c.stddev 7.1 (BIG model0 7.1% (1; 2))";
        let cases = test_cases(&case("<skipped/>").replace("c.mean", "c.stddev"));
        assert_eq!(expected_exit(&cases, &Reference::parse(log, 1).unwrap()), 2);
        assert_eq!(exit("<error message=\"ERROR Not present in target results\"/>"), 2);
    }
}
