//! Detection of disturbances: activity from outside the workload. Pressure, swapping and throttling may be
//! caused by the workload itself and are findings instead.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::{DiskCounters, PressureResource, TelemetryReading, WorkloadUsage};

/// Thresholds above which outside activity counts as a disturbance: more than a quiet system causes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Thresholds {
    /// CPU time stolen by the hypervisor, in percent of all CPU time.
    pub steal_percent: f64,
    /// CPU time of tasks outside the workload, in percent of all CPU time.
    pub outside_cpu_percent: f64,
    /// Disk I/O of processes outside the workload, in bytes per second.
    pub foreign_io_per_second: f64,
    /// CPU time per CPU, in nanoseconds, up to which differences are within the error of accounting in clock ticks,
    /// whatever the percentage.
    pub min_cpu_ns: u64,
    /// Share of the time in which tasks waited for a resource, in percent, above which it is a finding.
    pub pressure_percent: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            steal_percent: 1.0,
            outside_cpu_percent: 2.0,
            foreign_io_per_second: 4e6,
            min_cpu_ns: 20_000_000,
            pressure_percent: 10.0,
        }
    }
}

/// Activity outside a workload between two readings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Disturbance {
    /// Time between the readings, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time stolen by the hypervisor, in percent of all CPU time.
    pub steal_percent: f64,
    /// CPU time of tasks outside the workload, its concurrent processes, the agent and the controller, in percent of
    /// all CPU time; absent where the workload's own usage is unknown. Kernel threads that work for the workload count
    /// as outside, because the kernel does not account them to it.
    pub outside_cpu_percent: Option<f64>,
    /// CPU time of other processes started for the run (the user's tools, prepared servers), in percent of one CPU.
    #[serde(default)]
    pub concurrent_cpu_percent: f64,
    /// CPU time of the agent and its controller, in percent of one CPU.
    pub own_cpu_percent: f64,
    /// Bytes read from the disks by processes outside the workload; absent where the workload's own usage is unknown.
    pub foreign_read_bytes: Option<u64>,
    /// Bytes written to the disks by processes outside the workload; absent where the workload's own usage is unknown.
    pub foreign_written_bytes: Option<u64>,
    /// Measures above their thresholds: they disturbed the workload.
    pub marks: Vec<DisturbanceMark>,
    /// Remarkable observations that the workload itself may have caused.
    pub findings: Vec<TelemetryFinding>,
}

/// Outside activity that was above its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum DisturbanceMark {
    /// The hypervisor stole CPU time.
    Steal {
        /// Share of all CPU time, in percent.
        percent: f64,
        /// Exceeded threshold.
        threshold: f64,
    },
    /// Tasks outside the workload used CPU time.
    OutsideCpu {
        /// Share of all CPU time, in percent.
        percent: f64,
        /// Exceeded threshold.
        threshold: f64,
    },
    /// Processes outside the workload used the disks.
    ForeignIo {
        /// Transfer rate, in bytes per second.
        per_second: f64,
        /// Exceeded threshold.
        threshold: f64,
    },
}

/// A remarkable observation that is not a disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum TelemetryFinding {
    /// Tasks waited for a resource.
    Pressure {
        /// The resource.
        resource: PressureResource,
        /// The tasks that waited.
        #[serde(default)]
        scope: PressureScope,
        /// Share of the time, in percent.
        percent: f64,
    },
    /// Memory was swapped.
    Swapped {
        /// Number of pages swapped in or out.
        pages: u64,
    },
    /// Processors were throttled because of heat.
    Throttled {
        /// Number of throttling events.
        times: u64,
    },
    /// Processes were killed because memory ran out.
    OutOfMemory {
        /// Number of processes.
        processes: u64,
    },
}

/// The tasks that a pressure finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PressureScope {
    /// Tasks of the workload.
    Workload,
    /// Any task of the system: the workload's are not accounted separately.
    #[default]
    System,
}

impl fmt::Display for DisturbanceMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steal { percent, threshold } => {
                write!(f, "the hypervisor stole {percent:.1} % of the CPU time (threshold {threshold} %)")
            }
            Self::OutsideCpu { percent, threshold } => {
                write!(f, "other processes used {percent:.1} % of the CPU time (threshold {threshold} %)")
            }
            Self::ForeignIo { per_second, threshold } => {
                write!(
                    f,
                    "other processes caused {:.1} MB/s of disk I/O (threshold {:.1} MB/s)",
                    per_second / 1e6,
                    threshold / 1e6
                )
            }
        }
    }
}

