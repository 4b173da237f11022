//! Processor settings: SMT, turbo, frequency policies, idle states, isolation.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;
use crate::proc::cpuinfo::CpuInfo;

const CPU: &str = "/sys/devices/system/cpu";

/// The processors and their settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct CpuSettings {
    /// Model name.
    pub model: Option<String>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// Online CPUs: `0-7`.
    pub online: Option<String>,
    /// CPUs isolated from the scheduler.
    pub isolated: Option<String>,
    /// CPUs without a timer tick while they run a single task.
    pub nohz_full: Option<String>,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`.
    pub smt: Option<String>,
    /// Whether cores may exceed their base frequency.
    pub turbo: Option<bool>,
    /// Governor that selects idle states.
    pub idle_governor: Option<String>,
    /// Driver that enters idle states.
    pub idle_driver: Option<String>,
    /// Frequency limits, by policy.
    pub frequency: BTreeMap<String, FrequencyPolicy>,
}

/// A frequency policy: driver, governor and limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct FrequencyPolicy {
    /// Driver that sets the frequency.
    pub driver: Option<String>,
    /// Governor that selects the frequency.
    pub governor: Option<String>,
    /// Energy-performance hint to hardware that selects the frequency itself.
    pub energy_preference: Option<String>,
    /// Lowest permitted frequency, in kHz.
    pub min_khz: Option<u64>,
    /// Highest permitted frequency, in kHz.
    pub max_khz: Option<u64>,
    /// Lowest frequency of the hardware, in kHz.
    pub hardware_min_khz: Option<u64>,
    /// Highest frequency of the hardware, in kHz.
    pub hardware_max_khz: Option<u64>,
}

impl CpuSettings {
    pub(super) fn read(root: &SysRoot) -> Self {
        let text = |name: &str| root.text(format!("{CPU}/{name}")).ok().filter(|text| !text.is_empty());
        let cpuinfo = CpuInfo::read(root);
        Self {
            model: Some(cpuinfo.model).filter(|model| !model.is_empty()),
            microcode: cpuinfo.microcode,
            online: text("online"),
            isolated: text("isolated"),
            nohz_full: text("nohz_full"),
            smt: text("smt/control"),
            turbo: turbo(root),
            idle_governor: text("cpuidle/current_governor").or_else(|| text("cpuidle/current_governor_ro")),
            idle_driver: text("cpuidle/current_driver"),
            frequency: policies(root).into_iter().map(|policy| frequency(root, policy)).collect(),
        }
    }
}

/// The numbers of the frequency policies. A policy covers the CPUs that share a frequency.
pub fn policies(root: &SysRoot) -> Vec<u32> {
    root.numbered_entries(format!("{CPU}/cpufreq"), "policy")
}

/// Whether cores may exceed their base frequency; None where the kernel does not report it.
pub fn turbo(root: &SysRoot) -> Option<bool> {
    let flag = |name: &str| root.number::<u8>(format!("{CPU}/{name}")).ok();
    flag("intel_pstate/no_turbo")
        .map(|disabled| disabled == 0)
        .or_else(|| flag("cpufreq/boost").map(|boost| boost != 0))
}

fn frequency(root: &SysRoot, policy: u32) -> (String, FrequencyPolicy) {
    let folder = format!("{CPU}/cpufreq/policy{policy}");
    let text = |name: &str| root.text(format!("{folder}/{name}")).ok();
    let number = |name: &str| root.number(format!("{folder}/{name}")).ok();
    let frequency = FrequencyPolicy {
        driver: text("scaling_driver"),
        governor: text("scaling_governor"),
        energy_preference: text("energy_performance_preference"),
        min_khz: number("scaling_min_freq"),
        max_khz: number("scaling_max_freq"),
        hardware_min_khz: number("cpuinfo_min_freq"),
        hardware_max_khz: number("cpuinfo_max_freq"),
    };
    (format!("policy{policy}"), frequency)
}

pub(super) fn megahertz(root: &SysRoot) -> BTreeMap<String, u64> {
    let current = |policy| {
        let khz: u64 = root.number(format!("{CPU}/cpufreq/policy{policy}/scaling_cur_freq")).ok()?;
        Some((format!("policy{policy}"), khz / 1000))
    };
    policies(root).into_iter().filter_map(current).collect()
}
