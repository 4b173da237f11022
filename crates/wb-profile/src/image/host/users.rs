//! Finds processes that have files of an entry open.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that has a file in this folder open, as name and PID. Only root sees other users' processes.
pub(super) fn find_user(folder: &Path) -> Option<String> {
    let files: BTreeSet<(u64, u64)> = inodes(folder).collect();
    if files.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let uses_file = |process: &std::path::PathBuf| inodes(&process.join("fd")).any(|file| files.contains(&file));
    let user = processes.filter(|path| path.join("fd").exists()).find(uses_file)?;
    let name = fs::read_to_string(user.join("comm")).unwrap_or_default();
    let pid = user.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(format!("{} (process {pid})", name.trim()))
}

/// Device and inode of the files in a folder, following links: those in `/proc/PID/fd` are the open files.
fn inodes(folder: &Path) -> impl Iterator<Item = (u64, u64)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let metadata = |path: std::path::PathBuf| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    files.filter_map(move |entry| metadata(entry.path())).map(|file| (file.dev(), file.ino()))
}
