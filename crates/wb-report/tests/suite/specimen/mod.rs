//! An example study with every element, for the tests of reports and the example program.

pub(crate) mod cell;

use std::collections::BTreeMap;

use cell::{CellBuilder, Noise};
use wb_model::{Metric, System, Unit};
use wb_report::page::{ReproduceCommand, RunExtras, TelemetrySeries};
use wb_results::{
    Conclusion, CurveSet, EnvironmentChange, NestedLatency, NestedRow, RunInfo, Study, SummaryCurve, SummaryPoint,
};

/// The example study.
pub(crate) fn study() -> Study {
    Study {
        run: run(),
        cells: vec![
            cell_of("himeno", "grid=S,isa=avx2,threads=1")
                .samples(4210.0, 0.4, 6)
                .check(Metric::check("gosa", ""), 2.394422e-3)
                .build(),
            cell_of("himeno", "grid=M,isa=avx2,threads=1")
                .samples(3377.0, 1.6, 9)
                .disturb(3, "steal 3.2 % of the sample's CPU time")
                .disturb(6, "other processes used 0.84 CPU-seconds")
                .check(Metric::check("gosa", ""), 1.453951e-3)
                .build(),
            cell_of("himeno", "grid=M,isa=avx2,threads=2")
                .samples(5912.0, 12.0, 30)
                .invalid(11, "gosa 1.71e-3 is 17.6 % off the expected 1.453951e-3")
                .finding("two modes: 21 samples around 6.12 Gflops, 8 around 5.31 Gflops")
                .not_converged(2.8)
                .build(),
            cell_of("himeno", "grid=XL,isa=avx512,threads=1").unsupported("this CPU has no avx512f"),
            cell_of("ramspeed", "kernel=triad,non-temporal=true").samples(18_420.0, 0.7, 6).build(),
            cell_of("ramspeed", "kernel=triad,non-temporal=false").samples(14_180.0, 0.9, 6).build(),
            cell_of("ramspeed", "kernel=sweep,non-temporal=false").samples(212_000.0, 1.1, 6).curve(sweep()).build(),
            cell_of("linpack", "problem-size=4000,threads=1")
                .samples(37.9, 0.3, 6)
                .check(Metric::check("residual", ""), 0.0193)
                .build(),
            cell_of("linpack", "problem-size=4000,threads=2")
                .samples(63.8, 1.2, 7)
                .check(Metric::check("residual", ""), 0.0193)
                .build(),
            cell_of("redis", "operation=get")
                .samples(81_340.0, 1.0, 8)
                .metric(Metric::latency("p50", "ms"), 0.303, 0.6)
                .metric(Metric::latency("p95", "ms"), 0.519, 1.4)
                .metric(Metric::latency("p99", "ms"), 0.871, 3.9)
                .build(),
            cell_of("redis", "operation=lpush")
                .samples(77_910.0, 1.4, 12)
                .crash(5, "redis-benchmark: exit status 1: Error: Server closed the connection")
                .metric(Metric::latency("p50", "ms"), 0.319, 0.6)
                .metric(Metric::latency("p95", "ms"), 0.543, 1.4)
                .metric(Metric::latency("p99", "ms"), 0.903, 3.9)
                .build(),
            cell_of("redis", "operation=<script>alert(1)<%2Fscript>")
                .failed("redis-benchmark: exit status 1: unknown command `<script>alert(1)</script>`"),
            cell_of("fio", "block-size=4k,rw=randread")
                .samples(42_600.0, 2.2, 9)
                .metric(Metric::throughput("bandwidth", "KB/s"), 174_490.0, 2.2)
                .metric(Metric::latency("p99", "ns"), 412_000.0, 6.0)
                .latency(nested())
                .build(),
            cell_of("fio", "block-size=1m,rw=read")
                .samples(1_920.0, 1.8, 4)
                .metric(Metric::throughput("bandwidth", "KB/s"), 2_013_265.0, 1.8)
                .partial(4, 6)
                .build(),
        ],
        conclusions: vec![Conclusion {
            cells: "ramspeed".into(),
            name: "last-level cache".into(),
            value: 33_554_432.0,
            interval: None,
            unit: Unit::new("B"),
            explanation: "read bandwidth falls from 61.0 GB/s at 16 MiB to 18.9 GB/s at 64 MiB".into(),
        }],
        environment_changes: vec![
            EnvironmentChange {
                worker: None,
                path: "sysctl/vm.swappiness".into(),
                before: Some("60".into()),
                after: Some("10".into()),
            },
            EnvironmentChange {
                worker: Some("vm2".to_owned()),
                path: "mounts//mnt/scratch".into(),
                before: None,
                after: Some("ext4 rw,relatime".into()),
            },
        ],
    }
}

