//! Collection of system information, as in pbench: each collector runs commands and records their output.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::Command;
use wb_model::Bytes;
use wb_test::{Failure, WorkerContext};

/// A collector, or a name for several collectors.
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
    /// Build configuration of the kernel
    KernelConfig,
    /// Mitigations of processor vulnerabilities
    SecurityMitigations,
    /// Packages, caches, cores, and memory
    Topology,
    /// The report of `sos`
    Sos,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorOutput {
    pub name: String,
    pub bytes: Vec<u8>,
    /// Why a collector requested by its own name collected nothing.
    pub failure: Option<String>,
}

struct CollectorScript {
    collector: Collector,
    name: &'static str,
    /// Exits with 127 if its requirement is missing.
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

/// Runs the requested collectors. A missing requirement is noted in the output and does not fail.
pub async fn collect(context: &WorkerContext, requested: &[Collector]) -> Result<Vec<CollectorOutput>, Failure> {
    let selected = expand_collectors(requested);
    let mut all = Vec::new();
    for script in COLLECTORS.iter().filter(|script| selected.contains(&script.collector)) {
        // Not part of the measurement: not placed, and with a higher limit of output.
        let command = Command::new(["sh", "-c", script.script]).output_limit(Bytes(1 << 30));
        let finished = context.run_to_end(command).await?;
        let name = format!("sysinfo-{}", script.name);
        let failure = match finished.exit_reason {
            ending if ending.is_success() => None,
            wb_agent::ExitReason::Exited { status: 127 } => {
                Some(format!("{} not found on this worker", script.requirement))
            }
            ending => Some(format!("{}: {ending}", script.requirement)),
        };
        let bytes = match &failure {
            Some(reason) => format!("absent: {reason}\n").into_bytes(),
            None => finished.stdout,
        };
        let failure = failure.filter(|_| requested.contains(&script.collector));
        all.push(CollectorOutput { name, bytes, failure });
    }
    Ok(all)
}

pub fn contradiction(requested: &[Collector]) -> Option<String> {
    let is_contradictory = requested.contains(&Collector::None) && expand_collectors(requested) != BTreeSet::new();
    is_contradictory.then(|| "`sysinfo`: `none` cannot be combined with other collectors".to_owned())
}

/// Expands names to collectors. `none` does not remove other requested collectors.
fn expand_collectors(requested: &[Collector]) -> BTreeSet<Collector> {
    let every = || COLLECTORS.iter().map(|script| script.collector);
    let expand = |collector: &Collector| -> Vec<Collector> {
        match collector {
            Collector::None => Vec::new(),
            Collector::All => every().collect(),
            Collector::Default => every().filter(|collector| *collector != Collector::Sos).collect(),
            collector => vec![*collector],
        }
    };
    requested.iter().flat_map(expand).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_expand_to_collectors() {
        assert_eq!(expand_collectors(&[Collector::None]).len(), 0);
        assert_eq!(expand_collectors(&[Collector::Default]).len(), 5);
        assert_eq!(expand_collectors(&[Collector::All]).len(), 6);
        assert_eq!(expand_collectors(&[Collector::Block, Collector::Sos]).len(), 2);
        assert_eq!(contradiction(&[Collector::None]), None);
        assert!(contradiction(&[Collector::None, Collector::Block]).is_some());
        assert_eq!(serde_json::to_value(Collector::SecurityMitigations).unwrap(), "security_mitigations");
    }
}
