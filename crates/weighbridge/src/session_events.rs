//! Prints the events of a session to standard error.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wb_agent::RevertedChange;
use wb_model::{WorkerName, pluralize};
use wb_plan::Shortfall;
use wb_run::preparation::SetupEvent;
use wb_session::bisect::{DifferenceShare, RevisionVerdict};
use wb_session::{EventSink, HostEvent, KeptRun, SessionEvent};

use crate::commands::command_line::{join_words, mask_secrets};
use crate::console::{Console, message};
use crate::error::Error;
use crate::format::format_duration;
use crate::progress::ProgressReporter;
use crate::transfer::TransferReporter;

/// Maximum number of checks (a statistic of a metric of a test case) shown in which the endpoints of a bisection differ.
const MAX_DIFFERING_CHECKS: usize = 10;

// All texts of sessions stand here: `--quiet`, colours and the progress bar concern no library.
impl Console {
    pub(crate) fn events(&self) -> EventSink {
        let reporter = EventReporter {
            console: *self,
            transfers: Mutex::new(TransferReporter::default()),
            progress: Mutex::new(None),
        };
        EventSink::new(move |event| reporter.report(event))
    }
}

/// Prints session events; keeps the state of transfers and of the progress display.
struct EventReporter {
    console: Console,
    transfers: Mutex<TransferReporter>,
    /// Progress display of the current run, of which a session has one in each profile; None between runs.
    progress: Mutex<Option<ProgressReporter>>,
}

impl EventReporter {
    fn report(&self, event: SessionEvent) {
        match event {
            SessionEvent::Warning(error) => Error::from(error).warn(),
            SessionEvent::DefinitionSkipped(error) => warn_of_definition(&error.to_string()),
            SessionEvent::UnmatchedPattern(pattern) => message!("warning: no cell matches `{pattern}` of `--select`"),
            SessionEvent::BudgetShortfall { test, cells, shortfall, budget_seconds, shortening } => {
                let Shortfall { affordable, required } = shortfall;
                let (cells, budget) = (pluralize(cells, "cell"), format_duration(budget_seconds));
                message!(
                    "warning: {test} ({cells}): the budget of {budget} suffices for {affordable} of {required} samples"
                );
                match shortening {
                    Some(shortening) => message!("help: {shortening}, or raise --budget"),
                    None => message!("help: raise --budget"),
                }
            }
            SessionEvent::PublishMetadataIgnored(key) => {
                message!("note: metadata `{key}` has no effect: pass a command that publishes results with --publish");
            }
            SessionEvent::Host(host, event) => self.report_host(&host, event),
            SessionEvent::Preparation(SetupEvent::Progress(text)) => message!("{text}"),
            SessionEvent::Preparation(SetupEvent::MachineExcluded { message, help }) => print_warning(&message, help),
            SessionEvent::RunStarted(folder) => *self.progress() = Some(ProgressReporter::new(&self.console, &folder)),
            SessionEvent::RunProgress(progress) => {
                if let Some(reporter) = &mut *self.progress() {
                    reporter.report(&progress);
                }
            }
            SessionEvent::RunEnded => {
                if let Some(reporter) = self.progress().take() {
                    reporter.finish();
                }
            }
            SessionEvent::ResultsKeptAfterError(run) => {
                message!("results so far are kept; to resume:\n  {}", continuing_command(&run));
            }
            SessionEvent::Interrupted(run) => {
                message!("interrupted: results so far are kept; to resume:\n  {}", continuing_command(&run));
            }
            SessionEvent::NotPublished { run, reason } => {
                message!("warning: the run was not published: {reason}");
                message!("help: to publish what is missing: {}", continuing_command(&run));
            }
            SessionEvent::BisectionInterrupted(folder) => {
                let folder = folder.display();
                message!("interrupted: results so far are kept in {folder}; run the same command again to resume");
            }
            SessionEvent::MeasuringEndpoint(revision) => self.print_unless_quiet(format_args!("measuring {revision}")),
            SessionEvent::EndpointsDiffer { checks, single_run } => {
                for check in checks.iter().take(MAX_DIFFERING_CHECKS) {
                    self.print_unless_quiet(format_args!("the good and the bad revision differ in {check}"));
                }
                if checks.len() > MAX_DIFFERING_CHECKS {
                    let more = pluralize(checks.len() - MAX_DIFFERING_CHECKS, "more check");
                    self.print_unless_quiet(format_args!("… and in {more}"));
                }
                if single_run {
                    self.print_unless_quiet(format_args!(
                        "note: the good or the bad revision has a single run: its run-to-run variation is unknown"
                    ));
                }
            }
            SessionEvent::RevisionClassified { name, verdict } => {
                self.print_unless_quiet(format_args!("{name}: {}", describe_verdict(&verdict)));
            }
        }
    }

