//! Other machines made ready: hosts in network namespaces, with an sshd each, and a boot id that a reboot changes.

use std::process::{Command, Stdio};

use wb_lab::{Host, SshHosts, Sshd};

use crate::lab::{Lab, Ran};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";
const HOST: Host = Host(1);

/// A host whose `reboot` says in a file that it was asked for. Nothing that would reboot this machine can be called there.
fn rebootable() -> Option<(SshHosts, Lab)> {
    let mut hosts = SshHosts::bare(1)?;
    let asked = hosts.path("reboot-asked").display().to_string();
    hosts.script(
        "reboot",
        &format!("#!/bin/sh\n[ ! -e {asked}.refuse ] || {{ echo no, thanks >&2; exit 1; }}\ntouch {asked}\n"),
    );
    hosts.script("none", "#!/bin/sh\nexit 1\n");
    boot(&hosts, 1);
    start(&mut hosts);
    let lab = Lab::new();
    let ssh = std::fs::read_to_string(hosts.path("ssh")).unwrap();
    let counted = format!("#!/bin/sh\necho >> {}\n", hosts.path("ssh-calls").display());
    lab.program("ssh", &ssh.replacen("#!/bin/sh\n", &counted, 1));
    Some((hosts, lab))
}

/// Gives the host the boot id of this number.
fn boot(hosts: &SshHosts, number: u32) {
    std::fs::write(hosts.path("boot_id"), format!("00000000-0000-4000-8000-{number:012}\n")).unwrap();
}

/// Starts the host's sshd in a mount namespace with that boot id.
fn start(hosts: &mut SshHosts) {
    let path = |name: &str| hosts.path(name).display().to_string();
    let over = |program: &str, by: &str| {
        format!(
            "for dir in /sbin /usr/sbin /bin /usr/bin; do [ ! -e $dir/{program} ] || mount --bind {} $dir/{program}; done; ",
            path(by)
        )
    };
    let nothing: String =
        ["systemctl", "shutdown", "halt", "poweroff", "telinit"].map(|program| over(program, "none")).concat();
    let reboot = over("reboot", "reboot");
    let before = format!(
        "{nothing}{reboot}mount --bind {} /proc/sys/kernel/random/boot_id; mkdir /run/bin; cp {} /run/bin/reboot; \
         cp {} /run/bin/systemctl",
        path("boot_id"),
        path("reboot"),
        path("none")
    );
    let lines = format!(
        "SetEnv XDG_CACHE_HOME={} TMPDIR={} PATH=/run/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        hosts.cache(HOST).display(),
        hosts.temporary(HOST).display()
    );
    hosts.start(HOST, &Sshd { lines: &lines, before: &before });
}

/// Ends everything on the host, as a reboot does.
fn go_down(hosts: &SshHosts) {
    for process in hosts.lab.processes(HOST) {
        let _ = Command::new("kill").args(["-9", &process.to_string()]).output();
    }
    wb_lab::eventually("everything to end", || !hosts.lab.processes(HOST).into_iter().any(wb_lab::alive));
}

fn command(hosts: &SshHosts, lab: &Lab, more: &str) -> Command {
    let line = format!(
        "run steady --hosts h:{} {QUICK} --into R --host-setup-script set-up.sh --ssh-config {} {more}",
        HOST.v4(),
        hosts.path("config").display()
    );
    lab.with_programs(&line)
}

fn run(hosts: &SshHosts, lab: &Lab, more: &str) -> Ran {
    lab.ran(&mut command(hosts, lab, more))
}

fn steps(lab: &Lab) -> Vec<String> {
    let name = |line: &serde_json::Value| {
        let event = line["event"].as_str().unwrap().to_owned();
        let outcome = line["outcome"].as_str().map(|outcome| format!(" {outcome}")).unwrap_or_default();
        (event.contains("script") || event.contains("reboot")).then(|| event + &outcome)
    };
    lab.journal("R").iter().filter_map(name).collect()
}

