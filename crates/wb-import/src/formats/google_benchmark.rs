//! Parser of Google Benchmark's report: a cell for each benchmark with its arguments, a sample for each repetition.
//!
//! Aggregates over repetitions are not samples. If a report has only aggregates (`--benchmark_report_aggregates_only`),
//! the median, or else the mean, becomes the only sample, with a finding. A benchmark that is registered twice is two
//! cells.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use wb_model::{Gate, Metric};
use wb_tests::evaluate::is_plausible;

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::json::{LenientNumber, is_non_finite};
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
    #[serde(default)]
    num_cpus: LenientNumber,
    #[serde(default)]
    mhz_per_cpu: LenientNumber,
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
    family_index: Option<u64>,
    per_family_instance_index: Option<u64>,
    repetition_index: Option<u64>,
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
const STANDARD_FIELDS: [&str; 5] = ["threads", "label", "skipped", "aggregate_unit", "memory_iterations"];

/// Suffixes that mark aggregates in reports of versions before 1.5.
const AGGREGATE_SUFFIXES: [&str; 6] = ["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"];

/// Aggregates that may stand for repetitions.
const MEDIAN: &str = "median";
const MEAN: &str = "mean";

/// Parses a report.
pub(crate) fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let Report { context, benchmarks } = json::parse_document(Format::GoogleBenchmark, text)?;
    let mut foreign = ForeignResults::default();
    let executable = context.describe(&mut foreign);
    let mut all = group_repetitions(&benchmarks)?;
    all.extend(only_aggregates(&benchmarks));
    all.sort_by_key(|repetitions| repetitions[0].0);
    for repetitions in all {
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        if let Some(executable) = &executable {
            cell.axis("executable", executable);
        }
        add_axes(&mut cell, repetitions[0].1.benchmark());
        let samples = repetitions.iter().map(|(at, entry)| entry.sample(*at)).collect::<Result<Vec<_>, _>>()?;
        cell.samples.extend(samples);
        foreign.add_apart(cell);
    }
    foreign.require_cells("benchmarks")
}

/// Entries of one benchmark, with their positions in the report.
type Repetitions<'a> = Vec<(usize, &'a Entry)>;

/// Groups the repetitions of each benchmark. Several benchmarks of one name differ in their family, or one follows the
/// other in a merged report.
fn group_repetitions(benchmarks: &[Entry]) -> Result<Vec<Repetitions<'_>>, ReadError> {
    let mut all: Vec<Repetitions<'_>> = Vec::new();
    let mut latest: BTreeMap<Registration<'_>, usize> = BTreeMap::new();
    for (at, entry) in benchmarks.iter().enumerate().filter(|(_, entry)| entry.aggregate().is_none()) {
        let known = latest.get(&entry.registration()).copied();
        match known {
            Some(group) if !entry.follows_whole(at, &all[group])? => all[group].push((at, entry)),
            _ => {
                latest.insert(entry.registration(), all.len());
                all.push(vec![(at, entry)]);
            }
        }
    }
    Ok(all)
}

/// The median of each benchmark of which the report has only aggregates; the mean if it has no median.
fn only_aggregates(benchmarks: &[Entry]) -> Vec<Repetitions<'_>> {
    let of = |kind: Option<&str>| -> BTreeSet<Registration<'_>> {
        benchmarks.iter().filter(|entry| entry.aggregate() == kind).map(Entry::registration).collect()
    };
    let (measured, with_median) = (of(None), of(Some(MEDIAN)));
    let is_only_sample = |entry: &Entry| match entry.aggregate() {
        Some(MEDIAN) => true,
        Some(MEAN) => !with_median.contains(&entry.registration()),
        _ => false,
    };
    let entries = benchmarks.iter().enumerate();
    let entries = entries.filter(|(_, entry)| is_only_sample(entry) && !measured.contains(&entry.registration()));
    entries.map(|entry| vec![entry]).collect()
}

/// What distinguishes registered benchmarks: the name, the family, and the instance in the family.
type Registration<'a> = (&'a str, Option<u64>, Option<u64>);

impl Context {
    /// Adds the description of the machine, and returns the executable's name.
    fn describe(&self, foreign: &mut ForeignResults) -> Option<String> {
        foreign.machine.facts.hostname = self.host_name.clone().unwrap_or_default();
        foreign.add_provenance("host", self.host_name.as_ref());
        foreign.add_provenance("measured at", self.date.as_ref());
        foreign.add_provenance("executable", self.executable.as_ref());
        foreign.add_provenance("CPUs", self.num_cpus.0);
        foreign.add_provenance("CPU frequency", self.mhz_per_cpu.0.map(|mhz| format!("{mhz} MHz")));
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

    fn registration(&self) -> Registration<'_> {
        (self.benchmark(), self.family_index, self.per_family_instance_index)
    }

    /// Kind of an aggregate, such as `mean`; none of a repetition.
    fn aggregate(&self) -> Option<&str> {
        let by_suffix = || {
            let suffix = AGGREGATE_SUFFIXES.iter().find(|suffix| self.name.ends_with(**suffix));
            suffix.map(|suffix| suffix.trim_start_matches('_'))
        };
        match self.run_type.as_deref() {
            Some("aggregate") => self.aggregate_name.as_deref().or_else(by_suffix).or(Some("")),
            Some(_) => None,
            None => by_suffix(),
        }
    }

