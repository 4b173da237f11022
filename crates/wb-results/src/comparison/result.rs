//! The result of a comparison.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BuildSummary, CheckGroupResult, CheckResult, ComparisonMethod, ContextDifferences, Totals, WithinRunSummary,
};

/// The result of a comparison of the last build with the first; the builds in between are history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonResult {
    /// The builds: first the reference, last the one to judge.
    pub builds: Vec<BuildSummary>,
    /// What the builds are, if they are parts of one run: the reference, and all that is compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_run: Option<WithinRunSummary>,
    /// The requested method. `None`: statistics for recorded and imported runs, and wherever a noise model applies; tolerances
    /// for run-perf's folders.
    pub method: Option<ComparisonMethod>,
    /// All checks, in the builds' order.
    pub checks: Vec<CheckResult>,
    /// Groups of primary means, compared by the tolerance method.
    pub groups: Vec<CheckGroupResult>,
    /// Other differences between the first build and the last: metadata, environments, programs.
    pub context: ContextDifferences,
    /// The number of checks by verdict.
    pub totals: Totals,
    /// The exit code of the program: 0 no regression, 2 regression, 3 something missing, invalid or ended in an error, 4 (and
    /// not 3) if no primary check has a value on both sides and no test ended in an error.
    pub exit_code: u8,
    /// The methods that found a regression; empty unless the exit code is 2.
    pub regressed_by: Vec<ComparisonMethod>,
}

impl ComparisonResult {
    /// The errors of the first build and the last, each with the name of the build (or of the parts of a run that have
    /// it), place and message.
    pub fn errors(&self) -> impl Iterator<Item = (String, &str, &str)> {
        let ends = match &self.builds[..] {
            [first, .., last] => vec![(0, first), (1, last)],
            one => one.iter().map(|build| (1, build)).collect(),
        };
        ends.into_iter().flat_map(move |(side, build)| {
            build.errors.iter().map(move |(location, message)| {
                let parts = self.parts_with(location, side);
                let name = if parts.is_empty() { build.name.clone() } else { parts.join(", ") };
                (name, location.as_str(), message.as_str())
            })
        })
    }

    /// The parts of a run that a place belongs to, of one side of its checks; none between builds.
    fn parts_with(&self, location: &str, side: usize) -> Vec<&str> {
        let Some(within_run) = &self.within_run else { return Vec::new() };
        let is_there =
            |check: &&CheckResult| check.id.strip_prefix(location).is_some_and(|rest| rest.starts_with(['/', ':']));
        let sides = self.checks.iter().filter(is_there).filter_map(|check| check.sides.as_ref());
        let mut seen = BTreeSet::new();
        let parts = sides.map(|sides| sides[side].as_str()).filter(|part| seen.insert(*part));
        let mut parts: Vec<&str> = parts.collect();
        // A cell without a counterpart is part of no side.
        if parts.is_empty() {
            parts.push(if side == 0 { &within_run.reference } else { &within_run.run });
        }
        parts
    }
}
