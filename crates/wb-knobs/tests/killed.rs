//! A made machine is as it was, byte for byte, wherever whoever tunes it is killed.
//!
//! strace kills at the n-th system call that changes anything, for n = 1, 2, … until nothing is left to be killed at:
//! between two such calls nothing is different.
#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use wb_sys::fake_root::FakeRoot;
use wb_sys::{SysRoot, UndoLog};

/// All that changes a file, a folder or a lock.
const CALLS: [&str; 12] = [
    "write",
    "fsync",
    "ftruncate",
    "flock",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
];

/// One of them, and for which time it is made: strace counts each by itself.
type Call = (&'static str, u32);

/// No process makes so many.
const NEVER: Call = ("rmdir", 65_535);

/// Knobs of one file and of many, of choices, numbers and masks.
const SET: [&str; 7] = [
    "governor=performance",
    "frequency-limits=2000",
    "thp=never",
    "hugetlb=9",
    "swappiness=1",
    "irq-affinity=1",
    "drop-caches=all",
];

/// Another, of which some knobs are in the first too.
const OTHER: [&str; 3] = ["thp=always", "swappiness=10", "writeback-interval=1000 ms"];

fn machine() -> FakeRoot {
    let cpu = "/sys/devices/system/cpu";
    let pool = "hugepages/hugepages-2048kB/nr_hugepages";
    let made = [
        ("/proc/sys/kernel/random/boot_id", "one\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("/proc/sys/vm/swappiness", "60\n"),
        ("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda1 partition 9 0 -2\n"),
        ("/proc/sys/vm/dirty_writeback_centisecs", "500\n"),
        ("/proc/sys/vm/drop_caches", "0\n"),
        ("/proc/irq/24/smp_affinity_list", "0-1\n"),
        ("/proc/irq/default_smp_affinity", "3\n"),
        ("/sys/devices/system/cpu/online", "0-1\n"),
    ];
    let made = made.iter().fold(FakeRoot::new(), |made, (path, text)| made.file(path, text));
    let made = made.file(&format!("/sys/kernel/mm/{pool}"), "16\n");
    (0..2).fold(made, |made, number| {
        let policy = format!("{cpu}/cpufreq/policy{number}");
        made.file(&format!("/sys/devices/system/node/node{number}/{pool}"), "8\n")
            .file(&format!("{policy}/scaling_governor"), "powersave\n")
            .file(&format!("{policy}/cpuinfo_min_freq"), "800000\n")
            .file(&format!("{policy}/cpuinfo_max_freq"), "3000000\n")
            .file(&format!("{policy}/scaling_min_freq"), "800000\n")
            .file(&format!("{policy}/scaling_max_freq"), "3000000\n")
    })
}

/// Every file below a folder, and what it holds, but the action's, which is over.
fn all(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    found.retain(|path, _| !path.ends_with("drop_caches"));
    found
}

/// A made machine, and the example that tunes it.
struct Lab {
    made: FakeRoot,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

/// How a process came to its end.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Killed,
    Done(String),
}

impl Lab {
    /// None where nothing can be killed so.
    fn new() -> Option<Self> {
        let strace = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
        if !strace.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: being killed at every step: there is no `strace`, or it may not trace");
            return None;
        }
        let made = machine();
        let before = all(&made.root().path("/").unwrap());
        Some(Self { made, before })
    }

    fn folder(&self) -> PathBuf {
        self.made.root().path("/").unwrap()
    }

    /// Lets the example do something, and kills it at one of its system calls.
    fn killed_at(&self, (call, time): Call, words: &[&str]) -> End {
        let example = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples").join("tune");
        assert!(example.exists(), "cargo builds examples with tests");
        let inject = format!("inject={call}:signal=KILL:when={time}");
        let mut command = Command::new("strace");
        command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
        let output = command.arg(example).arg(self.folder()).args(words).output().unwrap();
        match output.status.signal() {
            Some(9) => End::Killed,
            _ => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                End::Done(String::from_utf8_lossy(&output.stdout).into_owned())
            }
        }
    }

    /// What the next start does; then all is as it was.
    fn restored(&self, what: &str) {
        drop(UndoLog::open(&self.made.root(), "the next start").unwrap().revert().unwrap());
        assert_eq!(all(&self.folder()), self.before, "{what}");
        assert!(!self.folder().join("var/lib/weighbridge").exists(), "{what}");
    }

    fn apply(&self, set: &[&str]) {
        assert!(matches!(self.killed_at(NEVER, &applying(set)), End::Done(_)));
    }
}