    /// Whether it is of the next benchmark, after all repetitions of one with the same name and family.
    fn follows_whole(&self, at: usize, repetitions: &Repetitions<'_>) -> Result<bool, ReadError> {
        let Some(index) = self.repetition_index else {
            // Versions before 1.5 do not number repetitions, which follow one another.
            let is_whole = self.repetitions.0.is_some_and(|n| repetitions.len() as f64 >= n);
            return Ok(is_whole || repetitions.last().is_some_and(|(last, _)| last + 1 != at));
        };
        match repetitions.iter().position(|(_, entry)| entry.repetition_index == Some(index)) {
            None => Ok(false),
            Some(0) => Ok(true),
            Some(same) => Err(malformed(format!(
                "benchmarks/{} and benchmarks/{at} are both repetition {index} of `{}`: expected all repetitions of one \
                 benchmark before those of another of the same name",
                repetitions[same].0,
                self.benchmark(),
            ))),
        }
    }

    /// Nanoseconds of its unit of time.
    fn time_unit(&self) -> Result<f64, ReadError> {
        match self.time_unit.as_deref() {
            None | Some("ns") => Ok(1.0),
            Some("us") => Ok(1e3),
            Some("ms") => Ok(1e6),
            Some("s") => Ok(1e9),
            Some(unknown) => Err(malformed(format!(
                "benchmark `{}`: unknown time unit `{unknown}`: expected ns, us, ms or s",
                self.benchmark()
            ))),
        }
    }

    fn sample(&self, at: usize) -> Result<ForeignSample, ReadError> {
        let mut sample = ForeignSample::at(format!("benchmarks/{at}"));
        let message = self.error_message.as_ref().or(self.skip_message.as_ref());
        if self.error_occurred || message.is_some() {
            let message = message.map_or("error without a message", String::as_str);
            sample.failure = Some(format!("{}: {message}", self.name));
            return Ok(sample);
        }
        let nanos = self.time_unit()?;
        let time = |time: LenientNumber| time.0.map(|time| time * nanos);
        let real = time(self.real_time);
        if real.is_none() {
            sample.reject(Gate::Output, "missing or invalid `real_time`: expected a number");
        }
        sample.push_reading(Metric::latency("real-time", "ns").primary(), real);
        sample.push_reading(Metric::latency("cpu-time", "ns"), time(self.cpu_time));
        for (name, value) in self.counters.iter().filter(|(name, _)| !STANDARD_FIELDS.contains(&name.as_str())) {
            let metric = counter_metric(name);
            // A counter is no reason to leave the time out.
            match value.as_f64() {
                Some(value) if !is_plausible(&metric, value) => {
                    sample.findings.push(format!("`{name}` is {value:e}: no plausible value, left out"));
                }
                value => sample.push_reading(metric, value),
            }
            if let Some(text) = value.as_str().filter(|text| is_non_finite(text)) {
                sample.findings.push(format!("`{name}` is {text}: expected a finite number"));
            }
        }
        sample.seconds = real.zip(self.iterations.0).map(|(nanos, iterations)| nanos * iterations / 1e9);
        if let Some(kind) = self.aggregate() {
            let n = self.repetitions.0.map_or_else(|| "all".to_owned(), |n| n.to_string());
            let finding = format!("the only sample is the {kind} of {n} repetitions: the file has no repetitions");
            sample.findings.push(finding);
        }
        Ok(sample)
    }
}

