//! Writes response times to a file, one per line.

use std::io::{self, BufWriter, Write};

use wb_net::{engine::raw_log::LatencyRecord, language::NetProfile};
use wb_sys::OutputFile;

use crate::cli::OutputPath;
use crate::error::Error;
use crate::output::create_file;

/// The header line.
const HEADER: &str = "# seconds since the run began\tgroup\tthread\tflowop\tresponse time in nanoseconds";

/// A log of response times with the names of their groups and flowops.
pub(super) struct ResponseLog {
    path: OutputPath,
    file: BufWriter<OutputFile>,
    /// By group: the name of the group and the names of its flowops.
    names: Vec<(String, Vec<String>)>,
    failed: Option<io::Error>,
}

impl ResponseLog {
    /// Creates the file and writes the header.
    pub(super) fn create(path: &OutputPath) -> Result<Self, Error> {
        let mut file = BufWriter::new(create_file(path)?);
        writeln!(file, "{HEADER}").map_err(Error::output(path))?;
        Ok(Self { path: path.clone(), file, names: Vec::new(), failed: None })
    }

    /// Starts the records of a profile; a title separates several profiles in one file.
    pub(super) fn start_profile(&mut self, profile: &NetProfile, title: Option<&str>) {
        let names = profile.groups.iter().map(|group| {
            let flowops = group.transactions.iter().flat_map(|transaction| &transaction.flowops);
            (strip_control(&group.name), flowops.map(|flowop| flowop.name.clone()).collect())
        });
        self.names = names.collect();
        if let Some(title) = title {
            let line = writeln!(self.file, "# {}", strip_control(title));
            self.note_error(line);
        }
    }

    /// Appends records; `began` is the start of the run.
    pub(super) fn append(&mut self, began: u64, times: &[LatencyRecord]) {
        for time in times {
            let Some((group, flowops)) = self.names.get(time.group as usize) else { continue };
            let Some(flowop) = flowops.get(time.flowop as usize) else { continue };
            let at = time.ended_at.saturating_sub(began);
            let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
            let line =
                writeln!(self.file, "{seconds}.{nanos:09}\t{group}\t{}\t{flowop}\t{}", time.strand, time.duration);
            self.note_error(line);
        }
    }

    /// Ends the file and returns the first error of all writes. A reader that has closed a pipe has what it wants.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let flushed = self.file.flush();
        self.note_error(flushed);
        let ended = match self.failed {
            Some(error) => Err(error),
            None => self.file.into_inner().map_err(io::IntoInnerError::into_error).and_then(OutputFile::finish),
        };
        match ended {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            ended => ended.map_err(Error::output(&self.path)),
        }
    }

    /// Remembers the first write error; a full disk does not stop the run and is reported at the end.
    fn note_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

/// Replaces control characters, so that a name cannot break a line.
fn strip_control(name: &str) -> String {
    name.replace(char::is_control, " ")
}
