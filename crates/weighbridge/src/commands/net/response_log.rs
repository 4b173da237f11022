//! Writes response times to a file, one per line.

use std::io::{self, BufWriter, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use wb_net::engine::{clock, raw_log::LatencyRecord};
use wb_net_profile::NetProfile;
use wb_sys::OutputFile;

use crate::cli::OutputPath;
use crate::error::Error;
use crate::output::create_file;

const HEADER: &str = "# seconds since the run began\tgroup\tthread\tflowop\tresponse time in nanoseconds";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseLayout {
    /// Fields with names, after a header.
    Named,
    /// uperf's format: process, thread, kind of the entry, end since 1970 and duration in nanoseconds.
    Uperf,
}

/// What uperf calls an entry of a flowop.
const UPERF_FLOWOP: u32 = 0;

/// A log of response times with the names of their groups and flowops.
pub(super) struct ResponseLog {
    path: OutputPath,
    file: BufWriter<OutputFile>,
    layout: ResponseLayout,
    groups: Vec<LoggedGroup>,
    failed: Option<io::Error>,
}

struct LoggedGroup {
    name: String,
    flowops: Vec<String>,
    /// Number of its first strand among those of all groups.
    first_strand: u32,
}

impl ResponseLog {
    pub(super) fn create(path: &OutputPath, layout: ResponseLayout) -> Result<Self, Error> {
        let mut file = BufWriter::new(create_file(path)?);
        if layout == ResponseLayout::Named {
            writeln!(file, "{HEADER}").map_err(Error::output(path))?;
        }
        Ok(Self { path: path.clone(), file, layout, groups: Vec::new(), failed: None })
    }

    /// Starts the records of a profile; a title separates several profiles in one file.
    pub(super) fn start_profile(&mut self, profile: &NetProfile, title: Option<&str>) {
        let mut strands = 0;
        let groups = profile.groups.iter().map(|group| {
            let flowops = group.transactions.iter().flat_map(|transaction| &transaction.flowops);
            let (flowops, first_strand) = (flowops.map(|flowop| flowop.name.clone()).collect(), strands);
            strands += group.strands;
            LoggedGroup { name: strip_control(&group.name), flowops, first_strand }
        });
        self.groups = groups.collect();
        if let Some(title) = title {
            let line = writeln!(self.file, "# {}", strip_control(title));
            self.note_error(line);
        }
    }

    /// Appends records; `began` is the start of the run.
    pub(super) fn append(&mut self, began: u64, times: &[LatencyRecord]) {
        let (now, time_of_day) = (clock::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let time_of_day = clock::nanos(time_of_day);
        let process = std::process::id();
        for time in times {
            let Some(group) = self.groups.get(time.group as usize) else { continue };
            let Some(flowop) = group.flowops.get(time.flowop as usize) else { continue };
            let (LatencyRecord { strand, duration, ended_at, .. }, name) = (time, &group.name);
            let line = match self.layout {
                ResponseLayout::Named => {
                    let ns = ended_at.saturating_sub(began);
                    let (seconds, nanos) = (ns / 1_000_000_000, ns % 1_000_000_000);
                    writeln!(self.file, "{seconds}.{nanos:09}\t{name}\t{strand}\t{flowop}\t{duration}")
                }
                ResponseLayout::Uperf => {
                    let thread = group.first_strand + strand + 1;
                    let ended = time_of_day.saturating_sub(now.saturating_sub(*ended_at));
                    writeln!(self.file, "{process:6} {thread:6} {UPERF_FLOWOP:2} {ended:15} {duration:15}")
                }
            };
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
