//! Prepares the recorded commands of a run to be repeated from a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use wb_archive::manifest::InputRole;
use wb_archive::rerun::{RerunCommand, RerunWord};
use wb_archive::snapshot::{INPUTS, PROGRAMS, SnapshotInput, packed_peers_files};
use wb_model::{CellId, Sha256};
use wb_plan::builtin;
use wb_record::inputs::content_hash;
use wb_record::{Invocation, RunFile, RunFolder, RunInputs};

use super::command_line::{Argument, CommandLine};
use super::peers::matrix_file;
use crate::error::Error;

/// Commands that measure, and need nothing that a snapshot does not have.
const REPEATABLE: [&[&str]; 4] = [&["run"], &["ab"], &["calibrate"], &["peers", "run"]];

/// Options whose values are on the first machine, and are not packed.
const UNPACKED: [&str; 5] = ["inventory", "ssh_config", "paths", "host_setup_script", "worker_setup_script"];

/// Options whose values begin with a name, or with the path of a file that is not packed.
const NAME_OR_PATH: [&str; 3] = ["tools", "host_rpms", "worker_rpms"];

/// Folder of `--program` files in a snapshot, not on the `PATH`: such a file may start the program that it replaces.
const OPTIONS: &str = "options";

/// The commands of a run, prepared to be repeated, and what they need.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) commands: Vec<RerunCommand>,
    pub(crate) recorded_commands: Vec<Vec<String>>,
    /// The plans: paths in the archive and texts.
    pub(crate) plans: Vec<(String, String)>,
    /// Programs that the commands name.
    pub(crate) inputs: Vec<SnapshotInput>,
    pub(crate) notes: BTreeSet<String>,
}

/// The files and variables with secrets that the commands of a run named.
pub(crate) fn secret_sources(run_file: &RunFile) -> BTreeSet<String> {
    let lines = run_file.invocations.iter().filter_map(|invocation| CommandLine::parse(&invocation.command));
    let arguments = lines.flat_map(|line| line.arguments);
    arguments.filter(|argument| argument.is("secret_from")).filter_map(|argument| argument.value).collect()
}

/// Parameters of tests whose values are paths of files that are read when they measure.
const FILE_PARAMS: [&str; 2] = ["job-file", "pre-iteration-script"];

fn named_files(run: &RunFolder, run_file: &RunFile) -> Result<BTreeSet<String>, Error> {
    let mut files = BTreeSet::new();
    // Cells of one serial have one file of definitions.
    let serials: BTreeMap<PathBuf, &CellId> =
        run_file.invocations.iter().flat_map(|one| &one.cells).map(|cell| (run.serial_folder(cell), cell)).collect();
    for cell in serials.values() {
        for definition in run.definitions(cell)?.cells {
            let values = FILE_PARAMS.iter().filter_map(|name| definition.params.get(*name)).map(ToString::to_string);
            files.extend(values.filter(|file| !file.is_empty()));
        }
    }
    Ok(files)
}

impl Replay {
    /// Fails if none of the commands can be repeated.
    pub(crate) fn new(run: &RunFolder, inputs: &RunInputs) -> Result<Self, Error> {
        let run_file = run.run_file()?;
        let context = Context { run, has_tests: run.tests_folder().is_dir(), peers_files: packed_peers_files(inputs) };
        let mut replay = Self::default();
        let mut seen = BTreeSet::new();
        // Resuming repeats a command, and a command is recorded as one invocation for each profile.
        for invocation in
            run_file.invocations.iter().filter(|invocation| seen.insert((&invocation.command, &invocation.plan_text)))
        {
            let line = CommandLine::parse(&invocation.command);
            match line {
                Some(line) if REPEATABLE.iter().any(|names| line.names == *names) => {
                    replay.add(&context, invocation, line)?;
                }
                line => {
                    let words = || invocation.command.iter().skip(1).find(|word| !word.starts_with('-')).cloned();
                    let name = line.map_or_else(|| words().unwrap_or_default(), |line| line.names.join(" "));
                    replay.notes.insert(format!("`./rerun` does not repeat the command `weighbridge {name}`"));
                }
            }
        }
        for file in named_files(run, &run_file)? {
            replay
                .notes
                .insert(format!("`./rerun` requires `{file}`, which a parameter names and which is not packed"));
        }
        if replay.commands.is_empty() {
            return Err(Error::Incomplete {
                what: format!("{} has no command that can be repeated", run.path().display()),
                help: format!("`weighbridge pack {}` archives the run alone", run.path().display()),
            });
        }
        Ok(replay)
    }

