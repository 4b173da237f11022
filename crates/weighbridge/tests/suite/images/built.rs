//! The Debian that is built from packages, and a guest of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use wb_profile::image::{BaseImage, ImageFailure, ImageFormat};

use super::lab::{Lab, has, run};
use crate::machine::Machine;

const TOOLS: [&str; 5] = ["mmdebstrap", "qemu-img", "debugfs", "qemu-system-x86_64", "ssh"];

#[test]
#[ignore = "builds a Debian from the archive and starts it in software: two minutes"]
fn a_debian_is_built_and_a_guest_of_it_is_who_it_was_told_to_be() {
    if !TOOLS.into_iter().all(has) || !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: building a Debian, which takes root and {}", TOOLS.join(", "));
    }
    let lab = Lab::new();
    let base = run(async {
        let worker = lab.worker().await;
        let image = r#"{"built": "bookworm", "packages": ["redis-server"], "size": "2g"}"#.parse().unwrap();
        let base = lab.ready(&worker, &image).await.unwrap();
        assert_eq!(lab.ready(&worker, &image).await.unwrap(), base);
        let nosuch = r#"{"built": "bookworm", "packages": ["weighbridge-nosuch"]}"#.parse().unwrap();
        let failure = lab.fails(&worker, &nosuch).await;
        assert!(
            matches!(&failure, ImageFailure::NoPackages { packages } if packages == &["weighbridge-nosuch"]),
            "{failure}"
        );
        worker.close().await.unwrap();
        base
    });
    assert_eq!((base.format, base.name.as_str()), (ImageFormat::Qcow2, "built:bookworm of 2g with redis-server"));
    has_nothing_of_this_machine(&lab, &base);

    let guest = Machine::start(Path::new(&lab.path("")), &base, "guest-7", false);
    let script = "hostname; cat /etc/hostname; systemctl is-system-running; systemctl --failed --no-legend; \
        systemctl list-units --type=service --state=running --no-legend --plain | cut -d' ' -f1; df -h / | tail -1";
    let said = guest.log_in(script);
    let said = String::from_utf8_lossy(&said.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["guest-7", "guest-7", "running"], "{said}");
    assert!(lines.contains(&"ssh.service") && !lines.contains(&"redis-server.service"), "{said}");
}

/// Neither keys nor lists nor names, and what was asked for.
fn has_nothing_of_this_machine(lab: &Lab, base: &BaseImage) {
    let raw = lab.path("raw");
    let converted = Command::new("qemu-img").args(["convert", "-O", "raw", &base.path, &raw]).status().unwrap();
    assert!(converted.success());
    let look = |request: &str| {
        let output = Command::new("debugfs").args(["-R", request, &raw]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!look("ls -p /etc/ssh").contains("ssh_host"), "{}", look("ls -p /etc/ssh"));
    assert!(!look("ls -p /var/lib/apt/lists").contains("Packages"));
    assert!(!look("ls -p /etc").contains("resolv.conf"));
    assert_eq!(look("cat /etc/hostname"), "weighbridge\n");
    assert_eq!(look("cat /etc/machine-id"), "");
    assert!(look("ls -p /usr/bin").contains("/redis-server/"));
    assert!(!look("ls -p /etc/systemd/system/multi-user.target.wants").contains("redis"));
    fs::remove_file(raw).unwrap();
}
