//! The context of a comparison: what differs between the first build and the last, beside what was measured.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunSummary;
use crate::build::{Build, Builds, InternedCell};
use crate::environment::{Environments, SectionDifference, ValueChange, changes, differences};

/// Differences that may explain others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContextDifferences {
    /// Metadata: the machine, distributions, versions, and what the user added.
    pub metadata: Vec<ValueChange>,
    /// Programs, compilers and hashes of what was built, by test, with the cells that were measured with them.
    pub programs: Vec<ValueChange>,
    /// What the machines were like, and what profiles made of them.
    pub environment: Vec<SectionDifference>,
}

/// What differs between any two builds, and explains nothing.
const EXPECTED_DIFFERENCES: [&str; 5] = ["build", "url", "started", "command", "machine url"];

impl ContextDifferences {
    pub(super) fn of(builds: &Builds) -> Self {
        let [src, .., dst] = builds.list() else { return Self::default() };
        Self {
            metadata: changes(&metadata(src), &metadata(dst)),
            programs: programs(builds, [src, dst]),
            environment: differences(&environments(src), &environments(dst)),
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.programs.is_empty() && self.environment.is_empty()
    }
}

fn environments(build: &Build) -> Vec<&Environments> {
    build.runs.iter().map(|run| &run.metadata.environment).collect()
}

fn metadata(build: &Build) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let values = build.runs.iter().flat_map(|run| RunSummary::of(run).metadata);
    for (name, value) in values.filter(|(name, _)| !EXPECTED_DIFFERENCES.contains(&name.as_str())) {
        all.entry(name).or_default().insert(value);
    }
    all
}

/// The programs of cells that both builds have; equal changes of several cells of a test are one.
fn programs(builds: &Builds, [src, dst]: [&Build; 2]) -> Vec<ValueChange> {
    let text = |name| builds.names.resolve(name);
    let values = |build: &Build, cell: InternedCell| {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, value) in build.runs.iter().filter_map(|run| run.programs.get(&cell)).flatten() {
            all.entry(text(*name).to_owned()).or_default().insert(text(*value).to_owned());
        }
        all
    };
    let cells = |build: &Build| build.runs.iter().flat_map(|run| run.programs.keys().copied()).collect::<BTreeSet<_>>();
    let mut all: BTreeMap<(String, Option<String>, Option<String>), Vec<String>> = BTreeMap::new();
    for cell in cells(src).intersection(&cells(dst)) {
        let InternedCell { profile, test, serial, case } = *cell;
        let id = format!("{}/{}/{}:{}", text(profile), text(test), text(serial), text(case));
        for ValueChange { name, before: src, after: dst, .. } in changes(&values(src, *cell), &values(dst, *cell)) {
            all.entry((format!("{}: {name}", text(test)), src, dst)).or_default().push(id.clone());
        }
    }
    let of_cells =
        all.into_iter().map(|((name, src, dst), cells)| ValueChange { name, before: src, after: dst, cells });
    program_change([src, dst]).into_iter().chain(of_cells).collect()
}

/// The program that measured: its version alone does not tell two builds of it apart.
fn program_change(sides: [&Build; 2]) -> Option<ValueChange> {
    let hashes = |build: &Build| {
        let hashes = build.runs.iter().filter_map(|run| run.metadata.program_sha256.clone());
        hashes.collect::<BTreeSet<String>>()
    };
    let named = |build: &Build| BTreeMap::from([("weighbridge sha256".to_owned(), hashes(build))]);
    let [src, dst] = sides.map(named);
    let has_hash = |side: &BTreeMap<String, BTreeSet<String>>| side.values().all(|hashes| !hashes.is_empty());
    (has_hash(&src) && has_hash(&dst)).then(|| changes(&src, &dst).pop()).flatten()
}
