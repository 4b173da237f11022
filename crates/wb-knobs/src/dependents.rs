//! Files of settings that the kernel resets when a knob beside them is changed.
//!
//! More of them than are reset is no fault: the undo log restores those alone that were.

use wb_sys::{SysRoot, environment};

/// The files of a folder, in the order of their names.
pub(crate) fn files(sys: &SysRoot, folder: &str) -> Vec<String> {
    let paths = sys.list(folder).unwrap_or_default().into_iter().map(|name| format!("{folder}/{name}"));
    paths.filter(|path| sys.path(path).is_ok_and(|full| full.is_file())).collect()
}

/// The settings of a disk's queue, and of its scheduler: `elevator_switch` of the kernel's block/elevator.c gives the
/// queue another depth, throttling another default, and replaces what is in `iosched`; a new depth resets its
/// `async_depth`.
pub(crate) fn of_queue(sys: &SysRoot, disk: &str) -> Vec<String> {
    let folder = format!("/sys/block/{disk}/queue");
    [files(sys, &folder), files(sys, &format!("{folder}/iosched"))].concat()
}

const FREQUENCY: &str = "/sys/devices/system/cpu/cpufreq";

/// The settings of a frequency policy and of its governor, which has files of its own: below the policy, or one folder
/// for all policies.
pub(crate) fn of_policy(sys: &SysRoot, policy: &str) -> Vec<String> {
    let folder = format!("{FREQUENCY}/{policy}");
    [files(sys, &folder), below(sys, &folder), of_governors(sys)].concat()
}

/// The settings of all frequency policies: a switch of boost, or a profile of the firmware, gives them other limits.
pub(crate) fn of_frequency(sys: &SysRoot) -> Vec<String> {
    let policies = environment::cpu::policies(sys).into_iter().map(|number| format!("{FREQUENCY}/policy{number}"));
    let each = policies.flat_map(|folder| [files(sys, &folder), below(sys, &folder)].concat());
    let driver = files(sys, "/sys/devices/system/cpu/intel_pstate");
    files(sys, FREQUENCY).into_iter().chain(driver).chain(each).chain(of_governors(sys)).collect()
}

fn of_governors(sys: &SysRoot) -> Vec<String> {
    let folders = sys.list(FREQUENCY).unwrap_or_default().into_iter().filter(|name| !name.starts_with("policy"));
    folders.flat_map(|name| files(sys, &format!("{FREQUENCY}/{name}"))).collect()
}

/// The files of the folders in a folder.
fn below(sys: &SysRoot, folder: &str) -> Vec<String> {
    let names = sys.list(folder).unwrap_or_default().into_iter();
    names.flat_map(|name| files(sys, &format!("{folder}/{name}"))).collect()
}

/// The CPUs that interrupts may come to: those of a CPU that goes offline are moved to others.
pub(crate) fn of_interrupts(sys: &SysRoot) -> Vec<String> {
    let numbers = sys.numbered_entries("/proc/irq", "").into_iter();
    let each = numbers.map(|number| format!("/proc/irq/{number}/smp_affinity_list"));
    each.chain(["/proc/irq/default_smp_affinity".to_owned()]).collect()
}

/// Which CPUs are online and which of their idle states may be entered: a CPU that comes back may have forgotten.
pub(crate) fn of_cpus(sys: &SysRoot) -> Vec<String> {
    const FOLDER: &str = "/sys/devices/system/cpu";
    let of_cpu = |number: u32| {
        let states = sys.numbered_entries(format!("{FOLDER}/cpu{number}/cpuidle"), "state").into_iter();
        let idle = states.map(move |state| format!("{FOLDER}/cpu{number}/cpuidle/state{state}/disable"));
        [format!("{FOLDER}/cpu{number}/online")].into_iter().chain(idle).collect::<Vec<_>>()
    };
    sys.numbered_entries(FOLDER, "cpu").into_iter().flat_map(of_cpu).collect()
}
