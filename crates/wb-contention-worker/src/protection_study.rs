//! What follows from the records of `protection`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::Samples;

use super::protection::{HogRun, ProtectionRecord};

/// How well hashd was protected
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ProtectionResult {
    /// Rate that hashd had to keep
    pub target: f64,
    /// Mean of the controlled latency before the hogs, in seconds
    pub base_latency: f64,
    /// Isolation of each second: the part of the target that was reached, at most 1
    pub isolation: Vec<f64>,
    /// Latency impact of each second: the controlled latency relative to the one before, less 1, at least 0. Without a
    /// completed request, the latency is at least the time since the last one
    pub latency_impact: Vec<f64>,
    /// Work conservation: the use of the device, relative to what was possible; 1 if no I/O was controlled
    pub work_conservation: f64,
    /// Use of the device: see the record
    pub io: IoBalance,
    /// Reasons why hogs ended early
    pub failures: Vec<String>,
}

/// Time of the device, in seconds at the rate of its model
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct IoBalance {
    /// Used by everything
    pub used: f64,
    /// Not used
    pub unused: f64,
    /// Used by the hogs
    pub hog: f64,
    /// What the hogs would have used in addition, had they not been slowed down
    pub lost: f64,
}

impl IoBalance {
    /// used / (used + min(unused, lost)); 1 without use.
    fn work_conservation(&self) -> f64 {
        if self.used > 0.0 { self.used / (self.used + self.unused.min(self.lost)) } else { 1.0 }
    }
}

/// Studies a record; `None` without a completed request before the hogs.
pub fn study(record: &ProtectionRecord) -> Option<ProtectionResult> {
    let latencies: Vec<f64> = record.baseline.iter().filter_map(|report| Some(report.latency?.control)).collect();
    let base_latency = Samples::new(&latencies).ok()?.mean();
    let mut isolation = Vec::new();
    let mut latency_impact = Vec::new();
    let mut failures = Vec::new();
    let mut io = IoBalance::default();
    for run in &record.runs {
        // Without contention, no second counts.
        let contended = run.start + contended_from(run).unwrap_or(f64::INFINITY);
        let (mut latency, mut last_completion) = (base_latency, run.start);
        for pair in run.hashd.windows(2) {
            let [last, report] = pair else { continue };
            latency = match report.latency {
                Some(found) => {
                    last_completion = report.time;
                    found.control
                }
                None => latency.max(report.time - last_completion),
            };
            if report.time <= contended {
                continue;
            }
            let seconds = seconds(report.time - last.time);
            let completed = report.done.saturating_sub(last.done) as f64 / (report.time - last.time);
            isolation.extend(std::iter::repeat_n((completed / record.target).min(1.0), seconds));
            latency_impact.extend(std::iter::repeat_n((latency / base_latency - 1.0).max(0.0), seconds));
        }
        if let Some((after, reason)) = &run.failure {
            // Nothing was protected from then on.
            let rest = (run.duration - after).max(0.0).ceil() as usize;
            isolation.extend(std::iter::repeat_n(0.0, rest));
            latency_impact.extend(std::iter::repeat_n(1.0, rest));
            failures.push(reason.clone());
        }
        let balance = balance(run);
        io.used += balance.used;
        io.unused += balance.unused;
        io.hog += balance.hog;
        io.lost += balance.lost;
    }
    Some(ProtectionResult {
        target: record.target,
        base_latency,
        isolation,
        latency_impact,
        work_conservation: io.work_conservation(),
        io,
        failures,
    })
}

/// Growth of used swap from which memory is contended, in bytes.
const CONTENDED: u64 = 1 << 20;

/// Seconds from the start of the hog until swap grew. Before, memory is not scarce, and the hog takes nothing from
/// anybody. `None` if that never happened.
pub fn contended_from(run: &HogRun) -> Option<f64> {
    let initial = run.io.first().map_or(0, |usage| usage.swap);
    run.io.iter().find(|usage| usage.swap > initial + CONTENDED).map(|usage| usage.time)
}

/// Number of seconds that a report stands for: hashd reports late if it could not run.
fn seconds(period: f64) -> usize {
    (period.round() as usize).max(1)
}

/// The use of the device while a hog ran. What the hog could not write in time would have cost as much per byte as what
/// it wrote beyond its memory.
fn balance(run: &HogRun) -> IoBalance {
    let mut balance = IoBalance::default();
    for pair in run.io.windows(2) {
        let [last, now] = pair else { continue };
        // Usage is in time of the device at the present rate of the model.
        balance.used += (now.total - last.total).max(0.0) * now.vrate;
        balance.unused += (now.time - last.time - (now.total - last.total)).max(0.0) * now.vrate;
        balance.hog += (now.hog - last.hog).max(0.0) * now.vrate;
    }
    if let (Some(hog), Some(io)) = (run.hog.last(), run.io.last()) {
        let swapped = hog.bytes.saturating_sub(io.hog_memory);
        if swapped > 0 {
            balance.lost = hog.lost as f64 * balance.hog / swapped as f64;
        }
    }
    balance
}

