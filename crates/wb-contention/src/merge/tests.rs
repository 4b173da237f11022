//! Merges of results made by hand.

use insta::assert_snapshot;
use wb_model::{Bytes, IocostModel, IocostQos};
use wb_results::contention::{
    Answer, Bench, BenchResult, Device, Instance, InstanceLabel, IocostParameters, LatencyKind, OverTime, Passive,
    Percentile, Point, Series, SystemInfo, TuneAnswer,
};

use super::*;
use crate::conditions::current_versions;

fn system(model: &str) -> SystemInfo {
    let device = Device {
        name: "sda".to_owned(),
        number: "8:0".to_owned(),
        model: model.to_owned(),
        firmware: "1".to_owned(),
        size: Bytes(1 << 40),
        scheduler: "none".to_owned(),
        wbt: false,
        other_controller: false,
    };
    SystemInfo {
        kernel: "6.1".to_owned(),
        nr_cpus: 2,
        memory: Bytes(32 << 30),
        swap: Bytes(0),
        swappiness: 60,
        zswap: false,
        profile: None,
        passive: Passive::default(),
        device,
        iocost: None,
        time_scale: None,
        missed_requirements: Vec::new(),
        merged: Vec::new(),
    }
}

/// A result whose series have one value each at three vrates: `mof` and the p99 of reads, in ms.
fn source(name: &str, rbps: u64, points: [(f64, f64, f64); 3]) -> MergeSource {
    let mut series = BTreeMap::new();
    let of = |value: fn(&(f64, f64, f64)) -> f64| {
        solve::unfitted(points.iter().map(|point| Point { x: point.0, y: value(point) }).collect())
    };
    series.insert(Series::Mof, of(|point| point.1));
    let rlat = Series::Latency(LatencyKind::Read, Percentile::P99, OverTime::Mean);
    series.insert(rlat, of(|point| point.2 * 1e6));
    // No two runs measure the same values.
    let own = name.bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    series.insert(Series::WorkCsv, solve::unfitted(vec![Point { x: 50.0, y: f64::from(own) }]));
    let model = IocostModel::from_array([rbps, 1000, 1000, rbps, 1000, 1000]);
    let qos = IocostQos { rpct: 95.0, rlat: 1, wpct: 95.0, wlat: 1, min: 50.0, max: 100.0 };
    let answer = TuneAnswer {
        base: IocostParameters { model, qos },
        mem_profile: Some(16),
        isol_pct: Percentile::P05,
        isol_thr: 0.9,
        qos_spec: BenchSpec::parse("iocost-qos:dither,vrate-max=125,vrate-intvs=25").unwrap().to_text(),
        series,
        solutions: Vec::new(),
        remarks: Vec::new(),
    };
    let spec = BenchSpec::new(Bench::IocostTune).to_text();
    let instance = Instance { bench: Bench::IocostTune, label: InstanceLabel::Position(1) };
    let versions = current_versions(Bench::IocostTune);
    let result = BenchResult { instance, spec, system: system("A"), versions, answer: Answer::IocostTune(answer) };
    let times = (format!("2026-01-0{}T00:00:00Z", name.len()), format!("2026-01-0{}T06:00:00Z", name.len()));
    // Runs of the same length of name differ in their device's path alone.
    let mut result = result;
    result.system.device.name = name.to_owned();
    MergeSource { name: name.to_owned(), result, times: Some(times) }
}

/// A merge of runs that all have results.
fn merge(results: Vec<MergeSource>, options: MergeOptions) -> Result<Vec<Merged>, MergeError> {
    super::merge(MergeSources { results, without_result: Vec::new() }, options)
}

