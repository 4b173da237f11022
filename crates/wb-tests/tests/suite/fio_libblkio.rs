//! Short samples with the real fio and qemu-storage-daemon, where fio has the engine libblkio; a refusal where not.

use std::fs;
use std::process::{Command as Program, Stdio};

use crate::fio_common::{Taken, has, take};
use serde_json::json;
use wb_model::Validity;
use wb_tests::Failure;
use wb_tests::fio_libblkio::FioLibblkio;

fn sample(more: &serde_json::Value) -> Result<Taken, Failure> {
    let mut params = json!({
        "test-types": "randrw", "block-sizes": "4k", "file-size": "8m", "runtime": "500ms", "ramptime": 0,
        "iodepth": 4, "sysinfo": ["none"],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    take(FioLibblkio, &params)
}

/// Whether fio has the engine, by its own word.
fn has_engine() -> bool {
    let asked = Program::new("fio").arg("--enghelp=libblkio").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.unwrap().success()
}

/// Checks how a sample is refused where fio has no such engine.
fn is_refused(sample: Result<Taken, Failure>) {
    let Err(Failure::Refused { reason }) = sample else { panic!("refused was expected, and it is {sample:?}") };
    assert!(reason.starts_with("this fio has no ioengine `libblkio`: it has "), "{reason}");
    assert!(reason.ends_with("that was built with libblkio (Debian's package libblkio-dev) has it"), "{reason}");
}

/// The pids of the exports whose socket or target lies below a folder.
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
fn a_vhost_user_export_is_measured_and_taken_down_where_fio_has_the_engine_and_refused_elsewhere() {
    if !["fio", "qemu-storage-daemon"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let target = folder.path().to_str().unwrap();
    for (numjobs, hipri) in [(1, false), (2, true)] {
        let params = json!({ "target": target, "numjobs": numjobs, "hipri": hipri });
        match (has_engine(), sample(&params)) {
            (true, Ok(taken)) => {
                assert_eq!(taken.measured.validity, Validity::Valid);
                assert!(taken.measured.values["throughput/iops"] > 0.0);
                assert!(taken.measured.latencies.iter().all(|latencies| latencies.seconds.len() >= 5));
                let job_file = taken.text("fio.job");
                let numjobs = format!("numjobs={numjobs}\n");
                assert!(job_file.contains(&numjobs) && job_file.contains("ioengine=libblkio\n"), "{job_file}");
                let socket = job_file.lines().find_map(|line| line.strip_prefix("libblkio_path=")).unwrap();
                assert!(!fs::exists(socket).unwrap(), "{socket} is left");
                let server = taken.text("server.process.json");
                assert!(server.contains("vhost-user-blk") && server.contains(target), "{server}");
            }
            (false, refused) => is_refused(refused),
            (has_engine, other) => panic!("fio has the engine: {has_engine}; {other:?}"),
        }
        assert_eq!(servers(target), [""; 0]);
        assert_eq!(fs::read_dir(target).unwrap().count(), 0, "the image is gone");
    }
}

#[test]
fn an_export_never_overwrites_a_file_unasked() {
    if !["fio", "qemu-storage-daemon"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("pre,cious");
    let precious = vec![7u8; 8 << 20];
    fs::write(&path, &precious).unwrap();
    Program::new("sync").arg(&path).status().unwrap();
    if !has_engine() {
        is_refused(sample(&json!({ "target": path, "test-types": "write", "allow-destroy": true })));
        assert!(fs::read(&path).unwrap() == precious, "what cannot be measured is not written");
        return;
    }
    match sample(&json!({ "target": path })) {
        Err(Failure::Refused { reason }) => {
            assert!(reason.contains("exists, and randrw would overwrite it"), "{reason}")
        }
        other => panic!("refused was expected, and it is {other:?}"),
    }
    let read = sample(&json!({ "target": path, "test-types": "randread" })).unwrap();
    assert_eq!(read.measured.validity, Validity::Valid);
    assert!(fs::read(&path).unwrap() == precious, "reading changed it");
    let written = sample(&json!({ "target": path, "test-types": "write", "allow-destroy": true })).unwrap();
    assert_eq!(written.measured.validity, Validity::Valid);
    assert!(fs::read(&path).unwrap() != precious, "what is written reaches the target");
}

#[test]
fn a_server_that_ends_at_once_says_why() {
    if !["fio", "qemu-storage-daemon"].into_iter().all(has) {
        return;
    }
    if !has_engine() {
        // Found before a server is started.
        is_refused(sample(&json!({ "numjobs": 100_000 })));
        return;
    }
    match sample(&json!({ "numjobs": 100_000 })) {
        Err(Failure::Crashed { status }) => {
            assert!(status.starts_with("qemu-storage-daemon: ") && status.contains("num-queues"), "{status}");
        }
        other => panic!("a crash was expected, and it is {other:?}"),
    }
}
