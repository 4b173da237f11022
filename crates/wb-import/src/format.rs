//! Formats of results, and their detection by content.

use std::fmt;
use std::str::FromStr;

use crate::formats::libp2p;

/// A format of results that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// pbench's `result.json`, also in run-perf's folders.
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
    /// `results.yaml` and `results.md` of libp2p's performance suites.
    Libp2p,
}

/// A text that is not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{0}`: expected one of {names}", names = Format::names())]
pub struct UnknownFormat(String);

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] =
        [Self::Pbench, Self::Fio, Self::Iperf3, Self::Hyperfine, Self::GoogleBenchmark, Self::Phoronix, Self::Libp2p];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pbench => "pbench",
            Self::Fio => "fio",
            Self::Iperf3 => "iperf3",
            Self::Hyperfine => "hyperfine",
            Self::GoogleBenchmark => "google-benchmark",
            Self::Phoronix => "phoronix",
            Self::Libp2p => "libp2p",
        }
    }

    /// Version of the parser, increased when files are read differently; part of each definition key.
    pub fn version(self) -> u32 {
        match self {
            Self::Fio => 3,
            Self::Iperf3 | Self::Hyperfine | Self::Pbench => 2,
            Self::GoogleBenchmark | Self::Phoronix | Self::Libp2p => 1,
        }
    }

    /// The provenance that identifies the measured system, its name first; empty if files of this format have none.
    pub(crate) fn system_properties(self) -> &'static [&'static str] {
        match self {
            Self::GoogleBenchmark => &["host"],
            Self::Phoronix => &["system", "hardware"],
            Self::Pbench | Self::Fio | Self::Iperf3 | Self::Hyperfine | Self::Libp2p => &[],
        }
    }

    /// All names, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Detects the format of a text by names that are unique to it; also for text that is truncated or damaged later
    /// on.
    pub fn detect(text: &str) -> Option<Self> {
        let has = |name: &str| text.contains(name);
        let is = |format: &Self| match format {
            Self::Pbench => has("\"iteration_name\"") || has("\"iteration_data\""),
            Self::Fio => has("\"fio version\""),
            Self::Iperf3 => has("\"test_start\"") || (has("\"version\"") && has("iperf 3")),
            // Without results there is nothing else in it.
            Self::Hyperfine if text.split_whitespace().collect::<String>() == "{\"results\":[]}" => true,
            Self::Hyperfine => has("\"results\"") && has("\"command\"") && (has("\"mean\"") || has("\"times\"")),
            Self::GoogleBenchmark => has("\"benchmarks\"") && has("\"context\""),
            Self::Phoronix => has("<PhoronixTestSuite"),
            Self::Libp2p => libp2p::is_suite_results(text),
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
