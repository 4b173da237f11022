//! Synthetic results of runs for the unit tests.

use std::collections::BTreeMap;

use tempfile::TempDir;
use wb_model::outcome::Gate;
use wb_model::{Nanos, Validity};
use wb_results::net::ConnectionInfo;
use wb_results::net::Usage;
use wb_results::net::{
    FlowopResult, FlowopSide, GroupResult, IntervalLatency, LatencySummary, MachineResult, Percentiles, RunResult,
    RunStatus, Totals, TransactionResult,
};
use wb_test::{Artefacts, Measurement};
use wb_test_artefacts::artefact_folder;

use super::expectation::{PrimaryMetric, RunExpectation};
use super::values;

/// An HDR histogram with three values of 100 ns.
const HISTOGRAM: &str = "HISTEwAAAAMAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAMcBBg==";

pub(super) fn expectation(primary: PrimaryMetric) -> RunExpectation {
    RunExpectation {
        primary,
        window: Some(Nanos(1_000_000_000)),
        may_be_truncated: false,
        interval: Nanos(500_000_000),
    }
}

/// Result of one second in which two connections transferred 1000 MB.
pub(super) fn stream() -> RunResult {
    let usage = |user_ms: u64| Usage { user_ns: user_ms * 1_000_000, system_ns: 250_000_000, ..Usage::default() };
    let info = |retransmits| ConnectionInfo { connections: 2, retransmits, ..ConnectionInfo::default() };
    let group = GroupResult {
        name: "stream".to_owned(),
        strand_count: 2,
        processes: false,
        totals: totals(),
        client_usage: usage(500),
        server_usage: usage(250),
        client_connections: info(1),
        server_connections: info(2),
        datagrams: None,
        uncounted_bytes: 0,
        transactions: vec![part("Txn0", "connect", false), part("Txn1", "write", true)],
        strands: Vec::new(),
    };
    RunResult {
        profile: "stream".to_owned(),
        seed: 1,
        outcome: RunStatus::Completed,
        notes: vec!["a note".to_owned()],
        totals: totals(),
        groups: vec![group],
        machines: vec![machine(None), machine(Some("127.0.0.1:20000".to_owned()))],
    }
}

fn totals() -> Totals {
    Totals {
        seconds: 1.0,
        sent_bytes: 1_000_000_000,
        received_bytes: 1_000_000_000,
        throughput: Some(1e9),
        sent_throughput: Some(1e9),
        difference_percent: Some(0.0),
        operations: 10_000,
        operations_per_second: Some(1e4),
        rounds: 10_000,
        rounds_per_second: Some(1e4),
        failed_rounds: 0,
        pending_rounds: None,
        scheduled_rounds: None,
        response: None,
        latency: Some(latency(10_000)),
        errors: 0,
        lost_datagrams: 0,
        timeouts: 0,
        late: 0,
    }
}

fn latency(count: u64) -> LatencySummary {
    let at = 100;
    let percentiles =
        Percentiles { min_ns: at, p50_ns: at, p90_ns: at, p99_ns: at, p99_9_ns: at, p99_99_ns: at, max_ns: 200_000 };
    LatencySummary { count, pending: 0, mean_ns: 190_000.0, percentiles, histogram: HISTOGRAM.to_owned() }
}

fn part(name: &str, flowop: &str, data: bool) -> TransactionResult {
    let client = FlowopSide {
        count: 10_000,
        bytes: 1_000_000_000,
        throughput: Some(1e9),
        latency: None,
        response: None,
        lag: None,
        scheduled: None,
        errors: BTreeMap::new(),
        timeouts: 0,
        late: 0,
        reordered: 0,
        jitter_ns: None,
        cpu_ns: None,
        counters: BTreeMap::new(),
    };
    let interval = |at, latency| IntervalLatency { start_seconds: at, latency };
    TransactionResult {
        name: name.to_owned(),
        is_data_phase: data,
        seconds: 1.0,
        sent_bytes: 1_000_000_000,
        received_bytes: 1_000_000_000,
        throughput: Some(1e9),
        operations: 10_000,
        operations_per_second: Some(1e4),
        rounds: Some(10_000),
        failed_rounds: 0,
        pending_rounds: None,
        scheduled_rounds: None,
        latency: None,
        response: None,
        lag: None,
        flowops: vec![FlowopResult { name: flowop.to_owned(), client, server: None, difference_percent: None }],
        intervals: vec![interval(0.0, Some(latency(3))), interval(0.5, None)],
        nested: None,
    }
}

fn machine(address: Option<String>) -> MachineResult {
    MachineResult {
        name: "client".to_owned(),
        address,
        executor: "a thread per strand".to_owned(),
        usage: Usage::default(),
        cpu_percent: None,
        sent_bytes: 0,
        received_bytes: 0,
        network: Default::default(),
        rejected_connections: 0,
        progress: Vec::new(),
    }
}

/// Artefacts of a sample whose client ran 1.3 s and printed this.
pub(super) fn folder_of(stdout: &str) -> TempDir {
    artefact_folder(&[("client.stdout", stdout), ("client.process.json", r#"{"elapsed-seconds": 1.3}"#)])
}

/// Evaluates a sample with this result.
pub(super) fn study_result(expectation: RunExpectation, result: &RunResult) -> Measurement {
    let folder = folder_of(&serde_json::to_string(result).unwrap());
    values::study(expectation, &Artefacts::new(folder.path())).unwrap()
}

/// Gate and figures of a sample that this change makes invalid.
pub(super) fn rejection_of(expectation: RunExpectation, change: impl FnOnce(&mut RunResult)) -> (Gate, String) {
    let mut result = stream();
    change(&mut result);
    match study_result(expectation, &result).validity {
        Validity::Invalid { gate, figures } => (gate, figures),
        Validity::Valid => panic!("valid"),
    }
}
