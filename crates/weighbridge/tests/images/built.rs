//! The Debian that is built from packages, and a guest of it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use wb_profile::image::{Base, Boot, Failure, Format, HostKey, Seed};

use crate::lab::{Lab, has, run};

const TOOLS: [&str; 5] = ["mmdebstrap", "qemu-img", "debugfs", "qemu-system-x86_64", "ssh"];

/// How long a guest in software may take until somebody can log in.
const PATIENCE: Duration = Duration::from_secs(300);

/// A guest in software; killed when it is dropped.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
            matches!(&failure, Failure::NoPackages { packages } if packages == &["weighbridge-nosuch"]),
            "{failure}"
        );
        worker.close().await.unwrap();
        base
    });
    assert_eq!((base.format, base.name.as_str()), (Format::Qcow2, "built:bookworm of 2g with redis-server"));
    has_nothing_of_this_machine(&lab, &base);

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _guest = start(&lab, &base, port);
    let script = "hostname; cat /etc/hostname; systemctl is-system-running; systemctl --failed --no-legend; \
        systemctl list-units --type=service --state=running --no-legend --plain | cut -d' ' -f1; df -h / | tail -1";
    let said = log_in(&lab, port, script);
    let said = String::from_utf8_lossy(&said.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["guest-7", "guest-7", "running"], "{said}");
    assert!(lines.contains(&"ssh.service") && !lines.contains(&"redis-server.service"), "{said}");
}

/// Neither keys nor lists nor names, and what was asked for.
fn has_nothing_of_this_machine(lab: &Lab, base: &Base) {
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

fn start(lab: &Lab, base: &Base, port: u16) -> Guest {
    let key = |name: &str| {
        let path = lab.path(name);
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &path]).status();
        assert!(made.unwrap().success());
        (fs::read_to_string(&path).unwrap(), fs::read_to_string(path + ".pub").unwrap())
    };
    let (_, authorized_key) = key("user");
    let (private, public) = key("host");
    let host_key = HostKey { private: &private, public: &public };
    let seed = Seed { hostname: "guest-7", authorized_key: &authorized_key, host_key, macs: &[] };
    let (volume, overlay) = (lab.path("seed"), lab.path("overlay"));
    fs::write(&volume, seed.volume().unwrap()).unwrap();
    fs::write(lab.path("known"), format!("[127.0.0.1]:{port} {public}")).unwrap();
    let backing = ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", &base.path, &overlay];
    assert!(Command::new("qemu-img").args(backing).status().unwrap().success());
    let Boot::Kernel { kernel, initrd, arguments } = &base.boot else { panic!("{base:?}") };
    assert!(Path::new(kernel).is_file());
    let console = fs::File::create(lab.path("console")).unwrap();
    let guest = Command::new("qemu-system-x86_64")
        .args(["-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "1024", "-nographic", "-no-reboot"])
        .args(["-kernel", kernel, "-initrd", initrd, "-append", arguments])
        .args(["-drive", &format!("file={overlay},format=qcow2,if=virtio")])
        .args(["-drive", &format!("file={volume},format=raw,if=virtio,readonly=on")])
        .args(["-nic", &format!("user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22")])
        .stdin(Stdio::null())
        .stdout(console)
        .spawn();
    Guest(guest.unwrap())
}

/// Runs a script in the guest, once somebody can log in.
fn log_in(lab: &Lab, port: u16, script: &str) -> Output {
    let begun = Instant::now();
    loop {
        let output = Command::new("ssh")
            .args(["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=5"])
            .args(["-o", &format!("UserKnownHostsFile={}", lab.path("known")), "-i", &lab.path("user")])
            .args(["-p", &port.to_string(), "root@127.0.0.1", "systemctl is-system-running --wait >&2;", script])
            .output()
            .unwrap();
        // Without it, ssh itself found no way.
        if output.status.code() != Some(255) {
            return output;
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let console = || fs::read_to_string(lab.path("console")).unwrap_or_default();
        assert!(begun.elapsed() < PATIENCE, "{said}\n{}", console());
        std::thread::sleep(Duration::from_secs(1));
    }
}
