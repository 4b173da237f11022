//! Kills the tuning program at every step with strace, at the n-th system call of a kind for n = 1, 2, …; between two
//! calls that change something, the moment of the kill makes no difference.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{KillOnDrop, Lab};
use crate::read;

/// System calls that change a file, a folder or a lock, start a command that does, or wait for it.
const CALLS: [&str; 12] = [
    "write",
    "fsync",
    "ftruncate",
    "flock",
    "unlink",
    "unlinkat",
    "mkdir",
    "rmdir",
    "clone3",
    "clone",
    "vfork",
    "poll",
];

/// Settings that most machines have and that can be changed briefly without harm.
const FILES: [&str; 10] = [
    "/proc/sys/kernel/randomize_va_space",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_writeback_centisecs",
    "/proc/irq/default_smp_affinity",
    "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/devices/virtual/workqueue/cpumask",
];

/// The content of these files, of interrupt affinities and of the list of swaps.
fn state() -> BTreeMap<String, String> {
    let files = FILES.into_iter().filter(|path| Path::new(path).exists()).map(|path| (path.to_owned(), read(path)));
    let interrupts = std::fs::read_dir("/proc/irq").unwrap().flatten().map(|entry| entry.path().join("smp_affinity"));
    let interrupts = interrupts.filter(|path| path.exists()).map(|path| path.display().to_string());
    // All columns but the fourth, the amount used.
    let columns = |line: &str| {
        line.split_whitespace()
            .enumerate()
            .filter(|(index, _)| *index != 3)
            .map(|(_, word)| format!("{word} "))
            .collect()
    };
    let swaps: Vec<String> = read("/proc/swaps").lines().map(columns).collect();
    files
        .chain(interrupts.map(|path| (path.clone(), read(&path))))
        .chain([("swaps".to_owned(), swaps.join("\n"))])
        .collect()
}

/// Small swap files, active during a test, on machines without other swap.
struct Swaps {
    files: Vec<PathBuf>,
}

impl Swaps {
    fn on(lab: &Lab) -> Self {
        let mut swaps = Self { files: Vec::new() };
        if read("/proc/swaps").lines().count() > 1 {
            wb_test_skip::skip!("switching swap off: this machine uses its own");
            return swaps;
        }
        for (name, priority) in [("one", None), ("two swap", Some("7")), ("three", None)] {
            let path = lab.path(name);
            std::fs::write(&path, vec![0; 4 << 20]).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            let mkswap = Command::new("mkswap").arg(&path).output();
            let mut swapon = Command::new("swapon");
            swapon.args(priority.iter().flat_map(|priority| ["--priority", priority])).arg(&path);
            if !(mkswap.is_ok_and(|made| made.status.success()) && swapon.output().is_ok_and(|on| on.status.success()))
            {
                wb_test_skip::skip!("switching swap off: nothing can be swapped to here");
                return swaps;
            }
            swaps.files.push(path);
        }
        swaps
    }
}

impl Drop for Swaps {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = Command::new("swapoff").arg(file).status();
        }
    }
}

/// Whether strace is available and may trace.
fn can_trace() -> bool {
    let strace = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    let is_available = strace.is_ok_and(|output| output.status.success());
    if !is_available {
        wb_test_skip::skip!("being killed at every step: no program strace, or it may not trace");
    }
    is_available
}

