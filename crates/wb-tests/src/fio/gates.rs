//! Gates of fio: plausibility of its report, and agreement with the job.

use serde::Deserialize;
use wb_model::outcome::Gate;
use wb_model::{Bytes, Unit};
use wb_sys::process::ResourceUsage;

use super::job::{FioJob, Operation};
use super::report::FioReport;
use super::run::{MEMORY_FILE, OUTPUT_NAME};
use super::values::per_second;
use crate::{Artefacts, Measurement};

/// No machine moves more bytes per second through one fio: a figure above is in another unit.
const MAX_BANDWIDTH: f64 = 1e12;

/// Did the work happen, and do the counts of it agree?
pub(super) fn check_work(measured: &mut Measurement, job: &FioJob, report: &FioReport) {
    measured.require(!report.jobs.is_empty(), Gate::Work, || "fio ran no job".to_owned());
    for ran in &report.jobs {
        let name = &ran.jobname;
        measured.require(ran.error == 0, Gate::Work, || format!("{name} ended with error {}", ran.error));
        for operation in job.test_type.operations() {
            let (kind, of) = (operation.name(), ran.operation(*operation));
            measured.require(of.total_ios > 0 && of.io_bytes > 0, Gate::Work, || format!("{name} did no {kind}"));
            let lacking = of.short_ios + of.drop_ios;
            measured.require(lacking == 0, Gate::Work, || format!("{lacking} {kind}s of {name} were short or dropped"));
            let binned = of.clat_ns.bins.values().fold(0u64, |sum, count| sum.saturating_add(*count));
            let agree = binned == of.clat_ns.count && counts_agree(of.clat_ns.count, of.total_ios, job);
            measured.require(agree, Gate::Output, || {
                format!("{name} did {} {kind}s, timed {} and binned {binned}", of.total_ios, of.clat_ns.count)
            });
        }
    }
}

/// Whether counts agree, but for what was in flight when counting began or ended.
fn counts_agree(one: u64, other: u64, job: &FioJob) -> bool {
    one.abs_diff(other) <= u64::from(job.iodepth) + 1
}

/// Was it done as asked: by so many jobs, in such blocks, for so long, at such a rate?
pub(super) fn check_request(measured: &mut Measurement, job: &FioJob, report: &FioReport) {
    let jobs = report.jobs.len();
    measured.require(jobs == job.jobs(), Gate::Work, || format!("{jobs} jobs ran, {} were asked for", job.jobs()));
    let asked_ms = job.runtime.seconds() * 1000.0;
    let mut slowest = f64::INFINITY;
    for ran in &report.jobs {
        for operation in job.test_type.operations() {
            let (name, kind, of) = (&ran.jobname, operation.name(), ran.operation(*operation));
            let blocks = of.io_bytes / job.block_size.0.max(1);
            measured.require(counts_agree(blocks, of.total_ios, job), Gate::Work, || {
                format!("{name} did {} {kind}s of {}, but {} bytes", of.total_ios, job.block_size, of.io_bytes)
            });
            measured.require(of.runtime as f64 >= 0.95 * asked_ms, Gate::Work, || {
                format!("{name} did {kind}s for {} ms, {asked_ms:.0} were asked for", of.runtime)
            });
            let (rate, limit) = (per_second(of.total_ios, of), f64::from(job.rate_iops));
            // What is submitted at once at the edges of a short sample is above the rate.
            let edge = f64::from(job.iodepth) / job.runtime.seconds().max(1e-3);
            measured.require(job.rate_iops == 0 || rate <= 1.1 * limit + edge, Gate::Work, || {
                format!("{name} did {rate:.0} {kind}s per second, {limit:.0} at most were asked for")
            });
            slowest = slowest.min(rate);
        }
    }
    if job.rate_iops > 0 && slowest < 0.9 * f64::from(job.rate_iops) {
        measured.findings.push(format!(
            "the rate of {} per second and job was not reached: the slowest did {slowest:.0}",
            job.rate_iops
        ));
    }
    if job.ioengine == "libaio" && !job.direct && job.iodepth > 1 {
        measured.findings.push(format!(
            "libaio is synchronous where the page cache is used: iodepth {} has no effect with direct=false",
            job.iodepth
        ));
    }
}

