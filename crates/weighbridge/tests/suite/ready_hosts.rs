//! Preparation of other machines: hosts in network namespaces, each with an sshd and a boot id that a reboot changes.

use std::process::{Command, Stdio};

use wb_test_net::{Host, SshHosts, SshdConfig};

use crate::lab::{CommandResult, Lab};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6 --retakes 0 --precision 100";
const HOST: Host = Host(1);

/// A host whose `reboot` only creates a file. No program that would reboot this machine can be called there.
fn rebootable() -> Option<(SshHosts, Lab)> {
    let mut hosts = SshHosts::without_sshd(1)?;
    let marker = hosts.path("reboot-asked").display().to_string();
    hosts.write_script(
        "reboot",
        &format!("#!/bin/sh\n[ ! -e {marker}.refuse ] || {{ echo no, thanks >&2; exit 1; }}\ntouch {marker}\n"),
    );
    hosts.write_script("none", "#!/bin/sh\nexit 1\n");
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
    let mount_over = |program: &str, by: &str| {
        format!(
            "for dir in /sbin /usr/sbin /bin /usr/bin; do [ ! -e $dir/{program} ] || mount --bind {} $dir/{program}; done; ",
            path(by)
        )
    };
    let nothing: String =
        ["systemctl", "shutdown", "halt", "poweroff", "telinit"].map(|program| mount_over(program, "none")).concat();
    let reboot = mount_over("reboot", "reboot");
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
    hosts.start(HOST, &SshdConfig { config_lines: &lines, setup_command: &before });
}

/// Kills all processes on the host, as a reboot does.
fn go_down(hosts: &SshHosts) {
    for process in hosts.network.processes(HOST) {
        let _ = Command::new("kill").args(["-9", &process.to_string()]).output();
    }
    wb_test_net::wait_until("everything to end", || {
        !hosts.network.processes(HOST).into_iter().any(wb_test_net::is_alive)
    });
}

fn command(hosts: &SshHosts, lab: &Lab, more: &str) -> Command {
    let line = format!(
        "run steady --hosts h:{} {QUICK} --into R --host-setup-script set-up.sh --ssh-config {} {more}",
        HOST.v4(),
        hosts.path("config").display()
    );
    lab.command(&line)
}

fn run(hosts: &SshHosts, lab: &Lab, more: &str) -> CommandResult {
    lab.run_command(&mut command(hosts, lab, more))
}

fn steps(lab: &Lab) -> Vec<String> {
    let name = |line: &serde_json::Value| {
        let event = line["event"].as_str().unwrap().to_owned();
        let outcome = line["outcome"].as_str().map(|outcome| format!(" {outcome}")).unwrap_or_default();
        (event.contains("script") || event.contains("reboot")).then(|| event + &outcome)
    };
    lab.journal("R").iter().filter_map(name).collect()
}

/// Runs the command, and simulates the reboot that it requests.
fn run_with_reboots(hosts: &mut SshHosts, lab: &Lab, next: u32) -> CommandResult {
    let mut command = command(hosts, lab, "--host-setup-script-reboot");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let marker = hosts.path("reboot-asked");
    wb_test_net::wait_until("the reboot to be requested", || marker.exists());
    std::fs::remove_file(&marker).unwrap();
    go_down(hosts);
    boot(hosts, next);
    // Keep it down until the controller has noticed: a second connection attempt means that the first one failed.
    let calls = || std::fs::read_to_string(hosts.path("ssh-calls")).unwrap().len();
    let before = calls();
    wb_test_net::wait_until("the host to be found down", || calls() >= before + 2);
    start(hosts);
    CommandResult::wait_for(child)
}

