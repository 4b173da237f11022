//! A filesystem root to read the system through: `/`, or a made one.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::facts::cpu_list;

/// More than any file of `/proc`, `/sys` or a package list holds; what is longer is cut.
pub(crate) const MAX_FILE_SIZE: u64 = 64 << 20;

/// Why something of the system could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SysError {
    /// There is no such file here.
    #[error("`{path}` is not there")]
    Missing {
        /// What was asked for, as seen from the root.
        path: String,
    },
    /// It is there and cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    Unreadable {
        /// What was asked for, as seen from the root.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// It holds something else than it should.
    #[error("`{path}` holds `{text}`, which is not {expected}")]
    Malformed {
        /// What was asked for, as seen from the root.
        path: String,
        /// What it holds, cut to a line.
        text: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The path leads out of the root.
    #[error("`{path}` leads out of `{root}`")]
    Outside {
        /// What was asked for.
        path: String,
        /// The root.
        root: String,
    },
}

/// A filesystem root: the system's own, or a made one that stands for another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysRoot {
    base: PathBuf,
}

impl Default for SysRoot {
    fn default() -> Self {
        Self::real()
    }
}

impl SysRoot {
    /// This system's root.
    pub fn real() -> Self {
        Self { base: PathBuf::from("/") }
    }

    /// A folder that stands for a root.
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// Whether this is the running system, where system calls and commands may be asked too.
    pub fn is_real(&self) -> bool {
        self.base == Path::new("/")
    }

    /// Where `path` lies. It is taken from the root with or without a leading `/`; `..` is refused, and
    /// so is a symbolic link that leads out of a made root.
    pub fn path(&self, path: impl AsRef<Path>) -> Result<PathBuf, SysError> {
        let path = path.as_ref();
        let outside = || SysError::Outside { path: display_path(path), root: self.base.display().to_string() };
        let mut full = self.base.clone();
        for part in path.components() {
            match part {
                Component::Normal(name) => full.push(name),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        if !self.is_real()
            && let (Ok(base), Ok(target)) = (self.base.canonicalize(), full.canonicalize())
            && !target.starts_with(base)
        {
            return Err(outside());
        }
        Ok(full)
    }

    /// Whether something is at `path`.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).is_ok_and(|full| full.exists())
    }

    /// The bytes of a file.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, SysError> {
        let path = path.as_ref();
        let full = self.path(path)?;
        let mut bytes = Vec::new();
        fs::File::open(full)
            .and_then(|file| file.take(MAX_FILE_SIZE).read_to_end(&mut bytes))
            .map_err(|error| unreadable(path, error))?;
        Ok(bytes)
    }

    /// The text of a file without the white space and NULs around it. What is not UTF-8 is replaced.
    pub fn text(&self, path: impl AsRef<Path>) -> Result<String, SysError> {
        let bytes = self.bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    /// The number that a file holds.
    pub fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Result<T, SysError> {
        let path = path.as_ref();
        let text = self.text(path)?;
        text.parse().map_err(|_| malformed(path, &text, "a number"))
    }

    /// The CPUs (or nodes) that a file lists: `0-3,8`.
    pub fn numbers(&self, path: impl AsRef<Path>) -> Result<Vec<u32>, SysError> {
        let path = path.as_ref();
        let text = self.text(path)?;
        cpu_list::parse(&text).ok_or_else(|| malformed(path, &text, "a list of numbers"))
    }

    /// The names in a folder, `cpu2` before `cpu10`.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<String>, SysError> {
        let path = path.as_ref();
        let entries = fs::read_dir(self.path(path)?).map_err(|error| unreadable(path, error))?;
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| natural_sort_key(name));
        Ok(names)
    }

    /// The numbers of a folder's entries that are `prefix` and a number: 0 and 1 of `node0`, `node1`.
    /// Empty where there is no such folder.
    pub fn numbered_entries(&self, path: impl AsRef<Path>, prefix: &str) -> Vec<u32> {
        let names = self.list(path).unwrap_or_default();
        names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect()
    }

    /// The last name of what a symbolic link points at: the driver of `…/device/driver`.
    pub fn link(&self, path: impl AsRef<Path>) -> Result<String, SysError> {
        let path = path.as_ref();
        let target = fs::read_link(self.path(path)?).map_err(|error| unreadable(path, error))?;
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned());
        name.ok_or_else(|| malformed(path, &target.to_string_lossy(), "a link to a name"))
    }
}

impl SysError {
    /// Whether there simply is no such thing here.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

/// The path as seen from the root.
fn display_path(path: &Path) -> String {
    format!("/{}", path.strip_prefix("/").unwrap_or(path).display())
}

fn unreadable(path: &Path, source: io::Error) -> SysError {
    match source.kind() {
        io::ErrorKind::NotFound => SysError::Missing { path: display_path(path) },
        _ => SysError::Unreadable { path: display_path(path), source },
    }
}

fn malformed(path: &Path, text: &str, wanted: &'static str) -> SysError {
    let text = text.lines().next().unwrap_or_default().chars().take(60).collect();
    SysError::Malformed { path: display_path(path), text, expected: wanted }
}

/// A key that orders `cpu2` before `cpu10`.
fn natural_sort_key(name: &str) -> (String, u64, String) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0), name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, SysRoot) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = SysRoot::at(folder.path());
        (folder, root)
    }

    #[test]
    fn a_path_is_taken_from_the_root_and_cannot_leave_it() {
        let (folder, root) = made(&[("proc/version", "Linux\n")]);
        assert_eq!(root.text("/proc/version").unwrap(), "Linux");
        assert_eq!(root.text("proc/version").unwrap(), "Linux");
        assert!(matches!(root.text("/proc/../../etc/passwd"), Err(SysError::Outside { .. })));
        symlink("/etc", folder.path().join("etc")).unwrap();
        assert!(matches!(root.text("/etc/passwd"), Err(SysError::Outside { .. })));
        assert!(!root.exists("/etc/passwd"));
        symlink("version", folder.path().join("proc/inside")).unwrap();
        assert_eq!(root.text("/proc/inside").unwrap(), "Linux");
        assert_eq!(root.link("/proc/inside").unwrap(), "version");
    }

    #[test]
    fn an_error_names_the_path_as_seen_from_the_root() {
        let (_folder, root) = made(&[("sys/x", "abc\nsecond\n")]);
        assert_eq!(root.text("sys/y").unwrap_err().to_string(), "`/sys/y` is not there");
        assert!(root.text("sys/y").unwrap_err().is_missing());
        assert_eq!(
            root.number::<u64>("/sys/x").unwrap_err().to_string(),
            "`/sys/x` holds `abc`, which is not a number"
        );
        assert!(matches!(root.text("/sys"), Err(SysError::Unreadable { .. })));
    }

    #[test]
    fn names_with_numbers_are_in_the_order_of_the_numbers() {
        let (_folder, root) = made(&[("d/cpu10", ""), ("d/cpu2", ""), ("d/cpufreq", ""), ("d/cpu0", "")]);
        assert_eq!(root.list("d").unwrap(), ["cpu0", "cpu2", "cpu10", "cpufreq"]);
        assert_eq!(root.numbered_entries("d", "cpu"), [0, 2, 10]);
        assert!(root.numbered_entries("nowhere", "cpu").is_empty());
    }

    #[test]
    fn text_that_is_not_utf_8_is_still_read() {
        let (folder, root) = made(&[]);
        fs::write(folder.path().join("model"), b"\xffARM\0\n").unwrap();
        assert_eq!(root.text("model").unwrap(), "\u{fffd}ARM");
    }
}
