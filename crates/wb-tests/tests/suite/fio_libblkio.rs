//! Short samples with the real fio and qemu-storage-daemon if fio has the engine libblkio, otherwise a refusal.

use std::fs;
use std::process::{Command as Program, Stdio};

use serde_json::json;
use wb_test::Failure;
use wb_workloads::fio_export::Export;
use wb_workloads::fio_libblkio::FioLibblkio;

use crate::common::{Sample, has};
use crate::fio_common::{extended, short_params, take_sample};

fn sample(extra: serde_json::Value) -> Result<Sample, Failure> {
    let params = extended(short_params(), json!({ "test-types": "randrw" }));
    take_sample(Export(FioLibblkio), extended(params, extra))
}

/// Whether fio has the engine, according to fio.
fn has_engine() -> bool {
    let status = Program::new("fio").arg("--enghelp=libblkio").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.unwrap().success()
}

/// Checks the refusal of a sample by a fio without the engine.
fn assert_refused(sample: Result<Sample, Failure>) {
    let Err(Failure::Refused { reason }) = sample else { panic!("expected a refusal, got {sample:?}") };
    assert!(reason.starts_with("unknown ioengine `libblkio`: this fio has "), "{reason}");
    assert!(reason.ends_with("build fio 3.34 or newer with libblkio (Debian's package libblkio-dev)"), "{reason}");
}

/// Folders in /proc of the servers whose socket or target is below a folder.
fn servers(below: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_server = |path: &std::path::PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.starts_with("qemu-storage-daemon") && line.contains(below)
    };
    processes.filter(is_server).map(|path| path.display().to_string()).collect()
}

#[test]
fn a_vhost_user_export_is_measured_and_removed_or_refused_without_the_engine() {
    if !["fio", "qemu-storage-daemon"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let target = folder.path().to_str().unwrap();
    for (numjobs, hipri) in [(1, false), (2, true)] {
        let params = json!({ "target": target, "numjobs": numjobs, "hipri": hipri });
        match (has_engine(), sample(params)) {
            (true, Ok(sample)) => {
                assert!(sample.assert_valid().value("throughput/iops") > 0.0);
                assert!(sample.measurement.latencies.iter().all(|latencies| latencies.seconds.len() >= 5));
                let job_file = sample.text("fio.job");
                let numjobs = format!("numjobs={numjobs}\n");
                assert!(job_file.contains(&numjobs) && job_file.contains("ioengine=libblkio\n"), "{job_file}");
                let socket = job_file.lines().find_map(|line| line.strip_prefix("libblkio_path=")).unwrap();
                assert!(!fs::exists(socket).unwrap(), "{socket} still exists");
                let server = sample.text("server.process.json");
                assert!(server.contains("vhost-user-blk") && server.contains(target), "{server}");
            }
            (false, refusal) => assert_refused(refusal),
            (has_engine, other) => panic!("fio has the engine: {has_engine}; {other:?}"),
        }
        assert_eq!(servers(target), [""; 0]);
        assert_eq!(fs::read_dir(target).unwrap().count(), 0, "the image is gone");
    }
}

#[test]
fn an_export_never_overwrites_a_file_without_permission() {
    if !["fio", "qemu-storage-daemon"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("pre,cious");
    let precious = vec![7u8; 8 << 20];
    fs::write(&path, &precious).unwrap();
    Program::new("sync").arg(&path).status().unwrap();
    if !has_engine() {
        assert_refused(sample(json!({ "target": path, "test-types": "write", "allow-destroy": true })));
        assert!(fs::read(&path).unwrap() == precious, "a refused sample writes nothing");
        return;
    }
    match sample(json!({ "target": path })) {
        Err(Failure::Refused { reason }) => {
            assert!(reason.contains("exists, and randrw would overwrite it"), "{reason}")
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
    sample(json!({ "target": path, "test-types": "randread" })).unwrap().assert_valid();
    assert!(fs::read(&path).unwrap() == precious, "changed by reads");
    sample(json!({ "target": path, "test-types": "write", "allow-destroy": true })).unwrap().assert_valid();
    assert!(fs::read(&path).unwrap() != precious, "writes reach the target");
}

#[test]
fn the_error_of_a_server_that_ends_early_is_reported() {
    if !["fio", "qemu-storage-daemon"].into_iter().all(has) {
        return;
    }
    if !has_engine() {
        // Checked before a server is started.
        assert_refused(sample(json!({ "numjobs": 100_000 })));
        return;
    }
    match sample(json!({ "numjobs": 100_000 })) {
        Err(Failure::Crashed { status }) => {
            assert!(status.starts_with("qemu-storage-daemon: ") && status.contains("num-queues"), "{status}");
        }
        other => panic!("expected a crash, got {other:?}"),
    }
}
