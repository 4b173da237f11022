//! Response times in a file, each in a line.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use wb_net::{engine::raw_log::LatencyRecord, language::NetProfile};

use crate::error::Error;

/// What stands in the first line.
const HEADER: &str = "# seconds since the run began\tgroup\tthread\tflowop\tresponse time in nanoseconds";

/// The file, and the names that stand in it.
pub(super) struct ResponseLog {
    path: PathBuf,
    file: BufWriter<File>,
    /// By group: its name and those of its flowops.
    names: Vec<(String, Vec<String>)>,
    failed: Option<io::Error>,
}

impl ResponseLog {
    /// Makes the file.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let told = |source| Error::File { path: path.display().to_string(), source };
        let mut file = BufWriter::new(File::create(path).map_err(told)?);
        writeln!(file, "{HEADER}").map_err(told)?;
        Ok(Self { path: path.to_owned(), file, names: Vec::new(), failed: None })
    }

    /// What follows is of this profile; a title is for several in one file.
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

    /// Writes these down.
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

    /// Sees that all of it is in the file.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let flushed = self.file.flush();
        self.note_error(flushed);
        match self.failed {
            Some(source) => Err(Error::File { path: self.path.display().to_string(), source }),
            None => Ok(()),
        }
    }

    /// A full disk does not stop the run; it is told in the end.
    fn note_error(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

/// A name that does not break a line into others.
fn strip_control(name: &str) -> String {
    name.replace(char::is_control, " ")
}
