//! User tools that run around samples: command lines, and named groups of them.

use std::collections::BTreeMap;

use toml::Spanned;
use wb_diagnostics::{Diagnostic, SourceText, suggest};
use wb_sys::programs::is_program;

use crate::request::{SpannedValue, ValueForm};

pub(crate) type ToolGroups = BTreeMap<String, Vec<Spanned<String>>>;

/// Splits a command line into words as a shell does; `None` if it is empty or has an unclosed quote.
pub fn split_words(line: &str) -> Option<Vec<String>> {
    shell_words::split(line).ok().filter(|words| !words.is_empty())
}

pub(crate) fn validate_groups(source: &SourceText, groups: &ToolGroups) -> Result<(), Diagnostic> {
    let invalid = groups.values().flatten().find(|line| split_words(line.get_ref()).is_none());
    invalid.map_or(Ok(()), |line| Err(invalid_command(source, line.span(), line.get_ref())))
}

pub(crate) fn expand_tools(
    source: &SourceText,
    value: &SpannedValue,
    groups: &ToolGroups,
) -> Result<Vec<String>, Diagnostic> {
    let listed = match &value.form {
        ValueForm::List(list) => list.as_slice(),
        ValueForm::Single(_) => std::slice::from_ref(value),
    };
    let mut commands = Vec::new();
    for entry in listed {
        let text = entry.value().to_string();
        match groups.get(&text) {
            Some(group) => commands.extend(group.iter().map(|line| line.get_ref().clone())),
            None => commands.push(resolve_command(source, entry, text, groups)?),
        }
    }
    Ok(commands)
}

/// The command lines of a group. `default` need not exist: it is pbench's name for no tools.
pub(crate) fn expand_group(
    source: &SourceText,
    value: &SpannedValue,
    groups: &ToolGroups,
) -> Result<Vec<String>, Diagnostic> {
    let name = value.value().to_string();
    match groups.get(&name) {
        Some(group) => Ok(group.iter().map(|line| line.get_ref().clone()).collect()),
        None if name == "default" => Ok(Vec::new()),
        None => Err(unknown_group(source, value, &format!("unknown tool group `{name}`"), &name, groups)),
    }
}

/// Checks a command line. A single word that is not a program is taken for a misspelt group: as a program, its absence
/// would only show at the first sample.
fn resolve_command(
    source: &SourceText,
    entry: &SpannedValue,
    line: String,
    groups: &ToolGroups,
) -> Result<String, Diagnostic> {
    let Some(words) = split_words(&line) else { return Err(invalid_command(source, entry.span.clone(), &line)) };
    let is_word = words.len() == 1 && !line.contains('/');
    if !is_word || is_program(&line) {
        return Ok(line);
    }
    Err(unknown_group(source, entry, &format!("unknown tool group or program `{line}`"), &line, groups))
}

fn unknown_group(
    source: &SourceText,
    entry: &SpannedValue,
    message: &str,
    name: &str,
    groups: &ToolGroups,
) -> Diagnostic {
    let names = groups.keys().map(String::as_str);
    let suggestion = suggest(name, names.clone());
    let help = match names.collect::<Vec<_>>().join(", ").as_str() {
        "" => "define a tool group as `NAME = [\"COMMAND\", …]` under [tool-groups]".to_owned(),
        all => format!("available tool groups: {all}"),
    };
    Diagnostic::at(source, entry.span.clone(), message, "unknown").with_suggestion(suggestion).with_help(help)
}

fn invalid_command(source: &SourceText, span: std::ops::Range<usize>, line: &str) -> Diagnostic {
    let (message, label) = match line.trim() {
        "" => ("empty tool command".to_owned(), "expected a command line or a tool group"),
        _ => (format!("invalid tool command `{line}`"), "unclosed quote"),
    };
    Diagnostic::at(source, span, message, label)
        .with_help("expected a command line such as `perf stat -a`, or the name of a group in [tool-groups]")
}
