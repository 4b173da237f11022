//! Gates of fio: plausibility of its report, and agreement with the job.

use serde::Deserialize;
use wb_model::outcome::Gate;
use wb_model::{Bytes, Class, MetricKey, Unit};
use wb_sys::process::ResourceUsage;
use wb_test::{Artefacts, Measurement};

use super::job::{FioJob, Operation, TestType};
use super::job_file_settings;
use super::report::{FioReport, JobReport};
use super::run::{MEMORY_FILE, OUTPUT_NAME};

/// Upper bound of a plausible bandwidth of one fio in B/s; a higher figure is probably in another unit.
const MAX_BANDWIDTH: f64 = 1e12;

const SYNCHRONOUS_ENGINES: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

pub(super) fn check_work(measurement: &mut Measurement, job: &FioJob, report: &FioReport) {
    measurement.require(!report.jobs.is_empty(), Gate::Work, || "fio ran no job".to_owned());
    for job_report in &report.jobs {
        let name = &job_report.jobname;
        measurement
            .require(job_report.error == 0, Gate::Work, || format!("{name} ended with error {}", job_report.error));
        measurement.require(job_report.total_err == 0, Gate::Work, || {
            let JobReport { total_err, first_error, .. } = job_report;
            format!("{total_err} operations of {name} failed, the first with error {first_error}")
        });
        for operation in job.test_type.operations() {
            let (kind, counts) = (operation.name(), job_report.operation(*operation));
            measurement.require(counts.total_ios > 0 && counts.io_bytes > 0, Gate::Work, || {
                format!("{name} completed no {kind}")
            });
            let incomplete = counts.short_ios + counts.drop_ios;
            measurement.require(incomplete == 0, Gate::Work, || {
                format!("{incomplete} {kind}s of {name} were short or dropped")
            });
            let in_bins = counts.clat_ns.bins.values().fold(0u64, |sum, count| sum.saturating_add(*count));
            let iodepth = report.iodepth(job_report).unwrap_or(job.iodepth);
            let agree =
                in_bins == counts.clat_ns.count && counts_agree(counts.clat_ns.count, counts.total_ios, iodepth);
            measurement.require(agree, Gate::Output, || {
                format!("{name} did {} {kind}s, timed {} and binned {in_bins}", counts.total_ios, counts.clat_ns.count)
            });
        }
    }
}

/// Whether counts agree, except for operations in flight when counting began or ended.
fn counts_agree(one: u64, other: u64, iodepth: u32) -> bool {
    one.abs_diff(other) <= u64::from(iodepth) + 1
}

/// Checks that the jobs of a user's job file did what their cell is labelled with. `block_size` is `None` if the file
/// has no single one.
pub(super) fn check_label(measurement: &mut Measurement, job: &FioJob, block_size: Option<Bytes>, report: &FioReport) {
    // fio may transfer the last block of a file in part.
    const MAX_DEVIATION: f64 = 0.1;
    for job_report in &report.jobs {
        let name = &job_report.jobname;
        let ran = job_file_settings::reported_pattern([&job_report.options, &report.global_options]);
        measurement.require(ran.is_none_or(|ran| ran == job.test_type), Gate::Work, || {
            let ran = ran.map_or("", TestType::name);
            format!("{name} ran `rw={ran}`, and its cell is labelled {}", job.test_type.name())
        });
        for operation in [Operation::Read, Operation::Write] {
            let (kind, counts) = (operation.name(), job_report.operation(operation));
            let is_labelled = job.test_type.operations().contains(&operation);
            measurement.require(is_labelled || counts.total_ios == 0, Gate::Work, || {
                format!("{name} did {} {kind}s, and its cell is labelled {}", counts.total_ios, job.test_type.name())
            });
            let Some(block_size) = block_size.filter(|_| counts.total_ios > 0) else { continue };
            let mean = counts.io_bytes as f64 / counts.total_ios as f64;
            let deviation = (mean / block_size.0.max(1) as f64 - 1.0).abs();
            measurement.require(deviation <= MAX_DEVIATION, Gate::Work, || {
                format!("{kind}s of {name} had {mean:.0} bytes on average, and its cell is labelled {block_size}")
            });
        }
    }
}

