//! `hashd --find-params`: in a control group with little memory, resumed after a kill, and refused for what it is not for.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use wb_sys::SysRoot;
use wb_sys::cgroup::memory::LimitedGroup;

use crate::lab::{KillOnDrop, Lab};

/// Short periods, so that a round takes a second or two.
const PARAMS: &str = "control-period = \"100ms\"\nfile-size-mean = \"256k\"\nsleep-mean = \"3ms\"\n";
const SIZING: &str = "hashd --find-params found.toml --params params.toml --dir work --json --fake-cpu-load --rps-max 30 \
                      --window-scale 0.3 --grain 2";

fn lab() -> Lab {
    let lab = Lab::on_disk();
    lab.write("params.toml", PARAMS);
    lab
}

/// A group of 320 MiB; `None`, with a message, where none can be created.
fn limited_group(name: &str) -> Option<LimitedGroup> {
    let name = format!("weighbridge-test-{name}.{}", std::process::id());
    match LimitedGroup::create(&SysRoot::real(), &name, 320 << 20) {
        Ok(group) => Some(group),
        Err(error) => {
            wb_test_skip::skip!("no control group with a limit of memory: {error}");
            None
        }
    }
}

/// A command in a group.
fn within(group: &LimitedGroup, lab: &Lab, line: &str) -> Command {
    let inner = lab.command(line);
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.procs());
    command.arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(inner.get_current_dir().unwrap());
    command
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rounds(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter_map(|line| line.get("round")).collect()
}

#[test]
fn footprint_is_that_of_the_group_and_a_killed_sizing_is_resumed() {
    let Some(group) = limited_group("sizing") else { return };
    let lab = lab();
    let mut first = KillOnDrop(within(&group, &lab, SIZING).stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(first.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"round\":"), "{line}");
    drop(first);
    // Its workload notices that nobody reads its reports.
    assert_eq!(lab.wait_for_processes(), [""; 0]);

    let resumed = within(&group, &lab, SIZING).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&resumed.stdout), String::from_utf8_lossy(&resumed.stderr));
    assert!(resumed.status.success(), "{out}\n{err}");
    assert!(out.starts_with(&line), "the finished round was run again: {line}\n{out}");
    let all = lines(&out);
    let result = &all.last().unwrap()["result"];
    // Four times the memory of the group at a fraction of 1, of which three quarters are anonymous.
    assert_eq!(result["memory"], serde_json::json!(4u64 * (320 << 20)));
    let footprint = result["footprint"].as_f64().unwrap();
    assert!((100e6..1.2e9).contains(&footprint), "{result}");
    assert!(rounds(&all).iter().any(|round| round["outcome"]["what"] == "measured"), "{out}");
    let found = lab.read("found.toml");
    assert!(found.starts_with("# Found by `weighbridge hashd --find-params` in "), "{found}");
    assert!(found.contains("\nrps-max = 30.0\n") && found.contains("\nfake-cpu-load = true\n"), "{found}");

    // What has been found is not measured again, and others cannot use the journal.
    let again = lab.weighbridge(SIZING).expect_code(0);
    assert_eq!(rounds(&lines(&again.out)).len(), rounds(&all).len());
    let other = lab.weighbridge(&SIZING.replace("--rps-max 30", "--rps-max 40")).expect_code(1);
    other.expect_stderr("found.toml.journal: the journal belongs to another configuration");
    assert!(!lab.path("work").exists());
}

#[test]
fn killed_workload_is_a_result_and_is_started_again() {
    let lab = lab();
    let line = SIZING.replace("found.toml", "found.toml --memory 64m");
    let mut process = KillOnDrop(lab.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let pid = process.0.id();
    let output = BufReader::new(process.0.stdout.take().unwrap());
    let mut rounds = Vec::new();
    for line in output.lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if rounds.is_empty() {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            let workload = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
            kill_process(workload, Signal::KILL).unwrap();
        }
        rounds.extend(line.get("round").cloned());
    }
    assert!(process.0.wait().unwrap().success());
    let outcomes: Vec<&Value> = rounds.iter().map(|round| &round["outcome"]["what"]).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "killed").count(), 1, "{outcomes:?}");
    assert_eq!(outcomes[0], "measured");
    assert_eq!(outcomes.last().unwrap(), &"measured");
}

#[test]
fn exec_prints_the_configuration_and_goes_on_after_the_rounds_that_it_is_given() {
    let lab = Lab::new();
    let request = |config: &Value, rounds: &[&Value]| {
        let request = serde_json::json!({ "config": config, "rounds": rounds });
        format!("exec hashd-params {request}")
    };
    let params = serde_json::json!({
        "control-period": "100ms", "file-size-mean": "64k", "sleep-mean": "3ms", "fake-cpu-load": true,
    });
    let config = serde_json::json!({
        "params": params, "rps-max": 20, "memory": "16m", "dir": "work", "window-scale": 0.2, "max-repeats": 0,
    });
    let whole = lab.weighbridge(&request(&config, &[])).expect_code(0);
    let all = lines(&whole.out);
    let result = &all.last().unwrap()["result"];
    assert_eq!(
        (&result["params"]["mem-frac"], &result["is-limited-by-memory"]),
        (&1.0.into(), &true.into()),
        "{result}"
    );
    let done = rounds(&all);
    assert_eq!(done.len(), 5, "{}", whole.out);
    let resumed = lab.weighbridge(&request(&all[0]["config"], &done[..4])).expect_code(0);
    assert_eq!(rounds(&lines(&resumed.out)).len(), 1, "{}", resumed.out);
    let complete = lab.weighbridge(&request(&all[0]["config"], &done)).expect_code(0);
    assert_eq!(lines(&complete.out).last(), all.last());
}

#[test]
fn options_that_do_not_belong_together_are_refused() {
    let lab = lab();
    assert_snapshot!(lab.weighbridge("hashd --fake-cpu-load").transcript(), @"
    exit 1
    error: missing `--find-params <FILE>`
    help: usage: weighbridge hashd --find-params <FILE> --fake-cpu-load
    ");
    assert_snapshot!(lab.weighbridge("hashd --find-params found.toml --grain 0").transcript(), @r"
    exit 1
    error: invalid grain `0`: expected a number from 0.1 to 10
    ");
    lab.weighbridge("hashd --find-params found.toml --rps-target 5").expect_code(1);
    assert!(!lab.path("found.toml").exists());
}

// A journal of the refused sizing was left.
#[test]
fn a_refused_sizing_leaves_nothing() {
    let lab = lab();
    lab.write("broken.toml", "control-period = \"no time\"\n");
    lab.write("file", "");
    for refused in ["--params broken.toml", "--params none.toml", "--dir file/work", "--memory 1k"] {
        let ran = lab.weighbridge(&format!("hashd --find-params found.toml --fake-cpu-load --rps-max 5 {refused}"));
        assert_eq!(ran.code, 1, "{refused}: {}", ran.transcript());
        for file in ["found.toml", "found.toml.journal"] {
            assert!(!lab.path(file).exists(), "{refused} leaves {file}");
        }
    }
}
