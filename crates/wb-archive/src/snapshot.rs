//! Snapshots: archives with everything that is needed to measure a run again offline.
//!
//! | path | content |
//! |---|---|
//! | `run/` | the run folder |
//! | `bin/weighbridge`, `bin/weighbridge-agent` | the program, and that of workers |
//! | `schemas/` | the JSON Schemas of its files and outputs |
//! | `inputs/` | the plans, the recorded commands, the environment, the peers files |
//! | `programs/`, `sources/` | what the run was measured with, from its `inputs.json` |
//! | `rerun` | the script that measures again |

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use wb_model::Sha256;
use wb_model::secrets::{MASK, is_secret_name, mask_argument, mask_declared};
use wb_record::definition_files::{DefinitionFiles, FileCopy};
use wb_record::inputs::content_hash;
use wb_record::{RunFolder, RunInputs, files};

use crate::contents::{Contents, FILE_MODE, PROGRAM_MODE, SKIPPED_IN_SOURCES};
use crate::error::ArchiveError;
use crate::manifest::{ArchiveKind, ArchiveSummary, InputRole, PackedInput, PackedRun, check_path};
use crate::pack::{RUN, add_run, pack, parent, refuse_output};
use crate::peers_file::{PackedProgram, replace_programs};
use crate::rerun::{Rebuild, RebuiltProgram, Rerun, RerunCommand};

pub const PROGRAMS: &str = "programs";

pub const SOURCES: &str = "sources";

/// The folder of everything else that was given to the commands.
pub const INPUTS: &str = "inputs";

const LOCK_FILES: [&str; 6] =
    ["Cargo.lock", "go.sum", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "requirements.txt"];

#[derive(Debug)]
pub struct SnapshotRequest<'a> {
    pub run: &'a RunFolder,
    /// The inputs of the run, as [`RunInputs::read`] returns them.
    pub run_inputs: &'a RunInputs,
    pub version: &'a str,
    pub program: &'a Path,
    /// What it starts on workers.
    pub worker_program: &'a Path,
    /// Names and texts.
    pub schemas: Vec<(String, String)>,
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
    pub path: PathBuf,
    pub role: InputRole,
    /// The recorded hash of its content; another content is refused.
    pub sha256: Option<Sha256>,
}

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

/// The locations of the peers files of a run, and their paths in the archive.
pub fn packed_peers_files(inputs: &RunInputs) -> Vec<(PathBuf, String)> {
    let mut packed: Vec<(PathBuf, String)> = Vec::new();
    for path in &inputs.peers_files {
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = |number: u32| match number {
            1 => format!("{INPUTS}/peers/{file_name}"),
            number => format!("{INPUTS}/peers/{number}-{file_name}"),
        };
        let is_free = |name: &String| packed.iter().all(|(_, taken)| taken != name);
        packed.extend((1..).map(name).find(is_free).map(|name| (inputs.locate(path), name)));
    }
    packed
}

/// The variables of an environment that a snapshot records: `PATH`, `LANG` and `WEIGHBRIDGE_*`. Those whose names
/// suggest secrets are left out, and secrets in the others are masked.
pub fn allowed_environment(variables: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_allowed =
        |name: &str| matches!(name, "PATH" | "LANG") || (name.starts_with("WEIGHBRIDGE_") && !is_secret_name(name));
    let allowed = variables.into_iter().filter(|(name, _)| is_allowed(name));
    allowed.map(|(name, value)| (mask_declared(&name).into_owned(), mask_argument(&value))).collect()
}

