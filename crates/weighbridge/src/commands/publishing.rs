//! Publishing what was measured by a command of the user's.

use std::collections::BTreeMap;
use std::path::Path;

use wb_plan::tools::is_program;
use wb_profile::Controller;
use wb_record::RunFolder;
use wb_record::steps::StepOutcome;
use wb_run::Publisher;
use wb_run::publish::{is_due, test_of};

use super::measure::cancel_on_signals;
use super::{current_program, runtime};
use crate::cli::RunFolderFlags;
use crate::error::Error;

/// run-perf's name for publishing to pbench's server.
const RUN_PERF_KEY: &str = "pbench_server_publish";

/// How it is published.
pub(crate) struct PublishConfig {
    words: Vec<String>,
    metadata: BTreeMap<String, String>,
}

/// What is published of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishState {
    /// Nobody asked for it.
    NotRequested,
    /// All of it had been before.
    UpToDate,
    /// All of it, now.
    Done,
    /// Not all of it.
    Incomplete,
}

impl PublishConfig {
    /// By the flag's command, or the plan's.
    ///
    /// # Errors
    /// When its program is not on this machine.
    pub(super) fn from_flags(
        flags: &RunFolderFlags,
        plan: Option<&str>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Option<Self>, Error> {
        let line = flags.publish.as_deref().or(plan);
        if line.is_none() && metadata.contains_key(RUN_PERF_KEY) {
            crate::console::tell!("note: `{RUN_PERF_KEY}` publishes nothing here: --publish names a command that does");
        }
        let Some(words) = line.and_then(wb_plan::tools::split_words) else { return Ok(None) };
        require_program(&words)?;
        Ok(Some(Self { words, metadata: metadata.clone() }))
    }

    /// Whoever does it, within this runtime.
    pub(super) async fn start_publisher(asked: Option<&Self>) -> Result<Option<Publisher>, Error> {
        let Some(Self { words, metadata }) = asked else { return Ok(None) };
        let controller = Controller::start(&current_program()?).await?;
        Ok(Some(Publisher::new(words.clone(), metadata.clone(), controller)))
    }
}

/// Refuses a command that publishes and whose program is not on this machine.
///
/// # Errors
/// When it is not.
pub(super) fn require_program(words: &[String]) -> Result<(), Error> {
    match words.first().filter(|program| !is_program(program)) {
        None => Ok(()),
        Some(program) => Err(Error::Usage {
            what: format!("no such program: `{program}`, which is to publish the run"),
            help: "name a file, or a program on the path of this machine".to_owned(),
        }),
    }
}

/// Publishes the whole run, where something of it is new.
pub(super) fn publish_run(asked: Option<&PublishConfig>, folder: &Path) -> Result<PublishState, Error> {
    let published = runtime()?.block_on(async {
        let Some(publisher) = PublishConfig::start_publisher(asked).await? else { return Ok(None) };
        let published = publisher.publish_run(folder, &cancel_on_signals()).await?;
        publisher.close().await?;
        Ok::<_, Error>(Some(published))
    })?;
    let Some(published) = published else { return Ok(PublishState::NotRequested) };
    if let Some(StepOutcome::Failed { reason: why }) = published.as_ref().map(|published| &published.outcome) {
        crate::console::tell!("warning: the run is not published: {why}");
        crate::console::tell!("help: the same line publishes again what was not");
    }
    let run = RunFolder::open(folder)?;
    let lines = run.journal_lines()?;
    let cells = run.run_file()?.entries.into_iter().flat_map(|entry| entry.cells);
    let mut all = cells.map(|cell| Some(test_of(&cell))).chain([None]);
    Ok(match published {
        _ if all.any(|what| is_due(&lines, &what)) => PublishState::Incomplete,
        Some(_) => PublishState::Done,
        None => PublishState::UpToDate,
    })
}
