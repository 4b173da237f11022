//! Settings related to a knob are restored, even those that the kernel resets with it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::lab::{CommandResult, Lab};
use crate::read;

/// Settings related to knobs, each a file or a folder of files; `DISK` stands for each disk.
const NEAR: [&str; 26] = [
    "/sys/block/DISK/queue",
    "/sys/devices/system/cpu/cpufreq",
    "/sys/devices/system/cpu/intel_pstate",
    "/sys/kernel/mm/ksm",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/kernel/mm/hugepages",
    "/sys/devices/virtual/workqueue",
    "/proc/irq",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/watchdog_thresh",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_event_mlock_kb",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_expire_centisecs",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_writeback_centisecs",
    "/proc/sys/vm/dirtytime_expire_seconds",
    "/proc/sys/vm/min_free_kbytes",
    "/proc/sys/vm/nr_overcommit_hugepages",
    "/proc/sys/vm/page-cluster",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/vfs_cache_pressure",
    "/proc/sys/vm/watermark_scale_factor",
];

/// Settings that belong to other programs, change by themselves, or have side effects when read.
const MOMENTARY: [&str; 17] = [
    "/proc/sys/fs",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/random",
    "/proc/sys/net/ipv4/neigh",
    "/proc/sys/net/ipv6/neigh",
    "/proc/sys/net/ipv4/conf",
    "/proc/sys/net/ipv6/conf",
    "/sys/devices/virtual/bdi",
    "/sys/devices/virtual/block",
    "/sys/devices/virtual/net",
    "/sys/devices/pci0000:00",
    "/sys/fs",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/slab",
    "/sys/kernel/tracing",
    "/sys/power",
];

/// All sets, and single knobs or values that no set has.
const APPLIED: [&str; 22] = [
    "quiet",
    "latency",
    "throughput",
    "io-scheduler=none",
    "io-scheduler=mq-deadline",
    "io-scheduler=kyber",
    "io-scheduler=bfq",
    "nr-requests=64",
    "nr-requests=96 io-scheduler=none",
    "wbt=0",
    "read-ahead=1m",
    "thp=always",
    "thp=never",
    "thp-defrag=always",
    "hugetlb@2048kB=4",
    "nr-hugepages=3",
    "ksm=on",
    "dirty-limit=64m",
    "aslr=0",
    "irq-affinity=0",
    "shield=1",
    "smt=off",
];

type Settings = BTreeMap<String, String>;

/// Collects the readable and writable settings in a file or below a folder.
fn settings(path: &Path, skip: &dyn Fn(&str) -> bool, found: &mut Settings) {
    let name = path.display().to_string();
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    if skip(&name) || metadata.is_symlink() {
        return;
    }
    if metadata.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| settings(&entry.path(), skip, found));
    } else if metadata.permissions().mode() & 0o600 == 0o600
        && let Ok(text) = fs::read_to_string(path)
    {
        found.insert(name, text.trim().to_owned());
    }
}

fn near(disks: &[String]) -> Settings {
    let mut found = Settings::new();
    for path in NEAR {
        let paths = if path.contains("DISK") {
            disks.iter().map(|disk| path.replace("DISK", disk)).collect()
        } else {
            vec![path.to_owned()]
        };
        // A disk is a symbolic link to its device.
        let real = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
        // Skip pages of 1 GiB, which are too large for a test.
        real.for_each(|path| settings(&path, &|path| path.ends_with("hugepages-1048576kB"), &mut found));
    }
    found
}

/// All settings of this machine except those that change by themselves.
fn all(disks: &[String]) -> Settings {
    let mut found = near(disks);
    let skip = |path: &str| MOMENTARY.contains(&path) || path.contains("/power/") || path.ends_with("/config");
    ["/sys/devices", "/sys/kernel", "/sys/module", "/proc/sys", "/proc/irq"]
        .iter()
        .for_each(|path| settings(Path::new(path), &skip, &mut found));
    found
}

