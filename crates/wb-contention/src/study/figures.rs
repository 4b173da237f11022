//! Figures that several benches take from reports.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::IocostQos;
use wb_results::contention::{Distribution, IoLatencies, IoRates, PERCENTILES, ResourceUse};

use crate::report::{IoStats, PerSecondReport, Reports};
use crate::vrate_bounds;
use crate::{distribution, latency_table};

pub(crate) fn joined(parts: Vec<Reports>) -> Reports {
    let mut all = Reports::default();
    for part in parts {
        all.seconds.extend(part.seconds);
        all.damaged.extend(part.damaged);
        all.missing += part.missing;
    }
    all
}

pub(crate) fn latencies(reports: &Reports) -> IoLatencies {
    let table = |direction: fn(&PerSecondReport) -> &IoStats| {
        latency_table::summarize_seconds(reports.seconds.iter().map(|report| direction(report).latencies.as_slice()))
    };
    let uncounted = reports.seconds.iter().map(|report| report.uncounted).sum();
    let both = reports.seconds.iter().flat_map(|report| report.read.latencies.iter().chain(&report.write.latencies));
    let counted = both.map(|(_, requests)| requests).sum();
    IoLatencies { read: table(|report| &report.read), write: table(|report| &report.write), uncounted, counted }
}

pub(crate) fn io_rates(reports: &Reports) -> IoRates {
    let mean = |direction: fn(&PerSecondReport) -> u64| {
        let sum: u64 = reports.seconds.iter().map(direction).sum();
        sum as f64 / reports.seconds.len().max(1) as f64
    };
    IoRates { read: mean(|report| report.read.bytes), write: mean(|report| report.write.bytes) }
}

/// The distribution of the vrate; `None` without io.cost.
pub(crate) fn vrate(reports: &Reports) -> Option<Distribution> {
    let vrates: Vec<f64> = reports.seconds.iter().filter_map(|report| Some(report.cost?.vrate)).collect();
    distribution::summarize_values(&vrates, &PERCENTILES)
}

/// The part of the seconds with I/O in which the vrate was outside its bounds. Without I/O, the kernel leaves it as it
/// was.
pub(crate) fn vrate_outside(reports: &Reports, qos: IocostQos) -> f64 {
    let bounds = vrate_bounds(qos);
    let is_busy = |report: &&PerSecondReport| report.read.bytes + report.write.bytes > 0;
    let vrates: Vec<f64> =
        reports.seconds.iter().filter(is_busy).filter_map(|report| Some(report.cost?.vrate)).collect();
    let outside = vrates.iter().filter(|vrate| !bounds.contains(vrate)).count();
    outside as f64 / vrates.len().max(1) as f64
}

/// What the machine used; `None` if no report has it.
pub(crate) fn resources(all: &Reports, last: &Reports) -> Option<ResourceUse> {
    let resources = ResourceUse { all: resource_distributions(all), last: resource_distributions(last) };
    (!resources.all.is_empty()).then_some(resources)
}

/// A figure that a second does not have is 0 there.
fn resource_distributions(reports: &Reports) -> BTreeMap<String, Distribution> {
    let seconds: Vec<_> =
        reports.seconds.iter().map(|report| &report.resources).filter(|one| !one.is_empty()).collect();
    let names: BTreeSet<&String> = seconds.iter().flat_map(|second| second.keys()).collect();
    let distribution = |name: &String| {
        let values: Vec<f64> = seconds.iter().map(|second| second.get(name).copied().unwrap_or_default()).collect();
        Some((name.clone(), distribution::summarize_values(&values, &PERCENTILES)?))
    };
    names.into_iter().filter_map(distribution).collect()
}

/// The part of the reports that is missing.
pub(crate) fn missing(reports: &Reports) -> f64 {
    let expected = reports.seconds.len() as u64 + reports.missing;
    reports.missing as f64 / expected.max(1) as f64
}

#[cfg(test)]
mod tests {
    use wb_results::contention::Percentile;

    use super::*;
    use crate::report::IocostStats;

    fn report(vrate: f64, bytes: u64) -> PerSecondReport {
        let io = IoStats { bytes, latencies: vec![(5000, 3)] };
        let cost = Some(IocostStats { vrate, usage: 0.0, unused: 0.0, lost: 0.0 });
        PerSecondReport {
            second: 0,
            hashd: None,
            read: io,
            write: IoStats::default(),
            cost,
            uncounted: 1,
            resources: BTreeMap::new(),
        }
    }

    #[test]
    fn a_statistic_that_a_second_does_not_have_is_zero_there() {
        let second = |resources: &[(&str, f64)]| PerSecondReport {
            resources: resources.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..report(100.0, 1)
        };
        let seconds = vec![
            second(&[("cpu", 0.5), ("vmstat/pgmajfault", 8.0)]),
            second(&[("cpu", 0.7)]),
            second(&[]),
            second(&[("cpu", 0.6), ("vmstat/pgmajfault", 4.0)]),
        ];
        let all = Reports { seconds, ..Reports::default() };
        let found = resources(&all, &Reports::default()).unwrap();
        let faults = &found.all["vmstat/pgmajfault"];
        assert_eq!(
            (faults.mean, faults.get(Percentile::MAX)),
            (4.0, Some(8.0)),
            "a second without a report does not count"
        );
        assert_eq!(found.all["cpu"].get(Percentile::MIN), Some(0.5));
        assert!(found.last.is_empty());
        assert_eq!(resources(&Reports::default(), &all), None);
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
