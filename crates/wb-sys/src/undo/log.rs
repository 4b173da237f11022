//! The log itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;

use crate::SysRoot;

use super::dependents::{self, PendingRestore, ResetSetting};
use super::record::{Change, Dependent, LogRecord, RevertOutcome};
use super::revert::RevertError;
use super::step::{Step, StepError};
use super::store::{LogFolder, io_error};
use super::{LockHolder, lock};

/// Why something was not changed, or not put back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The log's own files.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else is changing this machine.
    #[error("this machine is being changed by {}", .holder.as_ref().map_or("somebody else".to_owned(), LockHolder::to_string))]
    Locked {
        /// Who, where it can be told.
        holder: Option<LockHolder>,
    },
    /// A line that is not as it was written.
    #[error("{path}: line {line}: {why}")]
    Damaged {
        /// The log.
        path: String,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A log that a later version has written.
    #[error(
        "{path} is an undo log of format {format}, and this version knows up to {known}: revert with the version that wrote it"
    )]
    UnsupportedFormat {
        /// The log.
        path: String,
        /// Its format.
        format: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// Something else is where the log should be.
    #[error("{path} is no undo log: move it away, since nothing of this program is in it")]
    Foreign {
        /// What is there.
        path: String,
    },
    /// Others could have written what is in the log.
    #[error(
        "{path} {why}: what an undo log says is carried out, so that it must be in a folder that only its user can write to"
    )]
    Untrusted {
        /// The folder.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A change that could not be made.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Changes that could not be put back.
    #[error(transparent)]
    Revert(#[from] Box<RevertError>),
}

impl From<RevertError> for UndoError {
    fn from(error: RevertError) -> Self {
        Self::Revert(Box::new(error))
    }
}

/// What is done with a setting that somebody else has changed since it was changed through the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// It is left as it is, and forgotten.
    Forget,
    /// It is left as it is, and stays in the log with what it was.
    Keep,
    /// It is put back all the same.
    Overwrite,
}

/// The undo log of a machine, held by this process.
#[derive(Debug)]
pub struct UndoLog {
    root: SysRoot,
    store: LogFolder,
    owner: String,
    boot: String,
    changes: BTreeMap<u32, OpenChange>,
    next: u32,
    /// The lock: it goes when this does, and whatever was started to change something.
    lock: File,
}

/// What the log has of a change that is not undone.
#[derive(Debug, Clone)]
struct OpenChange {
    change: Change,
    /// What it came to; none while that is not known.
    applied: Option<AppliedState>,
}

/// What a change came to.
#[derive(Debug, Clone)]
struct AppliedState {
    /// What is there.
    after: Option<Vec<u8>>,
    /// The dependents that have another value than before.
    reset: Vec<Dependent>,
}

impl UndoLog {
    /// Takes the log of a machine, for somebody: `tune apply quiet`.
    ///
    /// # Errors
    /// When somebody else has it, or it is damaged elsewhere than in its last line.
    pub fn open(root: &SysRoot, by: &str) -> Result<Self, UndoError> {
        let store = LogFolder::create(root)?;
        let path = store.lock();
        let taken =
            lock::acquire(&path, by).map_err(io_error("take", &path)).inspect_err(|_| store.remove_if_empty())?;
        let lock = taken.map_err(|holder| UndoError::Locked { holder })?;
        let boot = root.text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let (root, by, changes) = (root.clone(), by.to_owned(), BTreeMap::new());
        let mut log = Self { root, store, owner: by, boot, changes, next: 0, lock };
        (log.changes, log.next) = replay(log.store.lines()?);
        match log.changes.is_empty() {
            // Of somebody who was killed when everything was put back.
            true => log.store.remove().and_then(|()| log.store.remove_owners())?,
            false => log.store.truncate_partial_line().and_then(|()| log.store.set_owners(&log.owners()))?,
        }
        Ok(log)
    }

