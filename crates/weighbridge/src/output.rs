//! Writes results to standard output and to files that the user names.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::error::Error;

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Error> {
    print_text(&json_text(value)?)
}

/// A value as indented JSON.
pub(crate) fn json_text(value: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(text + "\n")
}

/// Prints text.
pub(crate) fn print_text(text: &str) -> Result<(), Error> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output; a closed pipe (`| head`) is not an error.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::standard_output(source)),
        _ => Ok(()),
    }
}

/// Writes a file requested by the user, atomically.
pub(crate) fn write_file(path: &Path, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Error> {
    Ok(wb_record::files::write_atomic(path, content.as_ref())?)
}
