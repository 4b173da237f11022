//! `net`: the data that it reports as moved between two hosts, against the counters of their kernels.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::Rng;
use serde_json::Value;
use wb_test_net::{Host, TestNetwork};

use super::{PATIENCE, Subject, TOKEN, one_of, version_of};
use crate::case::{CaseError, Runner};

pub(super) struct NetKernel;

/// The most that headers of Ethernet, IPv6 and TCP with its options, or of IPv4 and UDP, add to a segment.
const HEADERS: u64 = 14 + 40 + 60;

/// The most that the control connection moves in a case, and the switch by itself.
const CONTROL: u64 = 512 << 10;

impl Subject for NetKernel {
    fn name(&self) -> &'static str {
        "net-kernel"
    }

    fn version(&self) -> Option<String> {
        // Namespaces need root.
        let user = version_of("id", &["-u"])?;
        version_of("ip", &["-V"]).filter(|_| user == "0")
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let options = draw(&mut runner.random);
        runner.options = options.join(" ");
        let Some(network) = TestNetwork::new(2) else { return Err(CaseError::Refused("no namespaces".to_owned())) };
        let hosts @ [client, server] = [Host(0), Host(1)];
        let program = runner.program().display().to_string();
        let address = server.v4().to_string();
        let serving = Server(command(&network, server, &program).args(["net", "serve", "--listen", &address]).spawn()?);
        wait_for(&network, server)?;
        let before = hosts.map(|host| Counters::read(&network, host));
        let output = command(&network, client, &program)
            .args(["net", &options[0], &address, "-t", "300ms", "-q", "-J"])
            .args(&options[1..])
            .stdout(Stdio::piped())
            .output()?;
        let after = hosts.map(|host| Counters::read(&network, host));
        drop(serving);
        if !output.status.success() {
            return Err(CaseError::Failed(format!("{}", output.status)));
        }
        let results: Value = serde_json::from_slice(&output.stdout)?;
        let result = if results.is_array() { &results[0] } else { &results };
        let [before, after] = [before, after].map(|counters| counters.into_iter().collect::<Result<Vec<_>, _>>());
        let (before, after) = (before?, after?);
        let counted = [after[0].since(&before[0]), after[1].since(&before[1])];
        check_bytes(runner, result, &counted);
        if options.iter().any(|option| option == "udp") || options[0] == "udp-rr" {
            check_datagrams(runner, result, &counted);
        }
        Ok(())
    }
}

fn draw(random: &mut impl Rng) -> Vec<String> {
    let preset = one_of(random, &["stream", "maerts", "bidirec", "rr", "crr", "udp-rr"]);
    let mut options = vec![preset.to_owned(), "-n".to_owned(), one_of(random, &["1", "1", "3"]).to_owned()];
    let sizes = if preset.contains("rr") { ["64", "1k", "1400"] } else { ["1k", "1400", "8k"] };
    options.extend(["-l".to_owned(), one_of(random, &sizes).to_owned()]);
    if preset != "udp-rr" && preset != "crr" && random.random_bool(0.5) {
        options.extend(["--protocols".to_owned(), "udp".to_owned()]);
    }
    if random.random_bool(0.4) {
        options.extend(["--rate".to_owned(), one_of(random, &["500/s", "5k/s"]).to_owned()]);
    }
    options
}

/// A server, until it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Ignored: the namespace is removed with all that runs in it.
        let _: std::io::Result<()> = self.0.kill();
        let _: std::io::Result<std::process::ExitStatus> = self.0.wait();
    }
}

