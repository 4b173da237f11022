//! Results as text: the layouts of the data folder, and those of every bench.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use wb_contention::BenchSpec;
use wb_contention::conditions::current_versions;
use wb_contention::format::{Detail, Times, format, header, latency_table};
use wb_contention::sequence::plan;
use wb_contention::solve::tune;
use wb_contention::spec::FormatOptions;
use wb_model::{Bytes, IocostModel, IocostQos};
use wb_results::contention::{
    Answer, Bench, BenchResult, Device, Distribution, Instance, InstanceLabel, IocostParameters, LATENCY_PERCENTILES,
    LatencyRow, LatencyTable, MemoryProfile, Percentile, Series, SystemInfo,
};
use wb_sys::cgroup::io_cost;

use crate::fake::{self, FakeMachine, Undisturbed};

/// A file of the data folder beside the project.
fn data(name: &str) -> Option<String> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/resctl-bench").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(_) => {
            wb_test_skip::skip!(
                "what resctl-bench prints is not beside the repository (../shared/data/resctl-bench/{name})"
            );
            None
        }
    }
}

/// A time of the table, in nanoseconds.
fn nanoseconds(figure: &str) -> f64 {
    let (number, unit) = figure.split_at(figure.len() - 1);
    number.parse::<f64>().unwrap() * if unit == "u" { 1e3 } else { 1e6 }
}

#[test]
fn the_latency_table_has_the_layout_of_the_data_folder() {
    let Some(expected) = data("latency-table.txt") else { return };
    let columns = ["00", "25", "50", "75", "90", "95", "99", "99.9", "100"];
    let mut rows = BTreeMap::new();
    for (line, percentile) in expected.lines().skip(1).zip(LATENCY_PERCENTILES) {
        let figures: Vec<f64> = line.split_whitespace().skip(1).map(nanoseconds).collect();
        let percentiles =
            columns.iter().zip(&figures).map(|(column, value)| (column.parse::<Percentile>().unwrap(), *value));
        let over_time = Distribution { percentiles: percentiles.collect(), mean: figures[10], stdev: figures[11] };
        rows.insert(percentile, LatencyRow { over_time, cumulative: figures[9] });
    }
    assert_eq!(rows.len(), 14);
    assert_eq!(latency_table(&LatencyTable { rows, seconds: 1000, idle_seconds: 0 }, "READ"), expected);
}

/// The value of `KEY=` in a text, in quotes or up to a space or a parenthesis.
fn field<'a>(text: &'a str, key: &str) -> &'a str {
    let rest = &text[text.find(&format!("{key}=")).unwrap() + key.len() + 1..];
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap(),
        None => rest.split([' ', ')', '\n', '(']).next().unwrap(),
    }
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str, key: &str) -> T {
    field(text, key).parse().unwrap()
}

fn gib(text: &str, key: &str) -> Bytes {
    Bytes((field(text, key).trim_end_matches('G').parse::<f64>().unwrap() * f64::from(1 << 30)) as u64)
}

