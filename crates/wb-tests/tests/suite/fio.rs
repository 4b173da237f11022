//! Short samples with the real fio, each studied offline.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::process::{Command as Program, Stdio};

use crate::fio_common::{Taken, has, take};
use serde_json::json;
use wb_model::Validity;
use wb_tests::fio::Fio;
use wb_tests::{Failure, Measurement};

/// Half a second on a small file.
fn quick(more: serde_json::Value) -> serde_json::Value {
    let mut params = json!({
        "block-sizes": "4k", "file-size": "8m", "runtime": "500ms", "ramptime": 0, "iodepth": 4, "sysinfo": ["none"],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    params
}

fn sample(more: serde_json::Value) -> Result<Taken, Failure> {
    take(Fio, &quick(more))
}

fn refusal(more: serde_json::Value) -> String {
    match sample(more) {
        Err(Failure::Refused { reason }) => reason,
        other => panic!("refused was expected, and it is {other:?}"),
    }
}

fn value(measured: &Measurement, name: &str) -> f64 {
    *measured.values.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", measured.values))
}

#[test]
fn reads_are_measured_with_their_latencies_over_time() {
    if !has("fio") {
        return;
    }
    let taken = sample(json!({ "test-types": "randread" })).unwrap();
    let measured = &taken.measured;
    assert_eq!(measured.validity, Validity::Valid);
    assert!(value(measured, "throughput/iops") > 0.0);
    let percentiles = ["p50", "p90", "p95", "p99", "p99.9", "p99.99"].map(|p| value(measured, &format!("latency/{p}")));
    assert!(percentiles[0] > 0.0 && percentiles.is_sorted(), "{percentiles:?}");
    assert!(measured.latencies[0].seconds.len() >= 5, "{}", measured.latencies[0].seconds.len());
    let job_file = taken.text("fio.job");
    assert!(job_file.contains("rw=randread\nbs=4096\nsize=8388608\n"), "{job_file}");
    let target = job_file.lines().find_map(|line| line.strip_prefix("filename=")).unwrap();
    assert!(!fs::exists(target).unwrap(), "{target} is left");
}

#[test]
fn mixed_operations_have_values_each_and_a_sum() {
    if !has("fio") {
        return;
    }
    let taken = sample(json!({ "test-types": "randrw", "numjobs": 2 })).unwrap();
    let measured = &taken.measured;
    assert_eq!(measured.validity, Validity::Valid);
    let sum = value(measured, "throughput/read-iops") + value(measured, "throughput/write-iops");
    assert!((value(measured, "throughput/iops") / sum - 1.0).abs() < 1e-9);
    let titles: Vec<&str> = measured.latencies.iter().map(|latencies| latencies.title.as_str()).collect();
    assert_eq!(titles, ["read, per 50ms", "write, per 50ms"]);
}

#[test]
fn several_samples_share_what_was_prepared_and_a_rate_is_kept() {
    if !has("fio") {
        return;
    }
    let params = quick(json!({ "test-types": "randwrite", "rate-iops": 200, "sysinfo": ["default"] }));
    let taken: [Taken; 2] = crate::fio_common::take_samples(Fio, &params).unwrap();
    for sample in &taken {
        assert_eq!(sample.measured.validity, Validity::Valid);
        let iops = value(&sample.measured, "throughput/iops");
        assert!(iops < 240.0, "{iops}");
    }
    let paths = taken.each_ref().map(|sample| sample.text("fio.job"));
    assert_eq!(paths[0], paths[1]);
    assert!(taken[0].text("sysinfo-security-mitigations.txt").contains("vulnerabilities"));
    assert!(!taken[1].has("sysinfo-block.txt"), "kept once");
}

#[test]
fn two_targets_are_used_one_after_the_other() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (own, other) = (folder.path().join("new"), folder.path().to_owned());
    let taken = sample(json!({ "test-types": "read", "targets": [own, other], "job-mode": "serial" })).unwrap();
    assert_eq!(taken.measured.validity, Validity::Valid);
    assert_eq!(taken.text("fio.job").matches("stonewall").count(), 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "what we made is gone");
}

#[test]
fn a_file_of_somebody_elses_is_never_overwritten_unasked() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("precious");
    let precious = vec![7u8; 8 << 20];
    fs::write(&path, &precious).unwrap();
    Program::new("sync").arg(&path).status().unwrap();
    assert!(
        refusal(json!({ "test-types": "write", "targets": [path] })).contains("exists, and write would overwrite it")
    );
    assert!(
        refusal(json!({ "test-types": "read", "targets": [path], "file-size": "16m" })).contains("lower file-size")
    );
    let read = sample(json!({ "test-types": "read", "targets": [path] })).unwrap();
    assert_eq!(read.measured.validity, Validity::Valid);
    assert!(fs::read(&path).unwrap() == precious, "reading changed it");
    let written = sample(json!({ "test-types": "write", "targets": [path], "allow-destroy": true })).unwrap();
    assert_eq!(written.measured.validity, Validity::Valid);
    assert!(fs::read(&path).unwrap() != precious);
    let holes = folder.path().join("holes");
    fs::File::create(&holes).unwrap().set_len(8 << 20).unwrap();
    assert!(refusal(json!({ "test-types": "read", "targets": [holes] })).contains("has 0 bytes without holes"));
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    if !has("fio") {
        return;
    }
    assert!(refusal(json!({ "ioengine": "nosuch" })).starts_with("this fio has no ioengine `nosuch`: it has "));
    assert!(refusal(json!({ "targets": ["/dev/shm"] })).contains("in memory, where direct=true reaches no storage"));
    assert!(refusal(json!({ "targets": ["/nosuch/file"] })).contains("there is no folder `/nosuch`"));
    let missing = refusal(json!({ "targets": ["/dev/nosuch"], "direct": false }));
    assert_eq!(missing, "`/dev/nosuch` is no device that is there: `lsblk` lists them");
    assert!(refusal(json!({ "targets": ["/dev/null"] })).contains("is a character special file"));
    assert!(refusal(json!({ "targets": ["/tmp/a;b"] })).contains("cannot have ';'"));
    assert!(refusal(json!({ "file-size": "1000t" })).contains("are free in"));
    let buffered = sample(json!({ "targets": ["/dev/shm"], "direct": false, "ioengine": "psync" })).unwrap();
    assert_eq!(buffered.measured.validity, Validity::Valid);
    assert!(
        buffered.findings.iter().any(|finding| finding.contains("in memory: this measures memory, and no storage"))
    );
}

