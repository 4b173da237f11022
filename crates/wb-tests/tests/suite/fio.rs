//! Short samples with the real fio.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::process::{Command as Program, Stdio};

use serde_json::json;
use wb_test::Failure;
use wb_workloads::fio::Fio;

use crate::common::{Sample, has};
use crate::fio_common::{extended, short_params, take_sample, take_samples};

fn sample(extra: serde_json::Value) -> Result<Sample, Failure> {
    take_sample(Fio, extended(short_params(), extra))
}

fn refusal(extra: serde_json::Value) -> String {
    match sample(extra) {
        Err(Failure::Refused { reason }) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn reads_are_measured_with_their_latencies_over_time() {
    if !has("fio") {
        return;
    }
    let sample = sample(json!({ "test-types": "randread" })).unwrap();
    assert!(sample.assert_valid().value("throughput/iops") > 0.0);
    let percentiles = ["p50", "p90", "p95", "p99", "p99.9", "p99.99"].map(|p| sample.value(&format!("latency/{p}")));
    assert!(percentiles[0] > 0.0 && percentiles.is_sorted(), "{percentiles:?}");
    let seconds = sample.measurement.latencies[0].seconds.len();
    assert!(seconds >= 5, "{seconds}");
    let job_file = sample.text("fio.job");
    assert!(job_file.contains("rw=randread\nbs=4096\nsize=8388608\n"), "{job_file}");
    let target = job_file.lines().find_map(|line| line.strip_prefix("filename=")).unwrap();
    assert!(!fs::exists(target).unwrap(), "{target} still exists");
}

#[test]
fn mixed_operations_have_separate_values_and_totals() {
    if !has("fio") {
        return;
    }
    let sample = sample(json!({ "test-types": "randrw", "numjobs": 2 })).unwrap();
    let sum = sample.assert_valid().value("throughput/read-iops") + sample.value("throughput/write-iops");
    assert!((sample.value("throughput/iops") / sum - 1.0).abs() < 1e-9);
    let titles: Vec<&str> = sample.measurement.latencies.iter().map(|latencies| latencies.title.as_str()).collect();
    assert_eq!(titles, ["read, per 50ms", "write, per 50ms"]);
}

#[test]
fn syncs_after_writes_have_latencies() {
    if !has("fio") {
        return;
    }
    for option in ["fsync", "fdatasync"] {
        let sample = sample(json!({ "test-types": "write", "ioengine": "psync", "direct": false, option: 2 })).unwrap();
        let value = |name: &str| sample.assert_valid().value(&format!("latency/{name}"));
        assert!(value("sync-mean") > 0.0 && value("sync-p50") <= value("sync-p99"), "{option}");
        assert!(sample.text("fio.job").contains(&format!("\n{option}=2\n")));
    }
}

#[test]
fn samples_share_the_preparation_and_a_rate_is_respected() {
    if !has("fio") {
        return;
    }
    let extra = json!({ "test-types": "randwrite", "rate-iops": 200, "sysinfo": ["default"] });
    let samples: [Sample; 2] = take_samples(Fio, extended(short_params(), extra)).unwrap();
    for sample in &samples {
        let iops = sample.assert_valid().value("throughput/iops");
        assert!(iops < 240.0, "{iops}");
    }
    let paths = samples.each_ref().map(|sample| sample.text("fio.job"));
    assert_eq!(paths[0], paths[1]);
    assert!(samples[0].text("sysinfo-security-mitigations.txt").contains("vulnerabilities"));
    assert!(!samples[1].has("sysinfo-block.txt"), "recorded once");
}

#[test]
fn a_target_that_is_another_file_by_now_is_not_measured() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    // Between the preparation and the first sample, as after the filesystem was unmounted.
    let script = "for file in */fio; do mv $file ${file}2; cp ${file}2 $file; done";
    let extra = json!({ "targets": [folder.path()], "pre-iteration-script": "" });
    let path = folder.path().join("swap.sh");
    fs::write(&path, format!("#!/bin/sh\ncd {} && {script}\n", folder.path().display())).unwrap();
    fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    sample(extra.clone()).unwrap().assert_valid();
    let swapped = refusal(extended(extra, json!({ "pre-iteration-script": path })));
    assert!(swapped.ends_with("/fio` leads to another file than the prepared one"), "{swapped}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "scratch files are removed");
}

#[test]
fn two_targets_are_used_one_after_the_other() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (own, other) = (folder.path().join("new"), folder.path().to_owned());
    let sample = sample(json!({ "test-types": "read", "targets": [own, other], "job-mode": "serial" })).unwrap();
    sample.assert_valid();
    assert_eq!(sample.text("fio.job").matches("stonewall").count(), 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "scratch files are removed");
}

#[test]
fn an_existing_file_is_never_overwritten_without_permission() {
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
        refusal(json!({ "test-types": "read", "targets": [path], "file-size": "16m" })).contains("reduce file-size")
    );
    sample(json!({ "test-types": "read", "targets": [path] })).unwrap().assert_valid();
    assert!(fs::read(&path).unwrap() == precious, "changed by reads");
    sample(json!({ "test-types": "write", "targets": [path], "allow-destroy": true })).unwrap().assert_valid();
    assert!(fs::read(&path).unwrap() != precious);
    let holes = folder.path().join("holes");
    fs::File::create(&holes).unwrap().set_len(8 << 20).unwrap();
    assert!(refusal(json!({ "test-types": "read", "targets": [holes] })).contains(" 0 of them allocated, and "));
}