impl fmt::Display for TelemetryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pressure { resource: on, scope: whose, percent } => {
                let resource = match on {
                    PressureResource::Cpu => "a CPU",
                    PressureResource::Memory => "memory",
                    PressureResource::Io => "I/O",
                };
                let tasks = match whose {
                    PressureScope::Workload => "the workload",
                    PressureScope::System => "some task",
                };
                write!(f, "{tasks} waited for {resource} {percent:.0} % of the time")
            }
            Self::Swapped { pages } => write!(f, "{pages} pages were swapped"),
            Self::Throttled { times } => write!(f, "processors were throttled {times} times because of heat"),
            Self::OutOfMemory { processes } => write!(f, "{processes} processes were killed because memory ran out"),
        }
    }
}

pub fn compute(start: &TelemetryReading, end: &TelemetryReading, thresholds: &Thresholds) -> Disturbance {
    let elapsed_ns = end.at_ns.saturating_sub(start.at_ns);
    let seconds = elapsed_ns as f64 / 1e9;
    let capacity = end.cpu.total().saturating_sub(start.cpu.total());
    let steal = end.cpu.steal.saturating_sub(start.cpu.steal);
    let tasks = end.cpu.task_time().saturating_sub(start.cpu.task_time());
    let own = end.own_cpu_ns.saturating_sub(start.own_cpu_ns);
    let workload = start.workload.zip(end.workload).map(|(start, end)| workload_delta(&start, &end));
    let concurrent = workload_delta(&start.concurrent, &end.concurrent);
    let workload = workload.map(|workload| workload.combine(concurrent));
    let outside = workload.map(|workload| tasks.saturating_sub(workload.cpu_ns).saturating_sub(own));
    let (read, written) = disk_io_delta(start, end);
    let foreign_read_bytes = workload.map(|workload| read.saturating_sub(workload.read_bytes));
    let foreign_written_bytes = workload.map(|workload| written.saturating_sub(workload.written_bytes));

    let mut disturbance = Disturbance {
        elapsed_ns,
        steal_percent: percent(steal, capacity),
        outside_cpu_percent: outside.map(|outside| percent(outside, capacity)),
        concurrent_cpu_percent: percent(concurrent.cpu_ns, elapsed_ns),
        own_cpu_percent: percent(own, elapsed_ns),
        foreign_read_bytes,
        foreign_written_bytes,
        marks: Vec::new(),
        findings: Vec::new(),
    };
    let is_significant = |time: u64| time > thresholds.min_cpu_ns.saturating_mul(end.cpus.len() as u64);
    if disturbance.steal_percent > thresholds.steal_percent && is_significant(steal) {
        disturbance
            .marks
            .push(DisturbanceMark::Steal { percent: disturbance.steal_percent, threshold: thresholds.steal_percent });
    }
    if let Some(percent) = disturbance.outside_cpu_percent
        && percent > thresholds.outside_cpu_percent
        && outside.is_some_and(is_significant)
    {
        disturbance.marks.push(DisturbanceMark::OutsideCpu { percent, threshold: thresholds.outside_cpu_percent });
    }
    let foreign = foreign_read_bytes.unwrap_or(0).saturating_add(foreign_written_bytes.unwrap_or(0));
    let per_second = if seconds > 0.0 { foreign as f64 / seconds } else { 0.0 };
    if per_second > thresholds.foreign_io_per_second {
        disturbance.marks.push(DisturbanceMark::ForeignIo { per_second, threshold: thresholds.foreign_io_per_second });
    }
    // A disturbed workload waits, too; the mark already reports that.
    let pressures = if disturbance.marks.is_empty() { pressures(start, end, thresholds) } else { Vec::new() };
    disturbance.findings = pressures.into_iter().chain(findings(start, end)).collect();
    disturbance
}

/// The resources that the workload waited for, or that any task waited for where no cgroup accounts the workload's.
fn pressures(start: &TelemetryReading, end: &TelemetryReading, thresholds: &Thresholds) -> Vec<TelemetryFinding> {
    let of_workload = |reading: &TelemetryReading| reading.workload.and_then(|workload| workload.pressure);
    let workload = of_workload(start).zip(of_workload(end));
    let scope = if workload.is_some() { PressureScope::Workload } else { PressureScope::System };
    let Some((before, after)) = workload.or(start.pressure.zip(end.pressure)) else { return Vec::new() };
    let elapsed = end.at_ns.saturating_sub(start.at_ns);
    let resources = [
        (PressureResource::Cpu, before.cpu, after.cpu),
        (PressureResource::Memory, before.memory, after.memory),
        (PressureResource::Io, before.io, after.io),
    ];
    let shares = resources.map(|(on, before, after)| (on, percent(after.some.saturating_sub(before.some), elapsed)));
    let high = shares.into_iter().filter(|(_, percent)| *percent > thresholds.pressure_percent);
    high.map(|(on, percent)| TelemetryFinding::Pressure { resource: on, scope, percent }).collect()
}

