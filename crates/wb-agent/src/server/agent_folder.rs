//! The agent's folder and the private folders in it and elsewhere: all removed at its end, and those
//! of an agent that was killed by the next one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use wb_sys::SysRoot;
use wb_sys::process::Owner;

use crate::protocol::{Fault, FolderHandle};

use super::files::file_fault;

/// The agent's folder.
pub(super) struct AgentFolder {
    owner: Owner,
    folder: PathBuf,
    scratches: RefCell<BTreeMap<u32, PathBuf>>,
}

impl AgentFolder {
    /// Makes it, after removing those of agents that are gone.
    pub(super) fn new(root: &SysRoot) -> io::Result<Self> {
        let base = std::env::temp_dir();
        remove_stale(root, &base);
        remove_stale(root, &super::announcements::folder());
        let owner = Owner::current(root);
        let folder = base.join(owner.to_string());
        create_private(&folder)?;
        Ok(Self { owner, folder, scratches: RefCell::default() })
    }

    /// Whose it is.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    /// The name of the `id`th thing made here, of the same length for all.
    pub(super) fn unique_name(&self, id: u32) -> String {
        self.owner.resource_name(id)
    }

    /// Makes a private folder, here or below `base`.
    pub(super) fn create_scratch(&self, id: u32, base: Option<String>) -> Result<FolderHandle, Fault> {
        let path = match base {
            None => self.folder.join(format!("{id:06}")),
            Some(base) => {
                let path =
                    fs::canonicalize(&base).map_err(|error| file_fault(&base, &error))?.join(self.unique_name(id));
                // Linked before it is made, so that whoever cleans up after us finds it.
                let link = self.folder.join(format!("{id:06}"));
                symlink(&path, &link).map_err(|error| file_fault(link.display(), &error))?;
                path
            }
        };
        create_private(&path).map_err(|error| file_fault(path.display(), &error))?;
        self.scratches.borrow_mut().insert(id, path.clone());
        Ok(FolderHandle { id, path: path.display().to_string(), cgroup: None })
    }

    /// Removes a private folder.
    pub(super) fn remove_scratch(&self, id: u32) -> Result<(), Fault> {
        let Some(path) = self.scratches.borrow_mut().remove(&id) else { return Ok(()) };
        let removed = remove_folder(&path).map_err(|error| file_fault(path.display(), &error));
        let _ = fs::remove_file(self.folder.join(format!("{id:06}")));
        removed
    }

    /// Whether a path lies in one of the private folders.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.scratches.borrow().values().any(|scratch| path.starts_with(scratch) && path != *scratch)
    }

    /// Removes it and all private folders.
    pub(super) fn remove(&self) {
        let ids: Vec<u32> = self.scratches.borrow().keys().copied().collect();
        for id in ids {
            let _ = self.remove_scratch(id);
        }
        let _ = remove_folder(&self.folder);
    }
}

/// Removes the folders of agents that are gone, with the private folders that their links lead to, and their
/// announcements of runs.
fn remove_stale(root: &SysRoot, base: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for folder in entries(base) {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(owner) = Owner::parse(name).filter(|owner| owner.is_gone(root)) else { continue };
        let Some(found) = fs::symlink_metadata(&folder).ok().filter(|found| found.uid() == me) else { continue };
        if found.is_file() {
            let _ = fs::remove_file(&folder);
        }
        if found.is_dir() {
            let linked = entries(&folder).into_iter().filter_map(|entry| fs::read_link(entry).ok());
            // A link is believed only if it leads to a folder that carries the same owner's name.
            let named = |path: &PathBuf| path.file_name().and_then(|name| Owner::parse(name.to_str()?)) == Some(owner);
            for path in linked.filter(named) {
                let _ = remove_folder(&path);
            }
            let _ = remove_folder(&folder);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn create_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)
}

/// Removes a folder and all in it; one that is gone is fine.
fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
