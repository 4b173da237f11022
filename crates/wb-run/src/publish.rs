//! Publishing: runs a command of the user on the controller after each test, and once at the end.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::sync::watch;
use wb_model::secrets::mask_arguments;
use wb_model::{CellId, Nanos};
use wb_profile::Controller;
use wb_profile::controller::ControllerProgram;
use wb_record::steps::{PublishStep, StepOutcome};
use wb_record::{JournalEvent, JournalLine, RecordError, RunFolder};

use crate::{RunError, preparation};

/// Time limit of one execution of the command.
const LIMIT: Nanos = Nanos(10 * 60 * 1_000_000_000);

/// Publishes results by a command of the user.
#[derive(Debug)]
pub struct Publisher {
    words: Vec<String>,
    metadata: BTreeMap<String, String>,
    controller: Controller,
}

/// What to publish: a test by `PROFILE/TEST/SERIAL`, or the whole run.
pub type PublishTarget = Option<String>;

impl Publisher {
    pub fn new(words: Vec<String>, metadata: BTreeMap<String, String>, controller: Controller) -> Self {
        Self { words, metadata, controller }
    }

    /// Publishes, unless the user cancels meanwhile; returns the event to record.
    pub async fn publish(
        &self,
        run: &RunFolder,
        what: PublishTarget,
        cancel: &watch::Receiver<bool>,
    ) -> Result<PublishStep, RecordError> {
        let program = self.variables(run.path(), what.as_deref()).map(|env| ControllerProgram {
            argv: self.words.clone(),
            env,
            stdin: Vec::new(),
        });
        let command_line = shell_words::join(mask_arguments(&self.words));
        let mut cancel = cancel.clone();
        let execution = match program {
            Ok(program) => tokio::select! {
                result = self.controller.run(program, LIMIT, |_| {}) => result.map_err(|error| error.to_string()),
                Ok(_) = cancel.wait_for(|cancelled| *cancelled) => Err("cancelled by the user".to_owned()),
            },
            Err(reason) => Err(reason),
        };
        let (result, log, elapsed) = match execution {
            Ok(output) => (output.result(), output.log(&command_line), output.elapsed),
            Err(reason) => (Err(reason.clone()), format!("{command_line}\n{reason}\n").into_bytes(), Nanos(0)),
        };
        let log = preparation::keep(run, &format!("publish-{}", next_log_number(run)), &log)?;
        Ok(PublishStep { test: what, outcome: StepOutcome::from_result(&result), seconds: elapsed.seconds(), log })
    }

    /// Publishes the whole run if it has new results since it was last published; returns the recorded outcome.
    pub async fn publish_run(
        &self,
        folder: &Path,
        cancel: &watch::Receiver<bool>,
    ) -> Result<Option<PublishStep>, RunError> {
        let run = RunFolder::create(folder)?;
        let (mut journal, lines) = run.journal()?;
        if !is_due(&lines, &None) {
            return Ok(None);
        }
        let published = self.publish(&run, None, cancel).await?;
        journal.write(JournalEvent::Published(published.clone()))?;
        Ok(Some(published))
    }

    pub async fn close(self) -> Result<(), wb_agent::WorkerError> {
        self.controller.close().await
    }

    /// The variables that describe what is published; an error if a path cannot be passed to an agent.
    fn variables(&self, run: &Path, test: Option<&str>) -> Result<Vec<(String, String)>, String> {
        let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
        let folder =
            run.to_str().ok_or_else(|| format!("invalid run folder `{}`: expected a path in UTF-8", run.display()))?;
        let mut all = vec![("WEIGHBRIDGE_RUN".to_owned(), folder.to_owned())];
        if let Some(test) = test {
            all.push(("WEIGHBRIDGE_TEST".to_owned(), test.to_owned()));
            all.push(("WEIGHBRIDGE_TEST_FOLDER".to_owned(), format!("{folder}/{test}")));
        }
        let metadata = self
            .metadata
            .iter()
            .map(|(name, value)| (format!("WEIGHBRIDGE_METADATA_{}", variable_name(name)), value.clone()));
        all.extend(metadata);
        Ok(all)
    }
}

/// Returns the test that a cell belongs to, in the form used for publishing.
pub fn test_of(cell: &CellId) -> String {
    format!("{}/{}/{}", cell.profile, cell.test, cell.serial)
}

/// Whether anything was measured since it was last published successfully.
pub fn is_due(lines: &[JournalLine], what: &PublishTarget) -> bool {
    let is_included = |cell: &CellId| what.as_ref().is_none_or(|test| test_of(cell) == *test);
    let is_newer = lines.iter().rev().find_map(|line| match &line.event {
        JournalEvent::AttemptEnded(ended) if is_included(&ended.cell) => Some(true),
        JournalEvent::CellEnded { cell, .. } if is_included(cell) => Some(true),
        JournalEvent::Published(published) if published.test == *what && published.outcome.is_done() => Some(false),
        _ => None,
    });
    is_newer == Some(true)
}

/// Converts a name to that of a variable: `machine-url-base` becomes `MACHINE_URL_BASE`.
fn variable_name(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

fn next_log_number(run: &RunFolder) -> u32 {
    let is_free = |number: &u32| !run.path().join(format!("environment/publish-{number}.log")).exists();
    (0..).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use wb_model::DefinitionKey;

    use super::*;

    fn line(event: JournalEvent) -> JournalLine {
        JournalLine { time: String::new(), event }
    }

    fn ended(cell: &str) -> JournalLine {
        let key: DefinitionKey = serde_json::from_value(serde_json::json!("0".repeat(64))).unwrap();
        line(JournalEvent::CellEnded { cell: cell.parse().unwrap(), key, reason: "done".to_owned() })
    }

    fn published(test: Option<&str>, result: Result<(), &str>) -> JournalLine {
        let test = test.map(str::to_owned);
        line(JournalEvent::Published(PublishStep {
            test,
            outcome: StepOutcome::from_result(&result),
            seconds: 0.0,
            log: String::new(),
        }))
    }

    #[test]
    fn tests_with_new_results_are_due() {
        let due = |lines: &[JournalLine]| {
            let tests = [Some("P/a/0000".to_owned()), Some("P/b/0000".to_owned()), None];
            tests.map(|what| is_due(lines, &what))
        };
        assert_eq!(due(&[]), [false; 3]);
        let first = ended("P/a/0000:-");
        assert_eq!(due(std::slice::from_ref(&first)), [true, false, true]);
        assert_eq!(due(&[first.clone(), published(Some("P/a/0000"), Ok(()))]), [false, false, true]);
        assert_eq!(
            due(&[first.clone(), published(Some("P/a/0000"), Err("x")), published(None, Ok(()))]),
            [true, false, false]
        );
        assert_eq!(due(&[first, published(None, Ok(())), ended("P/b/0000:-")]), [true, true, true]);
    }

    #[test]
    fn names_become_variables() {
        assert_eq!(variable_name("machine-url-base.2"), "MACHINE_URL_BASE_2");
    }
}
