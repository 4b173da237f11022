//! What sessions report while they work.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use wb_agent::RevertedChange;
use wb_declarative::DefinitionError;
use wb_fleet::{ConnectWarning, HostParamMismatch, Transfer};
use wb_knobs::tune::KnobResult;
use wb_model::{ProfileName, TestName, WorkerName};
use wb_plan::Shortfall;
use wb_profile::ProfileErrorKind;
use wb_run::preparation::SetupEvent;

use crate::bisect::RevisionVerdict;
use crate::error::SessionError;

/// A run that the same command continues.
#[derive(Debug)]
pub struct KeptRun {
    pub folder: PathBuf,
    /// Whether the user gave the folder with `--into`.
    pub is_folder_given: bool,
}

#[derive(Debug)]
pub enum SessionEvent {
    /// An error that does not end the session.
    Warning(SessionError),
    DefinitionSkipped(DefinitionError),
    /// A pattern of `--select` that matches no cell, although others do.
    UnmatchedPattern(String),
    /// The time budget is too small for the minimum number of samples.
    BudgetShortfall {
        test: TestName,
        /// Number of its cells (combinations of its parameters, on their workers) with this shortfall.
        cells: usize,
        shortfall: Shortfall,
        /// The budget per cell, in seconds.
        budget_seconds: f64,
        /// How the user makes the samples shorter, as an imperative; `None` if nothing does.
        shortening: Option<&'static str>,
    },
    /// A metadata key that requests publishing in run-perf; without `--publish` it has no effect.
    PublishMetadataIgnored(&'static str),
    Host(WorkerName, HostEvent),
    Preparation(SetupEvent),
    /// A run starts in a profile, recorded in this folder.
    RunStarted(PathBuf),
    RunProgress(Box<wb_run::Progress>),
    RunEnded,
    /// An error ends the session after measuring has started; its results so far are kept.
    ResultsKeptAfterError(KeptRun),
    Interrupted(KeptRun),
    /// Publishing the whole run failed; results of single tests may be published.
    NotPublished {
        run: KeptRun,
        reason: String,
    },
    /// An endpoint of a bisection (its good or its bad revision) is about to be measured: described on one line.
    MeasuringEndpoint(String),
    EndpointsDiffer {
        /// The primary checks (statistics of metrics) in which they differ.
        checks: Vec<String>,
        /// Whether an endpoint has a single run, whose run-to-run variation is unknown.
        single_run: bool,
    },
    RevisionClassified {
        name: String,
        verdict: RevisionVerdict,
    },
    /// The user interrupted the bisection in this folder, which can be resumed.
    BisectionInterrupted(PathBuf),
}

#[derive(Debug)]
pub enum HostEvent {
    /// Progress of the transfer of the program to it.
    Transfer(Transfer),
    ConnectWarning(ConnectWarning),
    /// A parameter configured for it, such as its number of CPUs, differs from the detected one.
    ParamMismatch(HostParamMismatch),
    /// A change that a killed run had left was reverted.
    LeftoverReverted(RevertedChange),
    /// It is unknown whether a run that was killed left settings changed: why their record cannot be read.
    LeftoverCheckFailed(String),
    /// A later profile cannot be applied to it.
    ProfileObstacle(ProfileName, Box<ProfileErrorKind>),
    /// A slow step of applying a profile begins.
    ProfileStep(String),
    UnsupportedSettings(Vec<KnobResult>),
    /// A change of a profile was not reverted, because somebody else had changed the setting.
    RevertConflict(RevertedChange),
}

/// Receiver of events; ignores them by default.
#[derive(Clone, Default)]
pub struct EventSink(Option<Arc<dyn Fn(SessionEvent) + Send + Sync>>);

impl EventSink {
    /// `receive` must not block.
    pub fn new(receive: impl Fn(SessionEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    pub(crate) fn emit(&self, event: SessionEvent) {
        if let Some(receive) = &self.0 {
            receive(event);
        }
    }

    pub(crate) fn emit_host(&self, host: &WorkerName, event: HostEvent) {
        self.emit(SessionEvent::Host(host.clone(), event));
    }

    pub(crate) fn warn(&self, error: impl Into<SessionError>) {
        self.emit(SessionEvent::Warning(error.into()));
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventSink").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_warning_reaches_the_receiver_with_its_cause() {
        let received = Arc::new(Mutex::new(Vec::new()));
        let copy = received.clone();
        let sink = EventSink::new(move |event| copy.lock().unwrap().push(event));
        sink.clone().warn(crate::hosts::HostError::NoneLeft);
        let received = received.lock().unwrap();
        assert!(matches!(received[..], [SessionEvent::Warning(SessionError::Host(_))]), "{received:?}");
    }
}
