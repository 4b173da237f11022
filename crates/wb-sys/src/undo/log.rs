//! The undo log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;

use crate::{SysRoot, UntrustedPath};

use super::dependents::{self, PendingRestore, ResetSetting};
use super::record::{Change, Dependent, LogRecord, RevertOutcome};
use super::resource::{ManagedResource, ResourceError};
use super::revert::RevertError;
use super::store::{LogFolder, io_error};
use super::{LockHolder, lock};

/// An error while making or reverting changes.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// An I/O error on the log's own files.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// The failed operation, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: String,
        source: io::Error,
    },
    #[error("this machine is being changed by {}", .holder.as_ref().map_or("another process".to_owned(), LockHolder::to_string))]
    Locked {
        /// The holder of the lock, where known.
        holder: Option<LockHolder>,
    },
    #[error("{path}: line {line}: {reason}")]
    Damaged {
        path: String,
        /// Line number, from 1.
        line: usize,
        reason: String,
    },
    /// A log written by a later version.
    #[error(
        "unsupported format {format} of the undo log {path}: expected at most {known}: revert with the version that wrote it"
    )]
    UnsupportedFormat { path: String, format: u32, known: u32 },
    /// A file that is not an undo log is in its place.
    #[error("invalid undo log {path}: not written by this program: move it away")]
    Foreign { path: String },
    /// Other users could have written the log.
    #[error("{0}: an undo log is executed, so it must be in a folder that only its owner can write to")]
    Untrusted(#[from] UntrustedPath),
    /// A change could not be applied.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// Some changes could not be reverted.
    #[error(transparent)]
    Revert(#[from] Box<RevertError>),
}

impl From<RevertError> for UndoError {
    fn from(error: RevertError) -> Self {
        Self::Revert(Box::new(error))
    }
}

/// What to do with a setting that another process has changed after it was changed through the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// Leave it as it is and remove it from the log.
    Forget,
    /// Leave it as it is and keep it in the log with its original state.
    Keep,
    /// Restore it all the same.
    Overwrite,
}

/// The undo log of a machine, locked by this process.
#[derive(Debug)]
pub struct UndoLog {
    root: SysRoot,
    store: LogFolder,
    owner: String,
    boot: String,
    changes: BTreeMap<u32, OpenChange>,
    next: u32,
    /// The lock: released when this is dropped and all commands that inherited it have ended.
    lock: File,
}

/// A change in the log that is not reverted yet.
#[derive(Debug, Clone)]
struct OpenChange {
    change: Change,
    /// The result of the change; None while unknown.
    applied: Option<AppliedState>,
}

/// The result of a change.
#[derive(Debug, Clone)]
struct AppliedState {
    /// The state after the change.
    after: Option<Vec<u8>>,
    /// The dependents whose value differs from before.
    reset: Vec<Dependent>,
}

impl UndoLog {
    /// Locks and reads the log of a machine on behalf of an owner: `tune apply quiet`.
    ///
    /// # Errors
    /// When another process holds it, or it is damaged elsewhere than in its last line.
    pub fn open(root: &SysRoot, by: &str) -> Result<Self, UndoError> {
        let store = LogFolder::create(root)?;
        let path = store.lock();
        let acquired =
            lock::acquire(&path, by).map_err(io_error("lock", &path)).inspect_err(|_| store.remove_if_empty())?;
        let lock = acquired.map_err(|holder| UndoError::Locked { holder })?;
        let boot = root.text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let (root, by, changes) = (root.clone(), by.to_owned(), BTreeMap::new());
        let mut log = Self { root, store, owner: by, boot, changes, next: 0, lock };
        (log.changes, log.next) = replay(log.store.lines()?);
        if log.changes.is_empty() {
            // Left by a process that was killed after it had reverted everything.
            log.store.remove().and_then(|()| log.store.remove_owners())?
        } else {
            log.store.truncate_partial_line().and_then(|()| log.store.set_owners(&log.owners()))?
        }
        Ok(log)
    }

