//! Whether the machine is a real one.

use wb_sys::SysRoot;
use wb_sys::facts::cpuinfo::CpuInfo;
use wb_sys::facts::virtualisation;

use crate::condition::{Condition, ConditionReport, SystemSample};

/// Whether a hypervisor is below.
pub struct VirtualMachine;

impl Condition for VirtualMachine {
    fn name(&self) -> &'static str {
        "virtual-machine"
    }
    fn why(&self) -> &'static str {
        "others on the host use the same caches, memory and disks, and are not to be seen from here"
    }
    fn evidence(&self) -> &'static str {
        "CPUID leaf 0x40000000, firmware names and clocks of guests; steal is the only trace that neighbours leave"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let hypervisor = virtualisation::hypervisor(seen.root, &CpuInfo::read(seen.root));
        vec![match hypervisor {
            None => ConditionReport::quiet("none that shows itself"),
            Some(name) => ConditionReport::unknown(name, "how noisy it is depends on what else the host runs"),
        }]
    }
}

/// Whether instructions are emulated.
pub struct Emulation;

impl Condition for Emulation {
    fn name(&self) -> &'static str {
        "emulation"
    }
    fn why(&self) -> &'static str {
        "software that stands for a processor has other costs for everything: figures say nothing of hardware"
    }
    fn evidence(&self) -> &'static str {
        "the signature and processor names of QEMU's TCG; emulated code runs several to tens of times slower, and unevenly so"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        vec![match virtualisation::emulated(seen.root, &CpuInfo::read(seen.root)) {
            false => ConditionReport::quiet("none"),
            true => ConditionReport::noisy("qemu tcg", "measure where KVM or hardware is to be had", None),
        }]
    }
}

/// Whether time is the hypervisor's.
pub struct VirtualClock;

impl Condition for VirtualClock {
    fn name(&self) -> &'static str {
        "virtual-clock"
    }
    fn why(&self) -> &'static str {
        "the host scales and moves the clock, and a machine that was moved or paused sees time jump"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, KVM timekeeping: kvm-clock follows the host's corrections; a TSC that is not constant or stops in sleep is no clock"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let Ok(clock) = seen.root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource") else {
            return vec![ConditionReport::unsupported("the kernel does not show which clock it uses")];
        };
        let of_host = clock == "kvm-clock" || clock == "xen" || clock.starts_with("hyperv");
        vec![match (of_host, has_unstable_tsc(seen.root) && clock == "tsc") {
            (true, _) => {
                ConditionReport::unknown(clock, "steady as long as the host neither moves nor pauses this machine")
            }
            (false, true) => ConditionReport::unknown(clock, "the processor does not promise a constant counter"),
            (false, false) => ConditionReport::quiet(clock),
        }]
    }
}

fn has_unstable_tsc(root: &SysRoot) -> bool {
    !CpuInfo::read(root).flags.contains("constant_tsc")
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::{self, FakeRoot};

    use super::*;
    use crate::doctor::Verdict;

    fn verdict(condition: &dyn Condition, made: &FakeRoot) -> Verdict {
        condition.observe(&SystemSample::take(&made.root())).remove(0).verdict
    }

    #[test]
    fn a_guest_is_not_called_quiet_and_an_emulated_one_is_noisy() {
        assert_eq!(verdict(&VirtualMachine, &fake_root::laptop()), Verdict::Quiet);
        assert!(matches!(verdict(&VirtualMachine, &fake_root::container()), Verdict::Unknown { .. }));
        let tcg = FakeRoot::new().file("/proc/cpuinfo", "processor: 0\nmodel name: QEMU TCG CPU version 2.5+\n");
        assert_eq!(verdict(&Emulation, &tcg), Verdict::Noisy);
        assert_eq!(verdict(&Emulation, &fake_root::laptop()), Verdict::Quiet);
    }

    #[test]
    fn the_hosts_clock_is_told_from_the_processors() {
        let current = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        assert!(matches!(
            verdict(&VirtualClock, &fake_root::laptop().file(current, "kvm-clock")),
            Verdict::Unknown { .. }
        ));
        assert_eq!(verdict(&VirtualClock, &fake_root::laptop()), Verdict::Quiet);
    }
}
