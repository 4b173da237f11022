//! Stripping folders, tables of values, and the nearest build.

use crate::support::{
    GeneratedMetric, TestFolders, format_values, iteration, latency, shared, shared_builds, throughput,
    unchanged_results,
};
use proptest::prelude::*;
use wb_compare::analyze::{CheckFilter, write_csv};
use wb_compare::run_perf::nearest::{DecidedBy, NearestError, nearest};
use wb_compare::run_perf::strip::{StripError, StripOptions, strip};
use wb_compare::{BuildSource, Builds, ReadOptions, Warning, read};

fn csv(builds: &Builds, which: CheckFilter) -> String {
    let mut text = Vec::new();
    write_csv(builds, which, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_table_has_a_row_per_check_and_empty_fields_for_missing_values() {
    let lab = TestFolders::new();
    let case = |name: &str, mean: f64| {
        iteration(name, "iops_sec", &[throughput("iops_sec", mean, 0.5), latency("lat", 7.0, 2.0)])
    };
    lab.run("a", "Localhost/fio/0000", &[case("read-4KiB", 10.5)]);
    lab.run("b", "Localhost/fio/0000", &[case("read-4KiB", 11.0), case("read-1KiB", 3.0)]);
    let builds = lab.read(&["a", "b"]);
    let expected = "check,a,b\n\
                  Localhost/fio/0000:./read-1KiB/throughput/iops_sec.mean,,3\n\
                  Localhost/fio/0000:./read-1KiB/throughput/iops_sec.stddev,,0.5\n\
                  Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean,10.5,11\n\
                  Localhost/fio/0000:./read-4KiB/throughput/iops_sec.stddev,0.5,0.5\n";
    assert_eq!(csv(&builds, CheckFilter::Primary), expected);
    assert_eq!(csv(&builds, CheckFilter::All).lines().count(), 9);
}

#[test]
fn primary_metrics_decide_the_nearest_first() {
    let lab = TestFolders::new();
    for (name, iops, lat) in [("judged", 100.0, 10.0), ("near", 101.0, 50.0), ("far", 120.0, 10.0)] {
        let metrics = [throughput("iops_sec", iops, 2.0), latency("lat", lat, 0.0)];
        lab.run(name, "Localhost/fio/0000", &[iteration("read-4KiB", "iops_sec", &metrics)]);
    }
    let builds = lab.read(&["judged", "near", "far"]);
    let result = nearest(&builds, 0, &[vec![2], vec![1]], 1.0).unwrap();
    assert_eq!((result.candidate, result.by), (1, DecidedBy::Primary));
    assert!(result.others[0] > result.others[1]);
    let groups = nearest(&builds, 0, &[vec![1, 2], vec![0]], 1.0).unwrap();
    assert_eq!(groups.candidate, 1);
    assert!((groups.primary[0] * 2.0 - result.primary.iter().sum::<f64>()).abs() < 1e-9);
    assert_eq!(nearest(&builds, 0, &[vec![1]], 1.0), Err(NearestError::TooFew(1)));
    assert_eq!(nearest(&builds, 0, &[vec![1], vec![7]], 1.0), Err(NearestError::BadGroup(1)));
}

#[test]
fn without_common_metrics_there_is_no_nearest() {
    let lab = TestFolders::new();
    for name in ["a", "b", "c"] {
        lab.run(name, &format!("{name}/fio/0000"), &[iteration("read", "x", &[throughput("x", 1.0, 1.0)])]);
    }
    assert_eq!(nearest(&lab.read(&["a", "b", "c"]), 0, &[vec![1], vec![2]], 1.0), Err(NearestError::NothingInCommon));
}

fn content(folder: &std::path::Path, include_incorrect: bool) -> String {
    let options = ReadOptions { include_incorrect, ..ReadOptions::default() };
    let read = read(&[BuildSource::parse(folder.to_str().unwrap()).unwrap()], &options, &unchanged_results).unwrap();
    let run = &read.builds.list()[0].runs[0];
    format!("{}{:?}{:?}", format_values(&read.builds), run.metadata, run.errors)
}

#[test]
fn a_stripped_folder_compares_the_same() {
    let lab = TestFolders::new();
    let full = r#"[{"iteration_name": "read-4KiB", "other": [1, 2], "iteration_data": {
        "parameters": {"benchmark": [{"bs": "4k", "primary_metric": "iops_sec", "n": 5}, {"bs": "\u00e9\"k"}],
                       "user": [{"profile": "P", "workers": {"a": "long"}}, {"cmdline": "x"}]},
        "throughput": {
            "iops_sec": [{"client_hostname": "a", "mean": 1, "stddevpct": 2},
                {"client_hostname": "all", "mean": 0.1, "stddevpct": 1e-7, "description": "text", "samples": [
                    {"timeseries": [{"date": 1, "value": 99}], "value": 0.30000000000000004}, {"value": "odd"}]}],
            "none": [{"client_hostname": "a", "mean": 1, "stddevpct": 2}],
            "empty": [{"client_hostname": "all", "samples": [{"value": 1}]}]},
        "latency": {"lat": [{"client_hostname": "all", "mean": "odd"}]}}},
      {"iteration_name": "read-8KiB-fail1", "iteration_data": {"parameters": {}, "throughput": {"x": [
                {"client_hostname": "all", "mean": 7}]}}},
      {"iteration_name": "nothing"}]"#;
    lab.file("a/Localhost/fio/0000/result.json", full);
    lab.file("a/Localhost/fio/failed/result.json", full);
    lab.file("a/Localhost/fio/__error7__/exception", "it broke\n");
    lab.file("a/Localhost/fio/0000/big.log", "log");
    lab.file("a/RUNPERF_METADATA", "build:1\nrunperf_cmd:x --password abc\nenvironment_world:[{\"a\": \"b\"}]\n");
    for include_incorrect in [false, true] {
        let into = lab.path().join(format!("stripped-{include_incorrect}"));
        let options = StripOptions { include_incorrect, ..StripOptions::default() };
        let stripped = strip(&lab.path().join("a"), &into, &options).unwrap();
        assert!(stripped.after < stripped.before, "{stripped:?}");
        let compared =
            read(&[lab.source("a")], &ReadOptions { include_incorrect, ..ReadOptions::default() }, &unchanged_results)
                .unwrap()
                .warnings;
        let kinds = |warnings: Vec<Warning>| warnings.into_iter().map(|warning| warning.kind).collect::<Vec<_>>();
        assert_eq!(kinds(stripped.warnings), kinds(compared), "the warnings are the same");
        assert_eq!(content(&into, include_incorrect), content(&lab.path().join("a"), include_incorrect));
        let again = lab.path().join(format!("again-{include_incorrect}"));
        let twice = strip(&into, &again, &options).unwrap();
        assert_eq!(twice.after, twice.before, "stripping twice changes nothing");
        assert!(!std::fs::read_to_string(again.join("RUNPERF_METADATA")).unwrap().contains("abc"));
    }
    let occupied = strip(&lab.path().join("a"), &lab.path().join("stripped-true"), &StripOptions::default());
    assert!(matches!(occupied, Err(StripError::Occupied(_))));
}