pub(super) fn check_request(measurement: &mut Measurement, job: &FioJob, report: &FioReport) {
    let jobs = report.jobs.len();
    measurement.require(jobs == job.jobs(), Gate::Work, || format!("{jobs} jobs ran, {} requested", job.jobs()));
    let requested_ms = job.runtime.seconds() * 1000.0;
    let mut slowest = f64::INFINITY;
    for job_report in &report.jobs {
        for operation in job.test_type.operations() {
            let (name, kind, counts) = (&job_report.jobname, operation.name(), job_report.operation(*operation));
            let blocks = counts.io_bytes / job.block_size.0.max(1);
            measurement.require(counts_agree(blocks, counts.total_ios, job.iodepth), Gate::Work, || {
                format!("{name} did {} {kind}s of {}, but {} bytes", counts.total_ios, job.block_size, counts.io_bytes)
            });
            measurement.require(counts.runtime as f64 >= 0.95 * requested_ms, Gate::Work, || {
                format!("{name} did {kind}s for {} ms, {requested_ms:.0} ms requested", counts.runtime)
            });
            let (rate, limit) = (counts.ios_per_second(), f64::from(job.rate_iops));
            // Submissions at the edges of a short sample exceed the rate.
            let edge = f64::from(job.iodepth) / job.runtime.seconds().max(1e-3);
            measurement.require(job.rate_iops == 0 || rate <= 1.1 * limit + edge, Gate::Work, || {
                format!("{name} did {rate:.0} {kind}s per second, at most {limit:.0} requested")
            });
            slowest = slowest.min(rate);
        }
    }
    if job.rate_iops > 0 && slowest < 0.9 * f64::from(job.rate_iops) {
        measurement.findings.push(format!(
            "the rate of {} operations per second and job was not reached: the slowest job did {slowest:.0}",
            job.rate_iops
        ));
    }
    if SYNCHRONOUS_ENGINES.contains(&job.ioengine.as_str()) && job.iodepth > 1 {
        measurement.findings.push(format!(
            "iodepth {} has no effect: ioengine={} does one operation at a time in each job",
            job.iodepth, job.ioengine
        ));
    }
    if job.ioengine == "libaio" && !job.direct {
        let depth =
            if job.iodepth > 1 { format!("iodepth {} has no effect, and ", job.iodepth) } else { String::new() };
        measurement.findings.push(format!(
            "libaio is synchronous with the page cache: with direct=false {depth}the latencies, from submission to \
             completion, lack the time that an operation takes while it is submitted"
        ));
    }
}

/// Checks rates and latencies by Little's law: operations in flight are their rate times their latency, and there are
/// at most `iodepth` per job.
pub(super) fn check_possible(measurement: &mut Measurement, job: &FioJob, report: &FioReport) {
    // Operations that began before the measured time are counted completely.
    const EDGES: f64 = 1.5;
    for job_report in &report.jobs {
        let in_flight: f64 = job
            .test_type
            .operations()
            .iter()
            .map(|operation| {
                let counts = job_report.operation(*operation);
                counts.ios_per_second() * counts.lat_ns.mean / 1e9
            })
            .sum();
        let iodepth = report.iodepth(job_report).unwrap_or(job.iodepth);
        let limit = f64::from(iodepth) * EDGES + 1.0;
        measurement.require(in_flight <= limit, Gate::Plausibility, || {
            format!(
                "{} had {in_flight:.1} operations in flight by its rate and latency, expected at most {}",
                job_report.jobname, iodepth
            )
        });
        for operation in job.test_type.operations() {
            let (kind, latency) = (operation.name(), &job_report.operation(*operation).clat_ns);
            let is_valid = latency.mean.is_finite() && latency.mean > 0.0 && latency.mean <= latency.max;
            measurement.require(is_valid || latency.count == 0, Gate::Plausibility, || {
                format!(
                    "{}s of {} took {} ns on average, {} ns at most",
                    kind, job_report.jobname, latency.mean, latency.max
                )
            });
        }
    }
    let bandwidth =
        measurement.values.get(&MetricKey::new(Class::Throughput, "bandwidth")).copied().unwrap_or_default();
    measurement.require(bandwidth < MAX_BANDWIDTH, Gate::Plausibility, || {
        format!("a bandwidth of {bandwidth:e} B/s is impossible")
    });
}

