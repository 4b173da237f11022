//! What one reading holds. Counters count from boot, so that differences mean something; times are in
//! nanoseconds and sizes in bytes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The system's counters at one moment. What this system does not have is absent or empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct TelemetryReading {
    /// The moment, by CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// CPU time that this reading itself took.
    pub cost_ns: u64,
    /// CPU time of all CPUs.
    pub cpu: CpuTimes,
    /// CPU time and frequency of each CPU.
    pub cpus: Vec<CpuReading>,
    /// Times that a CPU went from one task to another.
    pub context_switches: u64,
    /// Interrupts served.
    pub interrupts: u64,
    /// Processes and threads made.
    pub forks: u64,
    /// Tasks that run or could run now.
    pub running: u64,
    /// Memory.
    pub memory: Memory,
    /// Events of the memory management.
    pub events: VmEvents,
    /// Whole disks, those that only pass requests on to others left out.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Network interfaces.
    pub interfaces: BTreeMap<String, NetworkCounters>,
    /// Time in which tasks waited for something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<SystemPressure>,
    /// Temperatures of processors, in degrees Celsius.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub temperatures: BTreeMap<String, f64>,
    /// Times that a core or package was slowed down because of its heat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttles: Option<u64>,
    /// The workload's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadUsage>,
    /// What else was started here, beside the workload: the user's tools, and what cells have prepared.
    pub concurrent: WorkloadUsage,
    /// CPU time of the agent and of the process that drives it here.
    pub own_cpu_ns: u64,
}

/// What CPUs did with their time, in nanoseconds. Time of virtual machines is in `user` and `nice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct CpuTimes {
    /// Programs.
    pub user: u64,
    /// Programs of low priority.
    pub nice: u64,
    /// The kernel, for programs and for itself.
    pub system: u64,
    /// Nothing.
    pub idle: u64,
    /// Nothing, while something waited for I/O.
    pub iowait: u64,
    /// Interrupts.
    pub irq: u64,
    /// What follows interrupts.
    pub softirq: u64,
    /// Nothing, while the hypervisor ran something else.
    pub steal: u64,
}

impl CpuTimes {
    /// In all.
    pub fn total(&self) -> u64 {
        [self.user, self.nice, self.system, self.idle, self.iowait, self.irq, self.softirq, self.steal]
            .iter()
            .fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// What tasks used, which is what can be told apart by task.
    pub fn tasks(&self) -> u64 {
        self.user.saturating_add(self.nice).saturating_add(self.system)
    }
}

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct CpuReading {
    /// The kernel's number of it.
    pub id: u32,
    /// What it did.
    #[serde(flatten)]
    pub times: CpuTimes,
    /// Its frequency now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub khz: Option<u64>,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Memory {
    /// Free.
    pub free: u64,
    /// To be had without swapping.
    pub available: u64,
    /// Cached files.
    pub cached: u64,
    /// Buffers of block devices.
    pub buffers: u64,
    /// To be written back.
    pub dirty: u64,
    /// Being written back.
    pub writeback: u64,
    /// Memory of programs in huge pages.
    pub anonymous_huge: u64,
    /// Swap space in use.
    pub swapped: u64,
}

/// Counts of events of the memory management.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct VmEvents {
    /// Page faults.
    pub faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Pages swapped in.
    pub swapped_in: u64,
    /// Pages swapped out.
    pub swapped_out: u64,
    /// Huge pages given at a fault.
    pub huge_faults: u64,
    /// Huge pages that could not be given at a fault.
    pub huge_fallbacks: u64,
    /// Huge pages made of small ones.
    pub huge_collapses: u64,
    /// Huge pages split.
    pub huge_splits: u64,
    /// Times that an allocation had to wait for memory to be reclaimed.
    pub allocation_stalls: u64,
    /// Times that an allocation had to wait for memory to be compacted.
    pub compaction_stalls: u64,
    /// Pages moved between nodes.
    pub numa_migrations: u64,
    /// Processes killed for lack of memory.
    pub oom_kills: u64,
}

/// A whole disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct DiskCounters {
    /// Reads done.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes done.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in which it had something to do.
    pub busy_ns: u64,
    /// Requests in it now.
    pub in_flight: u64,
}

/// A network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct NetworkCounters {
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that could not be received: errors and drops.
    pub received_lost: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that could not be sent: errors and drops.
    pub sent_lost: u64,
}

/// Pressure on the three things that tasks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SystemPressure {
    /// For a CPU.
    pub cpu: StallTimes,
    /// For memory.
    pub memory: StallTimes,
    /// For I/O.
    pub io: StallTimes,
}

/// Time in which tasks waited, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct StallTimes {
    /// At least one.
    pub some: u64,
    /// All that had something to do.
    pub full: u64,
}

/// What tasks can wait for.
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

/// What the workload used since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkloadUsage {
    /// CPU time, of processes that have ended too.
    pub cpu_ns: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage, or left to be written.
    pub written_bytes: u64,
    /// Its processes now.
    pub processes: u64,
    /// Time in which its own tasks waited; absent where it has no cgroup that counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<SystemPressure>,
}
