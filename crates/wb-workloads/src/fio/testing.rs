//! Synthetic output of fio for the unit tests.

use serde_json::{Value, json};
use wb_model::outcome::Gate;
use wb_model::{Nanos, Validity};
use wb_test::{Artefacts, Measurement, Rejection};
use wb_test_artefacts::artefact_folder;

use super::job::{FioJob, TestType};
use super::params::FioParams;
use super::values::{self, JobFileOrigin};

/// Report of fio with jobs of (group, reads, writes), each of one second, with operations of 4 KiB and 1 ms.
pub(super) fn output(jobs: &[(u32, u64, u64)]) -> String {
    let direction = |ios: u64| {
        let latency = json!({ "min": 998_400, "max": 1_003_520, "mean": 1_000_000.0, "stddev": 1.5, "N": ios });
        let mut clat = latency.clone();
        if ios > 0 {
            clat["bins"] = json!({ "995328": ios - ios / 10, "1003520": ios / 10 });
        }
        json!({
            "io_bytes": ios * 4096, "io_kbytes": ios * 4, "total_ios": ios, "runtime": if ios > 0 { 1000 } else { 0 },
            "short_ios": 0, "drop_ios": 0, "slat_ns": latency, "clat_ns": clat, "lat_ns": latency, "iops": ios as f64,
        })
    };
    let job = |(number, (group, reads, writes)): (usize, &(u32, u64, u64))| {
        json!({
            "jobname": format!("job-{number}"), "groupid": group, "error": 0, "eta": 0, "elapsed": 2,
            "read": direction(*reads), "write": direction(*writes), "trim": direction(0), "usr_cpu": 1.5, "sys_cpu": 2.5,
        })
    };
    let jobs: Vec<Value> = jobs.iter().enumerate().map(job).collect();
    format!("{:#}\n", json!({ "fio version": "fio-3.33", "timestamp": 1, "jobs": jobs, "disk_util": [] }))
}

/// A job of one second on one target.
pub(super) fn job(test_type: TestType) -> FioJob {
    let params = FioParams { test_types: Some(test_type), runtime: Nanos(1_000_000_000), ..FioParams::default() };
    params.job(vec!["/x".to_owned()])
}

/// Evaluates a sample with these artefacts.
pub(super) fn study_files(
    job: &FioJob,
    origin: JobFileOrigin,
    files: &[(&str, &str)],
) -> Result<Measurement, Rejection> {
    let folder = artefact_folder(files);
    values::study(job, origin, &Artefacts::new(folder.path()))
}

/// Evaluates a sample of a generated job with this output.
pub(super) fn study_output(job: &FioJob, stdout: &str) -> Measurement {
    study_files(job, JobFileOrigin::Generated, &[("fio.stdout", stdout)]).unwrap()
}

/// Gate and figures of a sample that this output makes invalid.
pub(super) fn rejection_of(job: &FioJob, stdout: &str) -> (Gate, String) {
    match study_output(job, stdout).validity {
        Validity::Invalid { gate, figures } => (gate, figures),
        Validity::Valid => panic!("valid"),
    }
}
