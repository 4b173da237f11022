use std::path::{Path, PathBuf};

use wb_diagnostics::{Diagnostic, Diagnostics};
use wb_profile::{ProfileCatalogError, ProfileSelectionError};

use crate::bisect::BisectError;
use crate::hosts::HostError;
use crate::variants::VariantsError;
use crate::worker_program::WorkerProgramError;

/// An error that ends a session, or that it reports as a warning.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Errors in a plan, an inventory, a profile, a definition, or an argument.
    #[error(transparent)]
    Text(#[from] Diagnostics),
    #[error(transparent)]
    Record(#[from] wb_record::RecordError),
    #[error(transparent)]
    Run(#[from] wb_run::RunError),
    #[error(transparent)]
    Study(#[from] wb_study::StudyError),
    #[error(transparent)]
    Worker(#[from] wb_agent::WorkerError),
    #[error(transparent)]
    Contention(#[from] wb_contention_worker::ContentionError),
    #[error(transparent)]
    Source(#[from] wb_compare::SourceError),
    #[error(transparent)]
    Nearest(#[from] wb_compare::run_perf::nearest::NearestError),
    #[error("cannot {operation} {subject}: {source}")]
    File {
        /// The operation: `read`, `write`, `run`.
        operation: &'static str,
        /// Its path in backticks, or what it is.
        subject: String,
        source: std::io::Error,
    },
    #[error(transparent)]
    WorkerProgram(#[from] WorkerProgramError),
    #[error(transparent)]
    Fleet(#[from] wb_fleet::FleetError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Reboot(#[from] wb_profile::reboot::RebootError),
    #[error(transparent)]
    InvalidProfile(ProfileSelectionError),
    #[error(transparent)]
    ProfileNotApplied(#[from] wb_profile::ProfileError),
    #[error("`{host}`: {still}")]
    StillChanged { host: wb_model::WorkerName, still: wb_agent::UnrevertedChanges },
    #[error(transparent)]
    Provisioner(#[from] wb_profile::provision::ParseProvisionerError),
    #[error(transparent)]
    Script(#[from] wb_profile::script::ReadScriptError),
    #[error(transparent)]
    Definition(wb_declarative::DefinitionError),
    #[error("{}: {reason}", .path.display())]
    KnobSet { path: PathBuf, reason: String },
    #[error(transparent)]
    Secret(#[from] crate::secrets::SecretError),
    #[error("no such program: `{0}`, which would publish the run")]
    NoPublisher(String),
    /// A selection that names a parameter or a value which no cell has.
    #[error("{message}")]
    UnmatchedSelection {
        message: String,
        /// What the cells have instead.
        help: String,
    },
    #[error("{}", describe_empty_plan(.patterns, *.skipped))]
    EmptyPlan {
        plan: String,
        /// The patterns of which a cell must match one.
        patterns: Vec<String>,
        /// Number of excluded cells.
        skipped: usize,
    },
    #[error("{} holds another plan: `{recorded}`, not `{requested}`", .folder.display())]
    OtherPlan {
        folder: PathBuf,
        /// The plan in the folder.
        recorded: String,
        requested: String,
    },
    #[error("`{command}` measures in one profile, but {profiles} were given")]
    SeveralProfiles { command: &'static str, profiles: usize },
    #[error("{} was measured with a different definition of profile `{profile}`", .folder.display())]
    RedefinedProfile { folder: PathBuf, profile: wb_model::ProfileName },
    #[error("cannot record the profile: {0}")]
    UnrecordableProfile(#[source] serde_json::Error),
    #[error("interrupted before anything was measured")]
    Interrupted {
        folder: PathBuf,
        /// Whether the user gave the folder with `--into`.
        is_folder_given: bool,
    },
    #[error(transparent)]
    Bisect(#[from] BisectError),
    #[error(transparent)]
    Variants(#[from] VariantsError),
}

impl From<ProfileSelectionError> for SessionError {
    /// Keeps the source position of an error in a profile's file.
    fn from(error: ProfileSelectionError) -> Self {
        match error {
            ProfileSelectionError::Profile(ProfileCatalogError::Text(error)) => error.into(),
            other => Self::InvalidProfile(other),
        }
    }
}

impl From<Diagnostic> for SessionError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Text(diagnostic.into())
    }
}

/// What an error means for the command that it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// An invalid request, or a failure.
    Failure,
    /// Something could not be measured as requested.
    Incomplete,
    NothingToDo,
    Interrupted,
}

impl SessionError {
    /// For `map_err`: the error of an operation on a file or program.
    pub(crate) fn file(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Self::File { operation, subject: format!("`{}`", path.display()), source }
    }

    pub fn class(&self) -> ErrorClass {
        match self {
            Self::EmptyPlan { .. } | Self::UnmatchedSelection { .. } => ErrorClass::NothingToDo,
            Self::Run(wb_run::RunError::Lost { .. }) | Self::Host(HostError::NoneLeft) => ErrorClass::Incomplete,
            Self::Bisect(error) if error.is_incomplete() => ErrorClass::Incomplete,
            Self::Variants(VariantsError::Evaluation { .. }) => ErrorClass::Incomplete,
            Self::Interrupted { .. } => ErrorClass::Interrupted,
            _ => ErrorClass::Failure,
        }
    }

    /// How to resolve the error, if this crate knows; errors of other crates that have no help of their own have none.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Record(error)
            | Self::Run(wb_run::RunError::Record(error))
            | Self::Study(wb_study::StudyError::Record(error)) => return error.help().map(str::to_owned),
            Self::Fleet(error) => return error.help(),
            Self::Host(error) => error.help(),
            Self::Reboot(error) => return error.help(),
            Self::InvalidProfile(error) => return error.help(),
            Self::ProfileNotApplied(error) => return error.help(),
            Self::StillChanged { still, .. } => still.help(),
            Self::Secret(error) => error.help(),
            Self::Bisect(error) => return error.help(),
            Self::Variants(error) => return error.help(),
            Self::UnmatchedSelection { help, .. } => return Some(help.clone()),
            Self::WorkerProgram(error) => return Some(error.help()),
            Self::EmptyPlan { skipped: 0, .. } => {
                "add a test: `[[test]]` with `name = \"himeno\"`; `weighbridge list` shows all tests"
            }
            Self::EmptyPlan { plan, skipped, .. } => {
                return Some(format!("`weighbridge plan {plan}` without --select and --ignore lists all {skipped}"));
            }
            Self::SeveralProfiles { command, .. } => return Some(format!("run `{command}` once for each profile")),
            Self::Provisioner(_) | Self::Script(_) => "see docs/profiles.md",
            Self::Definition(wb_declarative::DefinitionError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                "name an existing folder"
            }
            Self::Definition(wb_declarative::DefinitionError::Record(error)) => return error.help().map(str::to_owned),
            Self::Definition(_) => crate::definitions::HELP,
            Self::KnobSet { .. } => {
                "a set has a `summary` and, under [knobs], one value per knob; docs/tune.md lists the knobs"
            }
            Self::NoPublisher(_) => "name a file, or a program on the PATH of this machine",
            Self::OtherPlan { .. } => {
                "choose another folder with --into; the plan of a folder is fixed before its first sample"
            }
            Self::RedefinedProfile { .. } => {
                "choose another folder with --into, or save this profile in a file under another name"
            }
            _ => return None,
        };
        Some(help.to_owned())
    }
}

fn describe_empty_plan(patterns: &[String], skipped: usize) -> String {
    if skipped == 0 { "the plan has no test".to_owned() } else { describe_empty_selection(patterns) }
}

/// Describes a selection that no cell of several is part of; `patterns` are those of `--select`.
pub fn describe_empty_selection(patterns: &[String]) -> String {
    if patterns.is_empty() {
        return "--ignore excludes every cell".to_owned();
    }
    let patterns = patterns.iter().map(|glob| format!("`{glob}`")).collect::<Vec<_>>().join(", ");
    format!("no cell matches {patterns}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_plans_name_what_excludes_all_cells() {
        let error = |patterns: &[&str], skipped| {
            let patterns = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            SessionError::EmptyPlan { plan: "quick".to_owned(), patterns, skipped }
        };
        assert_eq!(error(&[], 0).to_string(), "the plan has no test");
        assert_eq!(error(&[], 2).to_string(), "--ignore excludes every cell");
        let unmatched = error(&["a*", "b"], 2);
        assert_eq!(unmatched.to_string(), "no cell matches `a*`, `b`");
        assert_eq!(unmatched.class(), ErrorClass::NothingToDo);
        let help = unmatched.help().unwrap_or_default();
        assert_eq!(help, "`weighbridge plan quick` without --select and --ignore lists all 2");
    }
}