    fn add(&mut self, context: &Context<'_>, invocation: &Invocation, line: CommandLine) -> Result<(), Error> {
        self.recorded_commands.push(invocation.command.clone());
        let text = |text: &str| RerunWord::Text(text.to_owned());
        let mut command = RerunCommand {
            options: vec![text("--into"), RerunWord::RunFolder],
            names: line.names,
            ..RerunCommand::default()
        };
        if context.has_tests && line.options.contains("tests_d") {
            command.options.extend([text("--tests-d"), packed(String::new(), "run/tests.d")]);
        }
        let publishes = |line: &str| line.trim_start().starts_with("publish");
        if invocation.plan_text.as_deref().is_some_and(|plan| plan.lines().any(publishes)) {
            self.notes.insert("`./rerun` does not publish".to_owned());
            command.options.extend([text("--publish"), text("true")]);
        }
        let programs = context.measured_programs(invocation)?;
        for argument in line.arguments {
            self.add_argument(context, invocation, &programs, argument, &mut command);
        }
        self.commands.push(command);
        Ok(())
    }

    fn add_argument(
        &mut self,
        context: &Context<'_>,
        invocation: &Invocation,
        programs: &MeasuredPrograms,
        argument: Argument,
        command: &mut RerunCommand,
    ) {
        let value = argument.value.as_deref().unwrap_or_default();
        let prefix = argument.flag.as_deref().map_or(String::new(), |flag| format!("{flag}="));
        match argument.id.as_deref().unwrap_or_default() {
            // The folder is a new one; the definitions of tests are those of the run; output is up to the user.
            "into" | "run_folder" | "layout" | "tests_d" | "log" | "json" | "color" | "quiet" => return,
            "publish" => {
                self.notes.insert("`./rerun` does not publish".to_owned());
                return;
            }
            "metadata" => return command.options.push(RerunWord::Text(argument.text())),
            "secret_from" => match value.strip_prefix("env:") {
                Some(name) if is_variable(name) => return command.secret_variables.push(name.to_owned()),
                _ => {
                    self.notes.insert(format!("`./rerun` does not mask the secrets of `{value}`"));
                    return;
                }
            },
            "plan" => {
                let text = invocation.plan_text.as_deref().map(|text| context.with_packed_matrices(text));
                if let Some(name) = text.and_then(|text| self.pack_plan(value, &text)) {
                    return command.arguments.push(packed(prefix, &name));
                }
            }
            "file" => match context.peers_file(value) {
                Some(file) => return command.arguments.push(packed(prefix, file)),
                None => drop(self.notes.insert(format!("`./rerun` needs `{value}`, which is not packed"))),
            },
            "program" => {
                let packed_program = value.split_once('=').and_then(|(name, _)| Some((name, programs.input(name)?)));
                if let Some((name, input)) = packed_program {
                    command.arguments.push(packed(format!("{prefix}{name}="), &input.name));
                    if !self.inputs.contains(&input) {
                        self.inputs.push(input);
                    }
                    return;
                }
                self.notes.insert(format!("`./rerun` needs `{}`, which is not packed", argument.text()));
            }
            id if UNPACKED.contains(&id) || (NAME_OR_PATH.contains(&id) && begins_with_path(value)) => {
                let located = self.locate(&prefix, value);
                return command.arguments.push(RerunWord::Text(located));
            }
            "provisioner" => {
                self.notes.insert(format!("`./rerun` needs `{}`, which is not packed", argument.text()));
            }
            "variants" if value.contains("bin:") => {
                self.notes.insert(format!("`./rerun` needs the programs of `{value}`, which are not packed"));
            }
            _ => {}
        }
        command.arguments.push(RerunWord::Text(argument.text()));
    }

    /// An option whose value begins with the path of a file that is not packed. If the file is there, the path is
    /// absolute, because the script runs in another folder than the first command, which may have run in this one.
    fn locate(&mut self, prefix: &str, value: &str) -> String {
        let (path, rest) = value.split_at(value.find(char::is_whitespace).unwrap_or(value.len()));
        let absolute = std::path::absolute(path).ok().filter(|absolute| absolute.exists());
        let located = absolute.map_or(value.to_owned(), |absolute| format!("{}{rest}", absolute.display()));
        let relative =
            if located.starts_with('/') { "" } else { "; its path is relative to the folder of the snapshot" };
        self.notes.insert(format!("`./rerun` needs `{prefix}{located}`, which is not packed{relative}"));
        format!("{prefix}{located}")
    }

