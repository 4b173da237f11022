//! The formats, and how a file's content tells which one it is.

use std::fmt;
use std::str::FromStr;

/// A format of results that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// pbench's `result.json`, as run-perf keeps it too.
    Pbench,
    /// fio's `--output-format=json` and `json+`.
    Fio,
    /// iperf3's `-J` and `--json-stream`.
    Iperf3,
    /// hyperfine's `--export-json`.
    Hyperfine,
    /// Google Benchmark's `--benchmark_format=json`.
    GoogleBenchmark,
    /// The Phoronix Test Suite's `composite.xml`.
    Phoronix,
}

/// Text that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no format: {names} is expected", names = Format::names())]
pub struct UnknownFormat(String);

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Pbench, Self::Fio, Self::Iperf3, Self::Hyperfine, Self::GoogleBenchmark, Self::Phoronix];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pbench => "pbench",
            Self::Fio => "fio",
            Self::Iperf3 => "iperf3",
            Self::Hyperfine => "hyperfine",
            Self::GoogleBenchmark => "google-benchmark",
            Self::Phoronix => "phoronix",
        }
    }

    /// Raised when files of this format start to be read differently; part of every definition key.
    pub fn version(self) -> u32 {
        1
    }

    /// All names, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The format that a text is of, by names that stand in files of one format alone; also of one that is cut off or
    /// damaged further on.
    pub fn detect(text: &str) -> Option<Self> {
        let has = |name: &str| text.contains(name);
        let is = |format: &Self| match format {
            Self::Pbench => has("\"iteration_name\"") || has("\"iteration_data\""),
            Self::Fio => has("\"fio version\""),
            Self::Iperf3 => has("\"test_start\"") || (has("\"version\"") && has("iperf 3")),
            Self::Hyperfine => has("\"results\"") && has("\"command\"") && (has("\"mean\"") || has("\"times\"")),
            Self::GoogleBenchmark => has("\"benchmarks\"") && has("\"context\""),
            Self::Phoronix => has("<PhoronixTestSuite"),
        };
        Self::ALL.into_iter().find(is)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
