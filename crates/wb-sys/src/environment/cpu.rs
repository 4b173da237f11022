//! How the processors are run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SysRoot;
use crate::facts::cpuinfo::CpuInfo;

const CPU: &str = "/sys/devices/system/cpu";

/// The processors and how they are run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct CpuSettings {
    /// Their name.
    pub model: Option<String>,
    /// Their microcode's revision.
    pub microcode: Option<String>,
    /// Those online: `0-7`.
    pub online: Option<String>,
    /// Those the scheduler leaves alone.
    pub isolated: Option<String>,
    /// Those without a timer tick while one task runs.
    pub nohz_full: Option<String>,
    /// Whether cores run several threads: `on`, `off`, `notsupported`.
    pub smt: Option<String>,
    /// Whether cores may run above their base frequency.
    pub turbo: Option<bool>,
    /// What chooses among the idle states.
    pub idle_governor: Option<String>,
    /// What enters the idle states.
    pub idle_driver: Option<String>,
    /// What is allowed of frequencies, by policy.
    pub frequency: BTreeMap<String, FrequencyPolicy>,
}

/// What a frequency policy allows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct FrequencyPolicy {
    /// What sets the frequency.
    pub driver: Option<String>,
    /// What chooses it.
    pub governor: Option<String>,
    /// The hint to hardware that chooses by itself.
    pub energy_preference: Option<String>,
    /// The lowest that may be chosen, in kHz.
    pub min_khz: Option<u64>,
    /// The highest that may be chosen, in kHz.
    pub max_khz: Option<u64>,
    /// The lowest that the hardware has, in kHz.
    pub hardware_min_khz: Option<u64>,
    /// The highest that the hardware has, in kHz.
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

/// The numbers of the frequency policies. Each is for the CPUs whose frequency is set together.
pub fn policies(root: &SysRoot) -> Vec<u32> {
    root.numbered_entries(format!("{CPU}/cpufreq"), "policy")
}

/// Whether cores may run above their base frequency; none where the kernel does not say.
pub fn turbo(root: &SysRoot) -> Option<bool> {
    let flag = |name: &str| root.number::<u8>(format!("{CPU}/{name}")).ok();
    flag("intel_pstate/no_turbo").map(|no| no == 0).or_else(|| flag("cpufreq/boost").map(|boost| boost != 0))
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