    /// The path in the archive of a plan; `None` for a built-in plan, which the program has.
    fn pack_plan(&mut self, value: &str, text: &str) -> Option<String> {
        if builtin::text(value) == Some(text) {
            return None;
        }
        if let Some((name, _)) = self.plans.iter().find(|(_, packed)| packed == text) {
            return Some(name.clone());
        }
        let name = match self.plans.len() {
            0 => format!("{INPUTS}/plan.toml"),
            count => format!("{INPUTS}/plan-{}.toml", count + 1),
        };
        self.plans.push((name.clone(), text.to_owned()));
        Some(name)
    }
}

/// What all commands of a run have in common.
struct Context<'a> {
    run: &'a RunFolder,
    has_tests: bool,
    /// The locations of the peers files, and their paths in the archive.
    peers_files: Vec<(PathBuf, String)>,
}

impl Context<'_> {
    /// The path in the archive of the peers file that a command named; `None` if that is unknown.
    fn peers_file(&self, name: &str) -> Option<&str> {
        // The folder of the command is not recorded.
        let end: PathBuf = Path::new(name).components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let is_here = |location: &Path| Path::new(name).canonicalize().is_ok_and(|path| path == location);
        let mut candidates = self.peers_files.iter().filter(|(location, _)| location.ends_with(&end));
        match (&*self.peers_files, candidates.next(), candidates.next()) {
            ([(_, only)], ..) | (_, Some((_, only)), None) => Some(only),
            _ => self.peers_files.iter().find(|(location, _)| is_here(location)).map(|(_, packed)| packed.as_str()),
        }
    }

    /// The text of a plan with the archive's copies of its matrices.
    fn with_packed_matrices(&self, plan: &str) -> String {
        // What is not packed stays as it is, and is named by the rerun.
        let named = wb_plan::file::parse("plan", plan).map(|plan| plan.requests).unwrap_or_default();
        let files: BTreeSet<String> = named.iter().filter_map(matrix_file).collect();
        files.into_iter().fold(plan.to_owned(), |plan, file| match self.peers_file(&file) {
            Some(packed) => wb_archive::replace_value(&plan, &file, packed.trim_start_matches(&format!("{INPUTS}/"))),
            None => plan,
        })
    }

    fn measured_programs(&self, invocation: &Invocation) -> Result<MeasuredPrograms, Error> {
        let mut programs = BTreeMap::new();
        for cell in &invocation.cells {
            let Some(definition) = self.run.definitions(cell)?.of(cell).cloned() else { continue };
            for (key, path) in &definition.provenance {
                let Some(name) = key.strip_suffix(" path") else { continue };
                let hash = definition.provenance.get(&format!("{name} sha256"));
                let hash = hash.and_then(|hash| serde_json::from_value(hash.as_str().into()).ok());
                programs.insert(name.to_owned(), (Path::new(path).to_owned(), hash));
            }
        }
        Ok(MeasuredPrograms(programs))
    }
}

/// The locations and hashes of the programs that a command measured, by their names.
struct MeasuredPrograms(BTreeMap<String, (PathBuf, Option<Sha256>)>);

impl MeasuredPrograms {
    /// The input of a program; `None` if the program is no longer there. The path in the archive depends on the
    /// content: commands can have different programs of one name.
    fn input(&self, name: &str) -> Option<SnapshotInput> {
        let name = name.rsplit('/').next()?;
        let (path, sha256) = self.0.get(name).filter(|(path, _)| path.is_file())?;
        let sha256 = sha256.clone().or_else(|| content_hash(path).ok())?;
        let name = format!("{PROGRAMS}/{OPTIONS}/{}/{name}", sha256.as_str().get(..12)?);
        Some(SnapshotInput { name, path: path.clone(), role: InputRole::Program, sha256: Some(sha256) })
    }
}

/// Whether a value begins with a path rather than with a name.
fn begins_with_path(value: &str) -> bool {
    value.split_whitespace().next().is_some_and(|word| word.contains('/') && !word.contains("://"))
}

fn packed(prefix: String, path: &str) -> RerunWord {
    RerunWord::Packed { prefix, path: path.to_owned() }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
