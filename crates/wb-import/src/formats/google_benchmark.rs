//! Parser of Google Benchmark's report: a cell for each benchmark with its arguments, a sample for each repetition.
//!
//! Aggregates over repetitions are not samples. If a report has only aggregates (`--benchmark_report_aggregates_only`),
//! the median, or else the mean, becomes the only sample, with a finding. A benchmark that is registered twice is two
//! cells. The library's fits of complexity are noted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wb_model::lenient_number::LenientNumber;
use wb_model::secrets::mask_value;
use wb_model::{Gate, Metric};
use wb_test::evaluate::is_plausible;

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::format::{Format, FormatDefinition};
use crate::json::{is_non_finite, to_plain_text};
use crate::naming::valid_name;
use crate::{ReadError, json};

const TEST: &str = "google-benchmark";
const SUMMARY: &str = "the time of functions, as Google Benchmark measured it";

#[derive(Deserialize)]
struct Report {
    context: Context,
    #[serde(deserialize_with = "entries")]
    benchmarks: Vec<Entry>,
}

/// A counter may have the name of a field, which the library writes before it.
fn entries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Entry>, D::Error> {
    let entries = Vec::<FirstOfEach>::deserialize(deserializer)?;
    let entry = |FirstOfEach { fields, repeated }| {
        Ok(Entry { repeated, ..Entry::deserialize(Value::Object(fields)).map_err(D::Error::custom)? })
    };
    entries.into_iter().map(entry).collect()
}

/// An object; of several fields of one name the first counts.
struct FirstOfEach {
    fields: Map<String, Value>,
    /// Names of the further ones.
    repeated: Vec<String>,
}

impl<'de> Deserialize<'de> for FirstOfEach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = FirstOfEach;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a benchmark")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<FirstOfEach, A::Error> {
                let mut all = FirstOfEach { fields: Map::new(), repeated: Vec::new() };
                while let Some((name, value)) = object.next_entry::<String, Value>()? {
                    if all.fields.contains_key(&name) {
                        all.repeated.push(name)
                    } else {
                        drop(all.fields.insert(name, value))
                    }
                }
                Ok(all)
            }
        }
        deserializer.deserialize_map(Fields)
    }
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
    #[serde(flatten)]
    further: BTreeMap<String, Value>,
}

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
    /// Written after the counters.
    label: Option<Value>,
    /// Counters that have the name of a field.
    #[serde(skip)]
    repeated: Vec<String>,
    /// For a fit of complexity: the function of the argument, and the factors before it.
    big_o: Option<Value>,
    #[serde(default)]
    real_coefficient: LenientNumber,
    #[serde(default)]
    cpu_coefficient: LenientNumber,
    /// Root mean square error of a fit, as a share.
    #[serde(default)]
    rms: LenientNumber,
    #[serde(flatten)]
    counters: BTreeMap<String, Value>,
}

/// Standard fields, which are not counters of the benchmark.
const STANDARD_FIELDS: [&str; 4] = ["threads", "skipped", "aggregate_unit", "memory_iterations"];

/// Standard fields of the context, beside which a program may have its own.
const STANDARD_CONTEXT: [&str; 3] = ["caches", "load_avg", "json_schema_version"];

/// Suffixes that mark aggregates in reports of versions before 1.5.
const AGGREGATE_SUFFIXES: [&str; 6] = ["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"];

/// Aggregates that may stand for repetitions.
const MEDIAN: &str = "median";
const MEAN: &str = "mean";

/// Aggregates over the arguments of a benchmark: a function that is fitted to the times, and its error.
const BIG_O: &str = "BigO";
const RMS: &str = "RMS";

pub(crate) const FORMAT: Format = Format::new(&FormatDefinition {
    system_properties: &["host"],
    other_forms: &[
        (&["name,iterations,real_time,cpu_time,time_unit"], "--benchmark_format=json"),
        (&["Benchmark ", " Time ", " CPU ", " Iterations"], "--benchmark_format=json"),
    ],
    ..FormatDefinition::json(
        "google-benchmark",
        1,
        |text| text.contains("\"benchmarks\"") && text.contains("\"context\""),
        |text, _| read(text),
    )
});

fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let Report { context, benchmarks } = json::parse_document(FORMAT, text)?;
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
        let samples =
            repetitions.iter().map(|(position, entry)| entry.sample(*position)).collect::<Result<Vec<_>, _>>()?;
        cell.samples.extend(samples);
        let labels: BTreeSet<&str> =
            repetitions.iter().filter_map(|(_, entry)| entry.label.as_ref()?.as_str()).collect();
        if !labels.is_empty() {
            cell.remarks.insert("label".to_owned(), labels.into_iter().collect::<Vec<_>>().join("; "));
        }
        foreign.add_apart(cell);
    }
    foreign.omitted = complexities(&benchmarks);
    foreign.require_cells("benchmarks")
}

/// Notes on fits of complexity, which are computed from benchmarks that are imported.
fn complexities(benchmarks: &[Entry]) -> Vec<String> {
    let of_kind = |kind| benchmarks.iter().filter(move |entry| entry.aggregate() == Some(kind));
    let describe = |fit: &Entry| {
        let function = fit.big_o.as_ref().and_then(Value::as_str).unwrap_or("?");
        let unit = fit.time_unit.as_deref().unwrap_or("ns");
        let mut figures = Vec::new();
        for (name, factor) in [("real time", fit.real_coefficient), ("CPU time", fit.cpu_coefficient)] {
            figures.extend(factor.0.map(|factor| format!("{name} {factor:.3} {unit} · {function}")));
        }
        let error = of_kind(RMS).find(|error| error.registration() == fit.registration());
        figures.extend(error.and_then(|error| error.rms.0).map(|rms| format!("RMS {:.0} %", 100.0 * rms)));
        format!("`{}`: complexity is computed from the times of other benchmarks: {}", fit.name, figures.join(", "))
    };
    of_kind(BIG_O).map(describe).collect()
}

type Repetitions<'a> = Vec<(usize, &'a Entry)>;

/// Several benchmarks of one name differ in their family, or one follows the other in a merged report.
fn group_repetitions(benchmarks: &[Entry]) -> Result<Vec<Repetitions<'_>>, ReadError> {
    let mut all: Vec<Repetitions<'_>> = Vec::new();
    let mut latest: BTreeMap<Registration<'_>, usize> = BTreeMap::new();
    for (index, entry) in benchmarks.iter().enumerate().filter(|(_, entry)| entry.aggregate().is_none()) {
        let known = latest.get(&entry.registration()).copied();
        match known {
            Some(group) if !entry.follows_whole(index, &all[group])? => all[group].push((index, entry)),
            _ => {
                latest.insert(entry.registration(), all.len());
                all.push(vec![(index, entry)]);
            }
        }
    }
    Ok(all)
}

/// Median of each benchmark of which the report has only aggregates; the mean if it has no median.
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
    /// Returns the executable's name.
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
        for (name, value) in &self.further {
            if !STANDARD_CONTEXT.contains(&name.as_str()) {
                let value = to_plain_text(value);
                let masked = mask_value(name, &value);
                if masked != value {
                    foreign.secrets.push((value, masked.clone()));
                }
                foreign.add_provenance(&format!("context: {name}"), Some(masked));
            }
        }
        let name = Path::new(self.executable.as_ref()?).file_name()?;
        Some(name.to_string_lossy().into_owned())
    }
}

impl Entry {
    /// Name with arguments, without the suffix of an aggregate.
    fn benchmark(&self) -> &str {
        let without_suffix =
            || AGGREGATE_SUFFIXES.iter().find_map(|suffix| self.name.strip_suffix(suffix)).unwrap_or(&self.name);
        self.run_name.as_deref().unwrap_or_else(without_suffix)
    }

