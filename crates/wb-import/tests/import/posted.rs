//! Results of other programs like those that their users posted, in a folder beside the repository.

use std::fs;
use std::path::Path;

use wb_import::{ForeignCell, ReadOptions, read};

/// What a cell was read as: its case, and what its first sample says.
fn describe(cell: &ForeignCell) -> String {
    let sample = cell.rows().next().unwrap();
    let primary = sample.readings.iter().find(|reading| reading.metric.primary);
    let figure = primary.map(|reading| format!("{} {:.0}", reading.metric.name, reading.value));
    let rejection = sample.rejection.map(|rejection| format!("invalid: {}", rejection.figures));
    let outcome = sample.failure.or(rejection).or(figure).unwrap_or_default();
    format!("{}: {outcome}", cell.case())
}

#[test]
fn posted_results_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/foreign");
    if !folder.is_dir() {
        return wb_test_skip::skip!("posted results are not beside the repository (../shared/data/foreign)");
    }
    let fio = |name: &str, rw: &str, rest: &str| format!("bs=4k,{rest}iodepth=1,job={name},numjobs=1,rw={rw}: ");
    let iperf3 =
        |length: &str, protocol: &str| format!("direction=forward,length={length},protocol={protocol},streams=1");
    for (file, cells, notes) in [
        ("fio-unified-both.json", vec![fio("a", "randrw", "") + "iops 2608132"], ""),
        ("fio-672-status-interval.json", vec![fio("test", "randread", "") + "iops 1000"], ""),
        ("fio-cs1.json", vec![fio("j1", "randread", "clients=1,") + "iops 985"], ""),
        ("fio-cs2.json", vec![fio("j1", "randread", "clients=2,") + "iops 1968"], ""),
        (
            "fio-1685-error-lines.json",
            vec![fio("test", "randread", "") + "fio: job `test` ended with: Input/output error (os error 5)"],
            "",
        ),
        (
            "iperf-1143-trailing.json",
            vec![iperf3("128k", "tcp") + ": iperf3: unable to send control message: Broken pipe"],
            "",
        ),
        ("iperf-1776-leading.json", vec![iperf3("128k", "tcp") + ": received 12317320112"], ""),
        (
            "iperf-1489-lost-179.json",
            vec![iperf3("32k", "udp") + ": invalid: lost is 179.649 %: expected at most 100 %"],
            "",
        ),
        (
            "pb-455-one-bad-iteration.json",
            vec!["iteration=1-read-4k: iops_sec 100".to_owned()],
            "iteration `2-read-64k`: no value over all clients",
        ),
        (
            "libp2p-benchmark-results.json",
            vec![
                "dialer=ping,listener=ping,transport=icmp: round-trip 60000000".to_owned(),
                "dialer=iperf,listener=iperf,transport=tcp: upload 562500000".to_owned(),
                "dialer=rust-libp2p-v0.53,listener=rust-libp2p-v0.53,transport=tcp: upload 150000000".to_owned(),
                "dialer=go-libp2p-v0.33,listener=go-libp2p-v0.33,transport=quic-v1: round-trip 180000000".to_owned(),
            ],
            "",
        ),
    ] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let (_, foreign) = read(&text, ReadOptions::default()).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(foreign.cells.iter().map(describe).collect::<Vec<_>>(), cells, "{file}");
        assert_eq!(foreign.notes.join("\n"), notes, "{file}");
    }
}

#[test]
fn both_directions_and_syncs_of_posted_results_are_metrics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/foreign");
    if !folder.is_dir() {
        return wb_test_skip::skip!("posted results are not beside the repository (../shared/data/foreign)");
    }
    let value = |file: &str, metric: &str| {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let (_, foreign) = read(&text, ReadOptions::default()).unwrap();
        let sample = foreign.cells[0].rows().next().unwrap();
        sample.readings.iter().find(|reading| reading.metric.name == metric).map(|reading| reading.value)
    };
    assert_eq!(value("fio-878-sync.json", "sync-lat-p99"), Some(5e6));
    let bidirectional = |metric: &str| value("iperf-952-bidir-dup.json", metric).unwrap();
    let sum = bidirectional("forward-received") + bidirectional("reverse-received");
    assert_eq!(bidirectional("received"), sum);
}