/// Runs the line, and lets the host go down and come back as often as it is asked to.
fn run_with_reboots(hosts: &mut SshHosts, lab: &Lab, next: u32) -> Ran {
    let mut command = command(hosts, lab, "--host-setup-script-reboot");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let asked = hosts.path("reboot-asked");
    wb_lab::eventually("the reboot to be asked for", || asked.exists());
    std::fs::remove_file(&asked).unwrap();
    go_down(hosts);
    boot(hosts, next);
    // It is down for as long as it takes the controller to find that out: who tries again has failed before.
    let calls = || std::fs::read_to_string(hosts.path("ssh-calls")).unwrap().len();
    let before = calls();
    wb_lab::eventually("the host to be found down", || calls() >= before + 2);
    start(hosts);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_host_is_set_up_rebooted_and_measured_in_its_next_boot() {
    let Some((mut hosts, lab)) = rebootable() else { return };
    lab.write("set-up.sh", "echo setting up $WEIGHBRIDGE_WORKER; echo ran >> \"$HOME\"/../tmp/x 2>/dev/null || true\n");
    let ran = run_with_reboots(&mut hosts, &lab, 2);
    assert_eq!(ran.code, 0, "{}\n{}", ran.seen(), hosts.log(HOST));
    assert!(ran.err.contains("`h` reboots\n") && ran.err.contains("`h` is back after "), "{}", ran.err);
    assert_eq!(steps(&lab), ["script-ran done", "reboot-started", "reboot-ended done"]);
    let head: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(lab.path("R/run.json")).unwrap()).unwrap();
    assert_eq!(head["entries"][0]["facts"]["h"]["boot_id"], "00000000-0000-4000-8000-000000000002");
    // In the boot that it came back in, the script is not run again, and nothing reboots.
    let again = run(&hosts, &lab, "--host-setup-script-reboot");
    assert_eq!((again.code, steps(&lab).len()), (4, 3), "{}", again.seen());
    // In any other it is.
    go_down(&hosts);
    boot(&hosts, 3);
    start(&mut hosts);
    let other = run_with_reboots(&mut hosts, &lab, 4);
    assert_eq!((other.code, steps(&lab).len()), (4, 6), "{}", other.seen());
    hosts.is_quiet(HOST);
    assert_eq!(lab.processes_left(), [""; 0]);
}

#[test]
fn a_controller_that_is_killed_while_a_host_reboots_goes_on_with_what_it_had_asked_for() {
    let Some((mut hosts, lab)) = rebootable() else { return };
    lab.write("set-up.sh", "true\n");
    let mut line = command(&hosts, &lab, "--host-setup-script-reboot");
    let mut child = line.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wb_lab::eventually("the reboot to be asked for", || hosts.path("reboot-asked").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    go_down(&hosts);
    boot(&hosts, 2);
    start(&mut hosts);
    let again = run(&hosts, &lab, "--host-setup-script-reboot");
    assert_eq!(again.code, 0, "{}", again.seen());
    assert_eq!(steps(&lab), ["script-ran done", "reboot-started"]);
}

#[test]
fn a_host_that_stays_in_its_boot_or_away_or_refuses_is_left_out() {
    let Some((hosts, lab)) = rebootable() else { return };
    lab.write("set-up.sh", "true\n");
    // It is asked, and does nothing.
    let same = run(&hosts, &lab, "--host-setup-script-reboot --reboot-limit 2s");
    assert_eq!(same.code, 3, "{}\n{}", same.seen(), hosts.log(HOST));
    assert!(
        same.err.contains("`h` is left out: `h` was asked to reboot and is still in the same boot after 2s\nhelp: "),
        "{}",
        same.err
    );
    std::fs::write(hosts.path("reboot-asked.refuse"), "").unwrap();
    let refused = run(&hosts, &lab, "--host-setup-script-reboot");
    assert_eq!(refused.code, 3, "{}", refused.seen());
    assert!(
        refused.err.contains("`h` does not reboot: no, thanks\nhelp: `systemctl reboot` or `reboot` must work"),
        "{}",
        refused.err
    );
    std::fs::remove_file(hosts.path("reboot-asked.refuse")).unwrap();
    std::fs::remove_file(hosts.path("reboot-asked")).unwrap();
    let mut line = command(&hosts, &lab, "--host-setup-script-reboot --reboot-limit 6s");
    let child = line.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wb_lab::eventually("the reboot to be asked for", || hosts.path("reboot-asked").exists());
    go_down(&hosts);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("`h` is left out: `h` did not come back from its reboot within 6s: `h` ("), "{err}");
    let outcomes = steps(&lab);
    assert_eq!(outcomes.iter().filter(|step| *step == "reboot-ended failed").count(), 3, "{outcomes:?}");
    assert_eq!(outcomes[0], "script-ran done");
    assert_eq!(outcomes.iter().filter(|step| step.starts_with("script")).count(), 1, "{outcomes:?}");
}

