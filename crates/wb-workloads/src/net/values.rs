//! Evaluation of the result of a run.

use wb_model::{Class, Metric, Nanos};
use wb_results::net::Usage;
use wb_results::net::{GroupResult, LatencySummary, Percentiles, RunResult, TransactionResult};
use wb_test::{Artefacts, LatencySeries, Measurement, Rejection};

use super::expectation::{PrimaryMetric, RunExpectation};
use super::gates;
use super::output::{CLIENT_NAME, parse_result};

pub fn metrics(primary: PrimaryMetric) -> Vec<Metric> {
    let [received, sent] = ["received", "sent"].map(|name| Metric::throughput(name, "bit/s"));
    let rounds = Metric::throughput("rounds", "rounds/s");
    let mut metrics = match primary {
        PrimaryMetric::Throughput => vec![received.primary(), sent, rounds],
        PrimaryMetric::Rounds => vec![rounds.primary(), received, sent],
        PrimaryMetric::EmptyRounds => vec![rounds.primary()],
    };
    metrics.push(Metric::throughput("operations", "operations/s"));
    metrics.extend(LATENCIES.map(|name| Metric::latency(name, "ns")));
    metrics.extend(["client-cpu", "server-cpu"].map(|name| Metric::resource(name, "%")));
    metrics.extend([
        Metric::check("difference", "%"),
        Metric::check("lost-datagrams", "datagrams"),
        Metric::check("pending-rounds", "rounds"),
        Metric::check("retransmits", "segments"),
        Metric::check("errors", "errors"),
    ]);
    metrics
}

const LATENCIES: [&str; 6] = ["mean", "p50", "p90", "p99", "p99.9", "p99.99"];

/// Values of a latency summary in the order of [`LATENCIES`].
fn latency_values(latency: &LatencySummary) -> [f64; LATENCIES.len()] {
    let Percentiles { p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, .. } = latency.percentiles;
    let [p50, p90, p99, p99_9, p99_99] = [p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns].map(|nanos| nanos as f64);
    [latency.mean_ns, p50, p90, p99, p99_9, p99_99]
}

pub fn study(expectation: RunExpectation, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let name = format!("{CLIENT_NAME}.stdout");
    let result = parse_result(&artefacts.bytes(&name)?);
    let result = result.map_err(|reason| Rejection::output(format!("invalid `{name}`: {reason}")))?;
    let elapsed = artefacts.process_seconds(CLIENT_NAME)?.unwrap_or_default();

    let mut measurement = Measurement::default().with_duration(result.totals.seconds);
    set_throughput(&mut measurement, &result);
    set_costs(&mut measurement, &result);
    set_latencies(&mut measurement, expectation.interval, &result)?;
    gates::check_completed(&mut measurement, expectation, &result);
    gates::check_received(&mut measurement, expectation, &result);
    gates::check_possible(&mut measurement, &result, elapsed);
    measurement.findings.extend(result.rate_shortfall());
    measurement.findings.extend(result.notes.iter().cloned());
    for machine in &result.machines {
        let name = if machine.address.is_none() { "client" } else { "server" };
        measurement.add_provenance(&format!("{name} strands"), &machine.executor);
    }
    Ok(measurement)
}

fn set_throughput(measurement: &mut Measurement, result: &RunResult) {
    let totals = &result.totals;
    let bits = |bytes: Option<f64>| bytes.map(|bytes| bytes * 8.0);
    let figures = [
        ("received", bits(totals.throughput)),
        ("sent", bits(totals.sent_throughput)),
        ("rounds", totals.rounds_per_second),
        ("operations", totals.operations_per_second),
    ];
    for (name, value) in figures {
        if let Some(value) = value {
            measurement.set(Class::Throughput, name, value);
        }
    }
    if let Some(latency) = totals.headline_latency() {
        let named = LATENCIES.into_iter().zip(latency_values(latency));
        named.for_each(|(name, value)| measurement.set(Class::Latency, name, value));
    }
}