/// A cell of one of the tests, with its summary.
fn cell_of(test: &str, case: &str) -> CellBuilder {
    let (metric, unit, summary) = match test {
        "himeno" => ("mflops", "mflops", "Jacobi iterations of a 19-point stencil; bound by memory bandwidth"),
        "ramspeed" => ("bandwidth", "MB/s", "memory bandwidth: copy, scale, add, triad, and the block-size sweep"),
        "linpack" => ("gflops", "gflops", "LU factorisation with partial pivoting, and solve"),
        "redis" => ("requests", "requests/s", "redis-server through redis-benchmark on a private socket"),
        "fio" => ("iops", "iops", "storage through fio"),
        _ => unreachable!("no such test: {test}"),
    };
    CellBuilder::new(test, case, Metric::throughput(metric, unit).primary()).summary(summary)
}

/// Its additional content: telemetry of two cells, and commands.
pub(crate) fn extras(study: &Study) -> RunExtras {
    let mut noise = Noise::new("telemetry");
    let mut telemetry = BTreeMap::new();
    for sample in study.cells.iter().take(2).flat_map(|cell| &cell.attempts) {
        let mut series = |name: &str, unit: &str, centre: f64, spread: f64| TelemetrySeries {
            name: name.into(),
            unit: Unit::new(unit),
            points: (0..=10).map(|index| (f64::from(index) * 0.5, noise.around(centre, spread))).collect(),
        };
        let disturbed = !sample.disturbances.is_empty();
        let lines = vec![
            series("CPU of the workload", "%", 99.2, 0.4),
            series("CPU of everything else", "%", if disturbed { 14.0 } else { 0.8 }, 30.0),
            series("frequency", "Hz", 3.41e9, 0.6),
            series("temperature", "°C", 61.0, 2.0),
        ];
        telemetry.insert(sample.folder.clone(), lines);
    }
    let command = |purpose: &str, line: &str| ReproduceCommand { purpose: purpose.into(), line: line.into() };
    RunExtras {
        experiment: None,
        telemetry,
        commands: vec![
            command("run the same plan", "weighbridge run --plan quick --out quick-again"),
            command("study this folder again", "weighbridge study quick-2026-07-16T10-15"),
        ],
    }
}

fn run() -> RunInfo {
    let pairs = [
        ("host", "anvil"),
        ("CPU", "AMD EPYC 7763 64-Core Processor, 2 of 128 CPUs"),
        ("memory", "23.4 GiB, 1 node"),
        ("kernel", "6.1.0-39-cloud-amd64"),
        ("hypervisor", "kvm"),
    ];
    RunInfo {
        name: "quick-2026-07-16T10-15".into(),
        plan: "quick".into(),
        started: "2026-07-16T10:15:04Z".into(),
        seconds: 221.4,
        preparation_seconds: 0.0,
        unmeasured: None,
        workload_seconds: 193.0,
        measured_seconds: 171.0,
        version: "0.1.0".into(),
        properties: pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec(),
        machines: vec!["anvil".to_owned()],
        systems: vec![system()],
        metadata: BTreeMap::from([("ticket".to_owned(), "WB-12 <after the BIOS update>".to_owned())]),
        imports: Vec::new(),
        unchecked_lines: 0,
    }
}