fn command(network: &TestNetwork, host: Host, program: &str) -> Command {
    let mut command = network.command(host, program);
    command.env("WEIGHBRIDGE_NET_TOKEN", TOKEN).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn wait_for(network: &TestNetwork, host: Host) -> Result<(), CaseError> {
    let started = Instant::now();
    while !network.run(host, &["ss", "-Hltn"]).is_ok_and(|sockets| sockets.contains(":20000")) {
        if started.elapsed() > PATIENCE {
            return Err(CaseError::Failed("no server".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

struct Counters(BTreeMap<String, u64>);

impl Counters {
    fn read(network: &TestNetwork, host: Host) -> Result<Self, CaseError> {
        let read = |path: &str| network.run(host, &["cat", path]).map_err(CaseError::Failed);
        let mut counters = BTreeMap::new();
        let devices = read("/proc/net/dev")?;
        let interface = devices.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap_or_default();
        let values = interface.split_whitespace().zip(0..);
        for (value, name) in values.filter_map(|(value, column)| {
            Some((value, [(0, "received"), (8, "sent")].into_iter().find(|(index, _)| *index == column)?.1))
        }) {
            counters.insert(name.to_owned(), value.parse().unwrap_or(0));
        }
        let protocols = read("/proc/net/snmp")?;
        let lines: Vec<&str> = protocols.lines().collect();
        for pair in lines.chunks_exact(2) {
            let protocol = pair[0].split(':').next().unwrap_or_default();
            for (name, value) in pair[0].split_whitespace().zip(pair[1].split_whitespace()).skip(1) {
                counters.insert(format!("{protocol}.{name}"), value.parse().unwrap_or(0));
            }
        }
        Ok(Self(counters))
    }

    fn since(&self, before: &Self) -> Self {
        let differences = self
            .0
            .iter()
            .map(|(name, value)| (name.clone(), value.saturating_sub(before.0.get(name).copied().unwrap_or(0))));
        Self(differences.collect())
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// What was sent in the window passed the interface of its sender, and little else: what was in flight at the end of the
/// window, headers, retransmissions, and the control connection.
fn check_bytes(runner: &mut Runner, result: &Value, counted: &[Counters; 2]) {
    let moved = |machine: usize, key: &str| result["machines"][machine][key].as_u64().unwrap_or(0);
    for (index, name) in ["client", "server"].into_iter().enumerate() {
        let (own, other) = (&counted[index], &counted[1 - index]);
        let (sent, received) = (moved(index, "sent-bytes"), moved(index, "received-bytes"));
        let packets = own.get("Tcp.OutSegs") + own.get("Tcp.RetransSegs") + own.get("Udp.OutDatagrams");
        // Up to the largest buffer of each of three connections, in both directions.
        let in_flight = 3 * (8 << 20);
        let most = sent + in_flight + packets * HEADERS + own.get("Tcp.RetransSegs") * 1500 + CONTROL;
        runner.within(&format!("{name}: bytes on its interface"), own.get("sent"), sent..=most);
        runner.within(&format!("{name}: bytes received"), received, 0..=own.get("received"));
        runner.within(&format!("{name}: bytes that arrived"), own.get("received"), 0..=other.get("sent") + CONTROL);
    }
}

/// Checks that each datagram is counted, apart from those that set up the connections.
fn check_datagrams(runner: &mut Runner, result: &Value, counted: &[Counters; 2]) {
    let groups = result["groups"].as_array().into_iter().flatten();
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    let mut connections = 0;
    for group in groups {
        connections += group["strand-count"].as_u64().unwrap_or(0);
        for key in ["client-sent", "client-lost", "server-sent", "server-lost"] {
            *sums.entry(key).or_default() += group["datagrams"][key].as_u64().unwrap_or(0);
        }
    }
    for (name, own, other, [sent, lost]) in [
        ("client", &counted[0], &counted[1], ["client-sent", "client-lost"]),
        ("server", &counted[1], &counted[0], ["server-sent", "server-lost"]),
    ] {
        let out = own.get("Udp.OutDatagrams");
        // A connection is set up by one datagram and its answer; they are repeated if they take long.
        runner.within(
            &format!("{name}: datagrams sent"),
            out.saturating_sub(sums[sent]),
            connections..=connections * 10,
        );
        runner.equal(
            &format!("{name}: datagrams lost"),
            &sums[lost],
            &out.saturating_sub(other.get("Udp.InDatagrams")),
        );
    }
}