/// Writes a snapshot. Fails if a controller is writing to the run, or a program is not the one that was measured.
pub fn snapshot(request: SnapshotRequest<'_>, output: &Path) -> Result<ArchiveSummary, ArchiveError> {
    let run = request.run;
    let _lock = run.lock_shared()?;
    refuse_output(run, output)?;
    let recorded = recorded_inputs(request.run_inputs);
    let masked_files = masked_files(run, &request.plans)?;
    let mut contents = Contents::default();
    add_run(&mut contents, run, &[])?;
    contents.add_file("bin/weighbridge", request.program, Some(PROGRAM_MODE))?;
    contents.add_file("bin/weighbridge-agent", request.worker_program, Some(PROGRAM_MODE))?;
    for (name, text) in request.schemas {
        contents.add_generated(&format!("schemas/{name}.json"), text.into_bytes(), FILE_MODE)?;
    }
    for (name, text) in request.plans {
        contents.add_generated(&name, text.into_bytes(), FILE_MODE)?;
    }
    let environment = allowed_environment(request.environment);
    add_json(&mut contents, "commands", &request.recorded_commands)?;
    add_json(&mut contents, "environment", &environment)?;
    for input in recorded.iter().chain(&request.inputs) {
        add_input(&mut contents, input)?;
    }
    add_peers_files(&mut contents, request.run_inputs, &recorded)?;
    let rebuild = rebuild(request.run_inputs, &contents);
    let rerun = Rerun { commands: request.commands, rebuild, masked_files };
    contents.add_generated("rerun", rerun.script().into_bytes(), PROGRAM_MODE)?;
    let inputs = recorded.into_iter().chain(request.inputs);
    let inputs = inputs.map(|SnapshotInput { name, role, .. }| PackedInput { name, role }).collect();
    pack(&contents, ArchiveKind::Snapshot, request.version, PackedRun::new(run)?, inputs, output)
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
    // Folders of one name would be merged.
    if contents.contains(name) {
        return Err(ArchiveError::Duplicate { name: name.clone(), path: path.clone() });
    }
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

/// Packs each peers file twice: exactly, and with the programs' paths in the archive, for the rerun.
fn add_peers_files(
    contents: &mut Contents,
    inputs: &RunInputs,
    recorded: &[SnapshotInput],
) -> Result<(), ArchiveError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(ArchiveError::io("read", path));
    let programs = recorded.iter().filter(|input| input.role == InputRole::Program);
    let program = |input: &SnapshotInput| {
        // A packed peers file is two folders below the archive's root.
        Ok(PackedProgram { location: absolute(&input.path)?, relative: format!("../../{}", input.name) })
    };
    let programs: Vec<PackedProgram> = programs.map(program).collect::<Result<_, ArchiveError>>()?;
    let mut named = BTreeSet::new();
    let peers_files = packed_peers_files(inputs);
    for (path, name) in &peers_files {
        let path = absolute(path)?;
        let content = read_peers_file(&path)?;
        let packed = replace_programs(&content, &path, &programs)?;
        named.extend(packed.programs);
        contents.add_generated(name, packed.text.into_bytes(), FILE_MODE)?;
        let original = name.replacen("/peers/", "/peers/original/", 1);
        contents.add_generated(&original, content.into_bytes(), FILE_MODE)?;
    }
    // Others are found through the `PATH`.
    let is_named_by_path = |program: &PackedProgram| program.relative.matches('/').count() > 3;
    match programs.into_iter().find(|program| is_named_by_path(program) && !named.contains(&program.location)) {
        Some(PackedProgram { location, .. }) if !peers_files.is_empty() => {
            Err(ArchiveError::UnnamedProgram { path: location })
        }
        _ => Ok(()),
    }
}

/// Reads a peers file. The run's record names it, and may come from somebody else: a device or a FIFO would never end.
fn read_peers_file(path: &Path) -> Result<String, ArchiveError> {
    let missing = || ArchiveError::io("read", path)(io::ErrorKind::NotFound.into());
    let bytes = files::read(parent(path), path)?.ok_or_else(missing)?;
    String::from_utf8(bytes).map_err(|error| ArchiveError::io("read", path)(io::Error::other(error)))
}

/// The packed plans, definitions of tests and files of definitions in which a secret is masked.
fn masked_files(run: &RunFolder, plans: &[(String, String)]) -> Result<Vec<String>, ArchiveError> {
    let plans = plans.iter().filter(|(_, text)| text.contains(MASK));
    let mut masked: BTreeSet<String> = plans.map(|(name, _)| name.clone()).collect();
    let folder = run.tests_folder();
    if !folder.is_dir() {
        return Ok(masked.into_iter().collect());
    }
    let packed = |file: &str| format!("{RUN}/tests.d/{file}");
    for entry in fs::read_dir(&folder).map_err(ArchiveError::io("read", &folder))? {
        let entry = entry.map_err(ArchiveError::io("read", &folder))?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = String::from_utf8_lossy(&run.read(&path)?.unwrap_or_default()).into_owned();
        if text.contains(MASK) {
            masked.insert(packed(&entry.file_name().to_string_lossy()));
        }
        let files = DefinitionFiles::read_beside(run.path(), &path)?.unwrap_or_default().files.into_iter();
        masked.extend(files.filter_map(|file| match file.copy {
            FileCopy::Masked { file } => Some(packed(&file)),
            FileCopy::Whole { .. } | FileCopy::Missing { .. } => None,
        }));
    }
    Ok(masked.into_iter().collect())
}

