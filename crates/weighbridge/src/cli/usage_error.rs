//! Errors in the command line, in the words of all other messages.

use std::error::Error;
use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use wb_diagnostics::{help_with_suggestion, suggest};

/// Why a command line does not match the declarations, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageError {
    pub(crate) what: String,
    pub(crate) help: String,
}

/// Why no command of a command line can be executed.
#[derive(Debug)]
pub(crate) enum ParseError {
    /// A request for help or the version, or a command without any arguments that requires some: the text to print.
    Output(clap::Error),
    Usage(UsageError),
}

impl ParseError {
    /// Describes an error of the parser. `program` has parsed the words, so that its declarations are complete.
    pub(super) fn new(error: clap::Error, program: &Command, words: &[OsString]) -> Self {
        match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Self::Output(error),
            _ => Self::Usage(UsageError::new(&error, program, words)),
        }
    }
}

impl UsageError {
    fn new(error: &clap::Error, program: &Command, words: &[OsString]) -> Self {
        let usage = usage(error);
        let (path, command) = command_of(words, program);
        let options = format!("`{path} --help` describes all options");
        let text = |kind| text(error.get(kind));
        let arg = text(ContextKind::InvalidArg);
        let value = text(ContextKind::InvalidValue);
        let name = option_name(&arg);
        match error.kind() {
            ErrorKind::InvalidSubcommand => {
                let given = text(ContextKind::InvalidSubcommand);
                let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
                let nearest = suggest(&given, visible.map(Command::get_name));
                let all = format!("`{path} --help` lists all commands");
                let help = match FOREIGN.iter().find(|(name, _)| *name == given) {
                    Some((_, replacement)) => (*replacement).to_owned(),
                    None => help_with_suggestion(nearest.as_ref(), &all),
                };
                Self { what: format!("unknown command `{given}`"), help }
            }
            ErrorKind::MissingSubcommand => {
                Self { what: "missing command".to_owned(), help: format!("`{path} --help` lists all commands") }
            }
            ErrorKind::UnknownArgument if arg.starts_with('-') => {
                if let Some(replacement) = replacement(&arg, command) {
                    return Self {
                        what: format!("`{arg}` was removed"),
                        help: format!("write `{replacement}` instead"),
                    };
                }
                let known = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
                let nearest = suggest(&arg, known.map(|long| format!("--{long}")));
                Self { what: format!("unknown option `{arg}`"), help: help_with_suggestion(nearest.as_ref(), &options) }
            }
            ErrorKind::UnknownArgument => {
                Self { what: format!("unexpected argument `{arg}`"), help: format!("usage: {usage}") }
            }
            ErrorKind::MissingRequiredArgument => Self {
                what: format!("missing {}", quoted(error.get(ContextKind::InvalidArg))),
                help: format!("usage: {usage}"),
            },
            ErrorKind::InvalidValue if value.is_empty() => {
                Self { what: format!("missing value of `{arg}`"), help: options }
            }
            ErrorKind::InvalidValue => {
                let valid = strings(error.get(ContextKind::ValidValue));
                let nearest = suggest(&value, valid);
                let expected = format!("expected one of {}", valid.join(", "));
                Self {
                    what: format!("invalid {name} `{value}`: {expected}"),
                    help: help_with_suggestion(nearest.as_ref(), &options),
                }
            }
            ErrorKind::ValueValidation => {
                let cause = error.source().map(ToString::to_string).unwrap_or_default();
                let is_whole = cause.starts_with("invalid ") || cause.starts_with("unknown ");
                let what =
                    if is_whole { format!("{name}: {cause}") } else { format!("invalid {name} `{value}`: {cause}") };
                Self { what, help: options }
            }
            ErrorKind::TooFewValues => {
                let number = |kind| number(error.get(kind));
                let (least, found) = (number(ContextKind::MinValues), number(ContextKind::ActualNumValues));
                let what = format!("missing values of `{arg}`: expected at least {least}, found {found}");
                Self { what, help: format!("usage: {usage}") }
            }
            ErrorKind::ArgumentConflict if error.get(ContextKind::PriorArg).is_some() => {
                let others = quoted(error.get(ContextKind::PriorArg));
                let what = if others == format!("`{arg}`") {
                    format!("`{arg}` is given more than once")
                } else {
                    format!("`{arg}` and {others} are mutually exclusive")
                };
                Self { what, help: format!("remove one. {options}") }
            }
            ErrorKind::InvalidUtf8 => {
                let word = refused_encoding(words, program).unwrap_or_default();
                Self { what: format!("invalid argument `{word}`: expected text in UTF-8"), help: options }
            }
            _ => Self { what: first_paragraph(error), help: options },
        }
    }
}

