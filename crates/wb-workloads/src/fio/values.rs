//! Evaluation of a sample of fio: throughput, latency and CPU time from its report, and histograms from its logs.

use wb_model::{Bytes, Class, Metric, Nanos};
use wb_test::{Artefacts, LatencySeries, Measurement, Rejection};

use super::gates;
use super::histogram::Histogram;
use super::histogram_log::{self, HistogramInterval};
use super::job::{FioJob, HISTOGRAM_LOG_PREFIX, Operation, TestType};
use super::job_template;
use super::report::{self, FioReport, JobReport, LatencyReport, OperationReport};
use super::run::{JOB_FILE, OUTPUT_NAME};

const PERCENTILES: [(&str, f64); 6] =
    [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)];

/// Mean latencies of the submission, and of submission and completion together.
const FURTHER_MEANS: [&str; 2] = ["slat-mean", "lat-mean"];

const SYNC_PREFIX: &str = "sync-";

/// Metrics of an access pattern, or of all patterns without one; for mixed reads and writes, those of each kind and of
/// both together. With a limited rate the mean latencies are primary, too: the rate equals the limit, and only the
/// latencies show a slower device. Latencies are completion latencies; [`FURTHER_MEANS`] include the submission before
/// it. Latencies of syncs are metrics if the pattern writes.
pub fn metrics(test_type: Option<TestType>, has_rate_limit: bool, has_syncs: bool) -> Vec<Metric> {
    let Some(test_type) = test_type else {
        let [mut all, mixed] =
            [TestType::Read, TestType::Rw].map(|test_type| metrics(Some(test_type), has_rate_limit, has_syncs));
        let added: Vec<Metric> = mixed.into_iter().filter(|metric| !all.contains(metric)).collect();
        all.extend(added);
        return all;
    };
    let operations = test_type.operations();
    let mut metrics = vec![Metric::throughput("iops", "ops/s").primary(), Metric::throughput("bandwidth", "B/s")];
    for operation in operations {
        let prefix = metric_prefix(*operation, operations);
        if !prefix.is_empty() {
            metrics.push(Metric::throughput(&format!("{prefix}iops"), "ops/s"));
            metrics.push(Metric::throughput(&format!("{prefix}bandwidth"), "B/s"));
        }
        let (mean, percentiles) = latency_metrics(&prefix);
        // A second primary metric only where it shows what the first does not: at a limited rate that is the latency.
        metrics.push(if has_rate_limit { mean.primary() } else { mean });
        metrics.extend(percentiles);
        metrics.extend(FURTHER_MEANS.map(|name| Metric::latency(&format!("{prefix}{name}"), "ns")));
    }
    if has_syncs && test_type.writes() {
        let (mean, percentiles) = latency_metrics(SYNC_PREFIX);
        metrics.push(mean);
        metrics.extend(percentiles);
    }
    metrics.extend([Metric::resource("cpu-user", "%"), Metric::resource("cpu-system", "%")]);
    metrics
}

fn latency_metrics(prefix: &str) -> (Metric, impl Iterator<Item = Metric>) {
    let metric = move |name: &str| Metric::latency(&format!("{prefix}{name}"), "ns");
    (metric("mean"), PERCENTILES.iter().map(move |(name, _)| metric(name)))
}

/// Prefix of an operation's metrics; empty if it is the only operation.
fn metric_prefix(operation: Operation, all: &[Operation]) -> String {
    if all.len() > 1 { format!("{}-", operation.name()) } else { String::new() }
}

/// Origin of the job file, which determines whether its content is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobFileOrigin {
    Generated,
    User {
        /// Block size that the cell is labelled with; `None` if the file has no single one.
        block_size: Option<Bytes>,
    },
}

