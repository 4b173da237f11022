//! From the text of a file to what it holds.

use crate::foreign::ForeignResults;
use crate::formats::{fio, google_benchmark, hyperfine, iperf3, pbench, phoronix};
use crate::{Format, ReadError};

/// What is read of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// The format that it is of; without, it shows it.
    pub format: Option<Format>,
    /// Of a file with several systems, the one that is read; without, all are.
    pub system: Option<&'a str>,
    /// Iterations that failed are read too.
    pub include_incorrect: bool,
}

/// Reads a text.
///
/// # Errors
/// When it is of no known format, not what its format should be, or holds nothing.
pub fn read(text: &str, options: ReadOptions<'_>) -> Result<(Format, ForeignResults), ReadError> {
    let ReadOptions { format, system, include_incorrect } = options;
    let format = format.or_else(|| Format::detect(text)).ok_or(ReadError::Unknown)?;
    let mut foreign = match format {
        Format::Pbench => pbench::read(text, include_incorrect),
        Format::Fio => fio::read(text),
        Format::Iperf3 => iperf3::read(text),
        Format::Hyperfine => hyperfine::read(text),
        Format::GoogleBenchmark => google_benchmark::read(text),
        Format::Phoronix => phoronix::read(text, system),
    }?;
    foreign.disambiguate();
    foreign.fail_empty_samples();
    foreign.secrets.sort();
    foreign.secrets.dedup();
    Ok((format, foreign))
}
