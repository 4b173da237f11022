//! A reading of the system's counters. They count from boot, so that only differences are meaningful. Times are in
//! nanoseconds and sizes in bytes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The system's counters at one moment. Counters that the system does not have are absent or empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct TelemetryReading {
    /// Time of the reading, by CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// CPU time spent on the reading itself.
    pub cost_ns: u64,
    /// Times of all CPUs together.
    pub cpu: CpuTimes,
    /// Times and frequency of each CPU.
    pub cpus: Vec<CpuReading>,
    /// Number of context switches.
    pub context_switches: u64,
    /// Number of interrupts served.
    pub interrupts: u64,
    /// Number of processes and threads created.
    pub forks: u64,
    /// Number of runnable tasks at the moment.
    pub runnable_tasks: u64,
    /// Memory usage.
    pub memory: Memory,
    /// Memory management events.
    pub events: VmEvents,
    /// Disks, without partitions and without devices that are built on other disks.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Network interfaces.
    pub interfaces: BTreeMap<String, NetworkCounters>,
    /// Pressure stall information of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<SystemPressure>,
    /// Processor temperatures, in degrees Celsius.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub temperatures: BTreeMap<String, f64>,
    /// Number of thermal throttling events of cores and packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttles: Option<u64>,
    /// Usage of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadUsage>,
    /// Usage of other processes started for the run: the user's tools, prepared servers.
    pub concurrent: WorkloadUsage,
    /// CPU time of the agent and of a controller on the same machine.
    pub own_cpu_ns: u64,
}

/// CPU time by use, in nanoseconds. Time of virtual machines is included in `user` and `nice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct CpuTimes {
    /// User mode.
    pub user: u64,
    /// User mode with low priority.
    pub nice: u64,
    /// Kernel mode.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a task waited for I/O.
    pub iowait: u64,
    /// Servicing interrupts.
    pub irq: u64,
    /// Servicing softirqs.
    pub softirq: u64,
    /// Stolen by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    pub fn total(&self) -> u64 {
        [self.user, self.nice, self.system, self.idle, self.iowait, self.irq, self.softirq, self.steal]
            .iter()
            .fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// The time of user and kernel mode, which is accounted per task.
    pub fn task_time(&self) -> u64 {
        self.user.saturating_add(self.nice).saturating_add(self.system)
    }
}

/// Times and frequency of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct CpuReading {
    /// CPU number.
    pub id: u32,
    /// Times.
    #[serde(flatten)]
    pub times: CpuTimes,
    /// Current frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub khz: Option<u64>,
}

/// Memory usage, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Memory {
    /// Free memory.
    pub free: u64,
    /// Available without swapping.
    pub available: u64,
    /// Page cache.
    pub cached: u64,
    /// Block device buffers.
    pub buffers: u64,
    /// Dirty pages, waiting to be written back.
    pub dirty: u64,
    /// Pages being written back.
    pub writeback: u64,
    /// Anonymous memory in transparent huge pages.
    pub anonymous_huge_pages: u64,
    /// Swap space in use.
    pub swap_used: u64,
}

/// Counts of memory management events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct VmEvents {
    /// Page faults.
    pub faults: u64,
    /// Page faults that required I/O.
    pub major_faults: u64,
    /// Pages swapped in.
    pub swapped_in: u64,
    /// Pages swapped out.
    pub swapped_out: u64,
    /// Huge pages allocated at a fault.
    pub huge_page_faults: u64,
    /// Huge pages that could not be allocated at a fault.
    pub huge_page_fallbacks: u64,
    /// Huge pages collapsed from small ones.
    pub huge_page_collapses: u64,
    /// Huge pages split.
    pub huge_page_splits: u64,
    /// Allocations that had to wait for memory to be reclaimed.
    pub allocation_stalls: u64,
    /// Allocations that had to wait for memory to be compacted.
    pub compaction_stalls: u64,
    /// Pages migrated between nodes.
    pub numa_migrations: u64,
    /// Processes killed because memory ran out.
    pub oom_kills: u64,
}

/// Counters of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct DiskCounters {
    /// Completed reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in which requests were in flight.
    pub busy_ns: u64,
    /// Requests in flight at the moment.
    pub in_flight: u64,
}

/// Counters of a network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct NetworkCounters {
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Receive errors and drops, in packets.
    pub receive_errors_and_drops: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Transmit errors and drops, in packets.
    pub transmit_errors_and_drops: u64,
}

/// Pressure stall information: the time in which tasks waited for each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SystemPressure {
    /// Waiting for a CPU.
    pub cpu: StallTimes,
    /// Waiting for memory.
    pub memory: StallTimes,
    /// Waiting for I/O.
    pub io: StallTimes,
}

/// Time in which tasks were stalled, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct StallTimes {
    /// At least one task was stalled.
    pub some: u64,
    /// All non-idle tasks were stalled.
    pub full: u64,
}

/// A resource that tasks can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PressureResource {
    /// A CPU.
    Cpu,
    /// Memory.
    Memory,
    /// I/O.
    Io,
}

/// Resource usage of the workload since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkloadUsage {
    /// CPU time, including that of ended processes.
    pub cpu_ns: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage, or left in the page cache to be written.
    pub written_bytes: u64,
    /// Number of its processes at the moment.
    pub processes: u64,
    /// Time in which its own tasks waited; absent where no cgroup accounts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<SystemPressure>,
}
