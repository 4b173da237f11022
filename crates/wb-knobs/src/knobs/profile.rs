//! Profiles that set many things at once.

use wb_sys::SysRoot;

use crate::counters;
use crate::dependents::{files, of_frequency, of_queue};
use crate::knob::{Assessment, Knob, KnobValue, Unsupported};
use crate::shell_commands::echo;
use crate::target::{self, KnobTarget};
use crate::writes::{KnobWrites, choice, command};

/// The profile of the daemon tuned.
pub struct TunedProfile;

const ACTIVE: &str = "/etc/tuned/active_profile";

impl Knob for TunedProfile {
    fn name(&self) -> &'static str {
        "tuned-profile"
    }
    fn why(&self) -> &'static str {
        "tuned sets governor, read-ahead, swappiness and more by its profile, and may adapt them to the load"
    }
    fn evidence(&self) -> &'static str {
        "tuned's profiles: `balanced` and `powersave` choose saving governors and energy preferences, `throughput-performance` and `latency-performance` do not"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        let used = sys.exists(ACTIVE) && counters::is_running(sys, "tuned");
        used.then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "tuned does not run here"
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
            (true, _) => Assessment::No { advice: "a profile that does not save energy" },
            (false, true) => Assessment::Yes,
            (false, false) => {
                Assessment::Unknown { reason: "a profile of your own: `tuned-adm profile_info` tells what it sets" }
            }
        }
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        let read = ["cat", ACTIVE].map(str::to_owned).to_vec();
        let write = ["tuned-adm", "profile", "{}"].map(str::to_owned).to_vec();
        command(sys, "tuned's profile", "tuned-adm", [read, write], format!("{wanted}\n"))
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        "sudo tuned-adm profile latency-performance".to_owned()
    }
    /// What its own profiles set; it goes back to those of the profile before, and not to what somebody had set since.
    fn dependents(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        let disks = target::disks(sys).into_iter().flat_map(|disk| of_queue(sys, &disk.to_string()));
        let others = ["kernel/nmi_watchdog", "kernel/numa_balancing", "vm/swappiness", "vm/min_free_kbytes"];
        let others = others.into_iter().map(|name| format!("/proc/sys/{name}"));
        let pages = files(sys, "/sys/kernel/mm/transparent_hugepage");
        of_frequency(sys).into_iter().chain(disks).chain(pages).chain(others).collect()
    }
}

/// The firmware's own profile of power and fans.
pub struct PlatformProfile;

const PROFILE: &str = "/sys/firmware/acpi/platform_profile";

impl Knob for PlatformProfile {
    fn name(&self) -> &'static str {
        "platform-profile"
    }
    fn why(&self) -> &'static str {
        "the firmware bounds power and fans by it, and with them how long a high clock lasts"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, ABI sysfs-platform_profile: a trade of performance against heat and noise that the firmware makes below the operating system"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<KnobTarget> {
        sys.exists(PROFILE).then_some(KnobTarget::System).into_iter().collect()
    }
    fn unsupported_reason(&self) -> &'static str {
        "the firmware shows no profile, as on most servers and virtual machines"
    }
    fn read(&self, sys: &SysRoot, _: &KnobTarget) -> Result<KnobValue, Unsupported> {
        Ok(KnobValue::Choice(sys.text(PROFILE)?))
    }
    fn assess(&self, value: &KnobValue) -> Assessment {
        match value {
            KnobValue::Choice(profile) => {
                Assessment::when(profile == "performance", "let the firmware give all power it can")
            }
            _ => Assessment::UNEXPECTED_VALUE,
        }
    }
    fn writes(&self, sys: &SysRoot, _: &KnobTarget, wanted: &str) -> KnobWrites {
        choice(sys, PROFILE, "/sys/firmware/acpi/platform_profile_choices", wanted)
    }
    fn shell_command(&self, _: &SysRoot, _: &[KnobTarget]) -> String {
        echo("performance", PROFILE)
    }
    fn dependents(&self, sys: &SysRoot, _: &KnobTarget) -> Vec<String> {
        of_frequency(sys)
    }
}
