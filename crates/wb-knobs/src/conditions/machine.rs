//! Virtualisation: hypervisors, emulation and virtual clocks.

use wb_sys::SysRoot;
use wb_sys::facts::virtualisation;
use wb_sys::proc::cpuinfo::CpuInfo;

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};

pub struct VirtualMachine;

impl Condition for VirtualMachine {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "virtual-machine",
            why: "other guests of the host share its caches, memory and disks, and are invisible from here",
            evidence: "CPUID leaf 0x40000000, firmware names and guest clocks; steal is the only visible trace of neighbours",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let hypervisor = virtualisation::hypervisor(sample.root, &CpuInfo::read(sample.root));
        vec![match hypervisor {
            None => ConditionReport::no_noise("none detected"),
            Some(name) => ConditionReport::may_be_noisy(name, "its noise depends on the other guests of the host"),
        }]
    }
}

/// Emulation of instructions by software.
pub struct Emulation;

impl Condition for Emulation {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "emulation",
            why: "an emulated processor has different costs for everything: results do not apply to hardware",
            evidence: "the signature and processor names of QEMU's TCG; emulated code is several to tens of times slower, and unevenly so",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        vec![if virtualisation::emulated(sample.root, &CpuInfo::read(sample.root)) {
            ConditionReport::noisy("qemu tcg", "measure on hardware or with KVM", None)
        } else {
            ConditionReport::no_noise("none")
        }]
    }
}

/// A clock that the hypervisor provides.
pub struct VirtualClock;

impl Condition for VirtualClock {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "virtual-clock",
            why: "the host scales and adjusts the clock, and the time of a machine that was migrated or paused jumps",
            evidence: "kernel documentation, KVM timekeeping: kvm-clock follows the host's corrections; a TSC whose rate is not constant is not a reliable clock",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let Ok(clock) = sample.root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource") else {
            return vec![ConditionReport::unsupported("the kernel does not report its clock source")];
        };
        let is_virtual = clock == "kvm-clock" || clock == "xen" || clock.starts_with("hyperv");
        vec![match (is_virtual, has_unstable_tsc(sample.root) && clock == "tsc") {
            (true, _) => ConditionReport::may_be_noisy(
                clock,
                "steady as long as the host neither migrates nor pauses this machine",
            ),
            (false, true) => {
                ConditionReport::may_be_noisy(clock, "the processor does not guarantee a constant counter")
            }
            (false, false) => ConditionReport::no_noise(clock),
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
    use crate::verdict::NoiseVerdict;

    fn verdict(condition: &dyn Condition, fake: &FakeRoot) -> NoiseVerdict {
        condition.observe(&SystemSample::take(&fake.root())).remove(0).verdict
    }

    #[test]
    fn a_guest_is_unknown_and_an_emulated_one_is_noisy() {
        assert_eq!(verdict(&VirtualMachine, &fake_root::laptop()), NoiseVerdict::NoNoise);
        assert!(matches!(verdict(&VirtualMachine, &fake_root::container()), NoiseVerdict::Unknown { .. }));
        let tcg = FakeRoot::new().file("/proc/cpuinfo", "processor: 0\nmodel name: QEMU TCG CPU version 2.5+\n");
        assert_eq!(verdict(&Emulation, &tcg), NoiseVerdict::Noisy);
        assert_eq!(verdict(&Emulation, &fake_root::laptop()), NoiseVerdict::NoNoise);
    }

    #[test]
    fn a_virtual_clock_is_distinguished_from_the_processors() {
        let current = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        assert!(matches!(
            verdict(&VirtualClock, &fake_root::laptop().file(current, "kvm-clock")),
            NoiseVerdict::Unknown { .. }
        ));
        assert_eq!(verdict(&VirtualClock, &fake_root::laptop()), NoiseVerdict::NoNoise);
    }
}
