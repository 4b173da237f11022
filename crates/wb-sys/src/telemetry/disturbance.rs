//! What disturbed a workload: only what came from elsewhere. Pressure, swapping and throttling may be
//! the workload's own doing, and are findings.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::{DiskCounters, PressureResource, TelemetryReading, WorkloadUsage};

/// What is more than a quiet system does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Thresholds {
    /// CPU time that the hypervisor gave to others, in percent of all CPU time.
    pub steal_percent: f64,
    /// CPU time of tasks outside the workload, in percent of all CPU time.
    pub outside_cpu_percent: f64,
    /// Bytes per second that others read and wrote on the disks.
    pub foreign_io_per_second: f64,
    /// CPU time per CPU, in nanoseconds, that is too little to be told from the error of counting in
    /// clock ticks, whatever the percentage.
    pub uncertain_cpu_ns: u64,
    /// Time in which something waited, in percent of the time, that is worth a finding.
    pub pressure_percent: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            steal_percent: 1.0,
            outside_cpu_percent: 2.0,
            foreign_io_per_second: 4e6,
            uncertain_cpu_ns: 20_000_000,
            pressure_percent: 10.0,
        }
    }
}

/// What happened outside a workload between two readings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Disturbance {
    /// The time between, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time that the hypervisor gave to others, in percent of all CPU time.
    pub steal_percent: f64,
    /// CPU time of tasks outside the workload, what else was started here, the agent and its controller, in percent of
    /// all CPU time; absent where the workload's part is not known. Kernel threads that work for the workload count
    /// as outside: the kernel does not say for whom they work.
    pub outside_cpu_percent: Option<f64>,
    /// CPU time of what else was started here (the user's tools, what cells have prepared), in percent of one CPU.
    #[serde(default)]
    pub concurrent_cpu_percent: f64,
    /// CPU time of the agent and its controller, in percent of one CPU.
    pub own_cpu_percent: f64,
    /// Bytes that others read from the disks; absent where the workload's part is not known.
    pub foreign_read_bytes: Option<u64>,
    /// Bytes that others wrote to the disks; absent where the workload's part is not known.
    pub foreign_written_bytes: Option<u64>,
    /// What is above its threshold: it disturbed the workload.
    pub marks: Vec<DisturbanceMark>,
    /// What is remarkable and may be the workload's own doing.
    pub findings: Vec<TelemetryFinding>,
}

/// Something from elsewhere that was above its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum DisturbanceMark {
    /// The hypervisor ran something else.
    Steal {
        /// In percent of all CPU time.
        percent: f64,
        /// The threshold.
        threshold: f64,
    },
    /// Other tasks ran.
    OutsideCpu {
        /// In percent of all CPU time.
        percent: f64,
        /// The threshold.
        threshold: f64,
    },
    /// Others used the disks.
    ForeignIo {
        /// In bytes per second.
        per_second: f64,
        /// The threshold.
        threshold: f64,
    },
}

/// Something remarkable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum TelemetryFinding {
    /// Tasks waited.
    Pressure {
        /// For what.
        resource: PressureResource,
        /// Whose tasks.
        #[serde(default)]
        scope: PressureScope,
        /// In percent of the time.
        percent: f64,
    },
    /// Memory was swapped.
    Swapped {
        /// Pages, in and out.
        pages: u64,
    },
    /// Processors were slowed down because of their heat.
    Throttled {
        /// How often.
        times: u64,
    },
    /// Processes were killed for lack of memory.
    OutOfMemory {
        /// How many.
        processes: u64,
    },
}

/// Whose tasks waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PressureScope {
    /// The workload's own.
    Workload,
    /// Any in the system: the workload's are not counted apart here.
    #[default]
    System,
}

