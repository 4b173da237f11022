//! The smallest folder that still compares the same.
//!
//! Of the results the values over all clients, their samples and the parameters are kept; of the metadata everything,
//! with the secrets in its command masked.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wb_model::secrets::mask_words;

use crate::source::runperf::folder::{Layout, METADATA, RESULT, ResultFolder};
use crate::source::runperf::iteration::{AllClients, Entries, Iteration, PbenchData, PbenchSample};
use crate::source::runperf::result::{is_failed, parse};
use crate::source::{SourceError, Warning, WarningKind};

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripSummary {
    /// The files of results and metadata.
    pub files: usize,
    /// Their size before, in bytes.
    pub before: u64,
    /// Their size now, in bytes.
    pub after: u64,
    /// What was odd; what is left out for it would be left out of a comparison as well.
    pub warnings: Vec<Warning>,
}

/// Why nothing was written, or not all.
#[derive(Debug, thiserror::Error)]
pub enum StripError {
    /// The folder cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Runs of this program keep all that they have.
    #[error("{} is a run of this program, which is not stripped: only folders in run-perf's layout are", path.display())]
    OwnRun {
        /// Which.
        path: PathBuf,
    },
    /// Something is where the new folder is to be.
    #[error("{} is there and not empty: name a new or empty folder", path.display())]
    Occupied {
        /// Where.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// What a stripped folder has beside results and metadata.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StripOptions {
    /// Failed iterations and odd serials.
    pub include_incorrect: bool,
    /// What was collected of the systems, of the run and of its profiles: folders `__sysinfo*__`, with all that is in them.
    pub attach_sysinfo: bool,
}

/// Makes the folder `into` of the folder `from`, which stays as it is. It has every error of a test.
pub fn strip(from: &Path, into: &Path, options: &StripOptions) -> Result<StripSummary, StripError> {
    let include_incorrect = options.include_incorrect;
    let folder = ResultFolder::list(from, include_incorrect)?;
    if folder.layout == Layout::Weighbridge {
        return Err(StripError::OwnRun { path: from.to_owned() });
    }
    if fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some()) || into.is_file() {
        return Err(StripError::Occupied { path: into.to_owned() });
    }
    let mut stripped = StripSummary { files: 0, before: 0, after: 0, warnings: folder.warnings };
    if let Some(path) = &folder.metadata {
        stripped.strip_file(path, &into.join(METADATA), |bytes| Ok((mask_metadata(bytes), Vec::new())))?;
    }
    for file in &folder.results {
        let place = into.join(&file.profile).join(&file.test).join(&file.serial);
        stripped.strip_file(&file.path, &place.join(RESULT), |bytes| strip_result(bytes, include_incorrect))?;
    }
    for (number, error) in folder.errors.iter().enumerate() {
        let place: PathBuf = error.place.split('/').filter(|name| *name != "*").collect();
        write(&into.join(place).join(format!("__error{number}__")).join("exception"), error.text.as_bytes())?;
    }
    if options.attach_sysinfo {
        stripped.copy_sysinfo(from, into)?;
    }
    Ok(stripped)
}

impl StripSummary {
    /// Makes one file of another; one that cannot be read or understood is told and left out.
    fn strip_file(
        &mut self,
        from: &Path,
        into: &Path,
        shrink: impl FnOnce(&[u8]) -> Result<(Vec<u8>, Vec<WarningKind>), WarningKind>,
    ) -> Result<(), StripError> {
        let read = fs::read(from).map_err(WarningKind::unreadable);
        let shrunk = read.and_then(|bytes| Ok((bytes.len(), shrink(&bytes)?)));
        let (before, (bytes, odd)) = match shrunk {
            Ok(shrunk) => shrunk,
            Err(what) => {
                self.warnings.push(Warning { path: from.to_owned(), kind: what });
                return Ok(());
            }
        };
        self.warnings.extend(odd.into_iter().map(|what| Warning { path: from.to_owned(), kind: what }));
        self.files += 1;
        self.before += before as u64;
        self.after += bytes.len() as u64;
        write(into, &bytes)
    }

