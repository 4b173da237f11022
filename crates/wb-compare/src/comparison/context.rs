//! The context of a comparison: differences between the first and the last build that may explain those of the metrics.

use std::collections::{BTreeMap, BTreeSet};

use wb_results::comparison::{ContextDifferences, Environments, ValueChange};

use super::builds::summarize_run;
use crate::Metadata;
use crate::build::{Build, Builds, InternedCell};
use crate::environment::{Values, changes, differences};

/// Names of metadata that always differ between builds and explain nothing.
const EXPECTED_DIFFERENCES: [&str; 5] = ["build", "url", "started", "command", "machine url"];

/// The differences between the first and the last build; none with a single build.
pub(super) fn context_differences(builds: &Builds) -> ContextDifferences {
    let [first, .., last] = builds.list() else { return ContextDifferences::default() };
    ContextDifferences {
        metadata: changes(&metadata(first), &metadata(last)),
        programs: program_changes(builds, [first, last]),
        environment: differences(&environments(first), &environments(last)),
    }
}

fn environments(build: &Build) -> Vec<&Environments> {
    build.runs.iter().map(|run| &run.metadata.environment).collect()
}

/// By name, with the values of all runs.
fn metadata(build: &Build) -> Values {
    let mut metadata = Values::new();
    let pairs = build.runs.iter().flat_map(|run| summarize_run(run).metadata);
    for (name, value) in pairs.filter(|(name, _)| !EXPECTED_DIFFERENCES.contains(&name.as_str())) {
        metadata.entry(name).or_default().insert(value);
    }
    metadata
}

/// The program differences of cells that both builds have, and of weighbridge; equal changes in a test are merged.
fn program_changes(builds: &Builds, [first, last]: [&Build; 2]) -> Vec<ValueChange> {
    let resolve = |name| builds.names.resolve(name);
    let programs = |build: &Build, cell: InternedCell| {
        let mut programs = Values::new();
        for (name, value) in build.runs.iter().filter_map(|run| run.programs.get(&cell)).flatten() {
            programs.entry(resolve(*name).to_owned()).or_default().insert(resolve(*value).to_owned());
        }
        programs
    };
    let cells = |build: &Build| build.runs.iter().flat_map(|run| run.programs.keys().copied()).collect::<BTreeSet<_>>();
    let mut cells_by_change: BTreeMap<(String, Option<String>, Option<String>), Vec<String>> = BTreeMap::new();
    for cell in cells(first).intersection(&cells(last)) {
        let InternedCell { profile, test, serial, case } = *cell;
        let id = format!("{}/{}/{}:{}", resolve(profile), resolve(test), resolve(serial), resolve(case));
        for ValueChange { name, before, after, .. } in changes(&programs(first, *cell), &programs(last, *cell)) {
            let change = (format!("{}: {name}", resolve(test)), before, after);
            cells_by_change.entry(change).or_default().push(id.clone());
        }
    }
    let of_cells =
        cells_by_change.into_iter().map(|((name, before, after), cells)| ValueChange { name, before, after, cells });
    own_binary_changes([first, last]).chain(of_cells).collect()
}

/// The changes of weighbridge's own binaries: their version alone does not distinguish two builds of them. None of a
/// binary of which a build has no hash.
fn own_binary_changes(builds: [&Build; 2]) -> impl Iterator<Item = ValueChange> {
    let weighbridge = own_binary_change(builds, "weighbridge sha256", |metadata| metadata.program_sha256.clone());
    let agent = own_binary_change(builds, "weighbridge-agent sha256", |metadata| metadata.agent_sha256.clone());
    weighbridge.into_iter().chain(agent)
}

fn own_binary_change(
    builds: [&Build; 2],
    name: &str,
    hash: impl Fn(&Metadata) -> Option<String>,
) -> Option<ValueChange> {
    let [before, after] =
        builds.map(|build| build.runs.iter().filter_map(|run| hash(&run.metadata)).collect::<BTreeSet<String>>());
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let by_name = |hashes| Values::from([(name.to_owned(), hashes)]);
    changes(&by_name(before), &by_name(after)).pop()
}
