//! Weighbridge's own network engine as a baseline: a profile with one connection, and a transaction for each iteration.

use std::fmt::Write;

use wb_model::outcome::Gate;
use wb_net::ceiling::Ceiling;
use wb_results::Scenario;
use wb_results::net::{RunResult, TransactionResult};
use wb_test::{Artefacts, Attempt, Failure, Measurement, Rejection, WorkerContext};
use wb_workloads::net::output::{CLIENT_NAME, parse_result};
use wb_workloads::net::run::{NetWorkload, run_placed};

use super::ceiling::CeilingServer;
use super::cell::{PeersCell, Side};
use super::endpoint::{listen_host, placement};
use super::figures::{IterationValues, ScenarioValues};
use super::gates::{check_durations, check_rate, check_round_trip, check_total_traffic, raw_rate};
use super::params::ScenarioRun;
use super::sample::traffic_name;
use super::study::{ProcessRecord, set_median, set_rate};
use super::traffic::{InterfaceBytes, Traffic};

const PROFILE: &str = "profile.xml";
/// Size of each write and read of a transfer.
const BLOCK: u64 = 64 << 10;
/// The axis whose value is the engine's protocol.
const TRANSPORT: &str = "transport";

/// Protocol in the language of profiles; none if the engine has no such transport.
pub(super) fn protocol(cell: &PeersCell) -> Option<&'static str> {
    match cell.values.get(TRANSPORT)?.as_str() {
        "tcp" => Some("tcp"),
        "tls" => Some("tls"),
        "quic" => Some("quic"),
        _ => None,
    }
}

fn profile(protocol: &str, scenarios: &[ScenarioRun]) -> String {
    let mut text = "<profile name=\"peers\"><group nthreads=\"1\">\n".to_owned();
    let connect = format!("<flowop type=\"connect\" options=\"remotehost=peer protocol={protocol} tcp_nodelay\"/>");
    let mut add = |iterations: u32, flowops: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "<transaction iterations=\"{iterations}\">{flowops}</transaction>");
    };
    add(1, &connect);
    for run in scenarios {
        let (transactions, iterations) = if run.scenario.is_rate() { (run.iterations, 1) } else { (1, run.iterations) };
        for _ in 0..transactions {
            add(iterations, &flowops(run));
        }
    }
    add(1, "<flowop type=\"disconnect\"/>");
    text.push_str("</group></profile>\n");
    text
}

/// The flowops of an iteration. The other side answers an upload with a byte, and begins a download at one.
fn flowops(run: &ScenarioRun) -> String {
    let transfer = |action: &str, bytes: u64| {
        let part = |size: u64, count: u64| match size * count {
            0 => String::new(),
            _ => format!("<flowop type=\"{action}\" options=\"size={size} count={count}\"/>"),
        };
        part(BLOCK, bytes / BLOCK) + &part(bytes % BLOCK, 1)
    };
    let (send, receive) = run.sizes();
    transfer("write", send.max(1)) + &transfer("read", receive.max(1))
}

pub(super) async fn take(cell: &PeersCell, attempt: &mut Attempt) -> Result<(), Failure> {
    let protocol = protocol(cell).ok_or_else(|| Failure::refused("the engine has no such transport"))?;
    let host = listen_host(&attempt.context, attempt.context.server(0))?;
    let (ceiling, _) = CeilingServer::start(cell, &host, attempt).await?;
    let text = profile(protocol, &cell.scenario_runs());
    attempt.add_artefact(PROFILE, text.clone());
    let path = attempt.context.path(PROFILE);
    attempt.context.put(&path, text.as_bytes()).await?;
    let workload =
        NetWorkload { arguments: vec!["run".to_owned(), path], hosts: vec!["peer".to_owned()], response_times: false };
    let side = |side, context: &WorkerContext| placement(side, cell, &context.placement, &context.facts);
    let client = side(Side::Dialer, &attempt.context);
    let server = side(Side::Listener, attempt.context.server(0));
    let before = InterfaceBytes::read(&attempt.context).await?;
    run_placed(&workload, client, &[server], attempt).await?;
    attempt.add_json(&traffic_name(CLIENT_NAME), &Traffic::since(before, attempt).await?)?;
    ceiling.finish(attempt).await
}

