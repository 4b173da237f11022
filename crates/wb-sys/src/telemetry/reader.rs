//! Reads the system's counters cheaply: files are opened once and share one buffer.

use std::collections::BTreeSet;
use std::fs;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::SysRoot;
use crate::cgroup::Cgroup;
use crate::proc::cpuinfo;
use crate::process::tree;

use super::parse;
use super::reading::{SystemPressure, TelemetryReading, WorkloadUsage};
use super::sources::{CounterFile, disks, temperature_sensors};

/// Takes readings. Creating a reader probes the system; a reading is cheap.
#[derive(Debug)]
pub struct TelemetryReader {
    root: SysRoot,
    stat: Option<CounterFile>,
    meminfo: Option<CounterFile>,
    vmstat: Option<CounterFile>,
    diskstats: Option<CounterFile>,
    disks: BTreeSet<String>,
    net_dev: Option<CounterFile>,
    pressure: Option<[CounterFile; 3]>,
    frequencies: Vec<(u32, CounterFile)>,
    cpuinfo: Option<CounterFile>,
    thermometers: Vec<(String, CounterFile)>,
    throttles: Vec<CounterFile>,
    controller: Option<u32>,
    buffer: Vec<u8>,
}

impl TelemetryReader {
    /// `controller` is the local controller process, whose CPU time counts with this process's.
    pub fn new(root: &SysRoot, controller: Option<u32>) -> Self {
        let open = |path: &str| CounterFile::open(root, path);
        let cpus = root.numbered_entries("/sys/devices/system/cpu", "cpu");
        let open_of_cpu = |cpu: u32, file: &str| open(&format!("/sys/devices/system/cpu/cpu{cpu}/{file}"));
        let frequencies: Vec<(u32, CounterFile)> =
            cpus.iter().filter_map(|cpu| Some((*cpu, open_of_cpu(*cpu, "cpufreq/scaling_cur_freq")?))).collect();
        let throttles = ["thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count"];
        let pressure = |name: &str| open(&format!("/proc/pressure/{name}"));
        Self {
            root: root.clone(),
            stat: open("/proc/stat"),
            meminfo: open("/proc/meminfo"),
            vmstat: open("/proc/vmstat"),
            diskstats: open("/proc/diskstats"),
            disks: disks(root).into_iter().collect(),
            net_dev: open("/proc/net/dev"),
            pressure: (|| Some([pressure("cpu")?, pressure("memory")?, pressure("io")?]))(),
            cpuinfo: if frequencies.is_empty() { open("/proc/cpuinfo") } else { None },
            frequencies,
            thermometers: temperature_sensors(root),
            throttles: cpus
                .iter()
                .flat_map(|cpu| throttles.iter().filter_map(|file| open_of_cpu(*cpu, file)))
                .collect(),
            controller,
            buffer: Vec::new(),
        }
    }

    pub fn read(&mut self, workload: Option<WorkloadUsage>, concurrent: WorkloadUsage) -> TelemetryReading {
        let before = nanos(clock_gettime(ClockId::ThreadCPUTime));
        let at_ns = nanos(clock_gettime(ClockId::Monotonic));
        let mut reading = TelemetryReading { at_ns, workload, concurrent, ..TelemetryReading::default() };
        let buffer = &mut self.buffer;
        if let Some(source) = &self.stat {
            parse::stat(&source.read(buffer), &mut reading);
        }
        if let Some(source) = &self.meminfo {
            reading.memory = parse::meminfo(&source.read(buffer));
        }
        if let Some(source) = &self.vmstat {
            reading.events = parse::vmstat(&source.read(buffer));
        }
        if let Some(source) = &self.diskstats {
            reading.disks = parse::diskstats(&source.read(buffer), |name| self.disks.contains(name));
        }
        if let Some(source) = &self.net_dev {
            reading.interfaces = parse::net_dev(&source.read(buffer));
        }
        reading.pressure = self.pressure.as_ref().map(|[cpu, memory, io]| SystemPressure {
            cpu: parse::pressure(&cpu.read(buffer)),
            memory: parse::pressure(&memory.read(buffer)),
            io: parse::pressure(&io.read(buffer)),
        });
        for (name, source) in &self.thermometers {
            if let Ok(millidegrees) = source.read(buffer).trim().parse::<i64>() {
                reading.temperatures.insert(name.clone(), millidegrees as f64 / 1000.0);
            }
        }
        if !self.throttles.is_empty() {
            reading.throttles = Some(self.throttles.iter().filter_map(|source| source.number(buffer)).sum());
        }
        self.read_frequencies(&mut reading);
        reading.own_cpu_ns = self.own_cpu_ns();
        reading.cost_ns = nanos(clock_gettime(ClockId::ThreadCPUTime)).saturating_sub(before);
        reading
    }