/// Runs the program and kills it at a call; returns whether it got to that call.
fn is_killed(lab: &Lab, (call, time): (&str, u32), line: &str, place: Option<&Cpuset>) -> bool {
    let program = lab.command(line);
    let mut command = place.map_or_else(|| Command::new("strace"), Cpuset::strace);
    command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"]);
    command.arg(format!("inject={call}:signal=KILL:when={time}")).arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.current_dir(program.get_current_dir().unwrap_or(Path::new("."))).output().unwrap();
    let killed = output.status.signal() == Some(9);
    assert!(
        killed || matches!(output.status.code(), Some(0 | 4)),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    killed
}

/// The occurrences of each call at which a program is killed.
#[derive(Clone, Copy)]
pub(crate) struct Occurrences {
    step: usize,
}

impl Occurrences {
    pub(crate) const ALL: Self = Self { step: 1 };
    /// The first, the fifth …
    pub(crate) const FOURTH: Self = Self { step: 4 };

    /// Kills at these occurrences of each call; returns the number of kills.
    fn of_every_call(self, mut is_killed: impl FnMut((&'static str, u32)) -> bool) -> usize {
        let kills = |call| (1..).step_by(self.step).take_while(|time| is_killed((call, *time))).count();
        CALLS.into_iter().map(kills).sum()
    }
}

/// Checks that settings are restored wherever the program was killed, while applying or reverting.
pub(crate) fn assert_no_traces_of_killed_programs(lab: &Lab, occurrences: Occurrences) {
    if !can_trace() {
        return;
    }
    let swaps = Swaps::on(lab);
    let irq = std::fs::read_dir("/proc/irq")
        .unwrap()
        .flatten()
        .find_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut knobs = [
        "aslr=0",
        "thp=never",
        "dirty-limit=200m",
        "writeback-interval=1000ms",
        "nr-hugepages@node0=2",
        "irq-affinity@new=0",
    ]
    .map(str::to_owned)
    .to_vec();
    knobs.extend(irq.map(|number| format!("irq-affinity@irq{number}=0")));
    knobs.extend((!swaps.files.is_empty()).then(|| "swap=off".to_owned()));
    // Only knobs that this machine would change.
    knobs.retain(|one| {
        lab.weighbridge(&format!("tune status --json {one}")).json()["planned"][0]["outcome"] == "pending"
    });
    assert!(knobs.len() > 3, "{knobs:?}");
    let apply = format!("tune apply {}", knobs.join(" "));
    let before = state();
    let restored = |what: &str| {
        let ran = lab.weighbridge("tune revert");
        assert!(matches!(ran.code, 0 | 4), "{what}: {}", ran.transcript());
        assert_eq!(state(), before, "{what}");
        assert!(!Path::new("/var/lib/weighbridge").exists(), "{what}: nothing is left behind");
    };
    let applying = occurrences.of_every_call(|call| {
        let killed = is_killed(lab, call, &apply, None);
        restored(&format!("{apply} killed at {call:?}"));
        killed
    });
    let reverting = occurrences.of_every_call(|call| {
        let applied = lab.weighbridge(&apply);
        assert_eq!(applied.code, 0, "{}", applied.transcript());
        assert_ne!(state(), before);
        let killed = is_killed(lab, call, "tune revert", None);
        restored(&format!("tune revert killed at {call:?}"));
        killed
    });
    // Kill a first apply, then a second one, then the revert.
    let both = occurrences.of_every_call(|call| {
        is_killed(lab, call, &apply, None);
        let killed = is_killed(lab, call, "tune apply aslr=1 writeback-interval=0", None);
        is_killed(lab, call, "tune revert", None);
        restored(&format!("all killed at {call:?}"));
        killed
    });
    println!("killed at {applying} calls of {apply}, {reverting} of reverting it, {both} of a second set");
}

/// A separate cpuset that is the root for programs in it, so that no other process on this machine is moved.
struct Cpuset {
    mount: String,
    folder: PathBuf,
}

impl Cpuset {
    fn make() -> Option<Self> {
        let mounts = read("/proc/mounts");
        let mount = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let is_cpuset = fields[2] == "cgroup" && fields[3].split(',').any(|option| option == "cpuset");
            is_cpuset.then(|| fields[1].to_owned())
        })?;
        let folder = Path::new(&mount).join(format!("weighbridge-test-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let set = Self { mount, folder };
        for file in ["cpuset.cpus", "cpuset.mems"] {
            std::fs::write(set.folder.join(file), read(&format!("{}/{file}", set.mount))).ok()?;
        }
        let works = set.inside("true").status().is_ok_and(|status| status.success());
        works.then_some(set)
    }

    /// A command that runs in the cpuset, with the cpuset as its root.
    fn inside(&self, words: &str) -> Command {
        let mut command = Command::new("sh");
        let join = r#"echo $$ > "$1/cgroup.procs" && mount=$2 && shift 2 && exec unshare --cgroup --mount sh -c "umount $mount && mount -t cgroup -o cpuset none $mount && exec \"\$@\"" sh "$@""#;
        command.args(["-c", join, "sh"]).arg(&self.folder).arg(&self.mount).args(words.split(' '));
        command
    }

    fn strace(&self) -> Command {
        self.inside("strace")
    }

    /// Its groups and their tasks.
    fn groups(&self) -> BTreeMap<PathBuf, String> {
        let below = std::fs::read_dir(&self.folder).unwrap().flatten().map(|entry| entry.path());
        let folders = below.filter(|path| path.is_dir()).chain([self.folder.clone()]);
        folders.map(|folder| (folder.clone(), std::fs::read_to_string(folder.join("tasks")).unwrap())).collect()
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// An idle process that is observed.
struct Bystander(KillOnDrop);

impl Bystander {
    fn cpus(&self) -> String {
        let status = read(&format!("/proc/{}/status", self.0.0.id()));
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    }
}

/// Checks that processes moved away from a CPU are moved back wherever the program was killed.
pub(crate) fn assert_no_threads_left_moved(lab: &Lab, occurrences: Occurrences) {
    let (all, several) = (read("/sys/devices/system/cpu/online"), read("/sys/devices/system/cpu/online") != "0");
    if !several || !can_trace() {
        wb_test_skip::skip!("shielding a CPU: there is one alone, or nothing can be killed at every step");
        return;
    }
    let Some(cpuset) = Cpuset::make() else {
        wb_test_skip::skip!("shielding a CPU: no cpuset of version 1 can be made here");
        return;
    };
    let bystander = Bystander(KillOnDrop(cpuset.inside("sleep 10000").spawn().unwrap()));
    crate::wait_until("the bystander", || read(&format!("/proc/{}/comm", bystander.0.0.id())) == "sleep");
    let before = (cpuset.groups(), bystander.cpus(), state());
    assert_eq!(before.1, all);
    let run = |line: &str| is_killed(lab, ("rmdir", 65_000), line, Some(&cpuset));
    let restored = |what: &str| {
        assert!(!run("tune revert"));
        assert_eq!((cpuset.groups(), bystander.cpus(), state()), before, "{what}");
        assert!(!Path::new("/var/lib/weighbridge").exists(), "{what}: nothing is left behind");
    };
    let apply = "tune apply shield=0";
    assert!(!run(apply));
    assert!(!bystander.cpus().starts_with('0'), "{}", bystander.cpus());
    restored("shielded");
    let applying = occurrences.of_every_call(|call| {
        let killed = is_killed(lab, call, apply, Some(&cpuset));
        restored(&format!("{apply} killed at {call:?}"));
        killed
    });
    let reverting = occurrences.of_every_call(|call| {
        assert!(!run(apply));
        let killed = is_killed(lab, call, "tune revert", Some(&cpuset));
        restored(&format!("reverting {apply} killed at {call:?}"));
        killed
    });
    drop(bystander);
    println!("killed at {applying} calls of {apply}, {reverting} of reverting it");
}
