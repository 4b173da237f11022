//! Snapshots: archives with everything that is needed to measure a run again offline.
//!
//! | path | content |
//! |---|---|
//! | `run/` | the run folder |
//! | `bin/weighbridge` | the program |
//! | `schemas/` | the JSON Schemas of its files and outputs |
//! | `inputs/` | the plans, the recorded commands, the environment, the peers file |
//! | `programs/`, `sources/` | what the run was measured with, from its `inputs.json` |
//! | `rerun` | the script that measures again |

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use wb_model::Sha256;
use wb_model::secrets::{is_secret_name, mask_argument, mask_declared};
use wb_record::inputs::content_hash;
use wb_record::{RunFolder, RunInputs};

use crate::contents::{Contents, FILE_MODE, PROGRAM_MODE, SKIPPED_IN_SOURCES};
use crate::error::ArchiveError;
use crate::manifest::{ArchiveKind, ArchiveSummary, InputRole, PackedInput, PackedRun, check_path};
use crate::pack::{RUN, pack, parent, refuse_output};
use crate::peers_file::{PackedProgram, replace_programs};
use crate::rerun::{Rebuild, Rerun, RerunCommand};

/// The folder of packed programs.
pub const PROGRAMS: &str = "programs";

/// The folder of packed sources.
pub const SOURCES: &str = "sources";

/// The folder of everything else that was given to the commands.
pub const INPUTS: &str = "inputs";

/// Files that pin the versions of dependencies.
const LOCK_FILES: [&str; 6] =
    ["Cargo.lock", "go.sum", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "requirements.txt"];

/// What a snapshot is made of.
#[derive(Debug)]
pub struct SnapshotRequest<'a> {
    /// The run.
    pub run: &'a RunFolder,
    /// The inputs of the run, as [`RunInputs::read`] returns them.
    pub run_inputs: &'a RunInputs,
    /// The version of the program.
    pub version: &'a str,
    /// The program's executable.
    pub program: &'a Path,
    /// The names and texts of the JSON Schemas.
    pub schemas: Vec<(String, String)>,
    /// The commands that measured.
    pub commands: Vec<RerunCommand>,
    /// The same as they were recorded.
    pub recorded_commands: Vec<Vec<String>>,
    /// The plans: paths in the archive and texts.
    pub plans: Vec<(String, String)>,
    /// The environment of the program; what is not allowed in a snapshot is left out.
    pub environment: Vec<(String, String)>,
    /// Programs and sources in addition to those of `run_inputs`.
    pub inputs: Vec<SnapshotInput>,
}

/// A file or folder from outside of the run folder that is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInput {
    /// Its path in the archive.
    pub name: String,
    /// Its location.
    pub path: PathBuf,
    /// Its role.
    pub role: InputRole,
    /// The recorded hash of its content; another content is refused.
    pub sha256: Option<Sha256>,
}

/// The programs and sources of a run's `inputs.json`.
pub fn recorded_inputs(inputs: &RunInputs) -> Vec<SnapshotInput> {
    let programs = inputs.programs.iter().map(|program| SnapshotInput {
        name: program.packed_as.clone(),
        path: inputs.locate(&program.path),
        role: InputRole::Program,
        sha256: Some(program.sha256.clone()),
    });
    let sources = inputs.sources.iter().map(|source| {
        let is_lock_file = source.path.file_name().is_some_and(|name| LOCK_FILES.iter().any(|lock| name == *lock));
        SnapshotInput {
            name: source.packed_as.clone(),
            path: inputs.locate(&source.path),
            role: if is_lock_file { InputRole::LockFile } else { InputRole::Source },
            sha256: None,
        }
    });
    programs.chain(sources).collect()
}

/// The path in the archive of the peers file of a run; `None` if it has none.
pub fn packed_peers_file(inputs: &RunInputs) -> Option<String> {
    let name = inputs.peers_file.as_deref()?.file_name()?.to_str()?;
    Some(format!("{INPUTS}/peers/{name}"))
}

