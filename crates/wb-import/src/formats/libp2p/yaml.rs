//! Parser of `results.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use wb_model::Gate;
use wb_model::lenient_number::LenientNumber;

use super::{AXES, Figures, Pair, Row, Scenario, SuiteResults, written_resolution};
use crate::ReadError;
use crate::json::without_type_names;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultsFile {
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    summary: Option<Summary>,
    #[serde(default)]
    baseline_results: Option<Vec<Entry>>,
    #[serde(default)]
    test_results: Option<Vec<Entry>>,
    /// Only in this program's own files.
    weighbridge: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    #[serde(default)]
    total_baselines: LenientNumber,
    #[serde(default)]
    total_tests: LenientNumber,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    test_pass: LenientText,
    #[serde(default)]
    started_at: LenientText,
    #[serde(default)]
    completed_at: LenientText,
    #[serde(default)]
    duration: LenientText,
    #[serde(default)]
    platform: LenientText,
    #[serde(default)]
    os: LenientText,
    #[serde(default)]
    worker_count: LenientText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    name: LenientText,
    #[serde(default)]
    dialer: LenientText,
    #[serde(default)]
    listener: LenientText,
    #[serde(default)]
    transport: LenientText,
    #[serde(default)]
    secure_channel: LenientText,
    #[serde(default)]
    muxer: LenientText,
    /// Further axes, only in this program's own files.
    #[serde(default)]
    axes: BTreeMap<String, LenientText>,
    #[serde(default)]
    status: LenientText,
    #[serde(default)]
    cause: LenientText,
    /// Failed check of impossible figures, only in this program's own files.
    #[serde(default)]
    gate: LenientText,
    #[serde(default)]
    scenarios: BTreeMap<String, Statistics>,
    /// Median of the iterations of each process, by scenario; likewise.
    #[serde(default)]
    sample_medians: BTreeMap<String, Vec<LenientNumber>>,
    /// Disturbances of processes, by scenario and position among those medians; likewise.
    #[serde(default)]
    disturbances: BTreeMap<String, BTreeMap<usize, Vec<String>>>,
    upload: Option<Statistics>,
    download: Option<Statistics>,
    latency: Option<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(default)]
    iterations: LenientNumber,
    #[serde(default)]
    min: LenientNumber,
    #[serde(default)]
    q1: LenientNumber,
    #[serde(default)]
    median: LenientNumber,
    #[serde(default)]
    q3: LenientNumber,
    #[serde(default)]
    max: LenientNumber,
    #[serde(default)]
    outliers: Outliers,
    samples: Option<Vec<LenientNumber>>,
    /// From the entry.
    #[serde(skip)]
    sample_medians: Option<Vec<LenientNumber>>,
    /// From the entry.
    #[serde(skip)]
    disturbances: BTreeMap<usize, Vec<String>>,
    #[serde(default)]
    unit: LenientText,
}

#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Outliers {
    List(Vec<LenientNumber>),
    Count(f64),
    #[default]
    Unknown,
}

/// A scalar as text; empty for null and everything else.
#[derive(Debug, Default)]
struct LenientText(String);

impl<'de> Deserialize<'de> for LenientText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Number(f64),
            Bool(bool),
            Other(serde::de::IgnoredAny),
        }
        Ok(Self(match Written::deserialize(deserializer)? {
            Written::Text(text) if text != "null" => text,
            Written::Number(number) => number.to_string(),
            Written::Bool(value) => value.to_string(),
            Written::Text(_) | Written::Other(_) => String::new(),
        }))
    }
}

