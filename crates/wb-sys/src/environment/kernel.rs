//! The kernel, its boot parameters and its mitigations of hardware vulnerabilities.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets;

use crate::SysRoot;

/// The kernel and its boot parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Kernel {
    /// Release, as printed by `uname -r`.
    pub release: Option<String>,
    /// Builder, compiler and build date, from `/proc/version`.
    pub version: Option<String>,
    /// Kernel command line, with secrets masked.
    pub command_line: Option<String>,
    /// Current clock source.
    pub clocksource: Option<String>,
    /// Available clock sources.
    pub clocksources: Option<String>,
    /// Taint flags of the kernel; 0 is untainted.
    pub tainted: Option<String>,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// Id of the current boot.
    pub boot_id: Option<String>,
    /// Hypervisor that the system runs under.
    pub hypervisor: Option<String>,
}

impl Kernel {
    pub(super) fn read(root: &SysRoot) -> Self {
        let text = |path: &str| root.text(path).ok();
        let clock = |name: &str| text(&format!("/sys/devices/system/clocksource/clocksource0/{name}"));
        let cpuinfo = crate::proc::cpuinfo::CpuInfo::read(root);
        Self {
            release: text("/proc/sys/kernel/osrelease"),
            version: text("/proc/version"),
            command_line: text("/proc/cmdline").map(|line| secrets::mask_command_line(&line)),
            clocksource: clock("current_clocksource"),
            clocksources: clock("available_clocksource"),
            tainted: text("/proc/sys/kernel/tainted"),
            distribution: distribution(root),
            boot_id: text("/proc/sys/kernel/random/boot_id"),
            hypervisor: crate::facts::virtualisation::hypervisor(root, &cpuinfo),
        }
    }
}

/// The state of each vulnerability of the hardware, in the words of the kernel.
pub fn mitigations(root: &SysRoot) -> BTreeMap<String, String> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = root.list(folder).unwrap_or_default().into_iter();
    names.filter_map(|name| root.text(format!("{folder}/{name}")).ok().map(|state| (name, state))).collect()
}

/// The name of the distribution. `/etc/os-release` is on most systems a link into `/usr/lib`, on few a relative one.
fn distribution(root: &SysRoot) -> Option<String> {
    let text = root.text("/etc/os-release").or_else(|_| root.text("/usr/lib/os-release")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn the_command_line_is_recorded_without_its_secrets() {
        let fake = FakeRoot::new()
            .file("/proc/cmdline", "root=/dev/vda1 quiet api_token=abc123 mitigations=off\n")
            .file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Vulnerable\n")
            .file("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Fake Linux 1\"\n");
        let kernel = Kernel::read(&fake.root());
        assert_eq!(kernel.command_line.unwrap(), "root=/dev/vda1 quiet api_token=*** mitigations=off");
        assert_eq!(kernel.distribution.unwrap(), "Fake Linux 1");
        assert_eq!(mitigations(&fake.root())["meltdown"], "Vulnerable");
    }
}
