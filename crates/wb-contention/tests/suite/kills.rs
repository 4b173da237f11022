//! A sequence whose process is killed again and again ends with the same results as one that is not.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::process::{Signal, getpid, kill_process};
use wb_contention::runner::StageFailure;
use wb_contention::stage::Stage;

use crate::fake::{FakeMachine, Script, Undisturbed, result_texts};

const SEQUENCE: &str = "iocost-params hashd-params iocost-qos";
/// How often the process is killed, at least.
const KILLS: u32 = 50;

/// Kills this process after a number of steps.
struct KillAfter(u32);

impl Script for KillAfter {
    fn after_step(&mut self) {
        self.0 -= 1;
        if self.0 == 0 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }

    fn before_second(&mut self, _: &Stage, _: u64) -> Result<(), StageFailure> {
        Ok(())
    }
}

const RUN: &str = "CONTENTION_TEST_RUN";
const STEPS: &str = "CONTENTION_TEST_STEPS";

/// Executes the sequence in a process of its own, which the other test starts and kills.
#[test]
#[ignore = "the process that is killed"]
fn killed_process() {
    let (Ok(run), Ok(steps)) = (std::env::var(RUN), std::env::var(STEPS)) else { return };
    FakeMachine::at(Path::new(&run)).execute(SEQUENCE, KillAfter(steps.parse().unwrap())).unwrap();
}

fn run_until(run: &Path, steps: u32) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::killed_process", "--ignored"]).env(RUN, run).env(STEPS, steps.to_string());
    let output = command.output().unwrap();
    let failed = !output.status.success() && output.status.signal() != Some(Signal::KILL.as_raw());
    assert!(!failed, "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    output.status
}

/// Cuts the last line of the journal, as if its writer had been killed meanwhile.
fn tear_journal(run: &Path, bytes: u64) {
    let file = std::fs::File::options().write(true).open(run.join("journal.jsonl")).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(bytes)).unwrap();
}

#[test]
fn fifty_kills_end_in_byte_equal_results() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    FakeMachine::at(&whole).execute(SEQUENCE, Undisturbed).unwrap();
    let mut kills = 0;
    // About ten steps report benches that are there already; a few more or fewer hit every kind of step.
    while !run_until(&killed, 4 + kills % 16).success() {
        kills += 1;
        // Lines have more than 60 bytes, so that one line is cut at most.
        if kills % 3 == 0 {
            tear_journal(&killed, u64::from(kills % 60) + 1);
        }
        assert!(kills < 1000, "the sequence makes no progress");
    }
    assert!(kills >= KILLS, "killed {kills} times only");
    assert_eq!(result_texts(&killed), result_texts(&whole));
    println!("killed {kills} times");
}
