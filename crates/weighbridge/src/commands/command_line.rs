//! Text of this process's command line, and the split of a recorded one into commands, options and values by the
//! declarations of the flags. Values are not parsed: a recorded one may contain `***`, or name a file of another
//! machine.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, Command};
use wb_model::secrets::mask_arguments;

use crate::cli::Cli;
use crate::console::message;

/// This process's command line, with the program. Records are text: bytes that are not UTF-8 become `�`, with a
/// warning. Secrets are not masked, as some are declared later.
pub(crate) fn words_to_record() -> Vec<String> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.iter().any(|word| word.to_str().is_none()) {
        message!("warning: bytes of the command line that are not UTF-8 are recorded as `�`");
    }
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// [`words_to_record`] with secrets masked.
pub(crate) fn recorded_words() -> Vec<String> {
    mask_arguments(words_to_record())
}

/// Masks secrets. Where there are none, every byte is kept.
pub(crate) fn mask_secrets(words: Vec<OsString>) -> Vec<OsString> {
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let masked = mask_arguments(&texts);
    let shown = words.into_iter().zip(texts).zip(masked);
    shown.map(|((word, text), masked)| if masked == text { word } else { masked.into() }).collect()
}

/// Joins words into a command line for a shell; it keeps every byte.
pub(crate) fn join_words(words: &[OsString]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell: `$'\377'` if it is not UTF-8.
fn quote(word: &OsStr) -> String {
    if let Some(text) = word.to_str() {
        return shell_words::quote(text).into_owned();
    }
    let escape = |c: char| match c {
        '\\' | '\'' => format!("\\{c}"),
        c if c.is_ascii_control() => format!("\\{:03o}", u32::from(c)),
        c => c.to_string(),
    };
    let chunks = word.as_bytes().utf8_chunks().map(|chunk| {
        let bytes = chunk.invalid().iter().map(|byte| format!("\\{byte:03o}"));
        chunk.valid().chars().map(escape).chain(bytes).collect::<String>()
    });
    format!("$'{}'", chunks.collect::<String>())
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The names of the command and the subcommands.
    pub(crate) names: Vec<String>,
    /// The ids of all options and positional arguments that the command has.
    pub(crate) options: BTreeSet<String>,
    pub(crate) arguments: Vec<Argument>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Argument {
    /// The id of its declaration: the name of the field. `None` for `--`.
    pub(crate) id: Option<String>,
    /// Its flag, in the long form if it has one; `None` for positional arguments.
    pub(crate) flag: Option<String>,
    pub(crate) value: Option<String>,
}

impl Argument {
    pub(crate) fn is(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }

    /// The argument in one word.
    pub(crate) fn text(&self) -> String {
        match (&self.flag, &self.value) {
            (Some(flag), Some(value)) => format!("{flag}={value}"),
            (Some(text), None) | (None, Some(text)) => text.clone(),
            (None, None) => "--".to_owned(),
        }
    }
}

impl CommandLine {
    /// Splits a command line, whose first word is the program; `None` if it does not match the declarations.
    pub(crate) fn parse(words: &[String]) -> Option<Self> {
        // By the declarations of the flags, so that a snapshot repeats every flag that is added later, too.
        let mut program = Cli::build_command();
        program.build();
        let mut command = &program;
        let mut line = Self::default();
        let mut words = words.iter().skip(1).map(String::as_str);
        let (mut positional, mut only_positional) = (0, false);
        while let Some(word) = words.next() {
            if only_positional || word == "-" || !word.starts_with('-') {
                if !only_positional
                    && positional == 0
                    && let Some(subcommand) = command.find_subcommand(word)
                {
                    line.names.push(subcommand.get_name().to_owned());
                    command = subcommand;
                    continue;
                }
                line.arguments.push(Argument {
                    id: Some(positional_at(command, positional)?.get_id().to_string()),
                    flag: None,
                    value: Some(word.to_owned()),
                });
                positional += 1;
            } else if word == "--" {
                only_positional = true;
                line.arguments.push(Argument::default());
            } else if let Some(option) = word.strip_prefix("--") {
                let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
                let declaration = command.get_arguments().find(|arg| has_long(arg, name))?;
                line.arguments.push(argument(declaration, value, &mut words)?);
            } else {
                line.arguments.extend(short_options(command, word, &mut words)?);
            }
        }
        line.options = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        Some(line)
    }
}

/// Splits a word of short options: `-q`, `-qi`, `-iDIR`.
fn short_options<'a>(
    command: &Command,
    word: &str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Option<Vec<Argument>> {
    let mut arguments = Vec::new();
    let mut letters = word[1..].chars();
    while let Some(letter) = letters.next() {
        let declaration = command.get_arguments().find(|arg| has_short(arg, letter))?;
        let rest = letters.as_str();
        if takes_value(declaration) && !rest.is_empty() {
            arguments.push(argument(declaration, Some(rest.strip_prefix('=').unwrap_or(rest)), words)?);
            break;
        }
        arguments.push(argument(declaration, None, words)?);
    }
    Some(arguments)
}

/// The argument of an option, with this value or the next word if it takes one.
fn argument<'a>(declaration: &Arg, value: Option<&str>, words: &mut impl Iterator<Item = &'a str>) -> Option<Argument> {
    let flag = match (declaration.get_long(), declaration.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, short) => format!("-{}", short?),
    };
    let value = if takes_value(declaration) { Some(value.or_else(|| words.next())?.to_owned()) } else { None };
    Some(Argument { id: Some(declaration.get_id().to_string()), flag: Some(flag), value })
}

