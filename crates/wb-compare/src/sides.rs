//! Whether builds can be the sides of a comparison.

use std::path::PathBuf;

use crate::build::{Build, Builds, Layout};
use crate::source::BuildSource;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SidesError {
    #[error("too few builds: expected two or more")]
    TooFew,
    #[error("duplicate build name `{0}`")]
    DuplicateName(String),
    /// Sides with a run in common are not independent.
    #[error("{0}")]
    CommonRun(CommonRun),
    #[error(
        "`{}` is {} and `{}` is {}: they name their checks differently and have none in common",
        names[0], layouts[0], names[1], layouts[1]
    )]
    DifferentLayouts { names: [String; 2], layouts: [Layout; 2] },
}

/// A run of both sides: its folder on each, which differ for copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonRun(pub [PathBuf; 2]);

impl std::fmt::Display for CommonRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self([one, other]) = self;
        if one == other {
            write!(f, "{} is on both sides", one.display())
        } else {
            write!(f, "{} and {} are one run, or imports of one file", one.display(), other.display())
        }
    }
}

impl SidesError {
    pub fn help(&self) -> &'static str {
        match self {
            Self::TooFew => "the first build is the reference, the last one is judged; --by compares parts of one run",
            Self::DuplicateName(_) => "give each build a unique name: NAME=RUN",
            Self::CommonRun(_) => "give each run to one build alone",
            Self::DifferentLayouts { .. } => "measure all builds with `weighbridge run`, or all with run-perf",
        }
    }

    /// Whether the builds have nothing to compare, which is no mistake in the command line.
    pub fn is_nothing_comparable(&self) -> bool {
        matches!(self, Self::DifferentLayouts { .. })
    }
}

pub fn require_two(builds: &[String]) -> Result<&[String], SidesError> {
    match builds {
        [] | [_] => Err(SidesError::TooFew),
        builds => Ok(builds),
    }
}

/// Names builds by their full paths if their folders have the same name. Fails if `typed`, the arguments, give two
/// builds the same name.
pub fn make_names_distinct(sources: &mut [BuildSource], typed: &[String]) -> Result<(), SidesError> {
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    for (source, text) in sources.iter_mut().zip(typed) {
        let is_duplicate = names.iter().filter(|name| **name == source.name).count() > 1;
        if is_duplicate && text.starts_with(&format!("{}=", source.name)) {
            return Err(SidesError::DuplicateName(source.name.clone()));
        }
        if is_duplicate {
            source.name.clone_from(text);
        }
    }
    Ok(())
}

impl Builds {
    /// A run that the first build and the last both consist of. Fails if they share one and a side has other runs too.
    pub fn common_run(&self) -> Result<Option<CommonRun>, SidesError> {
        let [reference, .., judged] = self.list() else { return Ok(None) };
        let Some(paths) = reference.common_runs(judged).next() else { return Ok(None) };
        let common = CommonRun(paths.map(std::path::Path::to_owned));
        if (reference.runs.len(), judged.runs.len()) == (1, 1) {
            Ok(Some(common))
        } else {
            Err(SidesError::CommonRun(common))
        }
    }

    /// Refuses to mix runs of this program with results of run-perf, if the first build and another one with another
    /// layout have no check in common.
    pub fn require_same_layout(&self) -> Result<(), SidesError> {
        let has = |build: &Build, row| build.readings(row).next().is_some();
        let layout = |build: &Build| build.runs.first().map(|run| run.layout);
        let [first, others @ ..] = self.list() else { return Ok(()) };
        let is_disjoint = |other: &&Build| {
            layout(first) != layout(other) && !self.rows().any(|row| has(first, row) && has(other, row))
        };
        let Some(other) = others.iter().find(is_disjoint) else { return Ok(()) };
        let (Some(one), Some(another)) = (layout(first), layout(other)) else { return Ok(()) };
        let names = [first, other].map(|build| build.name.clone());
        Err(SidesError::DifferentLayouts { names, layouts: [one, another] })
    }
}