pub fn study(job: &FioJob, origin: JobFileOrigin, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let report = report::parse(&artefacts.text(&format!("{OUTPUT_NAME}.stdout"))?).map_err(Rejection::output)?;
    let phases = phases(&report, artefacts.text(JOB_FILE).ok().as_deref());
    let mut measurement = Measurement::default().with_duration(seconds(&phases, operations_runtime));
    set_throughput(&mut measurement, job, &phases);
    set_latency(&mut measurement, job, &report);
    set_cpu(&mut measurement, &phases);
    set_histograms(&mut measurement, job, &report, artefacts)?;
    gates::check_work(&mut measurement, job, &report);
    match origin {
        JobFileOrigin::Generated => gates::check_request(&mut measurement, job, &report),
        JobFileOrigin::User { block_size } => gates::check_label(&mut measurement, job, block_size, &report),
    }
    gates::check_possible(&mut measurement, job, &report);
    if origin == JobFileOrigin::Generated {
        gates::note_missing_storage_io(&mut measurement, job, &report, artefacts);
        gates::note_cached_reads(&mut measurement, job, &report, artefacts);
    }
    measurement.add_provenance("fio", &report.version);
    measurement.add_provenance("ioengine", &job.ioengine);
    Ok(measurement)
}

/// Jobs that ran at the same time, for each such phase in order. Without the job file, as in older samples, each group
/// is a phase.
fn phases<'a>(report: &'a FioReport, job_file: Option<&str>) -> Vec<Vec<&'a JobReport>> {
    let consecutive = job_file.map(job_template::consecutive_groups);
    let mut phases: Vec<Vec<&JobReport>> = Vec::new();
    let mut last_group = None;
    for job in &report.jobs {
        let is_new = last_group != Some(job.groupid);
        let begins = is_new && consecutive.as_ref().is_none_or(|groups| groups.contains(&job.groupid));
        last_group = Some(job.groupid);
        match phases.last_mut().filter(|_| !begins) {
            Some(phase) => phase.push(job),
            None => phases.push(vec![job]),
        }
    }
    phases
}

/// Measured time in seconds: the sum over phases of the time from the first begin of a job to the last end of one.
fn seconds(phases: &[Vec<&JobReport>], runtime_ms: impl Fn(&JobReport) -> u64) -> f64 {
    let length = |phase: &Vec<&JobReport>| {
        let begin = phase.iter().map(|job| job.start_delay).min().unwrap_or_default();
        let end = phase.iter().map(|job| job.start_delay.saturating_add(runtime_ms(job))).max().unwrap_or_default();
        end.saturating_sub(begin)
    };
    phases.iter().map(length).fold(0, u64::saturating_add) as f64 / 1000.0
}

fn operations_runtime(job: &JobReport) -> u64 {
    job.read.runtime.max(job.write.runtime)
}

/// Sets what all jobs did per second, as fio does for a group: by the longest of them.
fn set_throughput(measurement: &mut Measurement, job: &FioJob, phases: &[Vec<&JobReport>]) {
    let operations = job.test_type.operations();
    let (mut iops, mut bandwidth) = (0.0, 0.0);
    for operation in operations {
        let prefix = metric_prefix(*operation, operations);
        let seconds = seconds(phases, |job| job.operation(*operation).runtime);
        let per_second = |of: fn(&OperationReport) -> u64| {
            let amount: u64 = phases.iter().flatten().map(|job| of(job.operation(*operation))).sum();
            if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
        };
        let (ios, bytes) = (per_second(|counts| counts.total_ios), per_second(|counts| counts.io_bytes));
        measurement.set(Class::Throughput, &format!("{prefix}iops"), ios);
        measurement.set(Class::Throughput, &format!("{prefix}bandwidth"), bytes);
        (iops, bandwidth) = (iops + ios, bandwidth + bytes);
    }
    measurement.set(Class::Throughput, "iops", iops);
    measurement.set(Class::Throughput, "bandwidth", bandwidth);
}