/// Resource use of fio's processes as counted by the kernel; none if it was not recorded.
fn read_usage(artefacts: &Artefacts) -> Option<ResourceUsage> {
    #[derive(Deserialize)]
    struct Process {
        usage: ResourceUsage,
    }
    artefacts.json(&format!("{OUTPUT_NAME}.process.json")).ok().map(|Process { usage }| usage)
}

/// Adds a finding for buffered reads of files that fit into memory, if they were read more than once or the kernel
/// counted fewer bytes read from storage. fio drops a file from the page cache when it opens it, but not from caches
/// below.
pub(super) fn note_cached_reads(
    measurement: &mut Measurement,
    job: &FioJob,
    report: &FioReport,
    artefacts: &Artefacts,
) {
    let reads = job.test_type.operations().contains(&Operation::Read);
    if job.direct || !reads || job.has_server() {
        return;
    }
    // Missing in older samples.
    let (Some(usage), Ok(memory)) = (read_usage(artefacts), artefacts.json::<Bytes>(MEMORY_FILE)) else { return };
    let files = Bytes(job.file_size.0.saturating_mul(job.targets.len() as u64));
    let bytes: u64 = report.jobs.iter().map(|ran| ran.operation(Operation::Read).io_bytes).sum();
    let is_cached = (usage.read_bytes as f64) < 0.9 * bytes as f64;
    if files > memory || !(is_cached || bytes > files.0) {
        return;
    }
    let figure = |bytes: u64| Unit::new("B").quantity(bytes as f64).to_string();
    let consequence = if is_cached {
        "the rest was served by the page cache"
    } else {
        "a cache of the host or device may still hold them"
    };
    measurement.findings.push(format!(
        "direct=false, and files of {} fit into the {} of available memory: they were read {:.1} times, and of {} the \
         kernel counted {} from storage; {consequence}",
        figure(files.0),
        figure(memory.0),
        bytes as f64 / files.0.max(1) as f64,
        figure(bytes),
        figure(usage.read_bytes)
    ));
}

