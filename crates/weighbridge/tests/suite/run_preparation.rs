//! A run exists from its first action on: its folder, what is to be measured, and the steps that prepare machines.

use std::process::{Child, Stdio};

use wb_test_net::wait_until;

use crate::lab::{CommandResult, Lab};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

/// A command that marks its begin, and then lasts.
const LASTING: &str = "touch begun; sleep 300";

/// The preparation events of a run: event, step, machines and outcome.
fn events(lab: &Lab, run: &str) -> Vec<String> {
    let text = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let of = |line: &serde_json::Value| {
        let event = text(line, "event");
        let machines = line["machines"].as_array().into_iter().flatten().filter_map(|machine| machine.as_str());
        let machines = machines.collect::<Vec<_>>().join("+");
        let rest = [text(line, "step"), machines, text(line, "machine"), text(line, "name"), text(line, "outcome")];
        let words = [vec![event.clone()], rest.into_iter().filter(|word| !word.is_empty()).collect()].concat();
        event.starts_with("preparation").then(|| words.join(" "))
    };
    lab.journal(run).iter().filter_map(of).collect()
}

/// How far the preparation of a run came.
fn unmeasured(lab: &Lab, run: &str) -> String {
    let study = lab.weighbridge(&format!("summary {run} --json")).expect_code(3).json();
    study["run"]["unmeasured"].as_str().unwrap().to_owned()
}

/// Starts a run whose preparation lasts, and waits until it has begun.
fn start(lab: &Lab, arguments: &[&str]) -> Child {
    let mut command = lab.command(&format!("run steady {QUICK}"));
    let child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the preparation to begin", || lab.path("begun").exists());
    child
}

fn interrupt(child: Child) -> CommandResult {
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    CommandResult::wait_for(child)
}

/// Defines a profile whose command lasts: some seconds, since the agent ends no command that changes its machine, but
/// reverts it afterwards.
fn define_profile(lab: &Lab) {
    let text = format!(
        "summary = \"x\"\n[[commands]]\nname = \"slow\"\ncheck = \"test -e {0}/applied\"\n\
         apply = \"cd {0}; touch begun; sleep 3\"\nrevert = \"true\"\n",
        lab.path("").display().to_string().trim_end_matches('/')
    );
    lab.write("config/weighbridge/profiles.d/Slow.toml", &text);
}