fn system() -> System {
    let properties = [
        ("processor", "AMD EPYC 7763 64-Core Processor, microcode 0xa0011d1"),
        ("CPUs", "2 on 1 core, 1 package, 1 NUMA node, last-level cache 32 MiB"),
        ("memory", "23.4 GiB"),
        ("disk", "vda: 256 GiB, solid state, scheduler mq-deadline"),
        ("file system", "ext4 on / (/dev/vda, rw,relatime)"),
        ("distribution", "Debian GNU/Linux 12 (bookworm)"),
        ("kernel", "6.1.0-39-cloud-amd64 x86_64, clock source tsc"),
        ("governor", "no frequency control, idle states by haltpoll"),
        ("huge pages", "transparent madvise, defrag madvise"),
        ("mitigations", "spec_store_bypass: Vulnerable; spectre_v2: Retpolines; not affected by 15 others"),
    ];
    let properties = properties.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
    System { host: "anvil".to_owned(), properties }
}

/// A curve of bandwidth over block size, with the steps of three caches.
fn sweep() -> CurveSet {
    let mut noise = Noise::new("sweep");
    let mut line = |name: &str, factor: f64| {
        let points = (10..=28).map(|power| {
            let x = f64::from(1u32 << power);
            let step = |size: f64, height: f64| height / (1.0 + (x / size).powi(3));
            let y = factor * (19_000.0 + step(2.6e7, 42_000.0) + step(7.0e5, 55_000.0) + step(4.0e4, 110_000.0));
            let y = noise.around(y, 1.5);
            SummaryPoint { x, y, interval: Some((y * 0.965, y * 1.03)), spread: Some((y * 0.94, y * 1.05)) }
        });
        SummaryCurve { name: name.into(), points: points.collect() }
    };
    let lines = vec![line("read", 1.0), line("write", 0.61)];
    let axis = |name: &str, unit: &str| (name.to_owned(), Unit::new(unit));
    CurveSet {
        title: "bandwidth over block size".into(),
        x: axis("block size", "B"),
        y: axis("bandwidth", "MB/s"),
        lines,
    }
}

fn nested() -> NestedLatency {
    let row = |percentile: f64, cumulative_ns: f64, spread: f64| NestedRow {
        percentile,
        cumulative_ns,
        over_seconds_ns: [0.8, 0.93, 1.0, 1.0 + spread, 1.0 + 4.0 * spread]
            .map(|factor| cumulative_ns * factor)
            .to_vec(),
    };
    NestedLatency {
        title: "read completion".into(),
        over_seconds: vec![0.0, 25.0, 50.0, 95.0, 100.0],
        rows: vec![
            row(50.0, 181_000.0, 0.04),
            row(90.0, 262_000.0, 0.08),
            row(99.0, 412_000.0, 0.21),
            row(99.9, 1_680_000.0, 0.9),
            row(100.0, 24_800_000.0, 3.0),
        ],
        over_time: Some(latency_over_time()),
    }
}

/// A stall after three seconds of each sample.
fn latency_over_time() -> CurveSet {
    let line = |name: &str, level: f64, stall: f64| {
        let value = |index: u32| level * if index == 3 { stall } else { 1.0 + 0.02 * f64::from(index % 3) };
        let point = |index: u32| SummaryPoint {
            x: f64::from(index) + 0.5,
            y: value(index),
            interval: Some((value(index) * 0.97, value(index) * 1.04)),
            spread: None,
        };
        SummaryCurve { name: name.into(), points: (0..8).map(point).collect() }
    };
    CurveSet {
        title: "read completion: latency over the time of a sample".into(),
        x: ("time in the sample".into(), Unit::new("s")),
        y: ("latency".into(), Unit::new("ns")),
        lines: vec![line("p50", 181_000.0, 1.1), line("p99", 412_000.0, 9.0), line("max", 1_680_000.0, 14.0)],
    }
}
