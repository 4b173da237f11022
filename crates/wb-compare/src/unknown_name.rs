//! Names given by the user that the builds do not have.

use std::collections::BTreeSet;

use wb_diagnostics::{help_with_suggestion, suggest};
use wb_model::{MetricKey, strip_worker};
use wb_results::comparison::Statistic;

use crate::build::{Build, Builds};
use crate::direction::DirectionOverride;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{name}` in {builds}")]
pub struct UnknownName {
    /// `metric`, `profile`.
    pub kind: &'static str,
    pub name: String,
    pub builds: String,
    pub candidates: BTreeSet<String>,
}

const MAX_LISTED: usize = 12;

impl UnknownName {
    pub fn help(&self) -> String {
        let Self { kind, name, candidates, .. } = self;
        if candidates.is_empty() {
            return format!("no {kind} is recorded there");
        }
        let suggestion = suggest(name, candidates);
        if let Some(only) = suggestion.as_ref().filter(|_| candidates.len() == 1) {
            return only.to_string();
        }
        let listed = candidates.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = candidates.len().saturating_sub(MAX_LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        help_with_suggestion(suggestion.as_ref(), &format!("expected one of {listed}{more}"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricNameError {
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    #[error("ambiguous metric `{name}`: it is in several classes")]
    Ambiguous {
        name: String,
        /// As `CLASS/METRIC`.
        metrics: Vec<String>,
    },
}

impl MetricNameError {
    pub fn help(&self) -> String {
        match self {
            Self::Unknown(unknown) => unknown.help(),
            Self::Ambiguous { metrics, .. } => format!("expected one of {}", metrics.join(", ")),
        }
    }
}

/// `text` is `CLASS/METRIC`, or the name alone.
pub(crate) fn find_metric(builds: &Builds, text: &str) -> Result<MetricKey, MetricNameError> {
    let keys = builds.rows().map(|row| builds.id(row, Statistic::Mean)).map(|id| MetricKey::new(id.class, id.metric));
    let keys: BTreeSet<MetricKey> = keys.collect();
    if let Some(key) = keys.iter().find(|key| key.to_string() == text) {
        return Ok(key.clone());
    }
    let named: Vec<&MetricKey> = keys.iter().filter(|key| key.name == text).collect();
    match named[..] {
        [key] => Ok(key.clone()),
        [] => {
            let name = |key: &MetricKey| if text.contains('/') { key.to_string() } else { key.name.clone() };
            let (candidates, builds) = (keys.iter().map(name).collect(), join_build_names(builds.list().iter()));
            Err(UnknownName { kind: "metric", name: text.to_owned(), builds, candidates }.into())
        }
        _ => {
            let metrics = named.into_iter().map(ToString::to_string).collect();
            Err(MetricNameError::Ambiguous { name: text.to_owned(), metrics })
        }
    }
}

pub fn check_directions(builds: &Builds, directions: &[DirectionOverride]) -> Result<(), UnknownName> {
    let metrics: BTreeSet<_> =
        builds.rows.iter().map(|row| (row.class, strip_worker(builds.names.resolve(row.metric)))).collect();
    let exists = |of: &DirectionOverride| {
        metrics.iter().any(|(class, name)| *name == of.metric && of.class.is_none_or(|required| required == *class))
    };
    let Some(of) = directions.iter().find(|of| !exists(of)) else { return Ok(()) };
    let format_name = |class, name: &str| match of.class {
        Some(_) => MetricKey::new(class, name).to_string(),
        None => name.to_owned(),
    };
    let name = of.class.map_or_else(|| of.metric.clone(), |class| format_name(class, &of.metric));
    let candidates = metrics.iter().map(|(class, name)| format_name(*class, name)).collect();
    Err(UnknownName { kind: "metric", name, builds: join_build_names(builds.list().iter()), candidates })
}

pub(crate) fn join_build_names<'a>(builds: impl Iterator<Item = &'a Build>) -> String {
    builds.map(|build| format!("`{}`", build.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_recorded_names_only() {
        let unknown = |known: &[&str]| UnknownName {
            kind: "profile",
            name: "Tuned".to_owned(),
            builds: "`old`".to_owned(),
            candidates: known.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(unknown(&[]).help(), "no profile is recorded there");
        assert_eq!(unknown(&["Localhost"]).help(), "expected one of Localhost");
        assert_eq!(unknown(&["TunedHost"]).help(), "did you mean `TunedHost`?");
        assert_eq!(
            unknown(&["Localhost", "TunedHost"]).help(),
            "did you mean `TunedHost`? expected one of Localhost, TunedHost"
        );
    }
}