pub(super) fn study(cell: &PeersCell, artefacts: &Artefacts, ceiling: &Ceiling) -> Result<Measurement, Rejection> {
    let result = read_result(artefacts)?;
    let traffic: Traffic = artefacts.json(&traffic_name(CLIENT_NAME))?;
    let process: ProcessRecord = artefacts.json(&format!("{CLIENT_NAME}.process.json"))?;
    let transactions: Vec<&TransactionResult> = result.groups.iter().flat_map(|group| &group.transactions).collect();
    let mut measurement = Measurement::default();
    let mut rest = transactions.iter().copied();
    set_median(
        &mut measurement,
        "connect",
        &rest.next().map(|connect| connect.seconds).into_iter().collect::<Vec<_>>(),
    );
    let (mut sent, mut received) = (0_u64, 0_u64);
    for run in cell.scenario_runs() {
        let name = run.scenario.name();
        let (send, receive) = run.total_sizes();
        sent = sent.saturating_add(send);
        received = received.saturating_add(receive);
        if run.scenario == Scenario::Latency {
            let Some(latency) = rest.next().and_then(|transaction| transaction.latency.as_ref()) else {
                measurement.reject(Gate::Output, format!("{name}: not in the result"));
                continue;
            };
            let seconds = |nanos: u64| nanos as f64 / 1e9;
            check_round_trip(&mut measurement, name, &[seconds(latency.percentiles.min_ns)], ceiling);
            set_median(&mut measurement, "round-trip", &[seconds(latency.percentiles.p50_ns)]);
            set_median(&mut measurement, "raw-round-trip", &[ceiling.median_round_trip]);
            continue;
        }
        let iterations: Vec<&TransactionResult> = rest.by_ref().take(run.iterations as usize).collect();
        check_bytes(&mut measurement, name, &run, &iterations);
        let bytes = run.bytes() as f64;
        let rates: Vec<f64> = iterations.iter().map(|iteration| bytes / iteration.seconds).collect();
        let raw = raw_rate(&run, ceiling);
        check_rate(&mut measurement, cell, name, raw, &rates, ceiling);
        set_rate(&mut measurement, name, &rates, raw);
    }
    let seconds = transactions.iter().map(|transaction| transaction.seconds).sum();
    check_durations(&mut measurement, CLIENT_NAME, seconds, process.elapsed_seconds);
    check_total_traffic(&mut measurement, cell, CLIENT_NAME, sent, received, &traffic);
    Ok(measurement)
}

pub(super) fn is_result(artefacts: &Artefacts) -> bool {
    artefacts.length(&format!("{CLIENT_NAME}.stdout")).is_ok()
}

fn read_result(artefacts: &Artefacts) -> Result<RunResult, Rejection> {
    parse_result(&artefacts.bytes(&format!("{CLIENT_NAME}.stdout"))?).map_err(Rejection::output)
}

/// Checks that both sides counted the bytes of each iteration: payload, and the byte of the other direction.
fn check_bytes(measurement: &mut Measurement, name: &str, run: &ScenarioRun, iterations: &[&TransactionResult]) {
    measurement.require(iterations.len() == run.iterations as usize, Gate::Work, || {
        format!("{name}: {} of {} iterations are in the result", iterations.len(), run.iterations)
    });
    let (send, receive) = run.sizes();
    let expected = send.max(1) + receive.max(1);
    for (i, iteration) in iterations.iter().enumerate() {
        let (sent, received) = (iteration.sent_bytes, iteration.received_bytes);
        measurement.require((sent, received) == (expected, expected), Gate::Work, || {
            format!(
                "{name}, iteration {i}: {sent} bytes sent and {received} received by both sides, expected {expected}"
            )
        });
    }
}

/// The figures of the iterations. The engine records the round trips as a histogram, so their median stands for them.
pub(super) fn figures(cell: &PeersCell, artefacts: &Artefacts) -> Result<IterationValues, Rejection> {
    let result = read_result(artefacts)?;
    let mut rest = result.groups.iter().flat_map(|group| &group.transactions);
    let mut figures =
        IterationValues { connect: rest.next().map(|one| one.seconds).into_iter().collect(), ..Default::default() };
    for run in cell.scenario_runs() {
        let bytes = run.bytes() as f64;
        let is_rate = run.scenario.is_rate();
        let values = if is_rate {
            rest.by_ref().take(run.iterations as usize).map(|one| bytes / one.seconds).collect()
        } else {
            let latency = rest.next().and_then(|one| one.latency.as_ref());
            latency.map(|one| one.percentiles.p50_ns as f64 / 1e9).into_iter().collect()
        };
        let of_run = ScenarioValues::new(&run, values, !is_rate);
        figures.scenarios.insert(run.scenario, of_run);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use wb_net_profile::{Variables, parse};

    use super::*;
    use crate::params::PeersParams;

    #[test]
    fn the_profile_has_a_transaction_for_each_iteration() {
        let params =
            PeersParams { iterations: 3, upload_bytes: wb_model::Bytes((1 << 20) + 7), ..PeersParams::default() };
        let text = profile("tls", &params.scenarios());
        assert!(text.contains(r#"options="size=7 count=1""#), "{text}");
        let parsed = parse("peers", &text, &Variables::default()).unwrap();
        // Connect, three uploads, three downloads, the round trips, disconnect.
        assert_eq!(parsed.profile.groups[0].transactions.len(), 9);
    }
}