#[test]
fn unsupported_samples_are_refused_with_a_reason() {
    if !has("fio") {
        return;
    }
    assert!(refusal(json!({ "ioengine": "nosuch" })).starts_with("unknown ioengine `nosuch`: this fio has "));
    assert!(refusal(json!({ "targets": ["/dev/shm"] })).contains("in memory, where direct=true is not possible"));
    assert!(refusal(json!({ "targets": ["/nosuch/file"] })).contains("`/nosuch` is not an existing directory"));
    let missing = refusal(json!({ "targets": ["/dev/nosuch"], "direct": false }));
    assert_eq!(missing, "`/dev/nosuch` does not exist: see `lsblk` for devices");
    assert!(refusal(json!({ "targets": ["/dev/null"] })).contains("is a character special file"));
    assert!(refusal(json!({ "targets": ["/tmp/a;b"] })).contains("cannot contain ';'"));
    assert!(refusal(json!({ "file-size": "1000t" })).contains("available in"));
    let buffered = sample(json!({ "targets": ["/dev/shm"], "direct": false, "ioengine": "psync" })).unwrap();
    buffered.assert_valid();
    assert!(buffered.findings.iter().any(|finding| finding.contains("in memory: this measures memory, not storage")));
}

#[test]
fn io_uring_is_measured_if_fio_can_use_it_and_otherwise_refused() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = format!("--filename={}", folder.path().join("file").display());
    let alone = ["--name=alone", "--ioengine=io_uring", "--rw=write", "--size=64k", "--output=/dev/null", &file];
    let is_possible = Program::new("fio").args(alone).stderr(Stdio::null()).status().unwrap().success();
    match (is_possible, sample(json!({ "ioengine": "io_uring", "test-types": "randread" }))) {
        (true, Ok(sample)) => {
            sample.assert_valid();
        }
        (false, Err(Failure::Refused { reason })) => assert!(reason.contains("io_uring"), "{reason}"),
        (is_possible, other) => panic!("possible for fio: {is_possible}; {other:?}"),
    }
}

