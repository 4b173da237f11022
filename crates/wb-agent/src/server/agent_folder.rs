//! The agent's folder, and its scratch folders there and elsewhere. All are removed when it ends; the next agent removes
//! those of a killed one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use wb_sys::SysRoot;
use wb_sys::process::Owner;

use crate::protocol::{Fault, ScratchHandle};

use super::files::file_fault;
use super::pending_cleanup;

/// The agent's folder.
pub(super) struct AgentFolder {
    owner: Owner,
    folder: PathBuf,
    /// Paths of the scratch folders by id.
    scratch_folders: RefCell<BTreeMap<u32, PathBuf>>,
}

impl AgentFolder {
    /// Creates the folder, after removing those of dead agents.
    pub(super) fn new(root: &SysRoot) -> io::Result<Self> {
        let base = std::env::temp_dir();
        remove_stale(root, &base);
        remove_stale(root, &super::announcements::folder());
        let owner = Owner::current(root);
        let folder = base.join(owner.to_string());
        create_private(&folder)?;
        Ok(Self { owner, folder, scratch_folders: RefCell::default() })
    }

    /// The owner recorded in the names of its folders.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Returns a unique name for an id; all names have the same length.
    pub(super) fn unique_name(&self, id: u32) -> String {
        self.owner.resource_name(id)
    }

    /// Creates a scratch folder, here or below `base`.
    pub(super) fn create_scratch(&self, id: u32, base: Option<&str>) -> Result<ScratchHandle, Fault> {
        let path = match base {
            None => self.folder.join(format!("{id:06}")),
            Some(base) => {
                let path = fs::canonicalize(base).map_err(|error| file_fault(base, &error))?.join(self.unique_name(id));
                // Linked before it is created, so that a later cleanup finds it.
                let link = self.folder.join(format!("{id:06}"));
                symlink(&path, &link).map_err(|error| file_fault(link.display(), &error))?;
                path
            }
        };
        create_private(&path).map_err(|error| file_fault(path.display(), &error))?;
        self.scratch_folders.borrow_mut().insert(id, path.clone());
        Ok(ScratchHandle { id, path: path.display().to_string() })
    }

    /// Removes a scratch folder.
    pub(super) fn remove_scratch(&self, id: u32) -> Result<(), Fault> {
        let Some(path) = self.scratch_folders.borrow_mut().remove(&id) else { return Ok(()) };
        let removed = remove_folder(&path).map_err(|error| file_fault(path.display(), &error));
        let _ = fs::remove_file(self.folder.join(format!("{id:06}")));
        removed
    }

    /// Whether a path is inside one of the scratch folders.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.scratch_folders.borrow().values().any(|scratch| path.starts_with(scratch) && path != *scratch)
    }

    /// Removes the folder and all scratch folders.
    pub(super) fn remove(&self) {
        let ids: Vec<u32> = self.scratch_folders.borrow().keys().copied().collect();
        for id in ids {
            let _ = self.remove_scratch(id);
        }
        let _ = remove_folder(&self.folder);
    }
}

/// Removes the folders of dead agents, the scratch folders that they link to, and their announcements of runs.
fn remove_stale(root: &SysRoot, base: &Path) {
    let uid = rustix::process::geteuid().as_raw();
    for folder in entries(base) {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(owner) = Owner::parse(name).filter(|owner| owner.is_gone(root)) else { continue };
        let metadata = fs::symlink_metadata(&folder).ok().filter(|metadata| metadata.uid() == uid);
        let Some(metadata) = metadata else { continue };
        if metadata.is_file() {
            let _ = fs::remove_file(&folder);
        }
        // Another agent is running its cleanup commands, and removes it later.
        if metadata.is_dir() && !pending_cleanup::is_pending(&folder) {
            let linked = entries(&folder).into_iter().filter_map(|entry| fs::read_link(entry).ok());
            // A link is trusted only if its target carries the name of the same owner.
            let is_owned =
                |path: &PathBuf| path.file_name().and_then(|name| Owner::parse(name.to_str()?)) == Some(owner);
            for path in linked.filter(is_owned) {
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

/// Removes a folder with its contents; a missing one is not an error.
fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
