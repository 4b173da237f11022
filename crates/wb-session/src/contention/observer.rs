//! Reports of seconds: what the device did, as it happens, and what hashd did, once it is recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;
use wb_contention::measurement::Period;
use wb_contention::report::{HashdStats, IoStats, IocostStats, PerSecondReport, ReportFolder};
use wb_contention::runner::StageError;
use wb_contention_worker::PreparedWorker;
use wb_contention_worker::io_latency::{CostReport, LatencyHistogram, LatencyReport, LatencyWatch};
use wb_hashd::HashdReport;
use wb_model::Bytes;

use super::failure::failure;

/// How often new seconds are written.
const POLL: Duration = Duration::from_secs(1);

/// Writes what the device does in each second, while something is measured.
pub(super) struct DeviceObserver {
    watch: LatencyWatch,
    device: String,
    folder: ReportFolder,
    written: usize,
}

impl DeviceObserver {
    /// Starts to observe the device of a worker. Fails if the kernel has no histogram triggers.
    pub(super) async fn start(prepared: &PreparedWorker, folder: &ReportFolder) -> Result<Self, StageError> {
        let device = prepared.device().name.clone();
        let watch = LatencyWatch::start(prepared).await.map_err(|error| failure(error, &device))?;
        Ok(Self { watch, device, folder: folder.clone(), written: 0 })
    }

    /// Observes until the work is done. A report that cannot be read or written ends the work.
    pub(super) async fn observe<T>(&mut self, work: impl Future<Output = T>) -> Result<T, StageError> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return Ok(result),
                () = sleep(POLL) => {
                    let reports = self.watch.new_reports().await.map_err(|error| failure(error, &self.device))?;
                    write(&self.folder, &reports)?;
                    self.written += reports.len();
                }
            }
        }
    }

    /// Ends, and writes the last seconds.
    pub(super) async fn finish(self) -> Result<(), StageError> {
        // All of them, in the same order.
        let reports = self.watch.finish().await.map_err(|error| failure(error, &self.device))?;
        write(&self.folder, &reports[self.written.min(reports.len())..])
    }
}

fn write(folder: &ReportFolder, reports: &[LatencyReport]) -> Result<(), StageError> {
    Ok(reports.iter().try_for_each(|report| folder.write(&device_second(report)))?)
}

fn device_second(report: &LatencyReport) -> PerSecondReport {
    PerSecondReport {
        second: report.second(),
        hashd: None,
        read: io_second(report.read_bytes, &report.reads),
        write: io_second(report.written_bytes, &report.writes),
        cost: report.cost.map(|cost| cost_second(cost, report.period)),
        uncounted: report.uncounted,
        resources: report.resources.clone(),
    }
}

fn io_second(bytes: u64, latencies: &LatencyHistogram) -> IoStats {
    // From microseconds.
    IoStats { bytes, latencies: latencies.counts().map(|(latency, count)| (latency * 1000, count)).collect() }
}

/// Usage is in time of the device at the present rate of the model.
fn cost_second(cost: CostReport, period: f64) -> IocostStats {
    let rate = cost.vrate / 100.0;
    IocostStats {
        vrate: cost.vrate,
        usage: cost.usage * rate,
        unused: (period - cost.usage).max(0.0) * rate,
        lost: 0.0,
    }
}

/// hashd in each second that ends between the first and the last report.
///
/// Completed requests at its end are interpolated. Where none was completed, the latency is at least the time since the
/// last one.
pub(super) fn hashd_seconds(reports: &[HashdReport]) -> BTreeMap<u64, HashdStats> {
    let mut seconds = BTreeMap::new();
    let mut latency = reports.first().and_then(|report| report.latency).map_or(0.0, |latency| latency.control);
    let mut last_completion = reports.first().map_or(0.0, |report| report.unix_time);
    for pair in reports.windows(2) {
        let [before, after] = pair else { continue };
        latency = match after.latency {
            Some(latency) => {
                last_completion = after.unix_time;
                latency.control
            }
            None => latency.max(after.unix_time - last_completion),
        };
        let duration = after.unix_time - before.unix_time;
        let grown = after.done.saturating_sub(before.done) as f64;
        for end in before.unix_time.floor() as u64 + 1..=after.unix_time.floor() as u64 {
            let done = before.done as f64 + grown * (end as f64 - before.unix_time) / duration;
            let second = HashdStats { done: done.round() as u64, latency, memory: Bytes(after.resident_bytes) };
            seconds.insert(end - 1, second);
        }
    }
    seconds
}

