//! The counters of a reading from the files of `/proc`. Each parser accepts any text and ignores unknown content,
//! because a kernel may add lines and columns.

use std::collections::BTreeMap;

use wb_model::Bytes;

use crate::proc::{self, pressure::StallKind};
use crate::process::tree::TICK_NS;

use super::reading::{
    CpuReading, CpuTimes, DiskCounters, Memory, NetworkCounters, StallTimes, TelemetryReading, VmEvents,
};

/// The sector size in `/proc/diskstats`, in bytes, for all disks.
const SECTOR_BYTES: u64 = 512;

/// Parses `/proc/stat` into the reading's CPU times and counts.
pub(super) fn stat(text: &str, reading: &mut TelemetryReading) {
    for line in text.lines() {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let first = || rest.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        match name {
            "cpu" => reading.cpu = cpu_times(rest),
            "ctxt" => reading.context_switches = first(),
            "intr" => reading.interrupts = first(),
            "processes" => reading.forks = first(),
            "procs_running" => reading.runnable_tasks = first(),
            _ => {
                if let Some(id) = name.strip_prefix("cpu").and_then(|id| id.parse().ok()) {
                    reading.cpus.push(CpuReading { id, times: cpu_times(rest), khz: None });
                }
            }
        }
    }
}

/// The times of all CPUs together in the text of `/proc/stat`.
pub fn total_cpu_times(text: &str) -> CpuTimes {
    text.lines().find_map(|line| line.strip_prefix("cpu ")).map(cpu_times).unwrap_or_default()
}

fn cpu_times(text: &str) -> CpuTimes {
    let mut fields = numbers(text);
    let mut next = || fields.next().unwrap_or(0).saturating_mul(TICK_NS);
    CpuTimes {
        user: next(),
        nice: next(),
        system: next(),
        idle: next(),
        iowait: next(),
        irq: next(),
        softirq: next(),
        steal: next(),
    }
}

pub(super) fn meminfo(text: &str) -> Memory {
    let mut memory = Memory::default();
    let mut swap = [0, 0];
    for (name, Bytes(bytes)) in proc::meminfo::sizes(text) {
        match name {
            "MemFree" => memory.free = bytes,
            "MemAvailable" => memory.available = bytes,
            "Cached" => memory.cached = bytes,
            "Buffers" => memory.buffers = bytes,
            "Dirty" => memory.dirty = bytes,
            "Writeback" => memory.writeback = bytes,
            "AnonHugePages" => memory.anonymous_huge_pages = bytes,
            "SwapTotal" => swap[0] = bytes,
            "SwapFree" => swap[1] = bytes,
            _ => {}
        }
    }
    memory.swap_used = swap[0].saturating_sub(swap[1]);
    memory
}

pub(super) fn vmstat(text: &str) -> VmEvents {
    let mut events = VmEvents::default();
    for line in text.lines() {
        let Some((name, number)) = line.split_once(' ') else { continue };
        let field = match name {
            "pgfault" => &mut events.faults,
            "pgmajfault" => &mut events.major_faults,
            "pswpin" => &mut events.swapped_in,
            "pswpout" => &mut events.swapped_out,
            "thp_fault_alloc" => &mut events.huge_page_faults,
            "thp_fault_fallback" => &mut events.huge_page_fallbacks,
            "thp_collapse_alloc" => &mut events.huge_page_collapses,
            "thp_split_page" => &mut events.huge_page_splits,
            "compact_stall" => &mut events.compaction_stalls,
            "numa_pages_migrated" => &mut events.numa_migrations,
            "oom_kill" => &mut events.oom_kills,
            // One line per zone: allocstall_dma, allocstall_normal, …
            name if name.starts_with("allocstall") => &mut events.allocation_stalls,
            _ => continue,
        };
        *field = field.saturating_add(number.trim().parse().unwrap_or(0));
    }
    events
}

/// Parses `/proc/diskstats`, for the disks that `is_selected` accepts.
pub(super) fn diskstats(text: &str, is_selected: impl Fn(&str) -> bool) -> BTreeMap<String, DiskCounters> {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(2);
        let name = fields.next().filter(|name| is_selected(name))?;
        let values: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        let value = |index: usize| values.get(index).copied().unwrap_or(0);
        let disk = DiskCounters {
            reads: value(0),
            read_bytes: value(2).saturating_mul(SECTOR_BYTES),
            writes: value(4),
            written_bytes: value(6).saturating_mul(SECTOR_BYTES),
            in_flight: value(8),
            busy_ns: value(9).saturating_mul(1_000_000),
        };
        Some((name.to_owned(), disk))
    };
    text.lines().filter_map(line).collect()
}