fn set_latency(measurement: &mut Measurement, job: &FioJob, report: &FioReport) {
    let operations = job.test_type.operations();
    for operation in operations {
        let prefix = metric_prefix(*operation, operations);
        let all = || report.jobs.iter().map(|job| job.operation(*operation));
        set_latency_of_all(measurement, &prefix, all().map(|counts| &counts.clat_ns));
        let means = [mean(all().map(|counts| &counts.slat_ns)), mean(all().map(|counts| &counts.lat_ns))];
        for (name, mean) in FURTHER_MEANS.into_iter().zip(means) {
            if let Some(mean) = mean {
                measurement.set(Class::Latency, &format!("{prefix}{name}"), mean);
            }
        }
    }
    if job.has_syncs() {
        let syncs = report.jobs.iter().filter_map(|job| job.sync.as_ref());
        set_latency_of_all(measurement, SYNC_PREFIX, syncs.map(|sync| &sync.lat_ns));
    }
}

fn set_latency_of_all<'a>(
    measurement: &mut Measurement,
    prefix: &str,
    all: impl Iterator<Item = &'a LatencyReport> + Clone,
) {
    let mut histogram = Histogram::default();
    for latency in all.clone() {
        histogram.merge(latency.bins.iter().map(|(position, count)| (*position, *count)));
    }
    if let Some(mean) = mean(all) {
        measurement.set(Class::Latency, &format!("{prefix}mean"), mean);
    }
    for (name, percent) in PERCENTILES {
        if let Some(value) = histogram.percentile(percent) {
            measurement.set(Class::Latency, &format!("{prefix}{name}"), value as f64);
        }
    }
}

/// Over the operations of all jobs; `None` if there were none.
fn mean<'a>(all: impl Iterator<Item = &'a LatencyReport>) -> Option<f64> {
    let (count, sum) = all.fold((0.0, 0.0), |(count, sum), latency| {
        (count + latency.count as f64, sum + latency.mean * latency.count as f64)
    });
    (count > 0.0).then(|| sum / count)
}

/// Sets CPU time of all jobs in percent of one CPU. fio reports each as a percentage of the job's own time.
fn set_cpu(measurement: &mut Measurement, phases: &[Vec<&JobReport>]) {
    let milliseconds = seconds(phases, JobReport::longest_runtime) * 1000.0;
    let percent = |of: fn(&JobReport) -> f64| {
        let used: f64 = phases.iter().flatten().map(|job| of(job) * job.longest_runtime() as f64).sum();
        if milliseconds > 0.0 { used / milliseconds } else { 0.0 }
    };
    measurement.set(Class::Resource, "cpu-user", percent(|job| job.usr_cpu));
    measurement.set(Class::Resource, "cpu-system", percent(|job| job.sys_cpu));
}

fn set_histograms(
    measurement: &mut Measurement,
    job: &FioJob,
    report: &FioReport,
    artefacts: &Artefacts,
) -> Result<(), Rejection> {
    let mut logs = Vec::new();
    for name in artefacts.names_with_prefix(&format!("{HISTOGRAM_LOG_PREFIX}_clat_hist.")) {
        let text = artefacts.text(&name)?;
        let mut log = histogram_log::parse(&text).map_err(|error| Rejection::output(format!("{name}: {error}")))?;
        // hist_clat_hist.3.log belongs to the third job.
        let number = name.split('.').nth(1).and_then(|number| number.parse::<usize>().ok());
        let job = number.and_then(|number| report.jobs.get(number.checked_sub(1)?));
        if let Some(job) = job {
            log.extend(unlogged(&log, job));
        }
        logs.push((job.map_or(0, |job| job.groupid), log));
    }
    let interval_ms = job.histogram_interval_ms();
    for (operation, seconds) in histogram_log::merge_by_interval(&logs, interval_ms) {
        let interval = Nanos(interval_ms * 1_000_000);
        let title = format!("{}, per {interval}", operation.name());
        measurement.latencies.push(LatencySeries { title, interval, seconds });
    }
    Ok(())
}