// Stripping numbered the folders of errors anew, and kept only the exception.
#[test]
fn errors_keep_their_folders_and_what_is_in_them() {
    let lab = TestFolders::new();
    let files = [
        "Tuned Guest/uperf/0/__error0__/exception",
        "Tuned Guest/uperf/0/__error0__/traceback",
        "Tuned Guest/uperf/0/__error0__/details/log",
        "P/fio/__error0__/exception",
        "P/fio/__error3__/traceback",
        "P/__error__/exception",
        "__error0__/exception",
    ];
    lab.file("a/RUNPERF_METADATA", "build:1\n");
    let text = |file: &str, secret: &str| format!("\u{1b}[31m{file}\nsshpass -p {secret} ssh a\n");
    for file in files {
        lab.file(&format!("a/{file}"), text(file, "opensesame"));
    }
    let stripped = strip(&lab.path().join("a"), &lab.path().join("b"), &StripOptions::default()).unwrap();
    assert_eq!((stripped.files, stripped.warnings), (1 + files.len(), Vec::new()));
    for file in files {
        assert_eq!(std::fs::read_to_string(lab.path().join("b").join(file)).unwrap(), text(file, "***"));
    }
}

#[test]
fn a_number_that_is_not_finite_survives_stripping() {
    let lab = TestFolders::new();
    let metric = GeneratedMetric { samples: vec![1.0, 1.0], ..throughput("iops_sec", 7.25, 1.0) };
    lab.run("a", "Localhost/fio/0000", &[iteration("read-4KiB", "iops_sec", &[metric])]);
    let path = lab.path().join("a/Localhost/fio/0000/result.json");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("7.25"), "{text}");
    std::fs::write(&path, text.replace("7.25", "NaN")).unwrap();
    let stripped = strip(&lab.path().join("a"), &lab.path().join("b"), &StripOptions::default()).unwrap();
    assert_eq!(stripped.warnings, []);
    assert_eq!(content(&lab.path().join("b"), false), content(&lab.path().join("a"), false));
}