/// The variables of an environment that a snapshot records: `PATH`, `LANG` and `WEIGHBRIDGE_*`. Those whose names suggest
/// secrets are left out, and secrets in the others are masked.
pub fn allowed_environment(variables: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_allowed =
        |name: &str| matches!(name, "PATH" | "LANG") || (name.starts_with("WEIGHBRIDGE_") && !is_secret_name(name));
    let allowed = variables.into_iter().filter(|(name, _)| is_allowed(name));
    allowed.map(|(name, value)| (mask_declared(&name).into_owned(), mask_argument(&value))).collect()
}

/// Writes a snapshot.
///
/// # Errors
/// If a controller is writing to the run, a program is not the one that was measured, something cannot be read or packed,
/// or the archive exists or cannot be written.
pub fn snapshot(request: SnapshotRequest<'_>, output: &Path) -> Result<ArchiveSummary, ArchiveError> {
    let run = request.run;
    let _lock = run.lock_shared()?;
    refuse_output(run, output)?;
    let inputs: Vec<SnapshotInput> = recorded_inputs(request.run_inputs).into_iter().chain(request.inputs).collect();
    let mut contents = Contents::default();
    contents.add_tree(RUN, run.path(), &[])?;
    contents.add_file("bin/weighbridge", request.program, Some(PROGRAM_MODE))?;
    for (name, text) in request.schemas {
        contents.add_generated(&format!("schemas/{name}.json"), text.into_bytes(), FILE_MODE)?;
    }
    for (name, text) in request.plans {
        contents.add_generated(&name, text.into_bytes(), FILE_MODE)?;
    }
    let environment = allowed_environment(request.environment);
    add_json(&mut contents, "commands", &request.recorded_commands)?;
    add_json(&mut contents, "environment", &environment)?;
    for input in &inputs {
        add_input(&mut contents, input)?;
    }
    add_peers_file(&mut contents, request.run_inputs, &inputs)?;
    let rerun = Rerun { commands: request.commands, rebuild: rebuild(request.run_inputs) };
    contents.add_generated("rerun", rerun.script().into_bytes(), PROGRAM_MODE)?;
    let inputs = inputs.into_iter().map(|SnapshotInput { name, role, .. }| PackedInput { name, role }).collect();
    pack(&contents, ArchiveKind::Snapshot, request.version, PackedRun::of(run)?, inputs, output)
}

fn add_json(contents: &mut Contents, name: &str, value: &impl serde::Serialize) -> Result<(), ArchiveError> {
    let name = format!("{INPUTS}/{name}.json");
    let text = serde_json::to_vec_pretty(value);
    let mut text = text.map_err(|error| ArchiveError::io("write", Path::new(&name))(error.into()))?;
    text.push(b'\n');
    contents.add_generated(&name, text, FILE_MODE)
}

/// Packs an input: a program exactly as it was measured, sources without what is built from them.
fn add_input(contents: &mut Contents, input: &SnapshotInput) -> Result<(), ArchiveError> {
    let SnapshotInput { name, path, role, sha256 } = input;
    let folder = if *role == InputRole::Program { PROGRAMS } else { SOURCES };
    let is_below = name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')) && check_path(name).is_ok();
    if !is_below {
        return Err(ArchiveError::InvalidInputPath { name: name.clone(), path: path.clone(), folder });
    }
    if let Some(expected) = sha256 {
        let found = content_hash(path).map_err(ArchiveError::io("read", path))?;
        if found != *expected {
            return Err(ArchiveError::ProgramChanged { path: path.clone(), expected: expected.clone(), found });
        }
    }
    let skipped = if *role == InputRole::Program { &[][..] } else { &SKIPPED_IN_SOURCES };
    contents.add_tree(name, path, skipped)
}

/// Packs the peers file twice: exactly, and with the programs' paths in the archive, for the rerun.
fn add_peers_file(contents: &mut Contents, inputs: &RunInputs, packed: &[SnapshotInput]) -> Result<(), ArchiveError> {
    let (Some(path), Some(name)) = (&inputs.peers_file, packed_peers_file(inputs)) else { return Ok(()) };
    let path = inputs.locate(path);
    let path = std::path::absolute(&path).map_err(ArchiveError::io("read", &path))?;
    let content = File::open(&path).and_then(io::read_to_string).map_err(ArchiveError::io("read", &path))?;
    let programs = packed.iter().filter(|input| input.role == InputRole::Program).map(|input| {
        let location = std::path::absolute(&input.path).unwrap_or_else(|_| input.path.clone());
        // The packed peers file is two folders below the archive's root.
        PackedProgram { location, relative: format!("../../{}", input.name) }
    });
    let text = replace_programs(&content, parent(&path), &programs.collect::<Vec<_>>());
    contents.add_generated(&name, text.into_bytes(), FILE_MODE)?;
    let original = name.replacen("/peers/", "/peers/original/", 1);
    contents.add_generated(&original, content.into_bytes(), FILE_MODE)
}

