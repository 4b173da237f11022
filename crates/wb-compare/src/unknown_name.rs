//! Names given by the user that the builds do not have.

use std::collections::BTreeSet;

use wb_model::{MetricKey, strip_worker};

use crate::build::{Build, Builds};
use crate::direction::DirectionOverride;

/// A name that does not exist in the builds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{given}` in {builds}")]
pub struct UnknownName {
    /// The kind of name: `metric`, `profile`.
    pub kind: &'static str,
    /// The name as given.
    pub given: String,
    /// The names of the builds that were searched.
    pub builds: String,
    /// The names that exist, sorted.
    pub candidates: BTreeSet<String>,
}

/// Checks that the metric of each direction exists in the builds.
pub fn check_directions(builds: &Builds, directions: &[DirectionOverride]) -> Result<(), UnknownName> {
    let metrics: BTreeSet<_> =
        builds.rows.iter().map(|row| (row.class, strip_worker(builds.names.resolve(row.metric)))).collect();
    let exists = |of: &DirectionOverride| {
        metrics.iter().any(|(class, name)| *name == of.metric && of.class.is_none_or(|given| given == *class))
    };
    let Some(of) = directions.iter().find(|of| !exists(of)) else { return Ok(()) };
    let format_name = |class, name: &str| match of.class {
        Some(_) => MetricKey::new(class, name).to_string(),
        None => name.to_owned(),
    };
    let given = of.class.map_or_else(|| of.metric.clone(), |class| format_name(class, &of.metric));
    let candidates = metrics.iter().map(|(class, name)| format_name(*class, name)).collect();
    Err(UnknownName { kind: "metric", given, builds: join_build_names(builds.list().iter()), candidates })
}

/// Joins the builds' names for a message.
pub(crate) fn join_build_names<'a>(builds: impl Iterator<Item = &'a Build>) -> String {
    builds.map(|build| format!("`{}`", build.name)).collect::<Vec<_>>().join(", ")
}
