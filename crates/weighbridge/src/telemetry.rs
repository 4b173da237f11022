//! Converts telemetry readings to time series for the HTML page.

use wb_model::Unit;
use wb_report::page::TelemetrySeries;
use wb_sys::telemetry::{Telemetry, TelemetryReading};

/// Definition of a series: name, unit, and the value computed from two consecutive readings.
type SeriesDefinition = (&'static str, &'static str, fn(&TelemetryReading, &TelemetryReading) -> Option<f64>);

const SERIES: [SeriesDefinition; 11] = [
    ("CPU of the workload", "%", |a, b| {
        let used = b.workload?.cpu_ns.checked_sub(a.workload?.cpu_ns)?;
        cpu_percent(used, a.cpu.total(), b.cpu.total())
    }),
    ("CPU of all processes", "%", |a, b| {
        cpu_percent(b.cpu.task_time().saturating_sub(a.cpu.task_time()), a.cpu.total(), b.cpu.total())
    }),
    ("CPU stolen by the hypervisor", "%", |a, b| {
        cpu_percent(b.cpu.steal.saturating_sub(a.cpu.steal), a.cpu.total(), b.cpu.total())
    }),
    ("memory available", "B", |_, b| Some(b.memory.available as f64)),
    ("huge pages of processes", "B", |_, b| Some(b.memory.anonymous_huge_pages as f64)),
    ("page faults", "1/s", |a, b| per_second(a, b, |reading| reading.events.faults)),
    ("context switches", "1/s", |a, b| per_second(a, b, |reading| reading.context_switches)),
    ("read from disks", "B/s", |a, b| per_second(a, b, |r| r.disks.values().map(|disk| disk.read_bytes).sum())),
    ("written to disks", "B/s", |a, b| per_second(a, b, |r| r.disks.values().map(|disk| disk.written_bytes).sum())),
    ("received from the network", "B/s", |a, b| {
        per_second(a, b, |r| r.interfaces.values().map(|i| i.received_bytes).sum())
    }),
    ("frequency", "Hz", |_, b| {
        let frequencies: Vec<f64> = b.cpus.iter().filter_map(|cpu| Some(cpu.khz? as f64 * 1e3)).collect();
        (!frequencies.is_empty()).then(|| frequencies.iter().sum::<f64>() / frequencies.len() as f64)
    }),
];

pub(crate) fn series(telemetry: &Telemetry) -> Vec<TelemetrySeries> {
    let readings: Vec<&TelemetryReading> = telemetry.readings().collect();
    let start = telemetry.start.at_ns;
    let to_series = |(name, unit, value): &SeriesDefinition| {
        let point = |pair: &[&TelemetryReading]| {
            let seconds = pair[1].at_ns.saturating_sub(start) as f64 / 1e9;
            Some((seconds, value(pair[0], pair[1])?))
        };
        let points: Vec<(f64, f64)> = readings.windows(2).filter_map(point).collect();
        let has_data = points.iter().any(|(_, value)| *value != 0.0);
        has_data.then(|| TelemetrySeries { name: (*name).to_owned(), unit: Unit::new(*unit), points })
    };
    SERIES.iter().filter_map(to_series).collect()
}

/// CPU time in percent of all CPU time between two readings.
fn cpu_percent(used: u64, before: u64, after: u64) -> Option<f64> {
    let all = after.checked_sub(before).filter(|all| *all > 0)?;
    Some(used as f64 / all as f64 * 100.0)
}

fn per_second(a: &TelemetryReading, b: &TelemetryReading, counter: impl Fn(&TelemetryReading) -> u64) -> Option<f64> {
    let elapsed = b.at_ns.checked_sub(a.at_ns).filter(|elapsed| *elapsed > 0)?;
    Some(counter(b).checked_sub(counter(a))? as f64 / elapsed as f64 * 1e9)
}
