//! Hosts with sshd, none of which knows this machine's own keys, users' files or state.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Host, Lab};

/// How a host's sshd differs from the others'.
#[derive(Debug, Default)]
pub struct Sshd<'a> {
    /// Lines of its configuration, before all others.
    pub lines: &'a str,
    /// A shell command before it starts, in its mount namespace.
    pub before: &'a str,
}

/// Hosts with sshd, and the desk that the controller is at.
#[derive(Debug)]
pub struct SshHosts {
    // Killed before the folder goes.
    /// The network between them.
    pub lab: Lab,
    servers: Vec<Child>,
    folder: TempDir,
}

impl SshHosts {
    /// Where the controller is.
    pub const DESK: Host = Host(0);

    /// So many hosts, all alike and running; none, aloud, where there can be none.
    pub fn new(hosts: u8) -> Option<Self> {
        let mut fleet = Self::bare(hosts)?;
        (1..=hosts).for_each(|host| fleet.start(Host(host), &Sshd::default()));
        Some(fleet)
    }

    /// The same with no sshd yet.
    pub fn bare(hosts: u8) -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").exists() {
            println!("SKIPPED: hosts need sshd (openssh-server)");
            return None;
        }
        let fleet = Self { lab: Lab::new(hosts + 1)?, servers: Vec::new(), folder: tempfile::tempdir().unwrap() };
        // Users other than root pass through it.
        fs::set_permissions(fleet.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fleet.key("user");
        fs::copy(fleet.path("user.pub"), fleet.path("authorized_keys")).unwrap();
        fs::write(fleet.path("known_hosts"), "").unwrap();
        // By its path: this one may stand on the path before it.
        let enter = format!("#!/bin/sh\nexec ip netns exec {} /usr/bin/ssh \"$@\"\n", fleet.lab.space(Self::DESK));
        fleet.script("ssh", &enter);
        fleet.configure("");
        Some(fleet)
    }

    /// The user's ssh configuration, with these lines first.
    pub fn configure(&self, lines: &str) {
        let folder = self.folder.path().display();
        let text = format!(
            "{lines}\nHost *\nUser root\nIdentityFile {folder}/user\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile /dev/null\n"
        );
        fs::write(self.path("config"), text).unwrap();
    }

    /// A file of the lab.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a program of the lab.
    pub fn script(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes a pair of keys.
    pub fn key(&self, name: &str) {
        let path = self.path(name);
        let _ = fs::remove_file(&path);
        let keygen = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
        assert!(keygen.unwrap().success());
    }

    /// The cache folder of a host.
    pub fn cache(&self, host: Host) -> PathBuf {
        self.path(&format!("cache{}", host.0))
    }

    /// The folder for temporary files of a host, which all its users share.
    pub fn temporary(&self, host: Host) -> PathBuf {
        let folder = self.path(&format!("tmp{}", host.0));
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
        folder
    }

    /// Starts sshd on a host, with a key that the user knows, and waits until it answers.
    pub fn start(&mut self, host: Host, sshd: &Sshd<'_>) {
        let (name, folder) = (format!("host{}", host.0), self.folder.path().display());
        self.key(&name);
        let key = fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        let known = fs::read_to_string(self.path("known_hosts")).unwrap();
        fs::write(self.path("known_hosts"), format!("{known}{} {key}", host.v4())).unwrap();
        let text = format!(
            "{}\nListenAddress {}\nHostKey {folder}/{name}\nAuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nUsePAM no\nPidFile none\n\
             MaxStartups 1000\nSetEnv XDG_CACHE_HOME={} TMPDIR={}\n",
            sshd.lines,
            host.v4(),
            self.cache(host).display(),
            self.temporary(host).display()
        );
        fs::write(self.path(&format!("{name}.conf")), text).unwrap();
        // Each host has state, a home and runtime files of its own.
        let script = format!(
            "for folder in /var/lib /root /run; do mount -t tmpfs -o mode=755 lab $folder; done; mkdir /run/sshd; mkdir -m 1777 /run/lock; {}; \
             exec /usr/sbin/sshd -D -e -f {folder}/{name}.conf",
            if sshd.before.is_empty() { "true" } else { sshd.before }
        );
        let log = File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut server = self.lab.command(host, "unshare");
        server.args(["--mount", "--propagation", "private", "sh", "-ec", &script]);
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.servers.push(server);
        eventually("sshd", || {
            self.lab.inside(host, &["ss", "-Hltn", "sport", "=", ":22"]).is_ok_and(|text| !text.is_empty())
        });
    }

    /// What is said in a host's log.
    pub fn log(&self, host: Host) -> String {
        fs::read_to_string(self.path(&format!("host{}.log", host.0))).unwrap_or_default()
    }

    /// Everything below the cache folder of a host, by its path there.
    pub fn cached(&self, host: Host) -> Vec<String> {
        let output = Command::new("find").arg(self.cache(host)).args(["-mindepth", "1", "-printf", "%P\n"]).output();
        let mut found: Vec<String> =
            String::from_utf8_lossy(&output.unwrap().stdout).lines().map(str::to_owned).collect();
        found.sort();
        found
    }

    /// Waits until nothing runs on a host but its sshd.
    pub fn is_quiet(&self, host: Host) {
        eventually("nothing runs there", || {
            let busy = |pid: &u32| {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                alive(*pid) && name.trim() != "sshd"
            };
            !self.lab.processes(host).iter().any(busy)
        });
    }
}

impl Drop for SshHosts {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Whether a process is there and more than a zombie.
pub fn alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// Waits for something that must come; a minute and a half is for machines that are busy with other things.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(90), "{what}: not in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}
