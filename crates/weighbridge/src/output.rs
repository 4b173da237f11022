//! Writes results to standard output and to files that the user names.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use serde::Serialize;
use wb_model::{escape_controls, is_bidi_control};
use wb_sys::{OutputFile, OutputTarget, output_file};

use crate::cli::{OutputPath, OutputPrefix};
use crate::error::Error;
use crate::recorded_file::is_record;

/// Set if standard output is a file that the user has named.
static IS_RESERVED: OnceLock<()> = OnceLock::new();

/// Keeps standard output for a file that the user has named with an option: everything else goes to standard error.
pub(crate) fn reserve_standard_output() {
    // Reserving it again changes nothing.
    let _ = IS_RESERVED.set(());
}

fn is_reserved() -> bool {
    IS_RESERVED.get().is_some()
}

pub(crate) fn is_terminal() -> bool {
    if is_reserved() { io::stderr().is_terminal() } else { io::stdout().is_terminal() }
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Error> {
    print_text(&json_text(value)?)
}

pub(crate) fn json_text(value: &impl Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Error::Internal(error.to_string()))?;
    // They are in strings alone, where JSON has an escape with the same meaning.
    let marks: BTreeSet<char> = text.chars().filter(|letter| is_bidi_control(*letter)).collect();
    for mark in marks {
        text = text.replace(mark, &format!("\\u{:04x}", u32::from(mark)));
    }
    Ok(text + "\n")
}

/// Prints text. On a terminal, whatever controls it is escaped, because names in the text may be those of others;
/// programs get the text as it is.
pub(crate) fn print_text(text: &str) -> Result<(), Error> {
    if is_terminal() { print_bytes(escape_controls(text).as_bytes()) } else { print_bytes(text.as_bytes()) }
}

/// Writes bytes to standard output; a closed pipe (`| head`) is not an error.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Error> {
    print_now(bytes).map(drop)
}

/// Writes bytes to standard output at once; false if nobody reads it any more.
pub(crate) fn print_now(bytes: &[u8]) -> Result<bool, Error> {
    let write = |out: &mut dyn Write| out.write_all(bytes).and_then(|()| out.flush());
    let (written, name) = if is_reserved() {
        (write(&mut io::stderr().lock()), "standard error")
    } else {
        (write(&mut io::stdout().lock()), "standard output")
    };
    if is_reserved() {
        crate::console::write_log(&String::from_utf8_lossy(bytes));
    }
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::stream(name)(error)),
    }
}

/// Refuses an output that would replace a record of results.
fn require_no_record(path: &OutputPath) -> Result<(), Error> {
    // What cannot be followed is reported when it is opened.
    let target = OutputTarget::new(path.as_path());
    let is_record = target.is_ok_and(|target| matches!(target, OutputTarget::File(file) if is_record(&file)));
    let refused = || io::Error::other("it is a record of results, which would be lost; name another file");
    if is_record { Err(Error::output(path)(refused())) } else { Ok(()) }
}

pub(crate) fn write_file(path: &OutputPath, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Error> {
    require_no_record(path)?;
    output_file::write(path.as_path(), content.as_ref()).map_err(Error::output(path))
}

/// Writes texts to the files of a prefix, in their order; returns the names of the files.
pub(crate) fn write_files(prefix: &OutputPrefix, texts: impl IntoIterator<Item = String>) -> Result<String, Error> {
    let mut names = Vec::new();
    for (file, text) in prefix.files().zip(texts) {
        write_file(&file, &text)?;
        names.push(file.to_string());
    }
    Ok(join_and(&names))
}

/// Joins words: `a, b and c`.
fn join_and(words: &[String]) -> String {
    match words {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        words => words.concat(),
    }
}

/// Creates a file that the user has named, to be written little by little.
pub(crate) fn create_file(path: &OutputPath) -> Result<OutputFile, Error> {
    require_no_record(path)?;
    OutputFile::create(path.as_path()).map_err(Error::output(path))
}

pub(crate) fn append_file(path: &OutputPath) -> Result<OutputFile, Error> {
    require_no_record(path)?;
    OutputFile::append(path.as_path()).map_err(Error::output(path))
}

/// Checks that a file can be written, before minutes of measuring.
pub(crate) fn check_file(path: &OutputPath) -> Result<(), Error> {
    require_no_record(path)?;
    OutputTarget::new(path.as_path()).and_then(|target| target.check()).map_err(Error::output(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_marks_of_direction_and_the_same_values() {
        let value = serde_json::json!({"name\u{202e}": "a\u{2066}b", "plain": "größe"});
        let text = json_text(&value).unwrap();
        assert!(!text.contains(is_bidi_control) && text.contains(r"\u202e"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
