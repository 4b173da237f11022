//! Settings of this machine, set and put back whatever happens.
//!
//! A test binary of its own, whose tests take turns, since one process at a time changes a machine, and any agent that starts
//! puts back what a killed one has left.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod killed;
#[path = "../suite/lab.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod lab;
mod neighbours;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lab::{Lab, Ran};

const ASLR: &str = "/proc/sys/kernel/randomize_va_space";
const RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// Long enough to be killed in.
const SLOW: &str = r#"
name = "slow"
summary = "a figure that takes a while"
version = 1
command = ["sh", "-c", "sleep 1; echo figure: $(cat /proc/sys/kernel/randomize_va_space)1"]

"#;

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} has not come to be so within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The children of a process.
fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// The machine, for one test at a time; none where nothing may be changed.
fn machine() -> Option<MutexGuard<'static, ()>> {
    static MACHINE: Mutex<()> = Mutex::new(());
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: settings of a machine are changed by root alone, and this is not root");
        return None;
    }
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    // As it is left by agents of other tests, which may still be about to put something back.
    let lab = Lab::new();
    wait_until("the machine as no other test changes it", || {
        matches!(lab.weighbridge("tune revert").code, 0 | 4) && !std::path::Path::new("/var/lib/weighbridge").exists()
    });
    Some(machine)
}

#[test]
fn settings_are_as_they_were_wherever_whoever_changed_them_is_killed() {
    let Some(_machine) = machine() else { return };
    killed::nothing_stays_of_what_is_killed(&Lab::new());
}

#[test]
fn programs_are_where_they_were_wherever_whoever_moved_them_is_killed() {
    let Some(_machine) = machine() else { return };
    killed::nobody_stays_moved_by_what_is_killed(&Lab::new());
}

#[test]
fn a_scheduler_that_is_put_back_gives_its_queue_back() {
    let Some(_machine) = machine() else { return };
    neighbours::a_scheduler_gives_its_queue_back(&Lab::new());
}

#[test]
#[ignore = "changes every setting of the machine that stands near a knob, and compares all there are"]
fn nothing_that_stands_near_a_knob_is_lost() {
    let Some(_machine) = machine() else { return };
    neighbours::nothing_near_a_knob_is_lost(&Lab::new());
}

