//! Labels distinct environments with letters: A is the first build's, and each other one is shown with its differences.
//! The tests, with their parameters and programs, are treated as one environment.

use std::collections::BTreeSet;

use serde::Serialize;
use wb_compare::Builds;
use wb_compare::environment::{ComparableMachines, MachineDifference};
use wb_compare::test_setup::TestSetups;
use wb_model::pluralize;
use wb_results::comparison::{BASE_ENVIRONMENT, BuildSummary, MachineEnvironment, ValueChange};

use crate::compare::context::DifferenceRow;

/// The environment of one name (the base environment, a profile, or `Tests`) in all builds.
#[derive(Serialize)]
pub(super) struct EnvironmentView {
    pub(super) name: String,
    pub(super) letters: Vec<String>,
    /// The environments of the letters after A.
    pub(super) others: Vec<EnvironmentVariant>,
    /// The complete records, by letter.
    records: Vec<EnvironmentRecord>,
}

#[derive(Serialize)]
pub(super) struct EnvironmentVariant {
    letter: String,
    builds: String,
    /// Differences from A, and from the preceding letter if that is not A.
    diffs: Vec<EnvironmentDiff>,
}

#[derive(Serialize)]
struct EnvironmentRecord {
    letter: String,
    builds: String,
    json: String,
}

#[derive(Serialize)]
struct EnvironmentDiff {
    compared_with: String,
    summary: String,
    sections: Vec<DiffSection>,
    hidden_count: usize,
}

#[derive(Serialize)]
struct DiffSection {
    name: String,
    count_text: String,
    rows: Vec<DifferenceRow>,
}

const MAX_SHOWN_CHANGES: usize = 400;

pub(super) fn environments(builds: &[BuildSummary]) -> Vec<EnvironmentView> {
    let runs = || builds.iter().flat_map(|build| &build.runs);
    let profiles: BTreeSet<&String> = runs().flat_map(|run| run.environment.keys()).collect();
    let base_environment = profiles.iter().position(|name| *name == BASE_ENVIRONMENT);
    let mut profiles: Vec<&String> = profiles.into_iter().collect();
    if let Some(index) = base_environment {
        profiles[..=index].rotate_right(1);
    }
    let names: Vec<&str> = builds.iter().map(|build| build.name.as_str()).collect();
    let of_profile = |profile: &String| {
        let of_build = builds.iter().map(|build| MachineSnapshot::of_build(build, profile));
        EnvironmentView::new(profile, &names, of_build.collect())
    };
    profiles.into_iter().map(of_profile).collect()
}

trait EnvironmentSnapshot {
    fn differences(&self, other: &Self) -> Vec<(String, Vec<ValueChange>)>;
    fn json(&self) -> String;
}

struct MachineSnapshot<'a> {
    machines: &'a Vec<MachineEnvironment>,
    comparable: ComparableMachines,
}

impl<'a> MachineSnapshot<'a> {
    /// The machines of each run of a build that recorded them.
    fn of_build(build: &'a BuildSummary, profile: &str) -> Vec<Self> {
        let machines = build.runs.iter().filter_map(|run| run.environment.get(profile));
        machines.map(|machines| Self { machines, comparable: ComparableMachines::from_run(machines) }).collect()
    }
}

impl EnvironmentSnapshot for MachineSnapshot<'_> {
    fn differences(&self, other: &Self) -> Vec<(String, Vec<ValueChange>)> {
        let named = |MachineDifference { worker, sections }: MachineDifference| {
            let name = move |section: String| match &worker {
                Some(worker) => format!("{worker}, {section}"),
                None => section,
            };
            sections.into_iter().map(move |(section, changes)| (name(section), changes))
        };
        self.comparable.differences(&other.comparable).into_iter().flat_map(named).collect()
    }

    fn json(&self) -> String {
        serde_json::to_string_pretty(self.machines).expect("plain data has a JSON form")
    }
}

impl EnvironmentSnapshot for TestSetups<'_> {
    fn differences(&self, other: &Self) -> Vec<(String, Vec<ValueChange>)> {
        Self::differences(self, other)
    }

    fn json(&self) -> String {
        self.to_json()
    }
}

/// The environment of the tests: their parameters and programs; `None` if no build has a test.
pub(super) fn test_environment(builds: &Builds) -> Option<EnvironmentView> {
    let recorded: Vec<Vec<TestSetups<'_>>> =
        builds.list().iter().map(|build| TestSetups::of_build(builds, build)).collect();
    let names: Vec<&str> = builds.list().iter().map(|build| build.name.as_str()).collect();
    recorded.iter().any(|of_build| !of_build.is_empty()).then(|| EnvironmentView::new("Tests", &names, recorded))
}