fn has_long(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
}

fn has_short(arg: &Arg, letter: char) -> bool {
    arg.get_short() == Some(letter) || arg.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&letter))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// The declaration of a positional argument; the last one takes all others.
fn positional_at(command: &Command, position: usize) -> Option<&Arg> {
    let mut declarations: Vec<&Arg> = command.get_positionals().collect();
    declarations.sort_by_key(|arg| arg.get_index());
    declarations.get(position).or(declarations.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<CommandLine> {
        CommandLine::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    /// Each argument as `ID:TEXT`.
    fn arguments(line: &str) -> Vec<String> {
        let arguments = parse(line).unwrap().arguments.into_iter();
        arguments.map(|argument| format!("{}:{}", argument.id.clone().unwrap_or_default(), argument.text())).collect()
    }

    #[test]
    fn options_values_and_positional_arguments_are_distinguished() {
        let line = "weighbridge -q run himeno:grid=XS --samples 2 -iR --plan=p.toml --no-aslr --metadata a=b fio";
        assert_eq!(parse(line).unwrap().names, ["run"]);
        assert_eq!(
            arguments(line),
            [
                "quiet:--quiet",
                "tests:himeno:grid=XS",
                "samples:--samples=2",
                "into:--into=R",
                "plan:--plan=p.toml",
                "no_aslr:--no-aslr",
                "metadata:--metadata=a=b",
                "tests:fio"
            ]
        );
        assert_eq!(arguments("w run -qi R x"), ["quiet:--quiet", "into:--into=R", "tests:x"]);
        assert_eq!(
            arguments("w ab t --into A -- base -x"),
            ["test:t", "into:--into=A", ":--", "variants:base", "variants:-x"]
        );
    }

    #[test]
    fn a_joined_command_line_keeps_every_byte() {
        let words = [&b"a b"[..], b"run-\xff", b"1\xff\xfe2 \\'\n\xc3\xa9", b"plain"].map(OsStr::from_bytes);
        let line = join_words(&words.map(OsStr::to_owned));
        assert_eq!(line, r"'a b' $'run-\377' $'1\377\3762 \\\'\012é' plain");
        let script = format!("printf '%s\\0' {line}");
        let printed = std::process::Command::new("bash").args(["-c", &script]).output().unwrap().stdout;
        let read: Vec<&[u8]> = printed.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
        assert_eq!(read, words.map(OsStr::as_bytes));
    }

    #[test]
    fn unknown_options_and_missing_values_are_not_guessed() {
        assert_eq!(parse("w run x --nosuch"), None);
        assert_eq!(parse("w run x --into"), None);
        assert_eq!(parse("w nosuch x").map(|line| line.names), None);
        assert_eq!(parse("w run x --samples ***").map(|line| line.names), Some(vec!["run".to_owned()]));
    }
}
