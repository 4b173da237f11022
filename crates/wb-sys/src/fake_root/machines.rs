use super::FakeRoot;
use crate::facts::cpu_list;

const CPU_FOLDER: &str = "/sys/devices/system/cpu";

/// A laptop from 2018: four cores with two threads each, on battery, noisy settings at their defaults. It has no NUMA
/// nodes below `/sys`.
pub fn laptop() -> FakeRoot {
    let flags = "fpu sse sse2 ssse3 sse4_1 sse4_2 avx avx2 fma constant_tsc nonstop_tsc";
    let mut root = with_common_files("lap", "x86_64", 8)
        .file("/proc/cpuinfo", x86_cpuinfo("Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", flags, "8192 KB", 8))
        .file("/proc/meminfo", "MemTotal: 16000000 kB\nMemFree: 1000000 kB\nMemAvailable: 12000000 kB\n");
    for cpu in 0..8 {
        let siblings = [cpu % 4, cpu % 4 + 4];
        root = with_topology(root, cpu, 0, cpu % 4, &siblings);
        root = with_caches(root, cpu, &siblings, &(0..8).collect::<Vec<_>>(), "8192K");
        root = with_cpufreq(root, cpu, "intel_pstate", "powersave");
    }
    root.file(&format!("{CPU_FOLDER}/smt/active"), "1")
        .file(&format!("{CPU_FOLDER}/smt/control"), "on")
        .file(&format!("{CPU_FOLDER}/intel_pstate/no_turbo"), "0")
        .file("/sys/class/power_supply/AC/type", "Mains")
        .file("/sys/class/power_supply/AC/online", "0")
        .file("/sys/class/power_supply/BAT0/type", "Battery")
        .file("/sys/class/power_supply/BAT0/status", "Discharging")
        .file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")
        .file("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm")
        .file("/proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 8388604 0 -2\n")
}

/// A server tuned for low measurement noise: two sockets, each with one NUMA node of 64 GiB and with four cores (fewer
/// than its model has) with two threads each.
pub fn server() -> FakeRoot {
    let mut root = with_common_files("srv", "x86_64", 16)
        .file(
            "/proc/cpuinfo",
            x86_cpuinfo("AMD EPYC 7313 16-Core Processor", "fpu avx avx2 constant_tsc", "512 KB", 16),
        )
        .file("/proc/meminfo", "MemTotal: 134217728 kB\nMemAvailable: 120000000 kB\n");
    for node in 0..2u32 {
        let cpus: Vec<u32> = (0..16).filter(|cpu| cpu / 4 % 2 == node).collect();
        let folder = format!("/sys/devices/system/node/node{node}");
        root = root
            .file(&format!("{folder}/cpulist"), cpu_list::format(&cpus))
            .file(&format!("{folder}/distance"), if node == 0 { "10 32" } else { "32 10" })
            .file(&format!("{folder}/meminfo"), format!("Node {node} MemTotal: 67108864 kB\n"));
        for &cpu in &cpus {
            let siblings = [cpu % 8, cpu % 8 + 8];
            root = with_topology(root, cpu, node, cpu % 4, &siblings);
            root = with_caches(root, cpu, &siblings, &cpus, "32768K");
            root = with_cpufreq(root, cpu, "acpi-cpufreq", "performance");
        }
    }
    root.file(&format!("{CPU_FOLDER}/smt/active"), "1")
        .file(&format!("{CPU_FOLDER}/cpufreq/boost"), "0")
        .file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")
        .file("/proc/sys/kernel/numa_balancing", "0")
}