#[test]
fn the_header_has_the_layout_of_the_data_folder() {
    let Some(expected) = data("header.txt") else { return };
    let lines: Vec<&str> = expected.lines().collect();
    let (model, qos) = (lines[3], lines[4]);
    let iocost = IocostParameters {
        model: IocostModel::from_array(
            ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"].map(|key| number(model, key)),
        ),
        qos: IocostQos {
            rpct: number(qos, "rpct"),
            rlat: number(qos, "rlat"),
            wpct: number(qos, "wpct"),
            wlat: number(qos, "wlat"),
            min: number(qos, "min"),
            max: number(qos, "max"),
        },
    };
    let (system, device) = (lines[1], lines[2]);
    let profile = MemoryProfile {
        profile: Some(number(system, "mem_profile")),
        avail: gib(system, "avail"),
        share: gib(system, "share"),
        target: gib(system, "target"),
    };
    let system = SystemInfo {
        kernel: field(system, "kernel").to_owned(),
        nr_cpus: number(system, "nr_cpus"),
        memory: gib(system, "memory"),
        swap: gib(system, "swap"),
        swappiness: number(system, "swappiness"),
        profile: Some(profile),
        device: Device {
            name: field(device, "dev").to_owned(),
            number: device.split(['(', ')']).nth(1).unwrap().to_owned(),
            model: field(device, "model").to_owned(),
            firmware: field(device, "firmware").to_owned(),
            size: gib(device, "size"),
            scheduler: field(device, "iosched").to_owned(),
            ..fake::system().device
        },
        iocost: Some(iocost),
        ..fake::system()
    };
    let result = BenchResult {
        instance: Instance { bench: Bench::IocostTune, label: InstanceLabel::Position(1) },
        spec: BenchSpec::new(Bench::IocostTune).to_text(),
        system,
        versions: current_versions(Bench::IocostTune),
        answer: Answer::IocostParams(iocost),
    };
    let words: Vec<&str> = lines[0].split(' ').collect();
    let (start, end) = (format!("{}T{}Z", words[2], words[3]), format!("{}T{}Z", words[2], words[5]));
    assert_eq!(header(&result, Some(Times { start: &start, end: &end })), expected);
}

#[test]
fn every_line_of_the_data_folder_is_planned() {
    let Some(commands) = data("commands.txt") else { return };
    let folder = tempfile::tempdir().unwrap();
    let machine = FakeMachine::at(&folder.path().join("run"));
    let mut planned = 0;
    for line in commands.lines() {
        let Some(specs) = line.split_once(" run ").map(|(_, specs)| specs) else { continue };
        let plan = plan(&machine.request(specs), &Default::default()).unwrap();
        assert!(plan.iter().map(|job| job.to_run()).sum::<usize>() > 0, "{line}");
        planned += 1;
    }
    assert!(planned >= 7, "{planned} lines of {commands}");
}

fn text(results: &[BenchResult], bench: Bench, detail: Detail) -> String {
    let result = results.iter().find(|result| result.instance.bench == bench).unwrap();
    format(
        result,
        Some(Times { start: "2026-01-01T00:00:01.5Z", end: "2026-01-01T01:02:03Z" }),
        detail,
        &FormatOptions::default(),
    )
}

/// The documentation shows a solution of these results, and how it is written.
fn documents_a_solution(results: &[BenchResult]) {
    let docs = include_str!("../../../../docs/contention.md");
    let solutions = text(results, Bench::IocostTune, Detail::Full);
    let shown = solutions.split("\n\n").find(|part| part.starts_with("[isolated-bandwidth]")).unwrap();
    assert!(docs.contains(shown), "{shown}");
    let tune = results.iter().find_map(|result| match &result.answer {
        Answer::IocostTune(answer) => Some((answer, &result.system.device.number)),
        _ => None,
    });
    let (answer, number) = tune.unwrap();
    let solution = answer.solutions.iter().find(|one| one.solution.name == "isolated-bandwidth").unwrap();
    let solved = solution.solved.as_ref().unwrap();
    let states = [("model", io_cost::model_state(&solved.model)), ("qos", io_cost::qos_state(&solved.qos))];
    for (file, state) in states {
        let command = format!("echo '{number} {}' > /sys/fs/cgroup/io.cost.{file}\n", state.trim_end());
        assert!(docs.contains(&command), "{command}");
    }
}

