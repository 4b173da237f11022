//! What there is too little of.

use wb_sys::{SysRoot, facts};

use crate::condition::{Condition, ConditionReport, SystemSample};

/// Tasks that wait for CPU, disk or memory.
pub struct Pressure;

/// Percent of time in which some task waited that is nothing unusual.
const QUIET_PERCENT: f64 = 5.0;

impl Condition for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }
    fn why(&self) -> &'static str {
        "tasks wait for what they need already before anything is measured"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, PSI: share of the last 10 s in which some task waited for CPU, disk or memory"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let waited = ["cpu", "io", "memory"].map(|what| some_avg10(seen.root, what).map(|percent| (what, percent)));
        let waited: Vec<_> = waited.into_iter().flatten().collect();
        if waited.is_empty() {
            return vec![ConditionReport::unsupported("the kernel does not count it: start it with psi=1")];
        }
        let state =
            waited.iter().map(|(what, percent)| format!("{what} {percent:.1} %")).collect::<Vec<_>>().join(", ");
        vec![match waited.iter().all(|(_, percent)| *percent < QUIET_PERCENT) {
            true => ConditionReport::quiet(state),
            false => ConditionReport::noisy(
                state,
                "wait until the machine is idle",
                Some("head /proc/pressure/*".to_owned()),
            ),
        }]
    }
}

/// Percent of the last 10 s in which some task waited.
fn some_avg10(root: &SysRoot, what: &str) -> Option<f64> {
    let text = root.text(format!("/proc/pressure/{what}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

/// Memory that is left.
pub struct AvailableMemory;

impl Condition for AvailableMemory {
    fn name(&self) -> &'static str {
        "memory"
    }
    fn why(&self) -> &'static str {
        "where little is left, the kernel reclaims while measuring, and huge pages are not to be had"
    }
    fn evidence(&self) -> &'static str {
        "MemAvailable of /proc/meminfo, or what is left to this process's cgroup, against all memory"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let (total, available) = (facts::memory::total(seen.root).0, facts::memory::available(seen.root).0);
        if total == 0 {
            return vec![ConditionReport::unsupported("the kernel does not show its memory")];
        }
        let percent = available as f64 / total as f64 * 100.0;
        let state = format!("{percent:.0} % available");
        vec![match percent >= 10.0 {
            true => ConditionReport::quiet(state),
            false => {
                ConditionReport::noisy(state, "end what holds memory", Some("ps aux --sort=-rss | head".to_owned()))
            }
        }]
    }
}

/// CPU time that a cgroup bounds.
pub struct CpuQuota;

impl Condition for CpuQuota {
    fn name(&self) -> &'static str {
        "cpu-quota"
    }
    fn why(&self) -> &'static str {
        "when the quota of a period is used up, everything stands still until the next"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, CFS Bandwidth Control: periods of 100 ms by default, so that stalls of tens of milliseconds come into every sample"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let Ok(membership) = seen.root.text("/proc/self/cgroup") else {
            return vec![ConditionReport::unsupported("the kernel does not show this process's cgroup")];
        };
        let tightest = membership.lines().flat_map(|line| quotas(seen.root, line)).min_by(f64::total_cmp);
        vec![match tightest {
            None => ConditionReport::quiet("none"),
            Some(cpus) => ConditionReport::noisy(
                format!("{cpus:.2} CPUs"),
                "run outside of the cgroup, or in a container without a limit of CPU time",
                None,
            ),
        }]
    }
}

/// The quotas, in CPUs, of the cgroup that a line of `/proc/self/cgroup` names and of those above it.
fn quotas(root: &SysRoot, line: &str) -> Vec<f64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let quota = |folder: &str| match controllers {
        "" => {
            let text = root.text(format!("/sys/fs/cgroup{folder}/cpu.max")).ok()?;
            let (quota, period) = text.split_once(' ')?;
            ratio(quota, period)
        }
        _ => {
            let text = |name: &str| root.text(format!("/sys/fs/cgroup/cpu{folder}/cpu.cfs_{name}_us")).ok();
            ratio(&text("quota")?, &text("period")?)
        }
    };
    if !controllers.is_empty() && !controllers.split(',').any(|name| name == "cpu") {
        return Vec::new();
    }
    let path = path.trim_end_matches('/');
    let above = path.match_indices('/').map(|(end, _)| &path[..end]);
    above.chain([path]).filter_map(quota).collect()
}

/// `max` and -1 are no quota.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::doctor::Verdict;

    fn observe(condition: &dyn Condition, made: &FakeRoot) -> ConditionReport {
        condition.observe(&SystemSample::take(&made.root())).remove(0)
    }

    #[test]
    fn a_quota_anywhere_above_counts() {
        let made = FakeRoot::new()
            .file("/proc/self/cgroup", "3:cpu,cpuacct:/a/b\n0::/c\n")
            .file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000")
            .file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000")
            .file("/sys/fs/cgroup/c/cpu.max", "max 100000");
        let seen = observe(&CpuQuota, &made);
        assert_eq!((seen.verdict, seen.state.as_str()), (Verdict::Noisy, "0.50 CPUs"));
        let none = FakeRoot::new().file("/proc/self/cgroup", "0::/\n");
        assert_eq!(observe(&CpuQuota, &none).verdict, Verdict::Quiet);
    }

    #[test]
    fn waiting_tasks_are_seen() {
        let made = FakeRoot::new()
            .file("/proc/pressure/cpu", "some avg10=0.12 avg60=0.00 avg300=0.00 total=1\n")
            .file("/proc/pressure/io", "some avg10=42.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n");
        let seen = observe(&Pressure, &made);
        assert_eq!((seen.verdict, seen.state.as_str()), (Verdict::Noisy, "cpu 0.1 %, io 42.0 %"));
        assert!(matches!(observe(&Pressure, &FakeRoot::new()).verdict, Verdict::Unsupported { .. }));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "\\PC{0,30}|[0-9:/a-z,]{0,30}") {
            let _ = quotas(&FakeRoot::new().root(), &line);
        }
    }
}
