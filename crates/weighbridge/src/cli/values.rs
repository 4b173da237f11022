//! Values of options, and the messages of invalid ones.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use serde::de::DeserializeOwned;
use wb_model::Count;
use wb_plan::tools;

/// Parses a word that a type of the plan's is written as there.
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

/// Parses a whole number that is `LEAST` or more.
pub(crate) fn whole_number<T: TryFrom<u64>, const LEAST: u64>(text: &str) -> Result<T, String> {
    whole_number_to::<T, LEAST, { u64::MAX }>(text)
}

/// Parses a whole number from `LEAST` to `MOST`: `10000000`, `10M` or `1e7`.
pub(crate) fn whole_number_to<T: TryFrom<u64>, const LEAST: u64, const MOST: u64>(text: &str) -> Result<T, String> {
    let number = text.parse::<Count>().ok().map(|count| count.0).filter(|number| (LEAST..=MOST).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let most = (1..=64).map(|bits| u64::MAX >> (64 - bits)).rfind(|most| T::try_from(*most).is_ok());
        match most.map_or(MOST, |most| most.min(MOST)) {
            u64::MAX => format!("expected a whole number from {LEAST}"),
            most => format!("expected a whole number from {LEAST} to {most}"),
        }
    })
}

/// Parses a finite number of 0 or more.
pub(crate) fn parse_non_negative(text: &str) -> Result<f64, String> {
    finite(text).filter(|value| *value >= 0.0).ok_or_else(|| "expected a number of 0 or more".to_owned())
}

/// Parses a finite number above 0.
pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    finite(text).filter(|value| *value > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}

/// Parses a number from 0 to 1.
pub(crate) fn parse_fraction(text: &str) -> Result<f64, String> {
    finite(text).filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

fn finite(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|value| value.is_finite());
    plain.or_else(|| text.parse::<Count>().ok().map(|count| count.0 as f64))
}

/// Parses the address of an interface.
pub(crate) fn parse_ip_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "expected an IP address, such as 0.0.0.0 or ::".to_owned())
}

/// Parses a path that is passed on as text, and thus must be UTF-8.
pub(crate) fn parse_text_path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

/// Checks that a command line can be split into words.
pub(super) fn parse_command_line(text: &str) -> Result<String, String> {
    match tools::split_words(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected a non-empty command line with closed quotes".to_owned()),
    }
}
