//! Machines that change before or while they are measured: what the plan resolves from them follows.

use std::process::{Command, Stdio};

use crate::json_schema::validate;
use crate::lab::{CommandResult, Lab};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100 --into R";

/// A test with an axis that is resolved from the CPUs of the machine.
const THREADED: &str = r#"
name = "threaded"
summary = "a figure for each number of CPUs"
version = 1
command = ["sh", "-c", "sleep 0.01; echo figure: 1", "{threads}"]

[[param]]
name = "threads"
help = "number of threads"
kind = "integer"
resolved = "cpus"
axis = true
"#;

/// A lab with that test and a script that leaves the first CPU online, for the mount namespace that it runs in; `None`,
/// with a message, without the rights or the CPUs for that.
fn lab() -> Option<Lab> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if online.trim() == "0" {
        wb_test_skip::skip!("a machine with one CPU has none that could be missing");
        return None;
    }
    let lab = Lab::with_own_state()?;
    lab.define_figure("threaded", THREADED);
    lab.write("one-cpu", "0\n");
    lab.program("switch-off", &format!("#!/bin/sh\n{}\n", switch_off(&lab)));
    Some(lab)
}

fn switch_off(lab: &Lab) -> String {
    format!("mount --bind {} /sys/devices/system/cpu/online", lab.path("one-cpu").display())
}

fn cells(lab: &Lab) -> Vec<String> {
    let study = lab.weighbridge("summary R --json").json();
    study["cells"].as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap().to_owned()).collect()
}

/// The numbers of CPUs in the facts of all invocations.
fn recorded_cpus(lab: &Lab) -> Vec<usize> {
    let run = lab.read_json("R/run.json");
    let cpus = |invocation: &serde_json::Value| invocation["facts"]["local"]["cpus"].as_array().unwrap().len();
    run["invocations"].as_array().unwrap().iter().map(cpus).collect()
}

#[test]
fn whatever_prepares_a_machine_is_followed_by_a_new_reading() {
    let Some(lab) = lab() else { return };
    let mounted = "mountpoint -q /sys/devices/system/cpu/online";
    let profile = format!(
        "summary = \"one CPU\"\n[[commands]]\nname = \"the CPUs\"\ncheck = \"{mounted}\"\napply = \"{}\"\n\
         revert = \"umount /sys/devices/system/cpu/online\"\n",
        switch_off(&lab)
    );
    lab.write("config/weighbridge/profiles.d/OneCpu.toml", &profile);
    let script = lab.path("bin/switch-off").display().to_string();
    for (preparation, name) in [
        (["--host-setup-script".to_owned(), script.clone()], "Localhost"),
        (["--worker-setup-script".to_owned(), script.clone()], "Localhost"),
        (["--provisioner".to_owned(), format!(r#"command:{{"command":"{script}"}}"#)], "Localhost"),
        (["--profiles".to_owned(), "OneCpu".to_owned()], "OneCpu"),
    ] {
        let mut command = lab.command(&format!("run threaded {QUICK}"));
        let ran = lab.run_command(command.args(&preparation)).expect_code(0);
        assert_eq!(cells(&lab), [format!("{name}/threaded/0000:threads=1")], "{}", ran.transcript());
        assert_eq!(recorded_cpus(&lab), [1], "{preparation:?}");
        // Each command has a mount namespace of its own: this machine has all its CPUs again.
        let again = lab.weighbridge(&format!("run threaded --profiles {name} {QUICK}"));
        let is_reverted = name == "OneCpu";
        assert_eq!(again.code, if is_reverted { 4 } else { 1 }, "{preparation:?}: {}", again.transcript());
        if !is_reverted {
            again.expect_stderr("error: `local` is not as it was when this folder was measured (CPUs: 0 before, 0");
            again.expect_stderr("`Localhost/threaded/0000:threads=1` would be continued as `Localhost/threaded/");
            again.expect_stderr("help: choose another folder with --into");
        }
        assert_eq!(cells(&lab).len(), 1, "{preparation:?}");
        std::fs::remove_dir_all(lab.path("R")).unwrap();
    }
}

#[test]
fn next_invocation_on_the_prepared_machine_adds_no_cell() {
    let Some(lab) = lab() else { return };
    let inner = lab.command(&format!("run threaded {QUICK} --host-setup-script"));
    // Both invocations are in the namespace that the script changes.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", "\"$@\" && exec \"$@\"", "sh"]);
    command.arg(env!("CARGO_BIN_EXE_weighbridge")).args(format!("run threaded {QUICK}").split_whitespace());
    command.arg("--host-setup-script").arg(lab.path("bin/switch-off")).current_dir(lab.path("")).stdin(Stdio::null());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = CommandResult::from(command.output().unwrap()).expect_code(4);
    ran.expect_stderr("nothing to do: every cell of R is complete");
    assert_eq!((cells(&lab), recorded_cpus(&lab)), (vec!["Localhost/threaded/0000:threads=1".to_owned()], vec![1]));
}

#[test]
fn machine_that_changes_while_it_is_measured_is_a_finding() {
    let Some(lab) = lab() else { return };
    // A test runs in the mount namespace of its agent, so it can change what the agent reads.
    lab.define_script("meddler", &format!("{} 2>/dev/null; sleep 0.01; echo figure: 1", switch_off(&lab)));
    let ran = lab.weighbridge(&format!("run meddler {QUICK}")).expect_code(0);
    ran.expect_stderr("warning: `local` changed during the run, after the plan was made for it: CPUs: 0-");
    ran.expect_stdout("findings\n").expect_stdout(" before, 0 now");
    let schema = lab.weighbridge("schema journal-line").json();
    let lines = lab.journal("R");
    assert!(lines.iter().any(|line| line["event"] == "facts-changed"), "{lines:?}");
    for line in lines {
        validate(&schema, &line).unwrap_or_else(|error| panic!("{error}"));
    }
}