#[test]
fn system_information_is_attached_on_request() {
    let lab = TestFolders::new();
    lab.file("a/RUNPERF_METADATA", "build:1\n");
    for file in ["__sysinfo_before__/host/dmesg", "Localhost/__sysinfo__/host/journal/part", "Localhost/fio/big.log"] {
        lab.file(&format!("a/{file}"), file);
    }
    std::os::unix::fs::symlink("..", lab.path().join("a/__sysinfo_before__/loop")).unwrap();
    let stripped = |into: &str, attach_sysinfo| {
        let options = StripOptions { attach_sysinfo, ..StripOptions::default() };
        strip(&lab.path().join("a"), &lab.path().join(into), &options).unwrap()
    };
    let text = |path: &str| std::fs::read_to_string(lab.path().join(path)).ok();
    assert_eq!(stripped("without", false).files, 1);
    let with = stripped("with", true);
    assert_eq!((with.files, with.warnings.len()), (3, 1), "the cyclic link is reported: {with:?}");
    for file in ["__sysinfo_before__/host/dmesg", "Localhost/__sysinfo__/host/journal/part"] {
        assert_eq!((text(&format!("with/{file}")).as_deref(), text(&format!("without/{file}"))), (Some(file), None));
    }
    assert_eq!(text("with/Localhost/fio/big.log"), None);
}

#[test]
fn the_stripped_shared_builds_compare_the_same() {
    let Some(data) = shared("run-perf") else { return };
    let lab = TestFolders::new();
    for source in shared_builds(&data) {
        let into = lab.path().join(&source.name);
        let stripped = strip(&source.runs[0], &into, &StripOptions::default()).unwrap();
        println!("{}: {} bytes became {}", source.name, stripped.before, stripped.after);
        assert_eq!(content(&into, false), content(&source.runs[0], false));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_number_survives_stripping(numbers in proptest::collection::vec(proptest::num::f64::NORMAL, 3..9)) {
        let lab = TestFolders::new();
        let metric = GeneratedMetric { samples: numbers[2..].to_vec(), ..throughput("iops_sec", numbers[0], numbers[1]) };
        lab.run("a", "Localhost/fio/0000", &[iteration("read-4KiB", "iops_sec", &[metric])]);
        strip(&lab.path().join("a"), &lab.path().join("b"), &StripOptions::default()).unwrap();
        prop_assert_eq!(content(&lab.path().join("b"), false), content(&lab.path().join("a"), false));
    }
}
