//! Import and evaluation of an example of each format.

use wb_model::{CellOutcome, Direction};
use wb_results::{CellResult, Study};

use crate::lab::{ImportEnv, text};

fn import_and_study(examples: &[&str]) -> Study {
    let lab = ImportEnv::new();
    lab.import("R", examples);
    lab.study("R")
}

fn cell<'a>(study: &'a Study, id: &str) -> &'a CellResult {
    let all = || study.cells.iter().map(|cell| cell.id.to_string()).collect::<Vec<_>>();
    study.cells.iter().find(|cell| cell.id.to_string() == id).unwrap_or_else(|| panic!("{id}: {:?}", all()))
}

/// Median, samples, unit and direction of a metric.
fn metric(cell: &CellResult, name: &str) -> (f64, usize, String, Direction) {
    let result = cell.metrics.iter().find(|result| result.metric.key().to_string() == name);
    let result = result.unwrap_or_else(|| panic!("{name}: {:?}", cell.metrics));
    let summary = result.summary.as_ref().unwrap();
    (summary.median, summary.n, result.metric.unit.to_string(), result.metric.direction)
}

fn primary(cell: &CellResult) -> String {
    let primaries: Vec<&str> =
        cell.metrics.iter().filter(|result| result.metric.primary).map(|result| result.metric.name.as_str()).collect();
    primaries.join(" ")
}

#[test]
fn pbench() {
    let study = import_and_study(&["pbench.json"]);
    assert_eq!(study.cells.len(), 2);
    let small = cell(&study, "TunedLibvirt/pbench-fio/0000:iteration=read-4KiB");
    assert_eq!(small.outcome, CellOutcome::Measured);
    assert_eq!(metric(small, "throughput/iops_sec"), (100_100.25, 3, "ops/s".into(), Direction::Higher));
    assert_eq!(metric(small, "latency/clat"), (319_000.0, 3, "ns".into(), Direction::Lower));
    assert_eq!(primary(small), "iops_sec");
    assert_eq!(small.provenance["kernel"], "6.1.0-9-amd64");
    assert_eq!(study.run.metadata["distro"], "Debian-12");
    assert_eq!(study.run.metadata["build"], "8", "the user's metadata has priority");
    let large = cell(&study, "TunedLibvirt/pbench-fio/0000:iteration=read-64KiB");
    assert_eq!(metric(large, "throughput/iops_sec").0, 20_100.5);
}