#[test]
fn every_bench_is_formatted() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    let sequence = "iocost-params hashd-params storage protection iocost-qos:vrate-intvs=4,vrate-min=50 iocost-tune";
    let results = machine.execute(sequence, Undisturbed).unwrap();
    assert_snapshot!(text(&results, Bench::IocostParams, Detail::Summary), @r#"
    [iocost-params result] 2026-01-01 00:00:01 - 01:02:03
    System info: kernel="6.1.0" nr_cpus=16 memory=32.0G swap=16.0G swappiness=60
    IO info: dev=nvme0n1(259:5) model="Fake SSD" firmware="1" size=477G iosched=none wbt=off iocost=off other=off

    iocost model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
    iocost QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 min=8.83 max=100.00
    "#);
    assert_snapshot!(text(&results, Bench::HashdParams, Detail::Summary), @r#"
    [hashd-params result] 2026-01-01 00:00:01 - 01:02:03
    System info: kernel="6.1.0" nr_cpus=16 memory=32.0G swap=16.0G swappiness=60
    IO info: dev=nvme0n1(259:5) model="Fake SSD" firmware="1" size=477G iosched=none wbt=off iocost=on other=off
    iocost model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
    iocost QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 min=8.83 max=100.00

    Result: hash_size=1.2M rps_max=1000 mem_size=16.0G chunk_pages=25 log_bps=1.0M
    "#);
    assert_snapshot!(text(&results, Bench::Storage, Detail::Summary), @r#"
    [storage result] 2026-01-01 00:00:01 - 01:02:03
    System info: kernel="6.1.0" nr_cpus=16 memory=32.0G swap=16.0G swappiness=60 mem_profile=16 (avail=30.0G share=12.0G target=11.0G)
    IO info: dev=nvme0n1(259:5) model="Fake SSD" firmware="1" size=477G iosched=none wbt=off iocost=on other=off
    iocost model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
    iocost QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 min=8.83 max=100.00

    Params: hash_size=1.2M rps_max=1000 mem_size=16.0G chunk_pages=25 log_bps=1.0M loops=3

    IO latency: R p50=32.5u:10.4u/40.0u p90=150u:28.3u/160u p99=160u:0/160u max=160u:0/160u
                W p50=32.5u:10.4u/40.0u p90=150u:28.3u/160u p99=160u:0/160u max=160u:0/160u

    IO BPS: read_final=4.6M write_final=4.2M read_all=4.0M write_all=5.0M

    Memory offloading: factor=1.400@16 usage_mean/stdev=11.0G/0 size_mean/stdev=15.4G/0 missing=0%
    "#);
    assert_snapshot!(text(&results, Bench::Protection, Detail::Summary), @r#"
    [protection result] 2026-01-01 00:00:01 - 01:02:03
    System info: kernel="6.1.0" nr_cpus=16 memory=32.0G swap=16.0G swappiness=60 mem_profile=16 (avail=30.0G share=12.0G target=11.0G)
    IO info: dev=nvme0n1(259:5) model="Fake SSD" firmware="1" size=477G iosched=none wbt=off iocost=on other=off
    iocost model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
    iocost QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 min=8.83 max=100.00
    missed requirements: oomd

    All scenarios mem-hog
    =====================

    IO latency: R p50=40.0u:28.3u/80.0u p90=160u:0/160u p99=160u:0/160u max=160u:0/160u
                W p50=33.0u:11.6u/40.0u p90=152u:25.3u/160u p99=160u:0/160u max=160u:0/160u

    Isolation and request latency impact, over the seconds:

               min   p01   p05   p10   p25   p50   p75   p90   p95   p99   max  mean stdev
    isol%    85.00 85.00 85.00 85.00 85.00 85.00 85.00 85.00 85.00 85.00 85.00 85.00     0
    lat-imp%     0     0     0     0     0  4.39  7.00 12.17 12.17 12.17 12.17  5.40  4.69

    Result: isol=85.00:0% lat_imp=5.40%:4.69 work_csv=87.50% missing=0%
    "#);
    assert_snapshot!(text(&results, Bench::IocostQos, Detail::Summary), @r#"
    [iocost-qos result] 2026-01-01 00:00:01 - 01:02:03
    System info: kernel="6.1.0" nr_cpus=16 memory=32.0G swap=16.0G swappiness=60 mem_profile=16 (avail=30.0G share=12.0G target=11.0G)
    IO info: dev=nvme0n1(259:5) model="Fake SSD" firmware="1" size=477G iosched=none wbt=off iocost=on other=off
    iocost model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
    iocost QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 min=8.83 max=100.00

    [00] QoS: iocost=off mem_profile=16
    [01] QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=100.00] [max=100.00]
    [02] QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=83.33] [max=83.33]
    [03] QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=66.67] [max=66.67]
    [04] QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 [min=50.00] [max=50.00]

             MOF     aMOF  isol-05%       lat-imp%  work-csv%  missing%
    [00]   1.520     FAIL      85.0     3.6:   3.9          -       0.0
    [01]   1.400    1.400      85.0     0.0:   0.0       87.5       0.0
    [02]   1.333    1.333      85.0     3.5:   3.4       87.5       0.0
    [03]   1.267    1.267     100.0     5.7:   4.5       87.5       0.0
    [04]   1.200    1.200     100.0     5.3:   5.8       87.5       0.0

    RLAT                p50                p90                p99                max
    [00]  28.8u:17.5u/80.0u   134u:48.8u/ 160u   160u:    0/ 160u   160u:    0/ 160u
    [01]  25.0u:11.0u/40.0u   130u:40.0u/ 160u   160u:    0/ 160u   160u:    0/ 160u
    [02]  25.6u:17.5u/80.0u   115u:41.0u/ 160u   160u:    0/ 160u   160u:    0/ 160u
    [03]  35.6u:20.3u/80.0u   155u:20.0u/ 160u   155u:20.0u/ 160u   160u:    0/ 160u
    [04]  30.0u:17.5u/80.0u   140u:35.8u/ 160u   150u:27.3u/ 160u   155u:20.0u/ 160u

    WLAT                p50                p90                p99                max
    [00]  28.8u:10.2u/40.0u   135u:38.3u/ 160u   160u:    0/ 160u   160u:    0/ 160u
    [01]  27.5u:11.8u/40.0u   125u:41.0u/ 160u   160u:    0/ 160u   160u:    0/ 160u
    [02]  29.4u:18.1u/80.0u   130u:40.0u/ 160u   150u:27.3u/ 160u   155u:20.0u/ 160u
    [03]  31.9u:16.8u/80.0u   130u:40.0u/ 160u   155u:20.0u/ 160u   160u:    0/ 160u
    [04]  29.4u:18.1u/80.0u   135u:38.3u/ 160u   155u:20.0u/ 160u   160u:    0/ 160u
    "#);
    assert_snapshot!(text(&results, Bench::IocostTune, Detail::Full), @r#"
    [iocost-tune result] 2026-01-01 00:00:01 - 01:02:03
    System info: kernel="6.1.0" nr_cpus=16 memory=32.0G swap=16.0G swappiness=60 mem_profile=16 (avail=30.0G share=12.0G target=11.0G)
    IO info: dev=nvme0n1(259:5) model="Fake SSD" firmware="1" size=477G iosched=none wbt=off iocost=on other=off
    iocost model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
    iocost QoS: rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 min=8.83 max=100.00

    Series over the vrate
    =====================

    MOF@16           vrate 50.0-100.0: min=1.200 max=1.400 err=0.000 points=4
    aMOF@16          vrate 50.0-81.9: min=1.200 max=1.328 err=0.018 points=2 rejected=2
    aMOF-delta@16    vrate 50.0-81.9: mean=0.000 err=0.000 points=2 rejected=2
    isol-05          vrate 50.0-100.0: min=83.50% max=100.0% knees=54.2 err=1.64% points=4
    lat-imp          vrate 50.0-100.0: mean=3.61% err=1.12% points=4
    work-csv         vrate 50.0-100.0: mean=87.50% err=0% points=4
    rlat-50-mean     vrate 50.0-100.0: mean=27.8u err=2.9u points=4
    rlat-50-99       vrate 50.0-100.0: mean=60.0u err=10.0u points=4
    rlat-50-100      vrate 50.0-100.0: mean=60.0u err=10.0u points=4
    rlat-99-mean     vrate 50.0-100.0: min=149u max=161u err=1.1u points=4
    rlat-99-99       vrate 50.0-100.0: mean=160u err=0 points=4
    rlat-100-100     vrate 50.0-100.0: mean=160u err=0 points=4
    wlat-50-mean     vrate 50.0-100.0: min=20.8u max=33.3u knees=83.3 err=1.2u points=3 rejected=1
    wlat-50-99       vrate 50.0-100.0: mean=40.0u err=10.0u points=3 rejected=1
    wlat-50-100      vrate 50.0-100.0: mean=40.0u err=10.0u points=3 rejected=1
    wlat-99-mean     vrate 50.0-100.0: min=150u max=160u knees=66.7 err=0 points=3 rejected=1
    wlat-99-99       vrate 50.0-100.0: mean=160u err=0 points=4
    wlat-100-100     vrate 50.0-100.0: mean=160u err=0 points=4

    Solutions
    =========

    [naive] vrate=75-100,rpct=99,wpct=99
      info: scale=100.0% MOF=1.400@16 aMOF=1.328 aMOF-delta=0.000 isol-05=83.50%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 161u 99-99= 160u 100-100= 160u
      wlat: 50-mean=33.3u 50-99=40.0u 50-100=40.0u 99-mean= 160u 99-99= 160u 100-100= 160u
      model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
      qos: rpct=99.00 rlat=161 wpct=99.00 wlat=160 min=75.00 max=100.00

    [bandwidth] amof=max-vrate
      info: scale=81.94% MOF=1.328@16 aMOF=1.328 aMOF-delta=0.000 isol-05=90.00%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 157u 99-99= 160u 100-100= 160u
      wlat: 50-mean=32.8u 50-99=40.0u 50-100=40.0u 99-mean= 160u 99-99= 160u 100-100= 160u
      model: rbps=2451888090 rseqiops=276764 rrandiops=303773 wbps=1829335178 wseqiops=213807 wrandiops=209963
      qos: rpct=0.00 rlat=157 wpct=0.00 wlat=160 min=100.00 max=100.00

    [isolated-bandwidth] isolated-bandwidth
      info: scale=81.94% MOF=1.328@16 aMOF=1.328 aMOF-delta=0.000 isol-05=90.00%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 157u 99-99= 160u 100-100= 160u
      wlat: 50-mean=32.8u 50-99=40.0u 50-100=40.0u 99-mean= 160u 99-99= 160u 100-100= 160u
      model: rbps=2451888090 rseqiops=276764 rrandiops=303773 wbps=1829335178 wseqiops=213807 wrandiops=209963
      qos: rpct=0.00 rlat=157 wpct=0.00 wlat=160 min=100.00 max=100.00

    [isolation] isolation
      info: scale=81.94% MOF=1.328@16 aMOF=1.328 aMOF-delta=0.000 isol-05=90.00%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 157u 99-99= 160u 100-100= 160u
      wlat: 50-mean=32.8u 50-99=40.0u 50-100=40.0u 99-mean= 160u 99-99= 160u 100-100= 160u
      model: rbps=2451888090 rseqiops=276764 rrandiops=303773 wbps=1829335178 wseqiops=213807 wrandiops=209963
      qos: rpct=0.00 rlat=157 wpct=0.00 wlat=160 min=100.00 max=100.00

    [rlat-99-q1] rlat-99=0.75-1
      info: scale=100.0% MOF=1.400@16 aMOF=1.328 aMOF-delta=0.000 isol-05=83.50%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 161u 99-99= 160u 100-100= 160u
      wlat: 50-mean=33.3u 50-99=40.0u 50-100=40.0u 99-mean= 160u 99-99= 160u 100-100= 160u
      model: rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 wseqiops=260917 wrandiops=256225
      qos: rpct=99.00 rlat=161 wpct=0.00 wlat=0 min=87.50 max=100.00

    [rlat-99-q2] rlat-99=0.5-0.75
      info: scale=87.50% MOF=1.350@16 aMOF=1.328 aMOF-delta=0.000 isol-05=88.00%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 158u 99-99= 160u 100-100= 160u
      wlat: 50-mean=33.3u 50-99=40.0u 50-100=40.0u 99-mean= 160u 99-99= 160u 100-100= 160u
      model: rbps=2618113349 rseqiops=295527 rrandiops=324367 wbps=1953354589 wseqiops=228302 wrandiops=224197
      qos: rpct=99.00 rlat=158 wpct=0.00 wlat=0 min=85.71 max=100.00

    [rlat-99-q3] rlat-99=0.25-0.5
      info: scale=75.00% MOF=1.300@16 aMOF=1.300 aMOF-delta=0.000 isol-05=92.50%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 155u 99-99= 160u 100-100= 160u
      wlat: 50-mean=30.2u 50-99=40.0u 50-100=40.0u 99-mean= 160u 99-99= 160u 100-100= 160u
      model: rbps=2244097157 rseqiops=253309 rrandiops=278029 wbps=1674303933 wseqiops=195688 wrandiops=192169
      qos: rpct=99.00 rlat=155 wpct=0.00 wlat=0 min=83.33 max=100.00

    [rlat-99-q4] rlat-99=0-0.25
      info: scale=62.50% MOF=1.250@16 aMOF=1.250 aMOF-delta=0.000 isol-05=97.00%
      rlat: 50-mean=27.8u 50-99=60.0u 50-100=60.0u 99-mean= 152u 99-99= 160u 100-100= 160u
      wlat: 50-mean=25.5u 50-99=40.0u 50-100=40.0u 99-mean= 158u 99-99= 160u 100-100= 160u
      model: rbps=1870080964 rseqiops=211091 rrandiops=231691 wbps=1395253278 wseqiops=163073 wrandiops=160141
      qos: rpct=99.00 rlat=152 wpct=0.00 wlat=0 min=80.00 max=100.00
    "#);
    documents_a_solution(&results);
    let full = text(&results, Bench::IocostQos, Detail::Full);
    for part in ["RUN 00 - Storage", "RUN 04 - Protection", "QoS result: MOF=", "WRITE ", "Summary"] {
        assert!(full.contains(part), "{part} in {full}");
    }
}

#[test]
fn what_limits_a_result_is_shown_and_an_invalid_setting_is_no_point_of_a_tuning() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = FakeMachine::at(&folder.path().join("run"));
    let results = machine.execute("iocost-params hashd-params iocost-qos:vrate-intvs=4,vrate-min=50", Undisturbed);
    let mut result = results.unwrap().pop().unwrap();
    result.system.time_scale = Some("0.1".parse().unwrap());
    let points = |result: &BenchResult| {
        tune(result, &Default::default()).unwrap().series.get(&Series::Mof).unwrap().points.len()
    };
    assert_eq!(points(&result), 4);
    let Answer::IocostQos(answer) = &mut result.answer else { panic!("{result:?}") };
    let found = answer.stages[1].found.as_mut().unwrap();
    found.storage.is_lower_bound = true;
    found.vrate_outside = 0.5;
    assert_eq!(points(&result), 3);
    let shown = text(std::slice::from_ref(&result), Bench::IocostQos, Detail::Full);
    for part in [
        "trial: durations times 0.1; the figures mean nothing",
        "MOF is a lower bound  invalid: the vrate was outside its bounds for 50.00% of the time",
        "QoS result: MOF>=1.400@16",
        "factor>=1.400@16",
        "the factor is a lower bound",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