/// Adds a finding if the kernel counted less storage I/O than fio reports for direct I/O.
pub(super) fn note_missing_storage_io(
    measurement: &mut Measurement,
    job: &FioJob,
    report: &FioReport,
    artefacts: &Artefacts,
) {
    let Some(usage) = read_usage(artefacts) else { return };
    if !job.direct || job.has_server() {
        return;
    }
    for operation in job.test_type.operations() {
        let (counted, verb) = match operation {
            Operation::Read => (usage.read_bytes, "read from"),
            Operation::Write => (usage.written_bytes, "written to"),
        };
        let bytes: u64 = report.jobs.iter().map(|ran| ran.operation(*operation).io_bytes).sum();
        if (counted as f64) < 0.9 * bytes as f64 {
            measurement.findings.push(format!(
                "direct=true, but of {bytes} bytes the kernel counted {counted} as {verb} storage: the rest was served from memory"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use wb_model::{Bytes, Nanos, Validity};

    use super::super::testing::{job, output, rejection_of, study_files, study_output};
    use super::super::values::JobFileOrigin;
    use super::*;

    #[test]
    fn work_that_differs_from_the_request_is_invalid() {
        let stdout = output(&[(0, 1000, 0)]);
        let read = job(TestType::Read);
        let work_rejection = |job: &FioJob, stdout: &str| {
            let (gate, figures) = rejection_of(job, stdout);
            assert_eq!(gate, Gate::Work, "{figures}");
            figures
        };
        assert_eq!(work_rejection(&job(TestType::Write), &stdout), "job-0 completed no write");
        assert_eq!(work_rejection(&read, &stdout.replace("\"error\": 0", "\"error\": 5")), "job-0 ended with error 5");
        // `continue_on_error`.
        let continued = stdout.replace("\"error\": 0", "\"error\": 0, \"total_err\": 7, \"first_error\": 5");
        assert_eq!(work_rejection(&read, &continued), "7 operations of job-0 failed, the first with error 5");
        assert_eq!(
            work_rejection(&read, &stdout.replacen("\"short_ios\": 0", "\"short_ios\": 3", 1)),
            "3 reads of job-0 were short or dropped"
        );
        assert_eq!(work_rejection(&read, &output(&[(0, 9, 0), (0, 9, 0)])), "2 jobs ran, 1 requested");
        let larger = FioJob { block_size: Bytes(8192), ..read.clone() };
        assert_eq!(work_rejection(&larger, &stdout), "job-0 did 1000 reads of 8k, but 4096000 bytes");
        let longer = FioJob { runtime: Nanos(2_000_000_000), ..read.clone() };
        assert_eq!(work_rejection(&longer, &stdout), "job-0 did reads for 1000 ms, 2000 ms requested");
        let slower = FioJob { rate_iops: 500, ..read.clone() };
        assert_eq!(work_rejection(&slower, &stdout), "job-0 did 1000 reads per second, at most 500 requested");
        let user = JobFileOrigin::User { block_size: None };
        let user = study_files(&longer, user, &[("fio.stdout", &stdout)]).unwrap();
        assert_eq!(user.validity, Validity::Valid, "the request of a user's job file is unknown");
    }

    #[test]
    fn a_users_job_that_differs_from_the_label_of_its_cell_is_invalid() {
        let figures = |job: &FioJob, block_size: Option<Bytes>, stdout: &str| {
            let origin = JobFileOrigin::User { block_size };
            match study_files(job, origin, &[("fio.stdout", stdout)]).unwrap().validity {
                Validity::Invalid { gate: Gate::Work, figures } => figures,
                other => panic!("{other:?}"),
            }
        };
        let (read, mixed) = (job(TestType::Read), output(&[(0, 1000, 500)]));
        assert_eq!(figures(&read, None, &mixed), "job-0 did 500 writes, and its cell is labelled read");
        assert_eq!(
            figures(&read, Some(Bytes(1 << 20)), &output(&[(0, 1000, 0)])),
            "reads of job-0 had 4096 bytes on average, and its cell is labelled 1m"
        );
        let options = mixed.replacen("\"eta\": 0", "\"eta\": 0, \"job options\": {\"rw\": \"randrw\"}", 1);
        assert_eq!(figures(&job(TestType::Rw), None, &options), "job-0 ran `rw=randrw`, and its cell is labelled rw");
        let origin = JobFileOrigin::User { block_size: Some(Bytes(4096)) };
        let same = study_files(&job(TestType::RandRw), origin, &[("fio.stdout", &options)]).unwrap();
        assert_eq!(same.validity, Validity::Valid);
    }

    #[test]
    fn implausible_figures_are_invalid() {
        let stdout = output(&[(0, 1000, 0)]);
        let read = job(TestType::Read);
        let in_seconds =
            stdout.replace("\"mean\": 1000000.0", "\"mean\": 1000000000.0").replace("1003520,", "2003520000,");
        let (gate, figures) = rejection_of(&read, &in_seconds);
        assert_eq!(
            (gate, figures.as_str()),
            (Gate::Plausibility, "job-0 had 1000.0 operations in flight by its rate and latency, expected at most 32")
        );
        let (gate, figures) = rejection_of(&read, &stdout.replace("\"mean\": 1000000.0", "\"mean\": 9000000.0"));
        assert_eq!(
            (gate, figures.as_str()),
            (Gate::Plausibility, "reads of job-0 took 9000000 ns on average, 1003520 ns at most")
        );
        let (gate, _) = rejection_of(&read, &stdout.replace("\"995328\": 900", "\"995328\": 90"));
        assert_eq!(gate, Gate::Output);
    }

    #[test]
    fn a_rate_that_is_not_reached_is_a_finding() {
        let fast = FioJob { rate_iops: 5000, ..job(TestType::Read) };
        let measurement = study_output(&fast, &output(&[(0, 1000, 0)]));
        assert_eq!(measurement.validity, Validity::Valid);
        assert_eq!(
            measurement.findings,
            ["the rate of 5000 operations per second and job was not reached: the slowest job did 1000"]
        );
    }

    #[test]
    fn buffered_reads_of_files_that_fit_into_memory_are_a_finding() {
        let buffered = FioJob { direct: false, file_size: Bytes(64 << 20), iodepth: 1, ..job(TestType::Read) };
        let all = |job: &FioJob, from_storage: u64, memory: &str| {
            let usage = ResourceUsage { read_bytes: from_storage, ..ResourceUsage::default() };
            let process = serde_json::json!({ "argv": [], "usage": usage }).to_string();
            let stdout = output(&[(0, 1000, 0)]);
            let files = [("fio.stdout", stdout.as_str()), ("fio.process.json", &process), ("memory.json", memory)];
            let measurement = study_files(job, JobFileOrigin::Generated, &files).unwrap();
            measurement.findings.into_iter().filter(|finding| finding.contains("fit into")).collect::<Vec<_>>()
        };
        assert_eq!(
            all(&buffered, 4096, "\"1g\""),
            [
                "direct=false, and files of 64 MiB fit into the 1 GiB of available memory: they were read 0.1 times, and of \
                 3.91 MiB the kernel counted 4 KiB from storage; the rest was served by the page cache"
            ]
        );
        assert_eq!(all(&buffered, 4_096_000, "\"1g\""), [""; 0], "all from storage, and read once");
        assert_eq!(all(&buffered, 4096, "\"32m\""), [""; 0], "they do not fit");
        let again = FioJob { file_size: Bytes(1 << 20), ..buffered.clone() };
        let [finding] = &all(&again, 4_096_000, "\"1g\"")[..] else { panic!("read again") };
        assert!(finding.contains("read 3.9 times"), "{finding}");
        assert!(finding.ends_with("a cache of the host or device may still hold them"), "{finding}");
        let written = FioJob { test_type: TestType::Write, ..again };
        assert_eq!(all(&written, 0, "\"1g\""), [""; 0]);
        assert_eq!(all(&FioJob { direct: true, ..buffered }, 4096, "\"1g\""), [""; 0]);
    }

    #[test]
    fn io_that_did_not_reach_the_storage_is_a_finding() {
        let process = |bytes: u64| {
            let usage = ResourceUsage { read_bytes: bytes, ..ResourceUsage::default() };
            serde_json::json!({ "argv": [], "usage": usage }).to_string()
        };
        let findings = |bytes: u64| {
            let stdout = output(&[(0, 1000, 0)]);
            let files = [("fio.stdout", stdout.as_str()), ("fio.process.json", &process(bytes))];
            study_files(&job(TestType::Read), JobFileOrigin::Generated, &files).unwrap().findings
        };
        assert_eq!(findings(4_096_000), [""; 0]);
        assert!(
            findings(4096)[0].starts_with("direct=true, but of 4096000 bytes the kernel counted 4096 as read from")
        );
    }
}
