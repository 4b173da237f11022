//! Reduces a result folder to the data that a comparison needs.
//!
//! Results keep the aggregates over all clients, their samples and the parameters; metadata keep everything, with the
//! secrets in the command masked; errors keep the names of their folders and what is in them, masked too.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wb_model::pbench::{is_failed_iteration, quote_non_finite};
use wb_model::secrets::{mask_command_line, mask_lines};
use wb_record::files::{MAX_FILE, relative_to};
use wb_sys::contained_file;

use super::format::METADATA;
use super::format::iteration::{ClientAggregate, Entries, Iteration, PbenchData, PbenchSample};
use super::format::result::parse;
use crate::build::Layout;
use crate::source::folder::{RESULT, ResultFolder};
use crate::source::{SourceError, Warning, WarningKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripSummary {
    /// Of results and metadata.
    pub files: usize,
    /// In bytes.
    pub before: u64,
    /// In bytes.
    pub after: u64,
    /// What they skip would be skipped by a comparison as well.
    pub warnings: Vec<Warning>,
}

/// Why a folder could not be stripped, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum StripError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("cannot strip {}: it is a Weighbridge run, expected a folder in run-perf's layout", .0.display())]
    OwnRun(PathBuf),
    #[error("{} is not empty: expected a new or empty folder", .0.display())]
    Occupied(PathBuf),
    /// The target is below the source, which would have it as a part.
    #[error("{} is in the stripped folder: name one outside of it", .0.display())]
    Inside(PathBuf),
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Optional content of a stripped folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StripOptions {
    /// Include failed iterations (`*-failN`) and results under non-numeric serials.
    pub include_incorrect: bool,
    /// Include system information of the run and of its profiles: folders `__sysinfo*__`, with their content.
    pub attach_sysinfo: bool,
}

/// Strips the folder `from`, which is unchanged, into the folder `into`. The errors of tests are all kept.
pub fn strip(from: &Path, into: &Path, options: &StripOptions) -> Result<StripSummary, StripError> {
    let include_incorrect = options.include_incorrect;
    let folder = ResultFolder::list(from, include_incorrect)?;
    if folder.layout == Layout::Weighbridge {
        return Err(StripError::OwnRun(from.to_owned()));
    }
    if fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some()) || into.is_file() {
        return Err(StripError::Occupied(into.to_owned()));
    }
    if is_below(into, from) {
        return Err(StripError::Inside(into.to_owned()));
    }
    let mut stripped = StripSummary { files: 0, before: 0, after: 0, warnings: folder.warnings };
    if let Some(path) = &folder.metadata {
        stripped.strip_file(from, path, &into.join(METADATA), |bytes| Ok((mask_metadata(bytes), Vec::new())))?;
    }
    for file in &folder.results {
        let serial = into.join(&file.profile).join(&file.test).join(&file.serial);
        stripped.strip_file(from, &file.path, &serial.join(RESULT), |bytes| strip_result(bytes, include_incorrect))?;
    }
    for error in &folder.error_folders {
        let into = into.join(error);
        fs::create_dir_all(&into).map_err(|source| StripError::Write { path: into.clone(), source })?;
        stripped.copy_all(from, &from.join(error), &into, mask_text)?;
    }
    if options.attach_sysinfo {
        stripped.copy_sysinfo(from, into)?;
    }
    Ok(stripped)
}

impl StripSummary {
    /// An unreadable or malformed file is skipped with a warning.
    fn strip_file(
        &mut self,
        root: &Path,
        from: &Path,
        into: &Path,
        shrink: impl FnOnce(&[u8]) -> Result<(Vec<u8>, Vec<WarningKind>), WarningKind>,
    ) -> Result<(), StripError> {
        let read = relative_to(root, from).and_then(|path| contained_file::read(root, path, MAX_FILE));
        let read = read.map_err(WarningKind::unreadable);
        let shrunk = read.and_then(|bytes| Ok((bytes.len(), shrink(&bytes)?)));
        let (before, (bytes, kinds)) = match shrunk {
            Ok(shrunk) => shrunk,
            Err(kind) => {
                self.warnings.push(Warning { path: from.to_owned(), kind });
                return Ok(());
            }
        };
        self.warnings.extend(kinds.into_iter().map(|kind| Warning { path: from.to_owned(), kind }));
        self.files += 1;
        self.before += before as u64;
        self.after += bytes.len() as u64;
        write(into, &bytes)?;
        // What only its owner could read stays so.
        let mode = fs::metadata(from).map(|metadata| metadata.permissions());
        mode.and_then(|mode| fs::set_permissions(into, mode))
            .map_err(|source| StripError::Write { path: into.to_owned(), source })
    }

