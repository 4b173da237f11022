//! Parser of Google Benchmark's report: a cell for each benchmark with its arguments, a sample for each repetition.
//!
//! Aggregates over repetitions are not samples. If a report has only aggregates (`--benchmark_report_aggregates_only`),
//! the median becomes the only sample, with a finding.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use wb_model::Metric;

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::json::LenientNumber;
use crate::naming::valid_name;
use crate::{Format, ReadError, json};

const TEST: &str = "google-benchmark";
const SUMMARY: &str = "the time of functions, as Google Benchmark measured it";

#[derive(Deserialize)]
struct Report {
    context: Context,
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Context {
    date: Option<String>,
    host_name: Option<String>,
    executable: Option<String>,
    num_cpus: Option<u32>,
    mhz_per_cpu: Option<f64>,
    cpu_scaling_enabled: Option<bool>,
    aslr_enabled: Option<bool>,
    library_version: Option<String>,
    library_build_type: Option<String>,
}

/// A repetition, or an aggregate over repetitions.
#[derive(Deserialize)]
struct Entry {
    name: String,
    run_name: Option<String>,
    run_type: Option<String>,
    aggregate_name: Option<String>,
    #[serde(default)]
    repetitions: LenientNumber,
    #[serde(default)]
    iterations: LenientNumber,
    #[serde(default)]
    real_time: LenientNumber,
    #[serde(default)]
    cpu_time: LenientNumber,
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    error_message: Option<String>,
    skip_message: Option<String>,
    #[serde(flatten)]
    counters: BTreeMap<String, Value>,
}

/// Standard fields, which are not counters of the benchmark.
const STANDARD_FIELDS: [&str; 8] = [
    "family_index",
    "per_family_instance_index",
    "repetition_index",
    "threads",
    "label",
    "skipped",
    "aggregate_unit",
    "memory_iterations",
];

/// Suffixes that mark aggregates in reports of versions before 1.5.
const AGGREGATE_SUFFIXES: [&str; 6] = ["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"];

/// Parses a report.
pub(crate) fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let Report { context, benchmarks } = json::parse_document(Format::GoogleBenchmark, text)?;
    let mut foreign = ForeignResults::default();
    let executable = context.describe(&mut foreign);
    let with_repetitions: BTreeSet<&str> =
        benchmarks.iter().filter(|entry| !entry.is_aggregate()).map(Entry::benchmark).collect();
    for (at, entry) in benchmarks.iter().enumerate() {
        let is_only_sample =
            entry.aggregate_name.as_deref() == Some("median") && !with_repetitions.contains(entry.benchmark());
        if entry.is_aggregate() && !is_only_sample {
            continue;
        }
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        if let Some(executable) = &executable {
            cell.axis("executable", executable);
        }
        add_axes(&mut cell, entry.benchmark());
        let mut sample = entry.sample(at);
        if is_only_sample {
            let n = entry.repetitions.0.map_or_else(|| "all".to_owned(), |n| n.to_string());
            sample
                .findings
                .push(format!("the only sample is the median of {n} repetitions: the file has no repetitions"));
        }
        cell.samples.extend([sample]);
        foreign.add(cell);
    }
    foreign.require_cells("benchmarks")
}

impl Context {
    /// Adds the description of the machine, and returns the executable's name.
    fn describe(&self, foreign: &mut ForeignResults) -> Option<String> {
        foreign.machine.hostname = self.host_name.clone().unwrap_or_default();
        foreign.add_provenance("host", self.host_name.as_ref());
        foreign.add_provenance("measured at", self.date.as_ref());
        foreign.add_provenance("executable", self.executable.as_ref());
        foreign.add_provenance("CPUs", self.num_cpus);
        foreign.add_provenance("CPU frequency", self.mhz_per_cpu.map(|mhz| format!("{mhz} MHz")));
        foreign.add_provenance("CPU frequency scaling", self.cpu_scaling_enabled);
        foreign.add_provenance("address-space randomisation", self.aslr_enabled);
        foreign.add_provenance("benchmark library", self.library_version.as_ref());
        foreign.add_provenance("benchmark library's build", self.library_build_type.as_ref());
        let name = Path::new(self.executable.as_ref()?).file_name()?;
        Some(name.to_string_lossy().into_owned())
    }
}

impl Entry {
    /// Name of the benchmark with its arguments, without the suffix of an aggregate.
    fn benchmark(&self) -> &str {
        let without_suffix =
            || AGGREGATE_SUFFIXES.iter().find_map(|suffix| self.name.strip_suffix(suffix)).unwrap_or(&self.name);
        self.run_name.as_deref().unwrap_or_else(without_suffix)
    }

    fn is_aggregate(&self) -> bool {
        match self.run_type.as_deref() {
            Some(kind) => kind == "aggregate",
            None => AGGREGATE_SUFFIXES.iter().any(|suffix| self.name.ends_with(suffix)),
        }
    }

    fn sample(&self, at: usize) -> ForeignSample {
        let mut sample = ForeignSample::at(format!("benchmarks/{at}"));
        let message = self.error_message.as_ref().or(self.skip_message.as_ref());
        if self.error_occurred || message.is_some() {
            let message = message.map_or("error without a message", String::as_str);
            sample.failure = Some(format!("{}: {message}", self.name));
            return sample;
        }
        let nanos = match self.time_unit.as_deref() {
            Some("us") => 1e3,
            Some("ms") => 1e6,
            Some("s") => 1e9,
            _ => 1.0,
        };
        let time = |time: LenientNumber| time.0.map(|time| time * nanos);
        let real = time(self.real_time);
        sample.push_reading(Metric::latency("real-time", "ns").primary(), real);
        sample.push_reading(Metric::latency("cpu-time", "ns"), time(self.cpu_time));
        for (name, value) in &self.counters {
            if !STANDARD_FIELDS.contains(&name.as_str()) {
                sample.push_reading(counter_metric(name), value.as_f64());
            }
        }
        sample.seconds = real.zip(self.iterations.0).map(|(nanos, iterations)| nanos * iterations / 1e9);
        sample
    }
}

