//! Files on the worker.

use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use wb_model::Sha256;
use wb_sys::programs;

use crate::protocol::{CHUNK, EntryKind, Fault, FileEntry, InstalledProgram, WithBytes, call};

/// First size of a buffer for a file whose length is unknown, in bytes.
const BUFFER: usize = 16 << 10;

/// Search path for programs if the agent has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn file_fault(path: impl Display, error: &io::Error) -> Fault {
    let missing = error.kind() == io::ErrorKind::NotFound;
    Fault::File { path: path.to_string(), why: error.to_string(), missing }
}

/// Returns the search path for programs.
pub(super) fn search_path() -> String {
    std::env::var("PATH").ok().filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.to_owned())
}

/// Finds the file of a program: on `path` if it contains no slash, relative to `cwd` otherwise.
pub(super) fn find_program(program: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(cwd.join(program)).filter(|file| programs::is_executable(file));
    }
    programs::find(program, path)
}

/// Finds a program and its hash.
pub(super) fn locate_program(program: &str) -> Result<Option<InstalledProgram>, Fault> {
    let Some(path) = find_program(program, &search_path(), Path::new("/")) else { return Ok(None) };
    let sha256 = File::open(&path).and_then(Sha256::of_reader).map_err(|error| file_fault(path.display(), &error))?;
    let sha256 = sha256.as_str().to_owned();
    Ok(Some(InstalledProgram { path: path.display().to_string(), sha256, version: None }))
}

pub(super) fn put(call::Put { path, offset, mode, bytes }: &call::Put) -> Result<(), Fault> {
    let first = *offset == 0;
    let open = || File::options().write(true).create(first).truncate(first).mode(mode & 0o7777).open(path);
    open().and_then(|file| file.write_all_at(bytes, *offset)).map_err(|error| file_fault(path, &error))
}

/// Reads a chunk of a file at `offset`, and the file's length.
pub(super) fn get(path: &str, offset: u64) -> Result<WithBytes<u64>, Fault> {
    let read = || {
        let file = File::open(path)?;
        Ok(WithBytes { value: file.metadata()?.len(), bytes: read_at_most(&file, offset, CHUNK)? })
    };
    read().map_err(|error| file_fault(path, &error))
}

/// Maximum size of one read: the kernel refuses larger buffers than its own maximum (4 MiB) for the files of sysctl.
const MAX_READ: usize = 1 << 20;

/// Reads at most `max_length` bytes at `offset`; fewer only at the end of the file.
pub(super) fn read_at_most(file: &File, offset: u64, max_length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut filled = 0;
    while filled < max_length {
        // The buffer grows with what was read: files of the kernel have no length, and most are short.
        if filled == bytes.len() {
            bytes.resize(max_length.min(BUFFER.max(2 * filled)), 0);
        }
        let end = bytes.len().min(filled + MAX_READ);
        match file.read_at(&mut bytes[filled..end], offset + filled as u64) {
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
        let metadata = entry.metadata()?;
        let kind = match metadata.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Folder,
            _ => EntryKind::Other,
        };
        Ok(FileEntry { name: entry.file_name().to_string_lossy().into_owned(), kind, size: metadata.len() })
    };
    let read = || fs::read_dir(path)?.map(entry).collect::<io::Result<Vec<_>>>();
    let mut entries = read().map_err(|error| file_fault(path, &error))?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// Removes a file, or a folder with its contents if it is inside the agent's own folder.
pub(super) fn remove(path: &str, in_agent_folder: bool) -> Result<(), Fault> {
    let metadata = fs::symlink_metadata(path).map_err(|error| file_fault(path, &error))?;
    let removed = if !metadata.is_dir() {
        fs::remove_file(path)
    } else if in_agent_folder {
        fs::remove_dir_all(path)
    } else {
        let reason = format!(
            "cannot remove folder `{path}`: only folders inside the agent's own folder are removed recursively"
        );
        return Err(Fault::Refused { why: reason });
    };
    removed.map_err(|error| file_fault(path, &error))
}
