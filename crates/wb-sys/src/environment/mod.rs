//! The world that a run happens in, to be compared before and after.
//!
//! What always varies (free memory, uptime, load) is in [`Momentary`] and takes no part in the
//! comparison. Nothing secret is recorded: see [`wb_model::secrets`].

pub mod block;
pub mod board;
pub mod changes;
pub mod cpu;
pub mod kernel;
pub mod memory;
pub mod mounts;
pub mod network;
pub mod packages;
pub mod process;
pub mod sysctl;
pub mod tools;

mod command;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use crate::{SysRoot, facts};

pub use changes::ChangedValue;

/// The world, as far as it can change what is measured. What cannot be read is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Environment {
    /// The kernel and how it was started.
    pub kernel: kernel::Kernel,
    /// Each hardware weakness and what is done about it, in the kernel's words.
    pub mitigations: BTreeMap<String, String>,
    /// The processors and how they are run.
    pub cpu: cpu::CpuSettings,
    /// Memory, its pages and its nodes.
    pub memory: memory::MemorySettings,
    /// The board, its firmware and its chipset.
    pub board: board::Board,
    /// The block devices, by name.
    pub block: BTreeMap<String, block::BlockDevice>,
    /// What is mounted, by mount point.
    pub mounts: BTreeMap<String, mounts::Mount>,
    /// The network interfaces, by name.
    pub network: BTreeMap<String, network::Interface>,
    /// The kernel's settings that matter, by name: `vm.swappiness`.
    pub sysctl: BTreeMap<String, String>,
    /// The limits of this process, soft and hard, by name.
    pub limits: BTreeMap<String, String>,
    /// The cgroups of this process, by hierarchy.
    pub cgroup: BTreeMap<String, String>,
    /// The environment variables that can change what programs do.
    pub variables: BTreeMap<String, String>,
    /// The programs that were asked for, by name; those that are not here are left out.
    pub tools: BTreeMap<String, tools::ToolVersion>,
    /// The installed packages and their versions.
    pub packages: BTreeMap<String, String>,
    /// What varies always, and is not compared.
    pub transient: TransientState,
}

/// What is different at every look.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct TransientState {
    /// Since the system's start.
    pub uptime_seconds: Option<u64>,
    /// Processes that ran or waited, on average over 1, 5 and 15 minutes.
    pub load: Option<String>,
    /// Memory that could be had without swapping.
    pub memory_available: Bytes,
    /// Swap in use.
    pub swap_used: Bytes,
    /// The CPUs' frequencies.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub megahertz: BTreeMap<String, u64>,
}

impl Environment {
    /// Reads the world. `tools` names the programs whose versions count, and how each is asked for it.
    pub fn read(root: &SysRoot, tools: &tools::VersionQueries) -> Self {
        Self {
            kernel: kernel::Kernel::read(root),
            mitigations: kernel::mitigations(root),
            cpu: cpu::CpuSettings::read(root),
            memory: memory::MemorySettings::read(root),
            board: board::Board::read(root),
            block: block::devices(root),
            mounts: mounts::mounts(root),
            network: network::interfaces(root),
            sysctl: sysctl::sysctls(root),
            limits: process::limits(root),
            cgroup: process::cgroups(root),
            variables: process::variables(root),
            tools: tools::tools(root, tools),
            packages: packages::packages(root),
            transient: TransientState::read(root),
        }
    }

    /// What is different, by path: `sysctl/vm.swappiness`. What varies always is not looked at.
    pub fn difference(before: &Self, after: &Self) -> Vec<ChangedValue> {
        changes::diff(before, after)
    }
}

impl TransientState {
    fn read(root: &SysRoot) -> Self {
        let uptime = root.text("/proc/uptime").ok();
        let load = root.text("/proc/loadavg").ok();
        let meminfo = root.text("/proc/meminfo").map(|text| facts::memory::meminfo(&text)).unwrap_or_default();
        let size = |name: &str| meminfo.get(name).copied().unwrap_or_default();
        Self {
            uptime_seconds: uptime.and_then(|text| text.split('.').next()?.parse().ok()),
            load: load.map(|text| text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")),
            memory_available: facts::memory::available(root),
            swap_used: Bytes(size("SwapTotal").0.saturating_sub(size("SwapFree").0)),
            megahertz: cpu::megahertz(root),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fake_root::{self, FakeRoot};

    fn asked(program: &str) -> tools::VersionQueries {
        tools::VersionQueries::from([(program.to_owned(), vec!["--version".to_owned()])])
    }

    #[test]
    fn an_empty_root_is_an_empty_world() {
        assert_eq!(Environment::read(&FakeRoot::new().root(), &asked("fio")), Environment::default());
    }

    #[test]
    fn the_world_survives_being_written_and_read() {
        for made in [fake_root::laptop(), fake_root::server(), fake_root::arm(), fake_root::container()] {
            let world = Environment::read(&made.root(), &tools::VersionQueries::new());
            let text = serde_json::to_string(&world).unwrap();
            assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), world);
        }
    }

    #[test]
    fn reading_twice_finds_no_difference_on_this_machine() {
        let look = || Environment::read(&SysRoot::real(), &asked("env"));
        let mut changes = Environment::difference(&look(), &look());
        // Another test's folder or group may come and go meanwhile.
        changes.retain(|change| !change.path.starts_with("mounts/") && !change.path.starts_with("cgroup/"));
        assert_eq!(changes, []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn garbage_in_any_file_is_no_panic(garbage in proptest::collection::vec(any::<u8>(), 0..200)) {
            let files = [
                "/proc/cmdline", "/proc/version", "/proc/meminfo", "/proc/swaps", "/proc/self/mountinfo", "/proc/self/limits",
                "/proc/self/cgroup", "/proc/self/environ", "/proc/cpuinfo", "/proc/uptime", "/proc/loadavg",
                "/var/lib/dpkg/status", "/lib/apk/db/installed", "/sys/block/sda/size", "/sys/block/sda/queue/scheduler",
                "/sys/devices/system/cpu/online", "/sys/devices/system/node/node0/meminfo",
                "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/swappiness",
            ];
            let made = files.iter().fold(FakeRoot::new(), |made, path| made.file(path, &garbage));
            let world = Environment::read(&made.root(), &tools::VersionQueries::new());
            let _ = Environment::difference(&world, &Environment::default());
            let _ = facts::facts(&made.root());
        }
    }
}
