//! The programs that measure, and which ones exactly.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{command, process};
use crate::SysRoot;

/// A program, and which one exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct ToolVersion {
    /// Where it is.
    pub path: String,
    /// The first line it says of its version; none where it says none or could not be asked.
    pub version: Option<String>,
    /// The SHA-256 of its binary, in hexadecimal.
    pub sha256: Option<String>,
}

/// Tools by name or path, each with the arguments that make it tell its version; with none it is not run at all,
/// because there are programs that then do all their work.
pub type VersionQueries = BTreeMap<String, Vec<String>>;

/// The tools of these that are here. Only on the running system are they asked for their version.
pub fn tools(root: &SysRoot, asked: &VersionQueries) -> BTreeMap<String, ToolVersion> {
    asked.iter().filter_map(|(name, question)| Some((name.clone(), tool(root, name, question)?))).collect()
}

fn tool(root: &SysRoot, name: &str, question: &[String]) -> Option<ToolVersion> {
    let path = find(root, name)?;
    let is_asked = root.is_real() && !question.is_empty();
    Some(ToolVersion {
        version: is_asked.then(|| version(&path, question)).flatten(),
        sha256: root.path(&path).ok().and_then(|path| sha256(&path)),
        path: path.display().to_string(),
    })
}

/// Where a program is, by the `PATH` of this process, or the usual one where it has none.
pub fn find(root: &SysRoot, name: &str) -> Option<PathBuf> {
    let usual = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
    let path = process::path(root).unwrap_or_else(|| usual.to_owned());
    let places = match name.contains('/') {
        true => vec![PathBuf::from(name)],
        false => path
            .split(':')
            .filter(|folder| folder.starts_with('/'))
            .map(|folder| Path::new(folder).join(name))
            .collect(),
    };
    places.into_iter().find(|place| root.path(place).is_ok_and(|full| full.is_file()))
}

/// The first line that holds a number of a version, whatever else a program says or thinks of the flag.
fn version(path: &Path, question: &[String]) -> Option<String> {
    let said = command::output(path, question)?;
    let line = said.lines().map(str::trim).find(|line| holds_version(line))?;
    Some(line.chars().take(200).collect())
}

/// Whether there is a digit, a point and a digit.
fn holds_version(line: &str) -> bool {
    line.as_bytes().windows(3).any(|part| part[0].is_ascii_digit() && part[1] == b'.' && part[2].is_ascii_digit())
}

fn sha256(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            read => hash.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    fn asked(tools: &[(&str, &[&str])]) -> VersionQueries {
        let owned = |question: &[&str]| question.iter().map(|word| (*word).to_owned()).collect();
        tools.iter().map(|(name, question)| ((*name).to_owned(), owned(question))).collect()
    }

    #[test]
    fn a_tool_is_found_by_the_path_and_named_by_its_bytes() {
        let made = FakeRoot::new()
            .file("/proc/self/environ", "PATH=/opt/bin:/usr/bin\0")
            .file("/usr/bin/fio", "abc")
            .file("/bin/elsewhere", "");
        let question: &[&str] = &["--version"];
        let tools = ["fio", "elsewhere", "nosuch", "/bin/elsewhere"].map(|name| (name, question));
        let tools = super::tools(&made.root(), &asked(&tools));
        assert_eq!(tools.keys().collect::<Vec<_>>(), ["/bin/elsewhere", "fio"]);
        assert_eq!(tools["fio"].path, "/usr/bin/fio");
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(tools["fio"].sha256.as_deref(), Some(of_abc));
        assert_eq!(tools["fio"].version, None, "nothing of a made root is run");
    }

    #[test]
    fn a_line_with_a_version_is_told_from_one_without() {
        assert!(holds_version("fio-3.33"));
        assert!(holds_version("7-Zip [64] 16.02 : Copyright"));
        assert!(!holds_version("unknown option --version"));
        assert!(!holds_version("2 errors."));
    }

    #[test]
    fn this_systems_shell_utilities_say_their_version() {
        let tools = tools(&SysRoot::real(), &asked(&[("env", &["--version"])]));
        let Some(env) = tools.get("env") else {
            return println!("SKIPPED: there is no `env` here");
        };
        assert!(env.sha256.as_ref().is_some_and(|hash| hash.len() == 64), "{env:?}");
    }

    #[test]
    fn a_program_that_was_given_no_question_is_not_run() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (program, ran) = (folder.path().join("works"), folder.path().join("ran"));
        std::fs::write(&program, format!("#!/bin/sh\ntouch {}\necho 1.0\n", ran.display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = program.to_str().unwrap();
        let found = tools(&SysRoot::real(), &asked(&[(program, &[])]));
        assert!(found[program].version.is_none() && found[program].sha256.is_some());
        assert!(!ran.exists());
    }
}
