//! What else is active on the machine while a round is observed.

use wb_sys::SysRoot;
use wb_sys::process::tree;
use wb_sys::telemetry::disturbance;
use wb_sys::telemetry::{CpuTimes, DisturbanceMark, TelemetryReader, TelemetryReading, Thresholds, WorkloadUsage};

/// With a faked CPU load, others disturb only if they leave no CPU idle: at most this part of all CPU time.
const BUSY_IDLE: f64 = 0.1;

/// Compares the machine's counters at both ends of a round with those of the workload.
pub struct DisturbanceMonitor {
    root: SysRoot,
    reader: TelemetryReader,
    workload: u32,
    start: TelemetryReading,
}

impl DisturbanceMonitor {
    /// `workload` is a process id.
    pub fn begin(root: &SysRoot, workload: u32) -> Self {
        let mut reader = TelemetryReader::new(root, None);
        let start = read(&mut reader, root, workload);
        Self { root: root.clone(), reader, workload, start }
    }

    pub fn end(mut self, is_cpu_faked: bool) -> Vec<DisturbanceMark> {
        let end = read(&mut self.reader, &self.root, self.workload);
        let marks = disturbance::compute(&self.start, &end, &Thresholds::default()).marks;
        if is_cpu_faked && idle_part(&self.start.cpu, &end.cpu) > BUSY_IDLE {
            return marks.into_iter().filter(|mark| matches!(mark, DisturbanceMark::ForeignIo { .. })).collect();
        }
        marks
    }
}

/// The kernel's threads count with the workload: they swap and write back for its sake.
fn read(reader: &mut TelemetryReader, root: &SysRoot, workload: u32) -> TelemetryReading {
    let (read_bytes, written_bytes) = reader.storage_io([workload]);
    let processes = tree::all(root);
    let ticks = |is_counted: &dyn Fn(&tree::ProcessStat) -> bool| {
        processes.iter().filter(|process| is_counted(process)).map(|process| process.own_cpu_ticks).sum::<u64>()
    };
    let usage = WorkloadUsage {
        cpu_ns: ticks(&|process| process.pid == workload) * tree::TICK_NS,
        read_bytes,
        written_bytes,
        processes: 1,
        pressure: None,
    };
    let kernel = WorkloadUsage {
        cpu_ns: ticks(&|process| process.is_kernel_thread) * tree::TICK_NS,
        ..WorkloadUsage::default()
    };
    reader.read(Some(usage), kernel)
}

fn idle_part(start: &CpuTimes, end: &CpuTimes) -> f64 {
    let idle = |times: &CpuTimes| times.idle.saturating_add(times.iowait);
    let total = end.total().saturating_sub(start.total()).max(1);
    idle(end).saturating_sub(idle(start)) as f64 / total as f64
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;

    /// A machine after `seconds`, with two CPUs, of which others use `others` and the workload, process 7, the rest of
    /// `busy`.
    fn machine(seconds: u64, others: u64, busy: u64) -> FakeRoot {
        let (user, idle) = (busy * seconds, (200 - busy) * seconds);
        let own = (busy - others) * seconds;
        let cpu = format!("{user} 0 0 {idle} 0 0 0 0 0 0");
        FakeRoot::new()
            .file("/proc/stat", format!("cpu {cpu}\ncpu0 {cpu}\ncpu1 {cpu}\n"))
            .file("/proc/7/stat", format!("7 (hashd) S 1 1 1 0 -1 0 0 0 0 0 {own} 0 0 0 20 0 1 0 5 0 0"))
            .file("/proc/7/io", "read_bytes: 0\nwrite_bytes: 0\n")
    }

    fn marks(others: u64, busy: u64, is_cpu_faked: bool) -> usize {
        let before = machine(0, others, busy);
        let mut monitor = DisturbanceMonitor::begin(&before.root(), 7);
        let after = machine(30, others, busy);
        (monitor.root, monitor.reader) = (after.root(), TelemetryReader::new(&after.root(), None));
        monitor.end(is_cpu_faked).len()
    }

    #[test]
    fn cpu_time_of_others_disturbs_unless_the_load_is_faked_and_cpus_are_idle() {
        assert_eq!(marks(0, 150, false), 0);
        assert_eq!(marks(50, 150, false), 1);
        assert_eq!(marks(50, 150, true), 0);
        assert_eq!(marks(50, 195, true), 1);
    }
}
