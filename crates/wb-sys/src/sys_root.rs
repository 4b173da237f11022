//! A file system root through which the system is read: `/`, or a fake root in tests.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::facts::cpu_list;

/// Limit on the size of files, in bytes: more than any file of `/proc`, `/sys` or a package list. Longer files are cut.
pub(crate) const MAX_FILE_SIZE: u64 = 64 << 20;
/// Capacity of the first read of a file, in bytes. Files of the kernel have no length; most fit, and need one read.
const TYPICAL_SIZE: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum SysError {
    #[error("no such file: `{path}`")]
    Missing {
        /// The path, as seen from the root.
        path: String,
    },
    #[error("cannot read `{path}`: {source}")]
    Unreadable {
        /// The path, as seen from the root.
        path: String,
        source: io::Error,
    },
    #[error("invalid value `{text}` in `{path}`: expected {expected}")]
    Malformed {
        /// The path, as seen from the root.
        path: String,
        /// Its content, truncated to a line.
        text: String,
        expected: &'static str,
    },
    #[error("`{path}` is outside of `{root}`")]
    Outside { path: String, root: String },
}

/// A file system root: that of this system, or a fake one that imitates another machine.
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
    pub fn real() -> Self {
        Self { base: PathBuf::from("/") }
    }

    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// Whether this is the running system, for which system calls and commands may be used too.
    pub fn is_real(&self) -> bool {
        self.base == Path::new("/")
    }

    /// A path may have a leading `/`. A `..` is refused, and so is a symbolic link that leads out of a fake root.
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

    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).is_ok_and(|full| full.exists())
    }

    pub fn bytes(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, SysError> {
        let path = path.as_ref();
        let full = self.path(path)?;
        let mut bytes = Vec::with_capacity(TYPICAL_SIZE);
        fs::File::open(full)
            .and_then(|file| file.take(MAX_FILE_SIZE).read_to_end(&mut bytes))
            .map_err(|error| unreadable(path, error))?;
        Ok(bytes)
    }

    /// Reads a file as text, without surrounding white space and NULs. Invalid UTF-8 is replaced.
    pub fn text(&self, path: impl AsRef<Path>) -> Result<String, SysError> {
        let bytes = self.bytes(path)?;
        // Valid text is checked several times as fast as its replacement would be.
        let text = String::from_utf8(bytes);
        let text = text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    pub fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Result<T, SysError> {
        let path = path.as_ref();
        let text = self.text(path)?;
        text.parse().map_err(|_| malformed(path, &text, "a number"))
    }

    /// Reads a file that contains a list of CPUs or nodes: `0-3,8`.
    pub fn numbers(&self, path: impl AsRef<Path>) -> Result<Vec<u32>, SysError> {
        let path = path.as_ref();
        let text = self.text(path)?;
        cpu_list::parse(&text).ok_or_else(|| malformed(path, &text, "a list of numbers"))
    }

    /// The names in a folder in natural order: `cpu2` before `cpu10`.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<String>, SysError> {
        let path = path.as_ref();
        let entries = fs::read_dir(self.path(path)?).map_err(|error| unreadable(path, error))?;
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| natural_sort_key(name));
        Ok(names)
    }

    /// The numbers in names that are `prefix` and a number: 0 and 1 of `node0`, `node1`. Empty without such a folder.
    pub fn numbered_entries(&self, path: impl AsRef<Path>, prefix: &str) -> Vec<u32> {
        let names = self.list(path).unwrap_or_default();
        names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect()
    }

    /// The file name of a symbolic link's target: the driver of `…/device/driver`.
    pub fn link(&self, path: impl AsRef<Path>) -> Result<String, SysError> {
        let path = path.as_ref();
        let target = fs::read_link(self.path(path)?).map_err(|error| unreadable(path, error))?;
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned());
        name.ok_or_else(|| malformed(path, &target.to_string_lossy(), "a link to a name"))
    }
}

fn display_path(path: &Path) -> String {
    format!("/{}", path.strip_prefix("/").unwrap_or(path).display())
}

fn unreadable(path: &Path, source: io::Error) -> SysError {
    match source.kind() {
        io::ErrorKind::NotFound => SysError::Missing { path: display_path(path) },
        _ => SysError::Unreadable { path: display_path(path), source },
    }
}

fn malformed(path: &Path, text: &str, expected: &'static str) -> SysError {
    let text = text.lines().next().unwrap_or_default().chars().take(60).collect();
    SysError::Malformed { path: display_path(path), text, expected }
}

fn natural_sort_key(name: &str) -> (String, u64, String) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0), name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn a_path_is_relative_to_the_root_and_cannot_leave_it() {
        let fake = FakeRoot::new().file("/proc/version", "Linux\n").link("/etc", "/etc");
        let fake = fake.link("/proc/inside", "version");
        let root = fake.root();
        assert_eq!(root.text("/proc/version").unwrap(), "Linux");
        assert_eq!(root.text("proc/version").unwrap(), "Linux");
        assert!(matches!(root.text("/proc/../../etc/passwd"), Err(SysError::Outside { .. })));
        assert!(matches!(root.text("/etc/passwd"), Err(SysError::Outside { .. })));
        assert!(!root.exists("/etc/passwd"));
        assert_eq!(root.text("/proc/inside").unwrap(), "Linux");
        assert_eq!(root.link("/proc/inside").unwrap(), "version");
    }

    #[test]
    fn an_error_names_the_path_as_seen_from_the_root() {
        let fake = FakeRoot::new().file("/sys/x", "abc\nsecond\n");
        let root = fake.root();
        assert_eq!(root.text("sys/y").unwrap_err().to_string(), "no such file: `/sys/y`");
        assert!(matches!(root.text("sys/y"), Err(SysError::Missing { .. })));
        assert_eq!(
            root.number::<u64>("/sys/x").unwrap_err().to_string(),
            "invalid value `abc` in `/sys/x`: expected a number"
        );
        assert!(matches!(root.text("/sys"), Err(SysError::Unreadable { .. })));
    }

    #[test]
    fn names_are_in_natural_order() {
        let fake = ["/d/cpu10", "/d/cpu2", "/d/cpufreq", "/d/cpu0"]
            .iter()
            .fold(FakeRoot::new(), |fake, path| fake.file(path, ""));
        let root = fake.root();
        assert_eq!(root.list("d").unwrap(), ["cpu0", "cpu2", "cpu10", "cpufreq"]);
        assert_eq!(root.numbered_entries("d", "cpu"), [0, 2, 10]);
        assert!(root.numbered_entries("nowhere", "cpu").is_empty());
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        let fake = FakeRoot::new().file("/model", b"\xffARM\0\n");
        assert_eq!(fake.root().text("model").unwrap(), "\u{fffd}ARM");
    }
}
