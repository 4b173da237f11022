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
pub struct Tool {
    /// Where it is.
    pub path: String,
    /// The first line it says of its version; none where it says none or could not be asked.
    pub version: Option<String>,
    /// The SHA-256 of its binary, in hexadecimal.
    pub sha256: Option<String>,
}

/// The tools of these names, or at these paths, that are here. On the running system they are asked for
/// their version, mostly with `--version`.
pub fn tools(root: &SysRoot, names: &[&str]) -> BTreeMap<String, Tool> {
    names.iter().filter_map(|name| Some(((*name).to_owned(), tool(root, name)?))).collect()
}

fn tool(root: &SysRoot, name: &str) -> Option<Tool> {
    let path = find(root, name)?;
    Some(Tool {
        version: root.is_real().then(|| version(&path)).flatten(),
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

/// What programs are asked with that do not know `--version`.
const HABITS: [(&str, &str); 7] = [
    ("openssl", "version"),
    ("go", "version"),
    ("7z", "i"),
    ("7zr", "i"),
    ("7zz", "i"),
    ("java", "-version"),
    ("ssh", "-V"),
];

/// The first line that holds a number of a version, whatever else a program says or thinks of the flag.
fn version(path: &Path) -> Option<String> {
    let name = path.file_name().unwrap_or_default();
    let question = HABITS.iter().find(|(program, _)| name == *program).map_or("--version", |(_, question)| question);
    let said = command::output(path, &[question])?;
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
    use crate::made::MadeRoot;

    #[test]
    fn a_tool_is_found_by_the_path_and_named_by_its_bytes() {
        let made = MadeRoot::new()
            .file("/proc/self/environ", "PATH=/opt/bin:/usr/bin\0")
            .file("/usr/bin/fio", "abc")
            .file("/bin/elsewhere", "");
        let tools = tools(&made.root(), &["fio", "elsewhere", "nosuch", "/bin/elsewhere"]);
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
        let tools = tools(&SysRoot::real(), &["env"]);
        let Some(env) = tools.get("env") else {
            return println!("SKIPPED: there is no `env` here");
        };
        assert!(env.sha256.as_ref().is_some_and(|hash| hash.len() == 64), "{env:?}");
    }
}
