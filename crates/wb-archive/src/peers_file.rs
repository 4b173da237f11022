//! The packed copy of a peers file, in which measured programs are named by their paths in the archive.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde_json::Value as Json;

/// Keys of what programs are built from, which does not matter for measuring them.
const BUILD_KEYS: [&str; 3] = ["root", "build", "sources"];

/// A program of a matrix, and its path in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedProgram {
    /// Absolute.
    pub location: PathBuf,
    /// Relative to the folder of the packed peers file.
    pub relative: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct PackedPeersFile {
    /// The original text with other values.
    pub text: String,
    /// The locations of the packed programs that the file names.
    pub programs: BTreeSet<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum PeersFileError {
    #[error("cannot read the peers file {}: {reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("cannot pack the peers file {}: `{text}` contains the path of a measured program", path.display())]
    ProgramInText { path: PathBuf, text: String },
    #[error("cannot replace the paths of programs in the peers file {}: expected them in quotes, on one line", path.display())]
    Unreplaceable { path: PathBuf },
}

/// Replaces the paths of packed programs in the text of the peers file `path`, which is TOML or YAML. A relative path
/// with a `/` is relative to the folder of the file. Fails if the path of a program is in a text with something else.
pub fn replace_programs(
    text: &str,
    path: &Path,
    programs: &[PackedProgram],
) -> Result<PackedPeersFile, PeersFileError> {
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let parse = |text: &str| -> Result<Json, PeersFileError> {
        let parsed = if is_toml {
            toml::from_str(text).map_err(|error| error.message().to_owned())
        } else {
            serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())
        };
        parsed.map(without_build_keys).map_err(|reason| PeersFileError::Invalid { path: path.to_owned(), reason })
    };
    let mut value = parse(text)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut replacement = Replacement { path, folder, programs, values: BTreeMap::new(), named: BTreeSet::new() };
    replacement.replace(&mut value)?;
    let replace = |text: String, (from, to): (&String, &String)| replace_literals(&text, from, to, is_toml);
    let text = replacement.values.iter().fold(text.to_owned(), replace);
    if parse(&text)? == value {
        Ok(PackedPeersFile { text, programs: replacement.named })
    } else {
        Err(PeersFileError::Unreplaceable { path: path.to_owned() })
    }
}

fn without_build_keys(value: Json) -> Json {
    match value {
        Json::Array(all) => all.into_iter().map(without_build_keys).collect(),
        Json::Object(all) => {
            let kept = all.into_iter().filter(|(key, _)| !BUILD_KEYS.contains(&key.as_str()));
            kept.map(|(key, value)| (key, without_build_keys(value))).collect()
        }
        other => other,
    }
}

/// Replaces a value of a text in TOML, however it is quoted.
pub fn replace_value(text: &str, from: &str, to: &str) -> String {
    replace_literals(text, from, to, true)
}

fn replace_literals(text: &str, from: &str, to: &str, is_toml: bool) -> String {
    // A string of JSON is one of TOML and of YAML.
    let quote = |text: &str| Json::from(text).to_string();
    let single_quoted = format!("'{}'", from.replace('\'', "''"));
    let to = quote(to);
    let text = text.replace(&quote(from), &to).replace(&single_quoted, &to);
    if is_toml {
        return text;
    }
    let is_edge = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || "[]{},".contains(c));
    let (mut output, mut rest) = (String::new(), &*text);
    while let Some(position) = rest.find(from) {
        let (before, after) = (&rest[..position], &rest[position + from.len()..]);
        let is_value = is_edge(before.chars().next_back()) && is_edge(after.chars().next());
        output.extend([before, if is_value { &to } else { from }]);
        rest = after;
    }
    output + rest
}

struct Replacement<'a> {
    path: &'a Path,
    folder: &'a Path,
    programs: &'a [PackedProgram],
    /// New values, by the old ones.
    values: BTreeMap<String, String>,
    named: BTreeSet<PathBuf>,
}

impl Replacement<'_> {
    fn replace(&mut self, value: &mut Json) -> Result<(), PeersFileError> {
        match value {
            Json::String(text) => self.replace_text(text),
            Json::Array(all) => all.iter_mut().try_for_each(|value| self.replace(value)),
            Json::Object(all) => all.values_mut().try_for_each(|value| self.replace(value)),
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
        }
    }

    fn replace_text(&mut self, text: &mut String) -> Result<(), PeersFileError> {
        if let Some(packed) = self.find(text) {
            self.values.insert(std::mem::replace(text, packed.clone()), packed);
            return Ok(());
        }
        let is_delimiter = |c: char| c.is_whitespace() || "\"'`=:,;()".contains(c);
        let mut words = text.split(is_delimiter);
        if words.any(|word| self.find(word).is_some()) {
            Err(PeersFileError::ProgramInText { path: self.path.to_owned(), text: text.clone() })
        } else {
            Ok(())
        }
    }

    /// The path in the archive of the program that a path names, or that it is below.
    fn find(&mut self, path: &str) -> Option<String> {
        let path = path.contains('/').then(|| resolve(&self.folder.join(path)))?;
        let mut packed = None;
        // All of them: a program can be in the folder of another one.
        for PackedProgram { location, relative } in self.programs {
            let Ok(rest) = path.strip_prefix(resolve(location)) else { continue };
            self.named.insert(location.clone());
            packed = packed.or_else(|| Some(Path::new(relative).join(rest).to_str()?.trim_end_matches('/').to_owned()));
        }
        packed
    }
}