    /// The changes of a machine that are not reverted, whoever holds its log.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn changes(root: &SysRoot) -> Result<Vec<Change>, UndoError> {
        let (open_changes, _) = replay(LogFolder::locate(root)?.lines()?);
        Ok(open_changes.into_values().map(|open| open.change).collect())
    }

    /// The owners of the changes of a machine, readable by any user.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read_owners(root: &SysRoot) -> Result<Vec<String>, UndoError> {
        LogFolder::locate(root)?.owners()
    }

    fn owners(&self) -> BTreeSet<&str> {
        self.changes.values().map(|open| open.change.owner.as_str()).collect()
    }

    /// The current or last holder of a machine's log, for users who may not read the log itself. None where there is no
    /// log or the holder is unknown.
    ///
    /// # Errors
    /// When the log's folder is outside of the root.
    pub fn last_holder(root: &SysRoot) -> Result<Option<LockHolder>, UndoError> {
        Ok(lock::holder(&LogFolder::locate(root)?.lock()))
    }

    /// Whether any file of a log exists on a machine, even one left by a process that was killed before its first
    /// change or after its last revert.
    ///
    /// # Errors
    /// When the log's folder is outside of the root.
    pub fn exists(root: &SysRoot) -> Result<bool, UndoError> {
        Ok(LogFolder::locate(root)?.exists())
    }

    /// The changes that are not reverted, in the order in which they were applied.
    pub fn open_changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.values().map(|open| &open.change)
    }

    /// Sets a state after logging the previous one. Returns whether anything had to be changed.
    ///
    /// # Errors
    /// When the state cannot be read, logged or set; a logged change is then reverted.
    pub fn change(&mut self, resource: ManagedResource, target: Option<&[u8]>) -> Result<bool, UndoError> {
        Ok(self.change_with(resource, target, &[])?.is_some())
    }

    /// Like [`Self::change`], for a change that may reset other settings, given by their files: these are saved and
    /// restored with it. Returns those that were reset; None where nothing had to be changed.
    ///
    /// # Errors
    /// As for [`Self::change`].
    pub fn change_with(
        &mut self,
        resource: ManagedResource,
        target: Option<&[u8]>,
        dependents: &[String],
    ) -> Result<Option<Vec<ResetSetting>>, UndoError> {
        resource.require_reversible(&self.root, target)?;
        let before = resource.state(&self.root)?;
        if resource.is_same(before.as_deref(), target) {
            return Ok(None);
        }
        let number = self.next;
        let others = dependents.iter().filter(|path| ManagedResource::setting(*path) != resource);
        let saved = dependents::save(&self.root, others);
        let (boot, by) = (self.boot.clone(), self.owner.clone());
        let modified = resource.modified(&self.root);
        let change =
            Change { number, boot, owner: by, resource: resource.clone(), before, modified, dependents: saved.clone() };
        let owners = self.owners().into_iter().chain([self.owner.as_str()]).collect();
        self.store.set_owners(&owners)?;
        self.store.append(&LogRecord::Change(change.clone()))?;
        self.next += 1;
        self.changes.insert(number, OpenChange { change, applied: None });
        // Whether a failed change was made in part is unknown: it is taken for ours, and reverted.
        if let Err(error) = resource.set(&self.root, target, &self.lock) {
            self.undo(number, ConflictPolicy::Forget, &mut Vec::new())?;
            return Err(error.into());
        }
        // The kernel may have rounded the value.
        let after = resource.state(&self.root)?;
        let reset = dependents::changed_settings(&self.root, &saved);
        let described = dependents::describe(&saved, &reset);
        self.store.append(&LogRecord::Applied { number, after: after.clone(), reset: reset.clone() })?;
        if let Some(open) = self.changes.get_mut(&number) {
            open.applied = Some(AppliedState { after, reset });
        }
        Ok(Some(described))
    }

    /// Reverts all changes, the last first. Returns the outcome of each change and of its dependents.
    ///
    /// # Errors
    /// When a change cannot be reverted: it stays in the log, and the others are reverted.
    pub fn revert(&mut self) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        self.revert_where(|_| true)
    }

    /// Like [`Self::revert`], with a policy for settings that another process has changed.
    ///
    /// # Errors
    /// As for [`Self::revert`].
    pub fn revert_with(&mut self, conflict: ConflictPolicy) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        self.revert_matching(|_| true, conflict)
    }

    /// Like [`Self::revert`], for the changes that `selects` accepts.
    ///
    /// # Errors
    /// As for [`Self::revert`].
    pub fn revert_where(
        &mut self,
        selects: impl Fn(&Change) -> bool,
    ) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        self.revert_matching(selects, ConflictPolicy::Forget)
    }

    fn revert_matching(
        &mut self,
        selects: impl Fn(&Change) -> bool,
        conflict: ConflictPolicy,
    ) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        let selected = self.changes.values().rev().filter(|open| selects(&open.change));
        let selected: Vec<Change> = selected.map(|open| open.change.clone()).collect();
        let (mut undone, mut failed) = (Vec::new(), Vec::new());
        for change in selected {
            if let Err(error) = self.undo(change.number, conflict, &mut undone) {
                failed.push((change, error));
            }
        }
        if failed.is_empty() { Ok(undone) } else { Err(RevertError { undone, failed }) }
    }

    /// Reverts one change, and appends the outcomes of it and of its dependents to `undone`.
    fn undo(
        &mut self,
        number: u32,
        conflict: ConflictPolicy,
        undone: &mut Vec<(Change, RevertOutcome)>,
    ) -> Result<(), UndoError> {
        let Some(open) = self.changes.get(&number).cloned() else { return Ok(()) };
        let first = undone.len();
        let how = match self.transfer_to_later(&open)? {
            None => self.restore(&open, conflict, undone)?,
            Some(by) => {
                let how = RevertOutcome::Superseded { by };
                undone.push((open.change, how.clone()));
                how
            }
        };
        if conflict == ConflictPolicy::Keep {
            if matches!(how, RevertOutcome::Conflict { .. }) {
                return Ok(());
            }
            for (dependent, _) in
                undone[first..].iter().filter(|(_, how)| matches!(how, RevertOutcome::Conflict { .. }))
            {
                self.keep_dependent(dependent.clone())?;
            }
        }
        self.changes.remove(&number);
        if self.changes.is_empty() {
            self.store.remove()?;
            self.store.remove_owners()?;
            self.next = 0;
        } else {
            // On a full disk these may fail. Reverting twice is harmless, and a stale owner only prevents others from
            // measuring until the log is opened again.
            let _ = self.store.append(&LogRecord::Undone { number, outcome: how });
            let _ = self.store.set_owners(&self.owners());
        }
        Ok(())
    }

    /// Transfers the states that this change would restore (of the setting and its dependents) to later changes of the
    /// same settings. Returns the owner of the later change of the setting itself, if there is one.
    fn transfer_to_later(&mut self, open: &OpenChange) -> Result<Option<String>, UndoError> {
        let OpenChange { change, applied } = open;
        let is_gone = change.resource.is_volatile() && change.boot != self.boot;
        if is_gone {
            return Ok(None);
        }
        let after = applied.as_ref().map(|applied| applied.after.clone());
        let by = self.rebase(change.number, &change.resource, after, (change.before.clone(), change.modified))?;
        for Dependent { path, value } in &change.dependents {
            let now = applied.as_ref().map(|applied| {
                let reset = applied.reset.iter().find(|reset| reset.path == *path);
                reset.map_or_else(|| value.clone(), |reset| reset.value.clone())
            });
            self.rebase(change.number, &ManagedResource::setting(path), now, (value.clone(), None))?;
        }
        Ok(by)
    }

    /// Makes the first later change that saved a resource's state restore `before` instead (with the modification time of a
    /// file), provided that it had saved the state that the earlier change had left (`after`; None where unknown).
    /// Returns the owner of the later change if that changed the resource itself.
    fn rebase(
        &mut self,
        number: u32,
        resource: &ManagedResource,
        after: Option<Option<Vec<u8>>>,
        (before, modified): (Option<Vec<u8>>, Option<i64>),
    ) -> Result<Option<String>, UndoError> {
        let is_own_result =
            |saved: &Option<Vec<u8>>| after.as_ref().is_none_or(|it| resource.is_same(it.as_deref(), saved.as_deref()));
        for (later, OpenChange { change, .. }) in self.changes.range_mut(number + 1..) {
            let is_itself = change.resource == *resource;
            let dependent =
                change.dependents.iter_mut().find(|saved| ManagedResource::setting(&saved.path) == *resource);
            let (saved, path) = match dependent {
                _ if is_itself => (&mut change.before, None),
                Some(Dependent { path, value }) => (value, Some(path.clone())),
                None => continue,
            };
            if !is_own_result(saved) {
                return Ok(None);
            }
            self.store.append(&LogRecord::Rebased {
                number: *later,
                before: before.clone(),
                modified,
                dependent: path,
            })?;
            *saved = before;
            if is_itself {
                change.modified = modified;
            }
            return Ok(is_itself.then(|| change.owner.clone()));
        }
        Ok(None)
    }

    /// Logs a dependent that another process has changed as a change of its own, when its change is reverted.
    fn keep_dependent(&mut self, dependent: Change) -> Result<(), UndoError> {
        let change = Change { number: self.next, ..dependent };
        let (number, after) = (change.number, change.before.clone());
        self.store.append(&LogRecord::Change(change.clone()))?;
        self.store.append(&LogRecord::Applied { number, after: after.clone(), reset: Vec::new() })?;
        self.next += 1;
        self.changes.insert(number, OpenChange { change, applied: Some(AppliedState { after, reset: Vec::new() }) });
        Ok(())
    }

    fn restore(
        &self,
        open: &OpenChange,
        conflict: ConflictPolicy,
        undone: &mut Vec<(Change, RevertOutcome)>,
    ) -> Result<RevertOutcome, UndoError> {
        let OpenChange { change, applied } = open;
        // Overwriting ignores the known result.
        let applied = applied.as_ref().filter(|_| conflict != ConflictPolicy::Overwrite);
        let Change { resource, before, boot, .. } = change;
        let mut done = |how: RevertOutcome| {
            undone.push((change.clone(), how.clone()));
            how
        };
        resource.remove_temporary(&self.root);
        if resource.is_volatile() && *boot != self.boot {
            return Ok(done(RevertOutcome::Gone));
        }
        let now = match resource.state(&self.root) {
            Err(ResourceError::Sys(crate::SysError::Missing { .. })) => return Ok(done(RevertOutcome::Gone)),
            other => other?,
        };
        let is_undone = now == *before;
        // Where the result is unknown, this program is assumed to have written the setting last.
        if !is_undone && applied.is_some_and(|applied| !resource.is_same(applied.after.as_deref(), now.as_deref())) {
            let found = String::from_utf8_lossy(now.as_deref().unwrap_or_default()).trim().to_owned();
            return Ok(done(RevertOutcome::Conflict { found }));
        }
        let reset = applied.map(|applied| applied.reset.as_slice());
        let dependents = PendingRestore::new(&self.root, change, reset, is_undone);
        if !is_undone {
            resource.set(&self.root, before.as_deref(), &self.lock)?;
            resource.verify_state(&self.root, before.as_deref())?;
        }
        resource.set_modified(&self.root, change.modified)?;
        let how = done(RevertOutcome::Restored);
        dependents.restore(&self.root, &self.lock, undone)?;
        Ok(how)
    }
}

