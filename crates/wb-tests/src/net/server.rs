//! A server of one's own for one run: started, found, ended.

use std::net::SocketAddr;

use wb_agent::{Command, Stream};
use wb_model::{Nanos, Placement};
use wb_net::control::Token;

use crate::attempt::{check, lost};
use crate::{Attempt, Failure, Service, Site};

/// How long it may take to listen after its start, and to end after its session.
const PATIENCE: Nanos = Nanos(30_000_000_000);
/// By this variable both sides get the token: a command line can be read by everybody.
pub(super) const TOKEN: &str = "WEIGHBRIDGE_NET_TOKEN";
/// What it is called when it fails.
const PROGRAM: &str = "weighbridge net serve";

/// A running server.
pub(super) struct Server {
    process: Service,
    address: SocketAddr,
}

impl Server {
    /// Starts one on a free port, on loopback where its client `is_here` too, and waits until it listens.
    pub(super) async fn start(
        placement: &Placement,
        token: &Token,
        site: &Site,
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
        let process = site.serve(command.placement(placement.clone()).env(TOKEN, token.reveal())).await?;
        let listens = process.wait_for_line(Stream::Stderr, PATIENCE, |line| address(line).is_some());
        match site.until_cancelled(listens).await?.map_err(lost)?.as_deref().and_then(address) {
            Some(address) => Ok(Self { process, address }),
            None => {
                let log = process.so_far(Stream::Stderr).await.map_err(lost)?;
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
    pub(super) async fn keep(&self, name: &str, attempt: &mut Attempt) -> Result<(), Failure> {
        attempt.keep_service(name, &self.process).await
    }

    /// Sees that it ends well after its session; its log.
    pub(super) async fn end(self, site: &Site) -> Result<Vec<u8>, Failure> {
        let finished = site.until_cancelled(self.process.wait(Some(PATIENCE))).await?.map_err(lost)?;
        check(PROGRAM, &finished)?;
        Ok(finished.stderr)
    }

    /// What it has said so far.
    pub(super) async fn log(&self) -> Vec<u8> {
        self.process.so_far(Stream::Stderr).await.unwrap_or_default()
    }
}

/// Where the line says that it listens.
fn address(line: &str) -> Option<SocketAddr> {
    let said = line.strip_prefix("serving at ")?;
    said.split_whitespace().next()?.trim_end_matches(',').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_where_it_listens_is_found() {
        let at = |line: &str| address(line).map(|address| address.port());
        assert_eq!(at("serving at 127.0.0.1:40123, with the key SHA256:x"), Some(40123));
        assert_eq!(at("serving at [::1]:7"), Some(7));
        assert_eq!(at("127.0.0.1:40123: begins"), None);
        assert_eq!(at("serving at home"), None);
    }
}