    fn registration(&self) -> Registration<'_> {
        (self.benchmark(), self.family_index, self.per_family_instance_index)
    }

    /// Kind of an aggregate, such as `mean`; none for a repetition.
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

    /// Whether the entry is of the next benchmark, after all repetitions of one with the same name and family.
    fn follows_whole(&self, position: usize, repetitions: &Repetitions<'_>) -> Result<bool, ReadError> {
        let Some(index) = self.repetition_index else {
            // Versions before 1.5 do not number repetitions, which follow one another.
            let is_whole = self.repetitions.0.is_some_and(|n| repetitions.len() as f64 >= n);
            return Ok(is_whole || repetitions.last().is_some_and(|(last, _)| last + 1 != position));
        };
        match repetitions.iter().position(|(_, entry)| entry.repetition_index == Some(index)) {
            None => Ok(false),
            Some(0) => Ok(true),
            Some(same) => Err(malformed(format!(
                "benchmarks/{} and benchmarks/{position} are both repetition {index} of `{}`: expected all repetitions of one \
                 benchmark before those of another of the same name",
                repetitions[same].0,
                self.benchmark(),
            ))),
        }
    }

    /// In nanoseconds.
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

    fn sample(&self, position: usize) -> Result<ForeignSample, ReadError> {
        let mut sample = ForeignSample::at(format!("benchmarks/{position}"));
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
        for name in &self.repeated {
            sample
                .findings
                .push(format!("the counter `{name}` has the name of a field of the library: it is left out"));
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
    ReadError::Malformed { format: FORMAT, reason }
}

/// Only the names of custom counters are known, so they have no direction.
fn counter_metric(name: &str) -> Metric {
    match name {
        "bytes_per_second" => Metric::throughput(name, "B/s"),
        "items_per_second" => Metric::throughput(name, "items/s"),
        "allocs_per_iter" => Metric::resource(name, "allocations"),
        "max_bytes_used" | "total_allocated_bytes" | "net_heap_growth" => Metric::resource(name, "B"),
        _ => Metric::check(name, ""),
    }
}

/// `BM_Copy/8/threads:2` is the benchmark `BM_Copy` with the argument 8 and two threads.
fn add_axes(cell: &mut ForeignCell, benchmark: &str) {
    let mut name: Vec<&str> = Vec::new();
    let mut arguments = 0;
    for (index, part) in benchmark.split('/').enumerate() {
        let is_number = |text: &str| text.parse::<f64>().is_ok();
        match part.split_once(':') {
            _ if index == 0 => name.push(part),
            Some((argument, value)) if !argument.is_empty() && is_number(value) => cell.distinct_axis(argument, value),
            None if matches!(part, "real_time" | "manual_time" | "process_time") => cell.distinct_axis(part, true),
            None if is_number(part) => {
                arguments += 1;
                cell.distinct_axis(&format!("argument-{arguments}"), part);
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
        let options = crate::ReadOptions { format: Some(FORMAT), ..Default::default() };
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

    const COMPLEXITY: &str = r#"
        {"name": "BM/8", "family_index": 3, "run_name": "BM/8", "run_type": "iteration", "real_time": 1, "time_unit": "us"},
        {"name": "BM/64", "family_index": 3, "run_name": "BM/64", "run_type": "iteration", "real_time": 9, "time_unit": "us"},
        {"name": "BM_BigO", "family_index": 3, "run_name": "BM", "run_type": "aggregate", "aggregate_name": "BigO",
         "cpu_coefficient": 1.25e-1, "real_coefficient": 1.5e-1, "big_o": "NlgN", "time_unit": "us", "label": "x"},
        {"name": "BM_RMS", "family_index": 3, "run_name": "BM", "run_type": "aggregate", "aggregate_name": "RMS",
         "rms": 3.1e-2}"#;

    #[test]
    fn fits_of_complexity_are_noted_by_name_and_are_no_samples() {
        let without_types = ["iteration", "aggregate"]
            .iter()
            .fold(COMPLEXITY.to_owned(), |text, kind| text.replace(&format!("\"run_type\": \"{kind}\","), ""));
        for text in [COMPLEXITY, &without_types] {
            let foreign = report(text);
            let cases: Vec<String> = foreign.cells.iter().map(|cell| cell.case().to_string()).collect();
            assert_eq!(cases, ["8", "64"].map(|n| format!("argument-1={n},benchmark=BM,executable=bench")), "{text}");
            let expected = "`BM_BigO`: complexity is computed from the times of other benchmarks: real time 0.150 us · NlgN, \
                CPU time 0.125 us · NlgN, RMS 3 %";
            assert_eq!(foreign.omitted, [expected]);
        }
    }

    #[test]
    fn labels_and_the_context_of_a_program_are_circumstances() {
        let label = |label: &str| repetition(&format!(r#", "repetition_index": 0, "label": "{label}""#));
        let text = format!(
            r#"{{"context": {{"compiler": "gcc 12", "api-token": "hunter2", "load_avg": [1.5]}}, "benchmarks": [{}, {}]}}"#,
            label("level 1"),
            label("level 2")
        );
        let (_, foreign) = crate::read(&text, crate::ReadOptions::default()).unwrap();
        let cells: Vec<(String, &str)> =
            foreign.cells.iter().map(|cell| (cell.case().to_string(), cell.remarks["label"].as_str())).collect();
        let case = |number: u32| format!("benchmark=BM,occurrence={number}");
        assert_eq!(cells, [(case(1), "level 1"), (case(2), "level 2")]);
        let context: Vec<(&str, &str)> =
            foreign.provenance.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(context, [("context: api-token", "***"), ("context: compiler", "gcc 12")]);
        assert_eq!(foreign.secrets, [("hunter2".to_owned(), "***".to_owned())]);
    }

    /// The library writes counters of any name beside its own fields.
    #[test]
    fn a_counter_of_the_name_of_a_field_leaves_the_field() {
        for name in ["iterations", "real_time", "cpu_time", "label", "threads", "repetition_index", "rms", "big_o"] {
            let fields = format!(r#", "iterations": 5, "cpu_time": 2, "repetition_index": 0, "{name}": 7e3"#);
            let foreign = report(&repetition(&fields));
            let sample = row(&foreign.cells[0], 0);
            assert_eq!(sample.readings[0].value, 1.0, "{name}");
            let is_repeated = !["label", "threads", "rms", "big_o"].contains(&name);
            assert_eq!(sample.findings.len(), usize::from(is_repeated), "{name}: {sample:?}");
        }
    }

    #[test]
    fn a_failed_benchmark_has_no_figures() {
        let failed = r#"{"name": "BM", "run_type": "iteration", "error_occurred": true, "error_message": "no file",
            "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"}"#;
        assert_eq!(row(&report(failed).cells[0], 0).failure.as_deref(), Some("BM: no file"));
    }

    /// The library writes the arguments, which may have any names, before its own options.
    #[test]
    fn benchmarks_that_differ_in_any_argument_are_different_cells() {
        let names = ["", "x:", "threads:", "real_time:", "executable:", "benchmark:"];
        let mut names_of_case = BTreeMap::<String, String>::new();
        for (one, other) in names.iter().flat_map(|one| names.iter().map(move |other| (one, other))) {
            for (values, options) in
                [([1, 2], ""), ([3, 2], ""), ([1, 7], "/real_time"), ([1, 2], "/real_time/threads:2")]
            {
                let name = format!("BM/{one}{}/{other}{}{options}", values[0], values[1]);
                let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
                cell.axis("executable", "bench");
                add_axes(&mut cell, &name);
                let of_case = names_of_case.entry(cell.case().to_string()).or_insert_with(|| name.clone());
                let sorted = |name: &str| {
                    let mut parts: Vec<String> = name.split('/').map(str::to_owned).collect();
                    parts.sort();
                    parts
                };
                assert_eq!(sorted(of_case), sorted(&name), "{}", cell.case());
            }
        }
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        add_axes(&mut cell, "BM/x:1/x:2/threads:3/threads:4");
        assert_eq!(cell.case().to_string(), "benchmark=BM,threads=3,threads-2=4,x=1,x-2=2");
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