fn tune(merged: &Merged) -> &TuneAnswer {
    match &merged.result.answer {
        Answer::IocostTune(answer) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn three_results_are_pooled_and_solved_as_by_hand() {
    // The nine values of mof are on one ramp from 1.0 at a vrate of 10 to 1.9 at 100, and those of the latency on one
    // from 1 ms at 10 to 10 ms at 100, so that the lines and their errors (0) are known.
    let on_ramp = |vrates: [f64; 3]| vrates.map(|vrate| (vrate, 0.9 + vrate / 100.0, vrate / 10.0));
    let sources = vec![
        source("a", 3000, on_ramp([10.0, 50.0, 100.0])),
        source("bb", 1000, on_ramp([20.0, 40.0, 80.0])),
        source("ccc", 2000, on_ramp([30.0, 60.0, 90.0])),
    ];
    let merged = merge(sources, MergeOptions::default()).unwrap();
    let [merged] = merged.as_slice() else { panic!("{merged:?}") };
    let answer = tune(merged);
    let mof = &answer.series[&Series::Mof];
    let vrates: Vec<f64> = mof.points.iter().map(|point| point.x).collect();
    assert_eq!(vrates, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 90.0, 100.0]);
    let line = mof.line.as_ref().unwrap();
    assert_eq!(line.range(), (10.0, 100.0));
    assert!(
        (line.eval(10.0) - 1.0).abs() < 1e-9 && (line.eval(100.0) - 1.9).abs() < 1e-9 && mof.error < 1e-9,
        "{line:?}"
    );
    // The median model, and q2: from half to three quarters of the slope, 55 to 77.5 % of that model.
    assert_eq!(answer.base.model.rbps, 2000);
    let q2 = answer.solutions.iter().find(|one| one.solution.name == "rlat-99-q2").unwrap().solved.as_ref().unwrap();
    assert_eq!((q2.model.rbps, q2.qos.rpct, q2.qos.rlat), (1550, 99.0, 7750));
    assert_eq!((q2.qos.min, q2.qos.max, q2.scale), (70.97, 100.0, 0.775));
    assert!((q2.mof.unwrap() - 1.675).abs() < 1e-9);
    assert_eq!(
        (merged.report.start.as_str(), merged.report.end.as_str()),
        ("2026-01-01T00:00:00Z", "2026-01-03T06:00:00Z")
    );
}

#[test]
fn outliers_on_both_sides_and_missed_requirements_are_named() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let rbps = [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 5000, 10];
    let mut sources: Vec<MergeSource> =
        rbps.iter().zip(0..).map(|(rbps, index)| source(&format!("run-{index}"), *rbps, flat)).collect();
    sources[1].result.system.missed_requirements = vec!["swap".to_owned()];
    let merged = merge(sources, MergeOptions::default()).unwrap();
    assert_snapshot!(merged[0].report.to_string(), @r#"
    iocost-tune
      version: 0.1 (bench version 2)
      memory profile: 16
      device: A, firmware "1"
      settings: iocost-qos:vrate-max=125,dither
      sources:
        + run-0
        - run-1 (missed requirements: swap)
        + run-2
        + run-3
        + run-4
        + run-5
        + run-6
        + run-7
        - run-8 (outlier: rbps=5000, all 1304 ± 1336)
        - run-9 (outlier: rbps=10, all 893 ± 331)
    "#);
}

#[test]
fn results_of_other_devices_profiles_versions_or_settings_are_not_merged() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let one = |name: &str| source(name, 1000, flat);
    let mut other_device = one("device");
    other_device.result.system.device.model = "B".to_owned();
    let mut other_version = one("version");
    other_version.result.versions.bench = 9;
    let mut others = [one("profile"), one("steps"), one("settings")];
    let change = |source: &mut MergeSource, change: &dyn Fn(&mut TuneAnswer)| match &mut source.result.answer {
        Answer::IocostTune(answer) => change(answer),
        other => panic!("{other:?}"),
    };
    change(&mut others[0], &|answer| answer.mem_profile = Some(8));
    change(&mut others[1], &|answer| {
        answer.qos_spec = BenchSpec::parse("iocost-qos:dither,vrate-max=125,vrate-intvs=50").unwrap().to_text();
    });
    change(&mut others[2], &|answer| {
        answer.qos_spec = BenchSpec::parse("iocost-qos:vrate-intvs=25").unwrap().to_text()
    });
    let [profile, steps, settings] = others;
    let mut other_firmware = one("firmware");
    other_firmware.result.system.device.firmware = "2".to_owned();
    let all = vec![one("same"), other_device, other_firmware, other_version, profile, steps, settings];
    let merged = merge(all, MergeOptions::default()).unwrap();
    let report = &merged[0].report;
    let names: Vec<&str> = report.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["same", "steps"]);
    let mut dropped: Vec<&str> = report.dropped.iter().flat_map(|group| &group.sources).map(String::as_str).collect();
    dropped.sort_unstable();
    assert_eq!(dropped, ["device", "firmware", "profile", "settings", "version"]);
}

