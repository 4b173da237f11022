//! Aggregation of simultaneous measurements of several workers.

use std::collections::BTreeMap;

use wb_model::{Aggregate, Metric, MetricKey, Validity, WorkerName, merge_workers};
use wb_test::Measurement;

pub(crate) fn title_suffix(worker: &WorkerName) -> String {
    format!(", {worker}")
}

/// Aggregates the values of all workers, as each metric defines, and keeps the values of each worker too. Latencies
/// become that of the slowest worker: no quantile over all operations exceeds the largest one of a single worker.
pub fn aggregate_workers(metrics: &[Metric], each: &BTreeMap<WorkerName, Measurement>) -> Measurement {
    let mut all = Measurement::default();
    for (worker, measured) in each {
        if let Validity::Invalid { gate, figures } = &measured.validity {
            all.reject(*gate, format!("{worker}: {figures}"));
        }
        all.findings.extend(measured.findings.iter().map(|finding| format!("{worker}: {finding}")));
        all.intervals = [all.intervals, measured.intervals].into_iter().flatten().reduce(f64::max);
        let outputs = measured.outputs.iter().map(|(name, output)| (format!("{name} of {worker}"), output.clone()));
        all.outputs.extend(outputs);
        let title_of = |title: &String| format!("{title}{}", title_suffix(worker));
        all.curves.extend(measured.curves.iter().cloned().map(|curve| {
            let title = title_of(&curve.title);
            wb_test::SampleCurve { title, ..curve }
        }));
        all.latencies.extend(measured.latencies.iter().cloned().map(|latencies| {
            let title = title_of(&latencies.title);
            wb_test::LatencySeries { title, ..latencies }
        }));
    }
    for metric in metrics {
        let by_worker: Vec<(&WorkerName, f64)> =
            each.iter().filter_map(|(worker, measured)| Some((worker, measured.get(metric)?))).collect();
        let of_worker = |worker: &WorkerName| MetricKey { worker: Some(worker.clone()), ..metric.key() };
        all.values.extend(by_worker.iter().map(|(worker, value)| (of_worker(worker), *value)));
        let values = by_worker.iter().map(|(_, value)| *value);
        let aggregate = match metric.aggregate {
            // Over only some of the workers it would be a different figure.
            _ if by_worker.len() < each.len() => None,
            Aggregate::Sum => Some(values.sum()),
            Aggregate::Max | Aggregate::Merge => values.reduce(f64::max),
            Aggregate::None => None,
        };
        all.values.extend(aggregate.map(|value| (metric.key(), value)));
    }
    all.provenance = merge_workers(each.iter().map(|(worker, measured)| (worker, &measured.provenance)));
    all
}

#[cfg(test)]
mod tests {
    use wb_model::Class;
    use wb_model::outcome::Gate;

    use super::*;

    fn each(parts: [Measurement; 2]) -> BTreeMap<WorkerName, Measurement> {
        ["a", "b"].map(|name| WorkerName::new(name).unwrap()).into_iter().zip(parts).collect()
    }

    fn metrics() -> Vec<Metric> {
        vec![Metric::throughput("iops", "1/s").primary(), Metric::latency("p99", "s"), Metric::check("loss", "1")]
    }

    fn part(iops: f64, p99: f64, loss: f64) -> Measurement {
        let measured = Measurement::default().with_value(Class::Throughput, "iops", iops);
        measured.with_value(Class::Latency, "p99", p99).with_value(Class::Check, "loss", loss)
    }

    #[test]
    fn throughputs_are_summed_latencies_are_the_slowest_and_checks_are_not_aggregated() {
        let all = aggregate_workers(&metrics(), &each([part(10.0, 0.5, 1.0), part(20.0, 0.25, 2.0)]));
        let values: Vec<(String, f64)> = all.values.iter().map(|(key, value)| (key.to_string(), *value)).collect();
        assert_eq!(
            values.iter().map(|(key, value)| (key.as_str(), *value)).collect::<Vec<_>>(),
            [
                ("check/loss@a", 1.0),
                ("check/loss@b", 2.0),
                ("latency/p99", 0.5),
                ("latency/p99@a", 0.5),
                ("latency/p99@b", 0.25),
                ("throughput/iops", 30.0),
                ("throughput/iops@a", 10.0),
                ("throughput/iops@b", 20.0),
            ]
        );
        assert_eq!(all.validity, Validity::Valid);
    }

    #[test]
    fn one_invalid_worker_invalidates_the_sample_and_is_named() {
        let mut bad = part(1.0, 1.0, 1.0);
        bad.reject(Gate::Work, "nothing was done");
        let all = aggregate_workers(&metrics(), &each([part(10.0, 0.5, 1.0), bad]));
        let figures = "b: nothing was done".to_owned();
        assert_eq!(all.validity, Validity::Invalid { gate: Gate::Work, figures });
        // A metric that is missing for one worker has no aggregate.
        let incomplete = Measurement::default().with_value(Class::Throughput, "iops", 1.0);
        let all = aggregate_workers(&metrics(), &each([part(10.0, 0.5, 1.0), incomplete]));
        let has = |key: &str| all.values.contains_key(&key.parse::<MetricKey>().unwrap());
        assert!(!has("latency/p99") && has("latency/p99@a"));
    }

    #[test]
    fn provenance_that_differs_is_reported_by_worker() {
        let explained = |isa: &str, os: &str| {
            let mut part = part(1.0, 1.0, 1.0);
            part.add_provenance("isa", isa);
            part.add_provenance("os", os);
            part
        };
        let all = aggregate_workers(&metrics(), &each([explained("avx2", "x"), explained("avx512", "x")]));
        let pairs: Vec<(&str, &str)> =
            all.provenance.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("isa@a", "avx2"), ("isa@b", "avx512"), ("os", "x")]);
    }
}
