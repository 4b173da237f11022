//! What pbench collects of a worker: each collector is a few commands whose output is kept.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::Command;
use wb_model::Bytes;

use crate::{Failure, WorkerContext};

/// A collector, or several by one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Collector {
    /// All but sos, which takes minutes
    Default,
    /// Nothing
    None,
    /// Everything
    All,
    /// Block devices and the settings of their queues
    Block,
    /// libvirt's version, host, and domains, without their secrets
    Libvirt,
    /// How the kernel was built
    KernelConfig,
    /// What the kernel does against flaws of the processor
    SecurityMitigations,
    /// Packages, caches, cores, and memory
    Topology,
    /// The report of `sos`
    Sos,
}

/// What a collector kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorOutput {
    /// The artefact's name.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Why there is nothing, if so, and it was asked for by its own name.
    pub failure: Option<String>,
}

/// How something is collected.
struct CollectorScript {
    collector: Collector,
    name: &'static str,
    /// Exits with 127 where what it needs is not there.
    script: &'static str,
    requirement: &'static str,
}

const COLLECTORS: [CollectorScript; 6] = [
    CollectorScript {
        collector: Collector::Block,
        name: "block.txt",
        script: "lsblk --bytes --output-all --json || exit 127; grep -sH . /sys/block/*/queue/*; true",
        requirement: "lsblk",
    },
    CollectorScript {
        collector: Collector::Libvirt,
        name: "libvirt.txt",
        script: "command -v virsh >/dev/null || exit 127; virsh version; virsh nodeinfo; virsh capabilities; \
                 virsh list --all; virsh list --name | while read -r d; do [ -z \"$d\" ] || virsh dumpxml \"$d\"; done",
        requirement: "virsh",
    },
    CollectorScript {
        collector: Collector::KernelConfig,
        name: "kernel-config.txt",
        script: "cat \"/boot/config-$(uname -r)\" 2>/dev/null || zcat /proc/config.gz 2>/dev/null || exit 127",
        requirement: "/boot/config-* of this kernel or /proc/config.gz",
    },
    CollectorScript {
        collector: Collector::SecurityMitigations,
        name: "security-mitigations.txt",
        script: "grep -sH . /sys/devices/system/cpu/vulnerabilities/* /sys/kernel/debug/x86/*enabled; \
                 [ -d /sys/devices/system/cpu/vulnerabilities ] || exit 127",
        requirement: "/sys/devices/system/cpu/vulnerabilities",
    },
    CollectorScript {
        collector: Collector::Topology,
        name: "topology.txt",
        script: "lstopo-no-graphics --of console 2>/dev/null || lstopo --of console 2>/dev/null || \
                 { lscpu && lscpu --extended; } || exit 127",
        requirement: "lstopo or lscpu",
    },
    CollectorScript {
        collector: Collector::Sos,
        name: "sos.tar",
        script: "command -v sos >/dev/null || exit 127; sos report --batch --quiet --clean --tmp-dir \"$TMPDIR\" >&2 \
                 && cat \"$TMPDIR\"/sosreport-*.tar*",
        requirement: "sos",
    },
];

/// Collects what is asked for. What is not there says so and is no failure.
pub async fn collect(site: &WorkerContext, asked: &[Collector]) -> Result<Vec<CollectorOutput>, Failure> {
    let chosen = expand_collectors(asked);
    let mut all = Vec::new();
    for how in COLLECTORS.iter().filter(|how| chosen.contains(&how.collector)) {
        // Part of no measurement: placed nowhere, and it may write much.
        let command = Command::new(["sh", "-c", how.script]).output_limit(Bytes(1 << 30));
        let finished = site.run_to_end(command).await?;
        let name = format!("sysinfo-{}", how.name);
        let absent = match finished.ending {
            ending if ending.is_success() => None,
            wb_agent::ExitReason::Exited { status: 127 } => {
                Some(format!("there is no {} on this worker", how.requirement))
            }
            ending => Some(format!("{}: {ending}", how.requirement)),
        };
        let bytes = match &absent {
            Some(why) => format!("absent: {why}\n").into_bytes(),
            None => finished.stdout,
        };
        let missed = absent.filter(|_| asked.contains(&how.collector));
        all.push(CollectorOutput { name, bytes, failure: missed });
    }
    Ok(all)
}

/// What names contradict each other.
pub fn contradiction(asked: &[Collector]) -> Option<String> {
    let both = asked.contains(&Collector::None) && expand_collectors(asked) != BTreeSet::new();
    both.then(|| "`sysinfo`: none and others are asked for: leave out the one or the others".to_owned())
}

/// The collectors that names stand for. `none` takes nothing away from what else is asked for.
fn expand_collectors(asked: &[Collector]) -> BTreeSet<Collector> {
    let every = || COLLECTORS.iter().map(|how| how.collector);
    let stands_for = |one: &Collector| -> Vec<Collector> {
        match one {
            Collector::None => Vec::new(),
            Collector::All => every().collect(),
            Collector::Default => every().filter(|collector| *collector != Collector::Sos).collect(),
            one => vec![*one],
        }
    };
    asked.iter().flat_map(stands_for).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_collectors() {
        assert_eq!(expand_collectors(&[Collector::None]).len(), 0);
        assert_eq!(expand_collectors(&[Collector::Default]).len(), 5);
        assert_eq!(expand_collectors(&[Collector::All]).len(), 6);
        assert_eq!(expand_collectors(&[Collector::Block, Collector::Sos]).len(), 2);
        assert_eq!(contradiction(&[Collector::None]), None);
        assert!(contradiction(&[Collector::None, Collector::Block]).is_some());
        assert_eq!(serde_json::to_value(Collector::SecurityMitigations).unwrap(), "security_mitigations");
    }
}