fn set_costs(measurement: &mut Measurement, result: &RunResult) {
    let totals = &result.totals;
    // CPU time in percent of one CPU.
    let share = |usage: Usage| usage.cpu_ns() as f64 / 1e9 / totals.seconds * 100.0;
    let used = |of: fn(&GroupResult) -> Usage| {
        result.groups.iter().map(of).fold(Usage::default(), |mut sum, usage| {
            sum.add(usage);
            sum
        })
    };
    if totals.seconds > 0.0 {
        measurement.set(Class::Resource, "client-cpu", share(used(|group| group.client_usage)));
        measurement.set(Class::Resource, "server-cpu", share(used(|group| group.server_usage)));
    }
    let resent =
        |group: &GroupResult| group.client_connections.retransmits as f64 + group.server_connections.retransmits as f64;
    measurement.set(Class::Check, "retransmits", result.groups.iter().map(resent).sum::<f64>());
    measurement.set(Class::Check, "lost-datagrams", totals.lost_datagrams as f64);
    let not_started = totals.scheduled_rounds.map_or(0, |scheduled| scheduled.not_started);
    let pending = totals.pending_rounds.map_or(0, |pending| pending.count) + not_started;
    measurement.set(Class::Check, "pending-rounds", pending as f64);
    measurement.set(Class::Check, "errors", totals.errors as f64);
    if let Some(percent) = totals.difference_percent {
        measurement.set(Class::Check, "difference", percent);
    }
}

fn set_latencies(measurement: &mut Measurement, interval: Nanos, result: &RunResult) -> Result<(), Rejection> {
    for group in &result.groups {
        let has_data = group.transactions.iter().any(|transaction| transaction.is_data_phase);
        let transactions: Vec<&TransactionResult> =
            group.transactions.iter().filter(|transaction| transaction.is_data_phase == has_data).collect();
        for transaction in &transactions {
            let counts =
                |latency: &Option<LatencySummary>| latency.as_ref().map_or(Ok(Vec::new()), LatencySummary::buckets);
            let seconds: Result<Vec<_>, String> =
                transaction.intervals.iter().map(|interval| counts(&interval.latency)).collect();
            let seconds = seconds
                .map_err(|reason| Rejection::output(format!("{} of {}: {reason}", transaction.name, group.name)))?;
            let title = if transactions.len() > 1 {
                format!("{} {}", group.name, transaction.name)
            } else {
                group.name.clone()
            };
            measurement.latencies.push(LatencySeries { title: format!("{title}, per {interval}"), interval, seconds });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wb_model::Validity;

    use super::super::testing::{expectation, folder_of, stream, study_result};
    use super::*;
    use wb_test_artefacts::value;

    #[test]
    fn a_sample_has_all_declared_values() {
        for primary in [PrimaryMetric::Throughput, PrimaryMetric::Rounds] {
            let measurement = study_result(expectation(primary), &stream());
            assert_eq!(measurement.validity, Validity::Valid);
            for metric in metrics(primary) {
                assert!(measurement.get(&metric).is_some(), "{}", metric.name);
            }
            assert_eq!(measurement.values.len(), metrics(primary).len());
        }
    }

    #[test]
    fn values_are_in_the_declared_units() {
        let measurement = study_result(expectation(PrimaryMetric::Throughput), &stream());
        let value = |name: &str| value(&measurement, name);
        assert_eq!(value("throughput/received"), 8e9);
        assert_eq!(value("throughput/rounds"), 10_000.0);
        assert_eq!(value("resource/client-cpu"), 75.0);
        assert_eq!(value("resource/server-cpu"), 50.0);
        assert_eq!(value("check/retransmits"), 3.0);
        assert_eq!(measurement.intervals, Some(1.0));
        assert_eq!(measurement.findings, ["a note"]);
    }

    #[test]
    fn intervals_become_latencies_over_time() {
        let measurement = study_result(expectation(PrimaryMetric::Throughput), &stream());
        assert_eq!(measurement.latencies[0].title, "stream, per 500ms");
        let seconds = &measurement.latencies[0].seconds;
        assert_eq!(seconds[0], [(100, 3)]);
        assert_eq!(seconds[1], []);
    }

    #[test]
    fn invalid_results_are_rejected() {
        let reason = |stdout: &str| {
            let folder = folder_of(stdout);
            study(expectation(PrimaryMetric::Rounds), &Artefacts::new(folder.path())).unwrap_err().figures
        };
        assert!(reason("").starts_with("invalid `client.stdout`"));
        assert!(reason("[]").ends_with("expected one result, found 0"), "{}", reason("[]"));
        let two = serde_json::to_string(&[stream(), stream()]).unwrap();
        assert!(reason(&two).ends_with("expected one result, found 2"));
        let broken = serde_json::to_string(&stream()).unwrap().replace("HISTE", "!!!!!");
        assert!(reason(&broken).starts_with("Txn1 of stream: "), "{}", reason(&broken));
    }
}
