//! The kernel, how it was started, and what it does about the hardware's weaknesses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets;

use crate::SysRoot;

/// The kernel and how it was started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Kernel {
    /// Its release, as `uname -r` says.
    pub release: Option<String>,
    /// Who built it when, and with what.
    pub version: Option<String>,
    /// The line it was started with, secrets masked.
    pub command_line: Option<String>,
    /// The clock that time is read from.
    pub clocksource: Option<String>,
    /// The clocks it could be read from.
    pub clocksources: Option<String>,
    /// The kernel's word for why its reports may be worthless: 0 is none.
    pub tainted: Option<String>,
    /// The distribution's name.
    pub distribution: Option<String>,
    /// The id of this boot.
    pub boot_id: Option<String>,
    /// The hypervisor that it runs under.
    pub hypervisor: Option<String>,
}

impl Kernel {
    pub(super) fn read(root: &SysRoot) -> Self {
        let text = |path: &str| root.text(path).ok();
        let clock = |name: &str| text(&format!("/sys/devices/system/clocksource/clocksource0/{name}"));
        let cpuinfo = crate::facts::cpuinfo::CpuInfo::read(root);
        Self {
            release: text("/proc/sys/kernel/osrelease"),
            version: text("/proc/version"),
            command_line: text("/proc/cmdline").map(|line| secrets::mask_words(&line)),
            clocksource: clock("current_clocksource"),
            clocksources: clock("available_clocksource"),
            tainted: text("/proc/sys/kernel/tainted"),
            distribution: distribution(root),
            boot_id: text("/proc/sys/kernel/random/boot_id"),
            hypervisor: crate::facts::virtualisation::hypervisor(root, &cpuinfo),
        }
    }
}

/// Each hardware weakness and what is done about it, in the kernel's words.
pub fn mitigations(root: &SysRoot) -> BTreeMap<String, String> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = root.list(folder).unwrap_or_default().into_iter();
    names.filter_map(|name| root.text(format!("{folder}/{name}")).ok().map(|state| (name, state))).collect()
}

/// `/etc/os-release` is a link to `/usr/lib` on most systems, relative on few.
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
        let made = FakeRoot::new()
            .file("/proc/cmdline", "root=/dev/vda1 quiet api_token=abc123 mitigations=off\n")
            .file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Vulnerable\n")
            .file("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Made Linux 1\"\n");
        let kernel = Kernel::read(&made.root());
        assert_eq!(kernel.command_line.unwrap(), "root=/dev/vda1 quiet api_token=*** mitigations=off");
        assert_eq!(kernel.distribution.unwrap(), "Made Linux 1");
        assert_eq!(mitigations(&made.root())["meltdown"], "Vulnerable");
    }
}
