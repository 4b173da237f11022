//! Environments as letters: A is the first build's, and each other one has a letter of its own and shows in what it
//! differs. The tests, with their parameters and programs, are one of them.

use std::collections::BTreeSet;

use serde::Serialize;
use wb_compare::Builds;
use wb_compare::comparison::BuildSummary;
use wb_compare::environment::{ComparableMachines, MachineDifference, MachineEnvironment, ValueChange};
use wb_compare::test_setup::TestSetups;
use wb_model::pluralize;

use crate::compare::context::DifferenceRow;

/// The environment of one name (`World`, a profile, or `Tests`) in all builds.
#[derive(Serialize)]
pub(super) struct EnvironmentView {
    pub(super) name: String,
    /// By build.
    pub(super) letters: Vec<String>,
    /// What the letters stand for, A left out.
    pub(super) others: Vec<EnvironmentVariant>,
    /// All that was recorded, by letter.
    records: Vec<EnvironmentRecord>,
}

/// A letter after A.
#[derive(Serialize)]
pub(super) struct EnvironmentVariant {
    letter: String,
    /// The builds that have it.
    builds: String,
    /// Against A, and against the letter before where that is another one.
    diffs: Vec<EnvironmentDiff>,
}

/// What was recorded of the machines of a letter, as JSON.
#[derive(Serialize)]
struct EnvironmentRecord {
    letter: String,
    builds: String,
    json: String,
}

#[derive(Serialize)]
struct EnvironmentDiff {
    against: String,
    /// How many differences there are, and in which sections.
    counts: String,
    sections: Vec<DiffSection>,
    /// How many of them are not shown.
    more: usize,
}

#[derive(Serialize)]
struct DiffSection {
    name: String,
    count: String,
    rows: Vec<DifferenceRow>,
}

/// So many values of one difference are shown.
const MAX_VALUES: usize = 400;

/// Of each name that any build has.
pub(super) fn environments(builds: &[BuildSummary]) -> Vec<EnvironmentView> {
    let runs = || builds.iter().flat_map(|build| &build.runs);
    let profiles: BTreeSet<&String> = runs().flat_map(|run| run.environment.keys()).collect();
    let world = profiles.iter().position(|name| *name == "World");
    let mut profiles: Vec<&String> = profiles.into_iter().collect();
    if let Some(world) = world {
        profiles[..=world].rotate_right(1);
    }
    let names: Vec<&str> = builds.iter().map(|build| build.name.as_str()).collect();
    let of_profile = |profile: &String| {
        let of_build = builds.iter().map(|build| MachineSnapshot::of_build(build, profile));
        EnvironmentView::of(profile, &names, of_build.collect())
    };
    profiles.into_iter().map(of_profile).collect()
}

/// What a run recorded of an environment.
trait EnvironmentSnapshot {
    /// The sections in which another one differs, and what differs in them.
    fn differences(&self, other: &Self) -> Vec<(String, Vec<ValueChange>)>;
    /// All of it.
    fn json(&self) -> String;
}

/// The machines of an environment.
struct MachineSnapshot<'a> {
    machines: &'a Vec<MachineEnvironment>,
    comparable: ComparableMachines,
}

