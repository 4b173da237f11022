//! What every knob can say of itself.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;
use wb_sys::{SysError, SysRoot};

use crate::KnobTarget;
use crate::writes::KnobWrites;

/// One system setting that affects results or noise.
pub trait Knob: Sync {
    /// Its name: `io-scheduler`.
    fn name(&self) -> &'static str;
    /// Why it matters, as one clause.
    fn why(&self) -> &'static str;
    /// Where that is known from, and how much it can be where that can be said.
    fn evidence(&self) -> &'static str;
    /// What it can be set for here.
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget>;
    /// Why there may be nothing that it can be set for.
    fn unsupported_reason(&self) -> &'static str;
    /// What it is set to.
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported>;
    /// Whether that is quiet.
    fn assess(&self, value: &KnobValue) -> Assessment;
    /// What sets it to a value, which is written as it is shown or as the kernel has it.
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, wanted: &str) -> KnobWrites;
    /// The files of other settings that the system may reset when this one is changed: they are restored with it.
    fn dependents(&self, _sys: &SysRoot, _target: &KnobTarget) -> Vec<String> {
        Vec::new()
    }
    /// The targets that are set where none is named.
    fn default_targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        self.targets(sys)
    }
    /// What a target is that has to be named where there are several (`a page size`); none where all of them are set.
    fn required_target(&self) -> Option<&'static str> {
        None
    }
    /// The command that makes it quiet for these targets.
    fn shell_command(&self, sys: &SysRoot, targets: &[KnobTarget]) -> String;
    /// Whether it is something that is set, or something that is done.
    fn nature(&self) -> KnobKind {
        KnobKind::State
    }
    /// Whether it is set where it can be when some of its targets refuse by their nature: an interrupt that is bound to a
    /// CPU. Those are left, and told.
    fn allows_partial(&self) -> bool {
        false
    }
}

/// What a knob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobKind {
    /// It is set, holds, and is put back.
    State,
    /// It is done and over: there is nothing to look at before, and nothing to put back after.
    Action,
}

/// What a knob is set to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnobValue {
    /// On or off.
    Switch(bool),
    /// A count, or the kernel's number for a choice.
    Number(i64),
    /// A size.
    Bytes(Bytes),
    /// A time, in microseconds.
    Micros(u64),
    /// A time, in milliseconds.
    Millis(u64),
    /// What is allowed of frequencies.
    Frequencies {
        /// The lowest allowed, in kHz.
        low: u64,
        /// The highest allowed, in kHz.
        high: u64,
        /// The highest there is, in kHz.
        highest: u64,
    },
    /// One of several named choices.
    Choice(String),
}

impl fmt::Display for KnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => write!(f, "{number}"),
            Self::Bytes(Bytes(bytes)) => match bytes {
                1..1024 => write!(f, "{bytes} bytes"),
                0..0x10_0000 => write!(f, "{} KiB", bytes >> 10),
                0x10_0000..0x4000_0000 => write!(f, "{} MiB", bytes >> 20),
                _ => write!(f, "{:.1} GiB", *bytes as f64 / f64::from(1 << 30)),
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

/// Why something cannot be told here: no error, as on most machines something is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsupported(pub String);

impl From<SysError> for Unsupported {
    fn from(error: SysError) -> Self {
        Self(error.to_string())
    }
}

/// Whether a setting is quiet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assessment {
    /// It adds no noise.
    Yes,
    /// It does.
    No {
        /// What would be better.
        advice: &'static str,
    },
    /// It may.
    Unknown {
        /// What that depends on.
        reason: &'static str,
    },
}

impl Assessment {
    /// Quiet where `condition` holds, otherwise noisy with this advice.
    pub(crate) fn when(condition: bool, advice: &'static str) -> Self {
        if condition { Self::Yes } else { Self::No { advice } }
    }

    /// For a value of another kind than the knob reads.
    pub(crate) const UNEXPECTED_VALUE: Self = Self::Unknown { reason: "a value that is not known" };
}
