//! Test networks: hosts with real addresses on one switch, in network namespaces, and an isolated libvirt. Everything
//! is removed when the value is dropped.
//!
//! Requires root and `ip` (iproute2); [`TestNetwork::new`] reports if they are missing.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "it is for tests, which panic when something is wrong"
)]

mod libvirt;
mod processes;
mod sshd;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub use libvirt::Libvirt;
pub use processes::{children, is_alive, kill_after_children, suspend, wait_until};
pub use sshd::{SshHosts, SshdConfig};

/// A host, identified by its position on the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host(pub u8);

impl Host {
    /// Its IPv4 address.
    pub fn v4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.0 + 1)
    }

    /// Its IPv6 address.
    pub fn v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(self.0) + 1)
    }
}

/// A number of hosts on a switch.
#[derive(Debug)]
pub struct TestNetwork {
    name: String,
    hosts: u8,
}

impl TestNetwork {
    /// Creates this many hosts; prints a message and returns `None` where that is not possible.
    pub fn new(hosts: u8) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if let Err(error) = check_requirements() {
            wb_test_skip::skip!("hosts with networks between them need root and ip (iproute2): {error}");
            return None;
        }
        let name = format!("wl{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let lab = Self { name, hosts };
        lab.build().unwrap_or_else(|error| panic!("cannot create the lab: {error}"));
        Some(lab)
    }

    fn build(&self) -> Result<(), String> {
        let switch = self.switch();
        ip(&["netns", "add", &switch])?;
        ip(&["-n", &switch, "link", "add", "switch", "type", "bridge"])?;
        ip(&["-n", &switch, "link", "set", "switch", "up"])?;
        for host in self.hosts() {
            let (space, port) = (self.namespace(host), format!("port{}", host.0));
            ip(&["netns", "add", &space])?;
            let ends = ["type", "veth", "peer", "name", &port, "netns", &switch];
            ip(&[&["link", "add", "eth0", "netns", &space][..], &ends[..]].concat())?;
            ip(&["-n", &switch, "link", "set", &port, "master", "switch", "up"])?;
            ip(&["-n", &space, "link", "set", "lo", "up"])?;
            ip(&["-n", &space, "addr", "add", &format!("{}/24", host.v4()), "dev", "eth0"])?;
            ip(&["-n", &space, "addr", "add", &format!("{}/64", host.v6()), "dev", "eth0", "nodad"])?;
            ip(&["-n", &space, "link", "set", "eth0", "up"])?;
        }
        Ok(())
    }

    /// The hosts.
    pub fn hosts(&self) -> impl Iterator<Item = Host> + use<> {
        (0..self.hosts).map(Host)
    }

    fn switch(&self) -> String {
        format!("{}-switch", self.name)
    }

    /// The name of a host's network namespace.
    pub fn namespace(&self, host: Host) -> String {
        format!("{}-{}", self.name, host.0)
    }

    /// Disconnects a host: its link goes down, without any notice to its peers.
    pub fn disconnect(&self, host: Host) {
        ip(&["-n", &self.namespace(host), "link", "set", "eth0", "down"]).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Makes a host drop all packets from another, with nft.
    pub fn drop_packets_from(&self, host: Host, other: Host) -> Result<(), String> {
        let rule = format!("add rule inet lab input ip saddr {} drop", other.v4());
        let rules =
            format!("add table inet lab; add chain inet lab input {{ type filter hook input priority 0; }}; {rule}");
        self.run(host, &["nft", &rules]).map(drop)
    }

    /// The process IDs of a host.
    pub fn processes(&self, host: Host) -> Vec<u32> {
        let text = ip(&["netns", "pids", &self.namespace(host)]).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Runs a command on a host to completion; returns its standard output, or its standard error if it fails.
    pub fn run(&self, host: Host, command: &[&str]) -> Result<String, String> {
        ip(&[&["netns", "exec", &self.namespace(host)], command].concat())
    }

    /// A command that runs a program on a host.
    pub fn command(&self, host: Host, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), program]);
        command
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        for process in self.hosts().flat_map(|host| self.processes(host)) {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).output();
        }
        // Ignored, so that one failure does not prevent the removal of the others.
        for space in self.hosts().map(|host| self.namespace(host)).chain([self.switch()]) {
            let _ = ip(&["netns", "del", &space]);
        }
    }
}

fn check_requirements() -> Result<(), String> {
    static POSSIBLE: OnceLock<Result<(), String>> = OnceLock::new();
    let attempt = || {
        let name = format!("wl{}-try", std::process::id());
        ip(&["netns", "add", &name])?;
        let result = ip(&["-n", &name, "link", "add", "one", "type", "veth", "peer", "name", "other"]);
        ip(&["netns", "del", &name])?;
        result.map(|_| ())
    };
    POSSIBLE.get_or_init(attempt).clone()
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
