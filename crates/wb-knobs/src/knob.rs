use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;
use wb_sys::SysRoot;

use crate::target::{self, KnobTarget};
use crate::unsupported::Unsupported;
use crate::writes::KnobWrites;

/// A system setting that affects results or noise.
pub trait Knob: Sync {
    fn description(&self) -> &KnobDescription;
    fn name(&self) -> &'static str {
        self.description().name
    }
    fn unsupported(&self) -> Unsupported {
        Unsupported(self.description().unsupported_reason.to_owned())
    }
    /// The targets that it can be set for on this system; by default the system itself.
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        target::system(sys)
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported>;
    /// Assesses whether a value adds noise.
    fn assess(&self, value: &KnobValue) -> Assessment;
    /// The writes that set it to a value as users write it: `128k`, `off`, `1200-2000`.
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites;
    /// Refuses a value that no machine accepts; by default any may be valid.
    fn check_value(&self, _value: &str) -> Result<(), Unsupported> {
        Ok(())
    }
    /// The values that a machine offers for a target; empty where it does not list them, or others may be valid, too.
    fn offered_values(&self, _sys: &SysRoot, _target: &KnobTarget) -> Vec<String> {
        Vec::new()
    }
    /// The files of other settings that the system may reset when this knob is set: they are restored with it.
    fn dependents(&self, _sys: &SysRoot, _target: &KnobTarget) -> Vec<String> {
        Vec::new()
    }
    fn default_targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        self.targets(sys)
    }
    /// The kind of target that must be named where there are several (`a page size`); None where all of them are set.
    fn required_target(&self) -> Option<&'static str> {
        None
    }
    /// The shell command that makes it quiet for these targets.
    fn shell_command(&self, sys: &SysRoot, targets: &[KnobTarget]) -> String;
    fn nature(&self) -> KnobKind {
        KnobKind::State
    }
    /// Whether targets that cannot be set by their nature, such as interrupts bound to a CPU, are skipped and reported
    /// while the others are set.
    fn allows_partial(&self) -> bool {
        false
    }
}

pub struct KnobDescription {
    /// Name of the knob: `io-scheduler`.
    pub name: &'static str,
    /// Why it matters, as a clause.
    pub why: &'static str,
    /// The evidence for it, and the size of its effect where known.
    pub evidence: &'static str,
    /// The reason given where there is no target.
    pub unsupported_reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobKind {
    /// A state that is set and later restored.
    State,
    /// An action that is performed: it has no state to read before or to restore afterwards.
    Action,
}

/// The value of a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnobValue {
    /// On or off.
    Switch(bool),
    /// A count, or the kernel's number of an option.
    Number(i64),
    /// A size.
    Bytes(Bytes),
    /// A time, in microseconds.
    Micros(u64),
    /// A time, in milliseconds.
    Millis(u64),
    /// Frequency limits.
    Frequencies {
        /// Lowest permitted frequency, in kHz.
        low: u64,
        /// Highest permitted frequency, in kHz.
        high: u64,
        /// Highest frequency of the hardware, in kHz.
        highest: u64,
    },
    /// One of several named options.
    Choice(String),
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl fmt::Display for KnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => write!(f, "{number}"),
            // Exactly: two settings that differ are shown differently.
            Self::Bytes(Bytes(bytes)) => match *bytes {
                0 => f.write_str("0 KiB"),
                bytes if bytes % GIB == 0 => write!(f, "{} GiB", bytes / GIB),
                bytes if bytes % MIB == 0 => write!(f, "{} MiB", bytes / MIB),
                bytes if bytes % KIB == 0 => write!(f, "{} KiB", bytes / KIB),
                bytes => write!(f, "{bytes} bytes"),
            },
            Self::Micros(micros) => write!(f, "{micros} µs"),
            Self::Millis(millis) => write!(f, "{millis} ms"),
            Self::Frequencies { low, high, highest } => {
                write!(f, "{} to {} MHz of {} MHz", low / 1000, high / 1000, highest / 1000)
            }
            Self::Choice(choice) => f.write_str(choice),
        }
    }
}

/// Whether a value adds noise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assessment {
    Quiet,
    Noisy { advice: &'static str },
    Unknown { reason: &'static str },
}

impl Assessment {
    pub(crate) fn quiet_if(condition: bool, advice: &'static str) -> Self {
        if condition { Self::Quiet } else { Self::Noisy { advice } }
    }

    pub(crate) const UNEXPECTED_VALUE: Self = Self::Unknown { reason: "unexpected type of value" };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_sizes_are_shown_differently() {
        let shown = |bytes: u64| KnobValue::Bytes(Bytes(bytes)).to_string();
        assert_eq!([0, 512, 4096, 128 << 10].map(shown), ["0 KiB", "512 bytes", "4 KiB", "128 KiB"]);
        assert_eq!([1 << 20, 3 << 19, 2 << 20, 3 << 29].map(shown), ["1 MiB", "1536 KiB", "2 MiB", "1536 MiB"]);
        assert_eq!([1025, 2 << 30, 2_150_000_000].map(shown), ["1025 bytes", "2 GiB", "2150000000 bytes"]);
    }
}
