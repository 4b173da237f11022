//! Settings that the system resets when another one is changed.
//!
//! Writing a disk's I/O scheduler gives its queue another depth and replaces the scheduler's own settings. What was
//! there is saved before the change, and what it came to after it; so what the change has reset is restored with it, and
//! what somebody else has set meanwhile is left alone.

use std::fs::File;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;

use super::record::{Change, Dependent, RevertOutcome};
use super::step::{Step, StepError};

/// Writing one setting may reset another that was written before it, so that restoring is repeated until all hold.
const MAX_PASSES: usize = 3;

/// A setting that was reset by the change of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResetSetting {
    /// Its file.
    pub path: String,
    /// What it held before.
    pub before: String,
    /// What it holds now; none where the file is gone.
    pub after: Option<String>,
}

impl std::fmt::Display for ResetSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.after {
            Some(now) => write!(f, "{} from `{}` to `{now}`", self.path, self.before),
            None => write!(f, "{}, which was `{}` and is gone", self.path, self.before),
        }
    }
}

/// The value of a setting; none where it has none that can be read.
fn value(root: &SysRoot, path: &str) -> Option<Vec<u8>> {
    Step::setting(path).state(root).ok().flatten()
}

fn is_same(path: &str, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    Step::setting(path).is_same(one, other)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim().to_owned()
}

/// The values of those settings that can be read and written.
pub(super) fn save<'a>(root: &SysRoot, paths: impl Iterator<Item = &'a String>) -> Vec<Dependent> {
    let can_be_restored = |path: &&String| Step::setting(*path).refusal(root).is_none();
    let saved = |path: &String| Some(Dependent { path: path.clone(), value: Some(value(root, path)?) });
    paths.filter(can_be_restored).filter_map(saved).collect()
}

/// Those that hold another value than the one that was saved, with it.
pub(super) fn changed_settings(root: &SysRoot, saved: &[Dependent]) -> Vec<Dependent> {
    let now = |old: &Dependent| Dependent { path: old.path.clone(), value: value(root, &old.path) };
    let differs =
        |(old, now): &(&Dependent, Dependent)| !is_same(&old.path, old.value.as_deref(), now.value.as_deref());
    saved.iter().map(|old| (old, now(old))).filter(differs).map(|(_, now)| now).collect()
}

/// What was reset, for people.
pub(super) fn describe(saved: &[Dependent], reset: &[Dependent]) -> Vec<ResetSetting> {
    let was = |path: &str| saved.iter().find(|old| old.path == path)?.value.as_deref().map(text);
    let one = |now: &Dependent| {
        Some(ResetSetting { path: now.path.clone(), before: was(&now.path)?, after: now.value.as_deref().map(text) })
    };
    reset.iter().filter_map(one).collect()
}

/// The dependents of a change that is about to be undone.
pub(super) struct PendingRestore<'a> {
    change: &'a Change,
    settings: Vec<DependentSetting<'a>>,
}

struct DependentSetting<'a> {
    path: &'a str,
    /// What it is to hold.
    target: Vec<u8>,
    /// Whether that is what somebody else has set it to.
    is_foreign: bool,
}

impl<'a> PendingRestore<'a> {
    /// Looks at them before the change itself is undone. `reset` is what it had reset, where that is known; where it
    /// `is_undone` already (by somebody who was killed before the dependents were restored), all are restored.
    pub(super) fn new(root: &SysRoot, change: &'a Change, reset: Option<&[Dependent]>, is_undone: bool) -> Self {
        let setting = |saved: &'a Dependent| {
            Step::setting(&saved.path).remove_temporary(root);
            let before = saved.value.clone()?;
            let found = value(root, &saved.path);
            let after = reset.filter(|_| !is_undone).map(|reset| {
                reset.iter().find(|now| now.path == saved.path).map_or(Some(&before), |now| now.value.as_ref()).cloned()
            });
            let is_ours = after.is_none_or(|after| is_same(&saved.path, found.as_deref(), after.as_deref()));
            let foreign = found.filter(|found| !is_ours && !is_same(&saved.path, Some(found), Some(&before)));
            let is_foreign = foreign.is_some();
            Some(DependentSetting { path: &saved.path, target: foreign.unwrap_or(before), is_foreign })
        };
        Self { change, settings: change.dependents.iter().filter_map(setting).collect() }
    }

    /// Restores what differs, and adds what became of it.
    ///
    /// # Errors
    /// When some of them cannot be restored, which are named; the others are.
    pub(super) fn restore(
        self,
        root: &SysRoot,
        lock: &File,
        undone: &mut Vec<(Change, RevertOutcome)>,
    ) -> Result<(), StepError> {
        let mut written = vec![false; self.settings.len()];
        let mut refusals: Vec<Option<StepError>> = self.settings.iter().map(|_| None).collect();
        for _ in 0..MAX_PASSES {
            for (at, setting) in self.settings.iter().enumerate() {
                if !setting.is_at_target(root) {
                    refusals[at] = setting.write(root, lock).err();
                    written[at] = true;
                }
            }
        }
        let mut failed = Vec::new();
        for ((setting, written), refusal) in self.settings.iter().zip(written).zip(refusals) {
            if setting.is_foreign {
                // It may be a value that the system does not take any more.
                let found = value(root, setting.path).map_or("nothing".to_owned(), |found| text(&found));
                undone.push((self.entry(setting), RevertOutcome::Conflict { found }));
            } else if !setting.is_at_target(root) {
                failed.push(setting.describe_failure(root, refusal));
            } else if written {
                undone.push((self.entry(setting), RevertOutcome::Restored));
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(StepError::Dependents { what: self.change.step.description(), failed: failed.join("; ") }),
        }
    }

    /// A dependent as a change of its own.
    fn entry(&self, setting: &DependentSetting<'_>) -> Change {
        let saved = self.change.dependents.iter().find(|saved| saved.path == setting.path);
        let before = saved.and_then(|saved| saved.value.clone());
        Change {
            step: Step::setting(setting.path),
            before,
            modified: None,
            dependents: Vec::new(),
            ..self.change.clone()
        }
    }
}

impl DependentSetting<'_> {
    fn is_at_target(&self, root: &SysRoot) -> bool {
        is_same(self.path, value(root, self.path).as_deref(), Some(&self.target))
    }

    fn write(&self, root: &SysRoot, lock: &File) -> Result<(), StepError> {
        Step::setting(self.path).set(root, Some(&self.target), lock)
    }

    fn describe_failure(&self, root: &SysRoot, refusal: Option<StepError>) -> String {
        let found = value(root, self.path).map_or("nothing".to_owned(), |found| format!("`{}`", text(&found)));
        let why = match refusal {
            Some(StepError::Write { why, .. }) => format!(" ({why})"),
            Some(other) => format!(" ({other})"),
            None => String::new(),
        };
        format!("`{}` holds {found} instead of `{}`{why}", self.path, text(&self.target))
    }
}
