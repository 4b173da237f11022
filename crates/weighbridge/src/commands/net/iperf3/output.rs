use std::io::Write;
use std::sync::{Mutex, PoisonError};

use wb_sys::OutputFile;

use crate::cli::OutputPath;
use crate::cli::net::iperf3::Iperf3Args;
use crate::error::Error;
use crate::output::{append_file, print_text};

/// Standard output, or a log file.
#[derive(Debug)]
pub(super) struct Output {
    file: Option<(OutputPath, Mutex<OutputFile>)>,
    prefix: String,
    /// Format of the time that begins each line.
    timestamps: Option<String>,
}

impl Output {
    /// Opens the log file, if there is one, to append to it.
    pub(super) fn open(args: &Iperf3Args) -> Result<Self, Error> {
        if let Some(format) = &args.timestamps {
            jiff::fmt::strtime::format(format, &jiff::Zoned::now()).map_err(|error| Error::Usage {
                what: format!("invalid --timestamps={format}: {error}"),
                help: "use a format of strftime(3) such as `%H:%M:%S `".to_owned(),
            })?;
        }
        let open = |path: &OutputPath| Ok::<_, Error>((path.clone(), append_file(path)?.into()));
        let prefix = args.test.title.as_ref().map(|title| format!("{title}:  ")).unwrap_or_default();
        Ok(Self { file: args.logfile.as_ref().map(open).transpose()?, prefix, timestamps: args.timestamps.clone() })
    }

    /// Writes lines of text, each after the time and the title.
    pub(super) fn write_text(&self, text: &str) -> Result<(), Error> {
        if self.prefix.is_empty() && self.timestamps.is_none() {
            return self.write(text);
        }
        // The format was valid when the output was opened.
        let time = |format: &String| jiff::fmt::strtime::format(format, &jiff::Zoned::now()).unwrap_or_default();
        let time = self.timestamps.as_ref().map(time).unwrap_or_default();
        let lines = text.split_inclusive('\n').map(|line| format!("{time}{}{line}", self.prefix));
        self.write(&lines.collect::<String>())
    }

    fn write(&self, text: &str) -> Result<(), Error> {
        let Some((path, file)) = &self.file else { return print_text(text) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(Error::output(path))
    }

    pub(super) fn write_json(&self, value: &impl serde::Serialize, pretty: bool) -> Result<(), Error> {
        let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        let text = text.map_err(|error| Error::Internal(error.to_string()))?;
        self.write(&format!("{text}\n"))
    }
}