    /// Time in which the tasks of a cgroup waited, where its version accounts it.
    pub fn pressure_of(&self, cgroup: &Cgroup) -> Option<SystemPressure> {
        let read = |name: &str| Some(parse::pressure(&fs::read_to_string(cgroup.folder().join(name)).ok()?));
        Some(SystemPressure { cpu: read("cpu.pressure")?, memory: read("memory.pressure")?, io: read("io.pressure")? })
    }

    /// Bytes that these processes have read from and written to storage.
    pub fn storage_io(&self, pids: impl IntoIterator<Item = u32>) -> (u64, u64) {
        let io_of = |pid| parse::io(&self.root.text(format!("/proc/{pid}/io")).unwrap_or_default());
        let sum = |(read, written): (u64, u64), pid| {
            let (more_read, more_written) = io_of(pid);
            (read.saturating_add(more_read), written.saturating_add(more_written))
        };
        pids.into_iter().fold((0, 0), sum)
    }

    fn read_frequencies(&mut self, reading: &mut TelemetryReading) {
        let buffer = &mut self.buffer;
        if let Some(source) = &self.cpuinfo {
            let found = cpuinfo::frequencies(&source.read(buffer));
            reading.cpus.iter_mut().for_each(|cpu| cpu.khz = found.get(&cpu.id).copied());
        }
        for (id, source) in &self.frequencies {
            if let Some(cpu) = reading.cpus.iter_mut().find(|cpu| cpu.id == *id) {
                cpu.khz = source.number(buffer);
            }
        }
    }

    /// CPU time of this process and of the local controller.
    fn own_cpu_ns(&self) -> u64 {
        let driver = self.controller.and_then(|pid| tree::read_stat(&self.root, pid));
        let ticks = driver.map_or(0, |entry| entry.cpu_ticks);
        nanos(clock_gettime(ClockId::ProcessCPUTime)).saturating_add(ticks.saturating_mul(tree::TICK_NS))
    }
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_two_readings_increase() {
        let mut reader = TelemetryReader::new(&SysRoot::real(), None);
        let first = reader.read(None, WorkloadUsage::default());
        let second = reader.read(Some(WorkloadUsage::default()), WorkloadUsage::default());
        assert!(second.at_ns > first.at_ns && second.cpu.total() >= first.cpu.total());
        assert!(!first.cpus.is_empty() && first.memory.available > 0 && first.context_switches > 0);
        assert!(second.own_cpu_ns > first.own_cpu_ns && first.cost_ns > 0);
        let text = serde_json::to_string(&second).unwrap();
        assert_eq!(serde_json::from_str::<TelemetryReading>(&text).unwrap(), second);
        eprintln!("a reading takes {} µs of CPU time and {} bytes of JSON", second.cost_ns / 1000, text.len());
    }

    #[test]
    fn a_system_without_counters_has_an_empty_reading() {
        let reading = TelemetryReader::new(&SysRoot::at("/nosuch"), None).read(None, WorkloadUsage::default());
        let empty = TelemetryReading {
            at_ns: reading.at_ns,
            cost_ns: reading.cost_ns,
            own_cpu_ns: reading.own_cpu_ns,
            ..TelemetryReading::default()
        };
        assert_eq!(reading, empty);
    }
}
