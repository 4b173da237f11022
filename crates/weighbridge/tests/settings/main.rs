//! System settings are applied and reverted, whatever happens.
//!
//! This is a separate test binary whose tests run one at a time, since only one process may change the machine, and any
//! agent that starts reverts what a killed one has left.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod killed;
#[path = "../suite/lab.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod lab;
mod neighbours;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wb_test_net::{kill_after_children, suspend, wait_until};

use crate::killed::Occurrences;
use crate::lab::{CommandResult, Lab};

const ASLR: &str = "/proc/sys/kernel/randomize_va_space";
const RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// A test that runs long enough to be killed.
const SLOW: &str = "sleep 1; echo figure: $(cat /proc/sys/kernel/randomize_va_space)1";

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Exclusive access to the machine; `None`, with a message, without the rights to change it.
fn machine() -> Option<MutexGuard<'static, ()>> {
    static MACHINE: Mutex<()> = Mutex::new(());
    if !rustix::process::geteuid().is_root() {
        wb_test_skip::skip!("changing system settings requires root");
        return None;
    }
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    // Agents of other tests may still be reverting their changes.
    let lab = Lab::new();
    wait_until("the machine to be unchanged by other tests", || {
        matches!(lab.weighbridge("tune revert").code, 0 | 4) && !std::path::Path::new("/var/lib/weighbridge").exists()
    });
    Some(machine)
}

#[test]
fn settings_are_restored_after_a_kill_at_any_step() {
    let Some(_machine) = machine() else { return };
    killed::assert_no_traces_of_killed_programs(&Lab::new(), Occurrences::FOURTH);
}

