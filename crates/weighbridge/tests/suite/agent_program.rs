//! The program of workers: where it is found, and what is said and recorded of it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use wb_model::Sha256;

use crate::lab::{CommandResult, Lab};

const WEIGHBRIDGE: &str = env!("CARGO_BIN_EXE_weighbridge");
const AGENT: &str = env!("CARGO_BIN_EXE_weighbridge-agent");
const QUICK: &str = "himeno:grid=S,threads=1 --samples 1 --min-time 10ms --warm-up 0";

/// Copies a program to a path of the lab. By another process: a child that a test starts meanwhile would have a file open
/// that this one writes, and no program can be started while somebody may write to it.
fn install(lab: &Lab, program: &str, path: &str) -> PathBuf {
    let path = lab.path(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("cp").arg(program).arg(&path).status().unwrap().success());
    path
}

fn run(lab: &Lab, program: &Path, line: &str) -> CommandResult {
    let mut command = Command::new(program);
    command.args(line.split_whitespace()).current_dir(lab.path("")).env("XDG_CONFIG_HOME", lab.path("config"));
    lab.run_command(&mut command)
}

#[test]
fn without_it_nothing_is_measured_and_the_error_says_where_it_belongs() {
    let lab = Lab::new();
    let program = install(&lab, WEIGHBRIDGE, "usr/bin/weighbridge");
    for line in [format!("run {QUICK} --into A"), "exec himeno {}".to_owned(), "deps iocost-qos".to_owned()] {
        let refused = run(&lab, &program, &line).expect_code(1);
        let places = ["usr/bin/weighbridge-agent", "usr/libexec/weighbridge-agent"].map(|place| lab.path(place));
        for text in
            ["`weighbridge-agent` is not there", &places[0].display().to_string(), &places[1].display().to_string()]
        {
            assert!(refused.err.contains(text), "{line}: {}", refused.err);
        }
    }
    assert!(!lab.path("A").exists());
    // What measures nothing does not need it.
    run(&lab, &program, "list").expect_code(0);
    run(&lab, &program, "doctor --json").expect_code_of(&[0, 3]);
    run(&lab, &program, "tune revert").expect_code(4);
}

#[test]
fn one_of_another_build_or_another_user_is_not_started() {
    let lab = Lab::new();
    let program = install(&lab, WEIGHBRIDGE, "usr/bin/weighbridge");
    lab.write("usr/bin/weighbridge-agent", "#!/bin/sh\necho weighbridge-agent 0.0.1\n");
    let agent = lab.path("usr/bin/weighbridge-agent");
    let refused_with = |mode: u32, text: &str| {
        std::fs::set_permissions(&agent, Permissions::from_mode(mode)).unwrap();
        run(&lab, &program, &format!("run {QUICK} --into A")).expect_code(1).expect_stderr(text);
    };
    refused_with(0o755, "is of another build: 0.0.1 instead of ");
    refused_with(0o757, "is not started: it belongs to ");
    if std::os::unix::fs::chown(&agent, Some(65534), None).is_ok() {
        refused_with(0o755, "is not started: it belongs to ");
    }
}

#[test]
fn it_is_found_beside_the_program_and_where_packages_have_it() {
    for agent in ["usr/bin/weighbridge-agent", "usr/libexec/weighbridge-agent"] {
        let lab = Lab::new();
        let program = install(&lab, WEIGHBRIDGE, "usr/bin/weighbridge");
        let agent = install(&lab, AGENT, agent);
        run(&lab, &program, &format!("run {QUICK} --into A")).expect_code(0);
        let record: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(lab.path("A/run.json")).unwrap()).unwrap();
        let hash = Sha256::digest(&std::fs::read(agent).unwrap());
        assert_eq!(record["invocations"][0]["agent_sha256"], hash.as_str());
        let hash = Sha256::digest(&std::fs::read(&program).unwrap());
        assert_eq!(record["invocations"][0]["program_sha256"], hash.as_str());
    }
}

#[test]
fn it_runs_only_what_workers_need() {
    let help = Command::new(AGENT).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(commands, ["agent", "exec", "images", "net", "doctor", "tune", "help"]);
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().unwrap().stdout;
        String::from_utf8(output).unwrap().split_once(' ').unwrap().1.to_owned()
    };
    assert_eq!(version(AGENT), version(WEIGHBRIDGE));
}
