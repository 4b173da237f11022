//! Thermal throttling and power supply.

use wb_sys::SysRoot;

use crate::condition::{Condition, ConditionDescription, ConditionReport, SystemSample};

/// Thermal throttling of CPUs.
pub struct Throttling;

impl Condition for Throttling {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "thermal-throttling",
            why: "a processor that gets too hot reduces its frequency below every configured limit",
            evidence: "thermal_throttle counts of each CPU: events since boot, and in the last 200 ms",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let sum = |counts: &std::collections::BTreeMap<u32, u64>| {
            counts.values().fold(0u64, |sum, count| sum.saturating_add(*count))
        };
        let (before, after) = (sum(&sample.before.throttled), sum(&sample.after.throttled));
        vec![match after {
            _ if sample.after.throttled.is_empty() => {
                ConditionReport::unsupported("the processor does not report it, as is usual in a virtual machine")
            }
            0 => ConditionReport::no_noise("never"),
            _ if after > before => ConditionReport::noisy(
                format!("{after} times, including now"),
                "let the machine cool down, or improve its cooling",
                Some("sensors".into()),
            ),
            _ => ConditionReport::may_be_noisy(
                format!("{after} times since boot"),
                "not now, but it has occurred under load",
            ),
        }]
    }
}

/// A laptop on battery power.
pub struct Battery;

impl Condition for Battery {
    fn description(&self) -> ConditionDescription {
        ConditionDescription {
            name: "battery",
            why: "on battery, firmware and power daemons limit frequency and power, increasingly as it discharges",
            evidence: "status of /sys/class/power_supply; firmware commonly lowers the power limit on battery",
        }
    }
    fn observe(&self, sample: &SystemSample<'_>) -> Vec<ConditionReport> {
        let supplies = sample.root.list("/sys/class/power_supply").unwrap_or_default();
        let discharging = supplies.iter().any(|name| is_discharging(sample.root, name));
        vec![if discharging {
            ConditionReport::noisy("in use", "connect the machine to mains power", None)
        } else {
            ConditionReport::no_noise("not in use")
        }]
    }
}

/// Whether the machine runs on this supply. Batteries of mice and keyboards are ignored.
fn is_discharging(root: &SysRoot, name: &str) -> bool {
    let text = |file: &str| root.text(format!("/sys/class/power_supply/{name}/{file}")).unwrap_or_default();
    text("type") == "Battery" && text("scope") != "Device" && text("status") == "Discharging"
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root;

    use super::*;
    use crate::counters::CounterSnapshot;
    use crate::verdict::NoiseVerdict;

    #[test]
    fn a_laptop_on_battery_is_noisy_and_a_mouse_battery_is_ignored() {
        let laptop = fake_root::laptop();
        let verdict = |fake: &fake_root::FakeRoot| Battery.observe(&SystemSample::take(&fake.root())).remove(0).verdict;
        assert_eq!(verdict(&laptop), NoiseVerdict::Noisy);
        assert_eq!(verdict(&laptop.file("/sys/class/power_supply/BAT0/scope", "Device")), NoiseVerdict::NoNoise);
    }

    #[test]
    fn current_throttling_is_noisy_and_earlier_throttling_unknown() {
        let count = |count: &str| {
            fake_root::laptop().file("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", count)
        };
        let verdict = |before: &str, after: &str| {
            let (before, after) = (count(before), count(after));
            let (first, second) = (CounterSnapshot::read(&before.root()), CounterSnapshot::read(&after.root()));
            let root = after.root();
            Throttling.observe(&SystemSample::between(&root, first, second, 0.2)).remove(0).verdict
        };
        assert_eq!(verdict("0", "0"), NoiseVerdict::NoNoise);
        assert_eq!(verdict("3", "4"), NoiseVerdict::Noisy);
        assert!(matches!(verdict("4", "4"), NoiseVerdict::Unknown { .. }));
    }
}
