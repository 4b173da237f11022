//! pbench's `result.json`: a cell for each iteration, a sample for each of pbench's. What is read of a metric is its
//! values over all clients; a sample's time series lies within it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wb_model::{Class, Direction, Metric, ProfileName, TestName};

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::json::{LenientNumber, to_plain_text};
use crate::naming::{mask_secrets, slug, test_name};
use crate::{Format, ReadError, json};

#[derive(Deserialize)]
struct Iteration {
    #[serde(default)]
    iteration_name: Option<String>,
    #[serde(default)]
    iteration_data: Option<IterationData>,
}

#[derive(Deserialize)]
struct IterationData {
    #[serde(default)]
    parameters: Parameters,
    #[serde(default)]
    throughput: BTreeMap<String, Vec<Client>>,
    #[serde(default)]
    latency: BTreeMap<String, Vec<Client>>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    #[serde(default)]
    benchmark: Vec<BTreeMap<String, Value>>,
    #[serde(default)]
    user: Vec<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct Client {
    #[serde(default)]
    client_hostname: Option<Value>,
    #[serde(default)]
    mean: LenientNumber,
    /// The standard deviation, in percent of the mean.
    #[serde(default)]
    stddevpct: LenientNumber,
    #[serde(default)]
    samples: Option<Vec<SampleValue>>,
}

#[derive(Deserialize)]
struct SampleValue {
    #[serde(default)]
    value: LenientNumber,
}

/// Parameters that define nothing: how results are named and judged, and which machines took part.
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

/// Reads a file; iterations that failed (`NAME-failN`) only where incorrect ones are asked for.
pub(crate) fn read(text: &str, include_incorrect: bool) -> Result<ForeignResults, ReadError> {
    let iterations: Vec<Iteration> = json::parse_document(Format::Pbench, text)?;
    let mut foreign = ForeignResults::default();
    for (at, iteration) in iterations.iter().enumerate() {
        let (Some(name), Some(data)) = (&iteration.iteration_name, &iteration.iteration_data) else {
            foreign.notes.push(format!("iteration {at}, which is incomplete"));
            continue;
        };
        if is_failed(name) && !include_incorrect {
            foreign.notes.push(format!("iteration `{name}`, which failed"));
            continue;
        }
        data.describe_run(&mut foreign);
        let mut cell = data.cell(name);
        cell.samples = data.samples(at);
        if cell.samples.is_empty() {
            foreign.notes.push(format!("iteration `{name}`, which has no value over all clients"));
            continue;
        }
        foreign.add(cell);
    }
    if foreign.cells.is_empty() {
        let none = || "it has no iteration".to_owned();
        return Err(ReadError::Empty(foreign.notes.first().map_or_else(none, Clone::clone)));
    }
    Ok(foreign)
}

/// The test of a benchmark, and what it measures.
pub(crate) fn test(benchmark: &str) -> (TestName, String) {
    (test_name("pbench", benchmark), format!("{}, as pbench measured it", slug(benchmark)))
}

/// Whether an iteration's name says that it failed: `NAME-failN`.
fn is_failed(name: &str) -> bool {
    let number = name.rsplit_once("-fail").map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl IterationData {
    /// A cell without samples. Parameters of a second benchmark and on have its number before their name.
    fn cell(&self, name: &str) -> ForeignCell {
        let of_first =
            |name: &str| self.parameters.benchmark.first().and_then(|first| first.get(name)).map(to_plain_text);
        let benchmark = of_first("benchmark_name").unwrap_or_else(|| "benchmark".to_owned());
        let (test, summary) = test(&benchmark);
        let mut cell = ForeignCell::new(test, summary);
        for (at, parameters) in self.parameters.benchmark.iter().enumerate() {
            for (name, value) in parameters {
                let defines = !NON_DEFINING_PARAMETERS.contains(&name.as_str()) && !name.ends_with("_uid");
                let prefix = if at == 0 { String::new() } else { format!("{at}.") };
                if defines {
                    cell.param(&format!("{prefix}{name}"), to_plain_text(value));
                }
            }
        }
        cell.axis("iteration", name);
        let profile = self.parameters.user.iter().find_map(|user| user.get("profile")).map(to_plain_text);
        cell.profile = profile.and_then(|profile| ProfileName::new(slug(&profile)).ok());
        cell
    }

    /// What run-perf says of the run in every iteration.
    fn describe_run(&self, foreign: &mut ForeignResults) {
        for (name, value) in self.parameters.user.iter().flatten() {
            match (name.as_str(), value) {
                ("build" | "distro" | "url", Value::String(text)) => {
                    foreign.metadata.insert(name.clone(), text.clone());
                }
                ("cmdline", Value::String(text)) => {
                    let shown = mask_secrets(&command_line(text), &mut Vec::new());
                    if shown != command_line(text) && foreign.secrets.iter().all(|(known, _)| known != text) {
                        foreign.secrets.push((text.clone(), shown.clone()));
                    }
                    foreign.metadata.insert("command".to_owned(), shown);
                }
                ("workers", Value::Object(workers)) => describe_workers(foreign, workers),
                _ => {}
            }
        }
    }

    /// pbench's samples. Of a metric that has none the mean stands in the first, with the standard deviation beside it.
    fn samples(&self, at: usize) -> Vec<ForeignSample> {
        let all = self.metrics();
        let count = all.iter().map(|(_, client)| client.samples().len().max(1)).max().unwrap_or(0);
        let mut samples: Vec<ForeignSample> =
            (0..count).map(|sample| ForeignSample::at(format!("{at}/samples/{sample}"))).collect();
        let mut means = Vec::new();
        for (metric, client) in all {
            for (sample, one) in samples.iter_mut().zip(client.samples()) {
                sample.push_reading(metric.clone(), one.value.0);
            }
            if client.samples().is_empty() && client.mean.0.is_some() {
                let deviation = Metric::check(&format!("{}-stddevpct", metric.name), "%").direction(Direction::Lower);
                means.push(metric.name.clone());
                samples[0].push_reading(metric, client.mean.0);
                samples[0].push_reading(deviation, client.stddevpct.0);
            }
        }
        if !means.is_empty() {
            let told = format!("the mean is the one sample of {}: the file has no samples of it", means.join(", "));
            samples[0].findings.push(told);
        }
        if samples.iter().all(|sample| sample.readings.is_empty()) { Vec::new() } else { samples }
    }

    /// The metrics that have values over all clients. Those are primary that the iteration says are; where there is none
    /// of these, the first is, which is a throughput where there is any.
    fn metrics(&self) -> Vec<(Metric, &Client)> {
        let named = self.parameters.benchmark.iter().filter_map(|benchmark| benchmark.get("primary_metric"));
        let primary: Vec<String> = named.map(to_plain_text).collect();
        let is_all = |client: &&Client| client.client_hostname.as_ref().is_some_and(|name| name == "all");
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

/// A metric by pbench's name for it.
fn metric(class: Class, name: &str) -> Metric {
    let unit = match name {
        "Gb_sec" => "Gbit/s",
        "iops_sec" => "ops/s",
        "trans_sec" => "transactions/s",
        "usec" => "us",
        // pbench-fio keeps what fio says, which is nanoseconds since fio 3.
        "clat" | "lat" | "slat" => "ns",
        _ => "",
    };
    let per_second = name.strip_suffix("_sec").map(|what| format!("{what}/s"));
    let unit = if unit.is_empty() { per_second.unwrap_or_default() } else { unit.to_owned() };
    match class {
        Class::Latency => Metric::latency(name, &unit),
        _ => Metric::throughput(name, &unit),
    }
}

/// A command as a line; run-perf has it as Python writes a list.
fn command_line(text: &str) -> String {
    match text.strip_prefix("['").and_then(|rest| rest.strip_suffix("']")) {
        Some(words) => words.replace("', '", " "),
        None => text.to_owned(),
    }
}

/// The workers' environment, as run-perf collects it: by the test's position, by worker, by section.
fn describe_workers(foreign: &mut ForeignResults, workers: &serde_json::Map<String, Value>) {
    let mut hosts: Vec<&str> = Vec::new();
    let of_positions = workers.values().filter_map(Value::as_object);
    for (host, sections) in of_positions.flatten() {
        hosts.push(host);
        let kernel = sections.get("kernel").and_then(Value::as_str).and_then(|kernel| kernel.lines().next());
        foreign.add_provenance("kernel", kernel);
        foreign.machine.kernel = kernel.unwrap_or_default().to_owned();
    }
    hosts.dedup();
    let hosts = hosts.join(", ");
    foreign.add_provenance("host", Some(&hosts));
    foreign.machine.hostname = hosts;
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn samples_over_all_clients_are_read_and_no_time_series() {
        let foreign = read(TWO, false).unwrap();
        let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!((cell.test.as_str(), cell.profile.as_ref().unwrap().as_str()), ("pbench-fio", "Tuned"));
        let params: Vec<_> = cell.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(params, ["benchmark_name=fio", "bs=4k", "iteration=read-4KiB"]);
        let iops: Vec<f64> = cell.samples.iter().map(|sample| sample.readings[0].value).collect();
        assert_eq!(iops, [10.0, 11.0]);
        let [iops, lat] = &cell.samples[0].readings[..] else { panic!("{cell:?}") };
        assert!(iops.metric.primary && !lat.metric.primary && lat.metric.direction == Direction::Lower);
        assert_eq!((iops.metric.unit.as_str(), lat.metric.unit.as_str()), ("ops/s", "ns"));
        assert_eq!(foreign.notes, ["iteration `read-4KiB-fail1`, which failed", "iteration 2, which is incomplete"]);
    }

    #[test]
    fn what_is_said_of_the_run_has_no_secrets() {
        let foreign = read(TWO, false).unwrap();
        assert_eq!(foreign.metadata["command"], "run --password ***");
        assert_eq!((foreign.metadata["build"].as_str(), foreign.provenance["kernel"].as_str()), ("7", "5.0"));
        assert_eq!(foreign.secrets.len(), 1);
    }

    #[test]
    fn a_mean_without_samples_is_one() {
        let text = TWO.replace("\"samples\": [", "\"other\": [").replace("10.5,", "10.5, \"stddevpct\": \"3.5\",");
        let sample = &read(&text, false).unwrap().cells[0].samples[0];
        let figures = sample.readings.iter().map(|one| (one.metric.class, one.metric.name.as_str(), one.value));
        let wanted = [
            (Class::Throughput, "iops_sec", 10.5),
            (Class::Check, "iops_sec-stddevpct", 3.5),
            (Class::Latency, "lat", 7.0),
        ];
        assert_eq!(figures.collect::<Vec<_>>(), wanted);
        assert_eq!(sample.findings, ["the mean is the one sample of iops_sec, lat: the file has no samples of it"]);
    }

    #[test]
    fn a_metric_that_alone_has_no_samples_keeps_its_mean() {
        let text = TWO.replace("[{\"value\": 7}, {\"value\": 8}]", "null");
        let cell = &read(&text, false).unwrap().cells[0];
        let lat = |sample: usize| cell.samples[sample].readings.iter().find(|one| one.metric.name == "lat");
        assert_eq!((cell.samples.len(), lat(0).unwrap().value, lat(1)), (2, 7.0, None));
    }

    #[test]
    fn what_some_benchmark_of_an_iteration_names_is_primary() {
        let second = r#"{"benchmark_name": "uperf", "primary_metric": "lat"}"#;
        let text = TWO.replacen("}],\n                           \"user\"", &format!("}}, {second}], \"user\""), 1);
        let primary = |text: &str| -> Vec<bool> {
            read(text, false).unwrap().cells[0].samples[0].readings.iter().map(|one| one.metric.primary).collect()
        };
        assert_eq!((primary(&text), primary(TWO)), (vec![true, true], vec![true, false]));
        assert_eq!(primary(&TWO.replace("primary_metric", "other")), [true, false]);
    }

    #[test]
    fn failed_iterations_are_read_where_they_are_asked_for() {
        let failed = TWO.replacen("read-4KiB", "read-4KiB-fail2", 1);
        assert!(matches!(read(&failed, false), Err(ReadError::Empty(_))));
        assert_eq!(read(&failed, true).unwrap().cells[0].case().to_string(), "iteration=read-4KiB-fail2");
    }
}
