//! Refusal of options that would write the same file, one over the other, or what the command reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{ArgMatches, Command};
use wb_sys::OutputTarget;

use super::input_files::input_files;
use super::{OutputPath, OutputPrefix, UsageError};

/// The files that an option writes, and how messages name it.
struct OutputOption {
    name: String,
    files: Vec<OutputPath>,
}

/// Refuses options that together write to standard output or to one regular file, and one that replaces a file that is
/// read; returns whether one writes to standard output. Other streams take several outputs.
pub(super) fn check(command: &Command, matches: &ArgMatches) -> Result<bool, UsageError> {
    let mut options = BTreeMap::new();
    collect(command, matches, &mut options);
    let outputs = || options.values().flat_map(|option| option.files.iter().map(move |file| (&option.name, file)));
    let mut on_standard_output = outputs().filter(|(_, file)| file.is_standard_output());
    let reserved = on_standard_output.next();
    if let (Some((first, _)), Some((second, _))) = (reserved, on_standard_output.next()) {
        return Err(UsageError {
            what: format!("`{first}` and `{second}` both write to standard output"),
            help: "name a file with one of them".to_owned(),
        });
    }
    let inputs = input_files(command, matches);
    let mut writers: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (name, file) in outputs() {
        let Some(path) = regular_file(file) else { continue };
        if inputs.contains(&path) {
            return Err(UsageError {
                what: format!("`{name}` would replace `{file}`, which the command reads"),
                help: "name another file".to_owned(),
            });
        }
        if let Some(other) = writers.insert(path, name) {
            return Err(UsageError {
                what: format!("`{other}` and `{name}` would both write `{file}`"),
                help: "name a file for each".to_owned(),
            });
        }
    }
    Ok(reserved.is_some())
}

/// Collects the options by their ids, as the matches of a subcommand have those of global options again.
fn collect(command: &Command, matches: &ArgMatches, options: &mut BTreeMap<String, OutputOption>) {
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        // Options of other types fail here; those with a folder of several files are not checked.
        let files = matches.try_get_many::<OutputPath>(id).ok().flatten().into_iter().flatten().cloned();
        let prefixes = matches.try_get_many::<OutputPrefix>(id).ok().flatten().into_iter().flatten();
        let files: Vec<_> = files.chain(prefixes.flat_map(OutputPrefix::files)).collect();
        if !files.is_empty() {
            options.insert(id.to_owned(), OutputOption { name: arg.to_string(), files });
        }
    }
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        collect(command, matches, options);
    }
}

/// The file that is written, unless it is a stream. A path that cannot be followed is reported when it is opened.
fn regular_file(file: &OutputPath) -> Option<PathBuf> {
    match OutputTarget::new(file.as_path()) {
        Ok(OutputTarget::File(file)) => Some(file),
        Ok(OutputTarget::StandardOutput | OutputTarget::StandardError | OutputTarget::Stream(_)) | Err(_) => None,
    }
}
