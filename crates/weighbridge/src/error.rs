//! The errors of all commands, with one way of reporting them: message, source position, help, exit status.

use std::borrow::Cow;
use std::path::Path;

use wb_agent::WorkerError;
use wb_compare::SourceError;
use wb_compare::run_perf::nearest::NearestError;
use wb_diagnostics::{Diagnostic, Diagnostics, render_excerpt};
use wb_record::RecordError;
use wb_run::RunError;
use wb_session::{ErrorClass, SessionError};
use wb_study::StudyError;

use crate::cli::OutputPath;
use crate::console::Console;
use crate::exit::Exit;
use crate::session_events::resume_command;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{what}")]
    Usage { what: String, help: String },
    #[error("{what}")]
    NothingToDo { what: String, help: String },
    /// Something cannot be measured or compared as requested.
    #[error("{what}")]
    Incomplete { what: String, help: String },
    #[error("cannot {operation} {subject}: {source}")]
    File {
        /// The operation: `read`, `write`, `create`.
        operation: &'static str,
        /// Its path in backticks, or the name of the stream.
        subject: String,
        source: std::io::Error,
    },
    #[error(transparent)]
    Profile(#[from] wb_net_profile::ProfileDiagnostics),
    #[error(transparent)]
    UnknownName(#[from] wb_compare::UnknownName),
    #[error(transparent)]
    MetricName(#[from] wb_compare::MetricNameError),
    #[error(transparent)]
    Sides(#[from] wb_compare::SidesError),
    #[error(transparent)]
    NothingComparable(#[from] wb_compare::NothingComparable),
    #[error(transparent)]
    WithinRun(#[from] wb_compare::WithinRunError),
    #[error(transparent)]
    Model(#[from] wb_compare::model::ModelError),
    #[error(transparent)]
    Strip(#[from] wb_compare::run_perf::strip::StripError),
    /// Results that cannot be imported, and why: the error itself would link every reader into the agent's program.
    #[error("{0}")]
    Import(String),
    #[error(transparent)]
    Archive(wb_archive::ArchiveError),
    #[error("{subject}{source}")]
    Unpack {
        /// The archive and a colon, or empty.
        subject: String,
        source: wb_archive::UnpackError,
    },
    #[error(transparent)]
    Image(#[from] wb_profile::image::ImageError),
    #[error(transparent)]
    Hashd(#[from] wb_hashd::HashdError),
    #[error(transparent)]
    Sequence(wb_contention::execute::SequenceError),
    #[error(transparent)]
    Merge(wb_contention::merge::MergeError),
    #[error(transparent)]
    Machine(#[from] wb_contention::machine::MachineError),
    #[error(transparent)]
    Sizing(#[from] wb_hashd::sizing::SizingError),
    #[error(transparent)]
    SizingJournal(#[from] wb_hashd::sizing::JournalError),
    #[error(transparent)]
    Undo(#[from] wb_sys::undo::UndoError),
    /// A session that failed, or an error that sessions meet too.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// An internal error, or a kernel that could not be run.
    #[error("{0}")]
    Internal(String),
}

/// Converts errors that sessions meet, too, into [`SessionError`], wherever they come from.
macro_rules! session_errors {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Session(error.into())
            }
        })+
    };
}

session_errors! {
    Diagnostic, Diagnostics, RecordError, RunError, StudyError, WorkerError, SourceError, NearestError,
}

impl From<wb_contention::execute::SequenceError> for Error {
    fn from(error: wb_contention::execute::SequenceError) -> Self {
        match error {
            wb_contention::execute::SequenceError::Record(error) => error.into(),
            wb_contention::execute::SequenceError::Schedule(error) => {
                Self::Usage { what: error.to_string(), help: "give each its own: `id=NAME`".to_owned() }
            }
            other => Self::Sequence(other),
        }
    }
}

impl From<wb_contention::merge::MergeError> for Error {
    fn from(error: wb_contention::merge::MergeError) -> Self {
        match error {
            wb_contention::merge::MergeError::Record(error) => error.into(),
            other => Self::Merge(other),
        }
    }
}

impl From<wb_import::ImportError> for Error {
    fn from(error: wb_import::ImportError) -> Self {
        match error {
            wb_import::ImportError::Record(error) => error.into(),
            other => Self::Import(other.to_string()),
        }
    }
}

impl From<wb_archive::ArchiveError> for Error {
    fn from(error: wb_archive::ArchiveError) -> Self {
        match error {
            wb_archive::ArchiveError::Record(error) => error.into(),
            other => Self::Archive(other),
        }
    }
}

impl Error {
    /// For `map_err`.
    pub(crate) fn file(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Self::File { operation, subject: format!("`{}`", path.display()), source }
    }

    pub(crate) fn stream(name: &str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::File { operation: "write", subject: name.to_owned(), source }
    }

    pub(crate) fn output(path: &OutputPath) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| {
            if path.is_standard_output() {
                Self::stream("standard output")(source)
            } else {
                Self::file("write", path.as_path())(source)
            }
        }
    }

    fn help(&self) -> Option<Cow<'_, str>> {
        use wb_sys::undo::UndoError;
        Some(match self {
            Self::Session(SessionError::Text(errors)) => errors.as_slice().first()?.help()?.into(),
            Self::Profile(errors) => match errors.diagnostics() {
                [only] => only.help()?.into(),
                _ => return None,
            },
            Self::Usage { help, .. } | Self::NothingToDo { help, .. } | Self::Incomplete { help, .. } => help.into(),
            Self::UnknownName(unknown) | Self::Session(SessionError::Source(SourceError::Unknown(unknown))) => unknown.help().into(),
            Self::MetricName(error) => error.help().into(),
            Self::Session(SessionError::Source(error)) => source_help(error)?.into(),
            Self::Undo(UndoError::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "changing system settings requires root: `sudo weighbridge tune …`".into()
            }
            Self::Undo(UndoError::Locked { .. }) => {
                "wait for it to finish or stop it: its changes are reverted when it ends".into()
            }
            Self::Undo(UndoError::Damaged { .. }) => {
                "each line has an original value as `before`: restore these values by hand, then remove the file".into()
            }
            Self::Sides(error) => error.help().into(),
            Self::NothingComparable(error) => error.help().into(),
            Self::WithinRun(error) => error.help()?.into(),
            Self::Model(error) => error.help()?.into(),
            Self::Archive(error) => error.help()?.into(),
            Self::Unpack { source, .. } => source.help()?.into(),
            Self::Image(error) => error.help()?.into(),
            Self::Sequence(error) => error.help()?.into(),
            Self::Machine(error) => error.help().into(),
            Self::Hashd(error) | Self::Sizing(wb_hashd::sizing::SizingError::Workload(error)) => error.help()?.into(),
            Self::SizingJournal(wb_hashd::sizing::JournalError::OtherConfig { .. }) => {
                "remove it to begin anew, or choose another file".into()
            }
            Self::Session(SessionError::Interrupted { folder, is_folder_given }) => {
                format!("to resume: {}", resume_command(folder, *is_folder_given)).into()
            }
            Self::Session(SessionError::Run(RunError::Provision(error))) => error.help()?.into(),
            Self::Session(SessionError::Run(RunError::Changed { .. })) => {
                "choose another folder with --into: samples of two definitions cannot be combined".into()
            }
            Self::Session(SessionError::Run(RunError::OtherWorkers { .. } | RunError::OtherMachine { .. })) => {
                "choose another folder with --into for these machines; `weighbridge compare` compares both".into()
            }
            Self::Session(SessionError::Run(RunError::ChangedMachine { .. })) => {
                "choose another folder with --into, restore the machine, or give the values that the test takes from it".into()
            }
            Self::Session(SessionError::Run(RunError::SameMachine { worker, other })) => format!(
                "name each machine once: remove `{worker}` or `{other}`, otherwise one machine is measured under both names; {}",
                wb_fleet::SEPARATE_HOSTS
            )
            .into(),
            Self::Session(SessionError::Run(RunError::Redefined { .. })) => {
                "choose another folder with --into, or give this test a unique `id=`".into()
            }
            Self::Session(error) => error.help()?.into(),
            _ => return None,
        })
    }
}

fn source_help(error: &SourceError) -> Option<String> {
    match error {
        SourceError::NoResults { path, folders, .. } if !folders.is_empty() => {
            let paths = folders.iter().take(2).map(|folder| path.join(folder).display().to_string());
            Some(format!("name the folders themselves: `{}`", paths.collect::<Vec<_>>().join(" ")))
        }
        SourceError::Outdated { path, .. } => Some(format!(
            "`weighbridge study {0}` recomputes the results from the records (use --tests-d for folders of custom tests)",
            path.display()
        )),
        SourceError::Records { source, .. } => source.help().map(str::to_owned),
        SourceError::Copy { .. } => {
            Some("measure again into another folder: only independent runs show run-to-run variation".to_owned())
        }
        SourceError::Unreadable { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            let text = path.to_str()?;
            let (name, folder) = text.split_once(':')?;
            let is_named = !name.is_empty() && !name.contains('/') && Path::new(folder).is_dir();
            is_named.then(|| format!("separate the name with `=`: `{name}={folder}`"))
        }
        _ => None,
    }
}

/// Maximum number of errors shown for one plan.
const MAX_MISTAKES: usize = 20;

pub(crate) fn print_error(message: &str, excerpt: &str, help: Option<&str>) {
    crate::console::write_part!("error: {message}\n{excerpt}");
    if let Some(help) = help {
        crate::console::message!("help: {help}");
    }
}

fn print_diagnostic(diagnostic: &Diagnostic, console: &Console) {
    let excerpt = render_excerpt(diagnostic, console.colour_stderr);
    print_error(diagnostic.message(), &excerpt, diagnostic.help());
}

impl Error {
    /// Prints the error as a warning, which does not end the command.
    pub(crate) fn warn(&self) {
        crate::console::message!("warning: {self}");
        if let Some(help) = self.help() {
            crate::console::message!("help: {help}");
        }
    }

    pub(crate) fn report(&self, console: &Console) -> Exit {
        match self {
            // Print each diagnostic with its position, rather than only their number.
            Self::Profile(errors) => {
                if errors.first_diagnostics().len() < errors.diagnostics().len() {
                    crate::console::message!("error: {errors}");
                }
                errors.first_diagnostics().iter().for_each(|error| print_diagnostic(error, console));
            }
            Self::Session(SessionError::Text(errors)) => {
                let all = errors.as_slice().len();
                if all > MAX_MISTAKES {
                    crate::console::message!("error: {all} mistakes; the first {MAX_MISTAKES} are shown");
                }
                errors.as_slice().iter().take(MAX_MISTAKES).for_each(|error| print_diagnostic(error, console));
            }
            _ => print_error(&self.to_string(), "", self.help().as_deref()),
        }
        match self {
            Self::NothingToDo { .. } | Self::NothingComparable(_) | Self::Merge(_) => Exit::NothingToDo,
            Self::Sides(error) if error.is_nothing_comparable() => Exit::NothingToDo,
            Self::WithinRun(error) if error.is_nothing_comparable() => Exit::NothingToDo,
            Self::Sequence(error) if error.is_interruption() => Exit::Interrupted,
            Self::Incomplete { .. }
            | Self::Sequence(_)
            | Self::Session(SessionError::Source(SourceError::Records { .. } | SourceError::Outdated { .. })) => {
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
