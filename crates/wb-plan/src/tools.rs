//! User tools around samples: command lines, and groups of them by name.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::request::{SpannedValue, ValueForm};
use crate::suggestion::suggest;
use crate::{PlanError, SourceText};

/// The groups of tools of a plan file, each a list of command lines.
pub(crate) type ToolGroups = BTreeMap<String, Vec<Spanned<String>>>;

/// A command line's words, as a shell divides them; nothing where it has none, or a quote is open.
pub fn split_words(line: &str) -> Option<Vec<String>> {
    shell_words::split(line).ok().filter(|words| !words.is_empty())
}

/// Sees to it that every group holds command lines.
pub(crate) fn validate_groups(source: &SourceText, groups: &ToolGroups) -> Result<(), PlanError> {
    let unusable = groups.values().flatten().find(|line| split_words(line.get_ref()).is_none());
    unusable.map_or(Ok(()), |line| Err(no_command(source, line.span(), line.get_ref())))
}

/// The command lines that are meant by command lines and names of groups.
pub(crate) fn expand_tools(
    source: &SourceText,
    value: &SpannedValue,
    groups: &ToolGroups,
) -> Result<Vec<String>, PlanError> {
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

/// The command lines of a group by its name. `default` need not be there: it is pbench's word where none is meant.
pub(crate) fn expand_group(
    source: &SourceText,
    value: &SpannedValue,
    groups: &ToolGroups,
) -> Result<Vec<String>, PlanError> {
    let name = value.value().to_string();
    match groups.get(&name) {
        Some(group) => Ok(group.iter().map(|line| line.get_ref().clone()).collect()),
        None if name == "default" => Ok(Vec::new()),
        None => Err(unknown_group(source, value, &format!("there is no tool group `{name}`"), &name, groups)),
    }
}

/// A command line. A word alone that is no program is taken for a group that was misspelt: as a program it would be
/// missed only when the first sample is taken.
fn resolve_command(
    source: &SourceText,
    entry: &SpannedValue,
    line: String,
    groups: &ToolGroups,
) -> Result<String, PlanError> {
    let Some(words) = split_words(&line) else { return Err(no_command(source, entry.span.clone(), &line)) };
    let is_word = words.len() == 1 && !line.contains('/');
    if !is_word || is_program(&line) {
        return Ok(line);
    }
    Err(unknown_group(source, entry, &format!("there is no tool group and no program `{line}`"), &line, groups))
}

fn unknown_group(
    source: &SourceText,
    entry: &SpannedValue,
    message: &str,
    name: &str,
    groups: &ToolGroups,
) -> PlanError {
    let names = groups.keys().map(String::as_str);
    let label = suggest(name, names.clone()).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
    let help = match names.collect::<Vec<_>>().join(", ").as_str() {
        "" => "a group of tools is written `NAME = [\"COMMAND\", …]` under [tool-groups]".to_owned(),
        all => format!("the groups of tools are {all}"),
    };
    PlanError::at(source, entry.span.clone(), message, label).with_help(help)
}

fn no_command(source: &SourceText, at: std::ops::Range<usize>, line: &str) -> PlanError {
    let (message, label) = match line.trim() {
        "" => ("a tool has no command".to_owned(), "this is empty"),
        _ => (format!("the tool `{line}` is no command"), "a quote is open"),
    };
    PlanError::at(source, at, message, label)
        .with_help("a tool is a command line such as `perf stat -a`, or the name of a group of [tool-groups]")
}

/// Whether a word names a program of this machine: a file by its path, or one on the search path.
pub fn is_program(word: &str) -> bool {
    if word.contains('/') {
        return std::path::Path::new(word).is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(word).is_file())
}
