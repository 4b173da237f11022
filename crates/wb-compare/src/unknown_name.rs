//! Names that somebody typed and that the builds do not have.

use std::collections::BTreeSet;

use crate::build::{Build, Builds};
use crate::direction::{DirectionOverride, without_worker};

/// A name that is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} `{given}` in {builds}")]
pub struct UnknownName {
    /// What it was to name: `metric`, `profile`.
    pub kind: &'static str,
    /// As it was typed.
    pub given: String,
    /// Where it was looked for.
    pub builds: String,
    /// What is there instead, sorted.
    pub candidates: BTreeSet<String>,
}

/// Whether each direction is of a metric that the builds have.
pub fn check_directions(builds: &Builds, said: &[DirectionOverride]) -> Result<(), UnknownName> {
    let metrics: BTreeSet<_> =
        builds.rows.iter().map(|row| (row.class, without_worker(builds.names.resolve(row.metric)))).collect();
    let meant = |of: &DirectionOverride| {
        metrics.iter().any(|(class, name)| *name == of.metric && of.class.is_none_or(|said| said == *class))
    };
    let Some(of) = said.iter().find(|of| !meant(of)) else { return Ok(()) };
    let named = |(class, name): &(_, &str)| if of.class.is_some() { format!("{class}/{name}") } else { (*name).into() };
    let given = of.class.map_or_else(|| of.metric.clone(), |class| format!("{class}/{}", of.metric));
    let known = metrics.iter().map(named).collect();
    Err(UnknownName { kind: "metric", given, builds: join_build_names(builds.list().iter()), candidates: known })
}

/// The builds' names, for a sentence.
pub(crate) fn join_build_names<'a>(builds: impl Iterator<Item = &'a Build>) -> String {
    builds.map(|build| format!("`{}`", build.name)).collect::<Vec<_>>().join(", ")
}
