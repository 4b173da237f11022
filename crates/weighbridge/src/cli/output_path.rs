//! Files to write, as options name them. Their types declare that an option writes, which the tests rely on.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use wb_sys::OutputTarget;

/// A file to write; `-` is standard output
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputPath(PathBuf);

/// The beginning of the names of several files to write
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputPrefix {
    prefix: PathBuf,
    ends: &'static [&'static str],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputFolder(PathBuf);

impl OutputPath {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether this is standard output: `-`, or a name of it such as `/dev/stdout`.
    pub(crate) fn is_standard_output(&self) -> bool {
        // What cannot be followed is reported when it is opened.
        OutputTarget::new(&self.0).is_ok_and(|target| target == OutputTarget::StandardOutput)
    }
}

impl OutputPrefix {
    pub(crate) fn as_path(&self) -> &Path {
        &self.prefix
    }

    /// The files, in the order of their ends.
    pub(crate) fn files(&self) -> impl Iterator<Item = OutputPath> {
        self.ends.iter().map(|end| {
            let mut name = self.prefix.clone().into_os_string();
            name.push(end);
            name.into()
        })
    }
}

impl OutputFolder {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }

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

/// Parses a prefix, given the ends of its names. It cannot be what takes a single output: it has several files. An end
/// `.csv` is dropped: it is often given as if the prefix were a file.
pub(crate) fn prefix_parser(ends: &'static [&'static str]) -> impl TypedValueParser<Value = OutputPrefix> {
    OsStringValueParser::new().try_map(move |text| match OutputTarget::new(Path::new(&text)) {
        Ok(OutputTarget::StandardOutput) => {
            Err("expected the beginning of the names of several files, not standard output")
        }
        Ok(OutputTarget::StandardError | OutputTarget::Stream(_)) => {
            Err("expected the beginning of the names of several files, not a device, a FIFO, a socket or a descriptor")
        }
        // What cannot be followed is reported when it is opened.
        Ok(OutputTarget::File(_)) | Err(_) => {
            let prefix = PathBuf::from(text);
            let is_csv = prefix.extension().is_some_and(|end| end == "csv");
            Ok(OutputPrefix { prefix: if is_csv { prefix.with_extension("") } else { prefix }, ends })
        }
    })
}

impl fmt::Display for OutputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_str() {
            Some("-") => f.write_str("standard output"),
            _ => self.0.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::builder::ValueParser;
    use clap::{Command, value_parser};

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
            (ValueParser::new(prefix_parser(&[])), "{prefix}"),
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
