//! Where the output of `net iperf3` goes.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use wb_sys::OutputFile;

use crate::cli::OutputPath;
use crate::error::Error;
use crate::output::{append_file, print_text};

/// Standard output, or a log file.
#[derive(Debug)]
pub(super) struct Output {
    file: Option<(OutputPath, Mutex<OutputFile>)>,
    /// Text that begins each line.
    prefix: String,
}

impl Output {
    /// Opens the log file, if there is one, to append to it.
    pub(super) fn open(path: Option<&OutputPath>, title: Option<&str>) -> Result<Self, Error> {
        let open = |path: &OutputPath| Ok::<_, Error>((path.clone(), append_file(path)?.into()));
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
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(Error::output(path))
    }

    /// Writes a JSON document.
    pub(super) fn write_json(&self, value: &impl serde::Serialize, pretty: bool) -> Result<(), Error> {
        let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        let text = text.map_err(|error| Error::Internal(error.to_string()))?;
        self.write(&format!("{text}\n"))
    }
}