/// Commands of resctl-bench without a counterpart of the same name, with what to do instead.
const FOREIGN: [(&str, &str); 2] = [
    ("doc", "`weighbridge list BENCH` shows the properties of a bench; docs/contention.md describes all"),
    ("upload", "results are not uploaded: `weighbridge pack` writes an archive to hand on"),
];

/// Options that were removed, with the name of the option that replaces each, and how it is written.
const REMOVED: [(&str, &str, &str); 1] = [("--trust-single-run", "run-noise", "--run-noise 0")];

fn replacement(arg: &str, command: &Command) -> Option<&'static str> {
    let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
    let removed = REMOVED.iter().find(|(option, name, _)| *option == arg && has(name));
    removed.map(|(_, _, replacement)| *replacement)
}

/// The word that is refused because it is not UTF-8: without it, others like it are accepted, such as paths.
fn refused_encoding(words: &[OsString], program: &Command) -> Option<String> {
    let lossy = |word: &OsString| word.to_string_lossy().into_owned();
    let is_refused = |(index, word): &(usize, &OsString)| {
        let others = words
            .iter()
            .enumerate()
            .map(|(other, word)| if other == *index { word.clone() } else { lossy(word).into() });
        let parsed = program.clone().try_get_matches_from(others);
        word.to_str().is_none() && parsed.is_err_and(|error| error.kind() == ErrorKind::InvalidUtf8)
    };
    words.iter().enumerate().find(is_refused).map(|(_, word)| lossy(word))
}

/// The message of the parser without usage and notes.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.to_string();
    let message = text.split("\n\n").next().unwrap_or(&text).trim();
    message.strip_prefix("error: ").unwrap_or(message).to_owned()
}

fn usage(error: &clap::Error) -> String {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return "weighbridge".to_owned() };
    let usage = usage.to_string();
    let words: Vec<&str> = usage.trim_start_matches("Usage:").split_whitespace().collect();
    words.join(" ")
}

/// The names of the command that the words call, and its declaration.
fn command_of<'a>(words: &[OsString], program: &'a Command) -> (String, &'a Command) {
    let (mut path, mut command) = (program.get_name().to_owned(), program);
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(next) = command.find_subcommand(word) {
            path = format!("{path} {word}");
            command = next;
        }
    }
    (path, command)
}

/// `--precision` of `--precision <PERCENT>`, `KERNEL` of `<KERNEL>`.
fn option_name(arg: &str) -> &str {
    if arg.starts_with('-') {
        arg.split([' ', '[', '=']).next().unwrap_or(arg)
    } else {
        arg.trim_end_matches("...").trim_matches(['<', '>'])
    }
}

fn text(value: Option<&ContextValue>) -> String {
    match value {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    }
}

fn strings(value: Option<&ContextValue>) -> &[String] {
    match value {
        Some(ContextValue::Strings(texts)) => texts,
        _ => &[],
    }
}

fn number(value: Option<&ContextValue>) -> isize {
    match value {
        Some(ContextValue::Number(number)) => *number,
        _ => 0,
    }
}

fn quoted(value: Option<&ContextValue>) -> String {
    let names = match value {
        Some(ContextValue::String(name)) => std::slice::from_ref(name),
        value => strings(value),
    };
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