/// How the programs of a run are built; `None` if that is not known.
fn rebuild(inputs: &RunInputs) -> Option<Rebuild> {
    if inputs.rebuild.is_empty() || inputs.sources.is_empty() {
        return None;
    }
    let programs = inputs.programs.iter().map(|program| {
        // Relative to the folder where the command ran, to which `sources` corresponds.
        let built = match &inputs.folder {
            Some(folder) => program.path.strip_prefix(folder).unwrap_or(&program.path),
            None => &program.path,
        };
        let built = built.to_str().filter(|built| check_path(built).is_ok()).map(str::to_owned);
        (built, program.packed_as.clone())
    });
    Some(Rebuild { command: inputs.rebuild.clone(), programs: programs.collect() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wb_record::inputs::{ProgramInput, SourceInput};

    use super::*;

    #[test]
    fn only_harmless_variables_are_recorded() {
        let variables = [
            ("PATH", "/bin"),
            ("LANG", "C"),
            ("HOME", "/root"),
            ("WEIGHBRIDGE_TOKEN", "planted"),
            ("WEIGHBRIDGE_PROXY", "https://joe:planted@host/"),
            ("WEIGHBRIDGE_LOCKS", "/tmp"),
        ];
        let allowed = allowed_environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let names: Vec<&str> = allowed.keys().map(String::as_str).collect();
        assert_eq!(names, ["LANG", "PATH", "WEIGHBRIDGE_LOCKS", "WEIGHBRIDGE_PROXY"]);
        assert_eq!(allowed["WEIGHBRIDGE_PROXY"], "https://***@host/");
    }

    #[test]
    fn a_changed_program_and_paths_outside_of_their_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        fs::write(&path, "1").unwrap();
        let input = |name: &str, text: &[u8]| SnapshotInput {
            name: name.to_owned(),
            path: path.clone(),
            role: InputRole::Program,
            sha256: Some(Sha256::of(text)),
        };
        assert!(add_input(&mut Contents::default(), &input("programs/p", b"1")).is_ok());
        let changed = add_input(&mut Contents::default(), &input("programs/p", b"2")).unwrap_err();
        assert!(matches!(changed, ArchiveError::ProgramChanged { .. }), "{changed}");
        for name in ["p", "programs", "programs/../run", "/programs/p", "sources/p", "programsp/x"] {
            let error = add_input(&mut Contents::default(), &input(name, b"1")).unwrap_err();
            assert!(matches!(error, ArchiveError::InvalidInputPath { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn inputs_have_roles_and_builds_leave_programs_at_their_relative_paths() {
        let inputs = RunInputs {
            folder: Some("/base".into()),
            programs: ["target/p", "/base/q", "/usr/bin/r"]
                .map(|path| ProgramInput {
                    path: path.into(),
                    sha256: Sha256::of(b""),
                    packed_as: format!("programs/{}", path.len()),
                })
                .into(),
            sources: ["src", "src/Cargo.lock"]
                .map(|path| SourceInput { path: path.into(), packed_as: format!("sources/{path}") })
                .into(),
            peers_file: Some("peers/x.toml".into()),
            rebuild: vec!["make".to_owned()],
        };
        let roles: Vec<_> = recorded_inputs(&inputs).iter().map(|input| input.role).collect();
        assert_eq!(roles[..3], [InputRole::Program; 3]);
        assert_eq!(roles[3..], [InputRole::Source, InputRole::LockFile]);
        assert_eq!(packed_peers_file(&inputs).as_deref(), Some("inputs/peers/x.toml"));
        let built: Vec<_> = rebuild(&inputs).unwrap().programs.into_iter().map(|(built, _)| built).collect();
        assert_eq!(built, [Some("target/p".to_owned()), Some("q".to_owned()), None]);
    }
}