fn findings(start: &TelemetryReading, end: &TelemetryReading) -> Vec<TelemetryFinding> {
    let mut found = Vec::new();
    let increase = |counter: fn(&TelemetryReading) -> u64| counter(end).saturating_sub(counter(start));
    let pages = increase(|reading| reading.events.swapped_in.saturating_add(reading.events.swapped_out));
    let times = increase(|reading| reading.throttles.unwrap_or(0));
    let processes = increase(|reading| reading.events.oom_kills);
    found.extend((pages > 0).then_some(TelemetryFinding::Swapped { pages }));
    found.extend((times > 0).then_some(TelemetryFinding::Throttled { times }));
    found.extend((processes > 0).then_some(TelemetryFinding::OutOfMemory { processes }));
    found
}

fn workload_delta(start: &WorkloadUsage, end: &WorkloadUsage) -> WorkloadUsage {
    WorkloadUsage {
        cpu_ns: end.cpu_ns.saturating_sub(start.cpu_ns),
        read_bytes: end.read_bytes.saturating_sub(start.read_bytes),
        written_bytes: end.written_bytes.saturating_sub(start.written_bytes),
        ..*end
    }
}

impl WorkloadUsage {
    /// The sum of two usages, with the pressure of the first.
    pub fn combine(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            processes: self.processes.saturating_add(other.processes),
            pressure: self.pressure,
        }
    }
}