pub(super) fn net_dev(text: &str) -> BTreeMap<String, NetworkCounters> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let values: Vec<u64> = numbers(rest).collect();
        let value = |index: usize| values.get(index).copied().unwrap_or(0);
        let interface = NetworkCounters {
            received_bytes: value(0),
            received_packets: value(1),
            receive_errors_and_drops: value(2).saturating_add(value(3)),
            sent_bytes: value(8),
            sent_packets: value(9),
            transmit_errors_and_drops: value(10).saturating_add(value(11)),
        };
        Some((name.trim().to_owned(), interface))
    };
    text.lines().filter_map(line).collect()
}

/// The stall times in a file of `/proc/pressure`.
pub(super) fn pressure(text: &str) -> StallTimes {
    let total = |kind| proc::pressure::value::<u64>(text, kind, "total").unwrap_or(0).saturating_mul(1000);
    StallTimes { some: total(StallKind::Some), full: total(StallKind::Full) }
}

/// Parses `/proc/PID/io`: bytes read from and written to storage.
pub(super) fn io(text: &str) -> (u64, u64) {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok()).unwrap_or(0)
    };
    (field("read_bytes"), field("write_bytes"))
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split_ascii_whitespace().map_while(|field| field.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn proc_stat_is_read_with_steal() {
        let mut reading = TelemetryReading::default();
        stat(
            "cpu  10 1 2 30 4 5 6 7 8 9\ncpu3 1 0 0 3\nintr 99 1 2\nctxt 55\nprocesses 7\nprocs_running 2\n",
            &mut reading,
        );
        assert_eq!(
            (reading.cpu.user, reading.cpu.steal, reading.cpu.total()),
            (10 * TICK_NS, 7 * TICK_NS, 65 * TICK_NS)
        );
        assert_eq!((reading.cpus[0].id, reading.cpus[0].times.idle), (3, 3 * TICK_NS));
        assert_eq!(
            (reading.interrupts, reading.context_switches, reading.forks, reading.runnable_tasks),
            (99, 55, 7, 2)
        );
    }

    #[test]
    fn memory_and_its_events_are_read() {
        let memory =
            meminfo("MemFree:  5 kB\nAnonHugePages: 2048 kB\nSwapTotal: 8 kB\nSwapFree: 3 kB\nHugePages_Total: 1\n");
        assert_eq!((memory.free, memory.anonymous_huge_pages, memory.swap_used), (5 << 10, 2 << 20, 5 << 10));
        let events = vmstat("pgfault 3\npgmajfault 2\nallocstall_dma 1\nallocstall_normal 4\nother 9\n");
        assert_eq!((events.faults, events.major_faults, events.allocation_stalls), (3, 2, 5));
    }

    #[test]
    fn disks_and_interfaces_are_read() {
        let text = " 254 0 vda 10 1 16 3 20 2 32 4 5 6 7\n 254 1 vda1 1 1 1 1 1 1 1 1 1 1 1\n";
        let disks = diskstats(text, |name| name == "vda");
        assert_eq!(disks.len(), 1);
        let expected = DiskCounters {
            reads: 10,
            read_bytes: 8192,
            writes: 20,
            written_bytes: 16384,
            in_flight: 5,
            busy_ns: 6_000_000,
        };
        assert_eq!(disks["vda"], expected);
        let interfaces = net_dev("Inter-| Receive\n face |bytes\n  lo: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
        let expected = NetworkCounters {
            received_bytes: 1,
            received_packets: 2,
            receive_errors_and_drops: 7,
            sent_bytes: 5,
            sent_packets: 6,
            transmit_errors_and_drops: 15,
        };
        assert_eq!(interfaces["lo"], expected);
    }

    #[test]
    fn pressure_and_io_are_read() {
        let stall = pressure("some avg10=0.24 avg60=1.0 avg300=2.0 total=145\nfull avg10=0.00 total=12\n");
        assert_eq!(stall, StallTimes { some: 145_000, full: 12_000 });
        assert_eq!(io("rchar: 1\nread_bytes: 2\nwrite_bytes: 3\ncancelled_write_bytes: 4\n"), (2, 3));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic_any_parser(
            any: String,
            near in "((cpu[0-9]{0,3}|intr|MemFree|pgfault|allocstall_x|some|full|processor|cpu MHz|read_bytes| 8 0 sda|eth0)[: ]{0,3}(total=)?([0-9]{1,22}[ .k]?){0,14}\n){0,6}",
        ) {
            for text in [&any, &near] {
                let mut reading = TelemetryReading::default();
                stat(text, &mut reading);
                let _ = (reading.cpu.total(), reading.cpu.task_time());
                meminfo(text);
                vmstat(text);
                diskstats(text, |_| true);
                net_dev(text);
                pressure(text);
                io(text);
            }
        }
    }
}