#[test]
fn a_set_up_script_has_the_umask_that_the_host_gives() {
    let Some(mut hosts) = SshHosts::bare(1) else { return };
    hosts.start(HOST, &Sshd { before: "umask 027", ..Sshd::default() });
    let lab = Lab::new();
    lab.program("ssh", &std::fs::read_to_string(hosts.path("ssh")).unwrap());
    lab.write("set-up.sh", &format!("umask > {}\n", lab.path("umask").display()));
    let ran = run(&hosts, &lab, "");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(std::fs::read_to_string(lab.path("umask")).unwrap(), "0027\n");
    hosts.is_quiet(HOST);
}

#[test]
fn a_command_is_given_what_ssh_and_the_host_itself_know() {
    let Some(hosts) = SshHosts::new(1) else { return };
    let lab = Lab::new();
    lab.program("ssh", &std::fs::read_to_string(hosts.path("ssh")).unwrap());
    let line = format!(
        "run steady --hosts h:{} {QUICK} --into R --ssh-config {} --provisioner",
        HOST.v4(),
        hosts.path("config").display()
    );
    let given = r#"command:{"command":"echo %(user)s %(port)s %(arch)s %(distro)s"}"#;
    let ran = lab.ran(lab.with_programs(&line).arg(given));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let log = std::fs::read_to_string(lab.path("R/environment/provision-0@h.log")).unwrap();
    let release = std::fs::read_to_string("/etc/os-release").unwrap();
    let id = release.lines().find_map(|line| line.strip_prefix("ID=")).unwrap().trim_matches('"').to_owned();
    assert!(log.contains(&format!("root 22 {} {id}", std::env::consts::ARCH)), "{log}");
    hosts.is_quiet(HOST);
}

#[test]
fn a_playbook_is_played_on_hosts_and_what_fails_there_leaves_them_out() {
    if !Command::new("ansible-playbook").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: playing a playbook needs ansible-playbook (ansible-core)");
        return;
    }
    let Some(hosts) = SshHosts::new(2) else { return };
    let lab = Lab::new();
    lab.program("ssh", &std::fs::read_to_string(hosts.path("ssh")).unwrap());
    let book = "- hosts: all\n  gather_facts: false\n  tasks:\n    - raw: echo {{ what }} > /root/said\n\
                \x20   - raw: test {{ inventory_hostname }} = a\n";
    lab.write("site.yml", book);
    let line = format!(
        "run steady:on=a --hosts a:{},b:{} {QUICK} --into R --ssh-config {} --provisioner",
        Host(1).v4(),
        Host(2).v4(),
        hosts.path("config").display()
    );
    let given = r#"ansible:{"playbook":"site.yml","vars":{"what":"played"}}"#;
    let ran = lab.ran(lab.with_programs(&line).arg(given).env("ANSIBLE_SSH_EXECUTABLE", lab.path("bin/ssh")));
    let log = std::fs::read_to_string(lab.path("R/environment/provision-0.log")).unwrap_or_default();
    assert_eq!(ran.code, 0, "{}\n{log}", ran.seen());
    assert!(ran.err.contains("warning: `b` is left out: the provisioner `ansible` failed: "), "{}\n{log}", ran.err);
    assert!(log.contains("PLAY RECAP"), "{log}");
    assert_eq!(lab.processes_left(), [""; 0]);
}
