use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Folders of system programs, which only root's search path has on some distributions.
const SYSTEM_FOLDERS: &str = "/usr/sbin:/sbin";

/// Whether a file can be executed by this process.
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Finds a program by name on a search path: folders separated by `:`.
pub fn find(name: &str, search_path: &str) -> Option<PathBuf> {
    let folders = search_path.split(':').filter(|folder| !folder.is_empty());
    folders.map(|folder| Path::new(folder).join(name)).find(|file| is_executable(file))
}

/// Finds a program by name in this process's `PATH` and among the system programs.
pub fn find_system(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    find(name, &format!("{path}:{SYSTEM_FOLDERS}"))
}

/// Whether a word names a program on this machine: the path of a file, or a name on the search path.
pub fn is_program(word: &str) -> bool {
    if word.contains('/') {
        return Path::new(word).is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(word).is_file())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_executable_file_on_the_path_is_found() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let files = folders.each_ref().map(|folder| folder.path().join("tool"));
        let path = format!(":{}:{}", folders[0].path().display(), folders[1].path().display());
        for (file, mode) in files.iter().zip([0o644, 0o755]) {
            fs::write(file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(find("tool", &path).as_ref(), Some(&files[1]));
        fs::set_permissions(&files[0], Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("tool", &path).as_ref(), Some(&files[0]));
        assert_eq!(find("nosuch", &path), None);
        assert!(find_system("sh").is_some());
    }
}