    fn report_host(&self, host: &WorkerName, event: HostEvent) {
        match event {
            HostEvent::Transfer(transfer) => {
                let line = self.transfers.lock().unwrap_or_else(PoisonError::into_inner).line(host, transfer);
                if let Some(line) = line {
                    self.print_unless_quiet(format_args!("note: `{host}`: {line}"));
                }
            }
            HostEvent::ConnectWarning(warning) => self.print_unless_quiet(format_args!("note: `{host}` {warning}")),
            HostEvent::ParamMismatch(mismatch) => self.print_unless_quiet(format_args!("note: `{host}`: {mismatch}")),
            HostEvent::LeftoverReverted(RevertedChange { description, outcome }) => {
                message!("note: `{host}`: a run that was killed had changed {description}: {outcome}");
            }
            HostEvent::LeftoverCheckFailed(error) => {
                message!("warning: `{host}`: {error}");
                message!(
                    "help: settings that a killed run changed may still be in effect there and affect measurements"
                );
            }
            HostEvent::ProfileObstacle(profile, obstacle) => {
                let reason = obstacle.message_on(host);
                print_warning(&format!("`{profile}` on `{host}` will not be measured: {reason}"), obstacle.help());
            }
            HostEvent::ProfileStep(step) => self.print_unless_quiet(format_args!("`{host}`: {step}")),
            HostEvent::UnsupportedSettings(settings) => {
                let reasons = settings.iter().filter_map(|setting| Some((&setting.knob, setting.outcome.reason()?)));
                let unsupported: Vec<String> = reasons.map(|(knob, reason)| format!("{knob} ({reason})")).collect();
                let unsupported = unsupported.join("; ");
                self.print_unless_quiet(format_args!(
                    "note: `{host}`: unsupported settings of the profile: {unsupported}"
                ));
            }
            HostEvent::RevertConflict(RevertedChange { description, outcome }) => {
                message!("warning: `{host}`: {description}: {outcome}");
            }
        }
    }

    fn print_unless_quiet(&self, line: std::fmt::Arguments<'_>) {
        if !self.console.quiet {
            message!("{line}");
        }
    }

    fn progress(&self) -> MutexGuard<'_, Option<ProgressReporter>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn print_warning(text: &str, help: Option<String>) {
    message!("warning: {text}");
    if let Some(help) = help {
        message!("help: {help}");
    }
}

pub(crate) fn describe_verdict(verdict: &RevisionVerdict) -> String {
    let place = |position: &DifferenceShare| format!("{position} of the way from the good to the bad revision");
    match verdict {
        RevisionVerdict::Given => "given as good or bad, not classified".to_owned(),
        RevisionVerdict::Good { position } => format!("good: {}", place(position)),
        RevisionVerdict::Bad { position } => format!("bad: {}", place(position)),
        RevisionVerdict::Confirmed { difference } => {
            format!("confirmed: differs from its parent by {difference} of the difference of good and bad revision")
        }
        RevisionVerdict::Refuted { difference } => format!("refuted: {}", difference.describe_refuted()),
        RevisionVerdict::Skipped { reason } => format!("skipped: {reason}"),
    }
}

fn continuing_command(run: &KeptRun) -> String {
    resume_command(&run.folder, run.is_folder_given)
}

/// The command line that resumes this run: the one that was typed, with `--into` added unless the folder was given.
pub(crate) fn resume_command(folder: &Path, is_folder_given: bool) -> String {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if !is_folder_given {
        // Before `--`: `ab` takes every argument after it as a variant to compare.
        let insert_at = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
        args.splice(insert_at..insert_at, ["--into".into(), folder.into()]);
    }
    let shown = mask_secrets(args.clone());
    let line = join_words(&shown);
    if shown == args { line } else { line + "  # with the secrets in place of ***" }
}

/// Warns of a broken definition, once however often a command reads the definitions.
fn warn_of_definition(error: &str) {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(error.to_owned()) {
        message!("warning: {error}; definition skipped");
    }
}
