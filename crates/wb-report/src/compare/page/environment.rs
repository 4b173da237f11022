//! Environments as letters: A is the first build's, and each other one has a letter of its own and says in what it
//! differs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use wb_compare::outcome::BuildTold;
use wb_model::counted;

use crate::compare::totals::MOMENTARY;

/// The environment of one name (`World` or a profile) in all builds.
#[derive(Serialize)]
pub(super) struct Environment {
    pub(super) name: String,
    /// By build.
    pub(super) letters: Vec<String>,
    /// What the letters stand for, A left out.
    pub(super) others: Vec<Other>,
}

/// A letter after A.
#[derive(Serialize)]
pub(super) struct Other {
    letter: String,
    /// The builds that have it.
    builds: String,
    /// Against A, and against the letter before where that is another one.
    diffs: Vec<Diff>,
}

#[derive(Serialize)]
struct Diff {
    against: String,
    /// How many lines differ.
    lines: usize,
    /// The same in words.
    told: String,
    sections: Vec<Section>,
    /// How many of them are not shown.
    more: usize,
}

#[derive(Serialize)]
struct Section {
    name: String,
    text: String,
}

type Machines = Vec<BTreeMap<String, String>>;

/// So many lines of one difference are shown.
const SHOWN: usize = 400;

/// Of each name that any build has.
pub(super) fn environments(builds: &[BuildTold]) -> Vec<Environment> {
    let runs = || builds.iter().flat_map(|build| &build.runs);
    let profiles: BTreeSet<&String> = runs().flat_map(|run| run.environment.keys()).collect();
    let world = profiles.iter().position(|name| *name == "World");
    let mut names: Vec<&String> = profiles.into_iter().collect();
    if let Some(world) = world {
        names[..=world].rotate_right(1);
    }
    names.into_iter().map(|name| Environment::of(name, builds)).collect()
}

impl Environment {
    fn of(name: &str, builds: &[BuildTold]) -> Self {
        let mut distinct: Vec<Machines> = Vec::new();
        let mut of_builds: Vec<Vec<usize>> = Vec::new();
        for build in builds {
            let mut has = Vec::new();
            for machines in build.runs.iter().filter_map(|run| run.environment.get(name)) {
                let lasting = lasting(machines);
                let place = distinct.iter().position(|known| *known == lasting).unwrap_or_else(|| {
                    distinct.push(lasting);
                    distinct.len() - 1
                });
                if !has.contains(&place) {
                    has.push(place);
                }
            }
            of_builds.push(has);
        }
        let told = |has: &Vec<usize>| has.iter().map(|place| letter(*place)).collect::<Vec<_>>().join(" ");
        let letters = of_builds.iter().map(told).collect();
        let others = (1..distinct.len()).map(|place| {
            let having = builds.iter().zip(&of_builds).filter(|(_, has)| has.contains(&place));
            let against = if place == 1 { vec![0] } else { vec![0, place - 1] };
            Other {
                letter: letter(place),
                builds: having.map(|(build, _)| build.name.as_str()).collect::<Vec<_>>().join(", "),
                diffs: against.into_iter().map(|other| Diff::of(other, &distinct[other], &distinct[place])).collect(),
            }
        });
        Self { name: name.to_owned(), letters, others: others.collect() }
    }
}

/// Without what is never the same twice.
fn lasting(machines: &Machines) -> Machines {
    let of = |machine: &BTreeMap<String, String>| {
        let sections = machine.iter().filter(|(name, _)| name.as_str() != MOMENTARY);
        sections.map(|(name, text)| (name.clone(), text.clone())).collect()
    };
    machines.iter().map(of).collect()
}

/// A, B, … Z, AA, AB, …
fn letter(place: usize) -> String {
    let last = char::from(b'A' + (place % 26) as u8).to_string();
    if place < 26 { last } else { letter(place / 26 - 1) + &last }
}

