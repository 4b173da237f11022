//! Real reboots of a host: with and without a profile's kernel parameters, and after a setup script.

use std::process::Stdio;

use wb_test_net::wait_until;
use wb_test_vm::{GuestConfig, SshGuest};

use crate::guests::built;
use crate::lab::Lab;

/// The image of these machines, which can boot with GRUB.
fn image() -> String {
    let packages = [["kexec-tools"].as_slice(), &SshGuest::GRUB_PACKAGES].concat();
    serde_json::json!({"built": "bookworm", "packages": packages}).to_string()
}

/// A test whose figure is 2 if the kernel has the argument `audit=0`, and 1 if not.
const SEES: &str = "sleep 0; echo figure: $(($(grep -cw audit=0 /proc/cmdline) + 1))";
const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 1 --hosts box";

#[test]
#[ignore = "starts a machine in software, and its kernel five times: make test-long"]
fn soak_kernel_has_the_arguments_of_a_profile_while_it_is_applied() {
    let Some(base) = built(&image(), "kernel-images") else { return };
    let lab = Lab::new();
    lab.define_script("sees", SEES);
    lab.define_script("long", &SEES.replace("sleep 0", "sleep 600"));
    let config = GuestConfig { name: "box", may_reboot: true, ..GuestConfig::default() };
    let machine = SshGuest::start(&lab.path(""), &base, &config).unwrap();
    let seen = || {
        String::from_utf8(
            machine.log_in("cat /proc/cmdline; ls -d /var/lib/weighbridge /tmp/weighbridge*").unwrap().stdout,
        )
        .unwrap()
    };
    let before = seen();
    assert!(before.contains("LABEL=weighbridge") && !before.contains("audit"), "{before}");
    let line = |line: &str| format!("{line} {QUICK} --ssh-config {}", machine.ssh_config().display());

    let both = "--profiles Localhost,TunedHost:{\"grub_args\":\"audit=0\",\"sets\":[]} --into R";
    let ran = lab.weighbridge(&line(&format!("run sees {both} --json")));
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.transcript(), machine.console());
    let study = ran.json();
    let median = |index: usize| study["cells"][index]["metrics"][0]["summary"]["median"].as_f64();
    assert_eq!((median(0), median(1)), (Some(1.0), Some(2.0)), "{}", ran.transcript());
    ran.expect_stderr("`box` reboots with ").expect_stderr("weighbridge.added audit=0");
    assert_eq!(seen(), before);
    let reboots = || {
        let journal = lab.journal("R").into_iter();
        journal.filter(|line| line["event"] == "reboot-started").map(|line| line["command_line"].is_string())
    };
    assert_eq!(reboots().collect::<Vec<_>>(), [true, false]);
    // Complete cells need no reboot.
    lab.weighbridge(&line(&format!("run sees {both}"))).expect_code_of(&[3, 4]);
    assert_eq!(reboots().count(), 2);

    // After a controller was killed, `profile revert` restores the default kernel parameters.
    let profile = "--profiles TunedHost:{\"grub_args\":[\"audit=0\"],\"sets\":[]}";
    let mut run = lab.command(&line(&format!("run long {profile} --into K"))).stderr(Stdio::null()).spawn().unwrap();
    let journal = || std::fs::read_to_string(lab.path("K/journal.jsonl")).unwrap_or_default();
    let start = std::time::Instant::now();
    while !journal().contains("attempt-started") {
        assert!(start.elapsed().as_secs() < 300, "{}\n{}", journal(), machine.console());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the end of its agent", || seen().contains("audit=0"));
    let revert = format!("profile revert --hosts box --ssh-config {}", machine.ssh_config().display());
    lab.weighbridge(&revert).expect_code(0).expect_stdout("rebooted without audit=0");
    assert_eq!(seen(), before);
}

/// Changes the boot loader's parameters of the kernel, and switches a CPU off that the next kernel does not start.
const CHANGE_GRUB: &str = r#"#!/bin/sh
set -e
echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX audit=0 maxcpus=1"' >> /etc/default/grub
update-grub
echo 0 > /sys/devices/system/cpu/cpu1/online
echo $WEIGHBRIDGE_WORKER > /root/set-up
"#;