    /// What is changed on a machine, whoever holds its log.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn changes(root: &SysRoot) -> Result<Vec<Change>, UndoError> {
        let (known, _) = replay(LogFolder::locate(root)?.lines()?);
        Ok(known.into_values().map(|known| known.change).collect())
    }

    /// For whom a machine is changed; any user may know that.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn read_owners(root: &SysRoot) -> Result<Vec<String>, UndoError> {
        LogFolder::locate(root)?.owners()
    }

    fn owners(&self) -> BTreeSet<&str> {
        self.changes.values().map(|known| known.change.owner.as_str()).collect()
    }

    /// Who changed a machine last, or does; for those who may not read the log itself. None where there is no log, or
    /// nobody can be named.
    ///
    /// # Errors
    /// When its folder leads elsewhere.
    pub fn last_holder(root: &SysRoot) -> Result<Option<LockHolder>, UndoError> {
        Ok(lock::holder(&LogFolder::locate(root)?.lock()))
    }

    /// Whether anything of a log is left on a machine, be it of somebody who was killed before a change or after the
    /// last was put back.
    ///
    /// # Errors
    /// When its folder leads elsewhere.
    pub fn exists(root: &SysRoot) -> Result<bool, UndoError> {
        Ok(LogFolder::locate(root)?.exists())
    }

    /// What is changed, in the order of the changes.
    pub fn open_changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.values().map(|known| &known.change)
    }

    /// Makes something so, after noting what was there; whether anything had to be changed.
    ///
    /// # Errors
    /// When it cannot be read, noted or set; what was noted is put back.
    pub fn change(&mut self, step: Step, wanted: Option<&[u8]>) -> Result<bool, UndoError> {
        Ok(self.change_with(step, wanted, &[])?.is_some())
    }

    /// The same where the change may reset other settings, of which these are the files: they are saved with it, and
    /// restored with it. Returns those that it did reset; none where nothing had to be changed.
    ///
    /// # Errors
    /// As for [`Self::change`].
    pub fn change_with(
        &mut self,
        step: Step,
        wanted: Option<&[u8]>,
        dependents: &[String],
    ) -> Result<Option<Vec<ResetSetting>>, UndoError> {
        step.require_reversible(&self.root, wanted)?;
        let before = step.state(&self.root)?;
        if step.is_same(before.as_deref(), wanted) {
            return Ok(None);
        }
        let number = self.next;
        let others = dependents.iter().filter(|path| Step::setting(*path) != step);
        let saved = dependents::save(&self.root, others);
        let (boot, by) = (self.boot.clone(), self.owner.clone());
        let modified = step.modified(&self.root);
        let change =
            Change { number, boot, owner: by, step: step.clone(), before, modified, dependents: saved.clone() };
        let owners = self.owners().into_iter().chain([self.owner.as_str()]).collect();
        self.store.set_owners(&owners)?;
        self.store.append(&LogRecord::Change(change.clone()))?;
        self.next += 1;
        self.changes.insert(number, OpenChange { change, applied: None });
        if let Err(error) = step.set(&self.root, wanted, &self.lock) {
            self.undo(number, ConflictPolicy::Forget, &mut Vec::new())?;
            return Err(error.into());
        }
        // What the kernel made of it, which may be rounded.
        let after = step.state(&self.root)?;
        let reset = dependents::changed_settings(&self.root, &saved);
        let described = dependents::describe(&saved, &reset);
        self.store.append(&LogRecord::Applied { number, after: after.clone(), reset: reset.clone() })?;
        if let Some(known) = self.changes.get_mut(&number) {
            known.applied = Some(AppliedState { after, reset });
        }
        Ok(Some(described))
    }

    /// Puts back everything that is changed, the last first; what became of each, and of the settings that went with it.
    ///
    /// # Errors
    /// When something cannot be put back: the rest is, and that stays in the log.
    pub fn revert(&mut self) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        self.revert_where(|_| true)
    }

    /// The same, with what is done where somebody else has changed something since.
    ///
    /// # Errors
    /// As for all.
    pub fn revert_with(&mut self, conflict: ConflictPolicy) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        self.revert_matching(|_| true, conflict)
    }

    /// The same for some of the changes.
    ///
    /// # Errors
    /// As for all.
    pub fn revert_where(
        &mut self,
        which: impl Fn(&Change) -> bool,
    ) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        self.revert_matching(which, ConflictPolicy::Forget)
    }

    fn revert_matching(
        &mut self,
        which: impl Fn(&Change) -> bool,
        conflict: ConflictPolicy,
    ) -> Result<Vec<(Change, RevertOutcome)>, RevertError> {
        let chosen = self.changes.values().rev().filter(|known| which(&known.change));
        let chosen: Vec<Change> = chosen.map(|known| known.change.clone()).collect();
        let (mut undone, mut failed) = (Vec::new(), Vec::new());
        for change in chosen {
            if let Err(error) = self.undo(change.number, conflict, &mut undone) {
                failed.push((change, error));
            }
        }
        match failed.is_empty() {
            true => Ok(undone),
            false => Err(RevertError { undone, failed }),
        }
    }

    /// Undoes one change, and adds what became of it and of its dependents.
    fn undo(
        &mut self,
        number: u32,
        conflict: ConflictPolicy,
        undone: &mut Vec<(Change, RevertOutcome)>,
    ) -> Result<(), UndoError> {
        let Some(known) = self.changes.get(&number).cloned() else { return Ok(()) };
        let first = undone.len();
        let how = match self.transfer_to_later(&known)? {
            None => self.restore(&known, conflict, undone)?,
            Some(by) => {
                let how = RevertOutcome::Superseded { by };
                undone.push((known.change, how.clone()));
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
            // Where the disk is full these stay unwritten: done twice it is the same, and an owner too many keeps others
            // from measuring until the log is opened again.
            let _ = self.store.append(&LogRecord::Undone { number, how });
            let _ = self.store.set_owners(&self.owners());
        }
        Ok(())
    }

    /// Has later changes of the same settings put back what this one was to put back, the setting itself and its
    /// dependents; for whom the setting itself was changed again, if it was.
    fn transfer_to_later(&mut self, known: &OpenChange) -> Result<Option<String>, UndoError> {
        let OpenChange { change, applied: made } = known;
        let is_gone = change.step.is_volatile() && change.boot != self.boot;
        if is_gone {
            return Ok(None);
        }
        let after = made.as_ref().map(|made| made.after.clone());
        let by = self.rebase(change.number, &change.step, after, (change.before.clone(), change.modified))?;
        for Dependent { path, value } in &change.dependents {
            let now = made.as_ref().map(|made| {
                let reset = made.reset.iter().find(|reset| reset.path == *path);
                reset.map_or_else(|| value.clone(), |reset| reset.value.clone())
            });
            self.rebase(change.number, &Step::setting(path), now, (value.clone(), None))?;
        }
        Ok(by)
    }

    /// Has the first later change that saved a step's state put back `before` (with the time at which a file was
    /// modified), where it had saved what an earlier change had made of it (`after`; none where that is not known); for
    /// whom it changed the step itself, if it did.
    fn rebase(
        &mut self,
        number: u32,
        step: &Step,
        after: Option<Option<Vec<u8>>>,
        (before, modified): (Option<Vec<u8>>, Option<i64>),
    ) -> Result<Option<String>, UndoError> {
        let is_ours =
            |saved: &Option<Vec<u8>>| after.as_ref().is_none_or(|it| step.is_same(it.as_deref(), saved.as_deref()));
        for (later, OpenChange { change, .. }) in self.changes.range_mut(number + 1..) {
            let is_itself = change.step == *step;
            let dependent = change.dependents.iter_mut().find(|saved| Step::setting(&saved.path) == *step);
            let (saved, path) = match dependent {
                _ if is_itself => (&mut change.before, None),
                Some(Dependent { path, value }) => (value, Some(path.clone())),
                None => continue,
            };
            if !is_ours(saved) {
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

    /// Keeps a dependent that somebody else has changed as a change of its own, when the one that it went with is undone.
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
        known: &OpenChange,
        conflict: ConflictPolicy,
        undone: &mut Vec<(Change, RevertOutcome)>,
    ) -> Result<RevertOutcome, UndoError> {
        let OpenChange { change, applied: made } = known;
        // As if nothing were known of what it came to.
        let made = made.as_ref().filter(|_| conflict != ConflictPolicy::Overwrite);
        let Change { step, before, boot, .. } = change;
        let mut done = |how: RevertOutcome| {
            undone.push((change.clone(), how.clone()));
            how
        };
        step.remove_temporary(&self.root);
        if step.is_volatile() && *boot != self.boot {
            return Ok(done(RevertOutcome::Gone));
        }
        let now = match step.state(&self.root) {
            Err(StepError::Sys(crate::SysError::Missing { .. })) => return Ok(done(RevertOutcome::Gone)),
            other => other?,
        };
        let is_undone = now == *before;
        // Where it is not known what it held, we were the last that are known to have written it.
        if !is_undone && made.is_some_and(|made| !step.is_same(made.after.as_deref(), now.as_deref())) {
            let found = String::from_utf8_lossy(now.as_deref().unwrap_or_default()).trim().to_owned();
            return Ok(done(RevertOutcome::Conflict { found }));
        }
        let reset = made.map(|made| made.reset.as_slice());
        let dependents = PendingRestore::new(&self.root, change, reset, is_undone);
        if !is_undone {
            step.set(&self.root, before.as_deref(), &self.lock)?;
            step.verify_state(&self.root, before.as_deref())?;
        }
        step.set_modified(&self.root, change.modified)?;
        let how = done(RevertOutcome::Restored);
        dependents.restore(&self.root, &self.lock, undone)?;
        Ok(how)
    }
}

impl Drop for UndoLog {
    /// Nothing stays where nothing is changed; the lock else names whose changes stay.
    fn drop(&mut self) {
        if let Some(OpenChange { change, .. }) = self.changes.values().next_back()
            && change.owner != self.owner
        {
            // Whom it names helps those alone who may not read the log.
            let _ = lock::write_record(&mut self.lock, &change.owner);
        }
        if self.changes.is_empty() {
            // What stays of a change that could not be noted is removed by whoever opens the log next.
            let _ = self.store.remove_owners();
            let _ = fs::remove_file(self.store.lock());
            self.store.remove_if_empty();
        }
    }
}

/// The changes of a log that are not undone, and the next number.
fn replay(lines: Vec<LogRecord>) -> (BTreeMap<u32, OpenChange>, u32) {
    let (mut changes, mut next) = (BTreeMap::new(), 0);
    for line in lines {
        match line {
            LogRecord::Change(change) => {
                next = next.max(change.number + 1);
                changes.insert(change.number, OpenChange { change, applied: None });
            }
            LogRecord::Applied { number, after, reset } => {
                if let Some(known) = changes.get_mut(&number) {
                    known.applied = Some(AppliedState { after, reset });
                }
            }
            LogRecord::Rebased { number, before, modified, dependent } => {
                let change = changes.get_mut(&number).map(|known: &mut OpenChange| &mut known.change);
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
