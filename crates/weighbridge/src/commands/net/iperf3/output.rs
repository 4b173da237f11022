//! Where the output of `net iperf3` goes.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::output::print_text;

/// Standard output, or a log file.
#[derive(Debug)]
pub(super) struct Output {
    file: Option<(PathBuf, Mutex<File>)>,
    /// Text that begins each line.
    prefix: String,
}

impl Output {
    /// Opens the log file, if there is one, to append to it.
    pub(super) fn open(path: Option<&Path>, title: Option<&str>) -> Result<Self, Error> {
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(Error::file("write", path))?;
            Ok::<_, Error>((path.to_owned(), Mutex::new(file)))
        };
        let prefix = title.map(|title| format!("{title}:  ")).unwrap_or_default();
        Ok(Self { file: path.map(open).transpose()?, prefix })
    }

    /// Writes lines of text, each after the title.
    pub(super) fn write_text(&self, text: &str) -> Result<(), Error> {
        if self.prefix.is_empty() {
            return self.write(text);
        }
        let lines = text.split_inclusive('\n').map(|line| format!("{}{line}", self.prefix));
        self.write(&lines.collect::<String>())
    }

    /// Writes as it is.
    pub(super) fn write(&self, text: &str) -> Result<(), Error> {
        let Some((path, file)) = &self.file else { return print_text(text) };
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes());
        written.map_err(Error::file("write", path))
    }

    /// Writes a JSON document.
    pub(super) fn write_json(&self, value: &impl serde::Serialize, pretty: bool) -> Result<(), Error> {
        let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        let text = text.map_err(|error| Error::Internal(error.to_string()))?;
        self.write(&format!("{text}\n"))
    }
}