impl fmt::Display for DisturbanceMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steal { percent, threshold } => {
                write!(f, "the hypervisor took {percent:.1} % of the CPU time (more than {threshold} %)")
            }
            Self::OutsideCpu { percent, threshold } => {
                write!(f, "others used {percent:.1} % of the CPU time (more than {threshold} %)")
            }
            Self::ForeignIo { per_second, threshold } => {
                write!(
                    f,
                    "others moved {:.1} MB/s on the disks (more than {:.1} MB/s)",
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
                let on = match on {
                    PressureResource::Cpu => "a CPU",
                    PressureResource::Memory => "memory",
                    PressureResource::Io => "I/O",
                };
                let who = match whose {
                    PressureScope::Workload => "the workload",
                    PressureScope::System => "something",
                };
                write!(f, "{who} waited for {on} {percent:.0} % of the time")
            }
            Self::Swapped { pages } => write!(f, "{pages} pages were swapped"),
            Self::Throttled { times } => write!(f, "processors were slowed down {times} times because of their heat"),
            Self::OutOfMemory { processes } => write!(f, "{processes} processes were killed for lack of memory"),
        }
    }
}

/// What happened outside the workload between two readings of one system.
pub fn between(start: &TelemetryReading, end: &TelemetryReading, thresholds: &Thresholds) -> Disturbance {
    let elapsed_ns = end.at_ns.saturating_sub(start.at_ns);
    let seconds = elapsed_ns as f64 / 1e9;
    let capacity = end.cpu.total().saturating_sub(start.cpu.total());
    let steal = end.cpu.steal.saturating_sub(start.cpu.steal);
    let tasks = end.cpu.tasks().saturating_sub(start.cpu.tasks());
    let own = end.own_cpu_ns.saturating_sub(start.own_cpu_ns);
    let workload = start.workload.zip(end.workload).map(|(start, end)| workload_delta(&start, &end));
    let beside = workload_delta(&start.concurrent, &end.concurrent);
    let workload = workload.map(|workload| workload.combine(beside));
    let outside = workload.map(|workload| tasks.saturating_sub(workload.cpu_ns).saturating_sub(own));
    let (read, written) = disk_io_delta(start, end);
    let foreign_read_bytes = workload.map(|workload| read.saturating_sub(workload.read_bytes));
    let foreign_written_bytes = workload.map(|workload| written.saturating_sub(workload.written_bytes));

    let mut found = Disturbance {
        elapsed_ns,
        steal_percent: percent(steal, capacity),
        outside_cpu_percent: outside.map(|outside| percent(outside, capacity)),
        concurrent_cpu_percent: percent(beside.cpu_ns, elapsed_ns),
        own_cpu_percent: percent(own, elapsed_ns),
        foreign_read_bytes,
        foreign_written_bytes,
        marks: Vec::new(),
        findings: Vec::new(),
    };
    let certain = |time: u64| time > thresholds.uncertain_cpu_ns.saturating_mul(end.cpus.len() as u64);
    if found.steal_percent > thresholds.steal_percent && certain(steal) {
        found.marks.push(DisturbanceMark::Steal { percent: found.steal_percent, threshold: thresholds.steal_percent });
    }
    if let Some(percent) = found.outside_cpu_percent
        && percent > thresholds.outside_cpu_percent
        && outside.is_some_and(certain)
    {
        found.marks.push(DisturbanceMark::OutsideCpu { percent, threshold: thresholds.outside_cpu_percent });
    }
    let foreign = foreign_read_bytes.unwrap_or(0).saturating_add(foreign_written_bytes.unwrap_or(0));
    let per_second = if seconds > 0.0 { foreign as f64 / seconds } else { 0.0 };
    if per_second > thresholds.foreign_io_per_second {
        found.marks.push(DisturbanceMark::ForeignIo { per_second, threshold: thresholds.foreign_io_per_second });
    }
    // Whoever is disturbed waits, too: that is told by the mark.
    let waited = if found.marks.is_empty() { pressures(start, end, thresholds) } else { Vec::new() };
    found.findings = waited.into_iter().chain(findings(start, end)).collect();
    found
}

