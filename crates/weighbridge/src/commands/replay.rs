//! Prepares the recorded commands of a run to be repeated from a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use wb_archive::manifest::InputRole;
use wb_archive::rerun::{RerunCommand, RerunWord};
use wb_archive::snapshot::{INPUTS, PROGRAMS, SnapshotInput, packed_peers_file};
use wb_model::Sha256;
use wb_plan::builtin;
use wb_record::{RunEntry, RunFile, RunFolder, RunInputs};

use super::command_line::{Argument, CommandLine};
use crate::error::Error;

/// Commands that measure, and need nothing that a snapshot does not have.
const REPEATABLE: [&[&str]; 4] = [&["run"], &["ab"], &["calibrate"], &["peers", "run"]];

/// Options whose values are on the first machine, and are not packed.
const UNPACKED: [&str; 6] =
    ["inventory", "ssh_config", "paths", "host_setup_script", "worker_setup_script", "provisioner"];

/// The commands of a run, prepared to be repeated, and what they need.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// The commands.
    pub(crate) commands: Vec<RerunCommand>,
    /// The same as they were recorded.
    pub(crate) recorded_commands: Vec<Vec<String>>,
    /// The plans: paths in the archive and texts.
    pub(crate) plans: Vec<(String, String)>,
    /// Programs that the commands name.
    pub(crate) inputs: Vec<SnapshotInput>,
    /// What the user should know.
    pub(crate) notes: BTreeSet<String>,
}

/// The files and variables with secrets that the commands of a run named.
pub(crate) fn secret_sources(run_file: &RunFile) -> Vec<String> {
    let lines = run_file.entries.iter().filter_map(|entry| CommandLine::parse(&entry.command));
    let arguments = lines.flat_map(|line| line.arguments);
    arguments.filter(|argument| argument.is("secret_from")).filter_map(|argument| argument.value).collect()
}

impl Replay {
    /// Prepares the commands of a run.
    ///
    /// # Errors
    /// If none of them can be repeated.
    pub(crate) fn of(run: &RunFolder, inputs: &RunInputs) -> Result<Self, Error> {
        let run_file = run.run_file()?;
        let context = Context {
            has_tests: run.tests_folder().is_dir(),
            peers_file: packed_peers_file(inputs),
            programs: measured_programs(run, &run_file)?,
        };
        let mut replay = Self::default();
        let mut seen = BTreeSet::new();
        // Resuming repeats a command, and a command has an entry for each profile.
        for entry in run_file.entries.iter().filter(|entry| seen.insert((&entry.command, &entry.plan_text))) {
            match CommandLine::parse(&entry.command) {
                Some(line) if REPEATABLE.iter().any(|names| line.names == *names) => replay.add(&context, entry, line),
                _ => {
                    let name = entry.command.get(1).map_or("", String::as_str);
                    replay.notes.insert(format!("`./rerun` does not repeat the command `weighbridge {name}`"));
                }
            }
        }
        if replay.commands.is_empty() {
            return Err(Error::Incomplete {
                what: format!("{} has no command that can be repeated", run.path().display()),
                help: format!("`weighbridge pack {}` archives the run alone", run.path().display()),
            });
        }
        Ok(replay)
    }

    fn add(&mut self, context: &Context, entry: &RunEntry, line: CommandLine) {
        self.recorded_commands.push(entry.command.clone());
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
        if entry.plan_text.as_deref().is_some_and(|plan| plan.lines().any(publishes)) {
            self.notes.insert("`./rerun` does not publish".to_owned());
            command.options.extend([text("--publish"), text("true")]);
        }
        for argument in line.arguments {
            self.add_argument(context, entry, argument, &mut command);
        }
        self.commands.push(command);
    }

    fn add_argument(&mut self, context: &Context, entry: &RunEntry, argument: Argument, command: &mut RerunCommand) {
        let value = argument.value.as_deref().unwrap_or_default();
        let prefix = argument.flag.as_deref().map_or(String::new(), |flag| format!("{flag}="));
        match argument.id.as_deref().unwrap_or_default() {
            // The folder is a new one; the definitions of tests are those of the run; output is up to the user.
            "into" | "tests_d" | "log" | "json" | "color" | "quiet" => return,
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
                if let Some(name) = entry.plan_text.as_deref().and_then(|text| self.pack_plan(value, text)) {
                    return command.arguments.push(packed(prefix, &name));
                }
            }
            "file" if let Some(file) = &context.peers_file => return command.arguments.push(packed(prefix, file)),
            "program" => {
                if let Some((name, input)) = value.split_once('=').and_then(|(name, _)| context.program(name)) {
                    command.arguments.push(packed(format!("{prefix}{name}="), &input.name));
                    if !self.inputs.contains(&input) {
                        self.inputs.push(input);
                    }
                    return;
                }
                self.notes.insert(format!("`./rerun` needs `{}`, which is not packed", argument.text()));
            }
            id if UNPACKED.contains(&id) => {
                self.notes.insert(format!("`./rerun` needs `{}`, which is not packed", argument.text()));
            }
            "variants" if value.contains("bin:") => {
                self.notes.insert(format!("`./rerun` needs the programs of `{value}`, which are not packed"));
            }
            _ => {}
        }
        command.arguments.push(RerunWord::Text(argument.text()));
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
struct Context {
    has_tests: bool,
    /// The path of the peers file in the archive.
    peers_file: Option<String>,
    /// The locations and hashes of the programs that were measured, by their names.
    programs: BTreeMap<String, (PathBuf, Option<Sha256>)>,
}

impl Context {
    /// The name and the input of a program that was measured, if it is still there.
    fn program(&self, name: &str) -> Option<(String, SnapshotInput)> {
        let (path, sha256) = self.programs.get(name).filter(|(path, _)| path.is_file())?;
        let input = SnapshotInput {
            name: format!("{PROGRAMS}/{name}"),
            path: path.clone(),
            role: InputRole::Program,
            sha256: sha256.clone(),
        };
        Some((name.to_owned(), input))
    }
}

/// The programs in the provenance of the cells of a run.
fn measured_programs(
    run: &RunFolder,
    run_file: &RunFile,
) -> Result<BTreeMap<String, (PathBuf, Option<Sha256>)>, Error> {
    let mut programs = BTreeMap::new();
    for cell in run_file.entries.iter().flat_map(|entry| &entry.cells) {
        let Some(definition) = run.definitions(cell)?.of(cell).cloned() else { continue };
        for (key, path) in &definition.provenance {
            let Some(name) = key.strip_suffix(" path") else { continue };
            let hash = definition.provenance.get(&format!("{name} sha256"));
            let hash = hash.and_then(|hash| serde_json::from_value(hash.as_str().into()).ok());
            programs.insert(name.to_owned(), (Path::new(path).to_owned(), hash));
        }
    }
    Ok(programs)
}

fn packed(prefix: String, path: &str) -> RerunWord {
    RerunWord::Packed { prefix, path: path.to_owned() }
}

/// Whether a text is the name of a variable of the shell.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
