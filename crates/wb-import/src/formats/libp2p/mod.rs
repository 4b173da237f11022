//! Parser of the results of libp2p's performance suites, `results.yaml`, the table of `results.md`, and
//! `benchmark-results.json` of the first suite: a cell for each row, with samples of upload, download and round trip
//! apart, because each iteration measures one of them.
//!
//! All files become [`SuiteResults`], whose figures are in base units; [`judgement`] turns these into cells and marks
//! what is impossible.

mod benchmarks;
mod judgement;
mod markdown;
mod yaml;

use std::collections::BTreeMap;

use wb_model::Gate;

use crate::ReadError;
use crate::foreign::ForeignResults;
use crate::format::{Format, FormatDefinition};

/// Plausible round trips between two programs on one host or in one network, in seconds.
const PLAUSIBLE_ROUND_TRIP: (f64, f64) = (1e-6, 10.0);

pub(crate) const FORMAT: Format =
    Format::new(&FormatDefinition::json("libp2p", 1, is_suite_results, |text, _| read(text)));

fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let results = match text {
        _ if markdown::is_markdown(text) => markdown::parse(text)?,
        _ if benchmarks::is_benchmarks(text) => benchmarks::parse(text)?,
        _ => yaml::parse(text)?,
    };
    judgement::judge(results).require_cells("results")
}

pub(crate) fn is_suite_results(text: &str) -> bool {
    markdown::is_markdown(text) || benchmarks::is_benchmarks(text) || yaml::is_yaml(text)
}

#[derive(Debug, Default)]
struct SuiteResults {
    /// Test pass, times, platform.
    provenance: Vec<(&'static str, String)>,
    baselines: Vec<Row>,
    tests: Vec<Row>,
    /// What the whole file is marked with.
    findings: Vec<(Scenario, String)>,
    /// What was skipped.
    notes: Vec<String>,
    /// Whether a row may lack scenarios, because each was requested apart.
    is_partial: bool,
    /// Whether this program wrote the file; it has judged the figures already.
    is_own: bool,
}

#[derive(Debug)]
struct Row {
    location: String,
    /// `DIALER x LISTENER (TRANSPORT, …)`.
    name: String,
    pair: Pair,
    /// `pass`, `fail`, or none in the file.
    status: Option<String>,
    /// Why it did not pass; only in this program's own files, like `gate` and `further`.
    cause: Option<String>,
    /// The gate that the figures did not pass.
    gate: Option<Gate>,
    /// Further scenarios, with their names and whether they are rates.
    further: Vec<(String, bool, Figures)>,
    /// `None` if they are null.
    figures: [Option<Figures>; 3],
    /// Whether such rows have figures in this kind of file.
    has_figures: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Pair {
    dialer: String,
    listener: String,
    axes: Vec<(String, String)>,
}

/// Axes of the suites, in the order of names.
const AXES: [&str; 3] = ["transport", "security", "muxer"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Upload,
    Download,
    RoundTrip,
}

/// Figures of a scenario, in bytes per second or in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
struct Figures {
    /// The requested number.
    iterations: Option<f64>,
    min: Option<f64>,
    q1: Option<f64>,
    median: Option<f64>,
    q3: Option<f64>,
    max: Option<f64>,
    outliers: Option<f64>,
    /// In the order of the file, with their positions.
    samples: Vec<(usize, f64)>,
    /// By the positions of the disturbed samples.
    disturbances: BTreeMap<usize, Vec<String>>,
    /// Whether each sample is the median of the iterations of a process, rather than an iteration.
    are_of_processes: bool,
    /// Smallest difference that the file's numbers show.
    resolution: f64,
}

impl Scenario {
    const ALL: [Self; 3] = [Self::Upload, Self::Download, Self::RoundTrip];

    fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::RoundTrip => "round-trip",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::RoundTrip => "latency",
            other => other.name(),
        }
    }

    fn is_rate(self) -> bool {
        self != Self::RoundTrip
    }

