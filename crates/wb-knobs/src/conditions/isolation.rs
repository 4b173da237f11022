//! CPU isolation, and mitigations of hardware vulnerabilities.

use std::collections::BTreeMap;

use wb_sys::environment::kernel;

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};

/// CPUs that are isolated from the scheduler.
pub struct Isolation;

impl Condition for Isolation {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "core-isolation",
            why: "without it, other tasks and timer ticks may interrupt the measured CPU",
            evidence: "kernel documentation, isolcpus and nohz_full: no load balancing to these CPUs, and no tick while a single task runs; ticks occur 100 to 1,000 times a second",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let list = |name: &str| sample.root.text(format!("/sys/devices/system/cpu/{name}")).ok();
        let some = |name: &str| list(name).filter(|cpus| !cpus.is_empty() && cpus != "(null)");
        let Some(isolated) = list("isolated") else {
            return vec![ConditionReport::unsupported("the kernel does not report isolated CPUs")];
        };
        vec![match (isolated.is_empty(), some("nohz_full")) {
            (false, Some(tickless)) => {
                ConditionReport::no_noise(format!("isolated {isolated}, without tick {tickless}"))
            }
            (false, None) => ConditionReport::no_noise(format!("isolated {isolated}")),
            (true, _) => {
                ConditionReport::may_be_noisy("none isolated", "nothing keeps other work off the measured CPUs")
                    .with_advice(
                        "isolate CPUs on the kernel's command line: isolcpus=managed_irq,domain,LIST nohz_full=LIST",
                        None,
                    )
            }
        }]
    }
}

/// Mitigations of hardware vulnerabilities.
pub struct Mitigations;

impl Condition for Mitigations {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "mitigations",
            why: "they slow down system calls and context switches: not noise, but a difference between machines or kernels",
            evidence: "/sys/devices/system/cpu/vulnerabilities; Behrens, Belay and Kaashoek (EuroSys 2022) measured about 30 % on older processors where system calls prevail, and a few percent on newer ones",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let states = kernel::mitigations(sample.root);
        if states.is_empty() {
            return vec![ConditionReport::unsupported("the kernel does not report hardware vulnerabilities")];
        }
        vec![ConditionReport::no_noise(counts(&states))]
    }
}

fn counts(states: &BTreeMap<String, String>) -> String {
    let count = |word: &str| states.values().filter(|state| state.starts_with(word)).count();
    let (mitigated, vulnerable, unaffected) = (count("Mitigation"), count("Vulnerable"), count("Not affected"));
    let other = states.len() - mitigated - vulnerable - unaffected;
    let parts = [(mitigated, "mitigated"), (vulnerable, "vulnerable"), (unaffected, "not affected"), (other, "other")];
    let present = parts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    present.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::FakeRoot;

    use super::*;
    use crate::verdict::NoiseVerdict;

    #[test]
    fn vulnerabilities_are_counted_and_quiet() {
        let folder = "/sys/devices/system/cpu/vulnerabilities";
        let fake = FakeRoot::new()
            .file(&format!("{folder}/meltdown"), "Mitigation: PTI")
            .file(&format!("{folder}/mds"), "Vulnerable: no microcode")
            .file(&format!("{folder}/l1tf"), "Not affected")
            .file(&format!("{folder}/new"), "Unknown: no data");
        let report = Mitigations.observe(&SystemSample::take(&fake.root())).remove(0);
        assert_eq!(report.state, "1 mitigated, 1 vulnerable, 1 not affected, 1 other");
        assert_eq!(report.verdict, NoiseVerdict::NoNoise);
    }

    #[test]
    fn isolated_cpus_are_quiet() {
        let path = "/sys/devices/system/cpu/isolated";
        let verdict = |text: &str| {
            let fake = FakeRoot::new().file(path, text);
            Isolation.observe(&SystemSample::take(&fake.root())).remove(0).verdict
        };
        assert_eq!(verdict("2-3\n"), NoiseVerdict::NoNoise);
        assert!(matches!(verdict("\n"), NoiseVerdict::Unknown { .. }));
    }
}