/// What the workload waited for; where it has no cgroup that counts it, what anything in the system did.
fn pressures(start: &TelemetryReading, end: &TelemetryReading, thresholds: &Thresholds) -> Vec<TelemetryFinding> {
    let of_workload = |reading: &TelemetryReading| reading.workload.and_then(|workload| workload.pressure);
    let own = of_workload(start).zip(of_workload(end));
    let whose = if own.is_some() { PressureScope::Workload } else { PressureScope::System };
    let Some((before, after)) = own.or(start.pressure.zip(end.pressure)) else { return Vec::new() };
    let elapsed = end.at_ns.saturating_sub(start.at_ns);
    let kinds = [
        (PressureResource::Cpu, before.cpu, after.cpu),
        (PressureResource::Memory, before.memory, after.memory),
        (PressureResource::Io, before.io, after.io),
    ];
    let waited = kinds.map(|(on, before, after)| (on, percent(after.some.saturating_sub(before.some), elapsed)));
    let much = waited.into_iter().filter(|(_, percent)| *percent > thresholds.pressure_percent);
    much.map(|(on, percent)| TelemetryFinding::Pressure { resource: on, scope: whose, percent }).collect()
}

fn findings(start: &TelemetryReading, end: &TelemetryReading) -> Vec<TelemetryFinding> {
    let mut found = Vec::new();
    let grown = |of: fn(&TelemetryReading) -> u64| of(end).saturating_sub(of(start));
    let pages = grown(|reading| reading.events.swapped_in.saturating_add(reading.events.swapped_out));
    let times = grown(|reading| reading.throttles.unwrap_or(0));
    let processes = grown(|reading| reading.events.oom_kills);
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
    /// Both together; the pressure stays that of the first.
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

/// Bytes read and written on all disks. One that came meanwhile counts from when it came.
fn disk_io_delta(start: &TelemetryReading, end: &TelemetryReading) -> (u64, u64) {
    let grown = |name: &String, after: &DiskCounters, of: fn(&DiskCounters) -> u64| {
        start.disks.get(name).map_or(0, |before| of(after).saturating_sub(of(before)))
    };
    end.disks.iter().fold((0u64, 0u64), |(read, written), (name, after)| {
        let more_read = grown(name, after, |disk| disk.read_bytes);
        let more_written = grown(name, after, |disk| disk.written_bytes);
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

    /// Ten seconds of two CPUs, of which tasks used `tasks` and the hypervisor took `steal` seconds.
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
    fn only_what_is_outside_the_workload_disturbs_it() {
        let quiet = WorkloadUsage { cpu_ns: 12 * SECOND, ..WorkloadUsage::default() };
        let (start, end) = pair(12, 0, quiet);
        let found = between(&start, &end, &Thresholds::default());
        assert_eq!((found.outside_cpu_percent, found.marks.len()), (Some(0.0), 0));
        let (start, mut end) = pair(12, 2, WorkloadUsage { cpu_ns: 9 * SECOND, ..WorkloadUsage::default() });
        end.own_cpu_ns = SECOND;
        let found = between(&start, &end, &Thresholds::default());
        assert_eq!((found.outside_cpu_percent, found.steal_percent, found.own_cpu_percent), (Some(10.0), 10.0, 10.0));
        assert_eq!(found.marks[0].to_string(), "the hypervisor took 10.0 % of the CPU time (more than 1 %)");
        assert_eq!(found.marks[1], DisturbanceMark::OutsideCpu { percent: 10.0, threshold: 2.0 });
    }

    #[test]
    fn what_the_workload_moved_is_not_foreign() {
        let moved =
            WorkloadUsage { cpu_ns: 0, read_bytes: 60_000_000, written_bytes: 1 << 40, ..WorkloadUsage::default() };
        let (mut start, mut end) = pair(0, 0, moved);
        start.disks.insert("vda".into(), DiskCounters::default());
        end.disks.insert(
            "vda".into(),
            DiskCounters { read_bytes: 160_000_000, written_bytes: 5, ..DiskCounters::default() },
        );
        end.disks.insert("new".into(), DiskCounters { read_bytes: 1 << 50, ..DiskCounters::default() });
        let found = between(&start, &end, &Thresholds::default());
        assert_eq!((found.foreign_read_bytes, found.foreign_written_bytes), (Some(100_000_000), Some(0)));
        assert_eq!(found.marks, [DisturbanceMark::ForeignIo { per_second: 1e7, threshold: 4e6 }]);
    }

    #[test]
    fn pressure_swap_and_heat_are_findings_and_no_disturbance() {
        let (start, mut end) = pair(0, 0, WorkloadUsage::default());
        let start = TelemetryReading { pressure: Some(SystemPressure::default()), throttles: Some(1), ..start };
        end.pressure =
            Some(SystemPressure { io: StallTimes { some: 5 * SECOND, full: 0 }, ..SystemPressure::default() });
        end.events.swapped_out = 7;
        end.throttles = Some(4);
        let found = between(&start, &end, &Thresholds::default());
        assert!(found.marks.is_empty());
        let wanted = [
            TelemetryFinding::Pressure { resource: PressureResource::Io, scope: PressureScope::System, percent: 50.0 },
            TelemetryFinding::Swapped { pages: 7 },
            TelemetryFinding::Throttled { times: 3 },
        ];
        assert_eq!(found.findings, wanted);
    }

    #[test]
    fn tools_of_ones_own_are_no_disturbance() {
        let (start, mut end) = pair(12, 0, WorkloadUsage { cpu_ns: 6 * SECOND, ..WorkloadUsage::default() });
        end.concurrent.cpu_ns = 6 * SECOND;
        let found = between(&start, &end, &Thresholds::default());
        assert_eq!((found.outside_cpu_percent, found.concurrent_cpu_percent, found.marks.len()), (Some(0.0), 60.0, 0));
    }

    #[test]
    fn waiting_is_a_finding_only_where_the_workload_waited_undisturbed() {
        let waited = |some| Some(SystemPressure { cpu: StallTimes { some, full: 0 }, ..SystemPressure::default() });
        let read = |tasks: u64, own: Option<SystemPressure>| {
            let workload = |pressure| WorkloadUsage { cpu_ns: 0, pressure, ..WorkloadUsage::default() };
            let (mut start, mut end) = pair(tasks, 0, workload(own));
            start.workload = Some(workload(own.map(|_| SystemPressure::default())));
            (start.pressure, end.pressure) = (waited(0), waited(9 * SECOND));
            between(&start, &end, &Thresholds::default()).findings
        };
        assert_eq!(read(0, None)[0].to_string(), "something waited for a CPU 90 % of the time");
        assert_eq!(read(0, waited(5 * SECOND))[0].to_string(), "the workload waited for a CPU 50 % of the time");
        assert_eq!(read(0, waited(0)), []);
        assert_eq!(read(12, None), [], "others were busy, and the mark says so");
    }

    #[test]
    fn a_workload_that_is_not_known_is_not_blamed_on_others() {
        let (start, mut end) = pair(12, 0, WorkloadUsage::default());
        end.workload = None;
        let found = between(&start, &end, &Thresholds::default());
        assert_eq!((found.outside_cpu_percent, found.foreign_read_bytes, found.marks.len()), (None, None, 0));
    }

    #[test]
    fn what_clock_ticks_cannot_tell_is_not_marked() {
        let (start, mut end) = pair(0, 0, WorkloadUsage::default());
        end.at_ns = SECOND / 4;
        end.cpu = CpuTimes { user: 40_000_000, idle: 460_000_000, ..CpuTimes::default() };
        let found = between(&start, &end, &Thresholds::default());
        assert_eq!((found.outside_cpu_percent, found.marks.len()), (Some(8.0), 0));
    }

    proptest! {
        #[test]
        fn counters_that_go_anywhere_never_panic(numbers in proptest::collection::vec(any::<u64>(), 16)) {
            let reading = |n: &[u64]| TelemetryReading {
                at_ns: n[0],
                cpu: CpuTimes { user: n[1], system: n[2], steal: n[3], ..CpuTimes::default() },
                workload: Some(WorkloadUsage { cpu_ns: n[4], read_bytes: n[5], written_bytes: n[6], ..WorkloadUsage::default() }),
                own_cpu_ns: n[7],
                ..TelemetryReading::default()
            };
            let found = between(&reading(&numbers[..8]), &reading(&numbers[8..]), &Thresholds::default());
            prop_assert!(found.steal_percent >= 0.0 && found.own_cpu_percent >= 0.0);
        }
    }
}
