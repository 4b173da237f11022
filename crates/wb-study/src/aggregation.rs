//! What several workers measured at the same time, as one.

use std::collections::BTreeMap;

use wb_model::{Aggregate, Metric, Validity, WorkerName};
use wb_tests::Measurement;

/// The key of a metric's value in a sample: `CLASS/METRIC`, of one of several workers `CLASS/METRIC@WORKER`.
pub fn metric_key(metric: &Metric, worker: Option<&WorkerName>) -> String {
    let of = worker.map_or(String::new(), |worker| format!("@{worker}"));
    format!("{}/{}{of}", metric.class, metric.name)
}

/// What follows the title of a curve that one of several workers measured.
pub(crate) fn title_suffix(worker: &WorkerName) -> String {
    format!(", {worker}")
}

/// The values of all workers together, by how each metric aggregates, beside those of each.
///
/// Of latencies the slowest worker's stands for all: no quantile of operations taken together lies above the largest of
/// the workers' own.
pub fn aggregate_workers(metrics: &[Metric], each: &BTreeMap<WorkerName, Measurement>) -> Measurement {
    let mut all = Measurement::default();
    for (worker, measured) in each {
        if let Validity::Invalid { gate, figures } = &measured.validity {
            all.reject(*gate, format!("{worker}: {figures}"));
        }
        all.findings.extend(measured.findings.iter().map(|finding| format!("{worker}: {finding}")));
        all.seconds = [all.seconds, measured.seconds].into_iter().flatten().reduce(f64::max);
        let outputs = measured.outputs.iter().map(|(name, output)| (format!("{name} of {worker}"), output.clone()));
        all.outputs.extend(outputs);
        let of = |title: &String| format!("{title}{}", title_suffix(worker));
        all.curves.extend(measured.curves.iter().cloned().map(|curve| {
            let title = of(&curve.title);
            wb_tests::SampleCurve { title, ..curve }
        }));
        all.latencies.extend(measured.latencies.iter().cloned().map(|latencies| {
            let title = of(&latencies.title);
            wb_tests::LatencySeries { title, ..latencies }
        }));
    }
    for metric in metrics {
        let own: Vec<(&WorkerName, f64)> =
            each.iter().filter_map(|(worker, measured)| Some((worker, measured.get(metric)?))).collect();
        all.values.extend(own.iter().map(|(worker, value)| (metric_key(metric, Some(worker)), *value)));
        let values = own.iter().map(|(_, value)| *value);
        let one = match metric.aggregate {
            // Of some alone it would be another figure.
            _ if own.len() < each.len() => None,
            Aggregate::Sum => Some(values.sum()),
            Aggregate::Max | Aggregate::Merge => values.reduce(f64::max),
            Aggregate::None => None,
        };
        all.values.extend(one.map(|value| (metric_key(metric, None), value)));
    }
    let names = each.values().flat_map(|measured| measured.provenance.keys());
    for name in names {
        let mut of_each = each.iter().map(|(worker, measured)| (worker, measured.provenance.get(name)));
        let first = each.values().next().and_then(|measured| measured.provenance.get(name));
        match first {
            Some(value) if of_each.clone().all(|(_, other)| other == Some(value)) => {
                all.provenance.insert(name.clone(), value.clone());
            }
            _ => all.provenance.extend(
                of_each.by_ref().filter_map(|(worker, value)| Some((format!("{name}@{worker}"), value?.clone()))),
            ),
        }
    }
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
    fn throughput_adds_up_the_slowest_stands_for_all_and_checks_stay_apart() {
        let all = aggregate_workers(&metrics(), &each([part(10.0, 0.5, 1.0), part(20.0, 0.25, 2.0)]));
        let values: Vec<(&str, f64)> = all.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            values,
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
    fn one_that_does_not_count_spoils_all_and_is_named() {
        let mut bad = part(1.0, 1.0, 1.0);
        bad.reject(Gate::Work, "nothing was done");
        let all = aggregate_workers(&metrics(), &each([part(10.0, 0.5, 1.0), bad]));
        let figures = "b: nothing was done".to_owned();
        assert_eq!(all.validity, Validity::Invalid { gate: Gate::Work, figures });
        // A figure that one lacks is none of all.
        let lacking = Measurement::default().with_value(Class::Throughput, "iops", 1.0);
        let all = aggregate_workers(&metrics(), &each([part(10.0, 0.5, 1.0), lacking]));
        assert!(!all.values.contains_key("latency/p99") && all.values.contains_key("latency/p99@a"));
    }

    #[test]
    fn provenance_that_differs_says_whose_it_is() {
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
