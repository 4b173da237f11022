//! Figures of a job, merged over its clones.

use std::io;

use wb_model::{Gate, Metric};

use super::latency::{CloneLatency, merge_clones};
use super::report::{DIRECTIONS, JobReport, LATENCIES, OperationReport};
use crate::foreign::ForeignSample;

/// Creates the sample of a job and its clones. `kinds` are the kinds of operations of the job, empty if unknown; `is_group`
/// is whether the report of several clones is known to be one (`group_reporting`).
pub(super) fn sample(location: String, clones: &[&JobReport], kinds: &[&str], is_group: bool) -> ForeignSample {
    let mut sample = ForeignSample::at(location);
    if let Some(job) = clones.iter().find(|job| job.error != 0) {
        let error = io::Error::from_raw_os_error(job.error);
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
    sample.push_reading(Metric::resource("cpu-user", "%"), total(|job| job.usr_cpu.0));
    sample.push_reading(Metric::resource("cpu-system", "%"), total(|job| job.sys_cpu.0));
    let longest = all_reports.iter().filter_map(|direction| direction.runtime.0).reduce(f64::max);
    sample.seconds = longest.map(|milliseconds| milliseconds / 1000.0);
    sample
}

/// Total operations and bytes per second. Those of clones and directions with different run times are as fio's of a group:
/// all operations by the longest run time. A total of which a part is unknown is none.
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
