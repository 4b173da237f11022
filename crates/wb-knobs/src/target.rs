//! What a knob is set for.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::SysRoot;
use wb_sys::environment::{block, cpu, network};
use wb_sys::facts::cpu_list;

/// What a knob is set for, or a condition is seen at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The whole system.
    System,
    /// A CPU.
    Cpu(u32),
    /// The CPUs whose frequency is set together.
    Policy(u32),
    /// A block device.
    Disk(String),
    /// A network interface.
    Interface(String),
    /// A size of huge pages: `2048kB`.
    PageSize(String),
    /// A folder.
    Folder(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Cpu(number) => write!(f, "cpu{number}"),
            Self::Policy(number) => write!(f, "policy{number}"),
            Self::Disk(name) | Self::Interface(name) | Self::PageSize(name) | Self::Folder(name) => f.write_str(name),
        }
    }
}

/// Several targets as people write them: `cpu0-7`, `sda, sdb`.
pub fn together(targets: &[Target]) -> String {
    let numbers = |number: fn(&Target) -> Option<u32>| targets.iter().map(number).collect::<Option<Vec<_>>>();
    let cpu = |target: &Target| if let Target::Cpu(number) = target { Some(*number) } else { None };
    let policy = |target: &Target| if let Target::Policy(number) = target { Some(*number) } else { None };
    match (numbers(cpu), numbers(policy)) {
        (Some(numbers), _) if !numbers.is_empty() => format!("cpu{}", cpu_list::format(&numbers)),
        (_, Some(numbers)) if !numbers.is_empty() => format!("policy{}", cpu_list::format(&numbers)),
        _ => targets.iter().map(Target::to_string).collect::<Vec<_>>().join(", "),
    }
}

pub(crate) fn policies(sys: &SysRoot) -> Vec<Target> {
    cpu::policies(sys).into_iter().map(Target::Policy).collect()
}

pub(crate) fn cpus(sys: &SysRoot) -> Vec<Target> {
    sys.numbers("/sys/devices/system/cpu/online").unwrap_or_default().into_iter().map(Target::Cpu).collect()
}

pub(crate) fn disks(sys: &SysRoot) -> Vec<Target> {
    block::names(sys).into_iter().map(Target::Disk).collect()
}

pub(crate) fn interfaces(sys: &SysRoot) -> Vec<Target> {
    network::devices(sys).into_iter().map(Target::Interface).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_written_as_a_range() {
        assert_eq!(together(&[0, 1, 2, 5].map(Target::Policy)), "policy0-2,5");
        assert_eq!(together(&["sda", "sdb"].map(|name| Target::Disk(name.into()))), "sda, sdb");
        assert_eq!(together(&[Target::System]), "system");
    }
}
