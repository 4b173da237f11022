//! Everything that can end a command, told the same way: what, where, why, the way out.

use miette::{Diagnostic, SourceCode};

use wb_plan::suggestion::suggest;

use crate::console::Console;
use crate::exit::Exit;
use crate::frame::render_frame;

/// What ended a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A plan that cannot be carried out.
    #[error(transparent)]
    Plan(#[from] wb_plan::PlanError),
    /// A run folder.
    #[error(transparent)]
    Record(#[from] wb_record::RecordError),
    /// A run that could not go on.
    #[error(transparent)]
    Run(#[from] wb_run::RunError),
    /// A run that cannot be studied.
    #[error(transparent)]
    Study(#[from] wb_study::StudyError),
    /// The worker.
    #[error(transparent)]
    Worker(#[from] wb_agent::WorkerError),
    /// Something was asked that makes no sense, and the way out.
    #[error("{what}")]
    Usage {
        /// What.
        what: String,
        /// The way out.
        help: String,
    },
    /// Nothing is left to do.
    #[error("{what}")]
    NothingToDo {
        /// Why.
        what: String,
        /// The way out.
        help: String,
    },
    /// Something cannot be measured as asked.
    #[error("{what}")]
    Incomplete {
        /// What, and why.
        what: String,
        /// The way out.
        help: String,
    },
    /// A file of the user's.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// A network profile that cannot be understood.
    #[error(transparent)]
    Profile(#[from] wb_net::language::ProfileDiagnostics),
    /// Builds that cannot be read.
    #[error(transparent)]
    Source(#[from] wb_compare::SourceError),
    /// A name that the builds do not have.
    #[error(transparent)]
    UnknownName(#[from] wb_compare::UnknownName),
    /// A model that cannot be used.
    #[error(transparent)]
    Model(#[from] wb_compare::model::ModelError),
    /// Nothing that is nearest.
    #[error(transparent)]
    Nearest(#[from] wb_compare::nearest::NearestError),
    /// A folder that could not be made smaller.
    #[error(transparent)]
    Strip(#[from] wb_compare::strip::StripError),
    /// Results that cannot be imported.
    #[error(transparent)]
    Import(#[from] wb_import::ImportError),
    /// A host to which there is no way.
    #[error(transparent)]
    Fleet(#[from] wb_fleet::FleetError),
    /// An image that is not there.
    #[error(transparent)]
    Image(#[from] wb_profile::image::ImageError),
    /// A profile that is none.
    #[error(transparent)]
    InvalidProfile(wb_profile::ProfileSelectionError),
    /// A host that could not be put into a profile.
    #[error(transparent)]
    ProfileNotApplied(#[from] wb_profile::ProfileError),
    /// What is changed on this machine.
    #[error(transparent)]
    Undo(#[from] wb_sys::undo::UndoError),
    /// A host on which something of a run is still changed.
    #[error("`{host}`: {still}")]
    StillChanged {
        /// Which.
        host: wb_model::WorkerName,
        /// What, and why.
        still: wb_agent::UnrevertedChanges,
    },
    /// A secret that cannot be kept.
    #[error(transparent)]
    Secret(#[from] crate::secrets::SecretError),
    /// The user ended it before there was anything to keep.
    #[error(
        "interrupted before anything was measured; what was done to machines is recorded, and the same line goes on"
    )]
    Interrupted,
    /// A kernel that could not be run.
    #[error("{0}")]
    Internal(String),
}

impl From<wb_profile::ProfileSelectionError> for Error {
    /// A mistake in a profile's file keeps its place.
    fn from(bad: wb_profile::ProfileSelectionError) -> Self {
        match bad {
            wb_profile::ProfileSelectionError::Profile(wb_profile::ProfileCatalogError::Text(error)) => {
                Self::Plan(error)
            }
            other => Self::InvalidProfile(other),
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
                Some(Box::new("settings of a machine are changed by root: `sudo weighbridge tune …`"))
            }
            Self::Image(error) => error.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>),
            Self::Run(wb_run::RunError::Provision(error)) => {
                error.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
            }
            Self::Secret(error) => Some(Box::new(error.help())),
            Self::Fleet(error) => error.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>),
            Self::InvalidProfile(bad) => bad.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>),
            Self::ProfileNotApplied(error) => error.help().map(|help| Box::new(help) as Box<dyn std::fmt::Display>),
            Self::Undo(wb_sys::undo::UndoError::Locked { .. }) => {
                Some(Box::new("wait for it or end it; what it has changed is put back at its end"))
            }
            Self::StillChanged { still, .. } => Some(Box::new(still.help())),
            Self::Undo(wb_sys::undo::UndoError::Damaged { .. }) => {
                Some(Box::new("each line has what a setting was `before`: put that back by hand, then remove the file"))
            }
            Self::Run(wb_run::RunError::Changed { .. }) => {
                Some(Box::new("another folder (--into) measures the new one; samples of both would be no series"))
            }
            Self::Run(wb_run::RunError::OtherWorkers { .. } | wb_run::RunError::OtherMachine { .. }) => Some(Box::new(
                "choose another folder with --into for these machines; `weighbridge compare` holds both against each other",
            )),
            Self::Run(wb_run::RunError::SameMachine { worker, other }) => Some(Box::new(format!(
                "name each machine once: drop `{worker}` or `{other}`; figures of both would be one machine's"
            ))),
            Self::Run(wb_run::RunError::Redefined { .. }) => {
                Some(Box::new("choose another folder with --into, or give this test an `id=` of its own"))
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

/// The way out of a source that cannot be read.
fn source_help(error: &wb_compare::SourceError) -> Option<String> {
    use wb_compare::SourceError;
    match error {
        SourceError::NoResults { path, folders } if !folders.is_empty() => {
            let named = folders.iter().take(2).map(|folder| path.join(folder).display().to_string());
            Some(format!("name the folders themselves: `{}`", named.collect::<Vec<_>>().join(" ")))
        }
        SourceError::Outdated { path, .. } => Some(format!(
            "`weighbridge study {0}` writes results that are those of the records (--tests-d names the folders of tests that \
             are not known here)",
            path.display()
        )),
        SourceError::Copy { .. } => {
            Some("measure again into another folder: only runs of their own say how far runs differ".to_owned())
        }
        SourceError::Unreadable { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            let text = path.to_str()?;
            let (name, folder) = text.split_once(':')?;
            let is_named = !name.is_empty() && !name.contains('/') && std::path::Path::new(folder).is_dir();
            is_named.then(|| format!("a name stands before `=`: `{name}={folder}`"))
        }
        _ => None,
    }
}

/// What somebody may have meant, and what else is there.
fn suggest_names(unknown: &wb_compare::UnknownName) -> String {
    if unknown.candidates.is_empty() {
        return format!("no {} is recorded there at all", unknown.kind);
    }
    let known = || unknown.candidates.iter().map(String::as_str);
    let near = suggest(&unknown.given, known()).map_or(String::new(), |near| format!("did you mean `{near}`? "));
    if !near.is_empty() && known().count() == 1 {
        return near.trim_end().to_owned();
    }
    let listed = known().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    let more = known().count().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{near}there is {listed}{more}")
}

/// So many names are listed.
const MAX_LISTED: usize = 12;

/// So many mistakes of a plan are shown.
const MAX_MISTAKES: usize = 20;

/// Prints a mistake: what it is, where in a source, and the way out.
fn print_diagnostic(mistake: &dyn Diagnostic, source: Option<&dyn SourceCode>, console: &Console) {
    let label = mistake.labels().and_then(|mut labels| labels.next());
    let place = source.zip(label).map(|(source, label)| render_frame(source, label, console.colour_stderr));
    crate::console::tell_part!("error: {mistake}\n{}", place.unwrap_or_default());
    if let Some(help) = mistake.help() {
        crate::console::tell!("help: {help}");
    }
}

impl Error {
    /// Tells it as something that does not end the command.
    pub(crate) fn warn(&self) {
        crate::console::tell!("warning: {self}");
        if let Some(help) = self.help() {
            crate::console::tell!("help: {help}");
        }
    }

    /// Tells it on standard error.
    pub(crate) fn report(&self, console: &Console) -> Exit {
        match self {
            // Each where it stands, rather than how many there are.
            Self::Profile(faults) => {
                if faults.first_diagnostics().len() < faults.diagnostics().len() {
                    crate::console::tell!("error: {faults}");
                }
                faults
                    .first_diagnostics()
                    .iter()
                    .for_each(|fault| print_diagnostic(fault, self.source_code(), console));
            }
            Self::Plan(error) => {
                let all = error.diagnostics().count();
                if all > MAX_MISTAKES {
                    crate::console::tell!("error: {all} mistakes; these are the first {MAX_MISTAKES}");
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
            Self::Interrupted => Exit::Interrupted,
            _ => Exit::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_recorded_is_not_listed() {
        let unknown = |known: &[&str]| wb_compare::UnknownName {
            kind: "profile",
            given: "Tuned".to_owned(),
            builds: "`old`".to_owned(),
            candidates: known.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(suggest_names(&unknown(&[])), "no profile is recorded there at all");
        assert_eq!(suggest_names(&unknown(&["Localhost"])), "there is Localhost");
    }
}
