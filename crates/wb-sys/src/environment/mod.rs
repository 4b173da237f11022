//! The environment of a run: the system's configuration, compared before and after the run.
//!
//! State that always varies (free memory, uptime, load) is in [`TransientState`] and is not compared. Secrets are not
//! recorded: see [`wb_model::secrets`].

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

use crate::proc::meminfo;
use crate::{SysRoot, facts};

pub use changes::ChangedValue;

/// The configuration of a system, as far as it can affect results. Values that cannot be read are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Environment {
    /// The kernel and its boot parameters.
    pub kernel: kernel::Kernel,
    /// State of each known hardware vulnerability and its mitigation, as reported by the kernel.
    pub mitigations: BTreeMap<String, String>,
    /// The processors and their settings.
    pub cpu: cpu::CpuSettings,
    /// Memory size, swap, huge pages and NUMA nodes.
    pub memory: memory::MemorySettings,
    /// Mainboard, firmware and chipset.
    pub board: board::Board,
    /// The block devices, by name.
    pub block: BTreeMap<String, block::BlockDevice>,
    /// The mounted file systems, by mount point.
    pub mounts: BTreeMap<String, mounts::Mount>,
    /// The network interfaces, by name.
    pub network: BTreeMap<String, network::Interface>,
    /// The kernel settings (sysctl) that can affect results, by name: `vm.swappiness`.
    pub sysctl: BTreeMap<String, String>,
    /// The soft and hard resource limits of this process, by name.
    pub limits: BTreeMap<String, String>,
    /// The cgroups of this process, by hierarchy.
    pub cgroup: BTreeMap<String, String>,
    /// The environment variables that can change the behaviour of programs.
    pub variables: BTreeMap<String, String>,
    /// The requested programs, by name; those that are not installed are left out.
    pub tools: BTreeMap<String, tools::ToolVersion>,
    /// The installed packages and their versions.
    pub packages: BTreeMap<String, String>,
    /// State that always varies and is not compared.
    pub transient: TransientState,
}

/// State that differs at every reading.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct TransientState {
    /// Time since boot, in seconds.
    pub uptime_seconds: Option<u64>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<String>,
    /// Memory available without swapping.
    pub memory_available: Bytes,
    /// Swap in use.
    pub swap_used: Bytes,
    /// Current frequencies in MHz, by policy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub megahertz: BTreeMap<String, u64>,
}

impl Environment {
    /// `tools` has the programs whose versions are recorded, with the arguments that print them.
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

    /// The values that differ, by path: `sysctl/vm.swappiness`. Transient state is not compared.
    pub fn difference(before: &Self, after: &Self) -> Vec<ChangedValue> {
        changes::diff(before, after)
    }
}

impl TransientState {
    fn read(root: &SysRoot) -> Self {
        let uptime = root.text("/proc/uptime").ok();
        let load = root.text("/proc/loadavg").ok();
        let meminfo = root.text("/proc/meminfo").unwrap_or_default();
        let size = |name: &str| meminfo::size(&meminfo, name).unwrap_or_default();
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

    fn version_query(program: &str) -> tools::VersionQueries {
        tools::VersionQueries::from([(program.to_owned(), vec!["--version".to_owned()])])
    }

    #[test]
    fn an_empty_root_has_an_empty_environment() {
        assert_eq!(Environment::read(&FakeRoot::new().root(), &version_query("fio")), Environment::default());
    }

    #[test]
    fn an_environment_survives_serialisation() {
        for fake in [fake_root::laptop(), fake_root::server(), fake_root::arm(), fake_root::container()] {
            let environment = Environment::read(&fake.root(), &tools::VersionQueries::new());
            let text = serde_json::to_string(&environment).unwrap();
            assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), environment);
        }
    }

    #[test]
    fn reading_this_machine_twice_finds_no_difference() {
        let read = || Environment::read(&SysRoot::real(), &version_query("env"));
        let mut changes = Environment::difference(&read(), &read());
        // Other tests may create and remove mounts and cgroups meanwhile.
        changes.retain(|change| !change.path.starts_with("mounts/") && !change.path.starts_with("cgroup/"));
        assert_eq!(changes, []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn garbage_in_any_file_does_not_panic(garbage in proptest::collection::vec(any::<u8>(), 0..200)) {
            let files = [
                "/proc/cmdline", "/proc/version", "/proc/meminfo", "/proc/swaps", "/proc/self/mountinfo", "/proc/self/limits",
                "/proc/self/cgroup", "/proc/self/environ", "/proc/cpuinfo", "/proc/uptime", "/proc/loadavg",
                "/var/lib/dpkg/status", "/lib/apk/db/installed", "/sys/block/sda/size", "/sys/block/sda/queue/scheduler",
                "/sys/devices/system/cpu/online", "/sys/devices/system/node/node0/meminfo",
                "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/swappiness",
            ];
            let fake = files.iter().fold(FakeRoot::new(), |fake, path| fake.file(path, &garbage));
            let environment = Environment::read(&fake.root(), &tools::VersionQueries::new());
            let _ = Environment::difference(&environment, &Environment::default());
            let _ = facts::facts(&fake.root());
        }
    }
}