impl EnvironmentView {
    fn new<T: EnvironmentSnapshot>(name: &str, builds: &[&str], recorded: Vec<Vec<T>>) -> Self {
        let mut distinct: Vec<T> = Vec::new();
        let mut of_builds: Vec<Vec<usize>> = Vec::new();
        for of_build in recorded {
            let mut indices = Vec::new();
            for record in of_build {
                let same = distinct.iter().position(|other| other.differences(&record).is_empty());
                let index = same.unwrap_or_else(|| {
                    distinct.push(record);
                    distinct.len() - 1
                });
                if !indices.contains(&index) {
                    indices.push(index);
                }
            }
            of_builds.push(indices);
        }
        let letters_of =
            |indices: &Vec<usize>| indices.iter().map(|index| index_letters(*index)).collect::<Vec<_>>().join(" ");
        let builds_with = |index: usize| {
            let matching = builds.iter().zip(&of_builds).filter(|(_, indices)| indices.contains(&index));
            matching.map(|(build, _)| *build).collect::<Vec<_>>().join(", ")
        };
        let others = (1..distinct.len()).map(|index| {
            let compared_with = if index == 1 { vec![0] } else { vec![0, index - 1] };
            let diffs = compared_with
                .into_iter()
                .map(|other| EnvironmentDiff::new(other, distinct[other].differences(&distinct[index])));
            EnvironmentVariant { letter: index_letters(index), builds: builds_with(index), diffs: diffs.collect() }
        });
        let record = |(index, recorded): (usize, &T)| EnvironmentRecord {
            letter: index_letters(index),
            builds: builds_with(index),
            json: recorded.json(),
        };
        Self {
            name: name.to_owned(),
            letters: of_builds.iter().map(letters_of).collect(),
            others: others.collect(),
            records: distinct.iter().enumerate().map(record).collect(),
        }
    }
}

/// The letters of an index: A, B, … Z, AA, AB, ….
fn index_letters(index: usize) -> String {
    let last = char::from(b'A' + (index % 26) as u8).to_string();
    if index < 26 { last } else { index_letters(index / 26 - 1) + &last }
}

impl EnvironmentDiff {
    fn new(compared_with: usize, differences: Vec<(String, Vec<ValueChange>)>) -> Self {
        let (mut sections, mut counts, mut total, mut hidden_count) = (Vec::new(), Vec::new(), 0, 0);
        for (name, changes) in differences {
            counts.push(format!("{name} {}", changes.len()));
            let shown = changes.len().min(MAX_SHOWN_CHANGES - (total - hidden_count));
            total += changes.len();
            hidden_count += changes.len() - shown;
            let rows = changes[..shown].iter().map(DifferenceRow::new).collect();
            sections.push(DiffSection { name, count_text: pluralize(changes.len(), "difference"), rows });
        }
        let summary = format!("{}: {}", pluralize(total, "difference"), counts.join(", "));
        Self { compared_with: index_letters(compared_with), summary, sections, hidden_count }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wb_results::comparison::{Environments, RunSummary};

    use super::*;

    fn machines(sections: Value) -> Vec<MachineEnvironment> {
        vec![MachineEnvironment { worker: None, sections: serde_json::from_value(sections).unwrap() }]
    }

    fn build(name: &str, kernels: &[&str]) -> BuildSummary {
        let run = |kernel: &&str| {
            let sections = json!({"kernel": {"release": kernel, "smt": "on"}, "transient": name, "kernel_raw": name});
            let environment = Environments::from([(BASE_ENVIRONMENT.to_owned(), machines(sections))]);
            RunSummary { environment, ..RunSummary::default() }
        };
        BuildSummary { name: name.to_owned(), runs: kernels.iter().map(run).collect(), errors: vec![], samples: None }
    }

    #[test]
    fn equal_environments_share_a_letter_and_others_show_differences() {
        let builds = [
            build("one", &["6.1"]),
            build("two", &["6.1"]),
            build("three", &["6.2", "6.1"]),
            build("four", &["6.3"]),
            build("five", &[]),
        ];
        let [base_environment] = &environments(&builds)[..] else { panic!("one environment") };
        assert_eq!(base_environment.letters, ["A", "A", "B A", "C", ""]);
        let [b, c] = &base_environment.others[..] else { panic!("two others") };
        assert_eq!((b.letter.as_str(), b.builds.as_str(), b.diffs.len()), ("B", "three", 1));
        let row = |diff: &EnvironmentDiff| {
            let DifferenceRow { name, before, after, .. } = &diff.sections[0].rows[0];
            format!("{}; {name} {before} → {after}", diff.summary)
        };
        assert_eq!(row(&b.diffs[0]), "1 difference: kernel 1; release 6.1 → 6.2");
        let compared_with: Vec<&str> = c.diffs.iter().map(|diff| diff.compared_with.as_str()).collect();
        assert_eq!(compared_with, ["A", "B"]);
        assert_eq!(row(&c.diffs[1]), "1 difference: kernel 1; release 6.2 → 6.3");
        let records: Vec<&str> = base_environment.records.iter().map(|record| record.builds.as_str()).collect();
        assert_eq!(records, ["one, two, three", "three", "four"]);
        assert!(
            base_environment.records[0].json.contains("\"kernel_raw\": \"one\""),
            "{}",
            base_environment.records[0].json
        );
    }

    #[test]
    fn large_differences_are_truncated_and_counted() {
        let many = |version: &str| {
            machines(
                json!({"packages": (0..500).map(|index| (format!("p{index}"), json!(version))).collect::<Value>()}),
            )
        };
        let [one, other] = ["1", "2"].map(|version| ComparableMachines::from_run(&many(version)));
        let sections = one.differences(&other).into_iter().flat_map(|difference| difference.sections).collect();
        let diff = EnvironmentDiff::new(0, sections);
        assert_eq!((diff.summary.as_str(), diff.hidden_count), ("500 differences: packages 500", 100));
        assert_eq!(
            (diff.sections[0].count_text.as_str(), diff.sections[0].rows.len()),
            ("500 differences", MAX_SHOWN_CHANGES)
        );
    }

    #[test]
    fn letters_continue_after_z() {
        assert_eq!([0, 25, 26, 27, 702].map(index_letters), ["A", "Z", "AA", "AB", "AAA"]);
    }
}
