//! Killing whoever tunes this machine at every step, by strace: it kills at the n-th system call of a kind, for
//! n = 1, 2, …, and between two calls that change something nothing is different.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::lab::Lab;
use crate::read;

/// All that changes a file, a folder or a lock, lets a command do so, or waits while it does.
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

/// Settings that most machines have, and whose change hurts nobody for a while.
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

/// What those files and the list of swap hold.
fn state() -> BTreeMap<String, String> {
    let files = FILES.into_iter().filter(|path| Path::new(path).exists()).map(|path| (path.to_owned(), read(path)));
    let interrupts = std::fs::read_dir("/proc/irq").unwrap().flatten().map(|entry| entry.path().join("smp_affinity"));
    let interrupts = interrupts.filter(|path| path.exists()).map(|path| path.display().to_string());
    // All but the fourth column, how much of each is used.
    let columns = |line: &str| {
        line.split_whitespace().enumerate().filter(|(at, _)| *at != 3).map(|(_, word)| format!("{word} ")).collect()
    };
    let swaps: Vec<String> = read("/proc/swaps").lines().map(columns).collect();
    files
        .chain(interrupts.map(|path| (path.clone(), read(&path))))
        .chain([("swaps".to_owned(), swaps.join("\n"))])
        .collect()
}

/// Two small files that are swapped to while a test runs, where nothing else is.
struct Swaps {
    files: Vec<PathBuf>,
}