impl LenientText {
    fn known(self) -> Option<String> {
        Some(self.0.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

pub(super) fn is_yaml(text: &str) -> bool {
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    has("testResults:") || has("baselineResults:") || (has("metadata:") && text.contains("totalBaselines:"))
}

pub(super) fn parse(text: &str) -> Result<SuiteResults, ReadError> {
    let malformed = |reason| ReadError::Malformed { format: super::FORMAT, reason };
    let file: ResultsFile = serde_saphyr::from_str(text)
        .map_err(|error| malformed(without_type_names(&error.without_snippet().to_string())))?;
    let is_own = file.weighbridge.is_some();
    let mut results = SuiteResults { is_own, is_partial: is_own, ..SuiteResults::default() };
    if let Some(metadata) = file.metadata {
        let Metadata { test_pass, started_at, completed_at, duration, platform, os, worker_count } = metadata;
        let named = [
            ("test pass", test_pass),
            ("measured at", started_at),
            ("completed at", completed_at),
            ("duration", duration),
            ("platform", platform),
            ("operating system", os),
            ("workers", worker_count),
        ];
        results.provenance = named.into_iter().filter_map(|(name, text)| Some((name, text.known()?))).collect();
    }
    let resolution = Resolution::new(text);
    let (baselines, tests) = (file.baseline_results.unwrap_or_default(), file.test_results.unwrap_or_default());
    if let Some(summary) = file.summary {
        for (key, total, count) in
            [("baselines", summary.total_baselines.0, baselines.len()), ("tests", summary.total_tests.0, tests.len())]
        {
            if total.is_some_and(|total| total != count as f64) {
                let total = total.unwrap_or_default();
                return Err(malformed(format!("{count} of {total} {key}: the file may be truncated")));
            }
        }
    }
    for (key, entries) in [("baselineResults", baselines), ("testResults", tests)] {
        for (index, entry) in entries.into_iter().enumerate() {
            let Some(row) = row(entry, format!("{key}/{index}"), resolution, &mut results.notes) else { continue };
            let rows = if key == "testResults" { &mut results.tests } else { &mut results.baselines };
            rows.push(row);
        }
    }
    Ok(results)
}

/// In which a file writes rates and latencies.
#[derive(Clone, Copy)]
struct Resolution {
    rate: f64,
    latency: f64,
}

impl Resolution {
    /// Finest resolution of the medians, by the scenario that they follow.
    fn new(text: &str) -> Self {
        let mut found = Self { rate: 1.0, latency: 1.0 };
        let mut is_latency = false;
        for line in text.lines().map(str::trim) {
            match line.split_once(':') {
                Some(("latency", _)) => is_latency = true,
                Some(("upload" | "download", _)) => is_latency = false,
                Some(("min" | "q1" | "median" | "q3" | "max", number)) => {
                    let finest = if is_latency { &mut found.latency } else { &mut found.rate };
                    *finest = finest.min(written_resolution(number.trim()));
                }
                _ => {}
            }
        }
        found
    }
}

/// The row of an entry; none, with a note, without a pair.
fn row(entry: Entry, location: String, resolution: Resolution, notes: &mut Vec<String>) -> Option<Row> {
    let Entry {
        name,
        dialer,
        listener,
        transport,
        secure_channel,
        muxer,
        axes,
        status,
        cause,
        gate,
        scenarios,
        mut sample_medians,
        mut disturbances,
        ..
    } = entry;
    let (upload, download, latency) = (entry.upload, entry.download, entry.latency);
    let name = name.known();
    let of_suite = AXES.map(str::to_owned).into_iter().zip([transport, secure_channel, muxer]);
    let axes: Vec<(String, String)> =
        of_suite.chain(axes).filter_map(|(axis, value)| Some((axis, value.known()?))).collect();
    let pair = match dialer.known().zip(listener.known()) {
        Some((dialer, listener)) if !axes.is_empty() => Some(Pair { dialer, listener, axes }),
        _ => name.as_deref().and_then(Pair::parse),
    };
    let Some(pair) = pair else {
        notes.push(format!("{location}: no dialer, listener and transport"));
        return None;
    };
    let name = name.unwrap_or_else(|| {
        let values: Vec<&str> = pair.axes.iter().map(|(_, value)| value.as_str()).collect();
        format!("{} x {} ({})", pair.dialer, pair.listener, values.join(", "))
    });
    let mut figures = |scenario: Scenario, name: &str, statistics: Option<Statistics>| {
        let statistics = Statistics {
            sample_medians: sample_medians.remove(name),
            disturbances: disturbances.remove(name).unwrap_or_default(),
            ..statistics?
        };
        let usual = if scenario.is_rate() { "Gbps" } else { "ms" };
        let unit = if statistics.unit.0.is_empty() { usual } else { &statistics.unit.0 };
        let Some(factor) = scenario.factor(unit) else {
            notes.push(format!("{location}/{}: unknown unit `{unit}`", scenario.key()));
            return None;
        };
        let resolution = if scenario.is_rate() { resolution.rate } else { resolution.latency };
        Some(statistics.figures(resolution).scaled(factor)).filter(|figures| !figures.is_empty())
    };
    let further: Vec<(String, bool, Figures)> = scenarios
        .into_iter()
        .filter_map(|(name, statistics)| {
            let scenario = [Scenario::Upload, Scenario::RoundTrip]
                .into_iter()
                .find(|scenario| scenario.factor(&statistics.unit.0).is_some())?;
            let of_name = figures(scenario, &name, Some(statistics))?;
            Some((name, scenario.is_rate(), of_name))
        })
        .collect();
    let figures = [
        figures(Scenario::Upload, "upload", upload),
        figures(Scenario::Download, "download", download),
        figures(Scenario::RoundTrip, "latency", latency),
    ];
    let gate = gate.known().and_then(|gate| Gate::ALL.into_iter().find(|one| one.to_string() == gate));
    let (status, cause) = (status.known(), cause.known());
    Some(Row { location, name, pair, status, cause, gate, further, figures, has_figures: true })
}

impl Statistics {
    fn figures(self, resolution: f64) -> Figures {
        let positioned = |samples: Vec<LenientNumber>| {
            samples.into_iter().enumerate().filter_map(|(index, sample)| Some((index, sample.0?))).collect()
        };
        if let Some(medians) = self.sample_medians {
            // Its other statistics are those of iterations.
            let (samples, disturbances) = (positioned(medians), self.disturbances);
            return Figures { samples, disturbances, are_of_processes: true, resolution, ..Figures::default() };
        }
        Figures {
            iterations: self.iterations.0,
            min: self.min.0,
            q1: self.q1.0,
            median: self.median.0,
            q3: self.q3.0,
            max: self.max.0,
            outliers: match self.outliers {
                Outliers::List(list) => Some(list.len() as f64),
                Outliers::Count(count) => Some(count).filter(|count| count.is_finite()),
                Outliers::Unknown => None,
            },
            samples: positioned(self.samples.unwrap_or_default()),
            disturbances: BTreeMap::new(),
            are_of_processes: false,
            resolution,
        }
    }
}
