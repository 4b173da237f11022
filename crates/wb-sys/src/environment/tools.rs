//! Versions and hashes of the programs used for measuring.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Sha256;

use super::command::{self, NoOutput};
use super::process;
use crate::SysRoot;

/// Path, version and hash of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct ToolVersion {
    /// Path of the binary.
    pub path: String,
    /// First line of its output with a version number; absent where it printed none or was not run.
    pub version: Option<String>,
    /// Whether the query for its version did not end in time, so that its version is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub version_unknown: bool,
    /// SHA-256 of the binary, in hexadecimal.
    pub sha256: Option<String>,
}

/// The arguments that make each program print its version, by the program's name or path. A program without arguments
/// is not run, because it might start its work.
pub type VersionQueries = BTreeMap<String, Vec<String>>;

/// The requested programs that are installed. Their versions are queried only on the running system.
pub fn tools(root: &SysRoot, queries: &VersionQueries) -> BTreeMap<String, ToolVersion> {
    queries.iter().filter_map(|(name, arguments)| Some((name.clone(), tool(root, name, arguments)?))).collect()
}

fn tool(root: &SysRoot, name: &str, arguments: &[String]) -> Option<ToolVersion> {
    let path = find(root, name)?;
    let file = root.path(&path).ok();
    let query = file.as_ref().filter(|_| root.is_real()).and_then(|file| Query::new(file, arguments));
    // Every run begins and ends with the same queries, and some compilers take 20 ms to answer. One that did not answer is
    // queried again.
    static ANSWERS: Mutex<BTreeMap<Query, ToolVersion>> = Mutex::new(BTreeMap::new());
    let answers = || ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = query.as_ref().and_then(|query| answers().get(query).cloned()) {
        return Some(known);
    }
    let runs = root.is_real() && !arguments.is_empty();
    let output = runs.then(|| command::output(&path, arguments));
    let version_unknown = output == Some(Err(NoOutput::TimedOut));
    let tool = ToolVersion {
        version_unknown,
        version: output.and_then(Result::ok).and_then(|output| version_line(&output)),
        sha256: file.and_then(|file| sha256(&file)),
        path: path.display().to_string(),
    };
    if let Some(query) = query.filter(|_| tool.version.is_some() || arguments.is_empty()) {
        answers().insert(query, tool.clone());
    }
    Some(tool)
}

/// A query for a program's version, valid as long as the file is the same: whoever changes the file changes the time of
/// its status.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Query {
    path: PathBuf,
    /// Device and number of its inode.
    inode: (u64, u64),
    /// Time of the last change of its status: seconds and nanoseconds.
    changed: (i64, i64),
    size: u64,
    arguments: Vec<String>,
}

impl Query {
    fn new(path: &Path, arguments: &[String]) -> Option<Self> {
        let file = path.metadata().ok()?;
        Some(Self {
            path: path.to_owned(),
            inode: (file.dev(), file.ino()),
            changed: (file.ctime(), file.ctime_nsec()),
            size: file.size(),
            arguments: arguments.to_vec(),
        })
    }
}

/// Finds a program in the `PATH` of this process, or in the default one where that is unset.
pub fn find(root: &SysRoot, name: &str) -> Option<PathBuf> {
    let default = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
    let path = process::path(root).unwrap_or_else(|| default.to_owned());
    let candidates = if name.contains('/') {
        vec![PathBuf::from(name)]
    } else {
        path.split(':').filter(|folder| folder.starts_with('/')).map(|folder| Path::new(folder).join(name)).collect()
    };
    candidates.into_iter().find(|candidate| root.path(candidate).is_ok_and(|full| full.is_file()))
}

fn version_line(output: &str) -> Option<String> {
    let line = output.lines().map(str::trim).find(|line| holds_version(line))?;
    Some(line.chars().take(200).collect())
}

fn holds_version(line: &str) -> bool {
    line.as_bytes().windows(3).any(|part| part[0].is_ascii_digit() && part[1] == b'.' && part[2].is_ascii_digit())
}