// A copy counted twice if it had been solved again or was part of a merged result.
#[test]
fn values_that_would_count_twice_are_refused() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let run = || source("run", 1000, flat);
    let mut copy = run();
    copy.name = "copy".to_owned();
    let mut solved = MergeSource { times: None, ..copy.clone() };
    let Answer::IocostTune(answer) = &mut solved.result.answer else { panic!() };
    let naive = "iocost-tune::name=other,isolation".parse::<BenchSpec>().unwrap();
    let Properties::IocostTune(properties) = &naive.properties else { panic!() };
    *answer = solve::solve(answer.clone(), properties);
    let merged = merge(vec![run(), source("other", 1000, flat)], MergeOptions::default()).unwrap();
    let merged = MergeSource { name: "merged".to_owned(), result: merged[0].result.clone(), times: None };
    let error = |sources: Vec<MergeSource>| merge(sources, MergeOptions::default()).unwrap_err().to_string();
    let copied = "copy is a copy of run: name each run once";
    assert_eq!(error(vec![run(), source("other", 1000, flat), copy]), copied);
    assert_eq!(error(vec![run(), solved]), copied, "solved again");
    let part = |name: &str| format!("{name} is part of merged, which has all its values: name one of them");
    assert_eq!(error(vec![run(), merged.clone()]), part("run"));
    assert_eq!(error(vec![merged, source("other", 1000, flat)]), part("other"));
}

// Groups were chosen by all their sources, also by those that are rejected.
#[test]
fn the_group_with_the_most_accepted_sources_is_merged() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let on = |device: &str, name: &str, missed: bool| {
        let mut source = source(name, 1000, flat);
        source.result.system.device.model = device.to_owned();
        source.result.system.missed_requirements.extend(missed.then(|| "swap".to_owned()));
        source
    };
    let sources = || {
        vec![on("A", "a", true), on("A", "aa", true), on("A", "aaa", false), on("B", "b", false), on("B", "bb", false)]
    };
    let accepted = |merged: &[Merged]| -> Vec<Vec<String>> {
        let of = |merged: &Merged| {
            let accepted = merged.report.sources.iter().filter(|source| source.rejection.is_none());
            accepted.map(|source| source.name.clone()).collect()
        };
        merged.iter().map(of).collect()
    };
    let merged = merge(sources(), MergeOptions::default()).unwrap();
    assert_eq!(accepted(&merged), [["b", "bb"]]);
    assert_snapshot!(merged[0].report.to_string(), @r#"
    iocost-tune
      version: 0.1 (bench version 2)
      memory profile: 16
      device: B, firmware "1"
      settings: iocost-qos:vrate-max=125,dither
      sources:
        + b
        + bb
      not merged:
        version: 0.1 (bench version 2)
        memory profile: 16
        device: A, firmware "1"
        settings: iocost-qos:vrate-max=125,dither
        - a (missed requirements: swap)
        - aa (missed requirements: swap)
        - aaa
    "#);
    let multiple = MergeOptions { multiple: true, ..MergeOptions::default() };
    assert_eq!(accepted(&merge(sources(), multiple).unwrap()), [vec!["b", "bb"], vec!["aaa"]]);
    let alone = vec![on("A", "a", true), on("B", "b", false)];
    assert_eq!(accepted(&merge(alone, multiple).unwrap()), [["b"]], "a group of rejected sources ends no merge");
    let error = merge(vec![on("A", "a", true), on("B", "b", true)], multiple).unwrap_err();
    assert_eq!(error.to_string(), "no result to merge: a: missed requirements: swap; b: missed requirements: swap");
}

