//! CPUs that are kept free, and hardware weaknesses that are worked around.

use std::collections::BTreeMap;

use wb_sys::environment::kernel;

use crate::condition::{Condition, ConditionReport, SystemSample};

/// CPUs that the scheduler leaves alone.
pub struct Isolation;

impl Condition for Isolation {
    fn name(&self) -> &'static str {
        "core-isolation"
    }
    fn why(&self) -> &'static str {
        "without it, any task and any timer tick may come to the CPU that is measured"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, isolcpus and nohz_full: no load balancing to these CPUs, and no tick while one task runs; a tick comes 100 to 1,000 times a second"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let list = |name: &str| seen.root.text(format!("/sys/devices/system/cpu/{name}")).ok();
        let some = |name: &str| list(name).filter(|cpus| !cpus.is_empty() && cpus != "(null)");
        let Some(isolated) = list("isolated") else {
            return vec![ConditionReport::unsupported("the kernel does not show isolated CPUs")];
        };
        vec![match (isolated.is_empty(), some("nohz_full")) {
            (false, Some(tickless)) => ConditionReport::quiet(format!("isolated {isolated}, without tick {tickless}")),
            (false, None) => ConditionReport::quiet(format!("isolated {isolated}")),
            (true, _) => {
                ConditionReport::unknown("none isolated", "nothing keeps other work off the CPUs that are measured")
                    .with_advice(
                        "keep CPUs free by the kernel's command line: isolcpus=managed_irq,domain,LIST nohz_full=LIST",
                        None,
                    )
            }
        }]
    }
}

/// What is done about the hardware's weaknesses.
pub struct Mitigations;

impl Condition for Mitigations {
    fn name(&self) -> &'static str {
        "mitigations"
    }
    fn why(&self) -> &'static str {
        "they make system calls and context switches dearer: no noise, but two machines or kernels differ by them"
    }
    fn evidence(&self) -> &'static str {
        "/sys/devices/system/cpu/vulnerabilities; Behrens, Belay and Kaashoek (EuroSys 2022) measured about 30 % on older processors where system calls prevail, and a few percent on newer ones"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let states = kernel::mitigations(seen.root);
        if states.is_empty() {
            return vec![ConditionReport::unsupported("the kernel does not show hardware weaknesses")];
        }
        vec![ConditionReport::quiet(counts(&states))]
    }
}

fn counts(states: &BTreeMap<String, String>) -> String {
    let count = |word: &str| states.values().filter(|state| state.starts_with(word)).count();
    let (mitigated, vulnerable, fine) = (count("Mitigation"), count("Vulnerable"), count("Not affected"));
    let other = states.len() - mitigated - vulnerable - fine;
    let parts = [(mitigated, "mitigated"), (vulnerable, "vulnerable"), (fine, "not affected"), (other, "other")];
    let named = parts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn weaknesses_are_counted_and_no_noise() {
        let folder = "/sys/devices/system/cpu/vulnerabilities";
        let made = FakeRoot::new()
            .file(&format!("{folder}/meltdown"), "Mitigation: PTI")
            .file(&format!("{folder}/mds"), "Vulnerable: no microcode")
            .file(&format!("{folder}/l1tf"), "Not affected")
            .file(&format!("{folder}/new"), "Unknown: no data");
        let seen = Mitigations.observe(&SystemSample::take(&made.root())).remove(0);
        assert_eq!(seen.state, "1 mitigated, 1 vulnerable, 1 not affected, 1 other");
        assert_eq!(seen.verdict, Verdict::Quiet);
    }

    #[test]
    fn isolated_cpus_are_quiet() {
        let path = "/sys/devices/system/cpu/isolated";
        let verdict = |text: &str| {
            let made = FakeRoot::new().file(path, text);
            Isolation.observe(&SystemSample::take(&made.root())).remove(0).verdict
        };
        assert_eq!(verdict("2-3\n"), Verdict::Quiet);
        assert!(matches!(verdict("\n"), Verdict::Unknown { .. }));
    }
}
