//! Real reboots of a host: with and without a profile's kernel parameters, and after a setup script.

use std::process::Stdio;

use wb_test_net::wait_until;
use wb_test_vm::{GuestConfig, SshGuest};

use crate::guests::built;
use crate::lab::Lab;

const IMAGE: &str = r#"{"built":"bookworm","packages":["kexec-tools"]}"#;
/// A test whose figure is 2 if the kernel has the argument `audit=0`, and 1 if not.
const SEES: &str = "sleep 0; echo figure: $(($(grep -cw audit=0 /proc/cmdline) + 1))";
const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 1 --hosts box";

#[test]
#[ignore = "starts a machine in software, and its kernel six times"]
fn kernel_has_the_arguments_of_a_profile_while_it_is_applied() {
    let Some(base) = built(IMAGE, "kernel-images") else { return };
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
    let median = |at: usize| study["cells"][at]["metrics"][0]["summary"]["median"].as_f64();
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

    // A setup script, followed by a reboot.
    lab.write("script", "#!/bin/sh\necho $WEIGHBRIDGE_WORKER > /root/set-up\n");
    let ran = lab.weighbridge(&line("run sees --into S --host-setup-script script --host-setup-script-reboot"));
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.transcript(), machine.console());
    let ended = lab.journal("S").into_iter().find(|line| line["event"] == "reboot-ended").unwrap();
    assert_eq!(ended["outcome"], "done", "{ended}");
    assert_ne!(ended["next_boot_id"], ended["boot_id"]);
    assert_eq!(String::from_utf8(machine.log_in("cat /root/set-up").unwrap().stdout).unwrap(), "box\n");
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
