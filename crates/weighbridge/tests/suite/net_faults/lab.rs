//! Test environment: hosts in network namespaces with real addresses on one switch, removed after the test.

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;

use super::{program::Program, result::ProgramResult, server::Server};

/// A host, by its position on the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host(usize);

/// The host of clients.
pub(crate) const CLIENT: Host = Host(0);
/// The host of servers.
pub(crate) const SERVER: Host = Host(1);
/// A third host.
pub(crate) const OTHER: Host = Host(2);

impl Host {
    pub(crate) fn v4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.0 as u8 + 1)
    }

    pub(crate) fn v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, self.0 as u16 + 1)
    }
}

/// A test network with its hosts and a temporary folder.
pub(crate) struct Lab {
    folder: TempDir,
    name: String,
    hosts: usize,
    // Released after everything else is removed.
    _turn: Turn,
}

/// Tests that assert times run alone; the others share the machine.
static MACHINE: RwLock<()> = RwLock::new(());

#[allow(dead_code, reason = "they are held, not read")]
enum Turn {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Lab {
    /// A network with this many hosts; `None`, with a message, if namespaces cannot be created.
    pub(crate) fn new(hosts: usize) -> Option<Self> {
        Self::with(hosts, || Turn::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Like [`Lab::new`], while no other test of this program runs.
    pub(crate) fn alone(hosts: usize) -> Option<Self> {
        Self::with(hosts, || Turn::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Like [`Lab::new`], with nft available for dropping packets.
    pub(crate) fn with_nft(hosts: usize) -> Option<Self> {
        let lab = Self::new(hosts)?;
        if let Err(error) = lab.inside(CLIENT, &["nft", "list", "ruleset"]) {
            println!("SKIPPED: dropping packets needs nft (nftables): {error}");
            return None;
        }
        Some(lab)
    }

    fn with(hosts: usize, turn: impl FnOnce() -> Turn) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if let Err(error) = possible() {
            println!("SKIPPED: network faults need root and ip (iproute2): {error}");
            return None;
        }
        let turn = turn();
        let name = format!("wb{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let lab = Self { folder: tempfile::tempdir().unwrap(), name, hosts, _turn: turn };
        lab.build();
        Some(lab)
    }

    fn build(&self) {
        let switch = self.switch();
        ip(&["netns", "add", &switch]).unwrap();
        ip(&["-n", &switch, "link", "add", "switch", "type", "bridge"]).unwrap();
        ip(&["-n", &switch, "link", "set", "switch", "up"]).unwrap();
        for host in (0..self.hosts).map(Host) {
            let (space, port) = (self.space(host), format!("port{}", host.0));
            ip(&["netns", "add", &space]).unwrap();
            let ends = ["type", "veth", "peer", "name", &port, "netns", &switch];
            ip(&[&["link", "add", "eth0", "netns", &space][..], &ends[..]].concat()).unwrap();
            ip(&["-n", &switch, "link", "set", &port, "master", "switch", "up"]).unwrap();
            ip(&["-n", &space, "link", "set", "lo", "up"]).unwrap();
            ip(&["-n", &space, "addr", "add", &format!("{}/24", host.v4()), "dev", "eth0"]).unwrap();
            ip(&["-n", &space, "addr", "add", &format!("{}/64", host.v6()), "dev", "eth0", "nodad"]).unwrap();
            ip(&["-n", &space, "link", "set", "eth0", "up"]).unwrap();
        }
    }

    fn switch(&self) -> String {
        format!("{}-switch", self.name)
    }

    /// The namespace of a host.
    pub(crate) fn space(&self, host: Host) -> String {
        format!("{}-{}", self.name, host.0)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the working directory of all programs.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Takes the link of a host down.
    pub(crate) fn cut(&self, host: Host) {
        ip(&["-n", &self.space(host), "link", "set", "eth0", "down"]).unwrap();
    }

    /// Drops packets to a host that match the rule.
    pub(crate) fn drop(&self, host: Host, rule: &str) {
        let table = format!(
            "table inet lab {{\ncounter dropped {{}}\nchain input {{\ntype filter hook input priority 0;\n\
             {rule} counter name dropped drop\n}}\n}}\n"
        );
        self.write("rules.nft", &table);
        self.inside(host, &["nft", "-f", &self.path("rules.nft").display().to_string()]).unwrap();
    }

    /// Number of packets that a host has dropped.
    pub(crate) fn dropped(&self, host: Host) -> u64 {
        let text = self.inside(host, &["nft", "list", "counter", "inet", "lab", "dropped"]).unwrap();
        let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
        words.nth(1).unwrap().parse().unwrap()
    }

    /// The sockets of a host, as `ss` lists them with these flags.
    pub(crate) fn sockets(&self, host: Host, flags: &str) -> Vec<String> {
        self.inside(host, &["ss", "-Hn", flags]).unwrap().lines().map(str::to_owned).collect()
    }

    /// The processes of a host.
    pub(crate) fn processes(&self, host: Host) -> Vec<u32> {
        let text = ip(&["netns", "pids", &self.space(host)]).unwrap();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Runs a system command on a host.
    pub(crate) fn inside(&self, host: Host, command: &[&str]) -> Result<String, String> {
        ip(&[&["netns", "exec", &self.space(host)], command].concat())
    }

    /// A command on a host, in the lab's folder and with the shared token.
    pub(crate) fn command(&self, host: Host, words: &[String]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.space(host)])
            .args(words)
            .current_dir(self.folder.path())
            .env("WEIGHBRIDGE_NET_TOKEN", token())
            .env("TMPDIR", self.folder.path())
            .env("WEIGHBRIDGE_LOCKS", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Starts weighbridge on a host.
    pub(crate) fn start(&self, host: Host, line: &str) -> Program {
        Program::start(self.command(host, &weighbridge(line)), &self.path("out"))
    }

    /// Starts weighbridge with `exec` from a shell that sets limits first.
    pub(crate) fn start_limited(&self, host: Host, limits: &str, line: &str) -> Program {
        let script = format!("{limits} {}", weighbridge(line).join(" "));
        let words = ["bash".to_owned(), "-c".to_owned(), script];
        Program::start(self.command(host, &words), &self.path("out"))
    }

    /// Runs weighbridge on the client's host to completion, with a time limit.
    pub(crate) fn run(&self, line: &str) -> ProgramResult {
        self.start(CLIENT, line).finish()
    }

    /// Runs a profile with the host `there` as the server.
    pub(crate) fn run_profile(&self, profile: &str, flags: &str) -> ProgramResult {
        self.start_profile(profile, flags).finish()
    }

    /// Starts a client with a profile.
    pub(crate) fn start_profile(&self, profile: &str, flags: &str) -> Program {
        self.write("profile.xml", profile);
        self.start(CLIENT, &format!("net run profile.xml --json --server there={} {flags}", SERVER.v4()))
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn serve(&self, flags: &str) -> Server {
        self.serve_at(SERVER, SERVER.v4().into(), flags)
    }

    /// Starts a server on this host and address and waits until it is ready.
    pub(crate) fn serve_at(&self, host: Host, address: IpAddr, flags: &str) -> Server {
        Server::ready(self.start(host, &format!("net serve --listen {address} {flags}")))
    }

    /// Waits until no process is left on the client's host.
    pub(crate) fn wait_for_client_exit(&self) {
        super::program::eventually("no process is left where the client ran", || match self.processes(CLIENT) {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        });
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in (0..self.hosts).map(Host) {
            for process in self.processes(host) {
                super::program::kill(process);
            }
        }
        // Ignore errors, so that one failure does not leave the rest behind.
        for space in (0..self.hosts).map(|host| self.space(Host(host))).chain([self.switch()]) {
            let _ = ip(&["netns", "del", &space]);
        }
    }
}

/// The arguments of a weighbridge command line.
fn weighbridge(line: &str) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_weighbridge").to_owned();
    std::iter::once(program).chain(line.split_whitespace().map(str::to_owned)).collect()
}

/// The token shared by clients and servers of this test program.
fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(fresh_token)
}

/// Generates a new token.
pub(crate) fn fresh_token() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weighbridge")).args(["net", "token"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether namespaces can be created here; checked once.
fn possible() -> Result<(), String> {
    static POSSIBLE: OnceLock<Result<(), String>> = OnceLock::new();
    let try_it = || {
        let name = format!("wb{}-try", std::process::id());
        ip(&["netns", "add", &name])?;
        let link = ip(&["-n", &name, "link", "add", "one", "type", "veth", "peer", "name", "other"]);
        ip(&["netns", "del", &name])?;
        link.map(|_| ())
    };
    POSSIBLE.get_or_init(try_it).clone()
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Writes a file that only its owner can read.
pub(crate) fn write_secret(path: &Path, text: &str) {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}
