//! Confirms that the first bad revision differs from its parent, by interleaved runs of both.

use super::BisectError;
use super::classification::DecidingMetric;
use super::endpoints::run_argument;
use super::git::Git;
use super::state::{BisectionConfig, BisectionFolder, RevisionVerdict};
use super::step::{CheckedOutRevision, RevisionOutcome};
use crate::error::SessionError;
use crate::event::{EventSink, SessionEvent};

/// The check of the revision that a bisection led to.
pub(super) struct Confirmation<'a> {
    pub(super) git: &'a Git<'a>,
    pub(super) folder: &'a BisectionFolder,
    pub(super) config: &'a BisectionConfig,
    pub(super) events: &'a EventSink,
}

impl Confirmation<'_> {
    /// Confirms or refutes a revision, unless that was done before. `None` if interrupted.
    pub(super) fn confirm(&self, revision: &str) -> Result<Option<RevisionVerdict>, SessionError> {
        let is_result = |verdict: &RevisionVerdict| {
            matches!(verdict, RevisionVerdict::Confirmed { .. } | RevisionVerdict::Refuted { .. })
        };
        let mut steps = self.folder.read_steps()?.into_iter();
        if let Some(step) = steps.find(|step| step.name == revision && is_result(&step.verdict)) {
            return Ok(Some(step.verdict));
        }
        let parent = self.git.rev_parse(&format!("{revision}^"))?;
        let revisions = [parent.as_str(), revision];
        // Results of their own: those of the search are why this revision was selected.
        let names = ["before", "after"].map(|side| format!("{revision}-{side}"));
        for run in 0..self.config.runs {
            let sides = if run.is_multiple_of(2) { [0, 1] } else { [1, 0] };
            for side in sides {
                self.git.run(&["checkout", "--quiet", "--detach", revisions[side]])?;
                let checked_out = CheckedOutRevision {
                    folder: self.folder,
                    config: self.config,
                    name: &names[side],
                    events: self.events,
                };
                match checked_out.build_and_measure(run)? {
                    RevisionOutcome::Done => {}
                    RevisionOutcome::Interrupted => return Ok(None),
                    RevisionOutcome::Failed(reason) => {
                        let revision = self.git.describe_revision(revisions[side]);
                        return Err(BisectError::NotConfirmed { revision, reason }.into());
                    }
                }
            }
        }
        let arguments = names.each_ref().map(|name| run_argument(self.folder, name, self.config.runs));
        let metric = DecidingMetric::read(self.folder, self.config, &arguments, self.events)?;
        let difference = metric.as_ref().and_then(|metric| match &metric.runs[..] {
            [before, after] => metric.ends()?.difference(before, after),
            _ => None,
        });
        let Some(difference) = difference else {
            let reason = "it and its parent have no metric in which the good and the bad revision differ".to_owned();
            return Err(BisectError::NotConfirmed { revision: self.git.describe_revision(revision), reason }.into());
        };
        let verdict = if difference.interval.low > 0.0 {
            RevisionVerdict::Confirmed { difference: difference.into() }
        } else {
            RevisionVerdict::Refuted { difference: difference.into() }
        };
        let step = self.folder.append_step(revision, verdict)?;
        let (name, verdict) = (revision.to_owned(), step.verdict.clone());
        self.events.emit(SessionEvent::RevisionClassified { name, verdict });
        Ok(Some(step.verdict))
    }
}
