//! Figures of a job, merged over its clones.

use std::io;

use wb_model::{Direction, Gate, Metric};
use wb_workloads::fio::json::{DIRECTIONS, JobReport, LATENCIES, OperationReport};

use super::latency::{CloneLatency, merge_clones};
use crate::foreign::ForeignSample;

/// What the options of a job say of its figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobKind {
    /// Empty if unknown.
    pub(super) operations: &'static [&'static str],
    /// Whether the report of several clones is known to be one (`group_reporting`).
    pub(super) is_group: bool,
    /// Whether the job reads again what it wrote (`verify`).
    pub(super) verifies: bool,
}

pub(super) fn sample(location: String, clones: &[&JobReport], kind: JobKind) -> ForeignSample {
    let JobKind { operations: kinds, is_group, verifies } = kind;
    let mut sample = ForeignSample::at(location);
    let mut errors = clones.iter().filter_map(|job| Some((job, job.error.filter(|error| *error != 0)?)));
    if let Some((job, error)) = errors.next() {
        let error = io::Error::from_raw_os_error(error);
        sample.failure = Some(format!("fio: job `{}` ended with: {error}", job.jobname));
        return sample;
    }
    let failed: u64 = clones.iter().map(|job| job.total_err).fold(0, u64::saturating_add);
    if let Some(first) = clones.iter().find(|job| job.total_err > 0) {
        let error = io::Error::from_raw_os_error(first.first_error);
        sample
            .findings
            .push(format!("{failed} operations failed, which fio did not end for (`continue_on_error`): {error}"));
    }
    let directions: Vec<&str> = DIRECTIONS
        .into_iter()
        .filter(|direction| clones.iter().any(|job| job.directions().any(|own| own == *direction)))
        .collect();
    let is_separate = directions.len() > 1 || kinds.len() > 1;
    let reports = |direction: &str| {
        let reports = clones.iter().map(|job| job.operation(direction));
        reports.filter(|report| report.has_operations()).collect::<Vec<_>>()
    };
    // Reads of a job that writes and does not read are those of its `verify` phase, which follows the writes.
    let has_verification = kinds.contains(&"write")
        && !kinds.contains(&"read")
        && ["write", "read"].iter().all(|direction| directions.contains(direction));
    let own = directions.iter().filter(|direction| !(has_verification && **direction == "read"));
    if has_verification {
        sample.findings.push("reads of the verification are not in iops and bandwidth".to_owned());
    }
    if verifies && ["read", "write"].iter().all(|kind| kinds.contains(kind)) {
        let finding =
            "reads of the verification (`verify`) are in all figures of reads: fio counts them as the job's own";
        sample.findings.push(finding.to_owned());
    }
    for steady_state in clones.iter().filter_map(|job| job.steadystate.as_ref()) {
        if steady_state.attained.0 == Some(0.0) {
            let finding = format!("the steady state was not attained: `steadystate={}`", steady_state.ss);
            sample.findings.push(finding);
        }
    }
    sample.findings.dedup();
    let all_reports: Vec<&OperationReport> = own.flat_map(|direction| reports(direction)).collect();
    let (iops, bandwidth) = throughput(&all_reports);
    if iops.is_none() {
        sample.reject(Gate::Output, "the total `iops` is unknown: that of some operations is not a number");
    }
    sample.push_reading(Metric::throughput("iops", "ops/s").primary(), iops);
    sample.push_reading(Metric::throughput("bandwidth", "B/s"), bandwidth);
    for direction in directions {
        let prefix = if is_separate { format!("{direction}-") } else { String::new() };
        let clones = reports(direction);
        if is_separate {
            let (iops, bandwidth) = throughput(&clones);
            sample.push_reading(Metric::throughput(&format!("{prefix}iops"), "ops/s"), iops);
            sample.push_reading(Metric::throughput(&format!("{prefix}bandwidth"), "B/s"), bandwidth);
        }
        LATENCIES.iter().for_each(|name| push_latency(&mut sample, &prefix, name, &clones));
    }
    let syncs: Vec<&OperationReport> = clones.iter().map(|job| &job.sync).filter(|sync| sync.has_latencies()).collect();
    push_latency(&mut sample, "sync-", "lat", &syncs);
    let factor = |job: &JobReport| job.group_cpu_factor(is_group, has_verification);
    let total = |field: fn(&JobReport) -> Option<f64>| {
        clones.iter().map(|job| field(job).map(|percent| percent * factor(job))).sum::<Option<f64>>()
    };
    // Of clones that are reported as one, the depth is that of one of them.
    if let ([job], false) = (clones, is_group) {
        let depth = job.latency_depth.0.filter(|_| job.latency_target.0.is_some_and(|target| target > 0.0));
        let metric = Metric::check("latency-depth", "operations").direction(Direction::Higher);
        sample.push_reading(metric, depth);
    }
    sample.push_reading(Metric::resource("cpu-user", "%"), total(|job| job.usr_cpu.0));
    sample.push_reading(Metric::resource("cpu-system", "%"), total(|job| job.sys_cpu.0));
    let longest = all_reports.iter().filter_map(|direction| direction.runtime.0).reduce(f64::max);
    sample.seconds = longest.map(|milliseconds| milliseconds / 1000.0);
    sample
}

/// Operations and bytes per second. If clones or directions have different run times, computed as fio does for a group:
/// all operations divided by the longest run time. If a part is unknown, there is no total.
fn throughput(reports: &[&OperationReport]) -> (Option<f64>, Option<f64>) {
    let runtimes: Option<Vec<f64>> = reports.iter().map(|report| report.runtime.0).collect();
    let runtimes = runtimes.unwrap_or_default();
    let longest = runtimes.iter().copied().reduce(f64::max);
    let is_uneven = runtimes.iter().any(|runtime| *runtime > 0.0 && Some(*runtime) != longest);
    let total =
        |value: fn(&OperationReport) -> Option<f64>| reports.iter().map(|report| value(report)).sum::<Option<f64>>();
    let by_longest = |value| Some(total(value)? / (longest? / 1000.0)).filter(|_| is_uneven);
    (
        by_longest(|report| report.total_ios.0).or_else(|| total(|report| report.iops.0)),
        by_longest(OperationReport::bytes).or_else(|| total(OperationReport::bandwidth)),
    )
}

fn clone_latency<'a>(direction: &'a OperationReport, name: &str) -> Option<CloneLatency<'a>> {
    let (latency, unit) = direction.latency(name)?;
    // Of syncs, fio 3.33 has only the count of the latencies.
    Some(CloneLatency { latency, unit, operations: latency.count.0.or(direction.total_ios.0)? })
}

fn push_latency(sample: &mut ForeignSample, prefix: &str, name: &str, clones: &[&OperationReport]) {
    let latencies: Vec<CloneLatency<'_>> =
        clones.iter().filter_map(|direction| clone_latency(direction, name)).collect();
    if latencies.is_empty() {
        return;
    }
    let merged = merge_clones(&latencies);
    let metric = |statistic: &str| Metric::latency(&format!("{prefix}{name}-{statistic}"), "ns");
    // A latency that was not measured has a mean of 0, with or without operations.
    sample.push_reading(metric("mean"), merged.mean.filter(|mean| *mean > 0.0));
    match merged.percentiles {
        Some(percentiles) => {
            percentiles.iter().for_each(|(percentile, value)| sample.push_reading(metric(percentile), Some(*value)))
        }
        None => sample.findings.push(format!(
            "no percentiles of {prefix}{name}: those of {} clones can only be merged with json+",
            latencies.len()
        )),
    }
}
