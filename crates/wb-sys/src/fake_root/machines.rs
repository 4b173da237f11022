//! The machines that tests stand on.

use super::FakeRoot;
use crate::facts::cpu_list;

const CPU: &str = "/sys/devices/system/cpu";

/// A laptop of 2018: four cores of two threads, one node, on battery, everything at its default.
pub fn laptop() -> FakeRoot {
    let flags = "fpu sse sse2 ssse3 sse4_1 sse4_2 avx avx2 fma constant_tsc nonstop_tsc";
    let mut made = common("lap", "x86_64", 8)
        .file("/proc/cpuinfo", x86("Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", flags, "8192 KB", 8))
        .file("/proc/meminfo", "MemTotal: 16000000 kB\nMemFree: 1000000 kB\nMemAvailable: 12000000 kB\n");
    for cpu in 0..8 {
        let siblings = [cpu % 4, cpu % 4 + 4];
        made = with_topology(made, cpu, 0, cpu % 4, &siblings);
        made = with_caches(made, cpu, &siblings, &(0..8).collect::<Vec<_>>(), "8192K");
        made = with_cpufreq(made, cpu, "intel_pstate", "powersave");
    }
    made.file(&format!("{CPU}/smt/active"), "1")
        .file(&format!("{CPU}/smt/control"), "on")
        .file(&format!("{CPU}/intel_pstate/no_turbo"), "0")
        .file("/sys/class/power_supply/AC/type", "Mains")
        .file("/sys/class/power_supply/AC/online", "0")
        .file("/sys/class/power_supply/BAT0/type", "Battery")
        .file("/sys/class/power_supply/BAT0/status", "Discharging")
        .file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")
        .file("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm")
        .file("/proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 8388604 0 -2\n")
}

/// A server: two sockets, each a node of 64 GiB and four cores of two threads; set up to be quiet.
pub fn server() -> FakeRoot {
    let mut made = common("srv", "x86_64", 16)
        .file("/proc/cpuinfo", x86("AMD EPYC 7313 16-Core Processor", "fpu avx avx2 constant_tsc", "512 KB", 16))
        .file("/proc/meminfo", "MemTotal: 134217728 kB\nMemAvailable: 120000000 kB\n");
    for node in 0..2u32 {
        let cpus: Vec<u32> = (0..16).filter(|cpu| cpu / 4 % 2 == node).collect();
        let folder = format!("/sys/devices/system/node/node{node}");
        made = made
            .file(&format!("{folder}/cpulist"), cpu_list::format(&cpus))
            .file(&format!("{folder}/distance"), if node == 0 { "10 32" } else { "32 10" })
            .file(&format!("{folder}/meminfo"), format!("Node {node} MemTotal: 67108864 kB\n"));
        for &cpu in &cpus {
            let siblings = [cpu % 8, cpu % 8 + 8];
            made = with_topology(made, cpu, node, cpu % 4, &siblings);
            made = with_caches(made, cpu, &siblings, &cpus, "32768K");
            made = with_cpufreq(made, cpu, "acpi-cpufreq", "performance");
        }
    }
    made.file(&format!("{CPU}/smt/active"), "1")
        .file(&format!("{CPU}/cpufreq/boost"), "0")
        .file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")
        .file("/proc/sys/kernel/numa_balancing", "0")
}

