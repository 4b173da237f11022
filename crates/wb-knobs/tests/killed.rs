//! A fake machine is restored byte for byte, wherever the process that tunes it is killed.
//!
//! strace kills the process at the n-th system call that changes anything, for n = 1, 2, … until it makes fewer calls:
//! between two such calls nothing changes. `make test` leaves out two of three.
#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use wb_sys::fake_root::{FakeRoot, contents};
use wb_sys::{SysRoot, UndoLog};

/// The system calls that change a file, a folder or a lock.
const CALLS: [&str; 13] = [
    "write",
    "fsync",
    "ftruncate",
    "flock",
    "rename",
    "renameat",
    "renameat2",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
];

/// A system call and its number, counted from 1: strace counts each call separately.
type Call = (&'static str, u32);

/// A call that never happens.
const NEVER: Call = ("rmdir", 65_535);

/// Knobs of one and of many files, with options, numbers and masks as values.
const SET: [&str; 7] = [
    "governor=performance",
    "frequency-limits=2000",
    "thp=never",
    "hugetlb=9",
    "swappiness=1",
    "irq-affinity=1",
    "drop-caches=all",
];

/// Another set, which shares some knobs with the first.
const OTHER: [&str; 3] = ["thp=always", "swappiness=10", "writeback-interval=1000 ms"];

fn machine() -> FakeRoot {
    let cpu = "/sys/devices/system/cpu";
    let pool = "hugepages/hugepages-2048kB/nr_hugepages";
    let files = [
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
    let fake = files.iter().fold(FakeRoot::new(), |fake, (path, text)| fake.file(path, text));
    let fake = fake.file(&format!("/sys/kernel/mm/{pool}"), "16\n");
    (0..2).fold(fake, |fake, number| {
        let policy = format!("{cpu}/cpufreq/policy{number}");
        fake.file(&format!("/sys/devices/system/node/node{number}/{pool}"), "8\n")
            .file(&format!("{policy}/scaling_governor"), "powersave\n")
            .file(&format!("{policy}/cpuinfo_min_freq"), "800000\n")
            .file(&format!("{policy}/cpuinfo_max_freq"), "3000000\n")
            .file(&format!("{policy}/scaling_min_freq"), "800000\n")
            .file(&format!("{policy}/scaling_max_freq"), "3000000\n")
    })
}

/// The contents of all files below a folder, except that of the action, which has no state.
fn all(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = contents(folder);
    found.retain(|path, _| !path.ends_with("drop_caches"));
    found
}

/// A fake machine, and the helper that tunes it.
struct TestMachine {
    fake_root: FakeRoot,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
enum ProcessEnd {
    Killed,
    Done(String),
}

impl TestMachine {
    /// None where strace cannot be used.
    fn new() -> Option<Self> {
        let strace = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
        if !strace.is_ok_and(|output| output.status.success()) {
            wb_test_skip::skip!("being killed at every step: `strace` is not installed or may not trace");
            return None;
        }
        let fake = machine();
        let before = all(&fake.root().path("/").unwrap());
        Some(Self { fake_root: fake, before })
    }

    fn folder(&self) -> PathBuf {
        self.fake_root.root().path("/").unwrap()
    }

    /// Runs the test helper, and kills it at one of its system calls.
    fn killed_at(&self, (call, time): Call, words: &[&str]) -> ProcessEnd {
        let inject = format!("inject={call}:signal=KILL:when={time}");
        let mut command = Command::new("strace");
        command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
        let output = command.arg(env!("CARGO_BIN_EXE_wb-test-tune")).arg(self.folder()).args(words).output().unwrap();
        match output.status.signal() {
            Some(9) => ProcessEnd::Killed,
            _ => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                ProcessEnd::Done(String::from_utf8_lossy(&output.stdout).into_owned())
            }
        }
    }

    /// Reverts as the next start does, and checks that everything is restored.
    fn assert_restores(&self, context: &str) {
        drop(UndoLog::open(&self.fake_root.root(), "the next start").unwrap().revert().unwrap());
        assert_eq!(all(&self.folder()), self.before, "{context}");
        assert!(!self.folder().join("var/lib/weighbridge").exists(), "{context}");
    }

    fn apply(&self, set: &[&str]) {
        assert!(matches!(self.killed_at(NEVER, &apply_words(set)), ProcessEnd::Done(_)));
    }
}

/// The instances of each call at which a process is killed.
#[derive(Clone, Copy)]
struct Instances {
    step: usize,
}

const ALL: Instances = Instances { step: 1 };
/// The first, the fourth …
const THIRD: Instances = Instances { step: 3 };

impl Instances {
    /// Kills at these instances of each call until the process makes no more; returns the number of kills.
    fn of_every_call(self, mut killed_at: impl FnMut(Call) -> ProcessEnd) -> usize {
        let kills_at =
            |call| (1..).step_by(self.step).take_while(|time| killed_at((call, *time)) == ProcessEnd::Killed).count();
        CALLS.into_iter().map(kills_at).sum()
    }
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn soak_a_process_killed_at_any_call_leaves_no_change() {
    for kill in [while_applying, while_reverting, several_times, before_a_change_by_others] {
        kill(ALL);
    }
}

fn apply_words<'a>(set: &[&'a str]) -> Vec<&'a str> {
    ["apply"].iter().chain(set).copied().collect()
}

