//! Effective placement of a running process, read from `/proc`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader};
use wb_model::{Aslr, HugePages, Placement};

use crate::SysRoot;
use crate::facts::cpu_list;

use super::HugePagesMethod;

/// The personality flag that disables address randomisation.
const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;

/// Size of one read of `/proc/PID/numa_maps`, in bytes: shorter than a line, so that the kernel prints one at a time.
const FIRST_LINE: usize = 32;

/// The effective placement of a process, read after it executed its program. Values that could not be read (the process
/// had ended, the kernel does not report them or denies access) are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EffectivePlacement {
    /// CPUs that it may run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    /// Nodes that it may allocate memory from, considering cpusets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<Vec<u32>>,
    /// Memory policy as reported by the kernel: `default`, `bind:0`. Absent also if none was requested and
    /// there is a single node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_policy: Option<String>,
    /// Whether transparent huge pages are enabled for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<bool>,
    /// How it gets huge pages, where they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages_method: Option<HugePagesMethod>,
    /// Whether address randomisation is enabled by its personality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aslr: Option<bool>,
    /// Its cgroups, as listed in `/proc/PID/cgroup`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<String>,
}

impl EffectivePlacement {
    /// Reads the effective placement of a process.
    pub fn read(root: &SysRoot, pid: u32, requested: &Placement) -> Self {
        let cgroups = root.text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let placement = Self::of_status(root, pid);
        // With a single node, every policy has the same effect; reading it is slow.
        let has_effect = placement.memory_nodes.as_ref().is_none_or(|nodes| nodes.len() > 1);
        let is_read = has_effect || !requested.memory_nodes.is_empty();
        Self {
            memory_policy: if is_read { memory_policy(root, pid) } else { None },
            aslr: aslr(root, pid),
            cgroups: cgroups.lines().map(str::to_owned).collect(),
            ..placement
        }
    }

    /// Reads what `/proc/PID/status` has.
    fn of_status(root: &SysRoot, pid: u32) -> Self {
        let status = root.text(format!("/proc/{pid}/status")).unwrap_or_default();
        let list = |name| field(&status, name).and_then(cpu_list::parse);
        Self {
            cpus: list("Cpus_allowed_list"),
            memory_nodes: list("Mems_allowed_list"),
            huge_pages: field(&status, "THP_enabled").map(|value| value == "1"),
            ..Self::default()
        }
    }

    /// Finds how a process has left its requested placement. This is checked often, so only the requested settings are
    /// read.
    pub fn find_escapes(root: &SysRoot, pid: u32, requested: &Placement) -> Vec<String> {
        let effective = Self {
            memory_policy: if requested.memory_nodes.is_empty() { None } else { memory_policy(root, pid) },
            aslr: if requested.aslr == Aslr::Inherit { None } else { aslr(root, pid) },
            ..Self::of_status(root, pid)
        };
        effective.escaped_bounds(requested)
    }

    /// Finds how the process has left its requested placement after it had time to change it itself. A subset of the
    /// requested CPUs is no difference, since programs pin their threads to some of them.
    fn escaped_bounds(&self, requested: &Placement) -> Vec<String> {
        let is_subset = |cpus: &Vec<u32>| cpus.iter().all(|cpu| requested.cpus.contains(cpu));
        let cpus = self.cpus.clone().filter(|cpus| !is_subset(cpus));
        // Missing huge pages were reported at the start.
        Self { cpus, huge_pages_method: None, ..self.clone() }.differences(requested)
    }

