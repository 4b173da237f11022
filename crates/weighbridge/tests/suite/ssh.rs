//! Other machines over ssh: hosts in network namespaces, each with an sshd.

use wb_test_net::{Host, SshHosts, SshdConfig};

use crate::lab::{CommandResult, Lab, deploy};
use crate::profiles::define_file_and_flag;

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6";

/// This many hosts, which have the program already, and a lab whose `ssh` connects to them; `None`, with a message, if
/// namespaces cannot be created.
pub(crate) fn lab(hosts: u8) -> Option<(SshHosts, Lab)> {
    let (network, lab) = lab_of_new_hosts(hosts)?;
    (1..=hosts).for_each(|host| deploy(&network.cache(Host(host))));
    Some((network, lab))
}

/// As [`lab`], with hosts to which nobody has connected.
fn lab_of_new_hosts(hosts: u8) -> Option<(SshHosts, Lab)> {
    let hosts = SshHosts::new(hosts)?;
    let lab = Lab::with_ssh(&hosts);
    Some((hosts, lab))
}

/// Runs the program with the lab's `ssh` on the PATH.
pub(crate) fn weighbridge(hosts: &SshHosts, lab: &Lab, line: &str) -> CommandResult {
    lab.weighbridge(&format!("{line} --ssh-config {}", hosts.path("config").display()))
}

pub(crate) fn addresses(hosts: std::ops::RangeInclusive<u8>) -> String {
    hosts.map(|host| format!("host{host}:{}", Host(host).v4())).collect::<Vec<_>>().join(",")
}

#[test]
fn two_remote_hosts_are_measured_and_left_clean() {
    let Some((hosts, lab)) = lab_of_new_hosts(2) else { return };
    let line = format!("run steady himeno:grid=XS,threads=1 --hosts {} {QUICK} --into R --json", addresses(1..=2));
    let ran = weighbridge(&hosts, &lab, &line);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.transcript(), hosts.log(Host(1)));
    let study = ran.json();
    let cells = study["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        let workers: Vec<&str> =
            cell["metrics"].as_array().unwrap().iter().filter_map(|metric| metric["worker"].as_str()).collect();
        assert!(workers.contains(&"host1") && workers.contains(&"host2"), "{workers:?}");
    }
    // Both start at the same time, by their own clocks.
    let folder = lab.path("R/Localhost/himeno/0000/grid=XS,threads=1/0000.0");
    for host in ["host1", "host2"] {
        let text = std::fs::read_to_string(folder.join(host).join("report.process.json")).unwrap();
        let process: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(process["start"]["delay"].is_number() || process["start"]["delay"].is_string(), "{process}");
    }
    let head = lab.read_json("R/run.json");
    assert!(head["invocations"][0]["hosts"]["host1"]["address"].is_string(), "{head}");
    // The same command measures nothing; the program is cached on the hosts.
    weighbridge(&hosts, &lab, &line).expect_code(4);
    for host in [Host(1), Host(2)] {
        hosts.wait_until_idle(host);
        let found = hosts.cached_paths(host);
        assert_eq!(found.iter().filter(|path| path.ends_with("/weighbridge")).count(), 1, "{found:?}");
    }
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn network_test_runs_between_hosts() {
    let Some((hosts, lab)) = lab(3) else { return };
    let test = "uperf:test-types=stream,message-sizes=16k,protocols=tcp,instances=1,runtime=300ms,samples=2";
    let line = format!("run {test},server=host3 --hosts {} --into R --json", addresses(1..=3));
    let study = weighbridge(&hosts, &lab, &line).expect_code_of(&[0, 3]).json();
    let cell = &study["cells"][0];
    let summary = |worker: Option<&str>| {
        let of = |metric: &&serde_json::Value| metric["worker"].as_str() == worker;
        cell["metrics"].as_array().unwrap().iter().find(of).unwrap()["summary"]["mean"].as_f64().unwrap()
    };
    let (all, each) = (summary(None), summary(Some("host1")) + summary(Some("host2")));
    assert!((all - each).abs() < all * 1e-9, "{all} {each}");
    hosts.wait_until_idle(Host(3));
}

