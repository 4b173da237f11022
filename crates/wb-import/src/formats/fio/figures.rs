//! The figures of a job, its clones put together.

use std::io;

use wb_model::Metric;

use super::latency::{CloneLatency, merge_clones};
use super::report::{DIRECTIONS, JobReport, LATENCIES, OperationReport};
use crate::foreign::ForeignSample;

/// A sample: what a job and its clones did. `kinds` is the job's `rw`, where it is known.
pub(super) fn sample(place: String, clones: &[&JobReport], kinds: Option<&str>) -> ForeignSample {
    let mut sample = ForeignSample::at(place);
    if let Some(job) = clones.iter().find(|job| job.error != 0) {
        let error = io::Error::from_raw_os_error(job.error);
        sample.failure = Some(format!("fio: job `{}` ended with: {error}", job.jobname));
        return sample;
    }
    let happened: Vec<&str> = DIRECTIONS
        .into_iter()
        .filter(|direction| clones.iter().any(|job| job.operation(direction).has_operations()))
        .collect();
    let is_mixed = kinds.is_some_and(|kinds| kinds.contains("rw") || kinds.contains("readwrite"));
    let several = happened.len() > 1 || is_mixed || kinds == Some("trimwrite");
    let of = |direction: &str| clones.iter().map(move |job| job.operation(direction)).collect::<Vec<_>>();
    let all: Vec<&OperationReport> = happened.iter().flat_map(|direction| of(direction)).collect();
    let (iops, bandwidth) = throughput(&all);
    sample.push_reading(Metric::throughput("iops", "ops/s").primary(), Some(iops.unwrap_or(0.0)));
    sample.push_reading(Metric::throughput("bandwidth", "B/s"), bandwidth);
    for direction in happened {
        let prefix = if several { format!("{direction}-") } else { String::new() };
        let clones = of(direction);
        if several {
            let (iops, bandwidth) = throughput(&clones);
            sample.push_reading(Metric::throughput(&format!("{prefix}iops"), "ops/s"), iops);
            sample.push_reading(Metric::throughput(&format!("{prefix}bandwidth"), "B/s"), bandwidth);
        }
        LATENCIES.iter().for_each(|name| push_latency(&mut sample, &prefix, name, &clones));
    }
    let sum = |of: fn(&JobReport) -> Option<f64>| sum(clones.iter().map(|job| of(job)));
    sample.push_reading(Metric::resource("cpu-user", "%"), sum(|job| job.usr_cpu.0));
    sample.push_reading(Metric::resource("cpu-system", "%"), sum(|job| job.sys_cpu.0));
    let longest = all.iter().filter_map(|direction| direction.runtime.0).reduce(f64::max);
    sample.seconds = longest.map(|milliseconds| milliseconds / 1000.0);
    sample
}

/// Operations and bytes per second, added up.
fn throughput(all: &[&OperationReport]) -> (Option<f64>, Option<f64>) {
    (sum(all.iter().map(|direction| direction.iops.0)), sum(all.iter().map(|direction| direction.bandwidth())))
}

/// The sum of what is known; none where nothing is.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, value| sum + value)
}

fn clone_latency<'a>(direction: &'a OperationReport, name: &str) -> Option<CloneLatency<'a>> {
    let (latency, unit) = direction.latency(name)?;
    Some(CloneLatency { latency, unit, operations: direction.total_ios.0? })
}

fn push_latency(sample: &mut ForeignSample, prefix: &str, name: &str, clones: &[&OperationReport]) {
    let happened = clones.iter().filter(|direction| direction.has_operations());
    let parts: Vec<CloneLatency<'_>> = happened.filter_map(|direction| clone_latency(direction, name)).collect();
    if parts.is_empty() {
        return;
    }
    let together = merge_clones(&parts);
    let metric = |what: &str| Metric::latency(&format!("{prefix}{name}-{what}"), "ns");
    // A latency that is not counted is a mean of zero over no operation, or over as many as there were.
    sample.push_reading(metric("mean"), together.mean.filter(|mean| *mean > 0.0));
    match together.percentiles {
        Some(percentiles) => {
            percentiles.iter().for_each(|(which, value)| sample.push_reading(metric(which), Some(*value)))
        }
        None => sample.findings.push(format!(
            "percentiles of {name} are left out: those of {} clones can be put together with json+ alone",
            parts.len()
        )),
    }
}