/// Time of the device that a hog lost ([`IoBalance::lost`]) in each second since the epoch, distributed as its losses
/// are.
pub fn lost_by_second(run: &HogRun) -> BTreeMap<u64, f64> {
    let total = run.hog.last().map_or(0, |hog| hog.lost).max(1) as f64;
    let per_byte = balance(run).lost / total;
    let mut seconds = BTreeMap::new();
    let mut last = 0;
    for report in &run.hog {
        // A report is printed after what it describes.
        let second = (run.unix_start + report.time - 0.5).max(0.0) as u64;
        *seconds.entry(second).or_default() += report.lost.saturating_sub(last) as f64 * per_byte;
        last = report.lost;
    }
    seconds
}

#[cfg(test)]
mod tests {
    use wb_hashd::{HashdReport, LatencyQuantiles};
    use wb_kernels::memory_hog::MemoryHogReport;

    use super::*;
    use crate::protection::IoUsage;

    fn report(time: f64, done: u64, latency: Option<f64>) -> HashdReport {
        let quantiles = |control| LatencyQuantiles {
            min: 0.0,
            p50: 0.0,
            p90: 0.0,
            p95: control,
            p99: control,
            p999: control,
            max: control,
            control,
        };
        HashdReport { time, period: 1.0, done, latency: latency.map(quantiles), ..HashdReport::default() }
    }

    fn record(run: HogRun) -> ProtectionRecord {
        let baseline = vec![report(1.0, 100, Some(0.02)), report(2.0, 200, Some(0.04))];
        ProtectionRecord { target: 100.0, baseline, runs: vec![run] }
    }

    fn run(hashd: Vec<HashdReport>) -> HogRun {
        let usage = |time, swap| IoUsage { time, vrate: 1.0, total: 0.0, hog: 0.0, hog_memory: 0, swap };
        // The machine swaps from the start on.
        let io = vec![usage(0.0, 0), usage(0.0, 100 << 20)];
        HogRun { hashd, start: 2.0, unix_start: 0.0, hog: Vec::new(), io, duration: 5.0, failure: None }
    }

    #[test]
    fn isolation_is_the_part_of_the_target_and_at_most_one() {
        let reports = vec![
            report(3.0, 300, Some(0.03)),
            report(4.0, 350, Some(0.06)),
            report(5.0, 500, Some(0.015)),
            // It could not run for three seconds.
            report(8.0, 530, None),
        ];
        let result = study(&record(run(reports))).unwrap();
        assert_eq!(result.isolation, [0.5, 1.0, 0.1, 0.1, 0.1]);
        assert_eq!(result.base_latency, 0.03);
        // A second without a completed request has the time since the last one as its latency: 3 s of 0.03.
        assert_eq!(result.latency_impact, [1.0, 0.0, 99.0, 99.0, 99.0]);
        assert_eq!(result.work_conservation, 1.0);
    }

    #[test]
    fn the_time_after_a_failure_is_not_protected() {
        let failed = HogRun { failure: Some((3.5, "killed".to_owned())), ..run(vec![report(3.0, 300, None)]) };
        let result = study(&record(failed)).unwrap();
        assert_eq!((result.isolation, result.latency_impact), (vec![0.0, 0.0], vec![1.0, 1.0]));
        assert_eq!(result.failures, ["killed"]);
    }

    #[test]
    fn work_conservation_compares_use_with_what_was_possible() {
        let usage = |time, total, hog| IoUsage { time, vrate: 0.5, total, hog, hog_memory: 1000, swap: 0 };
        let mut run = run(Vec::new());
        run.io = vec![usage(1.0, 10.0, 1.0), usage(2.0, 10.5, 1.25), usage(3.0, 10.75, 1.5)];
        run.hog = vec![MemoryHogReport { time: 3.0, bytes: 3000, lost: 1000, reread: 0 }];
        let result = study(&record(run.clone())).unwrap();
        // Of 2 s at half the rate, 0.75 / 2 were used; 2000 bytes that were swapped out cost 0.25, so 1000 cost 0.125.
        assert_eq!(result.io, IoBalance { used: 0.375, unused: 0.625, hog: 0.25, lost: 0.125 });
        assert_eq!(lost_by_second(&run), [(2, 0.125)].into());
        assert_eq!(result.work_conservation, 0.75);
    }

    #[test]
    fn seconds_count_from_when_swap_is_used() {
        let mut run = run(vec![report(2.5, 250, None), report(3.5, 300, None), report(4.5, 400, None)]);
        let usage = |time, swap| IoUsage { time, vrate: 1.0, total: 0.0, hog: 0.0, hog_memory: 0, swap };
        run.io = vec![usage(0.5, 100), usage(1.0, 200), usage(2.0, 100 << 20)];
        assert_eq!(study(&record(run.clone())).unwrap().isolation, [1.0]);
        // It never swaps: nothing was isolated from anything.
        run.io.truncate(2);
        assert_eq!(contended_from(&run), None);
        assert!(study(&record(run)).unwrap().isolation.is_empty());
    }

    #[test]
    fn without_a_baseline_there_is_no_result() {
        assert_eq!(study(&ProtectionRecord::default()), None);
    }
}
