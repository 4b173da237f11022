//! Figures that several benches take from reports.

use crate::answer::{IoLatencies, IoRates};
use crate::distribution::Distribution;
use crate::latency_table::LatencyTable;
use crate::report::{IoStats, PerSecondReport, Reports};
use crate::{IocostQos, PERCENTILES};

/// Reports of several periods as one.
pub(super) fn joined(parts: Vec<Reports>) -> Reports {
    let mut all = Reports::default();
    for part in parts {
        all.seconds.extend(part.seconds);
        all.damaged.extend(part.damaged);
        all.missing += part.missing;
    }
    all
}

/// The latencies of I/O.
pub(super) fn latencies(reports: &Reports) -> IoLatencies {
    let table = |direction: fn(&PerSecondReport) -> &IoStats| {
        LatencyTable::of(reports.seconds.iter().map(|report| direction(report).latencies.as_slice()))
    };
    let uncounted = reports.seconds.iter().map(|report| report.uncounted).sum();
    let both = reports.seconds.iter().flat_map(|report| report.read.latencies.iter().chain(&report.write.latencies));
    let counted = both.map(|(_, requests)| requests).sum();
    IoLatencies { read: table(|report| &report.read), write: table(|report| &report.write), uncounted, counted }
}

/// The mean rates of I/O.
pub(super) fn io_rates(reports: &Reports) -> IoRates {
    let mean = |direction: fn(&PerSecondReport) -> u64| {
        let sum: u64 = reports.seconds.iter().map(direction).sum();
        sum as f64 / reports.seconds.len().max(1) as f64
    };
    IoRates { read: mean(|report| report.read.bytes), write: mean(|report| report.write.bytes) }
}

/// The distribution of the vrate; `None` without io.cost.
pub(super) fn vrate(reports: &Reports) -> Option<Distribution> {
    let vrates: Vec<f64> = reports.seconds.iter().filter_map(|report| Some(report.cost?.vrate)).collect();
    Distribution::of(&vrates, &PERCENTILES)
}

/// Deviation from a bound of the vrate that the kernel's rounding explains, in percent.
const VRATE_ROUNDING: f64 = 1.0;

/// The part of the seconds with I/O in which the vrate was outside its bounds. Without I/O, the kernel leaves it as it was.
pub(super) fn vrate_outside(reports: &Reports, qos: IocostQos) -> f64 {
    let bounds = qos.min - VRATE_ROUNDING..=qos.max + VRATE_ROUNDING;
    let is_busy = |report: &&PerSecondReport| report.read.bytes + report.write.bytes > 0;
    let vrates: Vec<f64> =
        reports.seconds.iter().filter(is_busy).filter_map(|report| Some(report.cost?.vrate)).collect();
    let outside = vrates.iter().filter(|vrate| !bounds.contains(vrate)).count();
    outside as f64 / vrates.len().max(1) as f64
}

/// The part of the reports that is missing.
pub(super) fn missing(reports: &Reports) -> f64 {
    let expected = reports.seconds.len() as u64 + reports.missing;
    reports.missing as f64 / expected.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::IocostStats;

    fn report(vrate: f64, bytes: u64) -> PerSecondReport {
        let io = IoStats { bytes, latencies: vec![(5000, 3)] };
        let cost = Some(IocostStats { vrate, usage: 0.0, unused: 0.0, lost: 0.0 });
        PerSecondReport { second: 0, hashd: None, read: io, write: IoStats::default(), cost, uncounted: 1 }
    }

    #[test]
    fn seconds_with_io_outside_the_bounds_of_the_vrate_are_counted() {
        let qos = IocostQos { rpct: 0.0, rlat: 0, wpct: 0.0, wlat: 0, min: 75.0, max: 75.0 };
        let of = |seconds: Vec<PerSecondReport>| vrate_outside(&Reports { seconds, ..Reports::default() }, qos);
        assert_eq!(of(vec![report(75.0, 1), report(75.3, 1)]), 0.0);
        assert_eq!(of(vec![report(75.0, 1), report(100.0, 1)]), 0.5);
        assert_eq!(of(vec![report(75.0, 1), report(100.0, 0)]), 0.0, "without I/O, it stays as it was");
        assert_eq!(of(Vec::new()), 0.0);
    }

    #[test]
    fn requests_of_all_tables_are_counted() {
        let reports = Reports { seconds: vec![report(75.0, 1), report(75.0, 1)], ..Reports::default() };
        let latencies = latencies(&reports);
        assert_eq!((latencies.counted, latencies.uncounted), (6, 2));
    }

    #[test]
    fn missing_reports_of_all_parts_are_counted() {
        let part = |missing| Reports { missing, ..Reports::default() };
        assert_eq!(missing(&joined(vec![part(1), part(2)])), 1.0);
        assert_eq!(missing(&Reports::default()), 0.0);
    }
}
