//! Merges of results made by hand.

use insta::assert_snapshot;
use wb_model::Bytes;

use super::*;
use crate::parameters::IocostParameters;
use crate::series::{OverTime, Series};
use crate::solve::{FittedSeries, Point};
use crate::spec::LatencyKind;
use crate::system::{Device, SystemInfo};
use crate::{IocostModel, IocostQos, Passive, Percentile};

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
    }
}

/// A result whose series have one value each at three vrates: `mof` and the p99 of reads, in ms.
fn source(name: &str, rbps: u64, points: [(f64, f64, f64); 3]) -> MergeSource {
    let mut series = BTreeMap::new();
    let of = |value: fn(&(f64, f64, f64)) -> f64| {
        FittedSeries::unfitted(points.iter().map(|point| Point { x: point.0, y: value(point) }).collect())
    };
    series.insert(Series::Mof, of(|point| point.1));
    let rlat = Series::Latency(LatencyKind::Read, Percentile::P99, OverTime::Mean);
    series.insert(rlat, of(|point| point.2 * 1e6));
    let model = IocostModel::from_array([rbps, 1000, 1000, rbps, 1000, 1000]);
    let qos = IocostQos { rpct: 95.0, rlat: 1, wpct: 95.0, wlat: 1, min: 50.0, max: 100.0 };
    let answer = TuneAnswer {
        base: IocostParameters { model, qos },
        mem_profile: Some(16),
        isol_pct: Percentile::P05,
        isol_thr: 0.9,
        qos_spec: BenchSpec::parse("iocost-qos:dither,vrate-max=125,vrate-intvs=25").unwrap(),
        series,
        solutions: Vec::new(),
        remarks: Vec::new(),
    };
    let spec = BenchSpec::new(Bench::IocostTune);
    let instance = Instance { bench: Bench::IocostTune, label: InstanceLabel::Position(1) };
    let versions = Versions::current(Bench::IocostTune);
    let result = BenchResult { instance, spec, system: system("A"), versions, answer: Answer::IocostTune(answer) };
    let times = (format!("2026-01-0{}T00:00:00Z", name.len()), format!("2026-01-0{}T06:00:00Z", name.len()));
    // Runs of the same length of name differ in their device's path alone.
    let mut result = result;
    result.system.device.name = name.to_owned();
    MergeSource { name: name.to_owned(), result, times: Some(times) }
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
    assert_snapshot!(merged[0].report.to_string(), @"
    iocost-tune
      version: 0.1 (bench version 2)
      memory profile: 16
      device: A
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
    ");
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
        answer.qos_spec = BenchSpec::parse("iocost-qos:dither,vrate-max=125,vrate-intvs=50").unwrap();
    });
    change(&mut others[2], &|answer| answer.qos_spec = BenchSpec::parse("iocost-qos:vrate-intvs=25").unwrap());
    let [profile, steps, settings] = others;
    let merged =
        merge(vec![one("same"), other_device, other_version, profile, steps, settings], MergeOptions::default())
            .unwrap();
    let report = &merged[0].report;
    let names: Vec<&str> = report.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["same", "steps"]);
    let mut dropped: Vec<&str> = report.dropped.iter().flat_map(|group| &group.sources).map(String::as_str).collect();
    dropped.sort_unstable();
    assert_eq!(dropped, ["device", "profile", "settings", "version"]);
}

#[test]
fn copy_of_a_run_is_refused() {
    let flat = [(20.0, 1.2, 3.0), (40.0, 1.2, 3.0), (60.0, 1.2, 3.0)];
    let mut copy = source("run", 1000, flat);
    copy.name = "copy".to_owned();
    let error =
        merge(vec![source("run", 1000, flat), source("other", 1000, flat), copy], MergeOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "copy is a copy of run: name each run once");
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
    assert!(matches!(merge(Vec::new(), MergeOptions::default()), Err(MergeError::NoSource)));
}