/// A small ARM board with two clusters of two cores, whose core IDs start at 0 in each. It has no SMT, no frequency
/// scaling and no clock source.
pub fn arm() -> FakeRoot {
    let entry = |cpu: u32| {
        let part = if cpu < 2 { "0xd03" } else { "0xd08" };
        format!("processor\t: {cpu}\nFeatures\t: fp asimd crc32\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
    };
    let mut root = with_common_files("arm", "aarch64", 4)
        .file("/proc/cpuinfo", (0..4).map(entry).collect::<String>())
        .file("/proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 3500000 kB\n");
    for cpu in 0..4 {
        root = with_topology(root, cpu, 0, cpu % 2, &[cpu]);
        let folder = format!("{CPU_FOLDER}/cpu{cpu}/cache/index2");
        root = root
            .file(&format!("{folder}/level"), "2")
            .file(&format!("{folder}/type"), "Unified")
            .file(&format!("{folder}/size"), "1024K")
            .file(&format!("{folder}/shared_cpu_list"), if cpu < 2 { "0-1" } else { "2-3" });
    }
    root
}

/// A container in a virtual machine: it has the main files of `/proc`, only the cgroup part of `/sys`, and is limited
/// to 1 GiB of memory and one and a half CPUs.
pub fn container() -> FakeRoot {
    FakeRoot::new()
        .file("/proc/sys/kernel/hostname", "c0ffee\n")
        .file("/proc/sys/kernel/osrelease", "6.1.0-9-amd64\n")
        .file("/proc/cpuinfo", x86_cpuinfo("Intel Xeon Processor (Skylake)", "fpu avx2 hypervisor", "36608 KB", 2))
        .file("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 7000000 kB\n")
        .file("/proc/self/cgroup", "0::/\n")
        .file("/sys/fs/cgroup/memory.max", "1073741824\n")
        .file("/sys/fs/cgroup/memory.current", "268435456\n")
        .file("/sys/fs/cgroup/cpu.max", "150000 100000\n")
}

fn with_common_files(hostname: &str, arch: &str, cpus: u32) -> FakeRoot {
    let last_cpu = cpus - 1;
    FakeRoot::new()
        .file("/proc/sys/kernel/hostname", hostname)
        .file("/proc/sys/kernel/osrelease", "6.1.0-18-test")
        .file("/proc/sys/kernel/arch", arch)
        .file("/proc/sys/kernel/random/boot_id", "8a3c6e0e-0000-4000-8000-000000000000")
        .file("/proc/sys/kernel/randomize_va_space", "2")
        .file("/proc/sys/kernel/nmi_watchdog", "0")
        .file("/proc/sys/kernel/perf_event_paranoid", "2")
        .file("/proc/sys/vm/swappiness", "60")
        .file("/proc/loadavg", "0.00 0.01 0.05 1/200 4242")
        .file(&format!("{CPU_FOLDER}/online"), format!("0-{last_cpu}"))
        .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
        .file("/sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never")
        .file("/sys/block/nvme0n1/size", "1000215216")
        .file("/sys/block/nvme0n1/queue/rotational", "0")
        .file("/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline")
        .file("/sys/block/nvme0n1/queue/nr_requests", "1023")
        .file("/sys/block/nvme0n1/queue/read_ahead_kb", "128")
        .file("/sys/block/loop0/size", "8")
}

fn x86_cpuinfo(model_name: &str, flags: &str, cache_size: &str, cpus: u32) -> String {
    let entry = |cpu| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: {model_name}\nmicrocode\t: 0xf4\n\
             cache size\t: {cache_size}\nflags\t\t: {flags}\n\n"
        )
    };
    (0..cpus).map(entry).collect()
}

/// Adds the package (socket) and core of a CPU by their IDs, and the CPUs that share the core.
fn with_topology(root: FakeRoot, cpu: u32, package_id: u32, core_id: u32, siblings: &[u32]) -> FakeRoot {
    let folder = format!("{CPU_FOLDER}/cpu{cpu}/topology");
    root.file(&format!("{folder}/physical_package_id"), package_id.to_string())
        .file(&format!("{folder}/core_id"), core_id.to_string())
        .file(&format!("{folder}/thread_siblings_list"), cpu_list::format(siblings))
}

/// L1 and L2 of fixed sizes, shared by the CPUs of the core, and a last-level cache, shared by those of the package.
fn with_caches(root: FakeRoot, cpu: u32, core_cpus: &[u32], package_cpus: &[u32], last_level_size: &str) -> FakeRoot {
    let caches = [
        ("1", "Data", "32K", core_cpus),
        ("1", "Instruction", "32K", core_cpus),
        ("2", "Unified", "512K", core_cpus),
        ("3", "Unified", last_level_size, package_cpus),
    ];
    caches.iter().enumerate().fold(root, |root, (index, (level, kind, size, cpus))| {
        let folder = format!("{CPU_FOLDER}/cpu{cpu}/cache/index{index}");
        root.file(&format!("{folder}/level"), level)
            .file(&format!("{folder}/type"), kind)
            .file(&format!("{folder}/size"), size)
            .file(&format!("{folder}/shared_cpu_list"), cpu_list::format(cpus))
    })
}

/// Adds the frequency scaling of a CPU, from 0.4 to 4.2 GHz.
fn with_cpufreq(root: FakeRoot, cpu: u32, driver: &str, governor: &str) -> FakeRoot {
    let folder = format!("{CPU_FOLDER}/cpufreq/policy{cpu}");
    root.file(&format!("{folder}/scaling_driver"), driver)
        .file(&format!("{folder}/scaling_governor"), governor)
        .file(&format!("{folder}/scaling_min_freq"), "400000")
        .file(&format!("{folder}/scaling_max_freq"), "4200000")
        .file(&format!("{folder}/cpuinfo_min_freq"), "400000")
        .file(&format!("{folder}/cpuinfo_max_freq"), "4200000")
        .file(&format!("{folder}/affected_cpus"), cpu.to_string())
}
