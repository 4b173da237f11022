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
    /// The files that define the matrices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers_files: Vec<PathBuf>,
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
    /// Its path in a snapshot. That of a program that commands find by its name is `programs/NAME`, because `programs` is
    /// on the `PATH` of `./rerun`; its subfolders are not.
    #[serde(rename = "as")]
    pub packed_as: String,
    /// Whether the rebuild command builds it.
    #[serde(default = "is_rebuilt", skip_serializing_if = "Clone::clone")]
    pub rebuilt: bool,
}

/// The default of [`ProgramInput::rebuilt`].
fn is_rebuilt() -> bool {
    true
}

/// Sources of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceInput {
    /// The file or folder. Of a folder, `target`, `node_modules` and `.git` are left out.
    pub path: PathBuf,
    /// Its path in a snapshot, below `sources/`. The rebuild command runs in `sources/`, and finds its sources at the
    /// paths that it expects.
    #[serde(rename = "as")]
    pub packed_as: String,
}

/// Why the inputs of two commands of a run cannot be in one snapshot.
#[derive(Debug, thiserror::Error)]
pub enum InputConflict {
    #[error("cannot rebuild: its programs have different `build` commands or folders")]
    Rebuild,
    /// Different sources have one path in a snapshot.
    #[error("cannot pack {} and {}: both would be `{name}`", first.display(), second.display())]
    Source {
        /// The path in a snapshot.
        name: String,
        /// The sources that have it.
        first: PathBuf,
        /// Other sources that would have the same path.
        second: PathBuf,
    },
}

impl RunInputs {
    /// Reads the inputs of a run; `None` if none were recorded.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid.
    pub fn read(run: &RunFolder) -> Result<Option<Self>, RecordError> {
        run.read_json(&run.inputs_path())
    }

    /// Adds the inputs of a later command of the same run. A program of both is recorded as it was later.
    ///
    /// # Errors
    /// If the programs of both cannot be built by one command, or different sources have one path in a snapshot.
    pub fn merge(self, later: Self) -> Result<Self, InputConflict> {
        let is_first = self.programs.is_empty() && self.sources.is_empty() && self.peers_files.is_empty();
        if is_first && self.rebuild.is_empty() {
            return Ok(later);
        }
        let builds = |inputs: &Self| !inputs.rebuild.is_empty();
        if builds(&self) && builds(&later) && (&self.rebuild, &self.folder) != (&later.rebuild, &later.folder) {
            return Err(InputConflict::Rebuild);
        }
        let folder = if builds(&self) { self.folder.clone() } else { later.folder.clone() };
        let (mut all, later) = (self.relative_to(folder.clone()), later.relative_to(folder));
        for program in later.programs {
            all.programs.retain(|earlier| earlier.path != program.path);
            all.programs.push(program);
        }
        for source in later.sources {
            match all.sources.iter().find(|earlier| earlier.packed_as == source.packed_as) {
                None => all.sources.push(source),
                Some(earlier) if earlier.path == source.path => {}
                Some(earlier) => {
                    let (first, second) = (all.locate(&earlier.path), all.locate(&source.path));
                    return Err(InputConflict::Source { name: source.packed_as, first, second });
                }
            }
        }
        let new_files = later.peers_files.into_iter().filter(|file| !all.peers_files.contains(file));
        all.peers_files.extend(new_files.collect::<Vec<_>>());
        if all.rebuild.is_empty() {
            all.rebuild = later.rebuild;
        }
        Ok(all)
    }

