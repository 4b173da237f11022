//! Profiles that set many things at once.

use wb_sys::SysRoot;

use crate::change::echo;
use crate::dependents::{files, of_frequency, of_queue};
use crate::knob::{Knob, Quiet, Unsupported, Value};
use crate::moment;
use crate::set::{Writes, choice, command};
use crate::target::{self, Target};

/// The profile of the daemon tuned.
pub struct Tuned;

const ACTIVE: &str = "/etc/tuned/active_profile";

impl Knob for Tuned {
    fn name(&self) -> &'static str {
        "tuned-profile"
    }
    fn why(&self) -> &'static str {
        "tuned sets governor, read-ahead, swappiness and more by its profile, and may adapt them to the load"
    }
    fn evidence(&self) -> &'static str {
        "tuned's profiles: `balanced` and `powersave` choose saving governors and energy preferences, `throughput-performance` and `latency-performance` do not"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        let used = sys.exists(ACTIVE) && moment::runs(sys, "tuned");
        used.then_some(Target::System).into_iter().collect()
    }
    fn absent(&self) -> &'static str {
        "tuned does not run here"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Choice(sys.text(ACTIVE)?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        let Value::Choice(profile) = value else { return Quiet::STRANGE };
        let saving = ["balanced", "powersave", "desktop", "laptop", "spindown"];
        let quiet = ["performance", "latency", "throughput", "realtime", "hpc", "virtual"];
        let has = |words: &[&str]| words.iter().any(|word| profile.contains(word));
        match (has(&saving), has(&quiet)) {
            (true, _) => Quiet::No { advice: "a profile that does not save energy" },
            (false, true) => Quiet::Yes,
            (false, false) => {
                Quiet::Unknown { reason: "a profile of your own: `tuned-adm profile_info` tells what it sets" }
            }
        }
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        let read = ["cat", ACTIVE].map(str::to_owned).to_vec();
        let write = ["tuned-adm", "profile", "{}"].map(str::to_owned).to_vec();
        command(sys, "tuned's profile", "tuned-adm", [read, write], format!("{wanted}\n"))
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        "sudo tuned-adm profile latency-performance".to_owned()
    }
    /// What its own profiles set; it goes back to those of the profile before, and not to what somebody had set since.
    fn dependents(&self, sys: &SysRoot, _: &Target) -> Vec<String> {
        let disks = target::disks(sys).into_iter().flat_map(|disk| of_queue(sys, &disk.to_string()));
        let others = ["kernel/nmi_watchdog", "kernel/numa_balancing", "vm/swappiness", "vm/min_free_kbytes"];
        let others = others.into_iter().map(|name| format!("/proc/sys/{name}"));
        let pages = files(sys, "/sys/kernel/mm/transparent_hugepage");
        of_frequency(sys).into_iter().chain(disks).chain(pages).chain(others).collect()
    }
}

/// The firmware's own profile of power and fans.
pub struct Platform;

const PROFILE: &str = "/sys/firmware/acpi/platform_profile";

impl Knob for Platform {
    fn name(&self) -> &'static str {
        "platform-profile"
    }
    fn why(&self) -> &'static str {
        "the firmware bounds power and fans by it, and with them how long a high clock lasts"
    }
    fn evidence(&self) -> &'static str {
        "kernel documentation, ABI sysfs-platform_profile: a trade of performance against heat and noise that the firmware makes below the operating system"
    }
    fn targets(&self, sys: &SysRoot) -> Vec<Target> {
        sys.exists(PROFILE).then_some(Target::System).into_iter().collect()
    }
    fn absent(&self) -> &'static str {
        "the firmware shows no profile, as on most servers and virtual machines"
    }
    fn read(&self, sys: &SysRoot, _: &Target) -> Result<Value, Unsupported> {
        Ok(Value::Choice(sys.text(PROFILE)?))
    }
    fn quiet(&self, value: &Value) -> Quiet {
        match value {
            Value::Choice(profile) => Quiet::when(profile == "performance", "let the firmware give all power it can"),
            _ => Quiet::STRANGE,
        }
    }
    fn set(&self, sys: &SysRoot, _: &Target, wanted: &str) -> Writes {
        choice(sys, PROFILE, "/sys/firmware/acpi/platform_profile_choices", wanted)
    }
    fn change(&self, _: &SysRoot, _: &[Target]) -> String {
        echo("performance", PROFILE)
    }
    fn dependents(&self, sys: &SysRoot, _: &Target) -> Vec<String> {
        of_frequency(sys)
    }
}
