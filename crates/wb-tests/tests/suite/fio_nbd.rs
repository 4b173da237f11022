//! A short sample with the real fio and qemu-nbd.

use crate::fio_common::{has, take_sample};
use serde_json::json;
use wb_model::Validity;
use wb_tests::Failure;
use wb_tests::fio_nbd::FioNbd;

#[test]
fn an_export_is_measured_and_removed() {
    if !["fio", "qemu-nbd", "qemu-img"].into_iter().all(has) {
        return;
    }
    let params = json!({
        "test-types": "randrw", "block-sizes": "4k", "file-size": "8m", "runtime": "500ms", "ramptime": 0,
        "sysinfo": ["none"],
    });
    let sample = match take_sample(FioNbd, &params) {
        Ok(sample) => sample,
        Err(Failure::Refused { reason }) if reason.contains("unknown ioengine `nbd`") => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
        Err(failure) => panic!("{failure}"),
    };
    assert_eq!(sample.measurement.validity, Validity::Valid);
    assert!(sample.iops() > 0.0);
    assert!(sample.measurement.latencies.iter().all(|latencies| latencies.seconds.len() >= 5));
    let job_file = sample.text("fio.job");
    assert!(job_file.contains("numjobs=4\n") && job_file.contains("ioengine=nbd\n"), "{job_file}");
    let socket = job_file.lines().find_map(|line| line.strip_prefix("uri=nbd+unix:///?socket=")).unwrap();
    assert!(!std::fs::exists(socket).unwrap(), "{socket} still exists");
}