fn rebuild(inputs: &RunInputs, contents: &Contents) -> Option<Rebuild> {
    if inputs.rebuild.is_empty() || inputs.sources.is_empty() {
        return None;
    }
    let programs = inputs.programs.iter().filter(|program| program.rebuilt).map(|program| {
        // Relative to the folder where the command ran, to which `sources` corresponds.
        let built = match &inputs.folder {
            Some(folder) => program.path.strip_prefix(folder).unwrap_or(&program.path),
            None => &program.path,
        };
        let built = built.to_str().filter(|built| check_path(built).is_ok()).map(str::to_owned);
        let is_source = built.as_ref().is_some_and(|built| contents.contains(&format!("{SOURCES}/{built}")));
        RebuiltProgram { packed: program.packed_as.clone(), built, is_source }
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
    fn folders_of_one_name_are_not_merged() {
        let folder = tempfile::tempdir().unwrap();
        let input = |parent: &str, file: &str| {
            let path = folder.path().join(parent).join("endpoint");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(file), "x").unwrap();
            SnapshotInput { name: "programs/endpoint".to_owned(), path, role: InputRole::Program, sha256: None }
        };
        let mut contents = Contents::default();
        add_input(&mut contents, &input("a", "x")).unwrap();
        let error = add_input(&mut contents, &input("b", "y")).unwrap_err();
        assert!(matches!(error, ArchiveError::Duplicate { .. }), "{error}");
    }

    #[test]
    fn peers_files_of_one_name_are_packed_under_different_names() {
        let peers_files = ["a/peers.toml", "b/peers.toml", "c.yaml"].map(PathBuf::from).into();
        let inputs = RunInputs { folder: Some("/base".into()), peers_files, ..RunInputs::default() };
        let packed = packed_peers_files(&inputs);
        assert_eq!(packed[1], ("/base/b/peers.toml".into(), "inputs/peers/2-peers.toml".to_owned()));
        assert_eq!(packed[2].1, "inputs/peers/c.yaml");
    }

    #[test]
    fn a_program_that_nothing_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("x.toml"),
            "command = ['./named']
",
        )
        .unwrap();
        let peers_files = vec!["x.toml".into()];
        let inputs = RunInputs { folder: Some(folder.path().to_owned()), peers_files, ..RunInputs::default() };
        let program = |name: &str, packed: &str| SnapshotInput {
            name: packed.to_owned(),
            path: folder.path().join(name),
            role: InputRole::Program,
            sha256: None,
        };
        let named = program("named", "programs/peers/x/named");
        let on_path = program("found", "programs/found");
        let add = |recorded: &[SnapshotInput]| add_peers_files(&mut Contents::default(), &inputs, recorded);
        add(&[named.clone(), on_path]).unwrap();
        let error = add(&[named, program("unnamed", "programs/peers/x/unnamed")]).unwrap_err();
        assert!(matches!(error, ArchiveError::UnnamedProgram { .. }), "{error}");
    }

    #[test]
    fn masked_definitions_and_their_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&folder.path().join("R")).unwrap();
        fs::create_dir(run.tests_folder()).unwrap();
        for (name, text) in [("a.toml", "x = '***'"), ("b.toml", "x = 1"), ("c.md", "***")] {
            fs::write(run.tests_folder().join(name), text).unwrap();
        }
        let files = r#"{"files": [{"path": "x", "copy": "masked", "file": "files/x"}]}"#;
        fs::write(run.tests_folder().join("b.files.json"), files).unwrap();
        let plans = [("inputs/plan.toml", "***"), ("inputs/plan-2.toml", "")];
        let plans = plans.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let masked = masked_files(&run, &plans).unwrap();
        assert_eq!(masked, ["inputs/plan.toml", "run/tests.d/a.toml", "run/tests.d/files/x"]);
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
            sha256: Some(Sha256::digest(text)),
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
            programs: ["target/p", "/base/q", "/usr/bin/r", "/base/s"]
                .map(|path| ProgramInput {
                    path: path.into(),
                    sha256: Sha256::digest(b""),
                    packed_as: format!("programs/{}", path.len()),
                    rebuilt: path != "/base/s",
                })
                .into(),
            sources: ["src", "src/Cargo.lock"]
                .map(|path| SourceInput { path: path.into(), packed_as: format!("sources/{path}") })
                .into(),
            peers_files: vec!["peers/x.toml".into()],
            rebuild: vec!["make".to_owned()],
        };
        let roles: Vec<_> = recorded_inputs(&inputs).iter().map(|input| input.role).collect();
        assert_eq!(roles[..4], [InputRole::Program; 4]);
        assert_eq!(roles[4..], [InputRole::Source, InputRole::LockFile]);
        let mut contents = Contents::default();
        contents.add_generated("sources/q", Vec::new(), PROGRAM_MODE).unwrap();
        let programs = rebuild(&inputs, &contents).unwrap().programs.into_iter();
        let built: Vec<_> = programs.map(|program| (program.built, program.is_source)).collect();
        assert_eq!(built, [(Some("target/p".to_owned()), false), (Some("q".to_owned()), true), (None, false)]);
    }
}
