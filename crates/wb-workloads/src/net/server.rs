//! A private server for one run.

use std::net::SocketAddr;

use wb_agent::{Command, OutputStream};
use wb_model::{Nanos, Placement};
use wb_net::control::Token;
use wb_test::attempt::check_success;
use wb_test::{Attempt, Failure, RunningService, WorkerContext};

/// Time limit for a server to listen after its start, and to exit after its session.
const SERVER_TIMEOUT: Nanos = Nanos(30_000_000_000);
/// Environment variable that passes the token to both sides; command lines are readable by all users.
pub(super) const TOKEN_VARIABLE: &str = "WEIGHBRIDGE_NET_TOKEN";
const PROGRAM: &str = "weighbridge net serve";

pub(super) struct NetServer {
    process: RunningService,
    address: SocketAddr,
}

impl NetServer {
    /// Starts a server on a free port, on loopback if its client is on the same worker, and waits until it listens.
    pub(super) async fn start(
        placement: &Placement,
        token: &Token,
        context: &WorkerContext,
        is_local: bool,
    ) -> Result<Self, Failure> {
        let limit = context.limit.to_string();
        let listen = match &context.address {
            _ if is_local => "127.0.0.1",
            Some(address) => address.as_str(),
            None => {
                let worker = context.worker().name();
                let reason =
                    format!("missing address of `{worker}` for other workers: set `data-address` in hosts.toml");
                return Err(Failure::refused(reason));
            }
        };
        let words = ["net", "serve", "--once", "--listen", listen, "--port", "0", "--max-time", &limit];
        let command = words.into_iter().fold(Command::new([context.worker().program()]), Command::arg);
        let process =
            context.start_service(command.placement(placement.clone()).env(TOKEN_VARIABLE, token.reveal())).await?;
        let listens = process.wait_for_line(OutputStream::Stderr, SERVER_TIMEOUT, |line| parse_address(line).is_some());
        match context.until_cancelled(listens).await??.as_deref().and_then(parse_address) {
            Some(address) => Ok(Self { process, address }),
            None => {
                let log = process.read_output(OutputStream::Stderr).await?;
                let log = String::from_utf8_lossy(&log);
                let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
                Err(Failure::crashed(format!("{PROGRAM} does not listen: {last}")))
            }
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) async fn record(&self, name: &str, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.record_service(name, &self.process).await
    }

    /// Waits until the server exits successfully after its session; returns its log.
    pub(super) async fn wait_for_exit(self, context: &WorkerContext) -> Result<Vec<u8>, Failure> {
        let finished = context.until_cancelled(self.process.wait(Some(SERVER_TIMEOUT))).await??;
        check_success(PROGRAM, &finished)?;
        Ok(finished.stderr)
    }

    pub(super) async fn log(&self) -> Vec<u8> {
        self.process.read_output(OutputStream::Stderr).await.unwrap_or_default()
    }
}

/// Parses the address in the line `serving at ADDRESS, …`.
fn parse_address(line: &str) -> Option<SocketAddr> {
    let address = line.strip_prefix("serving at ")?;
    address.split_whitespace().next()?.trim_end_matches(',').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_parsed_from_its_line() {
        let at = |line: &str| parse_address(line).map(|address| address.port());
        assert_eq!(at("serving at 127.0.0.1:40123, with the key SHA256:x"), Some(40123));
        assert_eq!(at("serving at [::1]:7"), Some(7));
        assert_eq!(at("127.0.0.1:40123: begins"), None);
        assert_eq!(at("serving at home"), None);
    }
}
