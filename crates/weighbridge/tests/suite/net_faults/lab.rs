//! Test environment: hosts in network namespaces with real addresses on one switch, removed after the test.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tempfile::TempDir;
use wb_test_net::{Host, TestNetwork};

use super::{program::Program, result::ProgramResult, server::Server};

const PROGRAM: &str = env!("CARGO_BIN_EXE_weighbridge");

/// The host of clients.
pub(crate) const CLIENT: Host = Host(0);
/// The host of servers.
pub(crate) const SERVER: Host = Host(1);
/// A third host.
pub(crate) const OTHER: Host = Host(2);

/// A test network with its hosts and a temporary folder.
pub(crate) struct Lab {
    pub(crate) network: TestNetwork,
    folder: TempDir,
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
    pub(crate) fn new(hosts: u8) -> Option<Self> {
        Self::with(hosts, Turn::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Like [`Lab::new`], while no other test of this program runs.
    pub(crate) fn alone(hosts: u8) -> Option<Self> {
        Self::with(hosts, Turn::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Like [`Lab::new`], with nft available for dropping packets.
    pub(crate) fn with_nft(hosts: u8) -> Option<Self> {
        let lab = Self::new(hosts)?;
        if let Err(error) = lab.network.run(CLIENT, &["nft", "list", "ruleset"]) {
            wb_test_skip::skip!("dropping packets needs nft (nftables): {error}");
            return None;
        }
        Some(lab)
    }

    fn with(hosts: u8, turn: Turn) -> Option<Self> {
        Some(Self { network: TestNetwork::new(hosts)?, folder: tempfile::tempdir().unwrap(), _turn: turn })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the working directory of all programs.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Drops packets to a host that match the rule.
    pub(crate) fn drop(&self, host: Host, rule: &str) {
        let table = format!(
            "table inet lab {{\ncounter dropped {{}}\nchain input {{\ntype filter hook input priority 0;\n\
             {rule} counter name dropped drop\n}}\n}}\n"
        );
        self.write("rules.nft", &table);
        self.network.run(host, &["nft", "-f", &self.path("rules.nft").display().to_string()]).unwrap();
    }

    /// Ends what [`Self::drop`] has begun.
    pub(crate) fn stop_dropping(&self, host: Host) {
        self.network.run(host, &["nft", "delete", "table", "inet", "lab"]).unwrap();
    }

    /// Translates the source addresses of everything that a host sends: to another address, and to random ports.
    pub(crate) fn translate_sources(&self, host: Host) {
        let outside = Ipv4Addr::new(10, 77, 0, 200 + host.0);
        let address = format!("{outside}/24");
        self.network.run(host, &["ip", "addr", "add", &address, "dev", "eth0"]).unwrap();
        let table = format!(
            "table ip translation {{\nchain postrouting {{\ntype nat hook postrouting priority 100;\n\
             oifname eth0 meta l4proto {{ tcp, udp }} snat to {outside}:50000-60000 fully-random\n}}\n}}\n"
        );
        self.write("nat.nft", &table);
        self.network.run(host, &["nft", "-f", &self.path("nat.nft").display().to_string()]).unwrap();
    }

    /// Number of packets that a host has dropped.
    pub(crate) fn dropped(&self, host: Host) -> u64 {
        let text = self.network.run(host, &["nft", "list", "counter", "inet", "lab", "dropped"]).unwrap();
        let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
        words.nth(1).unwrap().parse().unwrap()
    }

    /// The sockets of a host, as `ss` lists them with these flags.
    pub(crate) fn sockets(&self, host: Host, flags: &str) -> Vec<String> {
        self.network.run(host, &["ss", "-Hn", flags]).unwrap().lines().map(str::to_owned).collect()
    }

    /// A command on a host, in the lab's folder and with the shared token.
    pub(crate) fn command(&self, host: Host, program: &str) -> Command {
        let mut command = self.network.command(host, program);
        command
            .current_dir(self.folder.path())
            .env("WEIGHBRIDGE_NET_TOKEN", token())
            .env("TMPDIR", self.folder.path())
            .env("WEIGHBRIDGE_LOCKS", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Starts weighbridge on a host.
    pub(crate) fn start(&self, host: Host, line: &str) -> Program {
        let mut command = self.command(host, PROGRAM);
        command.args(line.split_whitespace());
        Program::start(command, &self.path("out"))
    }

    /// Starts weighbridge with `exec` from a shell that sets limits first.
    pub(crate) fn start_limited(&self, host: Host, limits: &str, line: &str) -> Program {
        let mut command = self.command(host, "bash");
        command.args(["-c", &format!("{limits} {PROGRAM} {line}")]);
        Program::start(command, &self.path("out"))
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
        super::program::eventually("no process is left where the client ran", || {
            match self.network.processes(CLIENT) {
                left if left.is_empty() => Ok(()),
                left => Err(format!("{left:?}")),
            }
        });
    }
}

/// The token shared by clients and servers of this test program.
fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(fresh_token)
}

/// Generates a new token.
pub(crate) fn fresh_token() -> String {
    let output = Command::new(PROGRAM).args(["net", "token"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a file that only its owner can read.
pub(crate) fn write_secret(path: &Path, text: &str) {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}
