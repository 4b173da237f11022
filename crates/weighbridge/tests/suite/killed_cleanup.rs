//! The cleanup of a test is run however the run ends: at the latest by the next start.

use std::process::Child;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use wb_test_net::{children, suspend};

use crate::lab::Lab;

/// A test that makes a folder outside of its own one while it is prepared, with files that its command and its service
/// write, and removes all of it.
fn define(lab: &Lab, scope: &str) {
    let left = lab.path("left").display().to_string();
    lab.define_figure(
        scope,
        &format!(
            r#"
name = "{scope}"
summary = "leaves a folder"
version = 1
scope = "{scope}"
setup = ["mkdir {left}-{scope}", "touch {{scratch}}/mine"]
command = ["sh", "-c", "touch {left}-{scope}/written; sleep 0.05; echo figure: 1"]
cleanup = ["test -e {{scratch}}/mine", "rm -r {left}-{scope}"]

[[service]]
command = ["sh", "-c", "echo ready; exec sleep 1000"]
ready = {{ line = "ready" }}
stop = ["touch", "{left}-{scope}/stopped"]
"#
        ),
    );
}

/// How a run is ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// SIGINT to the controller.
    Interrupt,
    /// SIGKILL to the controller; its agent notices.
    Controller,
    /// SIGKILL to the controller and to its agent at the same time.
    Both,
}

impl End {
    fn apply(self, child: &mut Child) {
        let controller = Pid::from_child(child);
        let signal = |pid: Pid, signal| {
            // A process that has ended already cannot be signalled.
            let _ = kill_process(pid, signal);
        };
        match self {
            Self::Interrupt => signal(controller, Signal::INT),
            Self::Controller => signal(controller, Signal::KILL),
            Self::Both => {
                suspend(child);
                let agents = children(child.id());
                agents.iter().for_each(|agent| signal(*agent, Signal::STOP));
                agents.iter().for_each(|agent| signal(*agent, Signal::KILL));
                signal(controller, Signal::KILL);
            }
        }
        child.wait().unwrap();
    }
}

fn is_left(lab: &Lab) -> bool {
    ["sample", "cell"].iter().any(|scope| lab.path(&format!("left-{scope}")).exists())
}

#[test]
fn cleanup_of_a_test_is_run_however_the_run_ends() {
    end_runs(24);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn soak_cleanup_of_a_test_is_run_however_the_run_ends() {
    end_runs(300);
}

fn end_runs(ends: usize) {
    let lab = Lab::new();
    ["sample", "cell"].iter().for_each(|scope| define(&lab, scope));
    const OPTIONS: &str = "--min-time 1ms --samples 6 --warm-up 1 --retakes 0 --precision 100 --into";
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    let (mut left_by_both, mut interrupted) = (0, 0);
    for number in 0..ends {
        let end = [End::Both, End::Controller, End::Both, End::Interrupt][number % 4];
        let mut child = lab.start(&format!("run sample cell {OPTIONS} run-{number}"));
        // A third ends at any time, the others once something has been prepared.
        let journal = || std::fs::read_to_string(lab.path(&format!("run-{number}/journal.jsonl"))).unwrap_or_default();
        if number % 3 != 0 {
            wb_test_net::wait_until("the first attempt", || journal().contains("attempt-started"));
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(0..400)));
        let was_running = child.try_wait().unwrap().is_none();
        end.apply(&mut child);
        match end {
            // Nothing but the next start can clean up.
            End::Both => left_by_both += usize::from(is_left(&lab)),
            // The agent may be at it.
            End::Controller => assert_eq!(lab.wait_for_processes(), [""; 0]),
            End::Interrupt => {
                interrupted += usize::from(was_running);
                assert!(!is_left(&lab), "{end:?} {number}");
            }
        }
        if end == End::Controller {
            assert!(!is_left(&lab), "{end:?} {number}");
        }
        lab.weighbridge(&format!("run steady --min-time 1ms --samples 1 --warm-up 0 --into next-{number}"));
        assert!(!is_left(&lab), "{end:?} {number}");
    }
    // Of the runs that were killed with their agent, many had something to clean up.
    assert!(left_by_both >= ends / 8, "only {left_by_both} of {} runs left something", ends / 2);
    assert!(interrupted > 0);
    assert_eq!(lab.wait_for_processes(), [""; 0]);
    // Nothing is left for later starts either: whole runs clean up themselves.
    let whole = lab.weighbridge(&format!("run sample cell {OPTIONS} whole")).expect_code(0);
    assert!(!whole.err.contains("cleanup"), "{}", whole.transcript());
    assert!(!is_left(&lab));
}

#[test]
fn a_failed_cleanup_of_a_killed_run_is_reported_once() {
    let lab = Lab::new();
    lab.define_figure(
        "stuck",
        "name = \"stuck\"\nsummary = \"cannot be cleaned up\"\nversion = 1\ncommand = \"sleep 100\"\ncleanup = [\"sh -c 'echo busy >&2; exit 3'\"]\n",
    );
    let mut child = lab.start("run stuck --min-time 1ms --samples 1 --warm-up 0 --into R");
    wb_test_net::wait_until("the command", || lab.processes().iter().any(|line| line.starts_with("sleep 100")));
    End::Both.apply(&mut child);
    let next = |run: &str| lab.weighbridge(&format!("run steady --min-time 1ms --samples 1 --warm-up 0 --into {run}"));
    let warning = "of a run that was killed: cleanup `sh -c echo busy >&2; exit 3`: exit status: 3: busy";
    next("N").expect_stderr(warning);
    assert!(!next("M").err.contains("cleanup"));
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}