#[test]
fn processes_are_moved_back_after_a_kill_at_any_step() {
    let Some(_machine) = machine() else { return };
    killed::assert_no_threads_left_moved(&Lab::new(), Occurrences::FOURTH);
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn soak_settings_and_processes_are_restored_after_a_kill_at_every_call() {
    let Some(_machine) = machine() else { return };
    killed::assert_no_traces_of_killed_programs(&Lab::new(), Occurrences::ALL);
    killed::assert_no_threads_left_moved(&Lab::new(), Occurrences::ALL);
}

#[test]
fn reverting_a_scheduler_restores_its_queue() {
    let Some(_machine) = machine() else { return };
    neighbours::a_scheduler_gives_its_queue_back(&Lab::new());
}

#[test]
#[ignore = "changes all settings of the machine that are related to knobs, and compares all settings"]
fn related_settings_are_restored() {
    let Some(_machine) = machine() else { return };
    neighbours::nothing_near_a_knob_is_lost(&Lab::new());
}

/// Runs the program as an unprivileged user; `None`, with a message, if that is not possible.
fn run_as_user(lab: &Lab, line: &str) -> Option<CommandResult> {
    use std::os::unix::fs::PermissionsExt;
    const USER: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new("setpriv").args(USER).arg("true").status().is_ok_and(|status| status.success()) {
        wb_test_skip::skip!("only root, with `setpriv`, can be another user");
        return None;
    }
    let (program, home) = (lab.path("bin/weighbridge"), lab.path("home"));
    std::fs::create_dir_all(lab.path("bin")).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    let agent = lab.path("bin/weighbridge-agent");
    std::fs::copy(env!("CARGO_BIN_EXE_weighbridge"), &program).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_weighbridge-agent"), &agent).unwrap();
    for (path, mode) in [(&lab.path(""), 0o755), (&program, 0o755), (&agent, 0o755), (&home, 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::os::unix::fs::chown(&home, Some(65534), None).unwrap();
    let mut command = Command::new("setpriv");
    command.args(USER).arg(&program).args(line.split_whitespace()).current_dir(&home);
    let folders = ["HOME", "TMPDIR", "WEIGHBRIDGE_LOCKS"].map(|name| (name, home.clone()));
    command.envs(folders).env("XDG_CONFIG_HOME", lab.path("config")).env_remove("XDG_CACHE_HOME");
    Some(lab.run_command(&mut command))
}

#[test]
fn knobs_reported_as_set_are_set_and_others_are_refused() {
    let Some(_machine) = machine() else { return };
    let lab = Lab::new();
    let aslr = read(ASLR);
    // A value that the kernel does not document is refused, and nothing is written.
    for line in ["tune apply aslr=3", "tune status aslr=3"] {
        let refused = lab.weighbridge(line);
        assert_eq!((refused.code, read(ASLR)), (3, aslr.clone()), "{}", refused.transcript());
        refused.expect_stdout("invalid value `3` for aslr: expected 0, 1 or 2");
    }
    for (knob, expected) in
        [("dirty-limit=1", "invalid value `1` for dirty-limit"), ("read-ahead=1", ""), ("nr-requests=1", "")]
    {
        let refused = lab.weighbridge(&format!("tune apply {knob}")).expect_code(3);
        refused.expect_stdout("unsupported: ").expect_stdout(expected);
    }
    assert_eq!(lab.weighbridge("tune revert").code, 4, "nothing is changed");
    for line in ["tune apply aslr=0", "tune apply quiet"] {
        let Some(refused) = run_as_user(&lab, line) else { continue };
        let reason = "error: changing system settings requires root";
        assert!(refused.code == 3 && refused.err.starts_with(reason), "{}", refused.transcript());
    }
    // The last value wins, and only that one is written.
    let applied = lab.weighbridge("tune apply aslr=0 aslr=1 --json");
    let outcomes = applied.json();
    assert_eq!((applied.code, outcomes.as_array().unwrap().len(), read(ASLR).as_str()), (0, 1, "1"), "{outcomes}");
    assert_eq!(lab.weighbridge("tune status --json").json()["changed"].as_array().unwrap().len(), 1);
    assert_eq!((lab.weighbridge("tune revert").code, read(ASLR)), (0, aslr));
}

#[test]
fn changing_settings_during_a_run_causes_a_warning() {
    let Some(_machine) = machine() else { return };
    let lab = Lab::new();
    lab.define_script("slow", SLOW);
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
        assert!(
            ran.code == 0 && ran.err.contains("is measuring here: its samples before and after"),
            "{}",
            ran.transcript()
        );
    }
    wait_until("the end of the run", || !is_announced());
    let applied = lab.weighbridge("tune apply aslr=0");
    assert!(applied.code == 0 && applied.err.is_empty(), "{}", applied.transcript());
    lab.weighbridge("tune revert").expect_code(0);
}

#[test]
fn settings_are_applied_and_reverted() {
    let Some(_machine) = machine() else { return };
    let lab = Lab::new();
    lab.define_script("slow", SLOW);
    // A run sets its knobs for a moment before it measures, to see whether they can be set.
    let started = lab.path("started");
    lab.define_script("unending", &format!("touch {}; sleep 1000; echo figure: 1", started.display()));
    let measure_unending = |into: &str| {
        let run = lab.start(&format!("run unending:knobs.aslr=0 --into {into} --min-time 1ms"));
        wait_until("the test", || started.exists());
        std::fs::remove_file(&started).unwrap();
        assert_eq!(read(ASLR), "0", "{into}");
        run
    };
    let (aslr, rate) = (read(ASLR), read(RATE));
    assert!(aslr != "0" && rate != "777", "the machine has default settings");
    assert_eq!(lab.weighbridge("tune status --json").json()["changed"], serde_json::json!([]));

    // Applied, shown, reverted.
    let applied = lab.weighbridge("tune apply perf-sample-rate=777 aslr=0");
    assert_eq!(
        (applied.code, read(ASLR), read(RATE)),
        (0, "0".to_owned(), "777".to_owned()),
        "{}",
        applied.transcript()
    );
    let status = lab.weighbridge("tune status");
    status.expect_stdout(&format!("{RATE} was `{rate}`"));
    // A value that somebody else has changed meanwhile is left and reported.
    std::fs::write(RATE, "888").unwrap();
    for _ in 0..2 {
        let reverted = lab.weighbridge("tune revert");
        assert_eq!(
            (reverted.code, read(ASLR), read(RATE)),
            (3, aslr.clone(), "888".to_owned()),
            "{}",
            reverted.transcript()
        );
        let left = format!("left at `888`, since something else changed it; it was `{rate}`");
        reverted.expect_stdout(&left);
        reverted.expect_stdout("tune revert --force");
    }
    let reverted = lab.weighbridge("tune revert --force");
    assert_eq!((reverted.code, read(RATE)), (0, rate.clone()), "{}", reverted.transcript());
    lab.weighbridge("tune revert").expect_code(4);

    // A custom set, and mistakes.
    lab.write("config/weighbridge/knobs.d/mine.toml", "summary = \"mine\"\n[knobs]\naslr = 1\n");
    assert!(lab.weighbridge("tune status").out.contains("  mine: mine\n"));
    for (line, expected) in [
        ("tune apply min", "unknown knob set `min`"),
        ("tune apply swapiness=1", "did you mean `swappiness`?"),
        ("run steady:knobs.tph=never", "unknown knob `tph`"),
    ] {
        lab.weighbridge(line).expect_code(1).expect_stderr(expected);
    }
    lab.weighbridge("tune apply io-scheduler@nosuchdisk=none").expect_code(3);

    // A variant is measured with its knobs; the settings are restored in between and afterwards.
    let quick = "--min-time 1ms --warm-up 0 --max-blocks 6";
    let ran = lab.weighbridge(&format!("ab slow {quick} --into A --json -- knob:aslr=2 knob:aslr=0"));
    let result = ran.json();
    let medians: Vec<f64> =
        (0..2).map(|index| result["cases"][0]["variants"][index]["median"].as_f64().unwrap()).collect();
    assert_eq!((medians, read(ASLR)), (vec![21.0, 1.0], aslr.clone()), "{}", ran.transcript());
    // A knob as an axis of a plan.
    lab.write(
        "plan.toml",
        "[sampling]\nmin-samples = 1\nmax-samples = 1\nwarm-up = 0\n[[test]]\nname = \"slow\"\nknobs.aslr = [0, 1]\n",
    );
    let planned = lab.weighbridge("run --plan plan.toml --into P --json");
    let cases: Vec<String> =
        planned.json()["cells"].as_array().unwrap().iter().map(|cell| cell["id"].to_string()).collect();
    assert!(cases.len() == 2 && cases[0].contains("knobs.aslr=0"), "{cases:?}");
    assert_eq!(read(ASLR), aslr);

    // The controller is killed: its agent reverts everything.
    let mut run = measure_unending("K");
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the settings to be restored", || read(ASLR) == aslr);

    // Controller and agent are killed: `tune revert` restores the settings and removes leftover files.
    let killed = |into: &str| {
        let run = measure_unending(into);
        suspend(&run);
        kill_after_children(run);
        assert_eq!(read(ASLR), "0", "{into}");
    };
    let leftovers = || {
        let entries = std::fs::read_dir(lab.path("")).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("weighbridge-")).count()
    };
    killed("R");
    assert!(leftovers() > 0);
    let reverted = lab.weighbridge("tune revert");
    assert_eq!((reverted.code, read(ASLR), leftovers()), (0, aslr.clone(), 0), "{}", reverted.transcript());

    // The next start does the same, and reports it.
    killed("L");
    // An unprivileged user cannot read the undo log or revert anything, so the run is refused.
    if let Some(refused) = run_as_user(&lab, "run steady --samples 1 --min-time 1ms --into U") {
        let contains = |text: &str| refused.err.contains(text);
        assert!(
            refused.code == 1 && contains("was killed and left settings changed, which only root"),
            "{}",
            refused.transcript()
        );
    }
    let next = lab.weighbridge("run steady --samples 1 --min-time 1ms --precision 100 --into N");
    next.expect_stderr(&format!("a run that was killed had changed {ASLR}: restored"));
    assert_eq!(read(ASLR), aslr);
    // `plan` reports that root is required.
    if let Some(planned) = run_as_user(&lab, "plan steady --profiles TunedHost") {
        let reason = "`TunedHost` on `local`: cannot change system settings: the agent runs without root privileges";
        assert!(planned.code == 3 && planned.out.contains(reason), "{}", planned.transcript());
    }
    assert_eq!(lab.weighbridge("tune status --json").json()["changed"], serde_json::json!([]));
    assert!(!std::path::Path::new("/var/lib/weighbridge").exists(), "nothing is left behind");
}
