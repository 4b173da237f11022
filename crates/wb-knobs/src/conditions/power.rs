//! Heat and power.

use wb_sys::SysRoot;

use crate::condition::{Condition, ConditionReport, SystemSample};

/// CPUs that are slowed down because of heat.
pub struct Throttling;

impl Condition for Throttling {
    fn name(&self) -> &'static str {
        "thermal-throttling"
    }
    fn why(&self) -> &'static str {
        "a processor that gets too hot clocks itself down, below anything that was set"
    }
    fn evidence(&self) -> &'static str {
        "thermal_throttle counts of each CPU: events since the start, and in the last 200 ms"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let sum = |counts: &std::collections::BTreeMap<u32, u64>| {
            counts.values().fold(0u64, |sum, count| sum.saturating_add(*count))
        };
        let (before, after) = (sum(&seen.before.throttled), sum(&seen.after.throttled));
        vec![match after {
            _ if seen.after.throttled.is_empty() => {
                ConditionReport::unsupported("the processor does not count it, as is usual in a virtual machine")
            }
            0 => ConditionReport::quiet("never"),
            _ if after > before => ConditionReport::noisy(
                format!("{after} times, also now"),
                "let it cool, or cool it better",
                Some("sensors".into()),
            ),
            _ => ConditionReport::unknown(
                format!("{after} times since the start"),
                "not now, but it has come under load",
            ),
        }]
    }
}

/// A laptop that runs on its battery.
pub struct Battery;

impl Condition for Battery {
    fn name(&self) -> &'static str {
        "battery"
    }
    fn why(&self) -> &'static str {
        "on battery, firmware and power daemons bound clock and power, and ever more so as it empties"
    }
    fn evidence(&self) -> &'static str {
        "status of /sys/class/power_supply; firmware commonly lowers the power limit on battery"
    }
    fn observe(&self, seen: &SystemSample<'_>) -> Vec<ConditionReport> {
        let supplies = seen.root.list("/sys/class/power_supply").unwrap_or_default();
        let discharging = supplies.iter().any(|name| discharges(seen.root, name));
        vec![match discharging {
            false => ConditionReport::quiet("not in use"),
            true => ConditionReport::noisy("in use", "plug the machine in", None),
        }]
    }
}

/// Whether the machine runs on this supply. Mice and keyboards have batteries too.
fn discharges(root: &SysRoot, name: &str) -> bool {
    let text = |file: &str| root.text(format!("/sys/class/power_supply/{name}/{file}")).unwrap_or_default();
    text("type") == "Battery" && text("scope") != "Device" && text("status") == "Discharging"
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root;

    use super::*;
    use crate::counters::CounterSnapshot;
    use crate::doctor::Verdict;

    #[test]
    fn a_laptop_on_battery_is_noisy_and_one_with_an_empty_mouse_is_not() {
        let laptop = fake_root::laptop();
        let verdict = |made: &fake_root::FakeRoot| Battery.observe(&SystemSample::take(&made.root())).remove(0).verdict;
        assert_eq!(verdict(&laptop), Verdict::Noisy);
        assert_eq!(verdict(&laptop.file("/sys/class/power_supply/BAT0/scope", "Device")), Verdict::Quiet);
    }

    #[test]
    fn heat_now_is_worse_than_heat_before() {
        let count = |count: &str| {
            fake_root::laptop().file("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", count)
        };
        let see = |before: &str, after: &str| {
            let (before, after) = (count(before), count(after));
            let (first, second) = (CounterSnapshot::read(&before.root()), CounterSnapshot::read(&after.root()));
            let root = after.root();
            Throttling.observe(&SystemSample::between(&root, first, second, 0.2)).remove(0).verdict
        };
        assert_eq!(see("0", "0"), Verdict::Quiet);
        assert_eq!(see("3", "4"), Verdict::Noisy);
        assert!(matches!(see("4", "4"), Verdict::Unknown { .. }));
    }
}
