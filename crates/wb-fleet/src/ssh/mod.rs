//! The system's ssh, carrying one conversation with a host.
//!
//! One process and one channel per host: the agent's protocol has all calls on one pipe already, so that a second
//! channel, and with it a control socket that could stay behind, is not needed. The user's configuration decides about
//! keys, jump hosts and known hosts; what is set here only sees to it that ssh never asks and never hangs.

mod classify;
mod process;

pub(crate) use classify::{classify_failure, last_line};
pub(crate) use process::Session;

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::connect::CONNECT_TIMEOUT;
use crate::inventory::Address;

/// How often ssh asks whether the host is there when it says nothing, in seconds, and how often in vain before it gives
/// up: a cut link is known after at most three times the first.
const SERVER_ALIVE: (u32, u32) = (4, 2);

/// ssh as it is started here.
pub(crate) struct Ssh<'a> {
    /// The program.
    pub(crate) program: &'a Path,
    /// Another configuration than the user's.
    pub(crate) config: Option<&'a Path>,
}

impl Ssh<'_> {
    /// ssh that runs a shell there.
    fn shell(&self, address: &Address) -> Command {
        let options = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={}", CONNECT_TIMEOUT.as_secs()),
            format!("ServerAliveInterval={}", SERVER_ALIVE.0),
            format!("ServerAliveCountMax={}", SERVER_ALIVE.1),
            "LogLevel=INFO".to_owned(),
            // A connection of our own, whose limits are ours and that goes with us.
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

    /// Whether the user's configuration has host keys taken as they come. Nothing here does.
    pub(crate) async fn skips_host_key_check(&self, address: &Address) -> bool {
        let asked = self.command().arg("-G").args(address.arguments()).stderr(Stdio::null()).output().await;
        asked.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
            let mut words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            words.any(|words| matches!(words[..], ["stricthostkeychecking", "false" | "no" | "off"]))
        })
    }

    /// What it says is read, so it says it in English.
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        if let Some(config) = self.config {
            command.arg("-F").arg(config);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}
