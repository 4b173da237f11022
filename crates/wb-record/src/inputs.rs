//! `inputs.json`: the files outside of a run folder that a run was measured with, and that measuring again needs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Sha256;

use crate::{RecordError, RunFolder, files};

/// The files outside of a run folder that a run was measured with: `inputs.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RunInputs {
    /// The folder that relative paths are relative to, and in which the rebuild command runs; without it, the folder in
    /// which a snapshot is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The programs that were measured.
    #[serde(default)]
    pub programs: Vec<ProgramInput>,
    /// The sources of those programs.
    #[serde(default)]
    pub sources: Vec<SourceInput>,
    /// The file that defines the matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers_file: Option<PathBuf>,
    /// The command that builds the programs from their sources; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rebuild: Vec<String>,
}

/// A program that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramInput {
    /// The file, or a folder that has everything the program needs.
    pub path: PathBuf,
    /// The hash of its content when it was measured, as [`content_hash`] computes it.
    pub sha256: Sha256,
    /// Its path in a snapshot, below `programs/`.
    #[serde(rename = "as")]
    pub packed_as: String,
}

/// Sources of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceInput {
    /// The file or folder. Of a folder, `target`, `node_modules` and `.git` are left out.
    pub path: PathBuf,
    /// Its path in a snapshot, below `sources/`. Sources of a rebuild command are below `sources/` at the paths that
    /// this command expects.
    #[serde(rename = "as")]
    pub packed_as: String,
}

impl RunInputs {
    /// Reads the inputs of a run; `None` if none were recorded.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid.
    pub fn read(run: &RunFolder) -> Result<Option<Self>, RecordError> {
        files::read_json(&run.inputs_path())
    }

    /// The location of a path of this file.
    pub fn locate(&self, path: &Path) -> PathBuf {
        self.folder.as_deref().map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }
}

impl RunFolder {
    /// The path of its inputs.
    pub fn inputs_path(&self) -> PathBuf {
        self.path().join("inputs.json")
    }

    /// Writes its inputs.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_inputs(&self, inputs: &RunInputs) -> Result<(), RecordError> {
        files::write_json(&self.inputs_path(), inputs)
    }
}

/// The hash of the content of a file or a folder. That of a folder is the hash of a listing with a line for each file
/// and link, sorted by path: whether it is executable, the hash of its content or its target, and its path.
///
/// # Errors
/// If something cannot be read, or is neither a file, a folder nor a link.
pub fn content_hash(path: &Path) -> io::Result<Sha256> {
    if fs::metadata(path)?.is_file() {
        return Sha256::of_reader(File::open(path)?);
    }
    let mut lines = BTreeMap::new();
    list(path, Path::new(""), &mut lines)?;
    Ok(Sha256::of(lines.into_values().collect::<String>().as_bytes()))
}

/// Adds the line of each file and link below `folder` to `lines`, which are sorted by the paths' bytes.
fn list(folder: &Path, relative: &Path, lines: &mut BTreeMap<Vec<u8>, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, relative) = (entry.path(), relative.join(entry.file_name()));
        let metadata = entry.metadata()?;
        let line = if metadata.is_dir() {
            list(&path, &relative, lines)?;
            continue;
        } else if metadata.is_symlink() {
            format!("link {} {}\n", fs::read_link(&path)?.display(), relative.display())
        } else if metadata.is_file() {
            let kind = if metadata.permissions().mode() & 0o111 == 0 { "file" } else { "program" };
            format!("{kind} {} {}\n", Sha256::of_reader(File::open(&path)?)?, relative.display())
        } else {
            let message = format!("{} is neither a file, a folder nor a link", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        lines.insert(relative.into_os_string().into_encoded_bytes(), line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_as_they_are_documented() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path()).unwrap();
        assert_eq!(RunInputs::read(&run).unwrap(), None);
        let text = r#"{"programs": [{"path": "/opt/x", "sha256": "aa", "as": "programs/x"}],
            "sources": [{"path": "endpoints/x", "as": "sources/x"}],
            "peers-file": "/path/x.toml", "rebuild": ["make", "endpoints"]}"#;
        fs::write(run.inputs_path(), text).unwrap();
        let inputs = RunInputs::read(&run).unwrap().unwrap();
        assert_eq!(inputs.programs[0].packed_as, "programs/x");
        assert_eq!(inputs.peers_file.as_deref(), Some(Path::new("/path/x.toml")));
        run.write_inputs(&inputs).unwrap();
        assert_eq!(RunInputs::read(&run).unwrap().unwrap(), inputs);
        let inputs = RunInputs { folder: Some("/base".into()), ..inputs };
        assert_eq!(inputs.locate(Path::new("endpoints/x")), Path::new("/base/endpoints/x"));
        assert_eq!(inputs.locate(Path::new("/opt/x")), Path::new("/opt/x"));
    }

    #[test]
    fn the_hash_of_a_folder_depends_on_names_contents_and_executability() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::create_dir_all(path.join("lib")).unwrap();
        fs::write(path.join("lib/a"), "1").unwrap();
        let first = content_hash(&path).unwrap();
        assert_eq!(content_hash(&path).unwrap(), first);
        fs::set_permissions(path.join("lib/a"), fs::Permissions::from_mode(0o755)).unwrap();
        let executable = content_hash(&path).unwrap();
        fs::write(path.join("lib/a"), "2").unwrap();
        let changed = content_hash(&path).unwrap();
        fs::rename(path.join("lib/a"), path.join("lib/b")).unwrap();
        let renamed = content_hash(&path).unwrap();
        let all = [&first, &executable, &changed, &renamed];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        assert_eq!(content_hash(&path.join("lib/b")).unwrap(), Sha256::of(b"2"));
    }
}
