//! A short sample with the real fio and qemu-nbd.

use serde_json::json;
use wb_test::Failure;
use wb_workloads::fio_export::Export;
use wb_workloads::fio_nbd::FioNbd;

use crate::common::has;
use crate::fio_common::{extended, short_params, take_sample};

#[test]
fn an_export_is_measured_and_removed() {
    if !["fio", "qemu-nbd", "qemu-img"].into_iter().all(has) {
        return;
    }
    let params = extended(short_params(), json!({ "test-types": "randrw", "iodepth": 32 }));
    let sample = match take_sample(Export(FioNbd), params) {
        Ok(sample) => sample,
        Err(Failure::Refused { reason }) if reason.contains("unknown ioengine `nbd`") => {
            wb_test_skip::skip!("{reason}");
            return;
        }
        Err(failure) => panic!("{failure}"),
    };
    assert!(sample.assert_valid().value("throughput/iops") > 0.0);
    assert!(sample.measurement.latencies.iter().all(|latencies| latencies.seconds.len() >= 5));
    let job_file = sample.text("fio.job");
    assert!(job_file.contains("numjobs=4\n") && job_file.contains("ioengine=nbd\n"), "{job_file}");
    let socket = job_file.lines().find_map(|line| line.strip_prefix("uri=nbd+unix:///?socket=")).unwrap();
    assert!(!std::fs::exists(socket).unwrap(), "{socket} still exists");
}