/// Kills at the first, the second … of each call, until it is not made so often; at how many in all.
fn at_every_call(mut killed_at: impl FnMut(Call) -> End) -> u32 {
    let of = |call| (1..).find(|time| killed_at((call, *time)) != End::Killed).unwrap() - 1;
    CALLS.into_iter().map(of).sum()
}

fn applying<'a>(set: &[&'a str]) -> Vec<&'a str> {
    ["apply"].iter().chain(set).copied().collect()
}

#[test]
fn whoever_is_killed_while_applying_has_changed_nothing_that_is_not_put_back() {
    let Some(lab) = Lab::new() else { return };
    let calls = at_every_call(|call| {
        let end = lab.killed_at(call, &applying(&SET));
        lab.restored(&format!("killed at {call:?} of applying"));
        end
    });
    println!("killed at {calls} calls of applying");
    assert!(calls > 60, "{calls}");
}

#[test]
fn whoever_is_killed_while_reverting_has_left_nothing_that_the_next_one_cannot_put_back() {
    let Some(lab) = Lab::new() else { return };
    let calls = at_every_call(|call| {
        lab.apply(&SET);
        let end = lab.killed_at(call, &["revert"]);
        lab.restored(&format!("killed at {call:?} of reverting"));
        end
    });
    println!("killed at {calls} calls of reverting");
    assert!(calls > 30, "{calls}");
}

#[test]
fn one_killed_after_another_leaves_all_to_be_put_back_too() {
    let Some(lab) = Lab::new() else { return };
    let calls = at_every_call(|call| {
        // In the middle of a set, then another set, then in the middle of putting both back.
        lab.killed_at(call, &applying(&SET));
        let end = lab.killed_at(call, &applying(&OTHER));
        lab.killed_at(call, &["revert"]);
        lab.restored(&format!("killed at {call:?} of each"));
        end
    });
    println!("killed at {calls} calls of a second set");
    assert!(calls > 10, "{calls}");
}

#[test]
fn what_somebody_else_changes_after_a_kill_is_left_and_told() {
    let Some(lab) = Lab::new() else { return };
    let swappiness = "/proc/sys/vm/swappiness";
    let root: SysRoot = lab.made.root();
    let full = root.path(swappiness).unwrap();
    at_every_call(|call| {
        let end = lab.killed_at(call, &applying(&SET));
        // From here on it is known what it was set to.
        let log = fs::read_to_string(lab.folder().join("var/lib/weighbridge/undo/log.jsonl")).unwrap_or_default();
        let of_swappiness =
            UndoLog::changes(&root).unwrap().into_iter().find(|change| change.step.description() == swappiness);
        let made = of_swappiness.filter(|change| log.contains(&format!("\"made\",\"number\":{}", change.number)));
        let mut undoing = UndoLog::open(&root, "the next start").unwrap();
        if made.is_some() {
            fs::write(&full, "33\n").unwrap();
        }
        let undone = undoing.revert().unwrap();
        if made.is_some() {
            let told = undone.iter().find(|(change, _)| change.step.description() == swappiness).unwrap().1.to_string();
            assert_eq!(told, "left at `33`, since somebody else changed it");
            assert_eq!(fs::read_to_string(&full).unwrap(), "33\n");
            fs::write(&full, "60\n").unwrap();
        }
        drop(undoing);
        assert_eq!(all(&lab.folder()), lab.before, "{call:?}");
        end
    });
}