    /// The same inputs with paths relative to another folder; those outside of it are absolute.
    fn relative_to(mut self, folder: Option<PathBuf>) -> Self {
        let move_path = |path: &Path| {
            let path = self.locate(path);
            let below = folder.as_deref().and_then(|folder| path.strip_prefix(folder).ok());
            below.map(Path::to_owned).unwrap_or(path)
        };
        let programs = self.programs.iter().map(|program| move_path(&program.path)).collect::<Vec<_>>();
        let sources = self.sources.iter().map(|source| move_path(&source.path)).collect::<Vec<_>>();
        let peers_files = self.peers_files.iter().map(|file| move_path(file)).collect();
        self.programs.iter_mut().zip(programs).for_each(|(program, path)| program.path = path);
        self.sources.iter_mut().zip(sources).for_each(|(source, path)| source.path = path);
        Self { folder, peers_files, ..self }
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

/// The hash of the content of a file or a folder. The hash of a folder is that of a listing, with a line for each file
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
    Ok(Sha256::digest(lines.into_values().collect::<String>().as_bytes()))
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
            "peers-files": ["/path/x.toml"], "rebuild": ["make", "endpoints"]}"#;
        fs::write(run.inputs_path(), text).unwrap();
        let inputs = RunInputs::read(&run).unwrap().unwrap();
        assert_eq!(inputs.programs[0].packed_as, "programs/x");
        assert!(inputs.programs[0].rebuilt);
        assert_eq!(inputs.peers_files, [Path::new("/path/x.toml")]);
        run.write_inputs(&inputs).unwrap();
        assert_eq!(RunInputs::read(&run).unwrap().unwrap(), inputs);
        let inputs = RunInputs { folder: Some("/base".into()), ..inputs };
        assert_eq!(inputs.locate(Path::new("endpoints/x")), Path::new("/base/endpoints/x"));
        assert_eq!(inputs.locate(Path::new("/opt/x")), Path::new("/opt/x"));
    }

    /// Inputs of a matrix in a folder, with a program of this content and a source.
    fn inputs_of(folder: &str, program: &str, content: &str, rebuild: &[&str]) -> RunInputs {
        let program = ProgramInput {
            path: program.into(),
            sha256: Sha256::digest(content.as_bytes()),
            packed_as: format!("programs/peers{folder}/x"),
            rebuilt: true,
        };
        RunInputs {
            folder: Some(folder.into()),
            programs: vec![program],
            sources: vec![SourceInput { path: "src".into(), packed_as: format!("sources{folder}") }],
            peers_files: vec!["x.toml".into()],
            rebuild: rebuild.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    #[test]
    fn inputs_of_several_matrices_are_merged() {
        let first = inputs_of("/a", "x", "1", &["make"]);
        let merged = first.clone().merge(inputs_of("/b", "x", "2", &[])).unwrap();
        assert_eq!(merged.folder.as_deref(), Some(Path::new("/a")));
        assert_eq!(
            merged.programs.iter().map(|one| &*one.path).collect::<Vec<_>>(),
            [Path::new("x"), Path::new("/b/x")]
        );
        assert_eq!(merged.sources[1].path, Path::new("/b/src"));
        assert_eq!(merged.peers_files, [Path::new("x.toml"), Path::new("/b/x.toml")]);
        assert_eq!(inputs_of("/b", "x", "2", &[]).merge(first.clone()).unwrap().folder, merged.folder);
        let resumed = first.clone().merge(inputs_of("/a", "x", "changed", &["make"])).unwrap();
        assert_eq!(resumed, inputs_of("/a", "x", "changed", &["make"]));
        assert_eq!(RunInputs::default().merge(first.clone()).unwrap(), first);
    }

    #[test]
    fn inputs_that_cannot_be_in_one_snapshot_are_refused() {
        let first = inputs_of("/a", "x", "1", &["make"]);
        let conflict = first.clone().merge(inputs_of("/b", "x", "2", &["make"])).unwrap_err();
        assert!(matches!(conflict, InputConflict::Rebuild), "{conflict}");
        let mut other = inputs_of("/b", "x", "2", &[]);
        other.sources[0].packed_as.clone_from(&first.sources[0].packed_as);
        let conflict = first.merge(other).unwrap_err();
        assert_eq!(conflict.to_string(), "cannot pack /a/src and /b/src: both would be `sources/a`");
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
        assert_eq!(content_hash(&path.join("lib/b")).unwrap(), Sha256::digest(b"2"));
    }
}
