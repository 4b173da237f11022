//! From the result of a run to values.

use wb_model::{Class, Metric, Nanos};
use wb_net::engine::usage::Usage;
use wb_net::result::{GroupResult, LatencySummary, Percentiles, RunResult, TransactionResult};

use super::gates;
use super::run::CLIENT_NAME;
use crate::{Artefacts, LatencySeries, Measurement, Rejection};

/// What the verdicts rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrimaryMetric {
    /// Bits received per second.
    Throughput,
    /// Rounds per second, of messages there and back.
    Rounds,
    /// Rounds per second, in which nothing is moved.
    EmptyRounds,
}

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunExpectation {
    pub(crate) primary: PrimaryMetric,
    /// How long messages are moved at least.
    pub(crate) window: Option<Nanos>,
    /// Whether the run may be cut.
    pub(crate) may_be_cut: bool,
    /// Of the latencies over time.
    pub(crate) interval: Nanos,
}

/// What is measured.
pub(crate) fn metrics(primary: PrimaryMetric) -> Vec<Metric> {
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
        Metric::check("retransmits", "segments"),
        Metric::check("errors", "errors"),
    ]);
    metrics
}

const LATENCIES: [&str; 6] = ["mean", "p50", "p90", "p99", "p99.9", "p99.99"];

/// In the order of [`LATENCIES`].
fn latency_values(latency: &LatencySummary) -> [f64; LATENCIES.len()] {
    let Percentiles { p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, .. } = latency.percentiles;
    let [p50, p90, p99, p99_9, p99_99] = [p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns].map(|nanos| nanos as f64);
    [latency.mean_ns, p50, p90, p99, p99_9, p99_99]
}

/// The one result that `net run`, or a preset of one combination, printed.
pub(super) fn parse_result(stdout: &[u8]) -> Result<RunResult, String> {
    let several = stdout.trim_ascii_start().starts_with(b"[");
    let results =
        if several { serde_json::from_slice(stdout) } else { serde_json::from_slice(stdout).map(|one| vec![one]) };
    let mut results: Vec<RunResult> = results.map_err(|error| error.to_string())?;
    match (results.len(), results.pop()) {
        (1, Some(result)) => Ok(result),
        (others, _) => Err(format!("one result is expected, not {others}")),
    }
}

/// The values of a sample.
pub(crate) fn study(asked: RunExpectation, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let name = format!("{CLIENT_NAME}.stdout");
    let result = parse_result(&artefacts.bytes(&name)?);
    let result = result.map_err(|why| Rejection::output(format!("{name} is not what was expected: {why}")))?;
    let process: serde_json::Value = artefacts.json(&format!("{CLIENT_NAME}.process.json"))?;
    let elapsed = process.get("elapsed-seconds").and_then(serde_json::Value::as_f64).unwrap_or_default();

    let mut measured = Measurement::default().with_duration(result.totals.seconds);
    set_throughput(&mut measured, &result);
    set_costs(&mut measured, &result);
    set_latencies(&mut measured, asked.interval, &result)?;
    gates::check_completed(&mut measured, asked, &result);
    gates::check_received(&mut measured, asked, &result);
    gates::check_possible(&mut measured, &result, elapsed);
    measured.findings.extend(result.notes.iter().cloned());
    for machine in &result.machines {
        let name = if machine.address.is_none() { "client" } else { "server" };
        measured.add_provenance(&format!("{name} strands"), &machine.executor);
    }
    Ok(measured)
}

fn set_throughput(measured: &mut Measurement, result: &RunResult) {
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
            measured.set(Class::Throughput, name, value);
        }
    }
    if let Some(latency) = &totals.latency {
        let named = LATENCIES.into_iter().zip(latency_values(latency));
        named.for_each(|(name, value)| measured.set(Class::Latency, name, value));
    }
}

