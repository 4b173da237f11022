//! Dependents: settings that the system resets when another setting is changed.
//!
//! Writing a disk's I/O scheduler changes the depth of its queue and replaces the scheduler's own settings. The values
//! of dependents are saved before and after the change. When it is reverted, the settings that it has reset are
//! restored with it, and those that another process has set meanwhile are left alone.

use std::fs::File;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;

use super::record::{Change, Dependent, RevertOutcome};
use super::resource::{ManagedResource, ResourceError};

/// Maximum number of passes: restoring one setting may reset another, so it is repeated until all have their values.
const MAX_PASSES: usize = 3;

/// A setting that was reset by a change of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResetSetting {
    /// File of the setting.
    pub path: String,
    /// Value before.
    pub before: String,
    /// Value after; absent where the file no longer exists.
    pub after: Option<String>,
}

impl std::fmt::Display for ResetSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.after {
            Some(now) => write!(f, "{} from `{}` to `{now}`", self.path, self.before),
            None => write!(f, "{}, which was `{}` and no longer exists", self.path, self.before),
        }
    }
}

/// The value of a setting; None where it cannot be read.
fn value(root: &SysRoot, path: &str) -> Option<Vec<u8>> {
    ManagedResource::setting(path).state(root).ok().flatten()
}

fn is_same(path: &str, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    ManagedResource::setting(path).is_same(one, other)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim().to_owned()
}

/// Saves the values of those settings that can be read and written.
pub(super) fn save<'a>(root: &SysRoot, paths: impl Iterator<Item = &'a String>) -> Vec<Dependent> {
    let can_be_restored = |path: &&String| ManagedResource::setting(*path).refusal(root).is_none();
    let saved = |path: &String| Some(Dependent { path: path.clone(), value: Some(value(root, path)?) });
    paths.filter(can_be_restored).filter_map(saved).collect()
}

/// The settings whose current value differs from the saved one, with the current value.
pub(super) fn changed_settings(root: &SysRoot, saved: &[Dependent]) -> Vec<Dependent> {
    let now = |old: &Dependent| Dependent { path: old.path.clone(), value: value(root, &old.path) };
    let differs =
        |(old, now): &(&Dependent, Dependent)| !is_same(&old.path, old.value.as_deref(), now.value.as_deref());
    saved.iter().map(|old| (old, now(old))).filter(differs).map(|(_, now)| now).collect()
}

/// Describes the settings that were reset, for output.
pub(super) fn describe(saved: &[Dependent], reset: &[Dependent]) -> Vec<ResetSetting> {
    let before = |path: &str| saved.iter().find(|old| old.path == path)?.value.as_deref().map(text);
    let describe = |current: &Dependent| {
        Some(ResetSetting {
            path: current.path.clone(),
            before: before(&current.path)?,
            after: current.value.as_deref().map(text),
        })
    };
    reset.iter().filter_map(describe).collect()
}

/// The dependents of a change that is about to be reverted.
pub(super) struct PendingRestore<'a> {
    change: &'a Change,
    settings: Vec<DependentSetting<'a>>,
}

struct DependentSetting<'a> {
    path: &'a str,
    /// Value to restore.
    target: Vec<u8>,
    /// Whether the target is the value that another process has set.
    is_conflict: bool,
}

impl<'a> PendingRestore<'a> {
    /// Reads the dependents before the change itself is reverted. `reset` are the settings that the change had reset,
    /// where known. Where the change `is_undone` already (by a process that was killed before it restored the
    /// dependents), all are restored.
    pub(super) fn new(root: &SysRoot, change: &'a Change, reset: Option<&[Dependent]>, is_undone: bool) -> Self {
        let setting = |saved: &'a Dependent| {
            ManagedResource::setting(&saved.path).remove_temporary(root);
            let before = saved.value.clone()?;
            let found = value(root, &saved.path);
            let after = reset.filter(|_| !is_undone).map(|reset| {
                reset.iter().find(|now| now.path == saved.path).map_or(Some(&before), |now| now.value.as_ref()).cloned()
            });
            let is_ours = after.is_none_or(|after| is_same(&saved.path, found.as_deref(), after.as_deref()));
            let foreign = found.filter(|found| !is_ours && !is_same(&saved.path, Some(found), Some(&before)));
            let is_foreign = foreign.is_some();
            Some(DependentSetting { path: &saved.path, target: foreign.unwrap_or(before), is_conflict: is_foreign })
        };
        Self { change, settings: change.dependents.iter().filter_map(setting).collect() }
    }

    /// Restores the settings that differ, and appends their outcomes to `undone`.
    ///
    /// # Errors
    /// When some of them cannot be restored, which are named; the others are restored.
    pub(super) fn restore(
        self,
        root: &SysRoot,
        lock: &File,
        undone: &mut Vec<(Change, RevertOutcome)>,
    ) -> Result<(), ResourceError> {
        let mut written = vec![false; self.settings.len()];
        let mut refusals: Vec<Option<ResourceError>> = self.settings.iter().map(|_| None).collect();
        for _ in 0..MAX_PASSES {
            for (index, setting) in self.settings.iter().enumerate() {
                if !setting.is_at_target(root) {
                    refusals[index] = setting.write(root, lock).err();
                    written[index] = true;
                }
            }
        }
        let mut failed = Vec::new();
        for ((setting, written), refusal) in self.settings.iter().zip(written).zip(refusals) {
            if setting.is_conflict {
                // The system may no longer accept its value.
                let found = value(root, setting.path).map_or("nothing".to_owned(), |found| text(&found));
                undone.push((self.entry(setting), RevertOutcome::Conflict { found }));
            } else if !setting.is_at_target(root) {
                failed.push(setting.describe_failure(root, refusal));
            } else if written {
                undone.push((self.entry(setting), RevertOutcome::Restored));
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(ResourceError::Dependents { what: self.change.resource.description(), failed: failed.join("; ") })
        }
    }

    /// Represents a dependent as a change of its own.
    fn entry(&self, setting: &DependentSetting<'_>) -> Change {
        let saved = self.change.dependents.iter().find(|saved| saved.path == setting.path);
        let before = saved.and_then(|saved| saved.value.clone());
        Change {
            resource: ManagedResource::setting(setting.path),
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

    fn write(&self, root: &SysRoot, lock: &File) -> Result<(), ResourceError> {
        ManagedResource::setting(self.path).set(root, Some(&self.target), lock)
    }

    fn describe_failure(&self, root: &SysRoot, refusal: Option<ResourceError>) -> String {
        let found = value(root, self.path).map_or("unreadable".to_owned(), |found| format!("`{}`", text(&found)));
        let why = match refusal {
            Some(ResourceError::Write { cause: why, .. }) => format!(" ({why})"),
            Some(other) => format!(" ({other})"),
            None => String::new(),
        };
        format!("`{}` is {found} instead of `{}`{why}", self.path, text(&self.target))
    }
}
