//! Parser of pbench's `result.json`: a cell for each iteration, with pbench's samples. Metrics have the values over all
//! clients; the time series of a sample is ignored.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use wb_model::lenient_number::LenientNumber;
use wb_model::pbench::{ALL_CLIENTS, is_failed_iteration, quote_non_finite};
use wb_model::{Class, Direction, Metric, ProfileName, TestName};

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::format::{Format, FormatDefinition};
use crate::json::to_plain_text;
use crate::naming::{mask_secrets, slug, test_name};
use crate::{ReadError, json};

#[derive(Deserialize)]
struct Iteration {
    iteration_name: Option<String>,
    iteration_data: Option<IterationData>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IterationData {
    parameters: Parameters,
    throughput: BTreeMap<String, Vec<Client>>,
    latency: BTreeMap<String, Vec<Client>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters {
    benchmark: Vec<BTreeMap<String, Value>>,
    user: Vec<BTreeMap<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Client {
    client_hostname: Option<Value>,
    mean: LenientNumber,
    /// In percent of the mean.
    stddevpct: LenientNumber,
    samples: Option<Vec<SampleValue>>,
}

#[derive(Deserialize)]
struct SampleValue {
    #[serde(default)]
    value: LenientNumber,
}

/// Parameters that do not define a cell: names and evaluation of results, and machines.
const NON_DEFINING_PARAMETERS: [&str; 12] = [
    "uid",
    "primary_metric",
    "max_stddevpct",
    "max_failures",
    "controller_host",
    "clients",
    "servers",
    "client",
    "server",
    "client_hostname",
    "server_hostname",
    "description",
];

pub(crate) const FORMAT: Format = Format::new(&FormatDefinition {
    opening: '[',
    ..FormatDefinition::json(
        "pbench",
        2,
        |text| text.contains("\"iteration_name\"") || text.contains("\"iteration_data\""),
        |text, options| read(text, options.include_incorrect),
    )
});

/// Parses a file; failed iterations (`NAME-failN`) are skipped unless incorrect ones are requested.
fn read(text: &str, include_incorrect: bool) -> Result<ForeignResults, ReadError> {
    let quoted = quote_non_finite(text);
    let iterations: Vec<Iteration> = json::parse_document(FORMAT, &quoted)?;
    let mut foreign = ForeignResults::default();
    if quoted != text {
        foreign.notes.push("values that are not finite (`NaN`, `Infinity`)".to_owned());
    }
    let names: BTreeSet<&str> = iterations.iter().filter_map(|iteration| iteration.iteration_name.as_deref()).collect();
    for (index, iteration) in iterations.iter().enumerate() {
        let (Some(name), Some(data)) = (&iteration.iteration_name, &iteration.iteration_data) else {
            foreign.notes.push(format!("iteration {index}: incomplete"));
            continue;
        };
        let is_repeated = is_failed_iteration(name)
            && name.rsplit_once("-fail").is_some_and(|(repeated, _)| names.contains(repeated));
        let note = |foreign: &mut ForeignResults, reason: &str| {
            let notes = if is_repeated { &mut foreign.omitted } else { &mut foreign.notes };
            notes.push(format!("iteration `{name}`: {reason}"));
        };
        if is_failed_iteration(name) && !include_incorrect {
            note(&mut foreign, "failed");
            continue;
        }
        data.describe_run(&mut foreign);
        let mut cell = data.cell(name);
        cell.samples = data.samples(index).into_iter().collect();
        if cell.samples.count == 0 {
            note(&mut foreign, "no value over all clients");
            continue;
        }
        foreign.add(cell);
    }
    foreign.require_cells("iterations")
}

pub(crate) fn test(benchmark: &str) -> (TestName, String) {
    (test_name("pbench", benchmark), format!("{}, as pbench measured it", slug(benchmark)))
}

impl IterationData {
    /// Parameters of the second and further benchmarks are prefixed with the benchmark's number.
    fn cell(&self, name: &str) -> ForeignCell {
        let param_of_first =
            |name: &str| self.parameters.benchmark.first().and_then(|first| first.get(name)).map(to_plain_text);
        let benchmark = param_of_first("benchmark_name").unwrap_or_else(|| "benchmark".to_owned());
        let (test, summary) = test(&benchmark);
        let mut cell = ForeignCell::new(test, summary);
        for (index, parameters) in self.parameters.benchmark.iter().enumerate() {
            for (name, value) in parameters {
                let is_defining = !NON_DEFINING_PARAMETERS.contains(&name.as_str()) && !name.ends_with("_uid");
                let prefix = if index == 0 { String::new() } else { format!("{index}.") };
                if is_defining {
                    cell.param(&format!("{prefix}{name}"), to_plain_text(value));
                }
            }
        }
        cell.own_axis("iteration", name);
        let profile = self.parameters.user.iter().find_map(|user| user.get("profile")).map(to_plain_text);
        cell.profile = profile.and_then(|profile| ProfileName::new(slug(&profile)).ok());
        cell
    }

    /// Adds the metadata of the run, which run-perf records in each iteration.
    fn describe_run(&self, foreign: &mut ForeignResults) {
        for (name, value) in self.parameters.user.iter().flatten() {
            match (name.as_str(), value) {
                ("build" | "distro" | "url", Value::String(text)) => {
                    foreign.metadata.insert(name.clone(), text.clone());
                }
                ("cmdline", Value::String(text)) => {
                    let masked = mask_secrets(&command_line(text), &mut Vec::new());
                    if masked != command_line(text) && foreign.secrets.iter().all(|(existing, _)| existing != text) {
                        foreign.secrets.push((text.clone(), masked.clone()));
                    }
                    foreign.metadata.insert("command".to_owned(), masked);
                }
                ("workers", Value::Object(workers)) => describe_workers(foreign, workers),
                _ => {}
            }
        }
    }

    /// For a metric without samples, the first sample has its mean and standard deviation.
    fn samples(&self, index: usize) -> Vec<ForeignSample> {
        let all = self.metrics();
        let count = all.iter().map(|(_, client)| client.samples().len().max(1)).max().unwrap_or(0);
        let mut samples: Vec<ForeignSample> =
            (0..count).map(|sample| ForeignSample::at(format!("{index}/samples/{sample}"))).collect();
        let mut means = Vec::new();
        for (metric, client) in all {
            for (sample, value) in samples.iter_mut().zip(client.samples()) {
                sample.push_reading(metric.clone(), value.value.0);
            }
            if client.samples().is_empty() && client.mean.0.is_some() {
                let deviation = Metric::check(&format!("{}-stddevpct", metric.name), "%").direction(Direction::Lower);
                means.push(metric.name.clone());
                samples[0].push_reading(metric, client.mean.0);
                samples[0].push_reading(deviation, client.stddevpct.0);
            }
        }
        if !means.is_empty() {
            let finding = format!("the mean is the only sample of {}: the file has no samples", means.join(", "));
            samples[0].findings.push(finding);
        }
        if samples.iter().all(|sample| sample.readings.is_empty()) { Vec::new() } else { samples }
    }

    /// Values over all clients. Metrics that the iteration names are primary; if it names none, the first, which is a
    /// throughput if there is any.
    fn metrics(&self) -> Vec<(Metric, &Client)> {
        let names = self.parameters.benchmark.iter().filter_map(|benchmark| benchmark.get("primary_metric"));
        let primary: Vec<String> = names.map(to_plain_text).collect();
        let is_all = |client: &&Client| client.client_hostname.as_ref().is_some_and(|name| name == ALL_CLIENTS);
        let classes = [(Class::Throughput, &self.throughput), (Class::Latency, &self.latency)];
        let all = classes.into_iter().flat_map(|(class, metrics)| metrics.iter().map(move |metric| (class, metric)));
        let mut all: Vec<(Metric, &Client)> = all
            .filter_map(|(class, (name, clients))| Some((metric(class, name), clients.iter().find(is_all)?)))
            .collect();
        all.iter_mut().for_each(|(metric, _)| metric.primary = primary.contains(&metric.name));
        if all.iter().all(|(metric, _)| !metric.primary) {
            all.iter_mut().take(1).for_each(|(metric, _)| metric.primary = true);
        }
        all
    }
}

impl Client {
    fn samples(&self) -> &[SampleValue] {
        self.samples.as_deref().unwrap_or_default()
    }
}

fn metric(class: Class, name: &str) -> Metric {
    let unit = match name {
        "Gb_sec" => "Gbit/s",
        "iops_sec" => "ops/s",
        "trans_sec" => "transactions/s",
        "usec" => "us",
        // As reported by fio: nanoseconds since fio 3.
        "clat" | "lat" | "slat" => "ns",
        _ => "",
    };
    let per_second = name.strip_suffix("_sec").map(|operation| format!("{operation}/s"));
    let unit = if unit.is_empty() { per_second.unwrap_or_default() } else { unit.to_owned() };
    match class {
        Class::Latency => Metric::latency(name, &unit),
        _ => Metric::throughput(name, &unit),
    }
}

/// Converts a command, which run-perf records as a Python list, to a line.
fn command_line(text: &str) -> String {
    match text.strip_prefix("['").and_then(|rest| rest.strip_suffix("']")) {
        Some(words) => words.replace("', '", " "),
        None => text.to_owned(),
    }
}

/// Adds the environments that run-perf collected: by position of the test, by worker, by section.
fn describe_workers(foreign: &mut ForeignResults, workers: &serde_json::Map<String, Value>) {
    let mut hosts: Vec<&str> = Vec::new();
    let groups = workers.values().filter_map(Value::as_object);
    for (host, sections) in groups.flatten() {
        hosts.push(host);
        let kernel = sections.get("kernel").and_then(Value::as_str).and_then(|kernel| kernel.lines().next());
        foreign.add_provenance("kernel", kernel);
        foreign.machine.facts.kernel = kernel.unwrap_or_default().to_owned();
    }
    hosts.dedup();
    let hosts = hosts.join(", ");
    foreign.add_provenance("host", Some(&hosts));
    foreign.machine.facts.hostname = hosts;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::row;

    const TWO: &str = r#"[
        {"iteration_name": "read-4KiB", "iteration_data": {
            "parameters": {"benchmark": [{"benchmark_name": "fio", "bs": "4k", "primary_metric": "iops_sec",
                                          "max_stddevpct": 5, "uid": "x:%x%"}],
                           "user": [{"cmdline": "['run', '--password', 'abc']", "profile": "Tuned", "build": "7",
                                     "workers": {"0": {"foo": {"kernel": "5.0\n#1"}}}}]},
            "latency": {"lat": [{"client_hostname": "all", "mean": 7, "samples": [{"value": 7}, {"value": 8}]}]},
            "throughput": {"iops_sec": [
                {"client_hostname": "a", "mean": 1},
                {"client_hostname": "all", "mean": 10.5, "samples": [
                    {"timeseries": [{"date": 1, "value": 99}], "value": 10}, {"value": "11"}]}]}}},
        {"iteration_name": "read-4KiB-fail1", "iteration_data": {"parameters": {}}},
        {"iteration_name": "no data"}]"#;

    #[test]
    fn samples_over_all_clients_are_parsed_without_time_series() {
        let foreign = read(TWO, false).unwrap();
        let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!((cell.test.as_str(), cell.profile.as_ref().unwrap().as_str()), ("pbench-fio", "Tuned"));
        let params: Vec<_> = cell.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(params, ["benchmark_name=fio", "bs=4k", "iteration=read-4KiB"]);
        let iops: Vec<f64> = cell.rows().map(|sample| sample.readings[0].value).collect();
        assert_eq!(iops, [10.0, 11.0]);
        let readings = row(cell, 0).readings;
        let [iops, lat] = &readings[..] else { panic!("{cell:?}") };
        assert!(iops.metric.primary && !lat.metric.primary && lat.metric.direction == Direction::Lower);
        assert_eq!((iops.metric.unit.as_str(), lat.metric.unit.as_str()), ("ops/s", "ns"));
        assert_eq!(foreign.notes, ["iteration 2: incomplete"]);
        assert_eq!(foreign.omitted, ["iteration `read-4KiB-fail1`: failed"], "it was repeated");
        assert_eq!(
            read(&TWO.replacen("read-4KiB\"", "x\"", 1), false).unwrap().notes[0],
            "iteration `read-4KiB-fail1`: failed"
        );
    }

    // One NaN, which Python's JSON has, left out a whole result file.
    #[test]
    fn a_number_that_is_not_finite_leaves_out_only_itself() {
        for number in ["NaN", "Infinity", "-Infinity"] {
            let foreign = read(&TWO.replace("\"value\": 10}", &format!("\"value\": {number}}}")), false).unwrap();
            let values: Vec<usize> = foreign.cells[0].rows().map(|sample| sample.readings.len()).collect();
            assert_eq!(values, [1, 2], "{number}");
            assert!(foreign.notes[0].contains("not finite"), "{:?}", foreign.notes);
        }
    }

    #[test]
    fn metadata_of_the_run_has_no_secrets() {
        let foreign = read(TWO, false).unwrap();
        assert_eq!(foreign.metadata["command"], "run --password ***");
        assert_eq!((foreign.metadata["build"].as_str(), foreign.provenance["kernel"].as_str()), ("7", "5.0"));
        assert_eq!(foreign.secrets.len(), 1);
    }

    #[test]
    fn a_mean_without_samples_is_a_sample() {
        let text = TWO.replace("\"samples\": [", "\"other\": [").replace("10.5,", "10.5, \"stddevpct\": \"3.5\",");
        let sample = row(&read(&text, false).unwrap().cells[0], 0);
        let figures =
            sample.readings.iter().map(|reading| (reading.metric.class, reading.metric.name.as_str(), reading.value));
        let expected = [
            (Class::Throughput, "iops_sec", 10.5),
            (Class::Check, "iops_sec-stddevpct", 3.5),
            (Class::Latency, "lat", 7.0),
        ];
        assert_eq!(figures.collect::<Vec<_>>(), expected);
        assert_eq!(sample.findings, ["the mean is the only sample of iops_sec, lat: the file has no samples"]);
    }

    #[test]
    fn a_single_metric_without_samples_has_its_mean() {
        let text = TWO.replace("[{\"value\": 7}, {\"value\": 8}]", "null");
        let cell = &read(&text, false).unwrap().cells[0];
        let lat = |sample: usize| row(cell, sample).readings.into_iter().find(|reading| reading.metric.name == "lat");
        assert_eq!((cell.samples.count, lat(0).unwrap().value, lat(1)), (2, 7.0, None));
    }

    #[test]
    fn metrics_named_by_any_benchmark_are_primary() {
        let second = r#"{"benchmark_name": "uperf", "primary_metric": "lat"}"#;
        let text = TWO.replacen("}],\n                           \"user\"", &format!("}}, {second}], \"user\""), 1);
        let primary = |text: &str| -> Vec<bool> {
            row(&read(text, false).unwrap().cells[0], 0).readings.iter().map(|reading| reading.metric.primary).collect()
        };
        assert_eq!((primary(&text), primary(TWO)), (vec![true, true], vec![true, false]));
        assert_eq!(primary(&TWO.replace("primary_metric", "other")), [true, false]);
    }

    #[test]
    fn failed_iterations_are_parsed_on_request() {
        let failed = TWO.replacen("read-4KiB", "read-4KiB-fail2", 1);
        assert!(matches!(read(&failed, false), Err(ReadError::Empty(_))));
        assert_eq!(read(&failed, true).unwrap().cells[0].case().to_string(), "iteration=read-4KiB-fail2");
    }
}
