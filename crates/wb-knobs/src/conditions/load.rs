//! Load of other processes and of other virtual machines.

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};

/// CPU time of other processes.
pub struct OtherProcesses;

/// Tolerated CPU time of other processes together, in percent of one CPU: two clock ticks in the sampled time.
const QUIET_PERCENT: f64 = 10.0;

impl Condition for OtherProcesses {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "other-processes",
            why: "they take CPU time, cache and memory bandwidth from the workload, and not the same amount each time",
            evidence: "CPU time of every process over 200 ms, with a resolution of 10 ms, in percent of one CPU",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        if sample.seconds <= 0.0 || sample.after.processes.is_empty() {
            return vec![ConditionReport::unsupported("processes cannot be observed here")];
        }
        let users = cpu_consumers(sample);
        let total: f64 = users.iter().map(|(_, percent)| percent).sum();
        if total <= QUIET_PERCENT {
            return vec![ConditionReport::no_noise(format!("{total:.0} % of one CPU"))];
        }
        let names = users.iter().take(5).map(|(name, percent)| format!("{name} {percent:.0} %"));
        let state = format!("{total:.0} % of one CPU: {}", names.collect::<Vec<_>>().join(", "));
        vec![ConditionReport::noisy(
            state,
            "stop unneeded processes, or wait until they have finished",
            Some("top -o %CPU".to_owned()),
        )]
    }
}

/// The CPU usage of the other processes in percent of one CPU, the highest first.
fn cpu_consumers<'a>(sample: &'a SystemSample<'_>) -> Vec<(&'a str, f64)> {
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let own = std::process::id();
    let usage = sample.after.processes.iter().filter(|(id, _)| **id != own).map(|(id, process)| {
        let before = sample.before.processes.get(id).filter(|before| before.started == process.started);
        let ticks = process.own_cpu_ticks.saturating_sub(before.map_or(0, |before| before.own_cpu_ticks));
        (process.name.as_str(), ticks as f64 / per_second / sample.seconds * 100.0)
    });
    let mut usage: Vec<_> = usage.filter(|(_, percent)| *percent > 0.0).collect();
    usage.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    usage
}

pub struct LoadAverage;

impl Condition for LoadAverage {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "load-average",
            why: "a machine that was busy until now is still hot, and may still write back data",
            evidence: "proc_loadavg(5): running and uninterruptibly waiting tasks, averaged over one minute",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let text = sample.root.text("/proc/loadavg").unwrap_or_default();
        let load = text.split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
        vec![match load {
            None => ConditionReport::unsupported("the kernel does not report its load"),
            Some(load) if load < 0.5 => ConditionReport::no_noise(format!("{load:.2}")),
            Some(load) => {
                ConditionReport::noisy(format!("{load:.2}"), "wait until it is below 0.5", Some("uptime".to_owned()))
            }
        }]
    }
}

/// CPU time stolen by the hypervisor.
pub struct Steal;

/// Tolerated steal, in percent of all CPU time.
const QUIET_STEAL_PERCENT: f64 = 1.0;

impl Condition for Steal {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "steal",
            why: "the host runs other guests while this machine appears to run",
            evidence: "steal in /proc/stat, now and since boot; samples take longer by about the same share, at unpredictable times",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let (before, after) = (&sample.before.cpu, &sample.after.cpu);
        if after.total() == 0 {
            return vec![ConditionReport::unsupported("the kernel does not report its CPU times")];
        }
        let percent = |steal: u64, total: u64| steal as f64 / total.max(1) as f64 * 100.0;
        let now = percent(after.steal.saturating_sub(before.steal), after.total().saturating_sub(before.total()));
        let since_boot = percent(after.steal, after.total());
        let state = format!("{now:.1} % now, {since_boot:.1} % since boot");
        vec![if now.max(since_boot) < QUIET_STEAL_PERCENT {
            ConditionReport::no_noise(state)
        } else {
            ConditionReport::noisy(state, "use a host or an instance type with dedicated CPUs", None)
        }]
    }
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::counters::CounterSnapshot;
    use crate::verdict::NoiseVerdict;

    fn fake_system(ticks: u64, started: u64, steal: u64, idle: u64) -> FakeRoot {
        FakeRoot::new().file("/proc/stat", format!("cpu  0 0 0 {idle} 0 0 0 {steal} 0 0\n")).file(
            "/proc/77777777/stat",
            format!("77777777 (gzip x) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {started}"),
        )
    }

    fn observe(condition: &dyn Condition, before: &FakeRoot, after: &FakeRoot) -> ConditionReport {
        let (first, second) = (CounterSnapshot::read(&before.root()), CounterSnapshot::read(&after.root()));
        let root = after.root();
        condition.observe(&SystemSample::between(&root, first, second, 0.2)).remove(0)
    }

    #[test]
    fn a_busy_process_is_named() {
        let report = observe(&OtherProcesses, &fake_system(100, 5, 0, 0), &fake_system(110, 5, 0, 0));
        assert_eq!(report.verdict, NoiseVerdict::Noisy);
        assert_eq!(report.state, "50 % of one CPU: gzip x 50 %");
        assert_eq!(
            observe(&OtherProcesses, &fake_system(100, 5, 0, 0), &fake_system(101, 5, 0, 0)).verdict,
            NoiseVerdict::NoNoise
        );
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let report = observe(&OtherProcesses, &fake_system(100, 5, 0, 0), &fake_system(4, 9, 0, 0));
        assert_eq!(report.state, "20 % of one CPU: gzip x 20 %");
    }

    #[test]
    fn steal_counts_now_and_since_boot() {
        let report = observe(&Steal, &fake_system(0, 0, 0, 1000), &fake_system(0, 0, 1, 1019));
        assert_eq!((report.verdict, report.state.as_str()), (NoiseVerdict::Noisy, "5.0 % now, 0.1 % since boot"));
        assert_eq!(
            observe(&Steal, &fake_system(0, 0, 1, 1000), &fake_system(0, 0, 1, 1040)).verdict,
            NoiseVerdict::NoNoise
        );
    }
}