/// Is it possible at all? Operations in flight are their rate times their latency (Little), and there are no more
/// than `iodepth` per job.
pub(super) fn check_possible(measured: &mut Measurement, job: &FioJob, report: &FioReport) {
    // An operation that began before the time that counts is counted whole.
    const EDGES: f64 = 1.5;
    for ran in &report.jobs {
        let in_flight: f64 = job
            .test_type
            .operations()
            .iter()
            .map(|operation| {
                per_second(ran.operation(*operation).total_ios, ran.operation(*operation))
                    * ran.operation(*operation).lat_ns.mean
                    / 1e9
            })
            .sum();
        let most = f64::from(job.iodepth) * EDGES + 1.0;
        measured.require(in_flight <= most, Gate::Possible, || {
            format!(
                "{} had {in_flight:.1} operations in flight by its rate and latency, {} at most",
                ran.jobname, job.iodepth
            )
        });
        for operation in job.test_type.operations() {
            let (kind, latency) = (operation.name(), &ran.operation(*operation).clat_ns);
            let sound = latency.mean.is_finite() && latency.mean > 0.0 && latency.mean <= latency.max;
            measured.require(sound || latency.count == 0, Gate::Possible, || {
                format!("{}s of {} took {} ns on average, {} ns at most", kind, ran.jobname, latency.mean, latency.max)
            });
        }
    }
    let bandwidth = measured.values.get("throughput/bandwidth").copied().unwrap_or_default();
    measured.require(bandwidth < MAX_BANDWIDTH, Gate::Possible, || format!("{bandwidth:e} B/s are impossible"));
}

/// What fio's processes used by the kernel's count; none where it was not recorded.
fn read_usage(artefacts: &Artefacts) -> Option<ResourceUsage> {
    #[derive(Deserialize)]
    struct Ran {
        usage: ResourceUsage,
    }
    artefacts.json(&format!("{OUTPUT_NAME}.process.json")).ok().map(|Ran { usage }| usage)
}

/// Notes buffered reads of files that fit into memory, where they were read more than once or the kernel saw less read
/// from storage. fio drops a file from the page cache whenever it opens it, but not from caches below.
pub(super) fn note_cached_reads(measured: &mut Measurement, job: &FioJob, report: &FioReport, artefacts: &Artefacts) {
    let reads = job.test_type.operations().contains(&Operation::Read);
    if job.direct || !reads || job.has_server() {
        return;
    }
    // Not known of samples from before it was recorded.
    let (Some(usage), Ok(memory)) = (read_usage(artefacts), artefacts.json::<Bytes>(MEMORY_FILE)) else { return };
    let files = Bytes(job.file_size.0.saturating_mul(job.targets.len() as u64));
    let bytes: u64 = report.jobs.iter().map(|ran| ran.operation(Operation::Read).io_bytes).sum();
    let is_cached = (usage.read_bytes as f64) < 0.9 * bytes as f64;
    if files > memory || !(is_cached || bytes > files.0) {
        return;
    }
    let figure = |bytes: u64| Unit::new("B").quantity(bytes as f64).to_string();
    let consequence = match is_cached {
        true => "the rest is the speed of the page cache",
        false => "a cache of a host or of the device may hold them all the same",
    };
    measured.findings.push(format!(
        "direct=false, and files of {} fit into the {} of memory that were available: they were read {:.1} times over, and \
         of {} the kernel counted {} from storage; {consequence}",
        figure(files.0),
        figure(memory.0),
        bytes as f64 / files.0.max(1) as f64,
        figure(bytes),
        figure(usage.read_bytes)
    ));
}