impl Diff {
    fn of(against: usize, before: &Machines, after: &Machines) -> Self {
        let mut diff = Self { against: letter(against), lines: 0, told: String::new(), sections: Vec::new(), more: 0 };
        let several = before.len().max(after.len()) > 1;
        let none = BTreeMap::new();
        for machine in 0..before.len().max(after.len()) {
            let [one, other] = [before, after].map(|machines| machines.get(machine).unwrap_or(&none));
            let sections: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for section in sections {
                let text = |of: &BTreeMap<String, String>| of.get(section).cloned().unwrap_or_default();
                let lines = differing(&text(one), &text(other));
                let name = if several { format!("machine {}, {section}", machine + 1) } else { section.clone() };
                diff.add(name, lines);
            }
        }
        diff.told = counted(diff.lines, "line");
        diff
    }

    fn add(&mut self, name: String, mut lines: Vec<String>) {
        let room = SHOWN.saturating_sub(self.lines - self.more);
        self.lines += lines.len();
        self.more += lines.len().saturating_sub(room);
        lines.truncate(room);
        if !lines.is_empty() {
            self.sections.push(Section { name, text: lines.join("\n") });
        }
    }
}

/// The lines that differ, `-` before those that are gone and `+` before those that came.
fn differing(before: &str, after: &str) -> Vec<String> {
    if before == after {
        return Vec::new();
    }
    let diff = TextDiff::from_lines(before, after);
    let lines = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        Some(format!("{sign} {}", change.value().trim_end_matches(['\n', '\r'])))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use wb_compare::outcome::RunTold;

    use super::*;

    fn build(name: &str, kernels: &[&str]) -> BuildTold {
        let run = |kernel: &&str| {
            let sections = [("kernel", *kernel), ("momentary", name)].map(|(name, text)| (name.into(), text.into()));
            let environment = BTreeMap::from([("World".to_owned(), vec![BTreeMap::from(sections)])]);
            RunTold { environment, ..RunTold::default() }
        };
        BuildTold { name: name.to_owned(), runs: kernels.iter().map(run).collect(), errors: vec![], samples: None }
    }

    #[test]
    fn builds_that_are_alike_have_one_letter_and_others_tell_what_differs() {
        let builds = [
            build("one", &["6.1\nsmt on"]),
            build("two", &["6.1\nsmt on"]),
            build("three", &["6.2\nsmt on", "6.1\nsmt on"]),
            build("four", &["6.3\nsmt on"]),
            build("five", &[]),
        ];
        let [world] = &environments(&builds)[..] else { panic!("one environment") };
        assert_eq!(world.letters, ["A", "A", "B A", "C", ""]);
        let [b, c] = &world.others[..] else { panic!("two others") };
        assert_eq!((b.letter.as_str(), b.builds.as_str(), b.diffs.len()), ("B", "three", 1));
        assert_eq!(b.diffs[0].sections[0].text, "- 6.1\n+ 6.2");
        let against: Vec<&str> = c.diffs.iter().map(|diff| diff.against.as_str()).collect();
        assert_eq!(against, ["A", "B"]);
        assert_eq!(c.diffs[1].sections[0].text, "- 6.2\n+ 6.3");
    }

    #[test]
    fn a_difference_beyond_all_measure_is_cut_and_says_so() {
        let many = |word: &str| (0..500).map(|line| format!("{word} {line}\n")).collect::<String>();
        let machines = |word| vec![BTreeMap::from([("rpm".to_owned(), many(word))])];
        let diff = Diff::of(0, &machines("a"), &machines("b"));
        assert_eq!((diff.lines, diff.more), (1000, 600));
        assert_eq!(diff.sections[0].text.lines().count(), SHOWN);
    }

    #[test]
    fn letters_go_on_after_z() {
        assert_eq!([0, 25, 26, 27, 702].map(letter), ["A", "Z", "AA", "AB", "AAA"]);
    }
}
