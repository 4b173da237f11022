//! Hosts with sshd, isolated from this machine's own keys, users' files and state.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::{Host, TestNetwork, is_alive, wait_until};

/// Deviations of a host's sshd from the default.
#[derive(Debug, Default)]
pub struct SshdConfig<'a> {
    /// Lines of its configuration, before all others.
    pub config_lines: &'a str,
    /// A shell command that runs before it starts, in its mount namespace.
    pub setup_command: &'a str,
}

/// Hosts with sshd, and the host of the controller.
#[derive(Debug)]
pub struct SshHosts {
    // Dropped before the folder: its processes are killed first.
    pub network: TestNetwork,
    servers: Vec<Child>,
    folder: TempDir,
}

impl SshHosts {
    /// The host of the controller.
    pub const CONTROLLER: Host = Host(0);

    /// Starts this many identical hosts; prints a message and returns `None` where that is not possible.
    pub fn new(hosts: u8) -> Option<Self> {
        let mut fleet = Self::without_sshd(hosts)?;
        (1..=hosts).for_each(|host| fleet.start(Host(host), &SshdConfig::default()));
        Some(fleet)
    }

    /// Creates the hosts without starting sshd.
    pub fn without_sshd(hosts: u8) -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").exists() {
            wb_test_skip::skip!("hosts need sshd (openssh-server)");
            return None;
        }
        let fleet =
            Self { network: TestNetwork::new(hosts + 1)?, servers: Vec::new(), folder: tempfile::tempdir().unwrap() };
        // Users other than root must be able to traverse it.
        fs::set_permissions(fleet.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fleet.generate_key("user");
        fs::copy(fleet.path("user.pub"), fleet.path("authorized_keys")).unwrap();
        fs::write(fleet.path("known_hosts"), "").unwrap();
        // By its absolute path: this script may precede it in PATH.
        let script = format!(
            "#!/bin/sh\nexec ip netns exec {} /usr/bin/ssh \"$@\"\n",
            fleet.network.namespace(Self::CONTROLLER)
        );
        fleet.write_script("ssh", &script);
        fleet.configure("");
        Some(fleet)
    }

    /// Writes the user's ssh configuration, with these lines first.
    pub fn configure(&self, lines: &str) {
        let folder = self.folder.path().display();
        let text = format!(
            "{lines}\nHost *\nUser root\nIdentityFile {folder}/user\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile /dev/null\n"
        );
        fs::write(self.path("config"), text).unwrap();
    }

    /// The path of a file of the test network.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes an executable script.
    pub fn write_script(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Generates a key pair.
    pub fn generate_key(&self, name: &str) {
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

    /// Starts sshd on a host, with a host key in the user's known_hosts, and waits until it listens.
    pub fn start(&mut self, host: Host, sshd: &SshdConfig<'_>) {
        let (name, folder) = (format!("host{}", host.0), self.folder.path().display());
        self.generate_key(&name);
        let key = fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        let known_hosts = fs::read_to_string(self.path("known_hosts")).unwrap();
        fs::write(self.path("known_hosts"), format!("{known_hosts}{} {key}", host.v4())).unwrap();
        let text = format!(
            "{}\nListenAddress {}\nHostKey {folder}/{name}\nAuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nUsePAM no\nPidFile none\n\
             MaxStartups 1000\nSetEnv XDG_CACHE_HOME={} TMPDIR={}\n",
            sshd.config_lines,
            host.v4(),
            self.cache(host).display(),
            self.temporary(host).display()
        );
        fs::write(self.path(&format!("{name}.conf")), text).unwrap();
        // Each host has its own state, home and runtime files.
        let script = format!(
            "for folder in /var/lib /root /run; do mount -t tmpfs -o mode=755 lab $folder; done; mkdir /run/sshd; mkdir -m 1777 /run/lock; {}; \
             exec /usr/sbin/sshd -D -e -f {folder}/{name}.conf",
            if sshd.setup_command.is_empty() { "true" } else { sshd.setup_command }
        );
        let log = File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut server = self.network.command(host, "unshare");
        server.args(["--mount", "--propagation", "private", "sh", "-ec", &script]);
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.servers.push(server);
        wait_until("sshd", || {
            self.network.run(host, &["ss", "-Hltn", "sport", "=", ":22"]).is_ok_and(|text| !text.is_empty())
        });
    }

    /// The contents of a host's sshd log.
    pub fn log(&self, host: Host) -> String {
        fs::read_to_string(self.path(&format!("host{}.log", host.0))).unwrap_or_default()
    }

    /// All paths below the cache folder of a host, relative to it.
    pub fn cached_paths(&self, host: Host) -> Vec<String> {
        let output = Command::new("find").arg(self.cache(host)).args(["-mindepth", "1", "-printf", "%P\n"]).output();
        let mut found: Vec<String> =
            String::from_utf8_lossy(&output.unwrap().stdout).lines().map(str::to_owned).collect();
        found.sort();
        found
    }

    /// Waits until no process but sshd runs on a host.
    pub fn wait_until_idle(&self, host: Host) {
        wait_until("the host to be idle", || {
            let is_busy = |pid: &u32| {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                is_alive(*pid) && name.trim() != "sshd"
            };
            !self.network.processes(host).iter().any(is_busy)
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
