//! Who else uses the CPUs.

use crate::condition::{Condition, ConditionReport, SystemSample};

/// CPU time of other processes.
pub struct OtherProcesses;

/// Percent of one CPU that others may use together: two clock ticks in the time looked on.
const QUIET_PERCENT: f64 = 10.0;

impl Condition for OtherProcesses {
    fn name(&self) -> &'static str {
        "other-processes"
    }
    fn why(&self) -> &'static str {
        "what they use of CPUs, caches and memory bandwidth is missing to what is measured, and not the same each time"
    }
    fn evidence(&self) -> &'static str {
        "CPU time of every process over 200 ms, to 10 ms, in percent of one CPU"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        if seen.seconds <= 0.0 || seen.after.processes.is_empty() {
            return vec![ConditionReport::unsupported("processes cannot be watched here")];
        }
        let users = cpu_consumers(seen);
        let total: f64 = users.iter().map(|(_, percent)| percent).sum();
        if total <= QUIET_PERCENT {
            return vec![ConditionReport::quiet(format!("{total:.0} % of one CPU"))];
        }
        let names = users.iter().take(5).map(|(name, percent)| format!("{name} {percent:.0} %"));
        let state = format!("{total:.0} % of one CPU: {}", names.collect::<Vec<_>>().join(", "));
        vec![ConditionReport::noisy(
            state,
            "end what need not run, or wait until it is done",
            Some("top -o %CPU".to_owned()),
        )]
    }
}

/// Processes other than this one and what they used, in percent of one CPU, most first.
fn cpu_consumers<'a>(seen: &'a SystemSample<'_>) -> Vec<(&'a str, f64)> {
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let own = std::process::id();
    let used = seen.after.processes.iter().filter(|(id, _)| **id != own).map(|(id, process)| {
        let before = seen.before.processes.get(id).filter(|before| before.started == process.started);
        let ticks = process.ticks.saturating_sub(before.map_or(0, |before| before.ticks));
        (process.name.as_str(), ticks as f64 / per_second / seen.seconds * 100.0)
    });
    let mut used: Vec<_> = used.filter(|(_, percent)| *percent > 0.0).collect();
    used.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    used
}

/// Processes that run or wait, on average over a minute.
pub struct LoadAverage;

impl Condition for LoadAverage {
    fn name(&self) -> &'static str {
        "load-average"
    }
    fn why(&self) -> &'static str {
        "a machine that was just busy is still hot, and writes back what it was busy with"
    }
    fn evidence(&self) -> &'static str {
        "proc_loadavg(5): running and uninterruptibly waiting tasks, averaged over one minute"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let text = seen.root.text("/proc/loadavg").unwrap_or_default();
        let load = text.split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
        vec![match load {
            None => ConditionReport::unsupported("the kernel does not show its load"),
            Some(load) if load < 0.5 => ConditionReport::quiet(format!("{load:.2}")),
            Some(load) => {
                ConditionReport::noisy(format!("{load:.2}"), "wait until it is below 0.5", Some("uptime".to_owned()))
            }
        }]
    }
}

/// CPU time that the hypervisor gave to others.
pub struct Steal;

/// Percent of all CPU time that may be missing.
const QUIET_STEAL_PERCENT: f64 = 1.0;

impl Condition for Steal {
    fn name(&self) -> &'static str {
        "steal"
    }
    fn why(&self) -> &'static str {
        "the host runs others while this machine believes to run"
    }
    fn evidence(&self) -> &'static str {
        "steal of /proc/stat, now and since the start; a sample is longer by about as much, at times when others choose"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let (before, after) = (&seen.before, &seen.after);
        if after.ticks == 0 {
            return vec![ConditionReport::unsupported("the kernel does not show its CPU times")];
        }
        let percent = |steal: u64, ticks: u64| steal as f64 / ticks.max(1) as f64 * 100.0;
        let now = percent(after.steal.saturating_sub(before.steal), after.ticks.saturating_sub(before.ticks));
        let ever = percent(after.steal, after.ticks);
        let state = format!("{now:.1} % now, {ever:.1} % since the start");
        vec![match now.max(ever) < QUIET_STEAL_PERCENT {
            true => ConditionReport::quiet(state),
            false => ConditionReport::noisy(state, "a host or an instance type whose CPUs are not shared", None),
        }]
    }
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::counters::CounterSnapshot;
    use crate::doctor::Verdict;

    fn made(ticks: u64, started: u64, steal: u64, idle: u64) -> FakeRoot {
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
        let seen = observe(&OtherProcesses, &made(100, 5, 0, 0), &made(110, 5, 0, 0));
        assert_eq!(seen.verdict, Verdict::Noisy);
        assert_eq!(seen.state, "50 % of one CPU: gzip x 50 %");
        assert_eq!(observe(&OtherProcesses, &made(100, 5, 0, 0), &made(101, 5, 0, 0)).verdict, Verdict::Quiet);
    }

    #[test]
    fn a_number_that_came_again_is_another_process() {
        let seen = observe(&OtherProcesses, &made(100, 5, 0, 0), &made(4, 9, 0, 0));
        assert_eq!(seen.state, "20 % of one CPU: gzip x 20 %");
    }

    #[test]
    fn stolen_time_counts_now_and_ever() {
        let seen = observe(&Steal, &made(0, 0, 0, 1000), &made(0, 0, 1, 1019));
        assert_eq!((seen.verdict, seen.state.as_str()), (Verdict::Noisy, "5.0 % now, 0.1 % since the start"));
        assert_eq!(observe(&Steal, &made(0, 0, 1, 1000), &made(0, 0, 1, 1040)).verdict, Verdict::Quiet);
    }
}
