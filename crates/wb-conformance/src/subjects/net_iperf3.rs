//! `net iperf3`: the same options as iperf3, whose JSON has the keys and parameters of its own; its figures agree with
//! each other and with those of its server.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::Rng;
use serde_json::Value;

use super::{PATIENCE, Subject, TOKEN, one_of, version_of};
use crate::case::{CaseError, Runner};

pub(super) struct NetIperf3;

impl Subject for NetIperf3 {
    fn name(&self) -> &'static str {
        "net-iperf3"
    }

    fn version(&self) -> Option<String> {
        version_of("iperf3", &["--version"])
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let options = draw(&mut runner.random);
        runner.options = options.join(" ");
        let ours = runner.program().display().to_string();
        let reference = measure(&["iperf3"], &options)?;
        // iperf3 3.12 exits with 0 then.
        if let Some(error) = reference.client["error"].as_str() {
            return Err(CaseError::Refused(error.to_owned()));
        }
        let ours = measure(&[&ours, "net", "iperf3"], &options)?;
        runner.equal("exit statuses", &ours.statuses, &reference.statuses);
        for (name, own, other) in
            [("client", &ours.client, &reference.client), ("server", &ours.server, &reference.server)]
        {
            let has_intervals = |report: &Value| report["intervals"].as_array().is_some_and(|all| !all.is_empty());
            // A test that ends at once has no interval.
            if has_intervals(own) && has_intervals(other) {
                runner.equal(&format!("keys of the {name}"), &keys(own), &keys(other));
            }
        }
        let parameters = |report: &Value| report["start"]["test_start"].clone();
        runner.equal("test_start", &parameters(&ours.client), &parameters(&reference.client));
        for (name, report) in [("client", &ours.client), ("server", &ours.server)] {
            check_rates(runner, name, report);
            check_sums(runner, name, report);
        }
        check_sides(runner, &ours);
        Ok(())
    }
}

fn draw(random: &mut impl Rng) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    options.push(format!("-P{}", one_of(random, &[1, 1, 2, 4])));
    options.push(one_of(random, &["-t1", "-t1", "-n5M", "-k300"]).to_owned());
    let is_udp = random.random_bool(0.4);
    if is_udp {
        let (rate, size) = (random.random_range(5..50), one_of(random, &["1200", "8192"]));
        options.extend(["-u".to_owned(), format!("-b{rate}M"), format!("-l{size}")]);
    } else {
        options.push(format!("-l{}", one_of(random, &["4K", "16K", "128K"])));
        options.extend(random.random_bool(0.3).then(|| "-N".to_owned()));
        options.extend(random.random_bool(0.3).then(|| "-w256K".to_owned()));
        options.extend(random.random_bool(0.3).then(|| "-b200M".to_owned()));
    }
    options.extend(match random.random_range(0..4) {
        0 => Some("-R".to_owned()),
        1 => Some("--bidir".to_owned()),
        _ => None,
    });
    options.extend(random.random_bool(0.3).then(|| format!("-i{}", one_of(random, &["0", "0.2", "0.4"]))));
    options.extend(random.random_bool(0.2).then(|| "-S0x10".to_owned()));
    options
}

struct Measured {
    client: Value,
    server: Value,
    /// Whether client and server succeeded.
    statuses: [bool; 2],
}

