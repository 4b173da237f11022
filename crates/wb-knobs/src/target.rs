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
pub enum KnobTarget {
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
    /// Huge pages of one size on one node: `node0`, or `node0/1048576kB` where it is not the usual size.
    NodePages(u32, Option<String>),
    /// An interrupt.
    Interrupt(u32),
    /// Interrupts that come to be: `new`.
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

/// What there can be many of, and what is written as a range therefore.
const RANGE_PREFIXES: [&str; 3] = ["cpu", "policy", "irq"];

/// Names of several targets as people write them: `cpu0-7`, `irq24-43, new`, `sda, sdb`.
pub fn join_names(names: &[&str]) -> String {
    let numbered = |name: &str| {
        let of = |kind: &&'static str| Some((*kind, name.strip_prefix(*kind)?.parse::<u32>().ok()?));
        RANGE_PREFIXES.iter().find_map(of)
    };
    let alike = names.chunk_by(|one, next| {
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
    alike.map(range).collect::<Vec<_>>().join(", ")
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
    fn neighbours_are_written_as_a_range() {
        assert_eq!(join_names(&["policy0", "policy1", "policy2", "policy5"]), "policy0-2,5");
        assert_eq!(join_names(&["irq24", "irq25", "new"]), "irq24-25, new");
        assert_eq!(join_names(&["sda", "sdb"]), "sda, sdb");
        assert_eq!(join_names(&["system"]), "system");
        assert_eq!(join_names(&[]), "");
    }
}