#[test]
fn io_uring_is_measured_where_fio_alone_can_use_it_and_refused_elsewhere() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = format!("--filename={}", folder.path().join("file").display());
    let alone = ["--name=alone", "--ioengine=io_uring", "--rw=write", "--size=64k", "--output=/dev/null", &file];
    let is_possible = Program::new("fio").args(alone).stderr(Stdio::null()).status().unwrap().success();
    match (is_possible, sample(json!({ "ioengine": "io_uring", "test-types": "randread" }))) {
        (true, Ok(taken)) => assert_eq!(taken.measured.validity, Validity::Valid),
        (false, Err(Failure::Refused { reason })) => assert!(reason.contains("io_uring"), "{reason}"),
        (is_possible, other) => panic!("possible for fio alone: {is_possible}; {other:?}"),
    }
}

#[test]
fn a_job_file_of_ones_own_is_run() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.fio");
    let text =
        "[global]\nbs=$@\nruntime=300ms\ntime_based\nioengine=psync\n[job-$target]\nfilename=$target\nrw=$@\nsize=4m\n";
    fs::write(&path, text).unwrap();
    let sha256 = wb_model::Sha256::of(text.as_bytes());
    let script = folder.path().join("before");
    fs::write(&script, "#!/bin/sh\necho before\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let params = json!({
        "test-types": "randrw", "job-file": path, "job-file-sha256": sha256.as_str(), "pre-iteration-script": script,
        // More than there is room for: what the job file says holds.
        "file-size": "1000t",
    });
    let taken = sample(params).unwrap();
    assert_eq!(taken.measured.validity, Validity::Valid);
    assert!(taken.text("fio.job").contains("ioengine=psync\nwrite_hist_log=hist\n"));
    assert_eq!(taken.text("pre-iteration-script.stdout"), "before\n");
}

#[test]
fn a_block_device_must_be_unused_and_allowed() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let Some(device) = Loop::new(&folder.path().join("image")) else { return };
    let path = &device.0;
    assert!(refusal(json!({ "targets": [path] })).contains("allow it with allow-destroy=true"));
    let allowed = |more: serde_json::Value| {
        let mut params = json!({ "targets": [path], "allow-destroy": true });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        params
    };
    let taken = sample(allowed(json!({ "test-types": "randwrite" }))).unwrap();
    assert_eq!(taken.measured.validity, Validity::Valid);
    assert!(refusal(allowed(json!({ "file-size": "1g" }))).contains("of 16777216 bytes, and file-size is 1073741824"));
    let held = opened_exclusively(path);
    assert!(refusal(allowed(json!({}))).contains("cannot be opened for this test alone"));
    drop(held);
    let mount = folder.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let made = Program::new("mkfs.ext4").arg("-q").arg(path).status().is_ok_and(|status| status.success());
    if !made || !Program::new("mount").arg(path).arg(&mount).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: a mounted device: no mkfs.ext4, or nothing can be mounted here");
        return;
    }
    let refused = refusal(allowed(json!({})));
    Program::new("umount").arg(&mount).status().unwrap();
    assert!(refused.contains("in use: loop") && refused.contains("is mounted at"), "{refused}");
}

/// Opens a device as whoever uses it does.
fn opened_exclusively(path: &str) -> fs::File {
    const O_EXCL: i32 = 0o200;
    fs::OpenOptions::new().write(true).custom_flags(O_EXCL).open(path).unwrap()
}

/// A loop device on a file of 16 MiB, for as long as this lives.
struct Loop(String);

impl Loop {
    fn new(image: &std::path::Path) -> Option<Self> {
        fs::File::create(image).unwrap().set_len(16 << 20).unwrap();
        let made = Program::new("losetup").args(["--find", "--show"]).arg(image).output().ok();
        let Some(made) = made.filter(|made| made.status.success()) else {
            eprintln!("SKIPPED: block devices: no loop device can be made here (it takes root)");
            return None;
        };
        Some(Self(String::from_utf8(made.stdout).unwrap().trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Program::new("losetup").args(["--detach", &self.0]).status();
    }
}