fn disks() -> Vec<String> {
    let names = fs::read_dir("/sys/block").unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let real = |name: &String| !["loop", "ram", "zram", "nbd", "sr", "fd"].iter().any(|kind| name.starts_with(kind));
    let mut disks: Vec<String> = names.filter(real).collect();
    disks.sort();
    disks
}

/// Saved settings, restored when dropped.
struct Restored(Settings);

impl Drop for Restored {
    fn drop(&mut self) {
        // Repeat, because some settings reset others.
        for _ in 0..3 {
            for (path, value) in &self.0 {
                if fs::read_to_string(path).is_ok_and(|now| chosen(now.trim()) != chosen(value)) {
                    let _ = fs::write(path, chosen(value));
                }
            }
        }
    }
}

fn chosen(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(chosen, _)| chosen)
}

/// Changes a setting to an unusual value that the kernel accepts; returns whether that worked.
fn set_unusual(path: &str, value: &str) -> bool {
    let Ok(number) = value.parse::<i64>() else { return false };
    let tries = [number + 3, number - 3, number + 1, number - 1, number + 4];
    tries.iter().filter(|other| **other >= 0).any(|other| {
        let is_accepted = fs::write(path, other.to_string()).is_ok();
        is_accepted && fs::read_to_string(path).is_ok_and(|now| now.trim() != value)
    })
}

fn differences(before: &Settings, after: &Settings) -> Vec<String> {
    let paths = before.keys().chain(after.keys().filter(|path| !before.contains_key(*path)));
    let value = |settings: &Settings, path: &str| settings.get(path).cloned().unwrap_or_else(|| "absent".to_owned());
    let differing = paths.filter(|path| before.get(*path) != after.get(*path));
    differing.map(|path| format!("{path}: {} is now {}", value(before, path), value(after, path))).collect()
}

fn tune(lab: &Lab, line: &str) -> CommandResult {
    lab.weighbridge(line).expect_code_of(&[0, 3])
}

/// Sets unusual values near all knobs, then applies and reverts each set, and checks that everything is restored.
pub(crate) fn nothing_near_a_knob_is_lost(lab: &Lab) {
    let disks = disks();
    let _restored = Restored(near(&disks));
    // Set the scheduler first, because it resets the others.
    for disk in &disks {
        let _ = fs::write(format!("/sys/block/{disk}/queue/scheduler"), "mq-deadline");
    }
    let odd = near(&disks).iter().filter(|(path, value)| set_unusual(path, value)).count();
    println!("{odd} settings near knobs have unusual values");
    assert!(odd > 20, "{odd}");
    let before = all(&disks);
    // Settings that differ now change by themselves.
    let momentary: Vec<String> = {
        std::thread::sleep(std::time::Duration::from_secs(2));
        let again = all(&disks);
        before.keys().filter(|path| again.get(*path) != before.get(*path)).cloned().collect()
    };
    println!("{} settings are compared, {} change by themselves: {momentary:?}", before.len(), momentary.len());
    let mut lost = Vec::new();
    for applied in APPLIED {
        let ran = tune(lab, &format!("tune apply {applied}"));
        ran.out.lines().filter(|line| line.contains(" from `")).for_each(|line| println!("{applied}:{line}"));
        if lab.weighbridge("tune status --json").json()["changed"].as_array().unwrap().is_empty() {
            println!("{applied}: nothing to change here");
            continue;
        }
        tune(lab, "tune revert");
        let now: Settings = all(&disks).into_iter().filter(|(path, _)| !momentary.contains(path)).collect();
        let was: Settings = before.clone().into_iter().filter(|(path, _)| !momentary.contains(path)).collect();
        lost.extend(differences(&was, &now).into_iter().map(|one| format!("{applied}: {one}")));
    }
    assert_eq!(lost, [""; 0], "{}", lost.join("\n"));
}