impl<'a> MachineSnapshot<'a> {
    /// Those of each run that has them.
    fn of_build(build: &'a BuildSummary, profile: &str) -> Vec<Self> {
        let machines = build.runs.iter().filter_map(|run| run.environment.get(profile));
        machines.map(|machines| Self { machines, comparable: ComparableMachines::of(machines) }).collect()
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
        // A plain tree of texts and numbers always has a JSON form.
        serde_json::to_string_pretty(self.machines).unwrap_or_default()
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

/// The environment of the tests: their parameters and programs; none where no build has a test.
pub(super) fn test_environment(builds: &Builds) -> Option<EnvironmentView> {
    let recorded: Vec<Vec<TestSetups<'_>>> =
        builds.list().iter().map(|build| TestSetups::of_build(builds, build)).collect();
    let names: Vec<&str> = builds.list().iter().map(|build| build.name.as_str()).collect();
    recorded.iter().any(|of_build| !of_build.is_empty()).then(|| EnvironmentView::of("Tests", &names, recorded))
}

impl EnvironmentView {
    /// Of what the runs of each build recorded.
    fn of<T: EnvironmentSnapshot>(name: &str, builds: &[&str], recorded: Vec<Vec<T>>) -> Self {
        let mut distinct: Vec<T> = Vec::new();
        let mut of_builds: Vec<Vec<usize>> = Vec::new();
        for of_build in recorded {
            let mut has = Vec::new();
            for one in of_build {
                let same = distinct.iter().position(|other| other.differences(&one).is_empty());
                let place = same.unwrap_or_else(|| {
                    distinct.push(one);
                    distinct.len() - 1
                });
                if !has.contains(&place) {
                    has.push(place);
                }
            }
            of_builds.push(has);
        }
        let letters_of = |has: &Vec<usize>| has.iter().map(|place| letter(*place)).collect::<Vec<_>>().join(" ");
        let having = |place: usize| {
            let having = builds.iter().zip(&of_builds).filter(|(_, has)| has.contains(&place));
            having.map(|(build, _)| *build).collect::<Vec<_>>().join(", ")
        };
        let others = (1..distinct.len()).map(|place| {
            let against = if place == 1 { vec![0] } else { vec![0, place - 1] };
            let diffs = against
                .into_iter()
                .map(|other| EnvironmentDiff::of(other, distinct[other].differences(&distinct[place])));
            EnvironmentVariant { letter: letter(place), builds: having(place), diffs: diffs.collect() }
        });
        let record = |(place, one): (usize, &T)| EnvironmentRecord {
            letter: letter(place),
            builds: having(place),
            json: one.json(),
        };
        Self {
            name: name.to_owned(),
            letters: of_builds.iter().map(letters_of).collect(),
            others: others.collect(),
            records: distinct.iter().enumerate().map(record).collect(),
        }
    }
}

/// A, B, … Z, AA, AB, …
fn letter(place: usize) -> String {
    let last = char::from(b'A' + (place % 26) as u8).to_string();
    if place < 26 { last } else { letter(place / 26 - 1) + &last }
}

impl EnvironmentDiff {
    fn of(against: usize, differences: Vec<(String, Vec<ValueChange>)>) -> Self {
        let (mut sections, mut counts, mut all, mut more) = (Vec::new(), Vec::new(), 0, 0);
        for (name, changes) in differences {
            counts.push(format!("{name} {}", changes.len()));
            let shown = changes.len().min(MAX_VALUES - (all - more));
            all += changes.len();
            more += changes.len() - shown;
            let rows = changes[..shown].iter().map(DifferenceRow::of).collect();
            sections.push(DiffSection { name, count: pluralize(changes.len(), "difference"), rows });
        }
        let counts = format!("{}: {}", pluralize(all, "difference"), counts.join(", "));
        Self { against: letter(against), counts, sections, more }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wb_compare::comparison::RunSummary;
    use wb_compare::environment::Environments;

    use super::*;

    fn machines(sections: Value) -> Vec<MachineEnvironment> {
        vec![MachineEnvironment { worker: None, sections: serde_json::from_value(sections).unwrap() }]
    }

    fn build(name: &str, kernels: &[&str]) -> BuildSummary {
        let run = |kernel: &&str| {
            let sections = json!({"kernel": {"release": kernel, "smt": "on"}, "momentary": name, "kernel_raw": name});
            let environment = Environments::from([("World".to_owned(), machines(sections))]);
            RunSummary { environment, ..RunSummary::default() }
        };
        BuildSummary { name: name.to_owned(), runs: kernels.iter().map(run).collect(), errors: vec![], samples: None }
    }

    #[test]
    fn builds_that_are_alike_have_one_letter_and_others_show_what_differs() {
        let builds = [
            build("one", &["6.1"]),
            build("two", &["6.1"]),
            build("three", &["6.2", "6.1"]),
            build("four", &["6.3"]),
            build("five", &[]),
        ];
        let [world] = &environments(&builds)[..] else { panic!("one environment") };
        assert_eq!(world.letters, ["A", "A", "B A", "C", ""]);
        let [b, c] = &world.others[..] else { panic!("two others") };
        assert_eq!((b.letter.as_str(), b.builds.as_str(), b.diffs.len()), ("B", "three", 1));
        let row = |diff: &EnvironmentDiff| {
            let DifferenceRow { name, src, dst, .. } = &diff.sections[0].rows[0];
            format!("{}; {name} {src} → {dst}", diff.counts)
        };
        assert_eq!(row(&b.diffs[0]), "1 difference: kernel 1; release 6.1 → 6.2");
        let against: Vec<&str> = c.diffs.iter().map(|diff| diff.against.as_str()).collect();
        assert_eq!(against, ["A", "B"]);
        assert_eq!(row(&c.diffs[1]), "1 difference: kernel 1; release 6.2 → 6.3");
        let records: Vec<&str> = world.records.iter().map(|record| record.builds.as_str()).collect();
        assert_eq!(records, ["one, two, three", "three", "four"]);
        assert!(world.records[0].json.contains("\"kernel_raw\": \"one\""), "{}", world.records[0].json);
    }

    #[test]
    fn a_difference_beyond_all_measure_is_cut_and_counted() {
        let many = |version: &str| {
            machines(json!({"packages": (0..500).map(|at| (format!("p{at}"), json!(version))).collect::<Value>()}))
        };
        let [one, other] = ["1", "2"].map(|version| ComparableMachines::of(&many(version)));
        let sections = one.differences(&other).into_iter().flat_map(|difference| difference.sections).collect();
        let diff = EnvironmentDiff::of(0, sections);
        assert_eq!((diff.counts.as_str(), diff.more), ("500 differences: packages 500", 100));
        assert_eq!((diff.sections[0].count.as_str(), diff.sections[0].rows.len()), ("500 differences", MAX_VALUES));
    }

    #[test]
    fn letters_go_on_after_z() {
        assert_eq!([0, 25, 26, 27, 702].map(letter), ["A", "Z", "AA", "AB", "AAA"]);
    }
}
