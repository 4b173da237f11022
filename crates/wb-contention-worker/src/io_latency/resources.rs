//! What the whole machine uses in a second: CPUs, memory, swap, pressure, and the kernel's statistics by name.

use std::collections::BTreeMap;
use std::fs;

use wb_sys::proc::meminfo;

use crate::prepared_worker::parse_io_stat;

/// Figures by name: `cpu`, `mem`, `mem-some`, `memory.stat/anon`, `vmstat/pgmajfault`. Shares are of 1, sizes in bytes,
/// counters per second. A counter that did not change is left out.
pub(super) type ResourceReport = BTreeMap<String, f64>;

/// Ticks of the CPUs since boot.
#[derive(Debug, Clone, Copy, Default)]
struct CpuTicks {
    all: f64,
    idle: f64,
    system: f64,
}

/// Reads the figures of each second, relative to those of the second before.
pub(super) struct ResourceReader {
    /// Folder of the root of cgroup v2; `None` without controllers.
    cgroups: Option<String>,
    device: String,
    cpu: CpuTicks,
    counters: BTreeMap<String, f64>,
}

/// A gauge has a value for each second; all other statistics grow since boot.
fn is_gauge(file: &str, name: &str) -> bool {
    let grows = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    match file {
        "io.stat" => name == "cost.vrate",
        "memory.stat" => !grows(&["workingset_", "pg", "thp_", "swp", "zswp", "numa_", "oom"]),
        _ => {
            let counted = grows(&["nr_dirtied", "nr_written", "nr_throttled", "nr_vmscan", "nr_foll_pin", "nr_tlb"]);
            name == "workingset_nodes" || name.starts_with("nr_") && !counted
        }
    }
}

impl ResourceReader {
    /// `io_stat` is that of the root of cgroup v2, `device` a number such as `259:5`.
    pub(super) fn new(io_stat: Option<&str>, device: &str) -> Self {
        let cgroups = io_stat.and_then(|path| path.strip_suffix("/io.stat")).map(str::to_owned);
        let mut reader =
            Self { cgroups, device: device.to_owned(), cpu: CpuTicks::default(), counters: BTreeMap::new() };
        // What grew since boot belongs to no second.
        let _ = reader.read(1.0);
        reader
    }

    /// The figures of the `period` seconds since the last reading. What this kernel does not report is left out.
    pub(super) fn read(&mut self, period: f64) -> ResourceReport {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut report = ResourceReport::new();
        self.add_cpu(&text("/proc/stat"), &mut report);
        let memory = text("/proc/meminfo");
        let size = |name| meminfo::size(&memory, name).map(|size| size.0 as f64);
        for (name, all, free) in [("mem", "MemTotal", "MemAvailable"), ("swap", "SwapTotal", "SwapFree")] {
            report.extend(size(all).zip(size(free)).map(|(all, free)| (name.to_owned(), (all - free).max(0.0))));
        }
        for (name, file) in [("cpu", "cpu"), ("mem", "memory"), ("io", "io")] {
            self.add_pressure(name, &text(&format!("/proc/pressure/{file}")), period, &mut report);
        }
        self.add_statistics("vmstat", pairs(&text("/proc/vmstat")), period, &mut report);
        if let Some(cgroups) = self.cgroups.clone() {
            let memory = text(&format!("{cgroups}/memory.stat"));
            self.add_statistics("memory.stat", pairs(&memory), period, &mut report);
            let io = parse_io_stat(&text(&format!("{cgroups}/io.stat")), &self.device);
            let io = io.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
            self.add_statistics("io.stat", io.collect(), period, &mut report);
        }
        report
    }

    fn add_cpu(&mut self, stat: &str, report: &mut ResourceReport) {
        let Some(ticks) = cpu_ticks(stat) else { return };
        let all = ticks.all - self.cpu.all;
        if all > 0.0 {
            report.insert("cpu".to_owned(), 1.0 - (ticks.idle - self.cpu.idle) / all);
            report.insert("sys".to_owned(), (ticks.system - self.cpu.system) / all);
        }
        self.cpu = ticks;
    }

