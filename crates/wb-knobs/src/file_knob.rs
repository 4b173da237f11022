//! Knobs whose value is in one file for each target.

use std::ops::RangeInclusive;

use wb_model::Bytes;
use wb_sys::SysRoot;
use wb_sys::environment::memory::selected_option;

use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::shell_commands::{echo_each, sysctl};
use crate::target::KnobTarget;
use crate::unsupported::Unsupported;
use crate::writes::{
    KnobWrites, check_option, choice, invalid, listed_options, parse_number, parse_size, parse_switch, setting_write,
};

pub struct FileKnob {
    pub description: KnobDescription,
    /// Path of the file; `{}` stands for the target.
    pub path: &'static str,
    pub format: FileFormat,
    pub targets: fn(&SysRoot) -> Vec<KnobTarget>,
    pub assess: fn(&KnobValue) -> Assessment,
    /// The content of the file that is suggested to users.
    pub suggestion: &'static str,
    pub dependents: Option<fn(&SysRoot, &KnobTarget) -> Vec<String>>,
}

/// Format of a file with the value of a knob.
pub enum FileFormat {
    /// 0 or 1.
    Switch,
    /// A whole number in the range that the kernel documents.
    Number(RangeInclusive<i64>),
    /// The same, where `off` stands for 0.
    NumberOrOff(RangeInclusive<i64>),
    /// A time, with this number of units in a microsecond; numbers below zero are read as zero.
    Micros(i64),
    /// A time in hundredths of a second.
    Centiseconds,
    /// A size in KiB.
    Kibibytes,
    /// One of the options listed by the file itself: `always [madvise] never`.
    SelectedOption {
        /// All options of all kernels; empty where modules may add some.
        known: &'static [&'static str],
    },
    /// One of the options listed by another file, with this path; `{}` stands for the target.
    OptionOf(&'static str),
}

impl FileKnob {
    fn path(&self, target: &KnobTarget) -> String {
        path_of(self.path, &target.to_string())
    }
}

fn path_of(pattern: &str, target: &str) -> String {
    pattern.replace("{}", target)
}

impl Knob for FileKnob {
    fn description(&self) -> &KnobDescription {
        &self.description
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        (self.targets)(sys)
    }
    fn read(&self, sys: &SysRoot, target: &KnobTarget) -> Result<KnobValue, Unsupported> {
        let path = self.path(target);
        Ok(match self.format {
            FileFormat::Switch => KnobValue::Switch(sys.number::<i64>(path)? != 0),
            FileFormat::Number(_) | FileFormat::NumberOrOff(_) => KnobValue::Number(sys.number(path)?),
            FileFormat::Micros(units) => {
                KnobValue::Micros(sys.number::<i64>(path)?.max(0).unsigned_abs().div_ceil(units.unsigned_abs()))
            }
            FileFormat::Centiseconds => KnobValue::Millis(sys.number::<u64>(path)?.saturating_mul(10)),
            FileFormat::Kibibytes => KnobValue::Bytes(Bytes(sys.number::<u64>(path)?.saturating_mul(1024))),
            FileFormat::SelectedOption { .. } => KnobValue::Choice(selected_option(&sys.text(path)?).to_owned()),
            FileFormat::OptionOf(_) => KnobValue::Choice(sys.text(path)?),
        })
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        (self.assess)(value)
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let path = self.path(target);
        match &self.format {
            FileFormat::SelectedOption { .. } | FileFormat::OptionOf(_) => {
                choice(&path, &self.offered_values(sys, target), value)
            }
            _ => setting_write(path, self.content(value)?),
        }
    }
    fn check_value(&self, value: &str) -> Result<(), Unsupported> {
        match &self.format {
            FileFormat::SelectedOption { known: [] } | FileFormat::OptionOf(_) => Ok(()),
            FileFormat::SelectedOption { known } => check_option(value, known),
            _ => self.content(value).map(drop),
        }
    }
    fn offered_values(&self, sys: &SysRoot, target: &KnobTarget) -> Vec<String> {
        match &self.format {
            FileFormat::SelectedOption { .. } => listed_options(sys, &self.path(target)),
            FileFormat::OptionOf(listed) => listed_options(sys, &path_of(listed, &target.to_string())),
            _ => Vec::new(),
        }
    }
    fn dependents(&self, sys: &SysRoot, target: &KnobTarget) -> Vec<String> {
        self.dependents.map_or_else(Vec::new, |dependents| dependents(sys, target))
    }
    fn shell_command(&self, _: &SysRoot, targets: &[KnobTarget]) -> String {
        match self.path.strip_prefix("/proc/sys/") {
            Some(name) => sysctl(&format!("{}={}", name.replace('/', "."), self.suggestion)),
            None => echo_each(self.suggestion, targets, |target| path_of(self.path, target)),
        }
    }
}

impl FileKnob {
    /// The content of the file for a value, which does not depend on the machine unless it is an option.
    fn content(&self, value: &str) -> Result<String, Unsupported> {
        let number = |text: &str, range: &RangeInclusive<i64>| parse_number(self.name(), text, range.clone());
        match &self.format {
            FileFormat::Switch => Ok(if parse_switch(value)? { "1" } else { "0" }.to_owned()),
            FileFormat::Number(range) => Ok(number(value, range)?.to_string()),
            FileFormat::NumberOrOff(range) => Ok(number(if value == "off" { "0" } else { value }, range)?.to_string()),
            FileFormat::Micros(units) => {
                // The kernel counts in nanoseconds, whatever the unit of the file.
                let micros = parse_number(self.name(), value.trim_end_matches(" µs"), 0..=i64::MAX / 1000)?;
                Ok((micros * units).to_string())
            }
            FileFormat::Centiseconds => {
                /// The maximum: the kernel counts hundredths of a second in 32 bits.
                const LONGEST: i64 = i32::MAX as i64 * 10;
                match parse_number(self.name(), value.trim_end_matches("ms").trim_end(), 0..=LONGEST)? {
                    millis if millis % 10 == 0 => Ok((millis / 10).to_string()),
                    _ => Err(invalid(self.name(), value, "a multiple of 10 ms, the kernel's resolution")),
                }
            }
            FileFormat::Kibibytes => match parse_size(value)?.0 {
                bytes if bytes % 1024 == 0 => Ok((bytes >> 10).to_string()),
                _ => Err(invalid(self.name(), value, "whole KiB with a unit, such as 128k")),
            },
            FileFormat::SelectedOption { .. } | FileFormat::OptionOf(_) => Ok(value.to_owned()),
        }
    }
}