fn sha256(path: &Path) -> Option<String> {
    // A program that this user may execute and not read has no hash.
    let hash = File::open(path).and_then(Sha256::of_reader).ok()?;
    Some(hash.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    fn version_queries(tools: &[(&str, &[&str])]) -> VersionQueries {
        let owned = |arguments: &[&str]| arguments.iter().map(|argument| (*argument).to_owned()).collect();
        tools.iter().map(|(name, arguments)| ((*name).to_owned(), owned(arguments))).collect()
    }

    #[test]
    fn a_tool_is_found_in_the_path_and_hashed() {
        let fake = FakeRoot::new()
            .file("/proc/self/environ", "PATH=/opt/bin:/usr/bin\0")
            .file("/usr/bin/fio", "abc")
            .file("/bin/elsewhere", "");
        let arguments: &[&str] = &["--version"];
        let tools = ["fio", "elsewhere", "nosuch", "/bin/elsewhere"].map(|name| (name, arguments));
        let tools = super::tools(&fake.root(), &version_queries(&tools));
        assert_eq!(tools.keys().collect::<Vec<_>>(), ["/bin/elsewhere", "fio"]);
        assert_eq!(tools["fio"].path, "/usr/bin/fio");
        let hash_of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(tools["fio"].sha256.as_deref(), Some(hash_of_abc));
        assert_eq!(tools["fio"].version, None, "programs of a fake root are not run");
    }

    // The first line may be an error about the flag instead of a version.
    #[test]
    fn a_version_is_a_digit_a_point_and_a_digit() {
        assert!(holds_version("fio-3.33"));
        assert!(holds_version("7-Zip [64] 16.02 : Copyright"));
        assert!(!holds_version("unknown option --version"));
        assert!(!holds_version("2 errors."));
    }

    #[test]
    fn a_program_of_this_system_is_read() {
        let tools = tools(&SysRoot::real(), &version_queries(&[("env", &["--version"])]));
        let Some(env) = tools.get("env") else {
            return wb_test_skip::skip!("no such program: `env`");
        };
        assert!(env.sha256.as_ref().is_some_and(|hash| hash.len() == 64), "{env:?}");
    }

    #[test]
    fn a_program_without_arguments_is_not_run() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (program, ran) = (folder.path().join("works"), folder.path().join("ran"));
        std::fs::write(&program, format!("#!/bin/sh\ntouch {}\necho 1.0\n", ran.display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = program.to_str().unwrap();
        let found = tools(&SysRoot::real(), &version_queries(&[(program, &[])]));
        assert!(found[program].version.is_none() && found[program].sha256.is_some());
        assert!(!ran.exists());
    }

    #[test]
    fn a_program_is_queried_again_once_it_has_changed() {
        use std::process::Command;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tool");
        let install = |version: &str| {
            let count = folder.path().join("count");
            let script = format!("#!/bin/sh\necho x >> {}\necho {version}\n", count.display());
            std::fs::write(folder.path().join("new"), script).unwrap();
            // By another process: children of other tests inherit a descriptor of this one for a moment, and a program
            // that is open for writing cannot be started.
            let copy = Command::new("install").arg(folder.path().join("new")).arg(&program).status().unwrap();
            assert!(copy.success());
        };
        let read = || {
            let name = program.to_str().unwrap();
            let tools = tools(&SysRoot::real(), &version_queries(&[(name, &["--version"])]));
            let queried = std::fs::read_to_string(folder.path().join("count")).unwrap().lines().count();
            (tools[name].version.clone().unwrap(), tools[name].sha256.clone().unwrap(), queried)
        };
        install("tool 1.0");
        let first = read();
        assert_eq!((first.0.as_str(), first.2), ("tool 1.0", 1));
        assert_eq!(read(), first);
        install("tool 2.0");
        let second = read();
        assert_eq!((second.0.as_str(), second.2), ("tool 2.0", 2));
        assert_ne!(second.1, first.1);
    }
}
