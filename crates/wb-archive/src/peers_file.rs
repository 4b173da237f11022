//! The packed copy of a peers file, in which measured programs are named by their paths in the archive.

use std::path::{Component, Path, PathBuf};

/// A program of a matrix, and its path in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedProgram {
    /// Its location, absolute.
    pub location: PathBuf,
    /// Its path relative to the folder of the packed peers file.
    pub relative: String,
}

/// Replaces the paths of packed programs in the text of a peers file. Relative paths with a `/` are relative to `folder`,
/// the file's. Everything else is unchanged.
pub fn replace_programs(text: &str, folder: &Path, programs: &[PackedProgram]) -> String {
    let is_delimiter = |c: char| c.is_whitespace() || "\"'[]{},".contains(c);
    let replace = |word: &str| {
        let path = word.contains('/').then(|| normalize(&folder.join(word)))?;
        programs.iter().find_map(|program| {
            let rest = path.strip_prefix(normalize(&program.location)).ok()?;
            Some(if rest.as_os_str().is_empty() {
                program.relative.clone()
            } else {
                format!("{}/{}", program.relative, rest.display())
            })
        })
    };
    let mut output = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_delimiter) {
        let word = piece.trim_end_matches(is_delimiter);
        match replace(word) {
            Some(path) => output.extend([&path, &piece[word.len()..]]),
            None => output.push_str(piece),
        }
    }
    output
}

/// Resolves `.` and `..` by the names alone.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_packed_programs_are_replaced() {
        let text = "[[endpoints]]\nid = \"a/b\"\n\
            listener = { command = [\"../../target/rust\", \"listen\", [\"--x\", \"{x}\"]] }\n\
            dialer = { command = ['/base/target/js/endpoint', \"../../target/rusty\", \"curl\"] }\n";
        let program = |name: &str| PackedProgram {
            location: Path::new("/base/target").join(name),
            relative: format!("../../programs/{name}"),
        };
        let replaced = replace_programs(text, Path::new("/base/examples/peers"), &[program("rust"), program("js")]);
        assert_eq!(
            replaced,
            "[[endpoints]]\nid = \"a/b\"\n\
            listener = { command = [\"../../programs/rust\", \"listen\", [\"--x\", \"{x}\"]] }\n\
            dialer = { command = ['../../programs/js/endpoint', \"../../target/rusty\", \"curl\"] }\n"
        );
    }
}
