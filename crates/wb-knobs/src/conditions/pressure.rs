//! Scarce resources: pressure, available memory and CPU quotas.

use wb_sys::proc::cgroup::{CgroupMembership, memberships};
use wb_sys::proc::pressure::{StallKind, value};
use wb_sys::{SysRoot, facts};

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};

/// Pressure stall information: tasks that wait for CPU, disk or memory.
pub struct Pressure;

/// Pressure that is normal on a quiet system, in percent of the time.
const QUIET_PERCENT: f64 = 5.0;

impl Condition for Pressure {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "pressure",
            why: "tasks wait for resources even before the measurement starts",
            evidence: "kernel documentation, PSI: share of the last 10 s in which some task waited for CPU, disk or memory",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let shares = ["cpu", "io", "memory"]
            .map(|resource| some_avg10(sample.root, resource).map(|percent| (resource, percent)));
        let shares: Vec<_> = shares.into_iter().flatten().collect();
        if shares.is_empty() {
            return vec![ConditionReport::unsupported("the kernel does not report pressure: boot it with psi=1")];
        }
        let state = shares
            .iter()
            .map(|(resource, percent)| format!("{resource} {percent:.1} %"))
            .collect::<Vec<_>>()
            .join(", ");
        vec![if shares.iter().all(|(_, percent)| *percent < QUIET_PERCENT) {
            ConditionReport::no_noise(state)
        } else {
            ConditionReport::noisy(state, "wait until the machine is idle", Some("head /proc/pressure/*".to_owned()))
        }]
    }
}

/// Share of the last 10 s in which some task waited for a resource, in percent.
fn some_avg10(root: &SysRoot, resource: &str) -> Option<f64> {
    value(&root.text(format!("/proc/pressure/{resource}")).ok()?, StallKind::Some, "avg10")
}

pub struct AvailableMemory;

impl Condition for AvailableMemory {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "memory",
            why: "when memory is scarce, the kernel reclaims during measurements, and huge pages are unavailable",
            evidence: "MemAvailable of /proc/meminfo, or the headroom of this process's cgroup, as a share of all memory",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let (total, available) = (facts::memory::total(sample.root).0, facts::memory::available(sample.root).0);
        if total == 0 {
            return vec![ConditionReport::unsupported("the kernel does not report its memory")];
        }
        let percent = available as f64 / total as f64 * 100.0;
        let state = format!("{percent:.0} % available");
        vec![if percent >= 10.0 {
            ConditionReport::no_noise(state)
        } else {
            ConditionReport::noisy(
                state,
                "stop processes that use much memory",
                Some("ps aux --sort=-rss | head".to_owned()),
            )
        }]
    }
}

pub struct CpuQuota;

impl Condition for CpuQuota {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "cpu-quota",
            why: "when the quota of a period is used up, all processes stop until the next period",
            evidence: "kernel documentation, CFS Bandwidth Control: periods of 100 ms by default, which cause stalls of tens of milliseconds in every sample",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let Ok(text) = sample.root.text("/proc/self/cgroup") else {
            return vec![ConditionReport::unsupported("the kernel does not report this process's cgroup")];
        };
        let tightest = memberships(&text).flat_map(|group| quotas(sample.root, group)).min_by(f64::total_cmp);
        vec![match tightest {
            None => ConditionReport::no_noise("none"),
            Some(cpus) => ConditionReport::noisy(
                format!("{cpus:.2} CPUs"),
                "run outside of the cgroup, or in a container without a CPU limit",
                None,
            ),
        }]
    }
}

/// The quotas, in CPUs, of a cgroup and of its ancestors.
fn quotas(root: &SysRoot, group: CgroupMembership<'_>) -> Vec<f64> {
    let quota = |folder: &str| {
        if group.is_unified() {
            let text = root.text(format!("/sys/fs/cgroup{folder}/cpu.max")).ok()?;
            let (quota, period) = text.split_once(' ')?;
            ratio(quota, period)
        } else {
            let text = |name: &str| root.text(format!("/sys/fs/cgroup/cpu{folder}/cpu.cfs_{name}_us")).ok();
            ratio(&text("quota")?, &text("period")?)
        }
    };
    if group.is_unified() || group.has_controller("cpu") {
        group.ancestors().filter_map(quota).collect()
    } else {
        Vec::new()
    }
}

/// The quota in CPUs; None for `max` and -1, which mean no quota.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::verdict::NoiseVerdict;

    fn observe(condition: &dyn Condition, fake: &FakeRoot) -> ConditionReport {
        condition.observe(&SystemSample::take(&fake.root())).remove(0)
    }

    #[test]
    fn a_quota_of_any_ancestor_counts() {
        let fake = FakeRoot::new()
            .file("/proc/self/cgroup", "3:cpu,cpuacct:/a/b\n0::/c\n")
            .file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000")
            .file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000")
            .file("/sys/fs/cgroup/c/cpu.max", "max 100000");
        let report = observe(&CpuQuota, &fake);
        assert_eq!((report.verdict, report.state.as_str()), (NoiseVerdict::Noisy, "0.50 CPUs"));
        let none = FakeRoot::new().file("/proc/self/cgroup", "0::/\n");
        assert_eq!(observe(&CpuQuota, &none).verdict, NoiseVerdict::NoNoise);
    }

    #[test]
    fn pressure_is_reported() {
        let fake = FakeRoot::new()
            .file("/proc/pressure/cpu", "some avg10=0.12 avg60=0.00 avg300=0.00 total=1\n")
            .file("/proc/pressure/io", "some avg10=42.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n");
        let report = observe(&Pressure, &fake);
        assert_eq!((report.verdict, report.state.as_str()), (NoiseVerdict::Noisy, "cpu 0.1 %, io 42.0 %"));
        assert!(matches!(observe(&Pressure, &FakeRoot::new()).verdict, NoiseVerdict::Unsupported { .. }));
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(line in "\\PC{0,30}|[0-9:/a-z,]{0,30}") {
            let fake = FakeRoot::new();
            memberships(&line).for_each(|group| drop(quotas(&fake.root(), group)));
        }
    }
}
