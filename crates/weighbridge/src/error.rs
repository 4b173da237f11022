//! The errors of all commands, with one way of reporting them: message, source position, help, exit status.

use miette::{Diagnostic, SourceCode};

use wb_plan::suggestion::suggest;
use wb_session::{ErrorClass, SessionError};

use crate::console::Console;
use crate::exit::Exit;
use crate::frame::render_frame;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An invalid plan.
    #[error(transparent)]
    Plan(#[from] wb_plan::PlanError),
    /// A run folder that cannot be read or written.
    #[error(transparent)]
    Record(#[from] wb_record::RecordError),
    /// A run that failed.
    #[error(transparent)]
    Run(#[from] wb_run::RunError),
    /// A run that cannot be studied.
    #[error(transparent)]
    Study(#[from] wb_study::StudyError),
    /// A worker that failed.
    #[error(transparent)]
    Worker(#[from] wb_agent::WorkerError),
    /// A usage error with help.
    #[error("{what}")]
    Usage {
        /// The message.
        what: String,
        /// The help.
        help: String,
    },
    /// Nothing to do.
    #[error("{what}")]
    NothingToDo {
        /// The message.
        what: String,
        /// The help.
        help: String,
    },
    /// Something cannot be measured or compared as requested.
    #[error("{what}")]
    Incomplete {
        /// The message.
        what: String,
        /// The help.
        help: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Its path.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// An invalid network profile.
    #[error(transparent)]
    Profile(#[from] wb_net::language::ProfileDiagnostics),
    /// Builds that cannot be read.
    #[error(transparent)]
    Source(#[from] wb_compare::SourceError),
    /// A name that does not occur in the builds.
    #[error(transparent)]
    UnknownName(#[from] wb_compare::UnknownName),
    /// A model that cannot be used.
    #[error(transparent)]
    Model(#[from] wb_compare::model::ModelError),
    /// No nearest build could be determined.
    #[error(transparent)]
    Nearest(#[from] wb_compare::nearest::NearestError),
    /// A results folder that could not be stripped.
    #[error(transparent)]
    Strip(#[from] wb_compare::strip::StripError),
    /// Results that cannot be imported.
    #[error(transparent)]
    Import(#[from] wb_import::ImportError),
    /// An image that is not available.
    #[error(transparent)]
    Image(#[from] wb_profile::image::ImageError),
    /// A failure of the undo log.
    #[error(transparent)]
    Undo(#[from] wb_sys::undo::UndoError),
    /// A session that failed.
    #[error(transparent)]
    Session(SessionError),
    /// An internal error, or a kernel that could not be run.
    #[error("{0}")]
    Internal(String),
}

impl From<SessionError> for Error {
    /// Treats errors that other commands meet too alike, wherever they come from.
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Plan(error) => Self::Plan(error),
            SessionError::Record(error) => Self::Record(error),
            SessionError::Run(error) => Self::Run(error),
            SessionError::Study(error) => Self::Study(error),
            SessionError::Worker(error) => Self::Worker(error),
            SessionError::Source(error) => Self::Source(error),
            SessionError::Nearest(error) => Self::Nearest(error),
            SessionError::File { path, source } => Self::File { path, source },
            other => Self::Session(other),
        }
    }
}

impl Diagnostic for Error {
    fn help(&self) -> Option<Box<dyn std::fmt::Display + '_>> {
        if let Self::Source(error) = self
            && let Some(help) = source_help(error)
        {
            return Some(Box::new(help));
        }
        match self {
            Self::Plan(error) => Diagnostic::help(error),
            Self::Profile(error) => Diagnostic::help(error),
            Self::Usage { help, .. } | Self::NothingToDo { help, .. } | Self::Incomplete { help, .. } => {
                Some(Box::new(help))
            }
            Self::UnknownName(unknown) | Self::Source(wb_compare::SourceError::Unknown(unknown)) => {
                Some(Box::new(suggest_names(unknown)))
            }
            Self::Undo(wb_sys::undo::UndoError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Some(Box::new("changing system settings requires root: `sudo weighbridge tune …`"))
            }
            Self::Image(error) => error.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>),
            Self::Run(wb_run::RunError::Provision(error)) => {
                error.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
            }
            Self::Session(error) => error.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>),
            Self::Undo(wb_sys::undo::UndoError::Locked { .. }) => {
                Some(Box::new("wait for it to finish or stop it: its changes are reverted when it ends"))
            }
            Self::Undo(wb_sys::undo::UndoError::Damaged { .. }) => Some(Box::new(
                "each line has an original value as `before`: restore these values by hand, then remove the file",
            )),
            Self::Run(wb_run::RunError::Changed { .. }) => {
                Some(Box::new("choose another folder with --into: samples of two definitions cannot be combined"))
            }
            Self::Run(wb_run::RunError::OtherWorkers { .. } | wb_run::RunError::OtherMachine { .. }) => Some(Box::new(
                "choose another folder with --into for these machines; `weighbridge compare` compares both",
            )),
            Self::Run(wb_run::RunError::SameMachine { worker, other }) => Some(Box::new(format!(
                "name each machine once: remove `{worker}` or `{other}`, otherwise one machine is measured under both names"
            ))),
            Self::Run(wb_run::RunError::Redefined { .. }) => {
                Some(Box::new("choose another folder with --into, or give this test a unique `id=`"))
            }
            _ => None,
        }
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        match self {
            Self::Plan(error) => error.source_code(),
            Self::Profile(error) => error.source_code(),
            _ => None,
        }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        match self {
            Self::Plan(error) => error.labels(),
            Self::Profile(error) => error.labels(),
            _ => None,
        }
    }
}

/// Help for builds that cannot be read.
fn source_help(error: &wb_compare::SourceError) -> Option<String> {
    use wb_compare::SourceError;
    match error {
        SourceError::NoResults { path, folders } if !folders.is_empty() => {
            let paths = folders.iter().take(2).map(|folder| path.join(folder).display().to_string());
            Some(format!("name the folders themselves: `{}`", paths.collect::<Vec<_>>().join(" ")))
        }
        SourceError::Outdated { path, .. } => Some(format!(
            "`weighbridge study {0}` recomputes the results from the records (use --tests-d for folders of custom tests)",
            path.display()
        )),
        SourceError::Copy { .. } => {
            Some("measure again into another folder: only independent runs show run-to-run variation".to_owned())
        }
        SourceError::Unreadable { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            let text = path.to_str()?;
            let (name, folder) = text.split_once(':')?;
            let is_named = !name.is_empty() && !name.contains('/') && std::path::Path::new(folder).is_dir();
            is_named.then(|| format!("separate the name with `=`: `{name}={folder}`"))
        }
        _ => None,
    }
}

/// Suggests the nearest name and lists the known ones.
fn suggest_names(unknown: &wb_compare::UnknownName) -> String {
    if unknown.candidates.is_empty() {
        return format!("no {} is recorded there", unknown.kind);
    }
    let names = || unknown.candidates.iter().map(String::as_str);
    let suggestion = suggest(&unknown.given, names()).map_or(String::new(), |name| format!("did you mean `{name}`? "));
    if !suggestion.is_empty() && names().count() == 1 {
        return suggestion.trim_end().to_owned();
    }
    let listed = names().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    let more = names().count().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{suggestion}known: {listed}{more}")
}

/// Maximum number of known names in a help text.
const MAX_LISTED: usize = 12;

/// Maximum number of errors shown for one plan.
const MAX_MISTAKES: usize = 20;

/// Prints a diagnostic: message, source position and help.
fn print_diagnostic(diagnostic: &dyn Diagnostic, source: Option<&dyn SourceCode>, console: &Console) {
    let label = diagnostic.labels().and_then(|mut labels| labels.next());
    let excerpt = source.zip(label).map(|(source, label)| render_frame(source, label, console.colour_stderr));
    crate::console::write_part!("error: {diagnostic}\n{}", excerpt.unwrap_or_default());
    if let Some(help) = diagnostic.help() {
        crate::console::message!("help: {help}");
    }
}

impl Error {
    /// Prints the error as a warning, which does not end the command.
    pub(crate) fn warn(&self) {
        crate::console::message!("warning: {self}");
        if let Some(help) = self.help() {
            crate::console::message!("help: {help}");
        }
    }

    /// Prints the error and returns the exit status.
    pub(crate) fn report(&self, console: &Console) -> Exit {
        match self {
            // Print each diagnostic with its position, rather than only their number.
            Self::Profile(faults) => {
                if faults.first_diagnostics().len() < faults.diagnostics().len() {
                    crate::console::message!("error: {faults}");
                }
                faults
                    .first_diagnostics()
                    .iter()
                    .for_each(|fault| print_diagnostic(fault, self.source_code(), console));
            }
            Self::Plan(error) => {
                let all = error.diagnostics().count();
                if all > MAX_MISTAKES {
                    crate::console::message!("error: {all} mistakes; the first {MAX_MISTAKES} are shown");
                }
                let shown = error.diagnostics().take(MAX_MISTAKES);
                shown.for_each(|mistake| print_diagnostic(mistake, mistake.source_code(), console));
            }
            _ => print_diagnostic(self, self.source_code(), console),
        }
        match self {
            Self::NothingToDo { .. } => Exit::NothingToDo,
            Self::Incomplete { .. }
            | Self::Run(wb_run::RunError::Lost { .. })
            | Self::Source(wb_compare::SourceError::Records { .. } | wb_compare::SourceError::Outdated { .. }) => {
                Exit::Incomplete
            }
            Self::Session(error) => match error.class() {
                ErrorClass::Failure => Exit::Error,
                ErrorClass::Incomplete => Exit::Incomplete,
                ErrorClass::NothingToDo => Exit::NothingToDo,
                ErrorClass::Interrupted => Exit::Interrupted,
            },
            _ => Exit::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_recorded_names_only() {
        let unknown = |known: &[&str]| wb_compare::UnknownName {
            kind: "profile",
            given: "Tuned".to_owned(),
            builds: "`old`".to_owned(),
            candidates: known.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(suggest_names(&unknown(&[])), "no profile is recorded there");
        assert_eq!(suggest_names(&unknown(&["Localhost"])), "known: Localhost");
    }
}
