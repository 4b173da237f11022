//! Fake roots for tests: folders that imitate the `/proc`, `/sys` and `/etc` of a machine.

mod machines;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::SysRoot;

pub use machines::{arm, container, laptop, server};

/// A temporary folder that imitates the root of a machine, removed on drop.
#[derive(Debug)]
pub struct FakeRoot {
    folder: tempfile::TempDir,
}

impl Default for FakeRoot {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeRoot {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder can be created") }
    }

    /// Adds or replaces a file.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let full = self.host_path(path);
        fs::write(full, content).expect("a file of a fake root can be written");
        self
    }

    pub fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.host_path(path)).expect("a link of a fake root can be created");
        self
    }

    pub fn without(self, path: &str) -> Self {
        let full = self.host_path(path);
        let _ = fs::remove_dir_all(&full).or_else(|_| fs::remove_file(&full));
        self
    }

    pub fn root(&self) -> SysRoot {
        SysRoot::at(self.folder.path())
    }

    /// The path of a file on the host; creates its folder.
    fn host_path(&self, path: &str) -> PathBuf {
        let full = self.folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(full.parent().unwrap_or(Path::new("/"))).expect("a folder of a fake root can be created");
        full
    }
}

/// The contents of all files below a folder, by path.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of a fake root can be read").flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else {
                let content = fs::read(&path).expect("a file of a fake root can be read");
                contents.insert(path, content);
            }
        }
    }
    contents
}
