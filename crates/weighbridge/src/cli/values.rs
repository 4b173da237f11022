//! Values of options, and the messages of invalid ones.

use std::ffi::OsStr;
use std::net::IpAddr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use serde::de::DeserializeOwned;
use wb_plan::tools;

/// Parses one of the names that serde accepts for `T`; each comes with its help.
pub(crate) fn enum_parser<T, const N: usize>(
    values: [(&'static str, &'static str); N],
) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values.map(|(name, help)| PossibleValue::new(name).help(help)))
        .try_map(|name| serde_json::from_value::<T>(name.into()))
}

/// Parses `KEY=VALUE`; a message names both as the help of the option does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyValueParser;

impl TypedValueParser for KeyValueParser {
    type Value = (String, String);

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Self::Value, clap::Error> {
        let form = arg.and_then(Arg::get_value_names).and_then(<[_]>::first);
        let form = form.map_or_else(|| "KEY=VALUE".to_owned(), ToString::to_string);
        let parse = move |text: &str| match text.split_once('=') {
            Some(("", _)) => Err("expected a key before `=`".to_owned()),
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(format!("expected {form}")),
        };
        parse.parse_ref(command, arg, value)
    }
}

/// Parses a percentage, with or without the sign.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    number.parse().map_err(|_| "expected a percentage, such as `2` or `2%`".to_owned())
}

pub(crate) fn parse_ip_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "expected an IP address, such as 0.0.0.0 or ::".to_owned())
}

/// Checks that a command line can be split into words.
pub(super) fn parse_command_line(text: &str) -> Result<String, String> {
    match tools::split_words(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected a non-empty command line with closed quotes".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::any::{Any, TypeId};
    use std::collections::BTreeSet;

    use clap::parser::ValueSource;

    use crate::cli::Cli;

    /// Commands with the notation of other programs.
    const FOREIGN: [&str; 2] = ["iperf3", "uperf"];

    /// Calls this for each command, with its names.
    fn for_each_command(command: &clap::Command, path: &str, visit: &mut dyn FnMut(&str, &clap::Command)) {
        visit(path, command);
        for inner in command.get_subcommands() {
            for_each_command(inner, format!("{path} {}", inner.get_name()).trim(), visit);
        }
    }

    /// The value of an option written like this, by itself.
    fn value<T: Any + Clone + Send + Sync>(arg: &clap::Arg, text: &str) -> Option<T> {
        let arg = clap::Arg::new("x").long("x").value_parser(arg.get_value_parser().clone());
        let matches = clap::Command::new("c").arg(arg).try_get_matches_from(["c", &format!("--x={text}")]).ok()?;
        assert_eq!(matches.value_source("x"), Some(ValueSource::CommandLine));
        matches.get_one::<T>("x").cloned()
    }

    #[test]
    fn every_option_with_a_count_is_read_in_every_notation() {
        fn check<T: Any + Clone + Send + Sync + PartialEq + std::fmt::Debug>(path: &str, arg: &clap::Arg) -> bool {
            if arg.get_value_parser().type_id() != TypeId::of::<T>() || arg.get_long().is_none() {
                return false;
            }
            let plain = value::<T>(arg, "100");
            for text in ["1e2", "0.1k", "0.1K", "1e+2"] {
                assert_eq!(value::<T>(arg, text), plain, "{path} {}: {text}", arg.get_id());
            }
            assert_eq!(value::<T>(arg, "99999999999999999999"), None, "{path} {}", arg.get_id());
            plain.is_some()
        }
        let mut checked = BTreeSet::new();
        for_each_command(&Cli::build_command(), "", &mut |path, command| {
            if FOREIGN.iter().any(|foreign| path.ends_with(foreign)) {
                return;
            }
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                // Their values are no counts.
                if ["mss", "tos"].contains(&arg.get_id().as_str()) {
                    continue;
                }
                if check::<u16>(path, arg)
                    || check::<u32>(path, arg)
                    || check::<u64>(path, arg)
                    || check::<usize>(path, arg)
                {
                    checked.insert(arg.get_id().to_string());
                }
            }
        });
        for name in ["samples", "max_samples", "retakes", "warm_up", "max_blocks", "runs", "max_sessions"] {
            assert!(checked.contains(name), "{name}: {checked:?}");
        }
    }

    // `std::env::args` panics on a word that is not UTF-8.
    #[test]
    fn every_command_is_tried_with_an_argument_that_is_not_utf8() {
        let tried: BTreeSet<&str> = include_str!("../../tests/fixtures/not-utf8")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split('|').next().unwrap_or_default().trim())
            .collect();
        let mut missing = Vec::new();
        let mut commands = BTreeSet::new();
        let (fixed, mut program) = (["help", "color", "run_folder", "log", "version"], Cli::build_command());
        program.build();
        for_each_command(&program, "", &mut |path, command| {
            let own = command.get_arguments().filter(|arg| !fixed.contains(&arg.get_id().as_str()));
            let takes_text = own.filter(|arg| arg.get_action().takes_values()).count() > 0;
            if path.split(' ').any(|name| name == "help") || command.has_subcommands() || !takes_text {
                return;
            }
            commands.insert(path.to_owned());
            if !tried.contains(path) {
                missing.push(path.to_owned());
            }
        });
        let unknown: Vec<_> = tried.iter().filter(|path| !commands.contains(**path)).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "not in tests/fixtures/not-utf8: {missing:?}; unknown: {unknown:?}"
        );
    }
}
