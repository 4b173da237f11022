//! Figures that several benches take from reports.

use crate::PERCENTILES;
use crate::answer::{IoLatencies, IoRates};
use crate::distribution::Distribution;
use crate::latency_table::LatencyTable;
use crate::report::{IoStats, PerSecondReport, Reports};

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
    IoLatencies { read: table(|report| &report.read), write: table(|report| &report.write), uncounted }
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

/// The part of the reports that is missing.
pub(super) fn missing(reports: &Reports) -> f64 {
    let expected = reports.seconds.len() as u64 + reports.missing;
    reports.missing as f64 / expected.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_reports_of_all_parts_are_counted() {
        let part = |missing| Reports { missing, ..Reports::default() };
        assert_eq!(missing(&joined(vec![part(1), part(2)])), 1.0);
        assert_eq!(missing(&Reports::default()), 0.0);
    }
}