#[test]
fn fio() {
    let study = import_and_study(&["fio.json", "fio-normal-json+.txt"]);
    assert_eq!(study.cells.len(), 3);
    let reads = cell(&study, "Localhost/fio-json/0000:bs=4k,iodepth=4,job=randread,numjobs=1,rw=randread");
    let report: serde_json::Value = serde_json::from_str(&text("fio.json")).unwrap();
    let reported = &report["jobs"][0]["read"];
    assert_eq!(
        metric(reads, "throughput/iops"),
        (reported["iops"].as_f64().unwrap(), 1, "ops/s".into(), Direction::Higher)
    );
    assert_eq!(metric(reads, "throughput/bandwidth").0, reported["bw_bytes"].as_f64().unwrap());
    let p99 = reported["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap();
    assert_eq!(metric(reads, "latency/clat-p99"), (p99, 1, "ns".into(), Direction::Lower));
    assert_eq!(metric(reads, "resource/cpu-system").3, Direction::Lower);
    assert_eq!((primary(reads), reads.provenance["fio version"].as_str()), ("iops".to_owned(), "fio-3.33"));
    let mixed = cell(&study, "Localhost/fio-json/0000:bs=4k,iodepth=1,job=mixed,numjobs=2,rw=randrw");
    let both = metric(mixed, "throughput/read-iops").0 + metric(mixed, "throughput/write-iops").0;
    assert!((metric(mixed, "throughput/iops").0 - both).abs() < 1e-6 * both);
    assert_eq!(metric(mixed, "latency/read-clat-p99").1, 1, "histograms of clones are merged");
    cell(&study, "Localhost/fio-json/0000:bs=64k,iodepth=1,job=writer,numjobs=1,rw=write");
}

#[test]
fn iperf3() {
    let study = import_and_study(&[
        "iperf3-tcp-1.json",
        "iperf3-tcp-2.json",
        "iperf3-tcp-3.json",
        "iperf3-bidir.json",
        "iperf3-udp.json",
    ]);
    assert_eq!(study.cells.len(), 3);
    let tcp = cell(&study, "Localhost/iperf3-json/0000:direction=forward,length=128k,protocol=tcp,streams=2");
    let (_, samples, unit, direction) = metric(tcp, "throughput/received");
    assert_eq!((samples, unit.as_str(), direction), (3, "bit/s", Direction::Higher), "each file is a sample");
    assert_eq!(metric(tcp, "latency/rtt-mean").3, Direction::Lower);
    assert_eq!(metric(tcp, "check/retransmits").3, Direction::Lower);
    assert_eq!(primary(tcp), "received");
    assert_eq!((tcp.provenance["host"].as_str(), tcp.provenance["kernel"].as_str()), ("host1", "6.1.0-9-amd64"));
    assert!(
        study.run.properties.contains(&("kernel".to_owned(), "6.1.0-9-amd64 x86_64".to_owned())),
        "{:?}",
        study.run.properties
    );
    let both = cell(&study, "Localhost/iperf3-json/0000:direction=bidirectional,length=128k,protocol=tcp,streams=1");
    let sum = metric(both, "throughput/forward-received").0 + metric(both, "throughput/reverse-received").0;
    assert_eq!(metric(both, "throughput/received").0, sum);
    let udp = cell(&study, "Localhost/iperf3-json/0000:direction=forward,length=32k,protocol=udp,streams=1");
    assert_eq!(metric(udp, "check/lost").0, 0.0);
    assert_eq!(metric(udp, "latency/jitter").2, "ns");
}

#[test]
fn hyperfine() {
    let study = import_and_study(&["hyperfine.json"]);
    let fast = cell(&study, "Localhost/hyperfine/0000:command=gzip%20-1%20corpus.tar,level=1");
    assert_eq!(metric(fast, "latency/time"), (0.411_75, 8, "s".into(), Direction::Lower));
    assert_eq!(metric(fast, "resource/max-rss").2, "B");
    assert!(fast.metrics[0].summary.as_ref().unwrap().median_interval.is_some());
    let slow = cell(&study, "Localhost/hyperfine/0000:command=gzip%20-9%20corpus.tar,level=9");
    let failures = &slow.failures;
    assert_eq!((failures.failed, failures.attempts), (1, 6), "{failures:?}");
    assert!(failures.cause.as_ref().is_some_and(|cause| cause.contains("exit status `1`")), "{failures:?}");
    assert_eq!(metric(slow, "latency/time").1, 5, "the time until it failed does not count");
}

#[test]
fn google_benchmark() {
    let study = import_and_study(&["google-benchmark.json"]);
    assert_eq!(study.cells.len(), 3);
    let copy = cell(
        &study,
        "Localhost/google-benchmark/0000:argument-1=4096,benchmark=BM_Copy,executable=copy_bench,threads=2",
    );
    assert_eq!(metric(copy, "latency/real-time"), (96.1, 3, "ns".into(), Direction::Lower));
    assert_eq!(metric(copy, "throughput/bytes_per_second"), (4.2756e10, 3, "B/s".into(), Direction::Higher));
    assert_eq!(metric(copy, "check/misses").3, Direction::Neither);
    let sort = cell(&study, "Localhost/google-benchmark/0000:argument-1=1024,benchmark=BM_Sort,executable=copy_bench");
    assert_eq!(metric(sort, "latency/real-time").0, 34_700.0);
    let open = cell(&study, "Localhost/google-benchmark/0000:benchmark=BM_Open,executable=copy_bench");
    assert_eq!(open.outcome.to_string(), "failed (BM_Open: no such file)");
    assert_eq!(study.run.properties, [("host".to_owned(), "host1".to_owned())]);
}

#[test]
fn phoronix() {
    let study = import_and_study(&["phoronix.xml"]);
    assert_eq!(study.cells.len(), 4);
    let old = cell(&study, "Linux-6.1/pts-compress-7zip/0000:Test=Compression%20Rating,scale=MIPS");
    assert_eq!(metric(old, "throughput/result"), (71_020.0, 3, "MIPS".into(), Direction::Higher));
    let build = cell(&study, "Linux-6.1/pts-build-linux-kernel/0000:Build=defconfig,scale=Seconds");
    assert_eq!(metric(build, "latency/result"), (81.412, 3, "s".into(), Direction::Lower));
    let failed = cell(&study, "Linux-6.9/pts-build-linux-kernel/0000:Build=defconfig,scale=Seconds");
    assert!(matches!(failed.outcome, CellOutcome::Failed { .. }), "{:?}", failed.outcome);
}

#[test]
fn another_form_of_a_programs_output_is_refused_with_the_option_of_the_imported_one() {
    let forms = [
        (
            "fio.txt",
            "a: (groupid=0, jobs=1): err= 0: pid=7\n  read: IOPS=25.6k, BW=100MiB/s\n",
            "fio --output-format=json",
        ),
        ("fio.terse", "3;fio-3.33;a;0;0;1024;512000;128000;2\n", "fio --output-format=json"),
        (
            "runs.csv",
            "command,mean,stddev,median,user,system,min,max,parameter_s\nsleep 1,1.0,0.1,1.0,0.0,0.0,0.9,1.1,1\n",
            "hyperfine --export-json FILE",
        ),
        (
            "client.txt",
            "[ ID] Interval  Transfer  Bitrate\n[  5] 0.00-1.00 sec 1 GBytes 8 Gbits/sec\n",
            "iperf3 --json",
        ),
        (
            "bench.csv",
            "name,iterations,real_time,cpu_time,time_unit,label\n\"a\",7,1,1,ns,\n",
            "--benchmark_format=json",
        ),
        (
            "bench.txt",
            "-----\nBenchmark        Time             CPU   Iterations\n-----\na  1 ns  1 ns  7\n",
            "--benchmark_format=json",
        ),
    ];
    for (name, text, option) in forms {
        let lab = ImportEnv::new();
        let path = lab.write(&format!("results/{name}"), text);
        let report = lab.try_import("run", std::slice::from_ref(&path)).unwrap();
        let error = report.failed_files().next().unwrap().1.to_string();
        let expected = format!("not the form of this output that can be imported: expected that of `{option}`");
        assert_eq!(error, expected, "{name}");
        let report = lab.try_import("run", &[lab.path("results")]).unwrap();
        assert_eq!(report.failed_files().count(), 0, "{name} in a folder");
    }
}
