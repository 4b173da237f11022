//! The figures of a job, its clones put together.

use std::io;

use wb_model::Metric;

use super::latency::{Part, together};
use super::report::{DIRECTIONS, Direction, Job, LATENCIES};
use crate::foreign::ForeignSample;

/// A sample: what a job and its clones did. `kinds` is the job's `rw`, where it is known.
pub(super) fn sample(place: String, clones: &[&Job], kinds: Option<&str>) -> ForeignSample {
    let mut sample = ForeignSample::at(place);
    if let Some(job) = clones.iter().find(|job| job.error != 0) {
        let error = io::Error::from_raw_os_error(job.error);
        sample.failure = Some(format!("fio: job `{}` ended with: {error}", job.jobname));
        return sample;
    }
    let happened: Vec<&str> =
        DIRECTIONS.into_iter().filter(|direction| clones.iter().any(|job| job.of(direction).happened())).collect();
    let is_mixed = kinds.is_some_and(|kinds| kinds.contains("rw") || kinds.contains("readwrite"));
    let several = happened.len() > 1 || is_mixed || kinds == Some("trimwrite");
    let of = |direction: &str| clones.iter().map(move |job| job.of(direction)).collect::<Vec<_>>();
    let all: Vec<&Direction> = happened.iter().flat_map(|direction| of(direction)).collect();
    let (iops, bandwidth) = throughput(&all);
    sample.read(Metric::throughput("iops", "ops/s").primary(), Some(iops.unwrap_or(0.0)));
    sample.read(Metric::throughput("bandwidth", "B/s"), bandwidth);
    for direction in happened {
        let prefix = if several { format!("{direction}-") } else { String::new() };
        let clones = of(direction);
        if several {
            let (iops, bandwidth) = throughput(&clones);
            sample.read(Metric::throughput(&format!("{prefix}iops"), "ops/s"), iops);
            sample.read(Metric::throughput(&format!("{prefix}bandwidth"), "B/s"), bandwidth);
        }
        LATENCIES.iter().for_each(|name| latency(&mut sample, &prefix, name, &clones));
    }
    let sum = |of: fn(&Job) -> Option<f64>| sum(clones.iter().map(|job| of(job)));
    sample.read(Metric::resource("cpu-user", "%"), sum(|job| job.usr_cpu.0));
    sample.read(Metric::resource("cpu-system", "%"), sum(|job| job.sys_cpu.0));
    let longest = all.iter().filter_map(|direction| direction.runtime.0).reduce(f64::max);
    sample.seconds = longest.map(|milliseconds| milliseconds / 1000.0);
    sample
}

/// Operations and bytes per second, added up.
fn throughput(all: &[&Direction]) -> (Option<f64>, Option<f64>) {
    (sum(all.iter().map(|direction| direction.iops.0)), sum(all.iter().map(|direction| direction.bandwidth())))
}

/// The sum of what is known; none where nothing is.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, value| sum + value)
}

fn part<'a>(direction: &'a Direction, name: &str) -> Option<Part<'a>> {
    let (latency, unit) = direction.latency(name)?;
    Some(Part { latency, unit, operations: direction.total_ios.0? })
}

fn latency(sample: &mut ForeignSample, prefix: &str, name: &str, clones: &[&Direction]) {
    let happened = clones.iter().filter(|direction| direction.happened());
    let parts: Vec<Part<'_>> = happened.filter_map(|direction| part(direction, name)).collect();
    if parts.is_empty() {
        return;
    }
    let together = together(&parts);
    let metric = |what: &str| Metric::latency(&format!("{prefix}{name}-{what}"), "ns");
    // A latency that is not counted is a mean of zero over no operation, or over as many as there were.
    sample.read(metric("mean"), together.mean.filter(|mean| *mean > 0.0));
    match together.percentiles {
        Some(percentiles) => percentiles.iter().for_each(|(which, value)| sample.read(metric(which), Some(*value))),
        None => sample.findings.push(format!(
            "percentiles of {name} are left out: those of {} clones can be put together with json+ alone",
            parts.len()
        )),
    }
}
