//! Publishing what was measured by a command of the user's.

use std::collections::BTreeMap;
use std::path::Path;

use wb_plan::tools::is_program;
use wb_profile::Controller;
use wb_record::RunFolder;
use wb_record::steps::StepOutcome;
use wb_run::Publisher;
use wb_run::publish::{is_due, test_of};

use super::measure::cancelled_by_signals;
use super::{runtime, this_program};
use crate::cli::IntoFlags;
use crate::error::Error;

/// run-perf's name for publishing to pbench's server.
const RUN_PERF: &str = "pbench_server_publish";

/// How it is published.
pub(crate) struct Publishing {
    words: Vec<String>,
    metadata: BTreeMap<String, String>,
}

/// What is published of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody asked for it.
    NotAsked,
    /// All of it had been before.
    UpToDate,
    /// All of it, now.
    Done,
    /// Not all of it.
    Behind,
}

impl Publishing {
    /// By the flag's command, or the plan's.
    ///
    /// # Errors
    /// When its program is not on this machine.
    pub(super) fn asked(
        flags: &IntoFlags,
        plan: Option<&str>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Option<Self>, Error> {
        let line = flags.publish.as_deref().or(plan);
        if line.is_none() && metadata.contains_key(RUN_PERF) {
            crate::console::tell!("note: `{RUN_PERF}` publishes nothing here: --publish names a command that does");
        }
        let Some(words) = line.and_then(wb_plan::tools::words) else { return Ok(None) };
        require_program(&words)?;
        Ok(Some(Self { words, metadata: metadata.clone() }))
    }

    /// Whoever does it, within this runtime.
    pub(super) async fn publisher(asked: Option<&Self>) -> Result<Option<Publisher>, Error> {
        let Some(Self { words, metadata }) = asked else { return Ok(None) };
        let controller = Controller::start(&this_program()?).await?;
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
pub(super) fn at_end(asked: Option<&Publishing>, folder: &Path) -> Result<State, Error> {
    let published = runtime()?.block_on(async {
        let Some(publisher) = Publishing::publisher(asked).await? else { return Ok(None) };
        let published = publisher.at_end(folder, &cancelled_by_signals()).await?;
        publisher.close().await?;
        Ok::<_, Error>(Some(published))
    })?;
    let Some(published) = published else { return Ok(State::NotAsked) };
    if let Some(StepOutcome::Failed { why }) = published.as_ref().map(|published| &published.outcome) {
        crate::console::tell!("warning: the run is not published: {why}");
        crate::console::tell!("help: the same line publishes again what was not");
    }
    let run = RunFolder::open(folder)?;
    let lines = run.lines()?;
    let cells = run.run_file()?.entries.into_iter().flat_map(|entry| entry.cells);
    let mut all = cells.map(|cell| Some(test_of(&cell))).chain([None]);
    Ok(match published {
        _ if all.any(|what| is_due(&lines, &what)) => State::Behind,
        Some(_) => State::Done,
        None => State::UpToDate,
    })
}
