//! CPU frequency: governor, energy preference, turbo and limits.

use wb_sys::SysRoot;
use wb_sys::environment::cpu;

use crate::dependents::{frequency_settings, policy_settings};
use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::shell_commands::echo;
use crate::target::{self, KnobTarget};
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrite, KnobWrites, parse_switch, setting_write};

const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
const NO_SCALING: &str = "the kernel has no frequency policies, as is usual in a virtual machine";

/// The governor that selects the frequency.
pub const GOVERNOR: FileKnob = FileKnob {
    description: KnobDescription {
        name: "governor",
        why: "a frequency that follows the load lags behind: the start of a sample runs slower than the rest",
        evidence: "kernel documentation, CPU Performance Scaling: all but `performance`, `powersave` and `userspace` estimate the load from the past; the lowest and highest frequency differ by a factor of 3 to 10",
        unsupported_reason: NO_SCALING,
    },
    path: "/sys/devices/system/cpu/cpufreq/{}/scaling_governor",
    format: FileFormat::OptionOf("/sys/devices/system/cpu/cpufreq/{}/scaling_available_governors"),
    targets: target::policies,
    assess: |value| match value {
        KnobValue::Choice(choice) => {
            Assessment::quiet_if(matches!(choice.as_str(), "performance" | "userspace"), "keep the frequency high")
        }
        _ => Assessment::UNEXPECTED_VALUE,
    },
    suggestion: "performance",
    dependents: Some(|sys, policy| policy_settings(sys, &policy.to_string())),
};

/// The energy-performance hint to hardware that selects its frequency itself.
pub const ENERGY_PREFERENCE: FileKnob = FileKnob {
    description: KnobDescription {
        name: "energy-preference",
        why: "a preference for saving energy makes the hardware raise the frequency late and lower it early",
        evidence: "kernel documentation, intel_pstate and amd-pstate: with hardware-managed states the preference, not the governor, decides how fast the frequency follows the load",
        unsupported_reason: "no frequency policy has a preference: the hardware does not select its frequency itself",
    },
    path: "/sys/devices/system/cpu/cpufreq/{}/energy_performance_preference",
    format: FileFormat::OptionOf("/sys/devices/system/cpu/cpufreq/{}/energy_performance_available_preferences"),
    targets: |sys| {
        let has = |policy: &KnobTarget| sys.exists(format!("{FOLDER}/{policy}/energy_performance_preference"));
        target::policies(sys).into_iter().filter(has).collect()
    },
    assess: |value| match value {
        KnobValue::Choice(choice) => {
            Assessment::quiet_if(matches!(choice.as_str(), "performance" | "0"), "prefer performance over energy")
        }
        _ => Assessment::UNEXPECTED_VALUE,
    },
    suggestion: "performance",
    dependents: None,
};

/// Whether cores may exceed their base frequency.
pub struct Turbo;

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

impl Knob for Turbo {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "turbo",
            why: "how far a core exceeds its base frequency depends on heat, power and the number of other busy cores",
            evidence: "processor makers' turbo tables: one busy core runs 10 to 60 % above base, and less with more busy cores; power limits end turbo after seconds to a minute",
            unsupported_reason: "the kernel has no switch for it, as is usual in a virtual machine",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        cpu::turbo(sys).map(|_| KnobTarget::System).into_iter().collect()
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        cpu::turbo(sys).map(KnobValue::Switch).ok_or_else(|| self.unsupported())
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::quiet_if(
            *value == KnobValue::Switch(false),
            "stay at the base frequency while measuring; results are lower but steadier",
        )
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        parse_switch(value).map(drop)
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, value: &str) -> KnobWrites {
        let on = parse_switch(value)?;
        if sys.exists(NO_TURBO) {
            setting_write(NO_TURBO, if on { "0" } else { "1" })
        } else {
            setting_write(BOOST, if on { "1" } else { "0" })
        }
    }
    fn shell_command(&self, sys: &SysRoot, _: &[KnobTarget]) -> String {
        if sys.exists(NO_TURBO) { echo("1", NO_TURBO) } else { echo("0", BOOST) }
    }
    fn dependents(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        frequency_settings(sys)
    }
}

pub struct FrequencyLimits;

impl Knob for FrequencyLimits {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "frequency-limits",
            why: "a limit below that of the hardware makes the machine appear slower than it is",
            evidence: "kernel documentation, CPU Performance Scaling: scaling_max_freq limits every governor, and power daemons lower it on their own",
            unsupported_reason: NO_SCALING,
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::policies(sys)
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let khz = |name: &str| sys.number(format!("{FOLDER}/{target}/{name}"));
        Ok(KnobValue::Frequencies {
            low: khz("scaling_min_freq")?,
            high: khz("scaling_max_freq")?,
            highest: khz("cpuinfo_max_freq")?,
        })
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Frequencies { low, high, highest } if low < high && high < highest => Assessment::Unknown {
                reason: "the frequency is limited below the hardware's maximum but may still vary",
            },
            KnobValue::Frequencies { .. } => Assessment::Quiet,
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        // Frequencies of any hardware.
        parse_limits(value, 0, u64::MAX).map(drop)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let khz = |name: &str| sys.number::<u64>(format!("{FOLDER}/{target}/{name}"));
        let (lowest, highest) = (khz("cpuinfo_min_freq")?, khz("cpuinfo_max_freq")?);
        let (low, high) = parse_limits(value, lowest, highest)?;
        let write = |name: &str, khz: u64| KnobWrite::setting(format!("{FOLDER}/{target}/{name}"), khz.to_string());
        let (low_first, min, max) =
            (low <= khz("scaling_max_freq")?, write("scaling_min_freq", low), write("scaling_max_freq", high));
        // The lower limit must never exceed the upper one.
        Ok(if low_first { vec![min, max] } else { vec![max, min] })
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo cpupower frequency-set --max 100GHz".to_owned()
    }
}

/// Parses limits into kHz: `max`, `min`, `2000 MHz`, or `1200 to 2000 MHz`.
fn parse_limits(value: &str, lowest: u64, highest: u64) -> Result<(u64, u64), Unsupported> {
    let invalid = || Unsupported(format!("invalid limit `{value}`: expected max, min, 2000 or 1200-2000, in MHz"));
    let khz = |text: &str| match text.trim() {
        "max" => Ok(highest),
        "min" => Ok(lowest),
        mhz => mhz.parse::<u64>().map(|mhz| mhz.saturating_mul(1000)).map_err(|_| invalid()),
    };
    let plain = value.trim_end_matches("MHz").replace(" to ", "-");
    let (low, high) = match plain.split_once('-') {
        Some((low, high)) => (khz(low)?, khz(high)?),
        // The full range of the hardware, or a single frequency.
        None if plain.trim() == "max" => (lowest, highest),
        None => (khz(&plain)?, khz(&plain)?),
    };
    if lowest <= low && low <= high && high <= highest {
        Ok((low, high))
    } else {
        Err(Unsupported(format!("invalid limit `{value}`: expected {} to {} MHz", lowest / 1000, highest / 1000)))
    }
}
