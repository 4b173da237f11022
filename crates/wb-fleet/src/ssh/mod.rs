//! Runs the system's ssh with one session per host.
//!
//! One process and one channel per host suffice, because the agent's protocol multiplexes all calls over one pipe; so
//! no control socket is needed that could stay behind. The user's configuration determines keys, jump hosts and known
//! hosts; the options set here only make sure that ssh never prompts and never hangs. A background master would also
//! outlive a killed controller. The crate `openssh` sets StrictHostKeyChecking itself, leaves its master running and
//! forwards only part of the messages of ssh, so ssh is started here.

mod classify;
mod process;

pub(crate) use classify::{classify_failure, last_line};
pub(crate) use process::Session;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::inventory::Address;
use crate::limits::CONNECT_TIMEOUT;

/// `ServerAliveInterval` in seconds and `ServerAliveCountMax`: a broken link is noticed after at most three intervals.
const SERVER_ALIVE: (u32, u32) = (4, 2);

pub(crate) struct Ssh<'a> {
    pub(crate) program: &'a Path,
    pub(crate) config: Option<&'a Path>,
}

impl Ssh<'_> {
    /// A command that runs a shell on a host.
    fn shell(&self, address: &Address) -> Command {
        let options = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={}", CONNECT_TIMEOUT.as_secs()),
            format!("ServerAliveInterval={}", SERVER_ALIVE.0),
            format!("ServerAliveCountMax={}", SERVER_ALIVE.1),
            "LogLevel=INFO".to_owned(),
            // A separate connection, with our timeouts, that ends with this process.
            "ControlMaster=no".to_owned(),
            "ControlPath=none".to_owned(),
            "RemoteCommand=none".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "ForwardAgent=no".to_owned(),
            "ForwardX11=no".to_owned(),
        ];
        let mut command = self.command();
        command.arg("-T").args(options.iter().flat_map(|option| ["-o", option]));
        command.args(address.arguments()).arg("exec /bin/sh");
        command
    }

    /// The user's configuration for a host, by option in lower case; empty if ssh does not print it.
    pub(crate) async fn config(&self, address: &Address) -> HostConfig {
        let output = self.command().arg("-G").args(address.arguments()).stderr(Stdio::null()).output().await;
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let option = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_lowercase(), value.trim().to_owned()))
        };
        HostConfig(text.lines().filter_map(option).collect())
    }

    /// Builds a command of ssh with English messages, because they are parsed.
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        if let Some(config) = self.config {
            command.arg("-F").arg(config);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

/// The configuration that ssh uses for a host.
#[derive(Debug, Default)]
pub(crate) struct HostConfig(BTreeMap<String, String>);

impl HostConfig {
    /// Whether it disables host key checking. No option set here does.
    pub(crate) fn skips_host_key_check(&self) -> bool {
        let value = self.0.get("stricthostkeychecking").map(|value| value.to_lowercase());
        value.is_some_and(|value| matches!(value.as_str(), "false" | "no" | "off"))
    }

    /// The name or address at which ssh finds the host, which it may know by another name.
    pub(crate) fn host_name(&self) -> Option<&str> {
        self.0.get("hostname").map(String::as_str)
    }
}