    /// Takes the folders `__sysinfo*__` of a run and of its profiles.
    fn copy_sysinfo(&mut self, from: &Path, into: &Path) -> Result<(), StripError> {
        for (name, path) in self.entries(from) {
            if is_sysinfo(&name) {
                self.copy_all(&path, &into.join(&name))?;
            } else if path.is_dir() {
                for (inner, path) in self.entries(&path).into_iter().filter(|(inner, _)| is_sysinfo(inner)) {
                    self.copy_all(&path, &into.join(&name).join(inner))?;
                }
            }
        }
        Ok(())
    }

    /// Copies a file or a folder with all that is in it.
    fn copy_all(&mut self, from: &Path, into: &Path) -> Result<(), StripError> {
        // A link to a folder may lead back into it.
        if !fs::symlink_metadata(from).is_ok_and(|metadata| metadata.is_dir()) {
            return self.strip_file(from, into, |bytes| Ok((bytes.to_vec(), Vec::new())));
        }
        self.entries(from).into_iter().try_for_each(|(name, path)| self.copy_all(&path, &into.join(name)))
    }

    /// What lies in a folder, by name and path; one that cannot be read is reported and left out.
    fn entries(&mut self, folder: &Path) -> Vec<(OsString, PathBuf)> {
        match fs::read_dir(folder) {
            Ok(entries) => {
                let mut all: Vec<_> = entries.flatten().map(|entry| (entry.file_name(), entry.path())).collect();
                all.sort();
                all
            }
            Err(error) => {
                self.warnings.push(Warning { path: folder.to_owned(), kind: WarningKind::unreadable(error) });
                Vec::new()
            }
        }
    }
}

/// Whether a folder of this name has what was collected of systems.
fn is_sysinfo(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("__sysinfo") && name.ends_with("__"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StripError> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, bytes)).map_err(|source| StripError::Write { path: path.to_owned(), source })
}

/// The command is the line that could hold a secret; everything else stays byte for byte.
fn mask_metadata(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| match line.strip_prefix(b"runperf_cmd:") {
        Some(command) => format!("runperf_cmd:{}", mask_words(&String::from_utf8_lossy(command))).into_bytes(),
        None => line.to_vec(),
    });
    lines.collect::<Vec<_>>().concat()
}

/// A file of results with what is compared alone, and what a comparison would find odd about it.
fn strip_result(bytes: &[u8], include_incorrect: bool) -> Result<(Vec<u8>, Vec<WarningKind>), WarningKind> {
    let text = std::str::from_utf8(bytes).map_err(WarningKind::malformed)?;
    let odd = parse(text, include_incorrect).map_err(WarningKind::malformed)?.warnings;
    let mut iterations: Vec<Iteration<'_>> = serde_json::from_str(text).map_err(WarningKind::malformed)?;
    iterations.retain(|iteration| match (&iteration.iteration_name, &iteration.iteration_data) {
        (Some(name), Some(PbenchData { parameters: Some(_), .. })) => include_incorrect || !is_failed(&name.0),
        _ => false,
    });
    for data in iterations.iter_mut().filter_map(|iteration| iteration.iteration_data.as_mut()) {
        data.throughput.retain_known();
        data.latency.retain_known();
        if let Some(parameters) = &mut data.parameters {
            parameters.user.retain(|user| user.profile.is_some());
        }
    }
    Ok((serde_json::to_vec(&iterations).map_err(WarningKind::malformed)?, odd))
}

impl Entries<'_, AllClients> {
    fn retain_known(&mut self) {
        self.0.retain(|(_, AllClients(all))| {
            all.as_ref().is_some_and(|client| !client.mean.is_missing() || !client.stddevpct.is_missing())
        });
        for client in self.0.iter_mut().filter_map(|(_, AllClients(all))| all.as_mut()) {
            client.samples.retain(|PbenchSample { value }| value.0.known().is_some());
        }
    }
}