impl Swaps {
    fn on(lab: &Lab) -> Self {
        let mut swaps = Self { files: Vec::new() };
        if read("/proc/swaps").lines().count() > 1 {
            println!("SKIPPED: switching swap off: this machine uses its own");
            return swaps;
        }
        for (name, priority) in [("one", None), ("two swap", Some("7")), ("three", None)] {
            let path = lab.path(name);
            std::fs::write(&path, vec![0; 4 << 20]).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            let made = Command::new("mkswap").arg(&path).output();
            let mut on = Command::new("swapon");
            on.args(priority.iter().flat_map(|priority| ["--priority", priority])).arg(&path);
            if !(made.is_ok_and(|made| made.status.success()) && on.output().is_ok_and(|on| on.status.success())) {
                println!("SKIPPED: switching swap off: nothing can be swapped to here");
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

/// Whether strace can do it here.
fn can_trace() -> bool {
    let strace = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    let can = strace.is_ok_and(|output| output.status.success());
    if !can {
        println!("SKIPPED: being killed at every step: there is no `strace`, or it may not trace");
    }
    can
}

/// Runs the program and kills it at a call; whether it came to that.
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

/// Kills at the first, the second … of each call; how often in all.
fn at_every_call(mut is_killed: impl FnMut((&'static str, u32)) -> bool) -> u32 {
    let of = |call| (1..).find(|time| !is_killed((call, *time))).unwrap() - 1;
    CALLS.into_iter().map(of).sum()
}

/// The settings are those of before, wherever whoever changed them, or put them back, was killed.
pub(crate) fn nothing_stays_of_what_is_killed(lab: &Lab) {
    if !can_trace() {
        return;
    }
    let swaps = Swaps::on(lab);
    let irq = std::fs::read_dir("/proc/irq")
        .unwrap()
        .flatten()
        .find_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut wanted = [
        "aslr=0",
        "thp=never",
        "dirty-limit=200m",
        "writeback-interval=1000ms",
        "nr-hugepages@node0=2",
        "irq-affinity@new=0",
    ]
    .map(str::to_owned)
    .to_vec();
    wanted.extend(irq.map(|number| format!("irq-affinity@irq{number}=0")));
    wanted.extend((!swaps.files.is_empty()).then(|| "swap=off".to_owned()));
    // Those that are to be changed here.
    wanted
        .retain(|one| lab.weighbridge(&format!("tune status --json {one}")).json()["would"][0]["outcome"] == "differs");
    assert!(wanted.len() > 3, "{wanted:?}");
    let apply = format!("tune apply {}", wanted.join(" "));
    let before = state();
    let restored = |what: &str| {
        let ran = lab.weighbridge("tune revert");
        assert!(matches!(ran.code, 0 | 4), "{what}: {}", ran.seen());
        assert_eq!(state(), before, "{what}");
        assert!(!Path::new("/var/lib/weighbridge").exists(), "{what}: nothing of ours stays");
    };
    let applying = at_every_call(|call| {
        let killed = is_killed(lab, call, &apply, None);
        restored(&format!("{apply} killed at {call:?}"));
        killed
    });
    let reverting = at_every_call(|call| {
        let applied = lab.weighbridge(&apply);
        assert_eq!(applied.code, 0, "{}", applied.seen());
        assert_ne!(state(), before);
        let killed = is_killed(lab, call, "tune revert", None);
        restored(&format!("tune revert killed at {call:?}"));
        killed
    });
    // In the middle of one, then of another, then of putting back.
    let both = at_every_call(|call| {
        is_killed(lab, call, &apply, None);
        let killed = is_killed(lab, call, "tune apply aslr=1 writeback-interval=0", None);
        is_killed(lab, call, "tune revert", None);
        restored(&format!("all killed at {call:?}"));
        killed
    });
    println!("killed at {applying} calls of {apply}, {reverting} of reverting it, {both} of a second set");
}

/// A cpuset of our own, which is all that a program in it sees, so that nothing else on this machine is moved.
struct Cpuset {
    mount: String,
    folder: PathBuf,
}

impl Cpuset {
    fn make() -> Option<Self> {
        let mounts = read("/proc/mounts");
        let mount = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let is_it = fields[2] == "cgroup" && fields[3].split(',').any(|option| option == "cpuset");
            is_it.then(|| fields[1].to_owned())
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

    /// What runs words in it, seeing nothing above it.
    fn inside(&self, words: &str) -> Command {
        let mut command = Command::new("sh");
        let join = r#"echo $$ > "$1/cgroup.procs" && mount=$2 && shift 2 && exec unshare --cgroup --mount sh -c "umount $mount && mount -t cgroup -o cpuset none $mount && exec \"\$@\"" sh "$@""#;
        command.args(["-c", join, "sh"]).arg(&self.folder).arg(&self.mount).args(words.split(' '));
        command
    }

    fn strace(&self) -> Command {
        self.inside("strace")
    }

    /// Its groups, and who is in each.
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

/// A program that does nothing for as long as it is looked at.
struct Bystander(Child);

impl Bystander {
    fn cpus(&self) -> String {
        let status = read(&format!("/proc/{}/status", self.0.id()));
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whoever was moved away from a CPU is back where it was, wherever whoever moved it was killed.
pub(crate) fn nobody_stays_moved_by_what_is_killed(lab: &Lab) {
    let (all, several) = (read("/sys/devices/system/cpu/online"), read("/sys/devices/system/cpu/online") != "0");
    if !several || !can_trace() {
        println!("SKIPPED: shielding a CPU: there is one alone, or nothing can be killed at every step");
        return;
    }
    let Some(cpuset) = Cpuset::make() else {
        println!("SKIPPED: shielding a CPU: no cpuset of version 1 can be made here");
        return;
    };
    let bystander = Bystander(cpuset.inside("sleep 10000").spawn().unwrap());
    crate::wait_until("the bystander", || read(&format!("/proc/{}/comm", bystander.0.id())) == "sleep");
    let before = (cpuset.groups(), bystander.cpus(), state());
    assert_eq!(before.1, all);
    let run = |line: &str| is_killed(lab, ("rmdir", 65_000), line, Some(&cpuset));
    let restored = |what: &str| {
        assert!(!run("tune revert"));
        assert_eq!((cpuset.groups(), bystander.cpus(), state()), before, "{what}");
        assert!(!Path::new("/var/lib/weighbridge").exists(), "{what}: nothing of ours stays");
    };
    let apply = "tune apply shield=0";
    assert!(!run(apply));
    assert!(!bystander.cpus().starts_with('0'), "{}", bystander.cpus());
    restored("shielded");
    let applying = at_every_call(|call| {
        let killed = is_killed(lab, call, apply, Some(&cpuset));
        restored(&format!("{apply} killed at {call:?}"));
        killed
    });
    let reverting = at_every_call(|call| {
        assert!(!run(apply));
        let killed = is_killed(lab, call, "tune revert", Some(&cpuset));
        restored(&format!("reverting {apply} killed at {call:?}"));
        killed
    });
    drop(bystander);
    println!("killed at {applying} calls of {apply}, {reverting} of reverting it");
}