    /// The part of the time in which some or all processes waited.
    fn add_pressure(&mut self, name: &str, text: &str, period: f64, report: &mut ResourceReport) {
        for line in text.lines() {
            let Some((kind, figures)) = line.split_once(' ') else { continue };
            let total = figures.rsplit_once("total=").and_then(|(_, total)| total.trim().parse::<f64>().ok());
            let Some(microseconds) = total else { continue };
            let name = format!("{name}-{kind}");
            let waited = self.growth(&name, microseconds / 1e6);
            report.insert(name, waited / period);
        }
    }

    fn add_statistics(&mut self, file: &str, statistics: Vec<(String, f64)>, period: f64, report: &mut ResourceReport) {
        for (name, value) in statistics {
            let key = format!("{file}/{name}");
            let value = if is_gauge(file, &name) { value } else { self.growth(&key, value) / period };
            if value != 0.0 {
                report.insert(key, value);
            }
        }
    }

    fn growth(&mut self, name: &str, value: f64) -> f64 {
        let before = self.counters.insert(name.to_owned(), value).unwrap_or(value);
        (value - before).max(0.0)
    }
}

fn pairs(text: &str) -> Vec<(String, f64)> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

fn cpu_ticks(stat: &str) -> Option<CpuTicks> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    let sum = |fields: &[usize]| fields.iter().filter_map(|position| ticks.get(*position)).sum::<f64>();
    // user nice system idle iowait irq softirq steal; time of guests is part of user and nice.
    Some(CpuTicks { all: sum(&[0, 1, 2, 3, 4, 5, 6, 7]), idle: sum(&[3, 4]), system: sum(&[2, 5, 6]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_per_second_and_gauges_as_they_are() {
        let mut reader = ResourceReader::new(None, "259:0");
        let mut report = ResourceReport::new();
        let text = |position: u64| {
            format!(
                "nr_free_pages {}\nnr_dirtied {}\npgmajfault {}\nworkingset_nodes 4\n",
                position,
                position,
                position * 8
            )
        };
        reader.add_statistics("vmstat", pairs(&text(100)), 2.0, &mut report);
        report.clear();
        reader.add_statistics("vmstat", pairs(&text(110)), 2.0, &mut report);
        let found: Vec<(&str, f64)> = report.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let expected = [
            ("vmstat/nr_dirtied", 5.0),
            ("vmstat/nr_free_pages", 110.0),
            ("vmstat/pgmajfault", 40.0),
            ("vmstat/workingset_nodes", 4.0),
        ];
        assert_eq!(found, expected);
        for (file, name, expected) in [
            ("memory.stat", "anon", true),
            ("memory.stat", "pagetables", true),
            ("memory.stat", "anon_thp", true),
            ("memory.stat", "pgscan", false),
            ("memory.stat", "workingset_refault_anon", false),
            ("io.stat", "cost.vrate", true),
            ("io.stat", "rbytes", false),
        ] {
            assert_eq!(is_gauge(file, name), expected, "{file} {name}");
        }
    }

    #[test]
    fn this_machine_is_read() {
        let mut reader = ResourceReader::new(None, "259:0");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let report = reader.read(0.05);
        assert!((0.0..=1.0).contains(&report["cpu"]) && (0.0..=1.0).contains(&report["sys"]), "{report:?}");
        assert!(report["mem"] > 0.0 && report["vmstat/nr_free_pages"] > 0.0, "{report:?}");
    }

    #[test]
    fn shares_of_the_cpus_and_of_waiting_are_those_of_the_period() {
        let mut reader = ResourceReader::new(None, "259:0");
        reader.cpu = cpu_ticks("cpu  100 0 50 800 50 0 0 0 0 0\n").unwrap_or_default();
        let mut report = ResourceReport::new();
        reader.add_cpu("cpu  150 0 60 830 60 0 0 0 0 0\n", &mut report);
        assert_eq!((report["cpu"], report["sys"]), (0.6, 0.1));
        let line = |total: u64| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
        reader.counters.clear();
        reader.add_pressure("mem", &line(1_000_000), 1.0, &mut report);
        reader.add_pressure("mem", &line(1_500_000), 2.0, &mut report);
        assert_eq!(report["mem-some"], 0.25);
    }
}
