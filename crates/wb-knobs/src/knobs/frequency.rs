//! How fast the CPUs are clocked, and who decides.

use wb_sys::SysRoot;
use wb_sys::environment::cpu;

use crate::dependents::{of_frequency, of_policy};
use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::{echo, echo_each};
use crate::target::{self, KnobTarget};
use crate::writes::{KnobWrite, KnobWrites, choice, parse_switch, setting_write};

const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
const NO_SCALING: &str = "the kernel shows no frequency policy, as is usual in a virtual machine";

/// What chooses the frequency.
pub struct Governor;

impl Knob for Governor {
    fn name(&self) -> &'static str {
        "governor"
    }
    fn why(&self) -> &'static str {
        "a clock that follows the load is late: the start of a sample runs slower than the rest"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, CPU Performance Scaling: all but `performance`, `powersave` and `userspace` estimate the load from the past; lowest and highest clock differ 3 to 10 times"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::policies(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_SCALING
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Choice(sys.text(format!("{FOLDER}/{target}/scaling_governor"))?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Choice(choice) => {
                Assessment::when(matches!(choice.as_str(), "performance" | "userspace"), "let the clock stay high")
            }
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let folder = format!("{FOLDER}/{target}");
        choice(sys, &format!("{folder}/scaling_governor"), &format!("{folder}/scaling_available_governors"), wanted)
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("performance", targets, |policy| format!("{FOLDER}/{policy}/scaling_governor"))
    }
    fn dependents(&self, sys: &SysRoot, target: &KnobTarget) -> Vec<String> {
        of_policy(sys, &target.to_string())
    }
}

/// The hint to hardware that chooses its frequency by itself.
pub struct EnergyPreference;

impl Knob for EnergyPreference {
    fn name(&self) -> &'static str {
        "energy-preference"
    }
    fn why(&self) -> &'static str {
        "tells the hardware to rather save energy, so that it raises the clock late and lowers it early"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, intel_pstate and amd-pstate: with hardware-managed states the preference, not the governor, decides how eagerly the clock follows the load"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let has = |policy: &KnobTarget| sys.exists(format!("{FOLDER}/{policy}/energy_performance_preference"));
        target::policies(sys).into_iter().filter(has).collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "no frequency policy takes a preference: the hardware does not choose its clock by itself"
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Choice(sys.text(format!("{FOLDER}/{target}/energy_performance_preference"))?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Choice(choice) => {
                Assessment::when(matches!(choice.as_str(), "performance" | "0"), "prefer performance over energy")
            }
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let folder = format!("{FOLDER}/{target}");
        let listed = format!("{folder}/energy_performance_available_preferences");
        choice(sys, &format!("{folder}/energy_performance_preference"), &listed, wanted)
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        echo_each("performance", targets, |policy| format!("{FOLDER}/{policy}/energy_performance_preference"))
    }
}

/// Whether cores may run above their base frequency.
pub struct Turbo;

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

impl Knob for Turbo {
    fn name(&self) -> &'static str {
        "turbo"
    }
    fn why(&self) -> &'static str {
        "how far a core is clocked above its base depends on heat, power and how many others are busy"
    }
    fn evidence(&self) -> &'static str {
        "processor makers' turbo tables: one busy core runs 10 to 60 % above base, less the more are busy; power limits end it after seconds to a minute"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        cpu::turbo(sys).map(|_| KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the kernel shows no switch for it, as is usual in a virtual machine"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        cpu::turbo(sys).map(KnobValue::Switch).ok_or_else(|| Unsupported(self.unsupported_reason().to_owned()))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        Assessment::when(
            *value == KnobValue::Switch(false),
            "stay at the base clock while measuring; results are lower and steadier",
        )
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let on = parse_switch(wanted)?;
        match sys.exists(NO_TURBO) {
            true => setting_write(NO_TURBO, if on { "0" } else { "1" }),
            false => setting_write(BOOST, if on { "1" } else { "0" }),
        }
    }
    fn shell_command(&self, sys: &SysRoot, _: &[KnobTarget]) -> String {
        if sys.exists(NO_TURBO) { echo("1", NO_TURBO) } else { echo("0", BOOST) }
    }
    fn dependents(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        of_frequency(sys)
    }
}

/// Between which frequencies may be chosen.
pub struct FrequencyLimits;

impl Knob for FrequencyLimits {
    fn name(&self) -> &'static str {
        "frequency-limits"
    }
    fn why(&self) -> &'static str {
        "a limit below the hardware's own makes the machine look slower than it is"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, CPU Performance Scaling: scaling_max_freq bounds every governor, and power daemons lower it unasked"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::policies(sys)
    }
    fn unsupported_reason(&self) -> &'static str {
        NO_SCALING
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
                reason: "the clock is limited below what the hardware has, and still free to vary",
            },
            KnobValue::Frequencies { .. } => Assessment::Yes,
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites {
        let khz = |name: &str| sys.number::<u64>(format!("{FOLDER}/{target}/{name}"));
        let (least, most) = (khz("cpuinfo_min_freq")?, khz("cpuinfo_max_freq")?);
        let (low, high) = limits(wanted, least, most)?;
        let write = |name: &str, khz: u64| KnobWrite::setting(format!("{FOLDER}/{target}/{name}"), khz.to_string());
        let (low_first, min, max) =
            (low <= khz("scaling_max_freq")?, write("scaling_min_freq", low), write("scaling_max_freq", high));
        // The lowest may at no time be above the highest.
        Ok(if low_first { vec![min, max] } else { vec![max, min] })
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo cpupower frequency-set --max 100GHz".to_owned()
    }
}

/// Limits as people write them, in kHz: `max`, `min`, `2000 MHz`, or `1200 to 2000 MHz`.
fn limits(wanted: &str, least: u64, most: u64) -> Result<(u64, u64), Unsupported> {
    let wrong = || Unsupported(format!("`{wanted}` is no limit: write max, min, 2000 or 1200-2000, in MHz"));
    let khz = |text: &str| match text.trim() {
        "max" => Ok(most),
        "min" => Ok(least),
        mhz => mhz.parse::<u64>().map(|mhz| mhz.saturating_mul(1000)).map_err(|_| wrong()),
    };
    let plain = wanted.trim_end_matches("MHz").replace(" to ", "-");
    let (low, high) = match plain.split_once('-') {
        Some((low, high)) => (khz(low)?, khz(high)?),
        // All that the hardware has, or one frequency.
        None if plain.trim() == "max" => (least, most),
        None => (khz(&plain)?, khz(&plain)?),
    };
    match least <= low && low <= high && high <= most {
        true => Ok((low, high)),
        false => Err(Unsupported(format!("`{wanted}` is not within {} to {} MHz", least / 1000, most / 1000))),
    }
}
