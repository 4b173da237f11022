//! iperf3: the JSON of the client is imported; what the server prints of the same transfer is the other side.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use rand::Rng;

use super::{Subject, one_of, version_of};
use crate::case::{CaseError, Runner};
use crate::printed::{Printed, between};

pub(super) struct Iperf3;

impl Subject for Iperf3 {
    fn name(&self) -> &'static str {
        "iperf3"
    }

    fn version(&self) -> Option<String> {
        version_of("iperf3", &["--version"])
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port().to_string();
        let mut server = Command::new("iperf3")
            .args(["--server", "--one-off", "--forceflush", "--format", "k", "--port", &port])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut lines = BufReader::new(server.stdout.take().expect("it is a pipe")).lines();
        let is_listening = lines.by_ref().any(|line| line.is_ok_and(|line| line.contains("listening")));
        let result =
            if is_listening { transfer(runner, &port) } else { Err(CaseError::Refused("no server".to_owned())) };
        if result.is_err() {
            // It waits for a client that does not come.
            server.kill()?;
        }
        let report: Vec<String> = lines.collect::<Result<_, _>>()?;
        server.wait()?;
        let is_received = |line: &&String| line.contains("receiver") && !line.contains("[ ID]");
        let streams = result?;
        let ours = runner.import(&["client.json"])?;
        let received = report.iter().rfind(|line| is_received(line) && (streams == 1 || line.contains("[SUM]")));
        let rate = received.and_then(|line| rate(line)).ok_or_else(|| CaseError::NotReported("receiver".to_owned()))?;
        // What ended before anything was received has no valid figure.
        if !rate.is_zero() || !ours.is_empty() {
            runner.compare(&ours, "throughput/received", rate);
        }
        Ok(())
    }
}

/// Transfers with random options; returns the number of streams.
fn transfer(runner: &mut Runner, port: &str) -> Result<u32, CaseError> {
    let random = &mut runner.random;
    let streams = one_of(random, &[1, 1, 2, 4]);
    let mut options: Vec<String> = ["--client", "127.0.0.1", "--json", "--port", port].map(str::to_owned).into();
    options.push(format!("--parallel={streams}"));
    options.push(one_of(random, &["--time=1", "--bytes=20M", "--blockcount=500"]).to_owned());
    if random.random_bool(0.4) {
        options.push("--udp".to_owned());
        options.push(format!("--bitrate={}M", random.random_range(10..200)));
        options.push(format!("--length={}", one_of(random, &["1200", "8192"])));
    } else {
        options.push(format!("--length={}", one_of(random, &["1K", "16K", "128K"])));
        options.extend(random.random_bool(0.3).then(|| "--zerocopy".to_owned()));
        options.extend(random.random_bool(0.3).then(|| "--no-delay".to_owned()));
    }
    options.extend(random.random_bool(0.2).then(|| "--omit=1".to_owned()));
    runner.options = options.join(" ");
    let json = runner.run("iperf3", &options)?;
    std::fs::write(runner.path("client.json"), json)?;
    Ok(streams)
}

/// The rate in a line such as `[SUM]   0.00-1.01   sec   996 MBytes  8282583 Kbits/sec  receiver`.
fn rate(line: &str) -> Option<Printed> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|word| word.ends_with("bits/sec"))?;
    let number = words.get(unit.checked_sub(1)?)?;
    let prefix = between(words[unit], "", &['b']).unwrap_or_default();
    Printed::parse(&format!("{number}{prefix}"))
}