    fn unit(self) -> &'static str {
        if self.is_rate() { "B/s" } else { "ns" }
    }

    /// Factor from a unit of the suites to the base unit; none for an unknown one.
    fn factor(self, unit: &str) -> Option<f64> {
        let unit = unit.trim().to_ascii_lowercase();
        let rates =
            [("gbps", 1e9 / 8.0), ("mbps", 1e6 / 8.0), ("kbps", 1e3 / 8.0), ("bps", 1.0 / 8.0), ("bit/s", 1.0 / 8.0)];
        let times = [("s", 1e9), ("seconds", 1e9), ("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("ns", 1.0)];
        let units = if self.is_rate() { &rates[..] } else { &times[..] };
        units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
    }
}

impl Figures {
    fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.median.is_none()
    }

    /// Multiplies all figures; those that are not finite afterwards are dropped.
    fn scaled(self, factor: f64) -> Self {
        let scale = |figure: Option<f64>| figure.map(|figure| figure * factor).filter(|figure| figure.is_finite());
        let samples = self.samples.into_iter().filter_map(|(position, sample)| Some((position, scale(Some(sample))?)));
        Self {
            min: scale(self.min),
            q1: scale(self.q1),
            median: scale(self.median),
            q3: scale(self.q3),
            max: scale(self.max),
            samples: samples.collect(),
            resolution: self.resolution * factor,
            iterations: self.iterations,
            outliers: self.outliers,
            disturbances: self.disturbances,
            are_of_processes: self.are_of_processes,
        }
    }

    fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|(_, value)| *value).collect()
    }
}

impl Pair {
    /// Parses `DIALER x LISTENER (TRANSPORT, SECURITY, MUXER)`.
    fn parse(name: &str) -> Option<Self> {
        let (ids, values) = name.trim().strip_suffix(')')?.rsplit_once(" (")?;
        let (dialer, listener) = ids.split_once(" x ")?;
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        let (dialer, listener) = (dialer.trim().to_owned(), listener.trim().to_owned());
        let is_complete = values.len() <= AXES.len() && !dialer.is_empty() && !listener.is_empty();
        let named = AXES.iter().zip(&values).map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned()));
        let pair = Self { dialer, listener, axes: named.collect() };
        (is_complete && values.first().is_some_and(|transport| !transport.is_empty())).then_some(pair)
    }
}

/// The smallest difference that a number shows as it is written: 0.01 for `8.58`.
fn written_resolution(number: &str) -> f64 {
    let decimals =
        number.split_once('.').map_or(0, |(_, decimals)| decimals.chars().take_while(char::is_ascii_digit).count());
    0.1_f64.powi(decimals.min(18) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_dialer_listener_and_what_they_use() {
        let pair = Pair::parse("rust-v0.56 x dotnet-v1.0 (tcp, noise, yamux)").unwrap();
        assert_eq!((pair.dialer.as_str(), pair.listener.as_str()), ("rust-v0.56", "dotnet-v1.0"));
        let axes = [("transport", "tcp"), ("security", "noise"), ("muxer", "yamux")];
        assert_eq!(pair.axes, axes.map(|(axis, value)| (axis.to_owned(), value.to_owned())));
        assert_eq!(Pair::parse("iperf x iperf (tcp)").unwrap().axes.len(), 1);
        for invalid in ["", "a x b", "a (tcp)", "a x b ()", "a x b (1, 2, 3, 4)", " x b (tcp)", "N/A"] {
            assert_eq!(Pair::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn figures_are_converted_to_base_units() {
        assert_eq!(Scenario::Upload.factor("Gbps"), Some(125e6));
        assert_eq!(Scenario::RoundTrip.factor("ms"), Some(1e6));
        assert_eq!([Scenario::RoundTrip.factor("Gbps"), Scenario::Upload.factor("ms")], [None, None]);
        let figures = Figures { median: Some(1e308), max: Some(2.0), ..Figures::default() };
        assert_eq!(figures.scaled(1e9).median, None);
        assert_eq!([written_resolution("8.58"), written_resolution("87")], [0.1_f64.powi(2), 1.0]);
    }
}