    fn copy_sysinfo(&mut self, from: &Path, into: &Path) -> Result<(), StripError> {
        for (name, path) in self.entries(from) {
            if is_sysinfo(&name) {
                self.copy_all(from, &path, &into.join(&name), <[u8]>::to_vec)?;
            } else if path.is_dir() {
                for (inner, path) in self.entries(&path).into_iter().filter(|(inner, _)| is_sysinfo(inner)) {
                    self.copy_all(from, &path, &into.join(&name).join(inner), <[u8]>::to_vec)?;
                }
            }
        }
        Ok(())
    }

    fn copy_all(
        &mut self,
        root: &Path,
        from: &Path,
        into: &Path,
        mask: fn(&[u8]) -> Vec<u8>,
    ) -> Result<(), StripError> {
        // A symbolic link to a folder may lead back into it.
        if !fs::symlink_metadata(from).is_ok_and(|metadata| metadata.is_dir()) {
            return self.strip_file(root, from, into, |bytes| Ok((mask(bytes), Vec::new())));
        }
        self.entries(from).into_iter().try_for_each(|(name, path)| self.copy_all(root, &path, &into.join(name), mask))
    }

    /// The entries of a folder, by name and path; an unreadable folder is skipped with a warning.
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

/// Whether a path, as far as it exists, leads into a folder.
fn is_below(path: &Path, folder: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = absolute.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    // What cannot be resolved is reported when it is read or written.
    existing.zip(folder.canonicalize().ok()).is_some_and(|(path, folder)| path.starts_with(folder))
}

fn is_sysinfo(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("__sysinfo") && name.ends_with("__"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StripError> {
    let created = path.parent().map_or(Ok(()), fs::create_dir_all);
    created.and_then(|()| fs::write(path, bytes)).map_err(|source| StripError::Write { path: path.to_owned(), source })
}

/// Masks the secrets in the lines of an error, which has command lines in its traceback; none in what is not text.
fn mask_text(bytes: &[u8]) -> Vec<u8> {
    std::str::from_utf8(bytes).map_or_else(|_| bytes.to_vec(), |text| mask_lines(text).into_bytes())
}

/// Masks the command, the only line that could contain a secret; all other bytes are unchanged.
fn mask_metadata(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| match line.strip_prefix(b"runperf_cmd:") {
        Some(command) => format!("runperf_cmd:{}", mask_command_line(&String::from_utf8_lossy(command))).into_bytes(),
        None => line.to_vec(),
    });
    lines.collect::<Vec<_>>().concat()
}

/// Reduces a result file to the compared data; also returns the warnings that a comparison would have.
fn strip_result(bytes: &[u8], include_incorrect: bool) -> Result<(Vec<u8>, Vec<WarningKind>), WarningKind> {
    let text = std::str::from_utf8(bytes).map_err(WarningKind::malformed)?;
    let warnings = parse(text, include_incorrect).map_err(WarningKind::malformed)?.warnings;
    let text = quote_non_finite(text);
    let mut iterations: Vec<Iteration<'_>> = serde_json::from_str(&text).map_err(WarningKind::malformed)?;
    iterations.retain(|iteration| match (&iteration.iteration_name, &iteration.iteration_data) {
        (Some(name), Some(PbenchData { parameters: Some(_), .. })) => {
            include_incorrect || !is_failed_iteration(&name.0)
        }
        _ => false,
    });
    for data in iterations.iter_mut().filter_map(|iteration| iteration.iteration_data.as_mut()) {
        data.throughput.retain_known();
        data.latency.retain_known();
        if let Some(parameters) = &mut data.parameters {
            parameters.user.retain(|user| user.profile.is_some());
        }
    }
    Ok((serde_json::to_vec(&iterations).map_err(WarningKind::malformed)?, warnings))
}

impl Entries<'_, ClientAggregate> {
    fn retain_known(&mut self) {
        self.0.retain(|(_, ClientAggregate(all))| {
            all.as_ref().is_some_and(|client| !client.mean.is_missing() || !client.stddevpct.is_missing())
        });
        for client in self.0.iter_mut().filter_map(|(_, ClientAggregate(all))| all.as_mut()) {
            client.samples.retain(|PbenchSample { value }| value.0.number().is_some());
        }
    }
}