#[test]
fn changes_of_a_process_killed_while_applying_are_reverted() {
    while_applying(THIRD);
}

fn while_applying(instances: Instances) {
    let Some(lab) = TestMachine::new() else { return };
    let calls = instances.of_every_call(|call| {
        let end = lab.killed_at(call, &apply_words(&SET));
        lab.assert_restores(&format!("killed at {call:?} of applying"));
        end
    });
    println!("killed at {calls} calls of applying");
    assert!(calls > 60 / instances.step, "{calls}");
}

#[test]
fn a_revert_that_was_killed_is_completed_by_the_next() {
    while_reverting(THIRD);
}

fn while_reverting(instances: Instances) {
    let Some(lab) = TestMachine::new() else { return };
    let calls = instances.of_every_call(|call| {
        lab.apply(&SET);
        let end = lab.killed_at(call, &["revert"]);
        lab.assert_restores(&format!("killed at {call:?} of reverting"));
        end
    });
    println!("killed at {calls} calls of reverting");
    assert!(calls > 30 / instances.step, "{calls}");
}

#[test]
fn changes_of_several_killed_processes_are_reverted() {
    several_times(THIRD);
}

fn several_times(instances: Instances) {
    let Some(lab) = TestMachine::new() else { return };
    let calls = instances.of_every_call(|call| {
        // Killed while applying a set, then while applying another set, then while reverting both.
        lab.killed_at(call, &apply_words(&SET));
        let end = lab.killed_at(call, &apply_words(&OTHER));
        lab.killed_at(call, &["revert"]);
        lab.assert_restores(&format!("killed at {call:?} of each"));
        end
    });
    println!("killed at {calls} calls of a second set");
    assert!(calls > 10 / instances.step, "{calls}");
}

#[test]
fn changes_by_others_after_a_kill_are_left_and_reported() {
    before_a_change_by_others(THIRD);
}

fn before_a_change_by_others(instances: Instances) {
    let Some(lab) = TestMachine::new() else { return };
    let swappiness = "/proc/sys/vm/swappiness";
    let root: SysRoot = lab.fake_root.root();
    let full = root.path(swappiness).unwrap();
    instances.of_every_call(|call| {
        let end = lab.killed_at(call, &apply_words(&SET));
        // Only a change whose result is in the log can be told from one by another process.
        let log_text = fs::read_to_string(lab.folder().join("var/lib/weighbridge/undo/log.jsonl")).unwrap_or_default();
        let change =
            UndoLog::changes(&root).unwrap().into_iter().find(|change| change.resource.description() == swappiness);
        let applied = change.filter(|change| log_text.contains(&format!("\"applied\",\"number\":{}", change.number)));
        let mut log = UndoLog::open(&root, "the next start").unwrap();
        if applied.is_some() {
            fs::write(&full, "33\n").unwrap();
        }
        let undone = log.revert().unwrap();
        if applied.is_some() {
            let message =
                undone.iter().find(|(change, _)| change.resource.description() == swappiness).unwrap().1.to_string();
            assert_eq!(message, "left at `33`, since something else changed it");
            assert_eq!(fs::read_to_string(&full).unwrap(), "33\n");
            fs::write(&full, "60\n").unwrap();
        }
        drop(log);
        assert_eq!(all(&lab.folder()), lab.before, "{call:?}");
        end
    });
}