/// A path without links, `.` and `..`; by the names alone if it does not exist.
fn resolve(path: &Path) -> PathBuf {
    let by_names = || {
        path.components().fold(PathBuf::new(), |mut normal, component| {
            match component {
                Component::CurDir => {}
                Component::ParentDir => drop(normal.pop()),
                other => normal.push(other),
            }
            normal
        })
    };
    path.canonicalize().unwrap_or_else(|_| by_names())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> PackedProgram {
        PackedProgram {
            location: Path::new("/base/target").join(name),
            relative: format!("../../programs/peers/target/{name}"),
        }
    }

    /// The values of the replaced file.
    fn replace(text: &str, name: &str) -> Result<Json, PeersFileError> {
        let path = Path::new("/base/examples/peers").join(name);
        let programs = ["rust", "js", "of two words", "a\"b"].map(program);
        let packed = replace_programs(text, &path, &programs)?;
        Ok(if name.ends_with("toml") {
            toml::from_str(&packed.text).unwrap()
        } else {
            serde_saphyr::from_str(&packed.text).unwrap()
        })
    }

    #[test]
    fn paths_of_packed_programs_are_replaced() {
        let toml = r#"
axes = ["transport"] # over which
[[endpoints]]
id = "a/b"
listener = { command = ["../../target/rust", "listen", ["--x", "{x}"]] }
dialer = { command = ['/base/target/js/endpoint', "../../target/rusty", "curl"] }
[[endpoints]]
id = "c"
listener = { command = ["../../target/of two words", "../../target/a\"b", '../../target/./a"b'] }
[aliases]
x = "../target/rust"
"#;
        let expected = serde_json::json!({
            "axes": ["transport"],
            "aliases": { "x": "../target/rust" },
            "endpoints": [
                {
                    "id": "a/b",
                    "listener": { "command": ["../../programs/peers/target/rust", "listen", ["--x", "{x}"]] },
                    "dialer": { "command": ["../../programs/peers/target/js/endpoint", "../../target/rusty", "curl"] },
                },
                {
                    "id": "c",
                    "listener": { "command": [
                        "../../programs/peers/target/of two words", "../../programs/peers/target/a\"b",
                        "../../programs/peers/target/a\"b",
                    ] },
                },
            ],
        });
        assert_eq!(replace(toml, "x.toml").unwrap(), expected);
        let yaml = "axes: [transport]\nendpoints:\n- id: a/b\n  listener: {command: [../../target/rust, listen, [--x, '{x}']]}\n  \
            dialer: {command: [/base/target/js/endpoint, ../../target/rusty, curl]}\n- id: c\n  listener:\n    command:\n    \
            - ../../target/of two words\n    - \"../../target/a\\\"b\"\n    - ../../target/./a\"b\naliases:\n  x: ../target/rust\n";
        assert_eq!(replace(yaml, "x.yaml").unwrap(), expected);
    }

    #[test]
    fn everything_else_is_unchanged() {
        let text =
            "# a comment\nversion:  1.30  # as it is\nsources: [target/rust]\nx:  /base/target/rust  # another\n";
        let packed = replace_programs(text, Path::new("/base/x.yaml"), &[program("rust")]).unwrap();
        assert_eq!(packed.text, text.replace("/base/target/rust", "\"../../programs/peers/target/rust\""));
        assert_eq!(packed.programs, BTreeSet::from([program("rust").location]));
    }

    // What builds a program may name it, too, and does not matter for measuring it.
    #[test]
    fn a_program_can_be_its_own_source_and_be_named_by_a_build_command() {
        let text =
            "sources = ['../../target/rust']\nbuild = ['cp x ../../target/rust']\ncommand = ['../../target/rust']\n";
        let replaced = replace(text, "x.toml").unwrap();
        assert_eq!(replaced["command"][0], "../../programs/peers/target/rust");
        assert_eq!(replaced["build"][0], "cp x ../../target/rust");
    }

    #[test]
    fn a_value_that_is_not_found_in_the_text_is_refused() {
        let text = "x: \"/base/target/\\x72ust\"";
        let error = replace_programs(text, Path::new("/base/x.yaml"), &[program("rust")]).unwrap_err();
        assert!(matches!(error, PeersFileError::Unreplaceable { .. }), "{error}");
    }

    #[test]
    fn a_program_within_a_text_is_refused() {
        let text = r#"command = ["sh", "-c", "exec ../../target/rust listen"]"#;
        assert_eq!(
            replace(text, "x.toml").unwrap_err().to_string(),
            "cannot pack the peers file /base/examples/peers/x.toml: `exec ../../target/rust listen` contains the path of \
             a measured program"
        );
    }

    #[test]
    fn a_program_that_is_named_by_a_link_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::write(folder.join("program"), "x").unwrap();
        std::os::unix::fs::symlink("program", folder.join("link")).unwrap();
        let program = PackedProgram { location: folder.join("program"), relative: "P".to_owned() };
        let packed = replace_programs("command = ['./link']", &folder.join("x.toml"), &[program]).unwrap();
        assert_eq!(packed.text, "command = [\"P\"]");
    }
}