    /// How the effective placement differs from the requested one. Absent values are no difference.
    pub fn differences(&self, requested: &Placement) -> Vec<String> {
        let mut found = Vec::new();
        let mut target = requested.cpus.clone();
        target.sort_unstable();
        target.dedup();
        if let Some(cpus) = &self.cpus
            && !target.is_empty()
            && *cpus != target
        {
            found.push(format!("CPUs {cpus:?} instead of {target:?}"));
        }
        let mut target = requested.memory_nodes.clone();
        target.sort_unstable();
        target.dedup();
        if let Some(policy) = &self.memory_policy
            && !target.is_empty()
            && policy.strip_prefix("bind:").and_then(cpu_list::parse).as_ref() != Some(&target)
        {
            found.push(format!("memory policy `{policy}` instead of nodes {target:?}"));
        }
        if requested.huge_pages == HugePages::Never && self.huge_pages == Some(true) {
            found.push("huge pages allowed".to_owned());
        }
        if requested.huge_pages.are_requested() && self.huge_pages == Some(false) {
            found.push("huge pages forbidden".to_owned());
        }
        if requested.huge_pages.are_requested() && self.huge_pages_method == Some(HugePagesMethod::None) {
            found.push("no huge pages: disabled on the system".to_owned());
        }
        if requested.aslr == Aslr::Off && self.aslr == Some(true) {
            found.push("addresses randomised".to_owned());
        }
        found
    }
}

/// The value of a `Name:   value` line.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// Whether address randomisation is enabled for a process.
fn aslr(root: &SysRoot, pid: u32) -> Option<bool> {
    let personality = root.text(format!("/proc/{pid}/personality")).ok()?;
    u32::from_str_radix(&personality, 16).ok().map(|bits| bits & ADDR_NO_RANDOMIZE == 0)
}

/// The memory policy of the first mapping, which is the process's own. Only its line is read: for each line, the kernel
/// walks the page tables of a mapping.
fn memory_policy(root: &SysRoot, pid: u32) -> Option<String> {
    let file = File::open(root.path(format!("/proc/{pid}/numa_maps")).ok()?).ok()?;
    let mut line = String::new();
    BufReader::with_capacity(FIRST_LINE, file).read_line(&mut line).ok()?;
    line.split_ascii_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placement_of_this_process_is_read() {
        let placement = EffectivePlacement::read(&SysRoot::real(), std::process::id(), &Placement::default());
        assert!(!placement.cpus.clone().unwrap().is_empty());
        assert_eq!(placement.aslr, Some(true));
        assert!(placement.differences(&Placement::default()).is_empty());
    }

    #[test]
    fn leaving_the_requested_cpus_is_reported_and_using_a_subset_is_not() {
        let requested = Placement { cpus: vec![0, 1], aslr: Aslr::Off, ..Placement::default() };
        let on = |cpus: &[u32]| EffectivePlacement {
            cpus: Some(cpus.to_vec()),
            aslr: Some(false),
            ..EffectivePlacement::default()
        };
        assert!(on(&[1]).escaped_bounds(&requested).is_empty());
        assert_eq!(on(&[1, 2]).escaped_bounds(&requested), ["CPUs [1, 2] instead of [0, 1]"]);
        let randomised = EffectivePlacement { aslr: Some(true), ..on(&[0]) };
        assert_eq!(randomised.escaped_bounds(&requested), ["addresses randomised"]);
        assert!(on(&[7]).escaped_bounds(&Placement::default()).is_empty());
    }

    #[test]
    fn differences_are_named_and_absent_values_are_none() {
        let requested =
            Placement { cpus: vec![3, 1, 3], memory_nodes: vec![0], huge_pages: HugePages::Never, aslr: Aslr::Off };
        assert!(EffectivePlacement::default().differences(&requested).is_empty());
        let placement = EffectivePlacement {
            cpus: Some(vec![0, 1]),
            memory_policy: Some("default".into()),
            huge_pages: Some(true),
            aslr: Some(true),
            ..EffectivePlacement::default()
        };
        assert_eq!(
            placement.differences(&requested),
            [
                "CPUs [0, 1] instead of [1, 3]",
                "memory policy `default` instead of nodes [0]",
                "huge pages allowed",
                "addresses randomised"
            ]
        );
        let matching = EffectivePlacement {
            cpus: Some(vec![1, 3]),
            memory_policy: Some("bind:0".into()),
            ..EffectivePlacement::default()
        };
        assert!(matching.differences(&requested).is_empty());
    }
}
