//! What the kernel says of a running process's placement: the proof that what was asked is so.

use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use wb_model::{Aslr, HugePages, Placement};

use crate::SysRoot;
use crate::facts::cpu_list;

use super::HugePagesMethod;

/// The personality flag that switches address randomisation off.
const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;

/// A process's placement as it was seen after it had become its program. What could not be seen (it
/// had ended, the kernel lacks it, or forbids it) is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EffectivePlacement {
    /// The CPUs it may run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    /// The nodes it may have memory from, cpusets considered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<Vec<u32>>,
    /// Its memory policy in the kernel's words: `default`, `bind:0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_policy: Option<String>,
    /// Whether it may have transparent huge pages at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<bool>,
    /// By which means it gets them, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages_method: Option<HugePagesMethod>,
    /// Whether its addresses are randomised, as far as it decides itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aslr: Option<bool>,
    /// The cgroups it is in, as `/proc/PID/cgroup` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<String>,
}

impl EffectivePlacement {
    /// What is seen of a process now.
    pub fn read(root: &SysRoot, pid: u32) -> Self {
        let status = root.text(format!("/proc/{pid}/status")).unwrap_or_default();
        let list = |name| field(&status, name).and_then(cpu_list::parse);
        let personality = root.text(format!("/proc/{pid}/personality")).ok();
        let cgroups = root.text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Self {
            cpus: list("Cpus_allowed_list"),
            memory_nodes: list("Mems_allowed_list"),
            memory_policy: memory_policy(root, pid),
            huge_pages: field(&status, "THP_enabled").map(|value| value == "1"),
            huge_pages_method: None,
            aslr: personality
                .and_then(|bits| u32::from_str_radix(&bits, 16).ok())
                .map(|bits| bits & ADDR_NO_RANDOMIZE == 0),
            cgroups: cgroups.lines().map(str::to_owned).collect(),
        }
    }

    /// How it runs outside what was asked, now that it has had time to change that itself. Fewer CPUs than were asked
    /// for are no difference: programs pin their threads to some of them.
    pub fn escaped_bounds(&self, asked: &Placement) -> Vec<String> {
        let inside = |cpus: &Vec<u32>| cpus.iter().all(|cpu| asked.cpus.contains(cpu));
        let cpus = self.cpus.clone().filter(|cpus| !inside(cpus));
        // That there are no huge pages was said at the start; memory policies end with the program.
        Self { cpus, huge_pages_method: None, ..self.clone() }.differences(asked)
    }

    /// How it differs from what was asked; what could not be seen is no difference.
    pub fn differences(&self, asked: &Placement) -> Vec<String> {
        let mut found = Vec::new();
        let mut wanted = asked.cpus.clone();
        wanted.sort_unstable();
        wanted.dedup();
        if let Some(cpus) = &self.cpus
            && !wanted.is_empty()
            && *cpus != wanted
        {
            found.push(format!("CPUs {cpus:?} instead of {wanted:?}"));
        }
        let mut wanted = asked.memory_nodes.clone();
        wanted.sort_unstable();
        wanted.dedup();
        if let Some(policy) = &self.memory_policy
            && !wanted.is_empty()
            && policy.strip_prefix("bind:").and_then(cpu_list::parse).as_ref() != Some(&wanted)
        {
            found.push(format!("memory policy `{policy}` instead of nodes {wanted:?}"));
        }
        if asked.huge_pages == HugePages::Never && self.huge_pages == Some(true) {
            found.push("huge pages allowed".to_owned());
        }
        if asked.huge_pages == HugePages::Always && self.huge_pages == Some(false) {
            found.push("huge pages forbidden".to_owned());
        }
        if asked.huge_pages == HugePages::Always && self.huge_pages_method == Some(HugePagesMethod::None) {
            found.push("no huge pages: the system has them switched off".to_owned());
        }
        if asked.aslr == Aslr::Off && self.aslr == Some(true) {
            found.push("addresses randomised".to_owned());
        }
        found
    }
}

/// The value of a `Name:   value` line.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// The policy of the first mapping, which is the process's own. Only the beginning is read: the whole
/// file walks every page table.
fn memory_policy(root: &SysRoot, pid: u32) -> Option<String> {
    let mut file = File::open(root.path(format!("/proc/{pid}/numa_maps")).ok()?).ok()?;
    let mut bytes = [0; 256];
    let read = loop {
        match file.read(&mut bytes) {
            Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
            read => break read.ok()?,
        }
    };
    let text = String::from_utf8_lossy(&bytes[..read]);
    text.lines().next()?.split_ascii_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let seen = EffectivePlacement::read(&SysRoot::real(), std::process::id());
        assert!(!seen.cpus.clone().unwrap().is_empty());
        assert_eq!(seen.aslr, Some(true));
        assert!(seen.differences(&Placement::default()).is_empty());
    }

    #[test]
    fn a_process_strays_when_it_leaves_what_was_asked_and_not_when_it_keeps_to_a_part() {
        let asked = Placement { cpus: vec![0, 1], aslr: Aslr::Off, ..Placement::default() };
        let on = |cpus: &[u32]| EffectivePlacement {
            cpus: Some(cpus.to_vec()),
            aslr: Some(false),
            ..EffectivePlacement::default()
        };
        assert!(on(&[1]).escaped_bounds(&asked).is_empty());
        assert_eq!(on(&[1, 2]).escaped_bounds(&asked), ["CPUs [1, 2] instead of [0, 1]"]);
        let randomised = EffectivePlacement { aslr: Some(true), ..on(&[0]) };
        assert_eq!(randomised.escaped_bounds(&asked), ["addresses randomised"]);
        assert!(on(&[7]).escaped_bounds(&Placement::default()).is_empty());
    }

    #[test]
    fn a_difference_is_named_and_the_unseen_is_none() {
        let asked =
            Placement { cpus: vec![3, 1, 3], memory_nodes: vec![0], huge_pages: HugePages::Never, aslr: Aslr::Off };
        assert!(EffectivePlacement::default().differences(&asked).is_empty());
        let seen = EffectivePlacement {
            cpus: Some(vec![0, 1]),
            memory_policy: Some("default".into()),
            huge_pages: Some(true),
            aslr: Some(true),
            ..EffectivePlacement::default()
        };
        assert_eq!(
            seen.differences(&asked),
            [
                "CPUs [0, 1] instead of [1, 3]",
                "memory policy `default` instead of nodes [0]",
                "huge pages allowed",
                "addresses randomised"
            ]
        );
        let right = EffectivePlacement {
            cpus: Some(vec![1, 3]),
            memory_policy: Some("bind:0".into()),
            ..EffectivePlacement::default()
        };
        assert!(right.differences(&asked).is_empty());
    }
}