#[test]
fn host_is_set_up_rebooted_and_measured() {
    let Some((mut hosts, lab)) = rebootable() else { return };
    lab.write("set-up.sh", "echo setting up $WEIGHBRIDGE_WORKER; echo ran >> \"$HOME\"/../tmp/x 2>/dev/null || true\n");
    let ran = run_with_reboots(&mut hosts, &lab, 2);
    assert_eq!(ran.code, 0, "{}\n{}", ran.transcript(), hosts.log(HOST));
    ran.expect_stderr("`h` reboots\n").expect_stderr("`h` is back after ");
    assert_eq!(steps(&lab), ["script-ran done", "reboot-started", "reboot-ended done"]);
    let head = lab.read_json("R/run.json");
    assert_eq!(head["invocations"][0]["facts"]["h"]["boot_id"], "00000000-0000-4000-8000-000000000002");
    // In the new boot the script is not run again, and nothing reboots.
    let again = run(&hosts, &lab, "--host-setup-script-reboot");
    assert_eq!((again.code, steps(&lab).len()), (4, 3), "{}", again.transcript());
    // In any other boot it is.
    go_down(&hosts);
    boot(&hosts, 3);
    start(&mut hosts);
    let other = run_with_reboots(&mut hosts, &lab, 4);
    assert_eq!((other.code, steps(&lab).len()), (4, 6), "{}", other.transcript());
    hosts.wait_until_idle(HOST);
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn run_killed_during_a_reboot_is_resumed() {
    let Some((mut hosts, lab)) = rebootable() else { return };
    lab.write("set-up.sh", "true\n");
    let mut line = command(&hosts, &lab, "--host-setup-script-reboot");
    let mut child = line.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wb_test_net::wait_until("the reboot to be requested", || hosts.path("reboot-asked").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    go_down(&hosts);
    boot(&hosts, 2);
    start(&mut hosts);
    run(&hosts, &lab, "--host-setup-script-reboot").expect_code(0);
    assert_eq!(steps(&lab), ["script-ran done", "reboot-started"]);
}

#[test]
fn host_that_does_not_reboot_is_excluded() {
    let Some((hosts, lab)) = rebootable() else { return };
    lab.write("set-up.sh", "true\n");
    // The host ignores the request.
    let same = run(&hosts, &lab, "--host-setup-script-reboot --reboot-limit 2s");
    assert_eq!(same.code, 3, "{}\n{}", same.transcript(), hosts.log(HOST));
    same.expect_stderr("`h` is left out: `h` was told to reboot and is still in the same boot after 2s\nhelp: ");
    std::fs::write(hosts.path("reboot-asked.refuse"), "").unwrap();
    let refused = run(&hosts, &lab, "--host-setup-script-reboot").expect_code(3);
    refused.expect_stderr("cannot reboot `h`: no, thanks\nhelp: `systemctl reboot` or `reboot` must work");
    std::fs::remove_file(hosts.path("reboot-asked.refuse")).unwrap();
    std::fs::remove_file(hosts.path("reboot-asked")).unwrap();
    let mut line = command(&hosts, &lab, "--host-setup-script-reboot --reboot-limit 6s");
    let child = line.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wb_test_net::wait_until("the reboot to be requested", || hosts.path("reboot-asked").exists());
    go_down(&hosts);
    let err = CommandResult::wait_for(child).expect_code(3).err;
    assert!(err.contains("`h` is left out: `h` did not come back from its reboot within 6s: `h` ("), "{err}");
    let outcomes = steps(&lab);
    assert_eq!(outcomes.iter().filter(|step| *step == "reboot-ended failed").count(), 3, "{outcomes:?}");
    assert_eq!(outcomes[0], "script-ran done");
    assert_eq!(outcomes.iter().filter(|step| step.starts_with("script")).count(), 1, "{outcomes:?}");
}

#[test]
fn setup_script_has_the_umask_of_the_host() {
    let Some(mut hosts) = SshHosts::without_sshd(1) else { return };
    hosts.start(HOST, &SshdConfig { setup_command: "umask 027", ..SshdConfig::default() });
    let lab = Lab::with_ssh(&hosts);
    lab.write("set-up.sh", &format!("umask > {}\n", lab.path("umask").display()));
    run(&hosts, &lab, "").expect_code(0);
    assert_eq!(lab.read("umask"), "0027\n");
    hosts.wait_until_idle(HOST);
}

#[test]
fn provisioner_gets_values_from_ssh_and_the_host() {
    let Some(hosts) = SshHosts::new(1) else { return };
    let lab = Lab::with_ssh(&hosts);
    let line = format!(
        "run steady --hosts h:{} {QUICK} --into R --ssh-config {} --provisioner",
        HOST.v4(),
        hosts.path("config").display()
    );
    let provisioner = r#"command:{"command":"echo %(user)s %(port)s %(arch)s %(distro)s"}"#;
    lab.run_command(lab.command(&line).arg(provisioner)).expect_code(0);
    let log = lab.read("R/environment/provision-0@h.log");
    let release = std::fs::read_to_string("/etc/os-release").unwrap();
    let id = release.lines().find_map(|line| line.strip_prefix("ID=")).unwrap().trim_matches('"').to_owned();
    assert!(log.contains(&format!("root 22 {} {id}", std::env::consts::ARCH)), "{log}");
    hosts.wait_until_idle(HOST);
}

#[test]
fn playbook_runs_on_hosts_and_failed_hosts_are_excluded() {
    if !Command::new("ansible-playbook").arg("--version").output().is_ok_and(|output| output.status.success()) {
        wb_test_skip::skip!("playing a playbook needs ansible-playbook (ansible-core)");
        return;
    }
    let Some(hosts) = SshHosts::new(2) else { return };
    let lab = Lab::with_ssh(&hosts);
    let book = "- hosts: all\n  gather_facts: false\n  tasks:\n    - raw: echo {{ what }} > /root/said\n\
                \x20   - raw: test {{ inventory_hostname }} = a\n";
    lab.write("site.yml", book);
    let line = format!(
        "run steady:on=a --hosts a:{},b:{} {QUICK} --into R --ssh-config {} --provisioner",
        Host(1).v4(),
        Host(2).v4(),
        hosts.path("config").display()
    );
    let provisioner = r#"ansible:{"playbook":"site.yml","vars":{"what":"played"}}"#;
    let ran = lab.run_command(lab.command(&line).arg(provisioner).env("ANSIBLE_SSH_EXECUTABLE", lab.path("bin/ssh")));
    let log = std::fs::read_to_string(lab.path("R/environment/provision-0.log")).unwrap_or_default();
    assert_eq!(ran.code, 0, "{}\n{log}", ran.transcript());
    assert!(ran.err.contains("warning: `b` is left out: the provisioner `ansible` failed: "), "{}\n{log}", ran.err);
    assert!(log.contains("PLAY RECAP"), "{log}");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}
