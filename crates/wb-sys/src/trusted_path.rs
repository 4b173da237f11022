//! Paths that other users cannot change: each level belongs to root or this user, and nobody else can write there. What
//! is run, or trusted because its hash was verified, must be on such a path: another user could replace it in between.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{SysRoot, users};

#[derive(Debug, thiserror::Error)]
pub enum UntrustedPath {
    #[error("{} belongs to user {user}", path.display())]
    OtherOwner {
        path: PathBuf,
        /// Name of the user, or the number.
        user: String,
    },
    #[error("{} is writable by others (mode {mode:o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
    /// A level of it is neither a folder nor a link to one.
    #[error("{} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

/// Requires that only root and this user can change what is in a folder, at any level of its path. The error is the
/// first level from the root that another user can change.
pub fn require_private(folder: &Path) -> Result<(), UntrustedPath> {
    require(folder, Sharing::None)
}

/// Like [`require_private`] for what belongs to root and this user in a folder to which others may add: the
/// folder may be sticky, as `/tmp` is.
pub fn require_own_entries_safe(folder: &Path) -> Result<(), UntrustedPath> {
    require(folder, Sharing::Sticky)
}

/// Who else may add entries to the last level of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    None,
    Sticky,
}

/// Checks from the root down: only then does each level stay in place while the next one is checked.
fn require(folder: &Path, sharing: Sharing) -> Result<(), UntrustedPath> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| UntrustedPath::Unreadable { path, source }
    };
    let folder = std::path::absolute(folder).map_err(unreadable(folder))?;
    let levels: Vec<&Path> = folder.ancestors().collect();
    for (below, path) in levels.into_iter().enumerate().rev() {
        let sharing = if below > 0 { Sharing::Sticky } else { sharing };
        let path = path.to_owned();
        let metadata = fs::symlink_metadata(&path).map_err(unreadable(&path))?;
        if !is_trusted(metadata.uid()) {
            return Err(UntrustedPath::OtherOwner { path, user: users::name(&SysRoot::real(), metadata.uid()) });
        }
        if metadata.is_symlink() {
            require(&fs::canonicalize(&path).map_err(unreadable(&path))?, sharing)?;
        } else if !metadata.is_dir() {
            return Err(UntrustedPath::NotAFolder { path });
        } else {
            let mode = metadata.permissions().mode() & 0o7777;
            // In a sticky folder nobody can replace what belongs to another user.
            let is_tolerated = sharing == Sharing::Sticky && mode & 0o1000 != 0;
            if mode & 0o022 != 0 && !is_tolerated {
                return Err(UntrustedPath::Writable { path, mode });
            }
        }
    }
    Ok(())
}

/// Root and this user control what this process runs anyway.
fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{chown, lchown, symlink};

    use super::*;

    /// Another user than root and the one that runs the tests.
    const OTHER: u32 = 65534;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_path_is_untrusted_whichever_level_others_can_write_to() {
        let folder = tempfile::tempdir().unwrap();
        let (top, middle, last) =
            (folder.path().to_owned(), folder.path().join("middle"), folder.path().join("middle/last"));
        fs::create_dir_all(&last).unwrap();
        require_private(&last).unwrap();
        for level in [&top, &middle, &last] {
            for mode in [0o720, 0o702, 0o722, 0o777] {
                set_mode(level, mode);
                for checked in [require_private(&last), require_own_entries_safe(&last)] {
                    let error = checked.unwrap_err();
                    assert!(
                        matches!(&error, UntrustedPath::Writable { path, mode: found } if path == level && *found == mode),
                        "{error}"
                    );
                }
            }
            set_mode(level, 0o1777);
            assert_eq!(require_private(&last).is_ok(), level != &last);
            require_own_entries_safe(&last).unwrap();
            set_mode(level, 0o700);
        }
        assert!(matches!(require_private(&last.join("none")), Err(UntrustedPath::Unreadable { .. })));
        fs::write(last.join("file"), "").unwrap();
        assert!(matches!(require_private(&last.join("file")), Err(UntrustedPath::NotAFolder { .. })));
    }

    #[test]
    fn a_path_is_untrusted_whichever_level_belongs_to_another_user() {
        if !rustix::process::geteuid().is_root() {
            wb_test_skip::skip!("another user's folders need root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (middle, last) = (folder.path().join("middle"), folder.path().join("middle/last"));
        fs::create_dir_all(&last).unwrap();
        let link = folder.path().join("link");
        symlink("middle", &link).unwrap();
        let through_link = link.join("last");
        require_private(&through_link).unwrap();
        for level in [folder.path(), &middle, &last] {
            chown(level, Some(OTHER), None).unwrap();
            for checked in [require_private(&last), require_private(&through_link)] {
                let error = checked.unwrap_err();
                assert!(matches!(&error, UntrustedPath::OtherOwner { .. }), "{error}");
            }
            chown(level, Some(0), None).unwrap();
        }
        lchown(&link, Some(OTHER), None).unwrap();
        let error = require_private(&through_link).unwrap_err().to_string();
        assert_eq!(error, format!("{} belongs to user nobody", link.display()));
        require_private(&last).unwrap();
    }
}
