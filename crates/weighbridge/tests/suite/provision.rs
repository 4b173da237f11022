//! Preparation of machines: provisioning, setup scripts, reboots.

use crate::lab::{CommandResult, Lab};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";

/// The preparation steps of a run: event, host or worker, and outcome.
fn steps(lab: &Lab) -> Vec<String> {
    let journal = lab.journal("R");
    let of = |line: &serde_json::Value| {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let target = text("host") + &text("worker");
        let is_step =
            matches!(line["event"].as_str(), Some("provisioned" | "script-ran" | "reboot-started" | "reboot-ended"));
        is_step.then(|| format!("{} {}{target} {}", text("event"), text("script"), text("outcome")).trim().to_owned())
    };
    journal.iter().filter_map(of).collect()
}

#[test]
fn command_provisions_each_host_once_and_failed_hosts_are_excluded() {
    let Some(lab) = Lab::with_hosts() else { return };
    lab.write("prov.sh", "echo provisioning $1 at $2; echo $1 >> made; [ $1 != b ] || { echo no disk >&2; exit 7; }\n");
    let provisioner = r#"command:{"command":"sh prov.sh %(name)s %(host)s"}"#;
    let line =
        format!("run steady:on=a steady:id=both --hosts a:local,b:127.0.0.3 {QUICK} --into R --json --provisioner");
    let ran = lab.run_command(lab.command(&line).arg(provisioner)).expect_code(3);
    let warning = "warning: `b` is left out: the provisioner `command` failed: exit status 7: no disk";
    ran.expect_stderr("provisioning 2 hosts by `command`").expect_stderr(warning);
    let study = ran.json();
    let outcomes: Vec<&str> =
        study["cells"].as_array().unwrap().iter().map(|cell| cell["outcome"]["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["measured", "unsupported"]);
    let log = lab.read("R/environment/provision-0@a.log");
    assert!(
        log.contains("sh prov.sh a localhost\nexit status 0\n") && log.contains("provisioning a at localhost"),
        "{log}"
    );
    assert_eq!(steps(&lab), ["provisioned a done", "provisioned b failed"]);
    // Only the failed host is provisioned again.
    lab.run_command(lab.command(&line).arg(provisioner)).expect_code(3);
    assert_eq!(lab.read("made").matches('a').count(), 1);
    assert!(lab.path("R/environment/provision-1@b.log").is_file());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn custom_provisioner_gets_the_hosts_and_reports_their_outcomes() {
    let Some(lab) = Lab::with_hosts() else { return };
    let program = "#!/bin/sh\ncat > asked.json\necho '{\"event\":\"message\",\"text\":\"looking for machines\"}'\n\
                   echo '{\"event\":\"done\",\"host\":\"a\"}'\necho '{\"event\":\"failed\",\"host\":\"b\",\"reason\":\"none is free\"}'\n";
    lab.program("weighbridge-provision-pool", program);
    let line = format!("run steady:on=a --hosts a:local,b:127.0.0.3 --distro debian-12 {QUICK} --into R --provisioner");
    let ran = lab.run_command(lab.command(&line).arg(r#"pool:{"rack":"B7"}"#)).expect_code(0);
    ran.expect_stderr("pool: looking for machines");
    ran.expect_stderr("warning: `b` is left out: the provisioner `pool` failed: none is free");
    let request = lab.read_json("asked.json");
    assert_eq!((&request["contract"], &request["params"]["rack"]), (&1.into(), &"B7".into()));
    let host = |index: usize| request["hosts"][index].clone();
    assert_eq!(
        (&host(0)["name"], &host(0)["local"], &host(0)["distro"]),
        (&"a".into(), &true.into(), &"debian-12".into())
    );
    // The distribution is shown with the run.
    assert_eq!(lab.weighbridge("summary R --json").json()["run"]["metadata"]["distro"], "debian-12");
}

#[test]
fn invalid_or_missing_provisioners_are_refused() {
    let lab = Lab::new();
    let seen = |provisioner: &str| {
        let ran = lab.run_command(lab.command(&format!("run steady {QUICK} --into R --provisioner")).arg(provisioner));
        assert!(!lab.path("R").exists(), "{}", ran.transcript());
        ran.transcript()
    };
    insta::assert_snapshot!(seen(r#"command:{"comand":"x"}"#), @r"
    exit 1
    error: invalid parameters of provisioner `command`: unknown field `comand`, expected `command` or `limit`
    help: see docs/profiles.md
    ");
    insta::assert_snapshot!(seen("nosuch"), @r"
    exit 1
    error: the provisioner `nosuch` requires `weighbridge-provision-nosuch`, which is not in PATH
    help: write an executable of this name to define your own provisioner: docs/profiles.md
    ");
    lab.write("site.yml", "- hosts: all\n");
    let path = lab.path("only");
    lab.write("only/sh", "");
    let ran = lab.run_command(
        lab.command(&format!("run steady {QUICK} --into R --provisioner"))
            .arg(r#"ansible:{"playbook":"site.yml"}"#)
            .env("PATH", path),
    );
    insta::assert_snapshot!(ran.transcript(), @r"
    exit 1
    error: the provisioner `ansible` requires `ansible-playbook`, which is not in PATH
    help: install the package `ansible-core` on this machine
    ");
}

#[test]
fn setup_scripts_run_once_per_boot() {
    let lab = Lab::new();
    lab.write("host.sh", "echo host $1 $WEIGHBRIDGE_WORKER; echo host >> \"$2\"\n");
    lab.write("worker.py", "#!/bin/sh\necho worker >> \"$1\"\n");
    let made = lab.path("made").display().to_string();
    let line = format!("run steady {QUICK} --into R");
    let run = |more: &str| {
        let mut command = lab.command(&line);
        command.args(["--host-setup-script", &format!("host.sh 'a b' {made}"), "--worker-setup-script"]);
        lab.run_command(command.arg(format!("worker.py {made}")).args(more.split_whitespace()))
    };
    let ran = run("").expect_code(0);
    ran.expect_stderr("`local` is set up by host.sh\n`local` is set up by worker.py\n");
    assert_eq!(steps(&lab), ["script-ran host-setuplocal done", "script-ran worker-setuplocal done"]);
    let log = lab.read("R/environment/host-setup-0@local.log");
    assert!(log.contains("host a b local"), "{log}");
    // A script is not run again in the same boot unless its text changes.
    assert_eq!(run("").code, 4);
    assert_eq!(lab.read("made"), "host\nworker\n");
    lab.write("host.sh", "echo other >> \"$2\"\n");
    assert_eq!(run("--samples 7").code, 1, "--samples given twice");
    run("--attempts 2").expect_code(4);
    assert_eq!(lab.read("made"), "host\nworker\nother\n");
    assert!(lab.path("R/environment/host-setup-1@local.log").is_file());
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn failed_or_hanging_script_excludes_its_host() {
    let Some(lab) = Lab::with_hosts() else { return };
    lab.write("fail.sh", "[ $WEIGHBRIDGE_WORKER = a ] || { sleep 300 & echo half done; exit 3; }\n");
    let line = format!("run steady:on=a --hosts a:local,b:127.0.0.3 {QUICK} --into R --worker-setup-script fail.sh");
    let ran = lab.weighbridge(&line).expect_code(0);
    let warning = "warning: `b` is left out: the worker-setup script fail.sh: exit status 3: half done\n\
                   help: see its output in R/environment/worker-setup-0@b.log\n";
    ran.expect_stderr(warning);
    assert_eq!(lab.wait_for_processes(), [""; 0]);
    lab.write("hang.sh", "sleep 300\n");
    let hung =
        lab.weighbridge(&format!("run steady {QUICK} --into S --host-setup-script hang.sh --script-limit 200ms"));
    assert_eq!(hung.code, 3, "{}", hung.transcript());
    hung.expect_stderr("`local` is left out: the host-setup script hang.sh: timeout after 200ms");
    hung.expect_stderr("error: no host left to measure on");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn this_machine_is_never_rebooted() {
    let lab = Lab::new();
    lab.write("x.sh", "touch ran\n");
    for hosts in ["", "--hosts local", "--hosts 10.99.99.99,b:local"] {
        let ran = lab
            .weighbridge(&format!("run steady {hosts} --into R --host-setup-script x.sh --host-setup-script-reboot"));
        assert_eq!(ran.code, 1, "{}", ran.transcript());
        ran.expect_stderr("would reboot this machine");
        let plan = format!("plan steady {hosts} --host-setup-script x.sh --host-setup-script-reboot");
        lab.weighbridge(&plan).expect_code(1).expect_stderr("would reboot this machine");
    }
    let alone = lab.weighbridge("run steady --into R --host-setup-script-reboot").expect_code(1);
    alone.expect_stderr("--host-setup-script <FILE>");
    assert!(!lab.path("R").exists() && !lab.path("ran").exists());
}

#[test]
fn interrupted_preparation_can_be_resumed() {
    let lab = Lab::new();
    let line = format!("run steady {QUICK} --into R --provisioner");
    let mut command = lab.command(&line);
    command.arg(r#"command:{"command":"sh -c 'touch begun; sleep 300'"}"#);
    let child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    wb_test_net::wait_until("the provisioner to begin", || lab.path("begun").exists());
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let err = CommandResult::wait_for(child).expect_code(130).err;
    assert!(err.contains("interrupted before anything was measured"), "{err}");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
    lab.run_command(lab.command(&line).arg(r#"command:{"command":"true"}"#)).expect_code(0);
}

#[test]
fn every_attempt_is_recorded_and_retry_tests_limits_them() {
    let lab = Lab::new();
    lab.define_script("failing", "echo why not; exit 5");
    for (option, attempts) in [("", 3), ("--retry-tests 2", 2)] {
        let into = format!("R{attempts}");
        lab.weighbridge(&format!("run failing --warm-up 0 --min-time 1ms --into {into} {option}")).expect_code(3);
        let ended = lab.journal(&into).into_iter().filter(|line| line["event"] == "attempt-ended").count();
        assert_eq!(ended, attempts);
        for attempt in 0..attempts {
            let output = lab.path(&format!("{into}/Localhost/failing/0000/-/0000.{attempt}/run.stdout"));
            assert_eq!(std::fs::read_to_string(&output).unwrap(), "why not\n", "{}", output.display());
        }
    }
    let help = lab.weighbridge("run --help").out;
    assert!(help.contains("--retry-tests"), "{help}");
}
