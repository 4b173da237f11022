//! Power profiles of tuned and of the firmware, which change many settings at once.

use std::collections::BTreeSet;

use wb_sys::SysRoot;

use crate::counters;
use crate::dependents::{files, frequency_settings, queue_settings};
use crate::file_knob::{FileFormat, FileKnob};
use crate::knob::{Assessment, Knob, KnobDescription, KnobValue};
use crate::target::{self, KnobTarget};
use crate::unsupported::Unsupported;
use crate::writes::{KnobWrites, check_option, command};

/// The active profile of the tuned daemon.
pub struct TunedProfile;

const ACTIVE: &str = "/etc/tuned/active_profile";

/// The folders of tuned's profiles, of versions before and since 2.23.
const PROFILE_FOLDERS: [&str; 4] = ["/usr/lib/tuned", "/etc/tuned", "/usr/lib/tuned/profiles", "/etc/tuned/profiles"];

impl Knob for TunedProfile {
    fn description(&self) -> &KnobDescription {
        &KnobDescription {
            name: "tuned-profile",
            why: "the profile sets governor, read-ahead, swappiness and more, and tuned may adapt them to the load",
            evidence: "tuned's profiles: `balanced` and `powersave` select power-saving governors and energy preferences, `throughput-performance` and `latency-performance` do not",
            unsupported_reason: "tuned is not running here",
        }
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let is_active = sys.exists(ACTIVE) && counters::is_running(sys, "tuned");
        is_active.then_some(KnobTarget::System).into_iter().collect()
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Choice(sys.text(ACTIVE)?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        let KnobValue::Choice(profile) = value else { return Assessment::UNEXPECTED_VALUE };
        let saving = ["balanced", "powersave", "desktop", "laptop", "spindown"];
        let quiet = ["performance", "latency", "throughput", "realtime", "hpc", "virtual"];
        let has = |words: &[&str]| words.iter().any(|word| profile.contains(word));
        match (has(&saving), has(&quiet)) {
            (true, _) => Assessment::Noisy { advice: "use a profile that does not save energy" },
            (false, true) => Assessment::Quiet,
            (false, false) => Assessment::Unknown { reason: "a custom profile: `tuned-adm profile_info` describes it" },
        }
    }
    fn offered_values(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        let of_folder = |folder: &str| {
            // A folder of another version is missing.
            let names = sys.list(folder).unwrap_or_default();
            names.into_iter().filter(|name| sys.exists(format!("{folder}/{name}/tuned.conf"))).collect::<Vec<_>>()
        };
        let names: BTreeSet<String> = PROFILE_FOLDERS.into_iter().flat_map(of_folder).collect();
        names.into_iter().collect()
    }
    fn writes(&self, sys: &SysRoot, target: &KnobTarget, value: &str) -> KnobWrites {
        let offered = self.offered_values(sys, target);
        if !offered.is_empty() {
            // Tuned merges several profiles.
            value.split_whitespace().try_for_each(|profile| check_option(profile, &offered))?;
        }
        let read = ["cat", ACTIVE].map(str::to_owned).to_vec();
        let write = ["tuned-adm", "profile", "{}"].map(str::to_owned).to_vec();
        command(sys, "tuned's profile", "tuned-adm", [read, write], format!("{value}\n"))
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo tuned-adm profile latency-performance".to_owned()
    }
    /// The settings of tuned's own profiles. Tuned restores the previous profile, but not settings changed since then.
    fn dependents(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        let disks = target::disks(sys).into_iter().flat_map(|disk| queue_settings(sys, &disk.to_string()));
        let others = ["kernel/nmi_watchdog", "kernel/numa_balancing", "vm/swappiness", "vm/min_free_kbytes"];
        let others = others.into_iter().map(|name| format!("/proc/sys/{name}"));
        let pages = files(sys, "/sys/kernel/mm/transparent_hugepage");
        frequency_settings(sys).into_iter().chain(disks).chain(pages).chain(others).collect()
    }
}

const PROFILE: &str = "/sys/firmware/acpi/platform_profile";

/// The platform profile: the firmware's policy for power and fans.
pub const PLATFORM_PROFILE: FileKnob = FileKnob {
    description: KnobDescription {
        name: "platform-profile",
        why: "it limits power and fan speed, and thereby how long a high frequency lasts",
        evidence: "kernel documentation, ABI sysfs-platform_profile: a trade-off of performance against heat and noise that the firmware makes below the operating system",
        unsupported_reason: "the firmware has no profile, as on most servers and virtual machines",
    },
    path: PROFILE,
    format: FileFormat::OptionOf("/sys/firmware/acpi/platform_profile_choices"),
    targets: |sys| target::system_with(sys, PROFILE),
    assess: |value| match value {
        KnobValue::Choice(profile) => {
            Assessment::quiet_if(profile == "performance", "let the firmware provide all available power")
        }
        _ => Assessment::UNEXPECTED_VALUE,
    },
    suggestion: "performance",
    dependents: Some(|sys, _| frequency_settings(sys)),
};
