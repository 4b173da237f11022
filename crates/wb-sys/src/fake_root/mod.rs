//! Made roots for tests: folders that stand for machines nobody has.

mod machines;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::SysRoot;

pub use machines::{arm, container, laptop, server};

/// A folder that stands for a machine's root and goes away with it.
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
    /// An empty one.
    ///
    /// # Panics
    /// Where no temporary folder can be made.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder can be made") }
    }

    /// With this file in it, replacing what was there.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let full = self.host_path(path);
        fs::write(full, content).expect("a file of a made root can be written");
        self
    }

    /// With this symbolic link in it.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.host_path(path)).expect("a link of a made root can be made");
        self
    }

    /// Without this file or folder.
    pub fn without(self, path: &str) -> Self {
        let full = self.host_path(path);
        let _ = fs::remove_dir_all(&full).or_else(|_| fs::remove_file(&full));
        self
    }

    /// The root to read through.
    pub fn root(&self) -> SysRoot {
        SysRoot::at(self.folder.path())
    }

    /// Where a path of it lies; the folder it is in exists.
    fn host_path(&self, path: &str) -> std::path::PathBuf {
        let full = self.folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(full.parent().unwrap_or(Path::new("/"))).expect("a folder of a made root can be made");
        full
    }
}