/// Adds hashd, and what a hog lost, to the reports of a period that are there.
pub(super) fn add_hashd(
    folder: &ReportFolder,
    period: Period,
    hashd: &BTreeMap<u64, HashdStats>,
    lost: &BTreeMap<u64, f64>,
) -> Result<(), StageError> {
    for report in folder.read(period)?.seconds {
        let cost =
            report.cost.map(|cost| IocostStats { lost: lost.get(&report.second).copied().unwrap_or(0.0), ..cost });
        folder.write(&PerSecondReport { hashd: hashd.get(&report.second).copied(), cost, ..report })?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use wb_hashd::LatencyQuantiles;

    use super::*;

    fn hashd(unix_time: f64, done: u64, control: Option<f64>) -> HashdReport {
        let quantiles = |control| LatencyQuantiles {
            min: 0.0,
            p50: 0.0,
            p90: 0.0,
            p95: 0.0,
            p99: 0.0,
            p999: 0.0,
            max: 0.0,
            control,
        };
        HashdReport { unix_time, done, latency: control.map(quantiles), resident_bytes: 7, ..HashdReport::default() }
    }

    #[test]
    fn requests_of_whole_seconds_are_interpolated() {
        let reports = [hashd(10.5, 100, Some(0.01)), hashd(11.5, 200, Some(0.02)), hashd(12.75, 325, Some(0.03))];
        let seconds = hashd_seconds(&reports);
        let done: Vec<(u64, u64, f64)> =
            seconds.iter().map(|(second, hashd)| (*second, hashd.done, hashd.latency)).collect();
        assert_eq!(done, [(10, 150, 0.02), (11, 250, 0.03)]);
        assert!(hashd_seconds(&reports[..1]).is_empty());
    }

    #[test]
    fn without_a_completed_request_the_latency_is_the_time_that_has_passed() {
        let reports = [hashd(10.0, 100, Some(0.01)), hashd(13.0, 100, None), hashd(14.0, 130, Some(0.5))];
        let latencies: Vec<f64> = hashd_seconds(&reports).values().map(|second| second.latency).collect();
        assert_eq!(latencies, [3.0, 3.0, 3.0, 0.5]);
    }

    #[test]
    fn reports_of_the_device_and_of_hashd_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let folder = ReportFolder::at(folder.path());
        let reads = LatencyHistogram::from_iter([(5, 3)]);
        let cost = Some(CostReport { vrate: 50.0, usage: 0.25 });
        let device = |unix_time| LatencyReport {
            unix_time,
            period: 1.0,
            reads: reads.clone(),
            read_bytes: 12288,
            cost,
            ..LatencyReport::default()
        };
        // The first one covers second 10, the second one 11.
        write(&folder, &[device(11.02), device(12.01)]).unwrap();
        let seconds = hashd_seconds(&[hashd(10.0, 0, Some(0.01)), hashd(12.0, 20, Some(0.02))]);
        let period = Period { first: 10, last: 11 };
        add_hashd(&folder, period, &seconds, &[(11, 0.125)].into()).unwrap();
        let reports = folder.read(period).unwrap();
        assert_eq!(reports.missing, 0);
        let second = &reports.seconds[1];
        assert_eq!((second.read.bytes, second.read.latencies.as_slice()), (12288, &[(5000, 3)][..]));
        assert_eq!(second.hashd, Some(HashdStats { done: 20, latency: 0.02, memory: Bytes(7) }));
        assert_eq!(second.cost, Some(IocostStats { vrate: 50.0, usage: 0.125, unused: 0.375, lost: 0.125 }));
    }
}