#[test]
fn a_users_job_file_is_run() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.fio");
    let text =
        "[global]\nbs=$@\nruntime=300ms\ntime_based\nioengine=psync\n[job-$target]\nfilename=$target\nrw=$@\nsize=4m\n";
    fs::write(&path, text).unwrap();
    let sha256 = wb_model::Sha256::digest(text.as_bytes());
    let script = folder.path().join("before");
    fs::write(&script, "#!/bin/sh\necho before\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let params = json!({
        "test-types": "randrw", "job-file": path, "job-file-sha256": sha256.as_str(), "pre-iteration-script": script,
        // More than is available: the size in the job file applies.
        "file-size": "1000t",
    });
    let sample = sample(params).unwrap();
    sample.assert_valid();
    assert!(sample.text("fio.job").contains("ioengine=psync\nwrite_hist_log=hist\n"));
    assert_eq!(sample.text("pre-iteration-script.stdout"), "before\n");
}

#[test]
fn a_block_device_must_be_unused_and_allowed() {
    if !has("fio") {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let Some(device) = Loop::new(&folder.path().join("image")) else { return };
    let path = &device.0;
    assert!(refusal(json!({ "targets": [path] })).contains("set allow-destroy=true to allow it"));
    let allowed = |more| extended(json!({ "targets": [path], "allow-destroy": true }), more);
    sample(allowed(json!({ "test-types": "randwrite" }))).unwrap().assert_valid();
    assert!(
        refusal(allowed(json!({ "file-size": "1g" })))
            .contains("of 16777216 bytes, less than file-size, 1073741824 bytes")
    );
    let holder = open_exclusively(path);
    assert!(refusal(allowed(json!({}))).contains("exclusively: "));
    drop(holder);
    let mount = folder.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let is_formatted = Program::new("mkfs.ext4").arg("-q").arg(path).status().is_ok_and(|status| status.success());
    if !is_formatted || !Program::new("mount").arg(path).arg(&mount).status().is_ok_and(|status| status.success()) {
        wb_test_skip::skip!("mounted device: mkfs.ext4 not found, or mounting not permitted");
        return;
    }
    let refusal_of_mounted = refusal(allowed(json!({})));
    // The same device, named by a job file of the user.
    let job_file = folder.path().join("own.fio");
    fs::write(&job_file, format!("[own]\nrw=$@\nbs=$@\nsize=1m\nfilename={path}\n")).unwrap();
    let sha256 = wb_model::Sha256::digest(&fs::read(&job_file).unwrap());
    let refusal_of_named = refusal(json!({
        "allow-destroy": true, "test-types": "randwrite", "job-file": job_file, "job-file-sha256": sha256.as_str(),
    }));
    let other_name = folder.path().join("other-name");
    fs::hard_link(folder.path().join("image"), &other_name).unwrap();
    let refusal_of_image =
        refusal(json!({ "allow-destroy": true, "test-types": "randwrite", "direct": false, "targets": [other_name] }));
    Program::new("umount").arg(&mount).status().unwrap();
    assert!(
        refusal_of_mounted.contains("in use: loop") && refusal_of_mounted.contains("is mounted at"),
        "{refusal_of_mounted}"
    );
    assert_eq!(refusal_of_named, refusal_of_mounted);
    assert!(refusal_of_image.contains("it is the content of /dev/loop"), "{refusal_of_image}");
}

/// Opens a device exclusively, like a mount.
fn open_exclusively(path: &str) -> fs::File {
    const O_EXCL: i32 = 0o200;
    fs::OpenOptions::new().write(true).custom_flags(O_EXCL).open(path).unwrap()
}

/// A loop device on a file of 16 MiB, detached when dropped.
struct Loop(String);

impl Loop {
    fn new(image: &std::path::Path) -> Option<Self> {
        fs::File::create(image).unwrap().set_len(16 << 20).unwrap();
        let output = Program::new("losetup").args(["--find", "--show"]).arg(image).output().ok();
        let Some(output) = output.filter(|output| output.status.success()) else {
            wb_test_skip::skip!("block devices: cannot create a loop device (requires root)");
            return None;
        };
        Some(Self(String::from_utf8(output.stdout).unwrap().trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Program::new("losetup").args(["--detach", &self.0]).status();
    }
}
