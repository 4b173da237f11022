//! Parsing of a file into foreign results.

use crate::foreign::ForeignResults;
use crate::{Format, ReadError};

/// Options of [`read`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// Format of the file; detected if none.
    pub format: Option<Format>,
    /// The system to read from a file with several systems; all if none.
    pub system: Option<&'a str>,
    /// Whether failed iterations are read too.
    pub include_incorrect: bool,
}

/// Parses the text of a file.
///
/// # Errors
/// If its format is unknown, it violates its format, or it has no results.
pub fn read(text: &str, options: ReadOptions<'_>) -> Result<(Format, ForeignResults), ReadError> {
    let format = options.format.or_else(|| Format::detect(text)).ok_or(ReadError::Unknown)?;
    let mut foreign = (format.definition().read)(text, &options)?;
    foreign.number_occurrences();
    foreign.disambiguate();
    foreign.fail_empty_samples();
    foreign.secrets.sort();
    foreign.secrets.dedup();
    Ok((format, foreign))
}