/// Bytes read and written on all disks. A disk that was added meanwhile does not count.
fn disk_io_delta(start: &TelemetryReading, end: &TelemetryReading) -> (u64, u64) {
    let increase = |name: &String, after: &DiskCounters, counter: fn(&DiskCounters) -> u64| {
        start.disks.get(name).map_or(0, |before| counter(after).saturating_sub(counter(before)))
    };
    end.disks.iter().fold((0u64, 0u64), |(read, written), (name, after)| {
        let more_read = increase(name, after, |disk| disk.read_bytes);
        let more_written = increase(name, after, |disk| disk.written_bytes);
        (read.saturating_add(more_read), written.saturating_add(more_written))
    })
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::telemetry::reading::{CpuReading, CpuTimes, StallTimes, SystemPressure};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Ten seconds of two CPUs, of which tasks used `tasks` and the hypervisor stole `steal` seconds.
    fn pair(tasks: u64, steal: u64, workload: WorkloadUsage) -> (TelemetryReading, TelemetryReading) {
        let cpu = CpuTimes {
            user: tasks * SECOND,
            steal: steal * SECOND,
            idle: (20 - tasks - steal) * SECOND,
            ..CpuTimes::default()
        };
        let cpus = vec![CpuReading::default(); 2];
        let start = TelemetryReading {
            workload: Some(WorkloadUsage::default()),
            cpus: cpus.clone(),
            ..TelemetryReading::default()
        };
        let end =
            TelemetryReading { at_ns: 10 * SECOND, cpu, cpus, workload: Some(workload), ..TelemetryReading::default() };
        (start, end)
    }

    #[test]
    fn only_activity_outside_the_workload_is_a_disturbance() {
        let undisturbed = WorkloadUsage { cpu_ns: 12 * SECOND, ..WorkloadUsage::default() };
        let (start, end) = pair(12, 0, undisturbed);
        let disturbance = compute(&start, &end, &Thresholds::default());
        assert_eq!((disturbance.outside_cpu_percent, disturbance.marks.len()), (Some(0.0), 0));
        let (start, mut end) = pair(12, 2, WorkloadUsage { cpu_ns: 9 * SECOND, ..WorkloadUsage::default() });
        end.own_cpu_ns = SECOND;
        let disturbance = compute(&start, &end, &Thresholds::default());
        assert_eq!(
            (disturbance.outside_cpu_percent, disturbance.steal_percent, disturbance.own_cpu_percent),
            (Some(10.0), 10.0, 10.0)
        );
        assert_eq!(disturbance.marks[0].to_string(), "the hypervisor stole 10.0 % of the CPU time (threshold 1 %)");
        assert_eq!(disturbance.marks[1], DisturbanceMark::OutsideCpu { percent: 10.0, threshold: 2.0 });
    }

    #[test]
    fn io_of_the_workload_is_not_foreign() {
        let usage =
            WorkloadUsage { cpu_ns: 0, read_bytes: 60_000_000, written_bytes: 1 << 40, ..WorkloadUsage::default() };
        let (mut start, mut end) = pair(0, 0, usage);
        start.disks.insert("vda".into(), DiskCounters::default());
        end.disks.insert(
            "vda".into(),
            DiskCounters { read_bytes: 160_000_000, written_bytes: 5, ..DiskCounters::default() },
        );
        end.disks.insert("new".into(), DiskCounters { read_bytes: 1 << 50, ..DiskCounters::default() });
        let disturbance = compute(&start, &end, &Thresholds::default());
        assert_eq!((disturbance.foreign_read_bytes, disturbance.foreign_written_bytes), (Some(100_000_000), Some(0)));
        assert_eq!(disturbance.marks, [DisturbanceMark::ForeignIo { per_second: 1e7, threshold: 4e6 }]);
    }

    #[test]
    fn pressure_swap_and_heat_are_findings_not_disturbances() {
        let (start, mut end) = pair(0, 0, WorkloadUsage::default());
        let start = TelemetryReading { pressure: Some(SystemPressure::default()), throttles: Some(1), ..start };
        end.pressure =
            Some(SystemPressure { io: StallTimes { some: 5 * SECOND, full: 0 }, ..SystemPressure::default() });
        end.events.swapped_out = 7;
        end.throttles = Some(4);
        let disturbance = compute(&start, &end, &Thresholds::default());
        assert!(disturbance.marks.is_empty());
        let expected = [
            TelemetryFinding::Pressure { resource: PressureResource::Io, scope: PressureScope::System, percent: 50.0 },
            TelemetryFinding::Swapped { pages: 7 },
            TelemetryFinding::Throttled { times: 3 },
        ];
        assert_eq!(disturbance.findings, expected);
    }

    #[test]
    fn concurrent_tools_are_not_a_disturbance() {
        let (start, mut end) = pair(12, 0, WorkloadUsage { cpu_ns: 6 * SECOND, ..WorkloadUsage::default() });
        end.concurrent.cpu_ns = 6 * SECOND;
        let disturbance = compute(&start, &end, &Thresholds::default());
        assert_eq!(
            (disturbance.outside_cpu_percent, disturbance.concurrent_cpu_percent, disturbance.marks.len()),
            (Some(0.0), 60.0, 0)
        );
    }

    #[test]
    fn waiting_is_a_finding_only_where_an_undisturbed_workload_waits() {
        let cpu_pressure =
            |some| Some(SystemPressure { cpu: StallTimes { some, full: 0 }, ..SystemPressure::default() });
        let findings = |tasks: u64, own: Option<SystemPressure>| {
            let workload = |pressure| WorkloadUsage { cpu_ns: 0, pressure, ..WorkloadUsage::default() };
            let (mut start, mut end) = pair(tasks, 0, workload(own));
            start.workload = Some(workload(own.map(|_| SystemPressure::default())));
            (start.pressure, end.pressure) = (cpu_pressure(0), cpu_pressure(9 * SECOND));
            compute(&start, &end, &Thresholds::default()).findings
        };
        assert_eq!(findings(0, None)[0].to_string(), "some task waited for a CPU 90 % of the time");
        assert_eq!(
            findings(0, cpu_pressure(5 * SECOND))[0].to_string(),
            "the workload waited for a CPU 50 % of the time"
        );
        assert_eq!(findings(0, cpu_pressure(0)), []);
        assert_eq!(findings(12, None), [], "the mark reports the activity of others");
    }

    #[test]
    fn unknown_workload_usage_is_not_attributed_to_others() {
        let (start, mut end) = pair(12, 0, WorkloadUsage::default());
        end.workload = None;
        let disturbance = compute(&start, &end, &Thresholds::default());
        assert_eq!(
            (disturbance.outside_cpu_percent, disturbance.foreign_read_bytes, disturbance.marks.len()),
            (None, None, 0)
        );
    }

    #[test]
    fn differences_within_the_tick_error_are_not_marked() {
        let (start, mut end) = pair(0, 0, WorkloadUsage::default());
        end.at_ns = SECOND / 4;
        end.cpu = CpuTimes { user: 40_000_000, idle: 460_000_000, ..CpuTimes::default() };
        let disturbance = compute(&start, &end, &Thresholds::default());
        assert_eq!((disturbance.outside_cpu_percent, disturbance.marks.len()), (Some(8.0), 0));
    }

    proptest! {
        #[test]
        fn arbitrary_counters_do_not_panic(numbers in proptest::collection::vec(any::<u64>(), 16)) {
            let reading = |n: &[u64]| TelemetryReading {
                at_ns: n[0],
                cpu: CpuTimes { user: n[1], system: n[2], steal: n[3], ..CpuTimes::default() },
                workload: Some(WorkloadUsage { cpu_ns: n[4], read_bytes: n[5], written_bytes: n[6], ..WorkloadUsage::default() }),
                own_cpu_ns: n[7],
                ..TelemetryReading::default()
            };
            let disturbance = compute(&reading(&numbers[..8]), &reading(&numbers[8..]), &Thresholds::default());
            prop_assert!(disturbance.steal_percent >= 0.0 && disturbance.own_cpu_percent >= 0.0);
        }
    }
}
