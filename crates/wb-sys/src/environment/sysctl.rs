//! Kernel settings (sysctl) that can affect results.

use std::collections::BTreeMap;

use crate::SysRoot;

/// Folders of which all settings are recorded.
const FOLDERS: [&str; 2] = ["vm", "net/core"];

const SETTINGS: [&str; 31] = [
    "fs/aio-max-nr",
    "fs/file-max",
    "fs/nr_open",
    "kernel/io_uring_disabled",
    "kernel/kptr_restrict",
    "kernel/nmi_watchdog",
    "kernel/numa_balancing",
    "kernel/perf_cpu_time_max_percent",
    "kernel/perf_event_max_sample_rate",
    "kernel/perf_event_mlock_kb",
    "kernel/perf_event_paranoid",
    "kernel/pid_max",
    "kernel/randomize_va_space",
    "kernel/sched_autogroup_enabled",
    "kernel/sched_cfs_bandwidth_slice_us",
    "kernel/sched_rt_runtime_us",
    "kernel/sched_schedstats",
    "kernel/soft_watchdog",
    "kernel/timer_migration",
    "kernel/unprivileged_bpf_disabled",
    "kernel/watchdog",
    "kernel/watchdog_thresh",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_wmem",
];

/// Files that are triggers or change at every boot, and are not settings.
const VARYING: [&str; 3] = ["vm/compact_memory", "net/core/netdev_rss_key", "vm/stat_refresh"];

/// The values of the recorded settings by sysctl name: `vm.swappiness`.
pub fn sysctls(root: &SysRoot) -> BTreeMap<String, String> {
    let all = FOLDERS.iter().flat_map(|folder| {
        let names = root.list(format!("/proc/sys/{folder}")).unwrap_or_default();
        names.into_iter().map(move |name| format!("{folder}/{name}"))
    });
    let paths = all.chain(SETTINGS.iter().map(|path| (*path).to_owned()));
    paths
        .filter(|path| !VARYING.contains(&path.as_str()))
        .filter_map(|path| {
            let value = root.text(format!("/proc/sys/{path}")).ok()?;
            Some((path.replace('/', "."), value.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}