/// The operations of a job that its log lacks: fio writes no row for the time after the last full interval.
fn unlogged(log: &[HistogramInterval], job: &JobReport) -> Vec<HistogramInterval> {
    let rest = |operation: Operation| {
        let counts = job.operation(operation);
        let mut rest = counts.clat_ns.bins.clone();
        for (latency, count) in log.iter().filter(|row| row.operation == operation).flat_map(|row| &row.counts) {
            // A log with other bins than the report cannot be compared with it.
            let left = rest.get_mut(latency).filter(|left| **left >= *count)?;
            *left -= count;
        }
        rest.retain(|_, count| *count > 0);
        let is_logged = rest.is_empty() || !log.iter().any(|row| row.operation == operation);
        let counts = (!is_logged).then(|| rest.into_iter().collect())?;
        Some(HistogramInterval { at_ms: job.operation(operation).runtime, operation, counts })
    };
    [Operation::Read, Operation::Write].into_iter().filter_map(rest).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wb_model::Validity;
    use wb_model::outcome::Gate;

    use super::super::histogram::BINS;
    use super::super::testing::{job, output, rejection_of, study_files, study_output};
    use super::*;
    use wb_test_artefacts::value;

    #[test]
    fn a_sample_has_all_declared_values() {
        for test_type in [TestType::Read, TestType::RandWrite, TestType::RandRw] {
            let ios = |operation| if test_type.operations().contains(&operation) { 1000 } else { 0 };
            let stdout = output(&[(0, ios(Operation::Read), ios(Operation::Write))]);
            let measurement = study_output(&job(test_type), &stdout);
            assert_eq!(measurement.validity, Validity::Valid, "{test_type:?}");
            for metric in metrics(Some(test_type), false, false) {
                assert!(measurement.get(&metric).is_some(), "{test_type:?}: {}", metric.name);
            }
            assert_eq!(measurement.values.len(), metrics(Some(test_type), false, false).len());
        }
    }

    #[test]
    fn syncs_of_all_jobs_have_latencies_of_their_own() {
        let latency = |count: u64, ns: u64| json!({ "lat_ns": { "mean": ns, "max": ns, "N": count, "bins": { ns.to_string(): count } } });
        let mut report: Value = serde_json::from_str(&output(&[(0, 0, 1000), (0, 0, 1000)])).unwrap();
        for (index, sync) in [latency(30, 2000), latency(10, 4000)].into_iter().enumerate() {
            report["jobs"][index]["sync"] = sync;
        }
        let of = |job: &FioJob| study_output(job, &report.to_string());
        let syncing = FioJob { fdatasync: 1, ..job(TestType::Write) };
        let measurement = of(&syncing);
        for metric in metrics(Some(TestType::Write), false, true) {
            assert!(measurement.get(&metric).is_some(), "{}", metric.name);
        }
        assert_eq!(
            ["mean", "p50", "p99"].map(|name| value(&measurement, &format!("latency/sync-{name}"))),
            [2500.0, 2000.0, 4000.0]
        );
        assert_eq!(value(&measurement, "latency/mean"), 1e6);
        for other in [job(TestType::Write), FioJob { fsync: 1, ..job(TestType::Read) }] {
            let names = |metrics: Vec<Metric>| metrics.iter().filter(|metric| metric.name.starts_with("sync")).count();
            assert_eq!(names(metrics(Some(other.test_type), false, other.has_syncs())), 0);
        }
    }

    #[test]
    fn metrics_without_a_pattern_include_those_of_mixed_operations() {
        let all = metrics(None, false, false);
        let has = |name: &str| all.iter().filter(|metric| metric.name == name).count() == 1;
        assert!(has("iops") && has("p99") && has("read-p99") && has("write-bandwidth") && has("cpu-user"));
        assert_eq!(all.iter().filter(|metric| metric.primary).count(), 1);
    }

    #[test]
    fn latencies_decide_too_where_the_rate_is_limited() {
        let primary = |test_type, has_rate_limit| -> Vec<String> {
            let metrics = metrics(Some(test_type), has_rate_limit, false);
            metrics.iter().filter(|metric| metric.primary).map(|metric| metric.key().to_string()).collect()
        };
        assert_eq!(primary(TestType::Rw, false), ["throughput/iops"]);
        assert_eq!(primary(TestType::Read, true), ["throughput/iops", "latency/mean"]);
        assert_eq!(primary(TestType::Rw, true), ["throughput/iops", "latency/read-mean", "latency/write-mean"]);
    }

    #[test]
    fn mixed_operations_are_reported_separately_and_in_total() {
        let stdout = output(&[(0, 1000, 500)]);
        let measurement = study_output(&job(TestType::Rw), &stdout);
        let value = |name: &str| value(&measurement, name);
        assert_eq!(value("throughput/iops"), 1500.0);
        assert_eq!(value("throughput/read-iops"), 1000.0);
        assert_eq!(value("throughput/write-bandwidth"), 500.0 * 4096.0);
        assert_eq!([value("latency/read-p50"), value("latency/read-p99")], [995_328.0, 1_003_520.0]);
        assert_eq!(value("latency/write-mean"), 1e6);
        assert_eq!(value("resource/cpu-system"), 2.5);
    }

    #[test]
    fn concurrent_jobs_are_summed_and_consecutive_groups_averaged() {
        let mut job = job(TestType::Read);
        job.targets.push("/y".to_owned());
        let iops = |jobs: &[(u32, u64, u64)]| {
            let measurement = study_output(&job, &output(jobs));
            value(&measurement, "throughput/iops")
        };
        assert_eq!(iops(&[(0, 1000, 0), (0, 500, 0)]), 1500.0);
        assert_eq!(iops(&[(0, 1000, 0), (1, 500, 0)]), 750.0);
        let seconds = |jobs: &[(u32, u64, u64)]| study_output(&job, &output(jobs)).intervals;
        assert_eq!(seconds(&[(0, 1000, 0), (0, 500, 0)]), Some(1.0));
        assert_eq!(seconds(&[(0, 1000, 0), (1, 500, 0)]), Some(2.0));
    }

    #[test]
    fn logs_become_latencies_over_time() {
        let row = |index: u64, bin: usize| {
            let row: Vec<&str> = (0..BINS).map(|index| if index == bin { "5" } else { "0" }).collect();
            format!("{index}, 0, 4096, {}\n", row.join(", "))
        };
        let stdout = output(&[(0, 1000, 0)]);
        let (one, two) = (row(101, 10) + &row(202, 20), row(100, 30));
        let files = [("fio.stdout", stdout.as_str()), ("hist_clat_hist.1.log", &one), ("hist_clat_hist.2.log", &two)];
        let measurement = study_files(&job(TestType::Read), JobFileOrigin::Generated, &files).unwrap();
        assert_eq!(measurement.latencies[0].title, "read, per 100ms");
        assert_eq!(measurement.latencies[0].seconds, [vec![(10, 5), (30, 5)], vec![(20, 5)]]);
        let truncated = [("fio.stdout", stdout.as_str()), ("hist_clat_hist.1.log", &one[..one.len() - 40])];
        assert!(
            study_files(&job(TestType::Read), JobFileOrigin::Generated, &truncated)
                .unwrap_err()
                .figures
                .starts_with("hist_clat_hist.1.log: line 2")
        );
    }

    #[test]
    fn missing_output_is_rejected() {
        assert_eq!(study_files(&job(TestType::Read), JobFileOrigin::Generated, &[]).unwrap_err().gate, Gate::Output);
        let garbage =
            study_files(&job(TestType::Read), JobFileOrigin::Generated, &[("fio.stdout", "Segmentation fault\n")])
                .unwrap_err();
        assert_eq!(garbage.figures, "no report in fio's output: Segmentation fault");
        let (gate, figures) = rejection_of(&job(TestType::Read), &output(&[]));
        assert_eq!((gate, figures.as_str()), (Gate::Work, "fio ran no job"));
        assert_eq!(rejection_of(&job(TestType::Read), &output(&[(0, 0, 0)])).1, "job-0 completed no read");
    }
}
