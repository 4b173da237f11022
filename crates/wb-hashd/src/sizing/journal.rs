//! The journal of a sizing: a line for its configuration, and one for each finished round.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use wb_sys::file_lock::open_private;
use wb_sys::{FileLock, LockError, PathError};

use super::{Round, SizingConfig, SizingLine};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    #[error(transparent)]
    Io(#[from] PathError),
    #[error("{}: another sizing is running", path.display())]
    Busy { path: PathBuf },
    /// A line before the last one is damaged.
    #[error("{}:{line}: invalid line: {message}", path.display())]
    Damaged {
        path: PathBuf,
        /// From 1.
        line: usize,
        message: String,
    },
    #[error("{}: the journal belongs to another configuration", path.display())]
    OtherConfig { path: PathBuf },
}

/// A journal that is locked by this process.
#[derive(Debug)]
pub struct SizingJournal {
    path: PathBuf,
    lock: FileLock,
    has_rounds: bool,
}

impl SizingJournal {
    /// Opens or creates a journal, and returns its configuration, if it has one, and its rounds. A torn last line is
    /// removed. Fails if the journal is in use or damaged.
    pub fn open(path: &Path) -> Result<(Self, Option<SizingConfig>, Vec<Round>), JournalError> {
        let failed = PathError::new("read", path);
        // Private, because it is also the lock.
        let lock = FileLock::try_acquire(path, || open_private(path)).map_err(|error| match error {
            LockError::Held(_) => JournalError::Busy { path: path.to_owned() },
            other => failed(other.into()).into(),
        })?;
        let mut file = lock.file();
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(complete as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        let (mut config, mut rounds) = (None, Vec::new());
        for (index, line) in text[..complete].lines().enumerate() {
            match serde_json::from_str(line) {
                Ok(SizingLine::Config(found)) => config = Some(*found),
                Ok(SizingLine::Round(round)) => rounds.push(*round),
                Ok(SizingLine::Result(_)) => {}
                Err(error) => {
                    let message = error.to_string();
                    return Err(JournalError::Damaged { path: path.to_owned(), line: index + 1, message });
                }
            }
        }
        Ok((Self { path: path.to_owned(), lock, has_rounds: !rounds.is_empty() }, config, rounds))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, and waits until it is on the device.
    pub fn append(&mut self, line: &SizingLine) -> Result<(), JournalError> {
        let write = || {
            let text = serde_json::to_string(line)? + "\n";
            let mut file = self.lock.file();
            file.write_all(text.as_bytes())?;
            file.sync_data()
        };
        write().map_err(PathError::new("write", &self.path))?;
        self.has_rounds |= matches!(line, SizingLine::Round(_));
        Ok(())
    }

    /// Removes a journal without rounds: there is nothing to resume.
    pub fn remove_without_rounds(self) -> Result<(), JournalError> {
        if self.has_rounds {
            return Ok(());
        }
        Ok(fs::remove_file(&self.path).map_err(PathError::new("remove", &self.path))?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::super::simulation::{Machine, config};
    use super::super::{SizingStep, next_step};
    use super::*;

    #[test]
    fn rounds_survive_and_an_incomplete_line_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let SizingStep::Run(plan) = next_step(&config(), &[]).unwrap() else { unreachable!("nothing is known yet") };
        let round = Machine::default().run(&config(), plan);
        let (mut journal, found, rounds) = SizingJournal::open(&path).unwrap();
        assert_eq!((found, rounds.len()), (None, 0));
        journal.append(&SizingLine::Config(Box::new(config()))).unwrap();
        journal.append(&SizingLine::Round(Box::new(round.clone()))).unwrap();
        assert!(matches!(SizingJournal::open(&path), Err(JournalError::Busy { .. })));
        drop(journal);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, whole.clone() + "{\"round\":{\"pl").unwrap();
        let (mut journal, found, rounds) = SizingJournal::open(&path).unwrap();
        assert_eq!((found, rounds), (Some(config()), vec![round.clone()]));
        journal.append(&SizingLine::Round(Box::new(round.clone()))).unwrap();
        drop(journal);
        assert_eq!(SizingJournal::open(&path).unwrap().2, [round.clone(), round]);
        std::fs::write(&path, format!("nonsense\n{whole}")).unwrap();
        let error = SizingJournal::open(&path).unwrap_err().to_string();
        assert!(error.contains("journal:1: invalid line: "), "{error}");
    }
}
