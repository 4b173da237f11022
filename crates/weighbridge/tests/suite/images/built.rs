//! A Debian image built from packages, and a guest of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use wb_profile::image::{BaseImage, ImageFailure, ImageFormat};
use wb_test_vm::{GuestConfig, SshGuest};

use super::lab::{Lab, has};

const TOOLS: [&str; 5] = ["mmdebstrap", "qemu-img", "debugfs", "qemu-system-x86_64", "ssh"];

#[test]
#[ignore = "builds a Debian from the archive and starts it in software: two minutes"]
fn debian_image_is_built_and_its_guest_has_the_given_host_name() {
    if !TOOLS.into_iter().all(has) || !rustix::process::geteuid().is_root() {
        return wb_test_skip::skip!("building a Debian, which takes root and {}", TOOLS.join(", "));
    }
    let Some(lab) = Lab::new() else { return };
    let base = lab.run(async |worker| {
        let image = r#"{"built": "bookworm", "packages": ["redis-server"], "size": "2g"}"#.parse().unwrap();
        let base = lab.ready(worker, &image).await.unwrap();
        assert_eq!(lab.ready(worker, &image).await.unwrap(), base);
        let nosuch = r#"{"built": "bookworm", "packages": ["weighbridge-nosuch"]}"#.parse().unwrap();
        let failure = lab.fails(worker, &nosuch).await;
        assert!(
            matches!(&failure, ImageFailure::NoPackages { packages } if packages == &["weighbridge-nosuch"]),
            "{failure}"
        );
        base
    });
    assert_eq!((base.format, base.name.as_str()), (ImageFormat::Qcow2, "built:bookworm of 2g with redis-server"));
    assert_nothing_of_this_machine(&lab, &base);

    let config = GuestConfig { name: "guest-7", ..GuestConfig::default() };
    let guest = SshGuest::start(Path::new(&lab.path("")), &base, &config).unwrap();
    let script = "hostname; cat /etc/hostname; systemctl is-system-running; systemctl --failed --no-legend; \
        systemctl list-units --type=service --state=running --no-legend --plain | cut -d' ' -f1; df -h / | tail -1";
    let output = guest.log_in(script).unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[..3], ["guest-7", "guest-7", "running"], "{output}");
    assert!(lines.contains(&"ssh.service") && !lines.contains(&"redis-server.service"), "{output}");
}

/// Checks that the image has no keys, package lists or names of this machine, but the requested packages.
fn assert_nothing_of_this_machine(lab: &Lab, base: &BaseImage) {
    let raw = lab.path("raw");
    let converted = Command::new("qemu-img").args(["convert", "-O", "raw", &base.path, &raw]).status().unwrap();
    assert!(converted.success());
    let debugfs = |request: &str| {
        let output = Command::new("debugfs").args(["-R", request, &raw]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!debugfs("ls -p /etc/ssh").contains("ssh_host"), "{}", debugfs("ls -p /etc/ssh"));
    assert!(!debugfs("ls -p /var/lib/apt/lists").contains("Packages"));
    assert!(!debugfs("ls -p /etc").contains("resolv.conf"));
    assert_eq!(debugfs("cat /etc/hostname"), "weighbridge\n");
    assert_eq!(debugfs("cat /etc/machine-id"), "");
    assert!(debugfs("ls -p /usr/bin").contains("/redis-server/"));
    assert!(!debugfs("ls -p /etc/systemd/system/multi-user.target.wants").contains("redis"));
    fs::remove_file(raw).unwrap();
}
