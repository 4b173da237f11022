//! Files of settings that the kernel may reset when a related knob is changed. Listing too many is harmless: the undo
//! log restores only the settings that were reset.

use wb_sys::{SysRoot, environment};

pub(crate) fn files(sys: &SysRoot, folder: &str) -> Vec<String> {
    let paths = sys.list(folder).unwrap_or_default().into_iter().map(|name| format!("{folder}/{name}"));
    paths.filter(|path| sys.path(path).is_ok_and(|full| full.is_file())).collect()
}

/// The settings of a disk's queue and of its scheduler: `elevator_switch` of the kernel's block/elevator.c changes the
/// depth of the queue and the default of writeback throttling, and replaces the files in `iosched`; a new depth resets
/// `async_depth` there.
pub(crate) fn queue_settings(sys: &SysRoot, disk: &str) -> Vec<String> {
    let folder = format!("/sys/block/{disk}/queue");
    [files(sys, &folder), files(sys, &format!("{folder}/iosched"))].concat()
}

const FREQUENCY: &str = "/sys/devices/system/cpu/cpufreq";

/// A governor's files are below the policy or in a folder for all policies.
pub(crate) fn policy_settings(sys: &SysRoot, policy: &str) -> Vec<String> {
    let folder = format!("{FREQUENCY}/{policy}");
    [files(sys, &folder), subfolder_files(sys, &folder), governor_settings(sys)].concat()
}

/// The settings of all frequency policies: switching boost or the platform profile changes their limits.
pub(crate) fn frequency_settings(sys: &SysRoot) -> Vec<String> {
    let policies = environment::cpu::policies(sys).into_iter().map(|number| format!("{FREQUENCY}/policy{number}"));
    let each = policies.flat_map(|folder| [files(sys, &folder), subfolder_files(sys, &folder)].concat());
    let driver = files(sys, "/sys/devices/system/cpu/intel_pstate");
    files(sys, FREQUENCY).into_iter().chain(driver).chain(each).chain(governor_settings(sys)).collect()
}

fn governor_settings(sys: &SysRoot) -> Vec<String> {
    let folders = sys.list(FREQUENCY).unwrap_or_default().into_iter().filter(|name| !name.starts_with("policy"));
    folders.flat_map(|name| files(sys, &format!("{FREQUENCY}/{name}"))).collect()
}

fn subfolder_files(sys: &SysRoot, folder: &str) -> Vec<String> {
    let names = sys.list(folder).unwrap_or_default().into_iter();
    names.flat_map(|name| files(sys, &format!("{folder}/{name}"))).collect()
}

/// The affinities of interrupts: those of a CPU that goes offline are moved to others.
pub(crate) fn interrupt_affinities(sys: &SysRoot) -> Vec<String> {
    let numbers = sys.numbered_entries("/proc/irq", "").into_iter();
    let each = numbers.map(|number| format!("/proc/irq/{number}/smp_affinity_list"));
    each.chain(["/proc/irq/default_smp_affinity".to_owned()]).collect()
}

/// The online state of CPUs and their disabled idle states, which a CPU may lose while it is offline.
pub(crate) fn cpu_settings(sys: &SysRoot) -> Vec<String> {
    const FOLDER: &str = "/sys/devices/system/cpu";
    let files_of_cpu = |number: u32| {
        let states = sys.numbered_entries(format!("{FOLDER}/cpu{number}/cpuidle"), "state").into_iter();
        let idle = states.map(move |state| format!("{FOLDER}/cpu{number}/cpuidle/state{state}/disable"));
        [format!("{FOLDER}/cpu{number}/online")].into_iter().chain(idle).collect::<Vec<_>>()
    };
    sys.numbered_entries(FOLDER, "cpu").into_iter().flat_map(files_of_cpu).collect()
}