impl Drop for UndoLog {
    /// Removes all files where no change is left; otherwise the lock file names the owner of the remaining changes.
    fn drop(&mut self) {
        if let Some(OpenChange { change, .. }) = self.changes.values().next_back()
            && change.owner != self.owner
        {
            // The name only serves users who may not read the log.
            let _ = lock::write_record(&self.lock, &self.store.lock(), &change.owner);
        }
        if self.changes.is_empty() {
            // Remains of a change that could not be logged are removed when the log is opened next.
            let _ = self.store.remove_owners();
            let _ = lock::remove(&self.store.lock());
            self.store.remove_if_empty();
        }
    }
}

/// Replays the records of a log into the changes that are not reverted and the next number.
fn replay(lines: Vec<LogRecord>) -> (BTreeMap<u32, OpenChange>, u32) {
    let (mut changes, mut next) = (BTreeMap::new(), 0);
    for line in lines {
        match line {
            LogRecord::Change(change) => {
                next = next.max(change.number + 1);
                changes.insert(change.number, OpenChange { change, applied: None });
            }
            LogRecord::Applied { number, after, reset } => {
                if let Some(open) = changes.get_mut(&number) {
                    open.applied = Some(AppliedState { after, reset });
                }
            }
            LogRecord::Rebased { number, before, modified, dependent } => {
                let change = changes.get_mut(&number).map(|open: &mut OpenChange| &mut open.change);
                match (change, dependent) {
                    (None, _) => {}
                    (Some(change), None) => (change.before, change.modified) = (before, modified),
                    (Some(change), Some(path)) => {
                        let saved = change.dependents.iter_mut().find(|saved| saved.path == path);
                        saved.into_iter().for_each(|saved| saved.value.clone_from(&before));
                    }
                }
            }
            LogRecord::Undone { number, .. } => drop(changes.remove(&number)),
        }
    }
    (changes, next)
}