/// Notes where the kernel saw less going to the storage than fio says it did without the page cache.
pub(super) fn note_missing_storage_io(
    measured: &mut Measurement,
    job: &FioJob,
    report: &FioReport,
    artefacts: &Artefacts,
) {
    let Some(usage) = read_usage(artefacts) else { return };
    if !job.direct || job.has_server() {
        return;
    }
    for operation in job.test_type.operations() {
        let (seen, verb) = match operation {
            Operation::Read => (usage.read_bytes, "read from"),
            Operation::Write => (usage.written_bytes, "written to"),
        };
        let bytes: u64 = report.jobs.iter().map(|ran| ran.operation(*operation).io_bytes).sum();
        if (seen as f64) < 0.9 * bytes as f64 {
            measured.findings.push(format!(
                "direct=true, but of {bytes} bytes the kernel counted {seen} as {verb} storage: something holds them in memory"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use wb_model::{Bytes, Nanos, Validity};

    use super::super::job::TestType;
    use super::super::testing::{job, output, rejection_of, study_files};
    use super::super::values::JobFileOrigin;
    use super::*;

    #[test]
    fn what_was_not_done_as_asked_does_not_count() {
        let whole = output(&[(0, 1000, 0)]);
        let read = job(TestType::Read);
        let work = |job: &FioJob, stdout: &str| {
            let (gate, figures) = rejection_of(job, stdout);
            assert_eq!(gate, Gate::Work, "{figures}");
            figures
        };
        assert_eq!(work(&job(TestType::Write), &whole), "job-0 did no write");
        assert_eq!(work(&read, &whole.replace("\"error\": 0", "\"error\": 5")), "job-0 ended with error 5");
        assert_eq!(
            work(&read, &whole.replacen("\"short_ios\": 0", "\"short_ios\": 3", 1)),
            "3 reads of job-0 were short or dropped"
        );
        assert_eq!(work(&read, &output(&[(0, 9, 0), (0, 9, 0)])), "2 jobs ran, 1 were asked for");
        let larger = FioJob { block_size: Bytes(8192), ..read.clone() };
        assert_eq!(work(&larger, &whole), "job-0 did 1000 reads of 8k, but 4096000 bytes");
        let longer = FioJob { runtime: Nanos(2_000_000_000), ..read.clone() };
        assert_eq!(work(&longer, &whole), "job-0 did reads for 1000 ms, 2000 were asked for");
        let slower = FioJob { rate_iops: 500, ..read.clone() };
        assert_eq!(work(&slower, &whole), "job-0 did 1000 reads per second, 500 at most were asked for");
        let user = study_files(&longer, JobFileOrigin::User, &[("fio.stdout", &whole)]).unwrap();
        assert_eq!(user.validity, Validity::Valid, "what a job file of the user's asks for is not known");
    }

    #[test]
    fn what_is_impossible_does_not_count() {
        let whole = output(&[(0, 1000, 0)]);
        let read = job(TestType::Read);
        let in_seconds =
            whole.replace("\"mean\": 1000000.0", "\"mean\": 1000000000.0").replace("1003520,", "2003520000,");
        let (gate, said) = rejection_of(&read, &in_seconds);
        assert_eq!(
            (gate, said.as_str()),
            (Gate::Possible, "job-0 had 1000.0 operations in flight by its rate and latency, 32 at most")
        );
        let (gate, said) = rejection_of(&read, &whole.replace("\"mean\": 1000000.0", "\"mean\": 9000000.0"));
        assert_eq!(
            (gate, said.as_str()),
            (Gate::Possible, "reads of job-0 took 9000000 ns on average, 1003520 ns at most")
        );
        let (gate, _) = rejection_of(&read, &whole.replace("\"995328\": 900", "\"995328\": 90"));
        assert_eq!(gate, Gate::Output);
    }

    #[test]
    fn a_rate_that_is_not_reached_is_a_finding() {
        let fast = FioJob { rate_iops: 5000, ..job(TestType::Read) };
        let measured =
            study_files(&fast, JobFileOrigin::Generated, &[("fio.stdout", &output(&[(0, 1000, 0)]))]).unwrap();
        assert_eq!(measured.validity, Validity::Valid);
        assert_eq!(measured.findings, ["the rate of 5000 per second and job was not reached: the slowest did 1000"]);
    }

    #[test]
    fn buffered_reads_of_files_that_fit_into_memory_are_a_finding() {
        let buffered = FioJob { direct: false, file_size: Bytes(64 << 20), iodepth: 1, ..job(TestType::Read) };
        let all = |job: &FioJob, from_storage: u64, memory: &str| {
            let usage = ResourceUsage { read_bytes: from_storage, ..ResourceUsage::default() };
            let process = serde_json::json!({ "argv": [], "usage": usage }).to_string();
            let stdout = output(&[(0, 1000, 0)]);
            let files = [("fio.stdout", stdout.as_str()), ("fio.process.json", &process), ("memory.json", memory)];
            let measured = study_files(job, JobFileOrigin::Generated, &files).unwrap();
            measured.findings.into_iter().filter(|finding| finding.contains("fit into")).collect::<Vec<_>>()
        };
        assert_eq!(
            all(&buffered, 4096, "\"1g\""),
            [
                "direct=false, and files of 64 MiB fit into the 1 GiB of memory that were available: they were read 0.1 times \
              over, and of 3.91 MiB the kernel counted 4 KiB from storage; the rest is the speed of the page cache"
            ]
        );
        assert_eq!(all(&buffered, 4_096_000, "\"1g\""), [""; 0], "storage answered, and nothing was read twice");
        assert_eq!(all(&buffered, 4096, "\"32m\""), [""; 0], "they do not fit");
        let again = FioJob { file_size: Bytes(1 << 20), ..buffered.clone() };
        let [found] = &all(&again, 4_096_000, "\"1g\"")[..] else { panic!("read again") };
        assert!(found.contains("read 3.9 times over"), "{found}");
        assert!(found.ends_with("a cache of a host or of the device may hold them all the same"), "{found}");
        let written = FioJob { test_type: TestType::Write, ..again };
        assert_eq!(all(&written, 0, "\"1g\""), [""; 0]);
        assert_eq!(all(&FioJob { direct: true, ..buffered }, 4096, "\"1g\""), [""; 0]);
    }

    #[test]
    fn what_no_storage_saw_is_a_finding() {
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