fn malformed(reason: String) -> ReadError {
    ReadError::Malformed { format: Format::GoogleBenchmark, reason }
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
        assert_eq!(foreign.machine.facts.hostname, "vm");
    }

    #[test]
    fn an_implausible_counter_leaves_the_time() {
        for (name, value) in [("big", "9.99e299"), ("bytes_per_second", "-1"), ("hits", "-1e101")] {
            let foreign = report(
                &TWICE
                    .replace("\"hits\": 7", &format!("\"hits\": 7, \"x\": 1, \"{name}\": {value}"))
                    .replace("\"bytes_per_second\": 4e9, \"hits\": 7, \"x\"", "\"x\""),
            );
            let sample = row(&foreign.cells[0], 0);
            let names: Vec<&str> = sample.readings.iter().map(|reading| reading.metric.name.as_str()).collect();
            assert_eq!(names, ["real-time", "cpu-time", "x"], "{name}");
            assert!(
                sample.rejection.is_none()
                    && sample.findings[0].starts_with(&format!("`{name}` is -")) == value.starts_with('-')
            );
        }
    }

    #[test]
    fn the_median_is_the_sample_if_there_are_only_aggregates() {
        let median = r#"{"name": "BM_median", "run_name": "BM", "run_type": "aggregate", "aggregate_name": "median",
            "repetitions": 5, "real_time": 3, "cpu_time": 3, "time_unit": "ns"}"#;
        let foreign = report(&format!("{median}, {}", median.replace("median", "cv")));
        assert_eq!((foreign.cells.len(), foreign.cells[0].samples.count), (1, 1));
        assert!(row(&foreign.cells[0], 0).findings[0].contains("median of 5"), "{foreign:?}");
    }

    /// A repetition of `BM`, with these further fields.
    fn repetition(fields: &str) -> String {
        format!(r#"{{"name": "BM", "run_type": "iteration", "real_time": 1, "time_unit": "ns"{fields}}}"#)
    }

    fn reread(benchmarks: &[String]) -> Result<Vec<(String, u32)>, String> {
        let text = format!(r#"{{"context": {{}}, "benchmarks": [{}]}}"#, benchmarks.join(","));
        let options = crate::ReadOptions { format: Some(Format::GoogleBenchmark), ..Default::default() };
        let cells = crate::read(&text, options).map_err(|error| error.to_string())?.1.cells;
        Ok(cells.iter().map(|cell| (cell.case().to_string(), cell.samples.count)).collect())
    }

    #[test]
    fn benchmarks_of_one_name_are_cells_apart() {
        let family =
            |family: u64, n: u64| repetition(&format!(r#", "family_index": {family}, "repetition_index": {n}"#));
        let numbered = |n: u64| repetition(&format!(r#", "repetition_index": {n}"#));
        let single = || repetition(r#", "repetitions": 1"#);
        let mean = || r#"{"name": "BM_mean", "real_time": 1, "time_unit": "ns"}"#.to_owned();
        let other = || repetition("").replace("BM", "other");
        for (name, benchmarks, samples) in [
            ("families", vec![family(0, 0), family(0, 1), family(1, 0), family(1, 1)], [2, 2]),
            ("interleaved families", vec![family(0, 0), family(1, 0), family(0, 1), family(1, 1)], [2, 2]),
            ("merged reports", vec![numbered(0), numbered(1), numbered(0), numbered(1)], [2, 2]),
            ("single repetitions", vec![single(), single()], [1, 1]),
            ("aggregates between", vec![repetition(""), repetition(""), mean(), repetition("")], [2, 1]),
            ("another between", vec![repetition(""), repetition(""), other(), repetition("")], [2, 1]),
        ] {
            let mut cells = reread(&benchmarks).unwrap();
            cells.retain(|(case, _)| !case.contains("other"));
            let expected = [(1, samples[0]), (2, samples[1])]
                .map(|(number, samples)| (format!("benchmark=BM,occurrence={number}"), samples));
            assert_eq!(cells, expected, "{name}");
        }
        assert_eq!(reread(&[repetition(""), repetition("")]).unwrap(), [("benchmark=BM".to_owned(), 2)]);
        assert_eq!(reread(&[numbered(1), numbered(0)]).unwrap(), [("benchmark=BM".to_owned(), 2)]);
    }

    #[test]
    fn indistinguishable_repetitions_are_refused_with_both_positions() {
        let numbered = [0, 0, 1, 1].map(|n| repetition(&format!(r#", "repetition_index": {n}"#)));
        let error = reread(&numbered).unwrap_err();
        assert!(error.contains("benchmarks/2 and benchmarks/3 are both repetition 1 of `BM`"), "{error}");
    }

    #[test]
    fn an_unknown_unit_of_time_is_an_error() {
        for unit in ["min", "", "Ns"] {
            let error = reread(&[repetition("").replace("\"ns\"", &format!("{unit:?}"))]).unwrap_err();
            assert!(error.ends_with(&format!("unknown time unit `{unit}`: expected ns, us, ms or s")), "{error}");
        }
        for unit in ["ns", "us", "ms", "s"] {
            reread(&[repetition("").replace("\"ns\"", &format!("{unit:?}"))]).unwrap();
        }
    }

    #[test]
    fn a_mean_alone_is_the_sample() {
        for fields in [r#""run_name": "BM", "run_type": "aggregate", "aggregate_name": "mean", "repetitions": 3,"#, ""]
        {
            let foreign = report(&format!(r#"{{"name": "BM_mean", {fields} "real_time": 3, "time_unit": "ns"}}"#));
            assert_eq!((foreign.cells.len(), foreign.cells[0].samples.count), (1, 1));
            let findings = row(&foreign.cells[0], 0).findings;
            assert!(findings[0].starts_with("the only sample is the mean of "), "{findings:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_finite_is_no_figure_of_one_metric() {
        for value in ["NaN", "nan", "-nan", "Infinity", "-Infinity", "inf", "-inf"] {
            let foreign = report(&repetition(&format!(r#", "hits": {value}, "other": 7"#)));
            let sample = row(&foreign.cells[0], 0);
            let names: Vec<&str> = sample.readings.iter().map(|reading| reading.metric.name.as_str()).collect();
            assert_eq!((names, sample.rejection), (vec!["real-time", "other"], None), "{value}");
            assert_eq!(sample.findings, [format!("`hits` is {value}: expected a finite number")]);
            let foreign = report(
                &repetition(r#", "cpu_time": 1"#).replace("\"real_time\": 1", &format!("\"real_time\": {value}")),
            );
            assert!(row(&foreign.cells[0], 0).rejection.is_some(), "{value}");
        }
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
