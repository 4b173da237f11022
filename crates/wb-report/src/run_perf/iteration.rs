//! An iteration as pbench writes it: the parameters of the benchmark, and the metrics of each client and of all.

use std::collections::BTreeMap;

use serde::Serialize;
use wb_model::pbench::ALL_CLIENTS;
use wb_model::{Class, MetricKey};
use wb_results::{CellResult, MetricResult};

use super::naming;

#[derive(Serialize)]
pub(super) struct Iteration<'a> {
    iteration_name: String,
    /// pbench's name of the iteration's folder: number and name.
    iteration_name_format: &'static str,
    iteration_number: usize,
    iteration_data: IterationData<'a>,
}

#[derive(Serialize)]
struct IterationData<'a> {
    parameters: Parameters<'a>,
    throughput: BTreeMap<String, Vec<Client>>,
    latency: BTreeMap<String, Vec<Client>>,
    resource: BTreeMap<String, Vec<Client>>,
}

#[derive(Serialize)]
struct Parameters<'a> {
    benchmark: Vec<BTreeMap<String, String>>,
    user: [BTreeMap<&'a str, &'a str>; 1],
}

#[derive(Serialize)]
struct Client {
    client_hostname: String,
    description: String,
    role: &'static str,
    mean: f64,
    stddev: f64,
    stddevpct: f64,
    samples: Vec<Sample>,
    /// The number of the sample nearest to the mean, from 1.
    closest_sample: usize,
    uid: &'static str,
}

#[derive(Serialize)]
struct Sample {
    value: f64,
}

impl<'a> Iteration<'a> {
    pub(super) fn new(cell: &'a CellResult, number: usize, metadata: &'a BTreeMap<String, String>) -> Self {
        let metrics = |class| {
            let mut metrics: BTreeMap<String, Vec<Client>> = BTreeMap::new();
            for result in cell.metrics.iter().filter(|result| result.metric.class == class) {
                let (name, factor) = naming::metric(cell.id.test.as_str(), &result.metric);
                metrics.entry(name).or_default().extend(Client::new(cell, result, factor));
            }
            metrics.retain(|_, clients| !clients.is_empty());
            metrics
        };
        let mut user: BTreeMap<&str, &str> =
            metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        user.insert("profile", cell.id.profile.as_str());
        Self {
            iteration_name: naming::iteration(cell),
            iteration_name_format: "%d-%s",
            iteration_number: number,
            iteration_data: IterationData {
                parameters: Parameters { benchmark: benchmarks(cell), user: [user] },
                throughput: metrics(Class::Throughput),
                latency: metrics(Class::Latency),
                resource: metrics(Class::Resource),
            },
        }
    }
}

/// The parameters of a cell. An entry has room for one primary metric: each further one has an entry of its own.
fn benchmarks(cell: &CellResult) -> Vec<BTreeMap<String, String>> {
    let test = cell.id.test.as_str();
    let of_all = cell.primary_metrics().filter(|result| result.worker.is_none());
    let primary: Vec<String> = of_all.map(|result| naming::metric(test, &result.metric).0).collect();
    let mut first: BTreeMap<String, String> =
        cell.params.iter().filter_map(|(name, value)| naming::param(test, name, value)).collect();
    first.insert("benchmark_name".to_owned(), test.to_owned());
    let further = primary.iter().skip(1).map(|name| {
        BTreeMap::from([("benchmark_name".to_owned(), test.to_owned()), ("primary_metric".to_owned(), name.clone())])
    });
    first.extend(primary.first().map(|name| ("primary_metric".to_owned(), name.clone())));
    std::iter::once(first).chain(further).collect()
}

impl Client {
    /// The values of a metric; `None` if no sample was counted.
    fn new(cell: &CellResult, result: &MetricResult, factor: f64) -> Option<Self> {
        let summary = result.summary.as_ref()?;
        let key: MetricKey = result.key();
        let samples: Vec<Sample> = cell.counted_values(&key).map(|value| Sample { value: value * factor }).collect();
        let mean = summary.mean * factor;
        let distance = |sample: &Sample| (sample.value - mean).abs();
        let closest = samples.iter().enumerate().min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
        let (client_hostname, role) = match &result.worker {
            Some(worker) => (worker.to_string(), "client"),
            None => (ALL_CLIENTS.to_owned(), "aggregate"),
        };
        Some(Self {
            client_hostname,
            description: format!("{} in {}", result.metric.name, result.metric.unit),
            role,
            mean,
            // pbench has 0 of a single sample.
            stddev: summary.stddev.unwrap_or(0.0) * factor,
            stddevpct: summary.stddev_percent.unwrap_or(0.0),
            closest_sample: closest.map_or(1, |(index, _)| index + 1),
            samples,
            uid: "client_hostname:%client_hostname%",
        })
    }
}
