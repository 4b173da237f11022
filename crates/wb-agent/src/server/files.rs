//! Files on the worker.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use sha2::{Digest, Sha256};

use crate::protocol::{EntryKind, Fault, FileEntry};
use crate::worker::InstalledProgram;

use super::agent_folder::AgentFolder;

/// How much of a file or an output travels in one answer, in bytes.
pub(super) const CHUNK: usize = 4 << 20;

/// Where programs are searched for when the agent has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn file_fault(path: impl Display, error: &io::Error) -> Fault {
    let missing = error.kind() == io::ErrorKind::NotFound;
    Fault::File { path: path.to_string(), why: error.to_string(), missing }
}

/// Where programs are searched for.
pub(super) fn search_path() -> String {
    std::env::var("PATH").ok().filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.to_owned())
}

/// The file of a program, searched for on `path` when it has no slash, from `cwd` when it has.
pub(super) fn find_program(program: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    let runs = |file: &PathBuf| file.is_file() && access(file.as_path(), Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(cwd.join(program)).filter(runs);
    }
    path.split(':').filter(|folder| !folder.is_empty()).map(|folder| Path::new(folder).join(program)).find(runs)
}

/// Where a program lies, and its hash.
pub(super) fn which(program: &str) -> Result<Option<InstalledProgram>, Fault> {
    let Some(path) = find_program(program, &search_path(), Path::new("/")) else { return Ok(None) };
    let sha256 = hash(&path).map_err(|error| file_fault(path.display(), &error))?;
    Ok(Some(InstalledProgram { path: path.display().to_string(), sha256, version: None }))
}

fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

pub(super) fn put(path: &str, offset: u64, mode: u32, bytes: &[u8]) -> Result<(), Fault> {
    let first = offset == 0;
    let open = || File::options().write(true).create(first).truncate(first).mode(mode & 0o7777).open(path);
    open().and_then(|file| file.write_all_at(bytes, offset)).map_err(|error| file_fault(path, &error))
}

/// A part of a file from `offset` on, and its whole length.
pub(super) fn get(path: &str, offset: u64) -> Result<(u64, Vec<u8>), Fault> {
    let read = || {
        let file = File::open(path)?;
        Ok((file.metadata()?.len(), read_at_most(&file, offset, CHUNK)?))
    };
    read().map_err(|error| file_fault(path, &error))
}

/// At most `most` bytes from `offset` on.
pub(super) fn read_at_most(file: &File, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while filled < most {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

pub(super) fn list(path: &str) -> Result<Vec<FileEntry>, Fault> {
    let entry = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        let found = entry.metadata()?;
        let kind = match found.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Folder,
            _ => EntryKind::Other,
        };
        Ok(FileEntry { name: entry.file_name().to_string_lossy().into_owned(), kind, size: found.len() })
    };
    let read = || fs::read_dir(path)?.map(entry).collect::<io::Result<Vec<_>>>();
    let mut entries = read().map_err(|error| file_fault(path, &error))?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

pub(super) fn remove(home: &AgentFolder, path: &str) -> Result<(), Fault> {
    let found = fs::symlink_metadata(path).map_err(|error| file_fault(path, &error))?;
    let removed = if !found.is_dir() {
        fs::remove_file(path)
    } else if home.contains(Path::new(path)) {
        fs::remove_dir_all(path)
    } else {
        let why = format!("`{path}` is a folder outside of the agent's own: only those are removed with all in them");
        return Err(Fault::Refused { why });
    };
    removed.map_err(|error| file_fault(path, &error))
}