/// What a user without rights sees; none, aloud, where nobody can become one.
fn ran_by_a_user(lab: &Lab, line: &str) -> Option<Ran> {
    use std::os::unix::fs::PermissionsExt;
    const USER: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new("setpriv").args(USER).arg("true").status().is_ok_and(|status| status.success()) {
        println!("SKIPPED: only root, with `setpriv`, can be another user");
        return None;
    }
    let (program, home) = (lab.path("bin/weighbridge"), lab.path("home"));
    std::fs::create_dir_all(lab.path("bin")).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_weighbridge"), &program).unwrap();
    for (path, mode) in [(&lab.path(""), 0o755), (&program, 0o755), (&home, 0o777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(USER).arg(&program).args(line.split_whitespace()).current_dir(&home);
    let folders = ["HOME", "TMPDIR", "WEIGHBRIDGE_LOCKS"].map(|name| (name, home.clone()));
    command.envs(folders).env("XDG_CONFIG_HOME", lab.path("config")).env_remove("XDG_CACHE_HOME");
    Some(lab.ran(&mut command))
}

#[test]
fn what_is_reported_as_set_is_set_and_the_rest_is_refused() {
    let Some(_machine) = machine() else { return };
    let lab = Lab::new();
    let aslr = read(ASLR);
    // Outside what the kernel documents, and nothing is written.
    for line in ["tune apply aslr=3", "tune status aslr=3"] {
        let refused = lab.weighbridge(line);
        assert_eq!((refused.code, read(ASLR)), (3, aslr.clone()), "{}", refused.seen());
        assert!(refused.out.contains("invalid value `3` for aslr: expected 0, 1 or 2"), "{}", refused.seen());
    }
    for (knob, expected) in
        [("dirty-limit=1", "invalid value `1` for dirty-limit"), ("read-ahead=1", ""), ("nr-requests=1", "")]
    {
        let refused = lab.weighbridge(&format!("tune apply {knob}"));
        assert!(refused.code == 3 && refused.out.contains("unsupported: "), "{}", refused.seen());
        assert!(refused.out.contains(expected), "{}", refused.seen());
    }
    assert_eq!(lab.weighbridge("tune revert").code, 4, "nothing is changed");
    for line in ["tune apply aslr=0", "tune apply quiet"] {
        let Some(refused) = ran_by_a_user(&lab, line) else { continue };
        let reason = "error: only root may change the settings of this machine";
        assert!(refused.code == 3 && refused.err.starts_with(reason), "{}", refused.seen());
    }
    // What comes later wins, and is all that is done.
    let applied = lab.weighbridge("tune apply aslr=0 aslr=1 --json");
    let outcomes = applied.json();
    assert_eq!((applied.code, outcomes.as_array().unwrap().len(), read(ASLR).as_str()), (0, 1, "1"), "{outcomes}");
    assert_eq!(lab.weighbridge("tune status --json").json()["changed"].as_array().unwrap().len(), 1);
    assert_eq!((lab.weighbridge("tune revert").code, read(ASLR)), (0, aslr));
}

#[test]
fn who_changes_settings_while_a_run_measures_is_warned() {
    let Some(_machine) = machine() else { return };
    let lab = Lab::new();
    lab.define_figure("slow", SLOW);
    let mut run = lab.start("run slow --into R --min-time 1ms --samples 100");
    let is_announced = || {
        let files = std::fs::read_dir(lab.path("")).unwrap().flatten();
        files.filter_map(|file| file.file_name().into_string().ok()).any(|name| name.ends_with("-run"))
    };
    wait_until("the announcement of the run", is_announced);
    let applied = lab.weighbridge("tune apply aslr=0");
    let reverted = lab.weighbridge("tune revert");
    run.kill().unwrap();
    run.wait().unwrap();
    for ran in [applied, reverted] {
        assert!(ran.code == 0 && ran.err.contains("is measuring here: samples before and after"), "{}", ran.seen());
    }
    wait_until("the end of the run", || !is_announced());
    let applied = lab.weighbridge("tune apply aslr=0");
    assert!(applied.code == 0 && applied.err.is_empty(), "{}", applied.seen());
    assert_eq!(lab.weighbridge("tune revert").code, 0);
}

#[test]
fn settings_are_set_and_put_back_whatever_happens() {
    let Some(_machine) = machine() else { return };
    let lab = Lab::new();
    lab.define_figure("slow", SLOW);
    let (aslr, rate) = (read(ASLR), read(RATE));
    assert!(aslr != "0" && rate != "777", "a machine as it comes");
    assert_eq!(lab.weighbridge("tune status --json").json()["changed"], serde_json::json!([]));

    // Set, shown, put back.
    let applied = lab.weighbridge("tune apply perf-sample-rate=777 aslr=0");
    assert_eq!((applied.code, read(ASLR), read(RATE)), (0, "0".to_owned(), "777".to_owned()), "{}", applied.seen());
    let status = lab.weighbridge("tune status");
    assert!(status.out.contains(&format!("{RATE} was `{rate}`")), "{}", status.out);
    // What somebody else changes meanwhile is left, and told.
    std::fs::write(RATE, "888").unwrap();
    for _ in 0..2 {
        let reverted = lab.weighbridge("tune revert");
        assert_eq!((reverted.code, read(ASLR), read(RATE)), (3, aslr.clone(), "888".to_owned()), "{}", reverted.seen());
        let left = format!("left at `888`, since somebody else changed it; it was `{rate}`");
        assert!(reverted.out.contains(&left) && reverted.out.contains("tune revert --force"), "{}", reverted.out);
    }
    let reverted = lab.weighbridge("tune revert --force");
    assert_eq!((reverted.code, read(RATE)), (0, rate.clone()), "{}", reverted.seen());
    assert_eq!(lab.weighbridge("tune revert").code, 4);

    // A set of the user's, and mistakes.
    lab.write("config/weighbridge/knobs.d/mine.toml", "summary = \"mine\"\n[knobs]\naslr = 1\n");
    assert!(lab.weighbridge("tune status").out.contains("  mine: mine\n"));
    for (line, wanted) in [
        ("tune apply min", "there is no set `min`"),
        ("tune apply swapiness=1", "did you mean `swappiness`?"),
        ("run steady:knobs.tph=never", "there is no knob `tph`"),
    ] {
        let ran = lab.weighbridge(line);
        assert!(ran.code == 1 && ran.err.contains(wanted), "{}", ran.seen());
    }
    let unsupported = lab.weighbridge("tune apply io-scheduler@nosuchdisk=none");
    assert_eq!(unsupported.code, 3, "{}", unsupported.seen());

    // A variant is measured with its knobs, and the machine is as it was between and after.
    let quick = "--min-time 1ms --warm-up 0 --max-blocks 6";
    let ran = lab.weighbridge(&format!("ab slow {quick} --into A --json -- knob:aslr=2 knob:aslr=0"));
    let told = ran.json();
    let medians: Vec<f64> = (0..2).map(|at| told["cases"][0]["variants"][at]["median"].as_f64().unwrap()).collect();
    assert_eq!((medians, read(ASLR)), (vec![21.0, 1.0], aslr.clone()), "{}", ran.seen());
    // As an axis of a plan.
    lab.write(
        "plan.toml",
        "[sampling]\nmin-samples = 1\nmax-samples = 1\nwarm-up = 0\n[[test]]\nname = \"slow\"\nknobs.aslr = [0, 1]\n",
    );
    let planned = lab.weighbridge("run --plan plan.toml --into P --json");
    let cases: Vec<String> =
        planned.json()["cells"].as_array().unwrap().iter().map(|cell| cell["cell"].to_string()).collect();
    assert!(cases.len() == 2 && cases[0].contains("knobs.aslr=0"), "{cases:?}");
    assert_eq!(read(ASLR), aslr);

    // The controller is killed: its agent puts everything back.
    let mut run = lab.start("run slow:knobs.aslr=0 --into K --min-time 1ms");
    wait_until("the knob", || read(ASLR) == "0");
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the machine as it was", || read(ASLR) == aslr);

    // Both are killed, and what they have left is removed with what they have changed.
    let killed = |into: &str| {
        let mut run = lab.start(&format!("run slow:knobs.aslr=0 --into {into} --min-time 1ms"));
        wait_until("the knob", || read(ASLR) == "0");
        let agents = children(run.id());
        run.kill().unwrap();
        agents.into_iter().for_each(kill);
        run.wait().unwrap();
        assert_eq!(read(ASLR), "0");
    };
    let leftovers = || {
        let entries = std::fs::read_dir(lab.path("")).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("weighbridge-")).count()
    };
    killed("R");
    assert!(leftovers() > 0);
    let reverted = lab.weighbridge("tune revert");
    assert_eq!((reverted.code, read(ASLR), leftovers()), (0, aslr.clone(), 0), "{}", reverted.seen());

    // Or the next start does both, and says so.
    killed("L");
    // A user, who may neither read the log nor put anything back, does not measure on such a machine.
    if let Some(refused) = ran_by_a_user(&lab, "run steady --samples 1 --min-time 1ms --into U") {
        let says = |text: &str| refused.err.contains(text);
        assert!(
            refused.code == 1 && says("was killed and left settings changed, which only root"),
            "{}",
            refused.seen()
        );
    }
    let next = lab.weighbridge("run steady --samples 1 --min-time 1ms --precision 100 --into N");
    assert!(
        next.err.contains(&format!("a run that was killed had changed {ASLR}: it is as it was")),
        "{}",
        next.seen()
    );
    assert_eq!(read(ASLR), aslr);
    // What takes root's rights is found before anything is measured.
    if let Some(planned) = ran_by_a_user(&lab, "plan steady --profiles TunedHost") {
        assert!(planned.code == 3 && planned.out.contains("root's rights"), "{}", planned.seen());
    }
    assert_eq!(lab.weighbridge("tune status --json").json()["changed"], serde_json::json!([]));
    assert!(!std::path::Path::new("/var/lib/weighbridge").exists(), "nothing of ours stays");
}