fn measure(program: &[&str], options: &[String]) -> Result<Measured, CaseError> {
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let command = || {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(["-J", "-p", &port.to_string()]).env("WEIGHBRIDGE_NET_TOKEN", TOKEN);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    let mut server = command().args(["-s", "-1"]).spawn()?;
    let result = wait_for(port).and_then(|()| Ok(command().args(["-c", "127.0.0.1"]).args(options).output()?));
    let client = match result {
        Ok(client) if client.status.success() => client,
        result => {
            // It waits for a client that does not come.
            server.kill()?;
            server.wait()?;
            return Err(match result {
                Ok(client) => CaseError::Failed(String::from_utf8_lossy(&client.stdout).into_owned()),
                Err(error) => error,
            });
        }
    };
    let (text, succeeded) = finish(server)?;
    Ok(Measured {
        client: serde_json::from_slice(&client.stdout)?,
        server: serde_json::from_str(&text)?,
        statuses: [client.status.success(), succeeded],
    })
}

/// Waits until a server listens, without connecting to it.
fn wait_for(port: u16) -> Result<(), CaseError> {
    let started = Instant::now();
    // A second listener fails once there is a first.
    while TcpListener::bind(("127.0.0.1", port)).is_ok() {
        if started.elapsed() > PATIENCE {
            return Err(CaseError::Refused("no server".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn finish(mut server: Child) -> Result<(String, bool), CaseError> {
    let mut text = String::new();
    if let Some(mut output) = server.stdout.take() {
        output.read_to_string(&mut text)?;
    }
    Ok((text, server.wait()?.success()))
}

/// The paths of all keys, without the warning that a rate was not reached, which iperf3 does not have.
fn keys(report: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, path: &str, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let path = format!("{path}.{key}");
                    collect(value, &path, into);
                    into.insert(path);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, &format!("{path}[]"), into)),
            _ => {}
        }
    }
    let mut into = BTreeSet::new();
    collect(report, "", &mut into);
    into.remove(".warning");
    into
}

/// Objects of a report that have an amount and a time, with their paths.
fn amounts<'a>(report: &'a Value, path: &str, into: &mut Vec<(String, &'a Value)>) {
    match report {
        Value::Object(object) => {
            if object.contains_key("bits_per_second") {
                into.push((path.to_owned(), report));
            }
            object.iter().for_each(|(key, value)| amounts(value, &format!("{path}.{key}"), into));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(index, value)| amounts(value, &format!("{path}[{index}]"), into));
        }
        _ => {}
    }
}

/// Every rate is its bytes in its seconds, and every time the difference of its ends.
fn check_rates(runner: &mut Runner, name: &str, report: &Value) {
    let mut found = Vec::new();
    amounts(report, name, &mut found);
    for (path, amount) in found {
        let figure = |key: &str| amount[key].as_f64();
        let figures = [figure("bytes"), figure("seconds"), figure("bits_per_second"), figure("start"), figure("end")];
        let [Some(bytes), Some(seconds), Some(rate), Some(start), Some(end)] = figures else {
            // What is not known is so as a whole.
            runner.equal(&path, &figures, &[None; 5]);
            continue;
        };
        runner.equal(&format!("{path}: seconds"), &((end - start - seconds).abs() < 1e-9), &true);
        let expected = if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 };
        runner.equal(&format!("{path}: rate"), &((rate - expected).abs() <= expected * 1e-9), &true);
    }
}

/// Checks that sums are the sums of their streams, and totals of this side the sums of its intervals.
fn check_sums(runner: &mut Runner, name: &str, report: &Value) {
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let bytes =
        |values: &mut dyn Iterator<Item = &Value>| values.filter_map(|value| value["bytes"].as_u64()).sum::<u64>();
    let intervals = all(&report["intervals"]);
    for (index, interval) in intervals.iter().enumerate() {
        let streams = all(&interval["streams"]);
        for sum in ["sum", "sum_bidir_reverse"].map(|key| &interval[key]).into_iter().filter(|sum| sum.is_object()) {
            let of_direction = bytes(&mut streams.iter().filter(|stream| stream["sender"] == sum["sender"]));
            runner.equal(&format!("{name}: interval {index}"), &sum["bytes"].as_u64(), &Some(of_direction));
        }
    }
    let streams = all(&report["end"]["streams"]);
    for stream in &streams {
        let is_udp = stream["udp"].is_object();
        let role = if stream["sender"]["sender"] == true { "sender" } else { "receiver" };
        let own = if is_udp { &stream["udp"] } else { &stream[role] };
        // Totals of datagrams are those of their sender.
        if is_udp && own["sender"] == false {
            continue;
        }
        let parts = intervals.iter().flat_map(|interval| all(&interval["streams"]));
        let parts: Vec<Value> = parts.filter(|part| part["socket"] == own["socket"]).collect();
        let total = bytes(&mut parts.iter());
        runner.equal(&format!("{name}: intervals of {}", own["socket"]), &total, &own["bytes"].as_u64().unwrap_or(0));
    }
}

/// Checks that either side's figures of the other are those that it reports, and nothing is received that was not sent.
fn check_sides(runner: &mut Runner, measured: &Measured) {
    let (client, server) = (&measured.client["end"], &measured.server["end"]);
    for direction in ["", "_bidir_reverse"] {
        let sum = |end: &Value, kind: &str, key: &str| end[format!("sum_{kind}{direction}")][key].as_u64();
        let Some(received) = sum(client, "received", "bytes") else { continue };
        let sent = sum(client, "sent", "bytes").unwrap_or(0);
        runner.within(&format!("received{direction}"), received, 0..=sent);
        if let Some(packets) = sum(client, "received", "packets") {
            let lost = sum(client, "received", "lost_packets").unwrap_or(0);
            let all = sum(client, "sent", "packets").unwrap_or(0);
            runner.within(&format!("lost{direction}"), lost, 0..=packets);
            runner.within(&format!("packets{direction}"), packets, 0..=all);
        }
        // A server knows what it did itself: it receives, or sends.
        if let Some(known) = sum(server, "received", "bytes") {
            runner.equal(&format!("server's received{direction}"), &known, &received);
        }
        if let Some(known) = sum(server, "sent", "bytes") {
            runner.within(&format!("server's sent{direction}"), known, received.min(known)..=sent);
        }
    }
}
