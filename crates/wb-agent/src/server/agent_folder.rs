//! The agent's folder, and its scratch folders there and elsewhere. All are removed when it ends; the next agent removes
//! those of a killed one. A folder that a change of the machine uses stays until that is reverted: the disks of a guest
//! that cannot be stopped would be taken from under it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use wb_sys::process::Owner;
use wb_sys::trusted_path::{self, UntrustedPath};
use wb_sys::undo::ManagedResource;
use wb_sys::{SysRoot, UndoLog};

use crate::protocol::{Fault, ScratchHandle};

use super::files::file_fault;
use super::pending_cleanup;

/// The agent's folder.
pub(super) struct AgentFolder {
    root: SysRoot,
    owner: Owner,
    folder: PathBuf,
    /// Paths of the scratch folders by id.
    scratch_folders: RefCell<BTreeMap<u32, PathBuf>>,
}

impl AgentFolder {
    /// Creates the folder, after removing those of dead agents.
    pub(super) fn new(root: &SysRoot) -> io::Result<Self> {
        Self::create(root, &std::env::temp_dir())
            .map_err(|error| io::Error::new(error.kind(), format!("{error}; TMPDIR names another place")))
    }

    fn create(root: &SysRoot, base: &Path) -> io::Result<Self> {
        // Scripts and programs are written there, and started.
        trusted_path::require_own_entries_safe(base).map_err(|reason| match reason {
            UntrustedPath::Unreadable { .. } | UntrustedPath::NotAFolder { .. } => io::Error::other(reason),
            UntrustedPath::OtherOwner { .. } | UntrustedPath::Writable { .. } => {
                io::Error::other(format!("{reason}, so that another user could replace what is started there"))
            }
        })?;
        remove_stale(root, base);
        remove_stale(root, &super::announcements::folder());
        let owner = Owner::current(root);
        let folder = base.join(owner.to_string());
        create_private(&folder)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot create {}: {error}", folder.display())))?;
        Ok(Self { root: root.clone(), owner, folder, scratch_folders: RefCell::default() })
    }

    /// The owner recorded in the names of its folders.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

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

    /// Removes a scratch folder, unless a change of the machine uses it.
    pub(super) fn remove_scratch(&self, id: u32) -> Result<(), Fault> {
        let Some(path) = self.scratch_folders.borrow().get(&id).cloned() else { return Ok(()) };
        if let Some(user) = user_of(&self.root, &path) {
            return Err(Fault::Refused { why: format!("{} stays, because {user} uses it", path.display()) });
        }
        self.scratch_folders.borrow_mut().remove(&id);
        let removed = remove_folder(&path).map_err(|error| file_fault(path.display(), &error));
        let _ = fs::remove_file(self.folder.join(format!("{id:06}")));
        removed
    }

    /// Whether a path is inside one of the scratch folders.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.scratch_folders.borrow().values().any(|scratch| path.starts_with(scratch) && path != *scratch)
    }

    /// Removes the folder and all scratch folders, except what must stay: the next agent finds it by the links here.
    pub(super) fn remove(&self) {
        let ids: Vec<u32> = self.scratch_folders.borrow().keys().copied().collect();
        for id in ids {
            let _ = self.remove_scratch(id);
        }
        // Where libvirt is gone, guests cannot be stopped, and their disks stay until the next agent has stopped them.
        if self.scratch_folders.borrow().is_empty() {
            let _ = remove_folder(&self.folder);
        }
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
            let own = entries(&folder).into_iter().filter(|entry| entry.is_dir() && !entry.is_symlink());
            let (used, unused): (Vec<PathBuf>, Vec<PathBuf>) =
                linked.filter(is_owned).chain(own).partition(|path| user_of(root, path).is_some());
            for path in unused {
                let _ = remove_folder(&path);
            }
            if used.is_empty() {
                let _ = remove_folder(&folder);
            }
        }
    }
}

/// The changed state of the machine that uses a folder: a command in the undo log names it. `None` also if this user may
/// not read the log: then no change is this user's.
fn user_of(root: &SysRoot, folder: &Path) -> Option<String> {
    let folder = folder.to_str()?;
    let changes = UndoLog::changes(root).ok()?;
    changes.into_iter().find_map(|change| match change.resource {
        ManagedResource::Command { name, read, write } => {
            read.iter().chain(&write).any(|word| word.contains(folder)).then_some(name)
        }
        _ => None,
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use wb_sys::fake_root::FakeRoot;

    #[test]
    fn a_folder_that_a_change_uses_stays_until_that_is_reverted() {
        let (fake, base) = (FakeRoot::new(), tempfile::tempdir().unwrap());
        let root = fake.root();
        // Not that of this machine, where other agents remove what dead ones have left.
        let temporary = tempfile::tempdir().unwrap();
        let folder = AgentFolder::create(&root, temporary.path()).unwrap();
        let disks = folder.create_scratch(1, base.path().to_str()).unwrap();
        let unused = folder.create_scratch(2, None).unwrap();
        fs::write(format!("{}/vm1.disk", disks.path), "").unwrap();
        // Something runs there, and can be stopped only while `stopper` exists, as a guest while libvirt responds.
        // The names that they will have as those of an agent that is dead.
        let own_pid = format!("-{:08}-", std::process::id());
        let of_dead = |path: &str| PathBuf::from(path.replacen(&own_pid, "-99999999-", 1));
        let moved = of_dead(&disks.path);
        let stopper = base.path().join("stopper");
        fs::write(&stopper, "").unwrap();
        let script = |text: &str| ["sh", "-c", text].map(str::to_owned).to_vec();
        let resource = ManagedResource::Command {
            name: "the guest vm1".to_owned(),
            read: script(&format!("[ -e {} ] && cat {}/state || exit 1", stopper.display(), base.path().display())),
            write: script(&format!(
                "[ -e {} ] && echo {{}} >{}/state # {}/vm1.xml {}/vm1.xml",
                stopper.display(),
                base.path().display(),
                disks.path,
                moved.display()
            )),
        };
        fs::write(base.path().join("state"), "none\n").unwrap();
        let mut log = UndoLog::open(&root, "run").unwrap();
        log.change(resource, Some(b"there")).unwrap();
        fs::remove_file(&stopper).unwrap();
        assert!(log.revert().is_err());
        drop(log);
        let disk = PathBuf::from(format!("{}/vm1.disk", disks.path));
        let refused = folder.remove_scratch(1).unwrap_err();
        assert_eq!(refused.to_string(), format!("{} stays, because the guest vm1 uses it", disks.path));
        folder.remove();
        assert!(disk.exists() && !Path::new(&unused.path).exists());

        // The next agent leaves it as long as it cannot revert the change, and removes it then.
        let dead = of_dead(folder.folder.to_str().unwrap());
        fs::rename(&folder.folder, &dead).unwrap();
        fs::rename(&disks.path, &moved).unwrap();
        fs::remove_file(dead.join("000001")).unwrap();
        symlink(&moved, dead.join("000001")).unwrap();
        remove_stale(&root, dead.parent().unwrap());
        assert!(moved.join("vm1.disk").exists() && dead.exists());
        fs::write(&stopper, "").unwrap();
        UndoLog::open(&root, "run").unwrap().revert().unwrap();
        remove_stale(&root, dead.parent().unwrap());
        assert!(!moved.exists() && !dead.exists());
    }
}
