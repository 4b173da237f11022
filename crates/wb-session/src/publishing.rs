//! Publishes results with a command of the user.

use std::collections::BTreeMap;

use wb_profile::Controller;
use wb_record::RunFolder;
use wb_record::steps::StepOutcome;
use wb_run::Publisher;
use wb_run::publish::{is_due, test_of};
use wb_sys::programs::is_program;

use crate::error::SessionError;
use crate::event::{EventSink, KeptRun, SessionEvent};
use crate::measure::cancel_on_signals;
use crate::program::runtime;
use crate::worker_program::worker_program;

/// run-perf's name for publishing to pbench's server.
const RUN_PERF_KEY: &str = "pbench_server_publish";

pub(crate) struct PublishConfig {
    words: Vec<String>,
    metadata: BTreeMap<String, String>,
}

/// How much of a run is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishState {
    NotRequested,
    /// Everything had been published before.
    UpToDate,
    Done,
    Incomplete,
}

impl PublishConfig {
    /// None if nothing is to be published. Fails if the program of `line` does not exist on this machine.
    pub(crate) fn new(
        line: Option<&str>,
        metadata: &BTreeMap<String, String>,
        events: &EventSink,
    ) -> Result<Option<Self>, SessionError> {
        if line.is_none() && metadata.contains_key(RUN_PERF_KEY) {
            events.emit(SessionEvent::PublishMetadataIgnored(RUN_PERF_KEY));
        }
        let Some(words) = line.and_then(wb_plan::tools::split_words) else { return Ok(None) };
        require_program(&words)?;
        Ok(Some(Self { words, metadata: metadata.clone() }))
    }

    /// Starts the publisher in the current runtime.
    pub(crate) async fn start_publisher(config: Option<&Self>) -> Result<Option<Publisher>, SessionError> {
        let Some(Self { words, metadata }) = config else { return Ok(None) };
        let controller = Controller::start(&worker_program()?).await?;
        Ok(Some(Publisher::new(words.clone(), metadata.clone(), controller)))
    }
}

/// Requires that the program of a publishing command exists on this machine.
pub fn require_program(words: &[String]) -> Result<(), SessionError> {
    match words.first().filter(|program| !is_program(program)) {
        None => Ok(()),
        Some(program) => Err(SessionError::NoPublisher(program.clone())),
    }
}

/// Publishes the whole run if anything of it is new.
pub(crate) fn publish_run(
    config: Option<&PublishConfig>,
    kept: KeptRun,
    events: &EventSink,
) -> Result<PublishState, SessionError> {
    let published = runtime()?.block_on(async {
        let Some(publisher) = PublishConfig::start_publisher(config).await? else { return Ok(None) };
        let published = publisher.publish_run(&kept.folder, &cancel_on_signals()).await?;
        publisher.close().await?;
        Ok::<_, SessionError>(Some(published))
    })?;
    let Some(published) = published else { return Ok(PublishState::NotRequested) };
    let run = RunFolder::open(&kept.folder)?;
    if let Some(StepOutcome::Failed { reason }) = published.as_ref().map(|published| &published.outcome) {
        events.emit(SessionEvent::NotPublished { run: kept, reason: reason.to_string() });
    }
    let lines = run.journal_lines()?;
    let cells = run.run_file()?.invocations.into_iter().flat_map(|invocation| invocation.cells);
    let mut all = cells.map(|cell| Some(test_of(&cell))).chain([None]);
    Ok(match published {
        _ if all.any(|target| is_due(&lines, &target)) => PublishState::Incomplete,
        Some(_) => PublishState::Done,
        None => PublishState::UpToDate,
    })
}
