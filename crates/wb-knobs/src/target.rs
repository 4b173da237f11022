//! Targets of knobs: the system, CPUs, disks, interfaces.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::SysRoot;
use wb_sys::environment::{block, cpu, network};
use wb_sys::facts::cpu_list;

/// The object that a knob is set for or that a condition is observed on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnobTarget {
    /// The whole system.
    System,
    /// A CPU.
    Cpu(u32),
    /// A frequency policy: the CPUs that share a frequency.
    Policy(u32),
    /// A block device.
    Disk(String),
    /// A network interface.
    Interface(String),
    /// A huge page size: `2048kB`.
    PageSize(String),
    /// Huge pages of one size on one node: `node0` for the default size, else `node0/1048576kB`.
    NodePages(u32, Option<String>),
    /// An interrupt.
    Interrupt(u32),
    /// Future interrupts: `new`.
    NewInterrupts,
    /// A folder.
    Folder(String),
}

impl fmt::Display for KnobTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Cpu(number) => write!(f, "cpu{number}"),
            Self::Policy(number) => write!(f, "policy{number}"),
            Self::NodePages(node, None) => write!(f, "node{node}"),
            Self::NodePages(node, Some(size)) => write!(f, "node{node}/{size}"),
            Self::Interrupt(number) => write!(f, "irq{number}"),
            Self::NewInterrupts => f.write_str("new"),
            Self::Disk(name) | Self::Interface(name) | Self::PageSize(name) | Self::Folder(name) => f.write_str(name),
        }
    }
}

/// Prefixes of targets that are written as ranges, because there can be many of them.
const RANGE_PREFIXES: [&str; 3] = ["cpu", "policy", "irq"];

/// Joins the names of targets for output: `cpu0-7`, `irq24-43, new`, `sda, sdb`.
pub fn join_names(names: &[&str]) -> String {
    let numbered = |name: &str| {
        let parse = |kind: &&'static str| Some((*kind, name.strip_prefix(*kind)?.parse::<u32>().ok()?));
        RANGE_PREFIXES.iter().find_map(parse)
    };
    let ranges = names.chunk_by(|one, next| {
        let kind = |name: &str| numbered(name).map(|(kind, _)| kind);
        kind(one).is_some() && kind(one) == kind(next)
    });
    let range = |names: &[&str]| match numbered(names[0]) {
        Some((kind, _)) => {
            let numbers: Vec<u32> = names.iter().filter_map(|name| Some(numbered(name)?.1)).collect();
            format!("{kind}{}", cpu_list::format(&numbers))
        }
        None => names[0].to_owned(),
    };
    ranges.map(range).collect::<Vec<_>>().join(", ")
}

pub(crate) fn system(_: &SysRoot) -> Vec<KnobTarget> {
    vec![KnobTarget::System]
}

pub(crate) fn system_with(sys: &SysRoot, path: &str) -> Vec<KnobTarget> {
    sys.exists(path).then_some(KnobTarget::System).into_iter().collect()
}

pub(crate) fn policies(sys: &SysRoot) -> Vec<KnobTarget> {
    cpu::policies(sys).into_iter().map(KnobTarget::Policy).collect()
}

pub(crate) fn cpus(sys: &SysRoot) -> Vec<KnobTarget> {
    sys.numbers("/sys/devices/system/cpu/online").unwrap_or_default().into_iter().map(KnobTarget::Cpu).collect()
}

pub(crate) fn disks(sys: &SysRoot) -> Vec<KnobTarget> {
    block::names(sys).into_iter().map(KnobTarget::Disk).collect()
}

pub(crate) fn interfaces(sys: &SysRoot) -> Vec<KnobTarget> {
    network::devices(sys).into_iter().map(KnobTarget::Interface).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_targets_are_written_as_a_range() {
        assert_eq!(join_names(&["policy0", "policy1", "policy2", "policy5"]), "policy0-2,5");
        assert_eq!(join_names(&["irq24", "irq25", "new"]), "irq24-25, new");
        assert_eq!(join_names(&["sda", "sdb"]), "sda, sdb");
        assert_eq!(join_names(&["system"]), "system");
        assert_eq!(join_names(&[]), "");
    }
}