// Runs without a result were left out without a word.
#[test]
fn runs_without_a_result_are_named() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let rejection = Some("iocost-tune was not started".to_owned());
    let without_result = vec![SourceReport { name: "aborted".to_owned(), rejection }];
    let sources = MergeSources { results: vec![source("a", 1000, flat)], without_result: without_result.clone() };
    let merged = super::merge(sources, MergeOptions::default()).unwrap();
    assert!(merged[0].report.to_string().contains("    - aborted (iocost-tune was not started)\n"));
    let sources = MergeSources { results: Vec::new(), without_result };
    let error = super::merge(sources, MergeOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "no result to merge: expected results of iocost-tune (aborted: iocost-tune was not started)");
}

#[test]
fn the_header_names_the_machines_that_differ() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let mut other = source("bb", 1000, flat);
    other.result.system.kernel = "6.2".to_owned();
    other.result.system.memory = Bytes(64 << 30);
    let merged = merge(vec![source("a", 1000, flat), other, source("ccc", 1000, flat)], MergeOptions::default());
    let header = crate::format::header(&merged.unwrap()[0].result, None);
    assert!(header.ends_with("merged with another machine: bb: kernel=\"6.2\" memory=64.0G\n"), "{header}");
}

#[test]
fn differences_are_ignored_on_request() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let sources = || {
        let (mut old, mut missed, mut other) =
            (source("old", 1, flat), source("missed", 1, flat), source("other", 1, flat));
        old.result.versions.bench = 9;
        missed.result.system.missed_requirements = vec!["swap".to_owned()];
        other.result.system.device.model = "B".to_owned();
        vec![source("same", 1, flat), old, missed, other]
    };
    let merged = |options: MergeOptions| -> Vec<(String, Vec<String>)> {
        let accepted = |merged: &Merged| {
            let sources = merged.report.sources.iter().filter(|source| source.rejection.is_none());
            sources.map(|source| source.name.clone()).collect()
        };
        let merged = merge(sources(), options).unwrap();
        merged.iter().map(|merged| (merged.result.instance.to_string(), accepted(merged))).collect()
    };
    let expected = |groups: &[(&str, &[&str])]| -> Vec<(String, Vec<String>)> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        groups.iter().map(|(instance, names)| ((*instance).to_owned(), owned(names))).collect()
    };
    let default = MergeOptions::default();
    assert_eq!(merged(default), expected(&[("iocost-tune", &["same"])]));
    let any_version = MergeOptions { ignore_versions: true, ..default };
    assert_eq!(merged(any_version), expected(&[("iocost-tune", &["same", "old"])]));
    let any = MergeOptions { ignore_requirements: true, ..any_version };
    assert_eq!(merged(any), expected(&[("iocost-tune", &["same", "old", "missed"])]));
    let all = MergeOptions { multiple: true, ..any };
    assert_eq!(merged(all), expected(&[("iocost-tune", &["same", "old", "missed"]), ("iocost-tune.2", &["other"])]));
}

#[test]
fn trials_are_merged_with_no_others() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let mut trial = source("trial", 1000, flat);
    trial.result.system.time_scale = Some("0.1".parse().unwrap());
    let merged = merge(vec![source("a", 1000, flat), trial, source("b", 1000, flat)], MergeOptions::default()).unwrap();
    let [dropped] = &merged[0].report.dropped[..] else { panic!("{merged:?}") };
    assert_eq!(dropped.sources, ["trial"]);
    assert!(dropped.group.contains(&"trial: durations times 0.1".to_owned()), "{dropped:?}");
}

#[test]
fn ids_are_merged_separately_on_request() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let with_id = |name: &str, id: &str| {
        let mut source = source(name, 1000, flat);
        source.result.instance.label = InstanceLabel::Id(id.to_owned());
        source
    };
    let sources = || vec![with_id("r0", "x"), with_id("r1", "y"), with_id("r2", "x")];
    let instances = |by_id| -> Vec<String> {
        merge(sources(), MergeOptions { by_id, ..MergeOptions::default() })
            .unwrap()
            .iter()
            .map(|merged| merged.result.instance.to_string())
            .collect()
    };
    assert_eq!(instances(true), ["iocost-tune@x", "iocost-tune@y"]);
    assert_eq!(instances(false), ["iocost-tune"]);
    assert!(matches!(merge(Vec::new(), MergeOptions::default()), Err(MergeError::NoSource { .. })));
}
