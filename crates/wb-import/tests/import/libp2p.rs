//! Import of the results of libp2p's performance suites, and what of them is marked as impossible.

use std::path::{Path, PathBuf};

use wb_model::{CellOutcome, Direction, Validity};
use wb_results::{CellResult, MetricResult, Study};

use crate::lab::{ImportEnv, example};

fn study(paths: &[PathBuf]) -> Study {
    let lab = ImportEnv::new();
    let report = lab.try_import("R", paths).unwrap();
    let failed: Vec<String> =
        report.failed_files().map(|(path, reason)| format!("{}: {reason}", path.display())).collect();
    assert_eq!(failed, [""; 0]);
    lab.study("R")
}

fn cell<'a>(study: &'a Study, case: &str) -> &'a CellResult {
    let id = format!("Localhost/peers/0000:{case}");
    let all = || study.cells.iter().map(|cell| cell.id.to_string()).collect::<Vec<_>>();
    study.cells.iter().find(|cell| cell.id.to_string() == id).unwrap_or_else(|| panic!("{id}: {:?}", all()))
}

fn metric<'a>(cell: &'a CellResult, name: &str) -> &'a MetricResult {
    let found = cell.metrics.iter().find(|result| result.metric.key().to_string() == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", cell.metrics))
}

fn median(cell: &CellResult, name: &str) -> f64 {
    metric(cell, name).summary.as_ref().unwrap().median
}

/// The invalid figures of all cells: case, metric and reason.
fn invalid(study: &Study) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for cell in &study.cells {
        for attempt in &cell.attempts {
            if let Some(Validity::Invalid { figures, .. }) = &attempt.validity {
                let metrics = attempt.values.keys().filter(|key| key.class != wb_model::Class::Check);
                let names: Vec<String> = metrics.map(ToString::to_string).collect();
                found.push((cell.id.case.to_string(), names.join(" "), figures.clone()));
            }
        }
    }
    found
}

const RED: &str = "dialer=red,listener=red,muxer=yamux,security=noise,transport=tcp";
const MIXED: &str = "dialer=red,listener=blue,muxer=yamux,security=noise,transport=tcp";

#[test]
fn samples_of_a_row_are_those_of_its_cell() {
    let study = study(&[example("libp2p-results.yaml")]);
    assert_eq!(study.cells.len(), 8);
    let red = cell(&study, RED);
    assert_eq!(red.outcome, CellOutcome::Measured);
    let upload = metric(red, "throughput/upload");
    let summary = upload.summary.as_ref().unwrap();
    assert_eq!((summary.n, upload.metric.unit.as_str(), upload.metric.primary), (8, "B/s", true));
    assert!((summary.median - 4.175 * 125e6).abs() < 1.0, "{}", summary.median);
    let latency = metric(red, "latency/round-trip");
    assert_eq!((latency.summary.as_ref().unwrap().n, latency.metric.unit.as_str()), (20, "ns"));
    assert_eq!(latency.metric.direction, Direction::Lower);
    assert!((0.3e6..0.5e6).contains(&median(red, "latency/round-trip")));
    assert_eq!(study.run.metadata["test pass"], "perf-000000-01-01-2026");
}

#[test]
fn impossible_samples_are_invalid_with_the_reason() {
    let study = study(&[example("libp2p-results.yaml")]);
    let mixed = cell(&study, MIXED);
    assert!(matches!(mixed.outcome, CellOutcome::Partial { valid: 24, required: 28 }), "{:?}", mixed.outcome);
    assert!(metric(mixed, "throughput/download").summary.is_none());
    assert_eq!(metric(mixed, "throughput/upload").summary.as_ref().unwrap().n, 4);
    assert!(
        mixed.findings.iter().any(|finding| finding.contains("10 iterations, but 4 samples")),
        "{:?}",
        mixed.findings
    );
    let invalid = invalid(&study);
    let of = |case: &str| invalid.iter().filter(|(of, ..)| of == case).collect::<Vec<_>>();
    assert!(of(MIXED).iter().all(|(_, metric, why)| metric == "throughput/download" && why.contains("best baseline")));
    let limited = of("dialer=js,listener=red,muxer=yamux,security=noise,transport=tcp");
    assert_eq!(limited.len(), 4);
    assert!(limited[0].2.contains("4 of 8 samples have 859 Mbit/s"), "{limited:?}");
    let null = of("dialer=blue,listener=blue,transport=quic-v1");
    assert_eq!(null.len(), 1);
    assert_eq!(null[0].2, "status `pass`, but no figures of download");
    assert_eq!(invalid.len(), 4 + 4 + 1);
}

