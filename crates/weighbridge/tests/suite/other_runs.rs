//! Two runs at the same time on one machine: neither is refused, and both report that their samples are disturbed.

use std::process::Stdio;

use crate::lab::{CommandResult, Lab};

/// A test whose first sample lasts until a file exists.
const WAITS: &str =
    "touch {definition-folder}/begun; while [ ! -e {definition-folder}/go ]; do sleep 0.01; done; echo figure: 1";

/// A plan with a short telemetry interval, at which other runs are detected.
const PLAN: &str = r#"
[sampling]
min-time = "1ms"
warm-up = 0
min-samples = 6
max-samples = 6
retakes = 0
precision = 100
telemetry-interval = "10ms"

[[test]]
name = "waits"
"#;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

/// The number of attempts of a run that detected the run of a process, and the number of all attempts.
fn disturbed(lab: &Lab, run: &str, process: u32) -> (usize, usize) {
    let finding = "another run measured on this machine at the same time: ";
    let of = format!(" here, for process {process} of ");
    let journal = lab.journal(run);
    let attempts: Vec<_> = journal.iter().filter(|line| line["event"] == "attempt-ended").collect();
    let found = |line: &&&serde_json::Value| {
        let findings = line["findings"].as_array().into_iter().flatten().filter_map(|finding| finding.as_str());
        findings.into_iter().any(|text| text.starts_with(finding) && text.contains(&of))
    };
    (attempts.iter().filter(found).count(), attempts.len())
}

#[test]
fn simultaneous_runs_warn_of_each_other_and_record_it() {
    let lab = Lab::new();
    lab.define_script("waits", WAITS);
    lab.write("waits.toml", PLAN);
    let flag = |name: &str| lab.path(&format!("config/weighbridge/tests.d/{name}"));
    let first = lab.command("run --plan waits.toml --into A").stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let first = first.unwrap();
    let first_pid = first.id();
    wb_test_net::wait_until("the first run to measure", || flag("begun").exists());

    // Another TMPDIR, as of another user or terminal, makes no difference.
    let mut second = lab.command(&format!("run steady --into B {QUICK}"));
    std::fs::create_dir(lab.path("elsewhere")).unwrap();
    let second = second.env("TMPDIR", lab.path("elsewhere"));
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let second_pid = second.id();
    let second = CommandResult::wait_for(second).expect_code(0);
    let warning = "warning: another run measures on `local` at the same time, and they disturb each other's samples: ";
    let of = |process: u32| format!(" here, for process {process} of ");
    second.expect_stderr(warning);
    second.expect_stderr(&of(first_pid));
    assert_eq!(second.err.matches(warning).count(), 1, "{}", second.transcript());
    assert_eq!(disturbed(&lab, "B", first_pid), (6, 6));

    // A run that changes the machine is refused while the first one measures.
    let changing = lab.weighbridge(&format!("run steady:knobs.drop-caches=all --into K {QUICK}"));
    assert_ne!(changing.code, 0, "{}", changing.transcript());
    let refused = "cannot change this machine while another run measures on it: ";
    assert!(changing.out.contains(refused) || changing.err.contains(refused), "{}", changing.transcript());

    std::fs::write(flag("go"), "").unwrap();
    let first = CommandResult::wait_for(first).expect_code(0);
    first.expect_stderr(warning);
    first.expect_stderr(&of(second_pid));
    // The second run ended before the other samples of the first one started.
    assert_eq!(disturbed(&lab, "A", second_pid), (1, 6));
    for run in ["A", "B"] {
        let summary = lab.weighbridge(&format!("summary {run}")).out;
        let found = summary.matches("another run measured on this machine at the same time: ").count();
        assert_eq!(found, 1, "{summary}");
    }

    let alone = lab.weighbridge(&format!("run steady --into C {QUICK}"));
    assert!(alone.code == 0 && !alone.err.contains("another run"), "{}", alone.transcript());
}

#[test]
fn a_locked_file_of_another_user_does_not_stop_a_run_that_changes_the_machine() {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    let Some(lab) = Lab::with_own_state() else { return };
    // What any local user can write to the folder: 105 bytes that name somebody else, and no process that is his.
    let text =
        r#"{"controller":{"user":"root@a-machine","pid":1},"agent":1,"since":"2026-11-26T00:00:00Z"}                "#;
    assert_eq!(text.len(), 105);
    let namespace =
        std::fs::read_link("/proc/self/ns/pid").unwrap().to_string_lossy().replace(|c: char| !c.is_ascii_digit(), "");
    for name in [format!("weighbridge-00000001-000000000001-{namespace}-run"), "weighbridge-1-1-1-run".to_owned()] {
        let path = lab.write(&name, text);
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        // Opened here, because he cannot enter the folder of the test; the lock is his process's.
        let file = std::fs::File::open(&path).unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "flock 0; echo ready; exec sleep 1000"]).uid(65534).gid(65534);
        let mut other = command.stdin(file).stdout(Stdio::piped()).spawn().unwrap();
        other.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        assert!(std::fs::File::open(&path).unwrap().try_lock_shared().is_err(), "it is locked");
        let ran = lab.weighbridge(&format!("run steady:knobs.drop-caches=all --into R-{name} {QUICK}"));
        other.kill().unwrap();
        other.wait().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        assert!(!ran.err.contains("another run"), "{}", ran.transcript());
    }
}
