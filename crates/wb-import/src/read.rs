use crate::foreign::ForeignResults;
use crate::{Format, ReadError};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// Detected if none.
    pub format: Option<Format>,
    /// System to read from a file with several; all if none.
    pub system: Option<&'a str>,
    /// Whether failed iterations are read, too.
    pub include_incorrect: bool,
}

/// Parses the text of a file. Fails also if it has no results.
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