fn set_costs(measured: &mut Measurement, result: &RunResult) {
    let totals = &result.totals;
    // In percent of one CPU.
    let share = |usage: Usage| (usage.user_ns + usage.system_ns) as f64 / 1e9 / totals.seconds * 100.0;
    let used = |of: fn(&GroupResult) -> Usage| {
        result.groups.iter().map(of).fold(Usage::default(), |mut sum, usage| {
            sum.add(usage);
            sum
        })
    };
    if totals.seconds > 0.0 {
        measured.set(Class::Resource, "client-cpu", share(used(|group| group.client_usage)));
        measured.set(Class::Resource, "server-cpu", share(used(|group| group.server_usage)));
    }
    let resent = |group: &GroupResult| group.client_connections.retransmits + group.server_connections.retransmits;
    measured.set(Class::Check, "retransmits", result.groups.iter().map(resent).sum::<u64>() as f64);
    measured.set(Class::Check, "lost-datagrams", totals.lost_datagrams as f64);
    measured.set(Class::Check, "errors", totals.errors as f64);
    if let Some(percent) = totals.difference_percent {
        measured.set(Class::Check, "difference", percent);
    }
}

/// How long rounds took, over time.
fn set_latencies(measured: &mut Measurement, interval: Nanos, result: &RunResult) -> Result<(), Rejection> {
    for group in &result.groups {
        let moves = group.transactions.iter().any(|part| part.is_data_phase);
        let parts: Vec<&TransactionResult> =
            group.transactions.iter().filter(|part| part.is_data_phase == moves).collect();
        for part in &parts {
            let counts =
                |latency: &Option<LatencySummary>| latency.as_ref().map_or(Ok(Vec::new()), LatencySummary::buckets);
            let seconds: Result<Vec<_>, String> = part.intervals.iter().map(|one| counts(&one.latency)).collect();
            let seconds =
                seconds.map_err(|why| Rejection::output(format!("{} of {}: {why}", part.name, group.name)))?;
            let title = if parts.len() > 1 { format!("{} {}", group.name, part.name) } else { group.name.clone() };
            measured.latencies.push(LatencySeries { title: format!("{title}, per {interval}"), seconds });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wb_model::Validity;

    use super::super::testing::{expectation, folder_of, stream, study_result};
    use super::*;

    #[test]
    fn a_sample_has_all_declared_values() {
        for primary in [PrimaryMetric::Throughput, PrimaryMetric::Rounds] {
            let measured = study_result(expectation(primary), &stream());
            assert_eq!(measured.validity, Validity::Valid);
            for metric in metrics(primary) {
                assert!(measured.get(&metric).is_some(), "{}", metric.name);
            }
            assert_eq!(measured.values.len(), metrics(primary).len());
        }
    }

    #[test]
    fn values_are_in_the_units_that_are_declared() {
        let measured = study_result(expectation(PrimaryMetric::Throughput), &stream());
        let value = |name: &str| measured.values[name];
        assert_eq!(value("throughput/received"), 8e9);
        assert_eq!(value("throughput/rounds"), 10_000.0);
        assert_eq!(value("resource/client-cpu"), 75.0);
        assert_eq!(value("resource/server-cpu"), 50.0);
        assert_eq!(value("check/retransmits"), 3.0);
        assert_eq!(measured.seconds, Some(1.0));
        assert_eq!(measured.findings, ["a note"]);
    }

    #[test]
    fn intervals_become_latencies_over_time() {
        let measured = study_result(expectation(PrimaryMetric::Throughput), &stream());
        assert_eq!(measured.latencies[0].title, "stream, per 500ms");
        let seconds = &measured.latencies[0].seconds;
        assert_eq!(seconds[0], [(100, 3)]);
        assert_eq!(seconds[1], []);
    }

    #[test]
    fn what_is_no_result_is_rejected() {
        let why = |stdout: &str| {
            let folder = folder_of(stdout);
            study(expectation(PrimaryMetric::Rounds), &Artefacts::new(folder.path())).unwrap_err().figures
        };
        assert!(why("").starts_with("client.stdout is not what was expected"));
        assert!(why("[]").ends_with("one result is expected, not 0"), "{}", why("[]"));
        let two = serde_json::to_string(&[stream(), stream()]).unwrap();
        assert!(why(&two).ends_with("one result is expected, not 2"));
        let broken = serde_json::to_string(&stream()).unwrap().replace("HISTE", "!!!!!");
        assert!(why(&broken).starts_with("Txn1 of stream: "), "{}", why(&broken));
    }
}