#[test]
fn run_interrupted_in_any_step_of_its_preparation_has_a_folder_and_is_resumed() {
    let Some(lab) = Lab::with_own_state() else { return };
    define_profile(&lab);
    let script = lab.write("script", &format!("cd {}; {LASTING}\n", lab.path("").display())).display().to_string();
    let provisioner = format!(r#"command:{{"command":"sh -c '{LASTING}'"}}"#);
    for (index, (arguments, step)) in [
        (["--provisioner", &provisioner], "provisioning `local` by `command`"),
        (["--host-setup-script", &script], "running the host setup script script on `local`"),
        (["--worker-setup-script", &script], "running the worker setup script script on `local`"),
        (["--profiles", "Slow"], "applying the profile `Slow` to `local`"),
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("R{index}");
        let into = ["--into", &run];
        let ran = interrupt(start(&lab, &[&arguments[..], &into].concat())).expect_code(130);
        ran.expect_stderr("error: interrupted before anything was measured\nhelp: to resume: ");
        assert!(ran.err.contains(&format!("--into {run}")), "{}", ran.err);
        assert_eq!(events(&lab, &run).last().unwrap(), "preparation-aborted interrupted", "{step}");
        let head = lab.read_json(format!("{run}/run.json"));
        assert_eq!((&head["invocations"], &head["preparation"]["plan"]), (&serde_json::json!([]), &"steady".into()));
        lab.weighbridge(&format!("summary {run}")).expect_code(3).expect_stdout("\nnothing is measured: interrupted");
        assert_eq!(unmeasured(&lab, &run), format!("interrupted while {step}"));
        assert_eq!(lab.wait_for_processes(), [""; 0]);
        std::fs::remove_file(lab.path("begun")).unwrap();
        // Another command may measure in the folder, since nothing is measured there.
        lab.weighbridge(&format!("run steady:kind=b {QUICK} --into {run}")).expect_code(0);
        let head = lab.read_json(format!("{run}/run.json"));
        assert_eq!((head["invocations"].as_array().unwrap().len(), head.get("preparation")), (1, None));
        lab.weighbridge(&format!("summary {run}")).expect_code(0).expect_stdout("1 cell: 1 measured");
    }
}

#[test]
fn resume_command_names_the_folder_that_was_not_given() {
    let lab = Lab::new();
    let provisioner = format!(r#"command:{{"command":"sh -c '{LASTING}'"}}"#);
    let ran = interrupt(start(&lab, &["--provisioner", &provisioner, "--metadata", "password=planted"]));
    assert!(!ran.err.contains("planted") && ran.err.contains("'password=***'"), "{}", ran.transcript());
    let line = ran.err.split("help: to resume: ").nth(1).unwrap_or_else(|| panic!("{}", ran.transcript()));
    let folder = line.split("--into ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(lab.path(folder).join("run.json").is_file(), "{line}");
}

#[test]
fn killed_preparation_says_how_far_it_came() {
    let lab = Lab::new();
    let script = lab.write("script", &format!("cd {}; {LASTING}\n", lab.path("").display())).display().to_string();
    let mut child = start(&lab, &["--into", "R", "--worker-setup-script", &script]);
    child.kill().unwrap();
    child.wait().unwrap();
    let expected = "killed, or not finished yet, while running the worker setup script script on `local`";
    assert_eq!(unmeasured(&lab, "R"), expected);
    for command in ["report R --html page.html", "study R", "format R", "pack R", "compare R R"] {
        let ran = lab.weighbridge(command);
        assert!(ran.code != 101 && !ran.err.contains("panicked"), "{command}: {}", ran.transcript());
    }
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn steps_and_their_time_are_recorded() {
    let Some(lab) = Lab::with_hosts() else { return };
    lab.write("slow.sh", "sleep 1.1\n");
    let line = format!("run steady --hosts a:127.0.0.2,b:127.0.0.3 {QUICK} --into R --host-setup-script slow.sh");
    lab.weighbridge(&line).expect_code(0);
    assert_eq!(
        events(&lab, "R"),
        [
            "preparation-started connecting a+b",
            "preparation-ended connecting a done",
            "preparation-ended connecting b done",
            "preparation-started host-setup a+b slow.sh",
        ]
    );
    let study = lab.weighbridge("summary R --json").json();
    assert!(study["run"]["preparation_seconds"].as_f64().unwrap() >= 1.1, "{}", study["run"]);
    lab.weighbridge("summary R").expect_stdout(" to prepare machines");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn command_that_cannot_measure_leaves_no_folder_and_changes_no_run() {
    let Some(lab) = Lab::with_hosts() else { return };
    lab.weighbridge(&format!("run steady {QUICK} --into there")).expect_code(0);
    let before = lab.read("there/journal.jsonl");
    for (arguments, reason) in [
        ("steady:on=nosuch", "nosuch"),
        ("steady --select nothing*", "no cell matches"),
        ("steady --hosts x:local,x:127.0.0.2", "duplicate host name"),
        ("steady --profiles NoSuch", "NoSuch"),
    ] {
        for folder in ["new", "there"] {
            let ran = lab.weighbridge(&format!("run {arguments} {QUICK} --into {folder}"));
            assert!([1, 4].contains(&ran.code) && ran.err.contains(reason), "{arguments}: {}", ran.transcript());
        }
        assert!(!lab.path("new").exists(), "{arguments}");
        assert_eq!(lab.read("there/journal.jsonl"), before, "{arguments}");
    }
    assert_eq!(lab.weighbridge(&format!("run steady {QUICK}")).code, 0);
}