/// A small ARM board: two clusters, whose core numbers start anew in each.
pub fn arm() -> FakeRoot {
    let block = |cpu: u32| {
        let part = if cpu < 2 { "0xd03" } else { "0xd08" };
        format!("processor\t: {cpu}\nFeatures\t: fp asimd crc32\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
    };
    let mut made = common("arm", "aarch64", 4)
        .file("/proc/cpuinfo", (0..4).map(block).collect::<String>())
        .file("/proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 3500000 kB\n");
    for cpu in 0..4 {
        made = with_topology(made, cpu, 0, cpu % 2, &[cpu]);
        let folder = format!("{CPU}/cpu{cpu}/cache/index2");
        made = made
            .file(&format!("{folder}/level"), "2")
            .file(&format!("{folder}/type"), "Unified")
            .file(&format!("{folder}/size"), "1024K")
            .file(&format!("{folder}/shared_cpu_list"), if cpu < 2 { "0-1" } else { "2-3" });
    }
    made
}

/// A container in a virtual machine: `/proc`, nothing of `/sys` but its cgroup, at most 1 GiB.
pub fn container() -> FakeRoot {
    FakeRoot::new()
        .file("/proc/sys/kernel/hostname", "c0ffee\n")
        .file("/proc/sys/kernel/osrelease", "6.1.0-9-amd64\n")
        .file("/proc/cpuinfo", x86("Intel Xeon Processor (Skylake)", "fpu avx2 hypervisor", "36608 KB", 2))
        .file("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 7000000 kB\n")
        .file("/proc/self/cgroup", "0::/\n")
        .file("/sys/fs/cgroup/memory.max", "1073741824\n")
        .file("/sys/fs/cgroup/memory.current", "268435456\n")
        .file("/sys/fs/cgroup/cpu.max", "150000 100000\n")
}

fn common(hostname: &str, arch: &str, cpus: u32) -> FakeRoot {
    let last = cpus - 1;
    FakeRoot::new()
        .file("/proc/sys/kernel/hostname", hostname)
        .file("/proc/sys/kernel/osrelease", "6.1.0-18-made")
        .file("/proc/sys/kernel/arch", arch)
        .file("/proc/sys/kernel/random/boot_id", "8a3c6e0e-0000-4000-8000-000000000000")
        .file("/proc/sys/kernel/randomize_va_space", "2")
        .file("/proc/sys/kernel/nmi_watchdog", "0")
        .file("/proc/sys/kernel/perf_event_paranoid", "2")
        .file("/proc/sys/vm/swappiness", "60")
        .file("/proc/loadavg", "0.00 0.01 0.05 1/200 4242")
        .file(&format!("{CPU}/online"), format!("0-{last}"))
        .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
        .file("/sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never")
        .file("/sys/block/nvme0n1/size", "1000215216")
        .file("/sys/block/nvme0n1/queue/rotational", "0")
        .file("/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline")
        .file("/sys/block/nvme0n1/queue/nr_requests", "1023")
        .file("/sys/block/nvme0n1/queue/read_ahead_kb", "128")
        .file("/sys/block/loop0/size", "8")
}

fn x86(model: &str, flags: &str, cache: &str, cpus: u32) -> String {
    let block = |cpu| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: Made\nmodel name\t: {model}\nmicrocode\t: 0xf4\n\
             cache size\t: {cache}\nflags\t\t: {flags}\n\n"
        )
    };
    (0..cpus).map(block).collect()
}

fn with_topology(made: FakeRoot, cpu: u32, package: u32, core: u32, siblings: &[u32]) -> FakeRoot {
    let folder = format!("{CPU}/cpu{cpu}/topology");
    made.file(&format!("{folder}/physical_package_id"), package.to_string())
        .file(&format!("{folder}/core_id"), core.to_string())
        .file(&format!("{folder}/thread_siblings_list"), cpu_list::format(siblings))
}

fn with_caches(made: FakeRoot, cpu: u32, core: &[u32], package: &[u32], last: &str) -> FakeRoot {
    let all = [
        ("1", "Data", "32K", core),
        ("1", "Instruction", "32K", core),
        ("2", "Unified", "512K", core),
        ("3", "Unified", last, package),
    ];
    all.iter().enumerate().fold(made, |made, (index, (level, kind, size, cpus))| {
        let folder = format!("{CPU}/cpu{cpu}/cache/index{index}");
        made.file(&format!("{folder}/level"), level)
            .file(&format!("{folder}/type"), kind)
            .file(&format!("{folder}/size"), size)
            .file(&format!("{folder}/shared_cpu_list"), cpu_list::format(cpus))
    })
}

fn with_cpufreq(made: FakeRoot, cpu: u32, driver: &str, governor: &str) -> FakeRoot {
    let folder = format!("{CPU}/cpufreq/policy{cpu}");
    made.file(&format!("{folder}/scaling_driver"), driver)
        .file(&format!("{folder}/scaling_governor"), governor)
        .file(&format!("{folder}/scaling_min_freq"), "400000")
        .file(&format!("{folder}/scaling_max_freq"), "4200000")
        .file(&format!("{folder}/cpuinfo_min_freq"), "400000")
        .file(&format!("{folder}/cpuinfo_max_freq"), "4200000")
        .file(&format!("{folder}/affected_cpus"), cpu.to_string())
}