/// Checks `io-scheduler=none` with unusual values of its queue, with `tune` and in a run.
pub(crate) fn a_scheduler_gives_its_queue_back(lab: &Lab) {
    let has_deadline = |disk: &String| {
        fs::read_to_string(format!("/sys/block/{disk}/queue/scheduler")).is_ok_and(|all| all.contains("mq-deadline"))
    };
    let Some(disk) = disks().into_iter().find(has_deadline) else {
        wb_test_skip::skip!("no disk here can have another scheduler");
        return;
    };
    let _restored = Restored(near(std::slice::from_ref(&disk)));
    let queue = |name: &str| format!("/sys/block/{disk}/queue/{name}");
    // The kernel rounds times to its ticks; 120 ms is a whole number of them.
    let odd = [
        ("scheduler", "mq-deadline"),
        ("nr_requests", "200"),
        ("iosched/read_expire", "120"),
        ("iosched/fifo_batch", "8"),
    ];
    for (name, value) in odd {
        fs::write(queue(name), value).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let holds = || odd.map(|(name, _)| chosen(&read(&queue(name))).to_owned());
    let requested = odd.map(|(_, value)| value.to_owned());
    assert_eq!(holds(), requested);

    let applied = lab.weighbridge(&format!("tune apply io-scheduler@{disk}=none")).expect_code(0);
    assert_ne!(read(&queue("nr_requests")), "200", "the kernel resets it");
    for line in [
        format!(
            "note: setting io-scheduler of {disk} has reset other settings, until `tune revert`:\n  {} from `200` to `",
            queue("nr_requests")
        ),
        format!("\n  {}: gone: ", queue("iosched")),
    ] {
        applied.expect_stdout(&line);
    }
    let reverted = lab.weighbridge("tune revert");
    assert_eq!((reverted.code, holds()), (0, requested.clone()), "{}", reverted.transcript());
    reverted.expect_stdout(&format!("{}: restored (`120`)", queue("iosched/read_expire")));

    // A value requested before is not reset.
    let applied = lab.weighbridge(&format!("tune apply nr-requests@{disk}=64 io-scheduler@{disk}=none"));
    assert_eq!((applied.code, read(&queue("nr_requests"))), (0, "64".to_owned()), "{}", applied.transcript());
    let reverted = lab.weighbridge("tune revert");
    assert_eq!((reverted.code, holds()), (0, requested.clone()), "{}", reverted.transcript());

    // The same if the value was already set.
    fs::write(queue("nr_requests"), "64").unwrap();
    let both = format!("nr-requests@{disk}=64 io-scheduler@{disk}=none");
    let applied = lab.weighbridge(&format!("tune apply {both}"));
    assert_eq!((applied.code, read(&queue("nr_requests"))), (0, "64".to_owned()), "{}", applied.transcript());
    assert!(!applied.out.contains(&queue("nr_requests")), "{}", applied.transcript());
    lab.weighbridge("tune revert").expect_code(0);
    fs::write(queue("nr_requests"), "200").unwrap();
    assert_eq!(holds(), requested);

    // In a run, a requested value is not reported as reset.
    let quick = "--samples 1 --min-time 1ms --warm-up 0 --precision 100";
    let knobs = format!("knobs.io-scheduler@{disk}=none,knobs.nr-requests@{disk}=37");
    let ran = lab.weighbridge(&format!("run steady:{knobs} {quick} --into B")).expect_code_of(&[0, 3]);
    let journal = lab.read("B/journal.jsonl");
    assert!(!journal.contains("nr_requests from"), "{journal}");
    assert_eq!(holds(), requested, "{}", ran.transcript());

    let ran = lab.weighbridge(&format!("run steady:knobs.io-scheduler=none {quick} --into Q")).expect_code_of(&[0, 3]);
    assert_eq!(holds(), requested, "{}", ran.transcript());

    // A value below the requested one is a failure that shows the actual value.
    lab.weighbridge(&format!("tune apply read-ahead@{disk}=5k")).expect_code(3).expect_stdout("set: 4 KiB, not 5k");
    lab.weighbridge("tune revert").expect_code(0);
}