/// Metric of a counter. Only the names of custom counters are known, so they have no direction.
fn counter_metric(name: &str) -> Metric {
    match name {
        "bytes_per_second" => Metric::throughput(name, "B/s"),
        "items_per_second" => Metric::throughput(name, "items/s"),
        "allocs_per_iter" => Metric::resource(name, "allocations"),
        "max_bytes_used" | "total_allocated_bytes" | "net_heap_growth" => Metric::resource(name, "B"),
        _ => Metric::check(name, ""),
    }
}

/// Adds the axes in a benchmark's name: `BM_Copy/8/threads:2` is the benchmark `BM_Copy` with the argument 8 and two
/// threads.
fn add_axes(cell: &mut ForeignCell, benchmark: &str) {
    let mut name: Vec<&str> = Vec::new();
    let mut arguments = 0;
    for (at, part) in benchmark.split('/').enumerate() {
        let is_number = |text: &str| text.parse::<f64>().is_ok();
        match part.split_once(':') {
            _ if at == 0 => name.push(part),
            Some((argument, value)) if !argument.is_empty() && is_number(value) => cell.axis(argument, value),
            None if matches!(part, "real_time" | "manual_time" | "process_time") => cell.axis(part, true),
            None if is_number(part) => {
                arguments += 1;
                cell.axis(&format!("argument-{arguments}"), part);
            }
            // Methods of fixtures and arguments of templates may contain slashes and colons.
            _ => name.push(part),
        }
    }
    cell.own_axis("benchmark", name.join("/"));
}

#[cfg(test)]
mod tests {
    use wb_model::{Class, Direction};

    use super::*;
    use crate::foreign::row;

    fn report(benchmarks: &str) -> ForeignResults {
        let context = r#"{"host_name": "vm", "executable": "./build/bench", "num_cpus": 2}"#;
        read(&format!("{{\"context\": {context}, \"benchmarks\": [{benchmarks}]}}")).unwrap()
    }

    const TWICE: &str = r#"
        {"name": "BM_Copy/8", "run_name": "BM_Copy/8", "run_type": "iteration", "repetition_index": 0, "threads": 1,
         "iterations": 1000, "real_time": 2.0, "cpu_time": 1.9, "time_unit": "us", "bytes_per_second": 4e9, "hits": 7},
        {"name": "BM_Copy/8", "run_name": "BM_Copy/8", "run_type": "iteration", "repetition_index": 1, "threads": 1,
         "iterations": 1000, "real_time": 2.2, "cpu_time": 2.1, "time_unit": "us", "bytes_per_second": 3e9, "hits": 8},
        {"name": "BM_Copy/8_mean", "run_name": "BM_Copy/8", "run_type": "aggregate", "aggregate_name": "mean",
         "iterations": 2, "real_time": 2.1, "cpu_time": 2.0, "time_unit": "us"}"#;

    #[test]
    fn repetitions_are_samples_and_aggregates_are_not() {
        let foreign = report(TWICE);
        let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!(cell.samples.count, 2);
        let value = |name: &str| {
            let reading = row(cell, 1).readings.into_iter().find(|reading| reading.metric.name == name).unwrap();
            (reading.value, reading.metric.class, reading.metric.direction)
        };
        assert_eq!(value("real-time"), (2200.0, Class::Latency, Direction::Lower));
        assert_eq!(value("bytes_per_second"), (3e9, Class::Throughput, Direction::Higher));
        assert_eq!(value("hits"), (8.0, Class::Check, Direction::Neither));
        assert_eq!(row(cell, 0).readings.len(), 4);
        assert_eq!(foreign.machine.hostname, "vm");
    }

    #[test]
    fn the_median_is_the_sample_if_there_are_only_aggregates() {
        let median = r#"{"name": "BM_median", "run_name": "BM", "run_type": "aggregate", "aggregate_name": "median",
            "repetitions": 5, "real_time": 3, "cpu_time": 3, "time_unit": "ns"}"#;
        let foreign = report(&format!("{median}, {}", median.replace("median", "cv")));
        assert_eq!((foreign.cells.len(), foreign.cells[0].samples.count), (1, 1));
        assert!(row(&foreign.cells[0], 0).findings[0].contains("median of 5"), "{foreign:?}");
    }

    #[test]
    fn a_failed_benchmark_has_no_figures() {
        let failed = r#"{"name": "BM", "run_type": "iteration", "error_occurred": true, "error_message": "no file",
            "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"}"#;
        assert_eq!(row(&report(failed).cells[0], 0).failure.as_deref(), Some("BM: no file"));
    }

    #[test]
    fn names_are_split_into_axes() {
        let axes_of = |name: &str| {
            let mut cell = ForeignCell::new(valid_name(TEST), "");
            add_axes(&mut cell, name);
            cell.params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(axes_of("BM_Copy/8/64/threads:2"), "argument-1=8 argument-2=64 benchmark=BM_Copy threads=2");
        assert_eq!(axes_of("Fixture/Method/size:8/real_time"), "benchmark=Fixture/Method real_time=true size=8");
        assert_eq!(axes_of("BM<std::pair<int, a::b>>/3"), "argument-1=3 benchmark=BM<std::pair<int, a::b>>");
    }
}
