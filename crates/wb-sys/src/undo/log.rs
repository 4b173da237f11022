//! The log itself.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::SysRoot;

use super::entry::{Change, Line, Undone};
use super::step::{Step, StepError};
use super::{Holder, lock};

/// Where the log of a machine is.
const FOLDER: &str = "/var/lib/weighbridge/undo";

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
    #[error("this machine is being changed by {}", .holder.as_ref().map_or("somebody else".to_owned(), Holder::to_string))]
    Held {
        /// Who, where it can be told.
        holder: Option<Holder>,
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
    /// A change that could not be made.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// The undo log of a machine, held by this process.
#[derive(Debug)]
pub struct UndoLog {
    root: SysRoot,
    folder: PathBuf,
    by: String,
    boot: String,
    changes: BTreeMap<u32, Known>,
    next: u32,
    /// The lock: it goes when this does.
    _lock: File,
}

/// What the log has of a change that is not undone.
#[derive(Debug, Clone)]
struct Known {
    change: Change,
    /// What it held once it was made; none while that is not known.
    after: Option<Option<Vec<u8>>>,
}

impl UndoLog {
    /// Takes the log of a machine, for somebody: `tune apply quiet`.
    ///
    /// # Errors
    /// When somebody else has it, or it is damaged elsewhere than in its last line.
    pub fn open(root: &SysRoot, by: &str) -> Result<Self, UndoError> {
        let folder = root.path(FOLDER).map_err(StepError::from)?;
        fs::create_dir_all(&folder).map_err(io_error("make", &folder))?;
        let path = folder.join("lock");
        let taken = lock::take(&path, by).map_err(io_error("take", &path))?;
        let lock = taken.map_err(|holder| UndoError::Held { holder })?;
        let boot = root.text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let mut log = Self {
            root: root.clone(),
            folder,
            by: by.to_owned(),
            boot,
            changes: BTreeMap::new(),
            next: 0,
            _lock: lock,
        };
        log.read()?;
        Ok(log)
    }

    /// What is changed on a machine, whoever holds its log.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn changes(root: &SysRoot) -> Result<Vec<Change>, UndoError> {
        let path = root.path(FOLDER).map_err(StepError::from)?.join("log.jsonl");
        let (known, _) = read(&path)?;
        Ok(known.into_values().map(|known| known.change).collect())
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
        let before = step.state(&self.root)?;
        if step.is_same(before.as_deref(), wanted) {
            return Ok(false);
        }
        let number = self.next;
        let change = Change { number, boot: self.boot.clone(), by: self.by.clone(), step: step.clone(), before };
        self.write(&Line::Change(change.clone()))?;
        self.next += 1;
        self.changes.insert(number, Known { change, after: None });
        if let Err(error) = step.set(&self.root, wanted) {
            self.undo(number)?;
            return Err(error.into());
        }
        // What the kernel made of it, which may be rounded.
        let after = step.state(&self.root)?;
        self.write(&Line::Made { number, after: after.clone() })?;
        if let Some(known) = self.changes.get_mut(&number) {
            known.after = Some(after);
        }
        Ok(true)
    }

    /// Puts back everything that is changed, the last first; what became of each.
    ///
    /// # Errors
    /// When something cannot be put back: the rest is, and that stays in the log.
    pub fn revert(&mut self) -> Result<Vec<(Change, Undone)>, UndoError> {
        self.revert_where(|_| true)
    }

    /// The same for some of the changes.
    ///
    /// # Errors
    /// As for all.
    pub fn revert_where(&mut self, which: impl Fn(&Change) -> bool) -> Result<Vec<(Change, Undone)>, UndoError> {
        let chosen = self.changes.values().rev().filter(|known| which(&known.change));
        let numbers: Vec<u32> = chosen.map(|known| known.change.number).collect();
        let (mut undone, mut failed) = (Vec::new(), None);
        for number in numbers {
            match self.undo(number) {
                Ok(Some(one)) => undone.push(one),
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(undone),
        }
    }

    fn undo(&mut self, number: u32) -> Result<Option<(Change, Undone)>, UndoError> {
        let Some(Known { change, after }) = self.changes.get(&number).cloned() else { return Ok(None) };
        let how = self.put_back(&change, after.as_ref().map(Option::as_deref))?;
        self.write(&Line::Undone { number, how: how.clone() })?;
        self.changes.remove(&number);
        if self.changes.is_empty() {
            let path = self.path();
            fs::remove_file(&path).map_err(io_error("remove", &path))?;
            self.next = 0;
        }
        Ok(Some((change, how)))
    }

    fn put_back(&self, change: &Change, after: Option<Option<&[u8]>>) -> Result<Undone, UndoError> {
        let Change { step, before, boot, .. } = change;
        if step.is_volatile() && *boot != self.boot {
            return Ok(Undone::Gone);
        }
        let now = match step.state(&self.root) {
            Err(StepError::Sys(crate::SysError::Missing { .. })) => return Ok(Undone::Gone),
            other => other?,
        };
        if now == *before {
            return Ok(Undone::Restored);
        }
        // Where it is not known what it held, we were the last that are known to have written it.
        if after.is_some_and(|after| !step.is_same(after, now.as_deref())) {
            let found = String::from_utf8_lossy(now.as_deref().unwrap_or_default()).trim().to_owned();
            return Ok(Undone::Left { found });
        }
        step.set(&self.root, before.as_deref())?;
        Ok(Undone::Restored)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("log.jsonl")
    }

    fn read(&mut self) -> Result<(), UndoError> {
        let (changes, next) = read(&self.path())?;
        (self.changes, self.next) = (changes, next);
        Ok(())
    }

    /// Adds a line, which has reached the device when this returns.
    fn write(&self, line: &Line) -> Result<(), UndoError> {
        let path = self.path();
        let text = serde_json::to_string(line).map_err(io::Error::from).map_err(io_error("write", &path))?;
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            let before = fs::read(&path)?;
            // The beginning of a line that never reached the device, and after which nothing was changed.
            let whole = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            file.set_len(whole as u64)?;
            file.write_all(format!("{text}\n").as_bytes())?;
            file.sync_all()?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(io_error("write", &path))
    }
}

impl Drop for UndoLog {
    /// Nothing stays where nothing is changed.
    fn drop(&mut self) {
        if self.changes.is_empty() {
            let _ = fs::remove_file(self.folder.join("lock"));
            // Folders that hold nothing else.
            let _ = fs::remove_dir(&self.folder).and_then(|()| self.folder.parent().map_or(Ok(()), fs::remove_dir));
        }
    }
}

/// The changes of a log that are not undone, and the next number.
fn read(path: &Path) -> Result<(BTreeMap<u32, Known>, u32), UndoError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((BTreeMap::new(), 0)),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    let (mut changes, mut next) = (BTreeMap::new(), 0);
    // A last line without its end was being written when its writer died, before anything was changed.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (line, text) in (1..).zip(whole.lines()) {
        let damaged = |error: serde_json::Error| UndoError::Damaged {
            path: path.display().to_string(),
            line,
            why: error.to_string(),
        };
        match serde_json::from_str(text).map_err(damaged)? {
            Line::Change(change) => {
                next = next.max(change.number + 1);
                changes.insert(change.number, Known { change, after: None });
            }
            Line::Made { number, after } => {
                if let Some(known) = changes.get_mut(&number) {
                    known.after = Some(after);
                }
            }
            Line::Undone { number, .. } => drop(changes.remove(&number)),
        }
    }
    Ok((changes, next))
}

fn io_error(what: &'static str, path: &Path) -> impl Fn(io::Error) -> UndoError + use<> {
    let path = path.display().to_string();
    move |source| UndoError::Io { what, path: path.clone(), source }
}
