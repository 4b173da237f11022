//! Draws the events of sessions on standard error.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wb_agent::RestoredChange;
use wb_model::{WorkerName, pluralize};
use wb_plan::Shortfall;
use wb_run::preparation::SetupEvent;
use wb_session::bisect::RevisionVerdict;
use wb_session::{EventSink, HostEvent, SessionEvent};

use crate::console::{Console, message};
use crate::error::Error;
use crate::format::format_duration;
use crate::progress::ProgressReporter;
use crate::transfer::TransferReporter;

/// Maximum number of differing checks shown for the ends of a bisection.
const MAX_DIFFERING: usize = 10;

impl Console {
    /// A receiver that draws the events of a session.
    pub(crate) fn events(&self) -> EventSink {
        let reporter =
            EventReporter { console: *self, transfers: Mutex::new(TransferReporter::default()), run: Mutex::new(None) };
        EventSink::new(move |event| reporter.report(event))
    }
}

/// Draws events.
struct EventReporter {
    console: Console,
    transfers: Mutex<TransferReporter>,
    /// The progress of the run in the current profile.
    run: Mutex<Option<ProgressReporter>>,
}

impl EventReporter {
    fn report(&self, event: SessionEvent) {
        match event {
            SessionEvent::Warning(error) => Error::from(error).warn(),
            SessionEvent::DefinitionSkipped(error) => message!("warning: {error}; definition skipped"),
            SessionEvent::BudgetShortfall { test, cells, shortfall, budget_seconds, has_runtime } => {
                let Shortfall { affordable, required } = shortfall;
                let (cells, budget) = (pluralize(cells, "cell"), format_duration(budget_seconds));
                message!(
                    "warning: {test} ({cells}): the budget of {budget} suffices for {affordable} of {required} samples"
                );
                let remedy = if has_runtime { "`runtime`" } else { "--min-time" };
                message!("help: lower {remedy}, or raise --budget");
            }
            SessionEvent::PublishKeyIgnored(key) => {
                message!("note: `{key}` has no effect: use --publish with a command that publishes");
            }
            SessionEvent::Host(host, event) => self.report_host(&host, event),
            SessionEvent::Preparation(SetupEvent::Note(text)) => message!("{text}"),
            SessionEvent::Preparation(SetupEvent::Excluded { message, help }) => warn(&message, help),
            SessionEvent::RunStarted(folder) => *self.run() = Some(ProgressReporter::new(&self.console, &folder)),
            SessionEvent::RunProgress(progress) => {
                if let Some(reporter) = &mut *self.run() {
                    reporter.report(&progress);
                }
            }
            SessionEvent::RunEnded => {
                if let Some(reporter) = self.run().take() {
                    reporter.finish();
                }
            }
            SessionEvent::ResultsKept(folder) => {
                message!("results so far are kept in {}; run the same command again to resume", folder.display());
            }
            SessionEvent::Interrupted { folder, is_folder_named } => {
                let line = resume_command(&folder, is_folder_named);
                message!("interrupted: samples are kept. To resume:\n  {line}");
            }
            SessionEvent::NotPublished(reason) => {
                message!("warning: the run is not published: {reason}");
                message!("help: run the same command again to publish the rest");
            }
            SessionEvent::BisectionInterrupted(folder) => {
                let folder = folder.display();
                message!("interrupted: results are kept in {folder}; run the same command again to resume");
            }
            SessionEvent::MeasuringEnd(revision) => self.note(format_args!("measuring {revision}")),
            SessionEvent::EndsDiffer { checks, single_run } => {
                checks.iter().take(MAX_DIFFERING).for_each(|check| self.note(format_args!("differs: {check}")));
                if single_run {
                    self.note(format_args!("note: one side is a single run: run-to-run variation is unknown"));
                }
            }
            SessionEvent::RevisionClassified { name, verdict } => {
                self.note(format_args!("{name}: {}", describe_verdict(&verdict)));
            }
        }
    }

    fn report_host(&self, host: &WorkerName, event: HostEvent) {
        match event {
            HostEvent::Transfer(transfer) => {
                let line = self.transfers.lock().unwrap_or_else(PoisonError::into_inner).line(host, transfer);
                line.iter().for_each(|line| self.note(format_args!("note: `{host}`: {line}")));
            }
            HostEvent::Connected(warning) => self.note(format_args!("note: `{host}` {warning}")),
            HostEvent::ParamMismatch(mismatch) => self.note(format_args!("note: `{host}`: {mismatch}")),
            HostEvent::LeftoverReverted(RestoredChange { description: what, outcome: how }) => {
                message!("note: `{host}`: a run that was killed had changed {what}: {how}");
            }
            HostEvent::LeftoverUnknown(fault) => {
                message!("warning: `{host}`: {fault}");
                message!("help: measurements there may not reflect the host's own state");
            }
            HostEvent::ProfileObstacle(profile, obstacle) => {
                let reason = obstacle.message_on(host);
                warn(&format!("`{profile}` on `{host}` will not be measured: {reason}"), obstacle.help());
            }
            HostEvent::ProfileStep(step) => self.note(format_args!("`{host}`: {step}")),
            HostEvent::UnsupportedSettings(settings) => {
                let reasons = settings.iter().filter_map(|one| Some((&one.knob, one.outcome.reason()?)));
                let unset: Vec<String> = reasons.map(|(knob, reason)| format!("{knob} ({reason})")).collect();
                self.note(format_args!("note: `{host}`: unsupported settings of the profile: {}", unset.join("; ")));
            }
            HostEvent::RevertConflict(RestoredChange { description: what, outcome: how }) => {
                message!("warning: `{host}`: {what}: {how}");
            }
        }
    }

    /// Prints a line that --quiet suppresses.
    fn note(&self, line: std::fmt::Arguments<'_>) {
        if !self.console.quiet {
            message!("{line}");
        }
    }

    fn run(&self) -> MutexGuard<'_, Option<ProgressReporter>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn(text: &str, help: Option<String>) {
    message!("warning: {text}");
    help.iter().for_each(|help| message!("help: {help}"));
}

/// Describes the verdict on a revision of a bisection.
pub(crate) fn describe_verdict(verdict: &RevisionVerdict) -> String {
    let describe = |[good, bad]: &[f64; 2]| format!("likeness to the good end {good:.3}, to the bad one {bad:.3}");
    match verdict {
        RevisionVerdict::End => "given end".to_owned(),
        RevisionVerdict::Good { likeness } => format!("good: {}", describe(likeness)),
        RevisionVerdict::Bad { likeness } => format!("bad: {}", describe(likeness)),
        RevisionVerdict::Skipped { reason } => format!("skipped: {reason}"),
    }
}

/// The command line that resumes this run: the one that was typed, with `--into` added unless the folder was given.
fn resume_command(folder: &Path, is_given: bool) -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if !is_given {
        // Before `--`, after which only variants may follow.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(at..at, ["--into".to_owned(), folder.display().to_string()]);
    }
    shell_words::join(words)
}
