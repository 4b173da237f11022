//! Who has files of an entry open.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that has a file of this folder open: its name and number. Of processes of others only root sees it.
pub(super) fn find_user(folder: &Path) -> Option<String> {
    let files: BTreeSet<(u64, u64)> = inodes(folder).collect();
    if files.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let has_one = |process: &std::path::PathBuf| inodes(&process.join("fd")).any(|file| files.contains(&file));
    let user = processes.filter(|path| path.join("fd").exists()).find(has_one)?;
    let name = fs::read_to_string(user.join("comm")).unwrap_or_default();
    let pid = user.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(format!("{} (process {pid})", name.trim()))
}

/// What the files of a folder are, behind links too: those of `/proc/PID/fd` are what is open.
fn inodes(folder: &Path) -> impl Iterator<Item = (u64, u64)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |path: std::path::PathBuf| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    files.filter_map(move |entry| of(entry.path())).map(|of| (of.dev(), of.ino()))
}
