//! A server of one's own for one run: started, found, ended.

use std::net::SocketAddr;

use wb_agent::{Command, Stream};
use wb_model::{Nanos, Placement};
use wb_net::control::Token;

use crate::attempt::{check_success, worker_failure};
use crate::{Attempt, Failure, RunningService, WorkerContext};

/// How long it may take to listen after its start, and to end after its session.
const SERVER_TIMEOUT: Nanos = Nanos(30_000_000_000);
/// By this variable both sides get the token: a command line can be read by everybody.
pub(super) const TOKEN_VARIABLE: &str = "WEIGHBRIDGE_NET_TOKEN";
/// What it is called when it fails.
const PROGRAM: &str = "weighbridge net serve";

/// A running server.
pub(super) struct NetServer {
    process: RunningService,
    address: SocketAddr,
}

impl NetServer {
    /// Starts one on a free port, on loopback where its client `is_here` too, and waits until it listens.
    pub(super) async fn start(
        placement: &Placement,
        token: &Token,
        site: &WorkerContext,
        is_here: bool,
    ) -> Result<Self, Failure> {
        let limit = site.limit.to_string();
        let listen = match &site.address {
            _ if is_here => "127.0.0.1",
            Some(address) => address.as_str(),
            None => {
                let worker = site.worker().name();
                let why = format!("nobody said by which address others reach `{worker}`: `data-address` in hosts.toml");
                return Err(Failure::refused(why));
            }
        };
        let words = ["net", "serve", "--once", "--listen", listen, "--port", "0", "--max-time", &limit];
        let command = words.into_iter().fold(Command::new([site.worker().program()]), Command::arg);
        let process =
            site.start_service(command.placement(placement.clone()).env(TOKEN_VARIABLE, token.reveal())).await?;
        let listens = process.wait_for_line(Stream::Stderr, SERVER_TIMEOUT, |line| parse_address(line).is_some());
        match site.until_cancelled(listens).await?.map_err(worker_failure)?.as_deref().and_then(parse_address) {
            Some(address) => Ok(Self { process, address }),
            None => {
                let log = process.read_output(Stream::Stderr).await.map_err(worker_failure)?;
                let log = String::from_utf8_lossy(&log);
                let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
                Err(Failure::crashed(format!("{PROGRAM} does not listen: {last}")))
            }
        }
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Keeps how it runs.
    pub(super) async fn record(&self, name: &str, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.record_service(name, &self.process).await
    }

    /// Sees that it ends well after its session; its log.
    pub(super) async fn wait_for_exit(self, site: &WorkerContext) -> Result<Vec<u8>, Failure> {
        let finished = site.until_cancelled(self.process.wait(Some(SERVER_TIMEOUT))).await?.map_err(worker_failure)?;
        check_success(PROGRAM, &finished)?;
        Ok(finished.stderr)
    }

    /// What it has said so far.
    pub(super) async fn log(&self) -> Vec<u8> {
        self.process.read_output(Stream::Stderr).await.unwrap_or_default()
    }
}

/// Where the line says that it listens.
fn parse_address(line: &str) -> Option<SocketAddr> {
    let said = line.strip_prefix("serving at ")?;
    said.split_whitespace().next()?.trim_end_matches(',').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_where_it_listens_is_found() {
        let at = |line: &str| parse_address(line).map(|address| address.port());
        assert_eq!(at("serving at 127.0.0.1:40123, with the key SHA256:x"), Some(40123));
        assert_eq!(at("serving at [::1]:7"), Some(7));
        assert_eq!(at("127.0.0.1:40123: begins"), None);
        assert_eq!(at("serving at home"), None);
    }
}
