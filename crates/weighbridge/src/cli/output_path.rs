//! Files to write, as options name them. Their types declare that an option writes, which the tests rely on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgMatches, Command};
use wb_sys::OutputTarget;

use super::UsageError;

/// A file to write; `-` is standard output
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputPath(PathBuf);

/// The beginning of the names of several files to write
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputPrefix(PathBuf);

/// A folder in which files are written
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputFolder(PathBuf);

impl OutputPath {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether this is standard output: `-`, or a name of it such as `/dev/stdout`.
    pub(crate) fn is_standard_output(&self) -> bool {
        // What cannot be followed is reported when it is opened.
        OutputTarget::of(&self.0).is_ok_and(|target| target == OutputTarget::StandardOutput)
    }
}

impl OutputPrefix {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }

    /// The file with this end of its name.
    pub(crate) fn with(&self, end: &str) -> OutputPath {
        let mut name = self.0.clone().into_os_string();
        name.push(end);
        name.into()
    }
}

impl OutputFolder {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }

    /// The file of this name in it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> OutputPath {
        OutputPath(self.0.join(name))
    }
}

impl From<OsString> for OutputPath {
    fn from(text: OsString) -> Self {
        Self(text.into())
    }
}

impl From<PathBuf> for OutputPath {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl From<OsString> for OutputFolder {
    fn from(text: OsString) -> Self {
        Self(text.into())
    }
}

impl From<PathBuf> for OutputFolder {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

/// Parses a prefix, which cannot be standard output: it has several files.
pub(crate) fn prefix_parser() -> impl TypedValueParser<Value = OutputPrefix> {
    OsStringValueParser::new().try_map(|text| match OutputPath::from(text.clone()).is_standard_output() {
        true => Err("expected the beginning of the names of two files, not standard output"),
        false => Ok(OutputPrefix(text.into())),
    })
}

/// In messages.
impl fmt::Display for OutputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_str() {
            Some("-") => f.write_str("standard output"),
            _ => self.0.display().fmt(f),
        }
    }
}

/// Whether an option writes its file to standard output.
///
/// # Errors
/// If several do.
pub(super) fn find_standard_output(command: &Command, matches: &ArgMatches) -> Result<bool, UsageError> {
    let mut options = BTreeMap::new();
    collect_standard_outputs(command, matches, &mut options);
    let options: Vec<String> = options.into_values().collect();
    match &options[..] {
        [] => Ok(false),
        [_] => Ok(true),
        [first, second, ..] => Err(UsageError {
            what: format!("`{first}` and `{second}` both write to standard output"),
            help: "name a file with one of them".to_owned(),
        }),
    }
}

/// Collects the options by their ids, as the matches of a subcommand have those of global options again.
fn collect_standard_outputs(command: &Command, matches: &ArgMatches, options: &mut BTreeMap<String, String>) {
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        // An option that is no output has another type.
        let mut values = matches.try_get_many::<OutputPath>(id).ok().flatten().into_iter().flatten();
        if values.any(OutputPath::is_standard_output) {
            options.insert(id.to_owned(), arg.to_string());
        }
    }
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        collect_standard_outputs(command, matches, options);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::builder::ValueParser;
    use clap::value_parser;

    use super::*;
    use crate::cli::Cli;

    /// What `tests/suite/outputs.rs` checks.
    const CHECKED: &str = include_str!("../../tests/fixtures/outputs");

    /// What an argument can be whose path is no output.
    const NOT_OUTPUTS: [&str; 3] = ["reads", "folder", "secret"];

    /// Every argument whose value is of this type, as `COMMAND OPTION`.
    fn arguments(parser: &ValueParser) -> Vec<String> {
        fn collect(command: &Command, prefix: &str, parser: &ValueParser, found: &mut Vec<String>) {
            for arg in command.get_arguments() {
                let is_of_root = prefix.is_empty() || !arg.is_global_set();
                if is_of_root && arg.get_value_parser().type_id() == parser.type_id() {
                    let long = arg.get_long().map(|long| format!("--{long}"));
                    let short = arg.get_short().map(|short| format!("-{short}"));
                    let name = long.or(short).unwrap_or_else(|| arg.get_id().to_string());
                    found.push(format!("{prefix} {name}").trim().to_owned());
                }
            }
            for command in command.get_subcommands() {
                collect(command, format!("{prefix} {}", command.get_name()).trim(), parser, found);
            }
        }
        let mut found = Vec::new();
        collect(&Cli::build_command(), "", parser, &mut found);
        found
    }

    fn lines(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| line.split_once('|').unwrap()).map(|(name, rest)| (name.trim(), rest.trim()))
    }

    #[test]
    fn every_option_that_writes_is_checked_with_every_kind_of_file() {
        let types = [
            (value_parser!(OutputPath).into(), "{file}"),
            (ValueParser::new(prefix_parser()), "{prefix}"),
            (value_parser!(OutputFolder).into(), "{folder}"),
        ];
        let mut checked: BTreeMap<&str, &str> = lines(CHECKED).collect();
        for (parser, placeholder) in types {
            for name in arguments(&parser) {
                let check = checked.remove(name.as_str());
                let check = check.unwrap_or_else(|| panic!("tests/fixtures/outputs has no line for `{name}`"));
                assert!(check.starts_with("as ") || check.contains(placeholder), "`{name}`: {check}: no {placeholder}");
            }
        }
        assert!(checked.keys().all(|name| name.contains("PDF")), "no such options: {checked:?}");
    }

    #[test]
    fn every_other_path_is_declared_not_to_be_an_output() {
        let declared: BTreeMap<&str, &str> = lines(include_str!("../../tests/fixtures/other-paths")).collect();
        let mut used = BTreeSet::new();
        for name in arguments(&value_parser!(PathBuf)) {
            let of_all_commands = name.rsplit(' ').next().unwrap_or_default();
            let found = [name.as_str(), of_all_commands].into_iter().find_map(|name| declared.get_key_value(name));
            let (entry, kind) = found.unwrap_or_else(|| {
                panic!(
                    "`{name}`: an option that writes a file is an `OutputPath`; tests/fixtures/other-paths lists others"
                )
            });
            assert!(NOT_OUTPUTS.contains(kind), "`{name}`: {kind}");
            used.insert(*entry);
        }
        let unused: Vec<_> = declared.keys().filter(|name| !used.contains(**name)).collect();
        assert!(unused.is_empty(), "no such paths: {unused:?}");
    }
}
