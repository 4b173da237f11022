//! Reports of the installed fio.

use std::process::Command;

use serde_json::Value;
use wb_import::{ForeignCell, ForeignResults, ReadOptions, read};

use crate::lab::ImportEnv;

const JOBS: &str = "[global]
size=1m
ioengine=psync
runtime=1
time_based
group_reporting
[a]
rw=read
[b]
rw=write
iodepth=16
";

/// Runs fio; returns its report as it is read, and as it is; none if fio is not installed.
fn run_fio(arguments: &str) -> Option<(ForeignResults, Value)> {
    let lab = ImportEnv::new();
    lab.write("jobs.fio", JOBS);
    let mut command = Command::new("fio");
    command.current_dir(lab.path(".")).arg("--output-format=json").args(arguments.split_whitespace());
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, foreign) = read(&text, ReadOptions::default()).unwrap();
    let report = &text[text.find("{\n").unwrap()..];
    Some((foreign, serde_json::from_str(report).unwrap()))
}

fn value(cell: &ForeignCell, metric: &str) -> f64 {
    let sample = cell.rows().next().unwrap();
    sample.readings.iter().find(|reading| reading.metric.name == metric).unwrap().value
}

#[test]
fn latencies_of_syncs_are_those_of_the_report() {
    let Some((foreign, report)) = run_fio("--size=64k --bs=4k --ioengine=sync --fdatasync=1 --name=a --rw=write")
    else {
        return wb_test_skip::skip!("no fio is installed");
    };
    let reported = &report["jobs"][0]["sync"]["lat_ns"];
    assert_eq!(Some(value(&foreign.cells[0], "sync-lat-mean")), reported["mean"].as_f64());
    assert_eq!(Some(value(&foreign.cells[0], "sync-lat-p99")), reported["percentile"]["99.000000"].as_f64());
}

#[test]
fn clones_are_one_cell_and_sections_of_one_name_are_several() {
    const JOB: &str = "--name=a --rw=read";
    let options = "--size=4k --ioengine=null";
    let one = "bs=4k,iodepth=1,job=a,numjobs=1,rw=read,section=1".to_owned();
    let cloned = |numjobs: u32| format!("bs=4k,iodepth=1,job=a,numjobs={numjobs},rw=read");
    for (arguments, cases) in [
        (format!("{options} {JOB} {JOB}"), vec![one.clone(), one.replace("section=1", "section=2")]),
        (format!("{options} {JOB} --numjobs=3"), vec![cloned(3)]),
        (format!("--numjobs=3 {options} {JOB}"), vec![cloned(3)]),
        (format!("{options} --numjobs=2 {JOB} {JOB}"), vec![cloned(2) + ",section=1", cloned(2) + ",section=2"]),
    ] {
        let Some((foreign, _)) = run_fio(&arguments) else {
            return wb_test_skip::skip!("no fio is installed");
        };
        let actual: Vec<String> = foreign.cells.iter().map(|cell| cell.case().to_string()).collect();
        assert_eq!(actual, cases, "{arguments}");
    }
}

#[test]
fn unified_reports_have_the_rate_of_all_operations() {
    for reporting in ["none", "both", "mixed"] {
        let arguments = format!("--size=256m --ioengine=null --name=a --rw=randrw --unified_rw_reporting={reporting}");
        let Some((foreign, _)) = run_fio(&arguments) else {
            return wb_test_skip::skip!("no fio is installed");
        };
        let cell = &foreign.cells[0];
        let sizes = value(cell, "bandwidth") / value(cell, "iops");
        assert!((sizes / 4096.0 - 1.0).abs() < 0.01, "{reporting}: {sizes}");
        let has_parts = cell.rows().any(|sample| sample.readings.iter().any(|own| own.metric.name == "read-iops"));
        assert_eq!(has_parts, reporting != "mixed");
        if has_parts {
            let sum = value(cell, "read-iops") + value(cell, "write-iops");
            assert!((value(cell, "iops") / sum - 1.0).abs() < 0.5, "{reporting}");
        }
    }
}

#[test]
fn groups_of_different_jobs_and_verifications_are_recognized() {
    const GROUP: &str = "a group of different jobs";
    let timed = "--size=1m --ioengine=psync --runtime=1 --time_based --group_reporting --name=a --rw=read";
    for (arguments, case, finding) in [
        (format!("{timed} --iodepth=1 --name=b --iodepth=16 --numjobs=3 --rw=write"), "job=a", GROUP),
        ("jobs.fio".to_owned(), "job=a", GROUP),
        (format!("{timed} --numjobs=3"), "bs=4k,iodepth=1,job=a,numjobs=3,rw=read", ""),
        (
            "--size=1m --ioengine=psync --verify=crc32c --name=a --rw=write:4k".to_owned(),
            "bs=4k,iodepth=1,job=a,numjobs=1,rw=write%3A4k",
            "reads of the verification",
        ),
    ] {
        let Some((foreign, _)) = run_fio(&arguments) else {
            return wb_test_skip::skip!("no fio is installed");
        };
        let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
        let findings = cell.rows().flat_map(|sample| sample.findings).collect::<Vec<_>>().join("\n");
        assert_eq!(cell.case().to_string(), case, "{arguments}");
        assert!(findings.contains(finding), "{arguments}: {findings}");
        assert_eq!(findings.contains(GROUP), finding == GROUP, "{arguments}: {findings}");
    }
}