#[test]
fn unreachable_host_does_not_stop_the_others() {
    let Some(mut hosts) = SshHosts::without_sshd(2) else { return };
    hosts.start(Host(1), &SshdConfig::default());
    let lab = Lab::with_ssh(&hosts);
    let inventory = format!(
        "[hosts.up]\naddress = '{}'\n[hosts.down]\naddress = '{}'\n[groups]\nboth = ['up', 'down']\n",
        Host(1).v4(),
        Host(2).v4()
    );
    lab.write("hosts.toml", &inventory);
    let run = format!("run steady:on=up steady:id=all --inventory hosts.toml {QUICK} --into R --json");
    let ran = weighbridge(&hosts, &lab, &run).expect_code(3);
    ran.expect_stderr("warning: `down` (").expect_stderr("help: ");
    let study = ran.json();
    let outcomes: Vec<&str> =
        study["cells"].as_array().unwrap().iter().map(|cell| cell["outcome"]["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["measured", "unsupported"]);
    let none = weighbridge(&hosts, &lab, &format!("run steady --inventory hosts.toml --hosts down {QUICK} --into S"));
    assert_eq!(none.code, 1, "{}", none.transcript());
    assert!(!lab.path("S").exists());
}

#[test]
fn host_disconnected_during_a_run_is_lost_and_the_others_continue() {
    let Some((hosts, lab)) = lab(2) else { return };
    lab.define_script("long", "sleep 100; echo figure: 1");
    let line = format!("run long:on=host2 steady:on=host1 --hosts {} {QUICK} --into R", addresses(1..=2));
    let line = format!("{line} --ssh-config {}", hosts.path("config").display());
    let mut command = lab.command(&line);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    let started =
        || std::fs::read_to_string(lab.path("R/journal.jsonl")).is_ok_and(|text| text.contains("attempt-started"));
    let on_two = || started() && lab.read("R/journal.jsonl").contains("/long/");
    wb_test_net::wait_until("the long test to start", on_two);
    hosts.network.disconnect(Host(2));
    CommandResult::wait_for(child).expect_code(3);
    let study = lab.weighbridge("study R --json").json();
    let outcomes: Vec<(String, String)> = study["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| (cell["id"].as_str().unwrap().to_owned(), cell["outcome"]["outcome"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(outcomes[0].1, "failed", "{outcomes:?}");
    assert_eq!(outcomes[1].1, "measured", "{outcomes:?}");
}

#[test]
fn clean_removes_programs_from_a_host() {
    let Some((hosts, lab)) = lab(1) else { return };
    let address = addresses(1..=1);
    let shown = weighbridge(&hosts, &lab, &format!("clean --programs --dry-run --hosts {address}")).expect_code(0);
    shown.expect_stdout("host1  program");
    assert!(!hosts.cached_paths(Host(1)).is_empty());
    weighbridge(&hosts, &lab, &format!("clean --programs --yes --hosts {address}")).expect_code(0);
    assert_eq!(hosts.cached_paths(Host(1)), [""; 0]);
    hosts.wait_until_idle(Host(1));
}

#[test]
fn custom_inventory_values_are_recorded_without_secrets() {
    let Some((hosts, lab)) = lab(1) else { return };
    let own = "[hosts.h.extra]\npassword = 'planted-own'\nrack = 'B7'\nnote = 'the bearer has the key'\n\
               bmc_passwd = 'planted-bmc'\nconsole = 'https://joe:planted-url@h/'\nheader = 'Bearer planted-bearer'\n\
               login = 'ipmitool -U joe -P planted-option'\n";
    lab.write("hosts.toml", &format!("[hosts.h]\naddress = '{}'\n{own}", Host(1).v4()));
    weighbridge(&hosts, &lab, &format!("run steady --inventory hosts.toml {QUICK} --into R")).expect_code(0);
    for file in ["run.json", "journal.jsonl"] {
        let text = lab.read(format!("R/{file}"));
        assert!(!text.contains("planted"), "{file}: {text}");
    }
    let head = lab.read("R/run.json");
    let head: serde_json::Value = serde_json::from_str(&head).unwrap();
    let own = serde_json::json!({
        "password": "***", "rack": "B7", "note": "the bearer has the key", "bmc_passwd": "***",
        "console": "https://***@h/", "header": "Bearer ***", "login": "ipmitool -U joe -P ***",
    });
    assert_eq!(head["invocations"][0]["hosts"]["h"]["params"]["extra"], own);
}

/// Defines a profile with a file and a command, and a test that kills its agent.
fn define_profile(lab: &Lab) -> [std::path::PathBuf; 2] {
    let made = define_file_and_flag(lab, "");
    lab.define_script("deadly", "kill -9 $PPID; sleep 5");
    made
}

#[test]
fn host_is_reverted_over_a_new_connection_after_its_agent_is_killed() {
    let Some((hosts, lab)) = lab(1) else { return };
    let [file, flag] = define_profile(&lab);
    let ran =
        weighbridge(&hosts, &lab, &format!("run deadly --profiles Mine --hosts {} {QUICK} --into R", addresses(1..=1)));
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    let note = "note: `host1`: a run that was killed had changed the flag: restored";
    ran.expect_stderr(note);
    assert!(!flag.exists() && std::fs::read_to_string(&file).unwrap() == "as it was\n");
}

/// Leaves a host in a profile: its agent is killed while the host is unreachable; then it is reachable again.
fn leave_changed(hosts: &SshHosts, lab: &Lab) -> [std::path::PathBuf; 2] {
    let [file, flag] = define_profile(lab);
    // While the file `gone` exists, the host is unreachable.
    let ssh = std::fs::read_to_string(hosts.path("ssh")).unwrap();
    let gone = format!("#!/bin/sh\n[ ! -e {} ] || exit 255\n", lab.path("gone").display());
    lab.write("bin/ssh", &ssh.replacen("#!/bin/sh\n", &gone, 1));
    let deadly = format!("touch {}; kill -9 $PPID; sleep 5", lab.path("gone").display());
    lab.define_script("deadly", &deadly);
    let ran =
        weighbridge(hosts, lab, &format!("run deadly --profiles Mine --hosts {} {QUICK} --into R", addresses(1..=1)));
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    let still = format!("; still changed: {}, the flag\nhelp: `weighbridge profile revert`", file.display());
    let warned = ran.err.contains("warning: `host1`: its agent is unreachable, and a new one cannot be started: ");
    assert!(warned && ran.err.contains(&still), "{}", ran.transcript());
    assert!(flag.exists());
    std::fs::remove_file(lab.path("gone")).unwrap();
    [file, flag]
}

#[test]
fn read_only_commands_report_what_the_agent_reverted() {
    let Some((hosts, lab)) = lab(1) else { return };
    for line in ["plan steady", "tune status"] {
        let [file, flag] = leave_changed(&hosts, &lab);
        let ran = weighbridge(&hosts, &lab, &format!("{line} --hosts {}", addresses(1..=1)));
        let note = "note: `host1`: a run that was killed had changed the flag: restored";
        assert!(ran.code == 0 && ran.err.contains(note), "{}", ran.transcript());
        assert!(!flag.exists() && std::fs::read_to_string(&file).unwrap() == "as it was\n");
        std::fs::remove_dir_all(lab.path("R")).unwrap();
    }
}

#[test]
fn changes_on_an_unreachable_host_are_reported_and_reverted_later() {
    let Some((hosts, lab)) = lab(1) else { return };
    let [file, flag] = leave_changed(&hosts, &lab);
    let reverted = weighbridge(&hosts, &lab, &format!("profile revert --hosts {}", addresses(1..=1))).expect_code(0);
    reverted.expect_stdout("the flag: restored");
    assert!(!flag.exists() && std::fs::read_to_string(&file).unwrap() == "as it was\n");
}

#[test]
fn run_continues_without_an_unreachable_host_and_keeps_its_samples() {
    let Some((hosts, lab)) = lab(2) else { return };
    // The instruction set, resolved on the machine, is part of the definition.
    let tests = "himeno:grid=XS,threads=1,id=on-1,on=host1 himeno:grid=XS,threads=1,id=on-2,on=host2 \
                 himeno:grid=XS,threads=1,id=on-both";
    let run = |port: &str, samples: u32| {
        let [one, two] = [Host(1).v4(), Host(2).v4()];
        let line = format!(
            "run {tests} --hosts host1:{one},host2:{two}{port} --min-time 1ms --warm-up 0 --samples {samples} --retakes 0 \
             --into R --json"
        );
        weighbridge(&hosts, &lab, &line)
    };
    let first = run("", 6).expect_code_of(&[0, 3]);
    // No sshd listens on that port.
    let second = run(":2", 7).expect_code(3);
    second.expect_stderr("warning: `host2` (");
    let (before, after) = (first.json(), second.json());
    let cell = |study: &serde_json::Value, serial: &str| {
        let cells = study["cells"].as_array().unwrap();
        cells.iter().find(|cell| cell["id"].as_str().unwrap().contains(serial)).unwrap().clone()
    };
    for (serial, samples) in [("on-1", 7), ("on-2", 6), ("on-both", 6)] {
        let [before, after] = [&before, &after].map(|study| cell(study, serial));
        assert_eq!((&after["key"], &after["params"]["isa"]), (&before["key"], &before["params"]["isa"]), "{serial}");
        assert!(after["params"]["isa"].is_string(), "{after}");
        let counted = after["attempts"].as_array().unwrap().iter().filter(|sample| sample["counted"] == true).count();
        assert_eq!(counted, samples, "{serial}: {}", after["outcome"]);
        if samples == 6 {
            assert_eq!(after["outcome"]["outcome"], "partial", "{}", after["outcome"]);
            assert_eq!(after["provenance"], before["provenance"]);
        }
    }
    // Once it is back, the same command resumes.
    let third = run("", 7).expect_code_of(&[0, 3]);
    let third = third.json();
    let counted = |cell: &serde_json::Value| {
        cell["attempts"].as_array().unwrap().iter().filter(|sample| sample["counted"] == true).count()
    };
    assert!(third["cells"].as_array().unwrap().iter().all(|cell| counted(cell) == 7), "{third}");
}

#[test]
fn knobs_of_remote_hosts_are_shown_applied_and_reverted() {
    let Some(mut hosts) = SshHosts::without_sshd(2) else { return };
    // Each host has its own copy of the setting, which is a file.
    let setting = |host: u8| hosts.path(&format!("aslr{host}"));
    let settings = [1, 2].map(setting);
    for (host, file) in (1..).zip(&settings) {
        std::fs::write(file, "2\n").unwrap();
        let before = format!("mount --bind {} /proc/sys/kernel/randomize_va_space", file.display());
        hosts.start(Host(host), &SshdConfig { setup_command: &before, ..SshdConfig::default() });
    }
    let values = || settings.clone().map(|file| std::fs::read_to_string(file).unwrap());
    let lab = Lab::with_ssh(&hosts);
    lab.write("config/weighbridge/knobs.d/mine.toml", "summary = \"mine\"\n[knobs]\naslr = 1\n");
    let both = format!("--hosts {}", addresses(1..=2));
    let status = weighbridge(&hosts, &lab, &format!("tune status mine --json {both}")).expect_code(0);
    for host in ["host1", "host2"] {
        assert_eq!(status.json()[host]["changed"], serde_json::json!([]), "{}", status.transcript());
        assert_eq!(status.json()[host]["planned"][0]["knob"], "aslr", "{}", status.transcript());
    }
    let unknown = weighbridge(&hosts, &lab, &format!("tune apply nosuch {both}"));
    assert!(unknown.code == 1 && unknown.err.matches("nosuch").count() == 1, "{}", unknown.transcript());
    let reverted = weighbridge(&hosts, &lab, &format!("tune revert {both}"));
    assert_eq!((reverted.code, reverted.out.matches("nothing is changed on this machine").count()), (4, 2));
    let doctor = weighbridge(&hosts, &lab, &format!("doctor {both}")).expect_code_of(&[0, 3]);
    doctor.expect_stdout("`host1`:\n").expect_stdout("`host2`:\n");
    let remedies = weighbridge(&hosts, &lab, &format!("doctor --json {both}")).json();
    for (number, host) in [(1, "host1"), (2, "host2")] {
        let Some(words) = remedies[host]["remedies"].as_array() else { continue };
        let words: Vec<&str> = words.iter().filter_map(serde_json::Value::as_str).collect();
        let options = format!("--hosts {host}:{} --ssh-config {}", Host(number).v4(), hosts.path("config").display());
        let line = format!("  weighbridge tune apply {} {options}\n", words.join(" "));
        assert!(doctor.out.contains(&line), "{line}{}", doctor.transcript());
        let revert = format!("  weighbridge tune revert {options}\n");
        assert!(doctor.out.contains(&revert), "{revert}{}", doctor.transcript());
    }
    let applied = weighbridge(&hosts, &lab, &format!("tune apply mine {both}"));
    assert_eq!((applied.code, values()), (0, ["1\n", "1\n"].map(str::to_owned)), "{}", applied.transcript());
    let reverted = weighbridge(&hosts, &lab, &format!("tune revert {both}"));
    assert_eq!((reverted.code, values()), (0, ["2\n", "2\n"].map(str::to_owned)), "{}", reverted.transcript());
    assert_eq!(reverted.out.matches("randomize_va_space: restored (`2`)").count(), 2, "{}", reverted.out);
    hosts.wait_until_idle(Host(1));
}

#[test]
fn host_without_space_for_its_lock_is_reported() {
    let Some(mut hosts) = SshHosts::without_sshd(1) else { return };
    let full =
        "mount -t tmpfs -o size=8k,mode=755 full /var/lib; head -c 64k /dev/zero > /var/lib/full 2>/dev/null || true";
    hosts.start(Host(1), &SshdConfig { setup_command: full, ..SshdConfig::default() });
    let lab = Lab::with_ssh(&hosts);
    let ran = weighbridge(&hosts, &lab, &format!("run steady --hosts host1:{} --into R", Host(1).v4()));
    // Ignore the transfer of the program, whose size and duration vary: a long one reports how far it is.
    let is_transfer = |line: &&str| {
        let forms = [": sending the program, ", ": sent the", " MiB sent"];
        line.starts_with("note: `host1`: ") && forms.iter().any(|form| line.contains(form))
    };
    let (transfer, error): (Vec<&str>, Vec<&str>) = ran.err.lines().partition(is_transfer);
    assert!(transfer.len() >= 2, "{}", ran.transcript());
    let error = error.join("\n");
    insta::assert_snapshot!(format!("exit {}\n{error}", ran.code), @r"
    exit 1
    error: `host1` (10.77.0.2) cannot start the agent: the worker `host1` is lost: its agent ended: the agent cannot lock the machine for its controller: No space left on device
    help: free some space in /var/lib and in the folder for temporary files on that host
    ");
    hosts.wait_until_idle(Host(1));
}

#[test]
fn two_names_of_one_host_are_refused() {
    let Some((hosts, lab)) = lab(2) else { return };
    let [one, two] = [Host(1).v4(), Host(2).v4()];
    let line = format!("run steady --hosts x:{one},z:{two},y:{one} {QUICK} --into R --json");
    let ran = weighbridge(&hosts, &lab, &line).expect_code(3);
    // The first name is used.
    let refused = format!(
        "warning: `y` ({one}) is the same machine as `x`\n\
         help: name each machine once: drop `y` or `x`, otherwise one machine is measured under both names; hosts that share \
         a kernel on purpose, in namespaces or containers, need folders of their own: /var/lib/weighbridge, where an \
         agent keeps what it will revert, and WEIGHBRIDGE_LOCKS, such as `SetEnv WEIGHBRIDGE_LOCKS=FOLDER` in each \
         sshd_config\n"
    );
    assert!(ran.err.contains(&refused) && !ran.err.contains("in use by"), "{}", ran.transcript());
    let planned = weighbridge(&hosts, &lab, &format!("plan steady --hosts x:{one},z:{two},y:{one}"));
    assert!(planned.err.contains(&refused), "{}", planned.transcript());
    assert_eq!(ran.json()["cells"][0]["outcome"]["outcome"], "unsupported");
}