#[test]
#[ignore = "starts a machine in software, and its kernel three times: make test-long"]
fn soak_setup_script_changes_the_boot_loader_before_the_reboot() {
    let Some(base) = built(&image(), "kernel-images") else { return };
    let lab = Lab::new();
    lab.define_script("sees", SEES);
    let config = GuestConfig { name: "box", may_reboot: true, ..GuestConfig::default() };
    let mut machine = SshGuest::start(&lab.path(""), &base, &config).unwrap();
    machine.boot_with_grub().unwrap();
    let read = |file: &str| String::from_utf8(machine.log_in(&format!("cat {file}")).unwrap().stdout).unwrap();
    let before = read("/proc/cmdline");
    assert!(before.starts_with("BOOT_IMAGE=") && !before.contains("audit"), "{before}");
    lab.write("script", CHANGE_GRUB);
    let line = format!(
        "run sees {QUICK} --ssh-config {} --into S --host-setup-script script --host-setup-script-reboot --json",
        machine.ssh_config().display()
    );
    let ran = lab.weighbridge(&line);
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.transcript(), machine.console());
    let ended = lab.journal("S").into_iter().find(|line| line["event"] == "reboot-ended").unwrap();
    assert_eq!(ended["outcome"], "done", "{ended}");
    assert_ne!(ended["next_boot_id"], ended["boot_id"]);
    assert_eq!(read("/root/set-up"), "box\n");
    // The recorded facts and the figure are those of the new boot.
    let facts = &lab.read_json("S/run.json")["invocations"][0]["facts"]["box"];
    assert_eq!(facts["boot_id"], ended["next_boot_id"]);
    assert_eq!(facts["cpus"].as_array().map(Vec::len), Some(1), "{facts}");
    assert_eq!(ran.json()["cells"][0]["metrics"][0]["summary"]["median"], 2.0, "{}", ran.transcript());
    assert!(lab.read("S/environment/host-setup-0@box.log").contains("Generating grub configuration file"));
}

/// A host file with every parameter of run-perf's, for a host with two threads on one core.
const HOST_FILE: &str = "hugepage_kb: 2048\nnuma_nodes: 1\nhost_cpus: 1\nguest_cpus: 1\nguest_mem_m: 400\n\
                         arch: x86_64\ndisable_smt: true\nrack: B7\n";

#[test]
#[ignore = "starts a machine in software: make test-long"]
fn soak_host_of_a_run_perf_file_is_measured_without_smt() {
    let Some(base) = built(&image(), "kernel-images") else { return };
    let lab = Lab::new();
    lab.define_script("sees", "echo figure: $(nproc)");
    lab.write("assets/hosts/box.yaml", HOST_FILE);
    let config = GuestConfig { name: "box", has_smt: true, ..GuestConfig::default() };
    let machine = SshGuest::start(&lab.path(""), &base, &config).unwrap();
    let seen = || {
        let state = "cat /sys/devices/system/cpu/smt/control; nproc; ls -d /var/lib/weighbridge /tmp/weighbridge*";
        String::from_utf8(machine.log_in(state).unwrap().stdout).unwrap()
    };
    assert_eq!(seen(), "on\n2\n");
    let line = |tests: &str| {
        let config = machine.ssh_config();
        format!("run {tests} {QUICK} --ssh-config {} --paths assets --into R --json", config.display())
    };
    let ran = lab.weighbridge(&line("sees himeno:grid=XS"));
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.transcript(), machine.console());
    // The file describes the host without SMT.
    assert!(!ran.err.contains("was detected"), "{}", ran.err);
    let cells = ran.json()["cells"].clone();
    assert_eq!(cells[1]["id"], "Localhost/himeno/0000:grid=XS,threads=1", "{}", ran.transcript());
    assert_eq!(cells[0]["metrics"][0]["summary"]["median"], 1.0, "{}", ran.transcript());
    assert_eq!(seen(), "on\n2\n");
    // The recorded facts are those of the measured host, and every parameter is recorded as given.
    let invocation = lab.read_json("R/run.json")["invocations"][0].clone();
    assert_eq!(invocation["facts"]["box"]["cpus"].as_array().map(Vec::len), Some(1));
    let params = serde_json::json!({
        "hugepage-kb": 2048, "numa-nodes": 1, "host-cpus": 1, "guest-cpus": 1, "guest-mem-m": 400, "arch": "x86_64",
        "disable-smt": true, "extra": {"rack": "B7"},
    });
    assert_eq!(invocation["hosts"]["box"]["params"], params, "{invocation:#}");
    // The same cells are found again, although SMT was on meanwhile.
    let attempts = || lab.journal("R").iter().filter(|line| line["event"] == "attempt-started").count();
    let before = attempts();
    lab.weighbridge(&line("sees himeno:grid=XS")).expect_code_of(&[3, 4]);
    assert_eq!(attempts(), before);
}

#[test]
fn profile_that_would_reboot_this_machine_is_refused() {
    let lab = Lab::new();
    lab.define_script("sees", SEES);
    let ran = lab.weighbridge("run sees --profiles Localhost:{\"grub_args\":\"weighbridge.nothing=1\"} --into R");
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    ran.expect_stderr("the kernel parameters of `Localhost` would reboot this machine");
    assert!(!lab.path("R").exists());
}