#[test]
fn failures_keep_their_status_and_have_no_invented_cause() {
    let study = study(&[example("libp2p-results.yaml")]);
    for case in ["dialer=blue,listener=red,transport=quic-v1", "dialer=quic-go,listener=quic-go,transport=quic"] {
        let outcome = cell(&study, case).outcome.to_string();
        assert_eq!(outcome, "failed (status `fail` without a cause in the file)");
    }
}

#[test]
fn medians_are_samples_where_a_file_has_no_others() {
    let study = study(&[example("libp2p-results.yaml")]);
    let js = cell(&study, "dialer=js,listener=js,muxer=yamux,security=noise,transport=tcp");
    assert_eq!((js.attempts.len(), &js.outcome), (3, &CellOutcome::Measured));
    assert!(js.findings.iter().any(|finding| finding.contains("the median of 10 iterations")), "{:?}", js.findings);
}

#[test]
fn the_clock_of_a_baseline_is_a_finding() {
    let study = study(&[example("libp2p-results.yaml")]);
    let iperf = cell(&study, "dialer=iperf,listener=iperf,transport=tcp");
    assert!(iperf.findings.iter().any(|finding| finding.contains("all 5 samples are equal")), "{:?}", iperf.findings);
    assert_eq!(iperf.params["baseline"].to_string(), "true");
}

#[test]
fn a_table_is_a_run_too() {
    let study = study(&[example("libp2p-results.md")]);
    assert_eq!(study.cells.len(), 4);
    assert!((median(cell(&study, RED), "latency/round-trip") - 420_000.0).abs() < 1.0);
    let invalid = invalid(&study);
    let [(case, metric, why)] = &invalid[..] else { panic!("{invalid:?}") };
    assert_eq!((case.as_str(), metric.as_str()), (MIXED, "throughput/download"));
    assert!(why.contains("208 times the upload of 940 Mbit/s"), "{why}");
}

/// The suite's published table, if it is beside the repository.
fn published() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/libp2p/results.md");
    let found = path.exists();
    if !found {
        wb_test_skip::skip!("libp2p's published results are not beside the repository (../shared/data/libp2p)");
    }
    found.then_some(path)
}

#[test]
fn of_the_published_table_exactly_the_impossible_downloads_are_invalid() {
    let Some(path) = published() else { return };
    let study = study(&[path]);
    // 20 tests and the failed baseline: nothing is known of those that passed.
    assert_eq!(study.cells.len(), 21);
    let invalid = invalid(&study);
    assert_eq!(invalid.len(), 4, "{invalid:?}");
    for (case, metric, why) in &invalid {
        assert!(case.contains("dialer=rust-v0.56,listener=dotnet-v1.0") && case.contains("transport=tcp"), "{case}");
        assert_eq!(metric, "throughput/download");
        assert!(why.contains("times the upload") && why.contains("no figure of a baseline"), "{why}");
    }
    let failed = study.cells.iter().filter(|cell| matches!(cell.outcome, CellOutcome::Failed { .. })).count();
    assert_eq!(failed, 12);
}

#[test]
fn latencies_of_the_published_table_are_milliseconds() {
    let Some(path) = published() else { return };
    let study = study(&[path]);
    let slow = cell(&study, "dialer=rust-v0.56,listener=dotnet-v1.0,muxer=yamux,security=noise,transport=tcp");
    assert!((median(slow, "latency/round-trip") - 87_957_000.0).abs() < 1.0);
    let marked: Vec<&CellResult> = study
        .cells
        .iter()
        .filter(|cell| cell.findings.iter().any(|finding| finding.contains("read as milliseconds")))
        .collect();
    assert_eq!(marked.len(), 9, "each cell with a latency is marked");
    assert!(marked[0].findings.iter().any(|finding| finding.contains("88.0 s on one host is impossible")));
}
