//! The text of a test, in iperf3's layout.

// Writing to a string cannot fail: results of `writeln!` are dropped.
use std::fmt::Write;

use wb_net_profile::NetProfile;
use wb_results::net::StrandProgress;
use wb_results::net::Usage;

use super::json::{CpuUsage, Identity};
use super::samples::{Interval, Samples};
use super::{Amount, Side, Stream, Test, split_address, units};

const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
const RULE: &str = "-----------------------------------------------------------\n";

pub fn listening(port: u16, test: u64) -> String {
    format!("{RULE}Server listening on {port} (test #{test})\n{RULE}")
}

#[derive(Debug)]
pub struct TextReport {
    test: Test,
    samples: Samples,
    announced: Vec<Stream>,
    has_header: bool,
    /// Intervals whose lines have been written.
    written: usize,
    /// What a verbose report names.
    verbose: Option<Identity>,
}

impl TextReport {
    /// Creates the report of a test that runs this profile; a verbose one, if it has an identity.
    pub fn new(test: Test, profile: &NetProfile, verbose: Option<Identity>) -> Self {
        let samples = Samples::new(profile);
        Self { test, samples, announced: Vec::new(), has_header: false, written: 0, verbose }
    }

    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    pub fn test(&self) -> &Test {
        &self.test
    }

    pub fn heading(&self) -> String {
        let Test { host, port, .. } = &self.test;
        let mut out = String::new();
        if let Some(Identity { version, system_info, time, .. }) = &self.verbose {
            let _ = writeln!(out, "{version}\n{system_info}\nTime: {time}");
        }
        match (self.test.side, port) {
            (Side::Client, Some(port)) => {
                let _ = writeln!(out, "Connecting to host {host}, port {port}");
                if self.test.is_reverse() {
                    let _ = writeln!(out, "Reverse mode, remote host {host} is sending");
                }
            }
            (Side::Server, Some(port)) => {
                let _ = writeln!(out, "Accepted connection from {host}, port {port}");
            }
            (_, None) => return String::new(),
        }
        if let Some(Identity { cookie, .. }) = &self.verbose {
            let _ = writeln!(out, "      Cookie: {cookie}");
            if self.test.target_bitrate > 0.0 {
                let _ = writeln!(out, "      Target Bitrate: {:.0}", self.test.target_bitrate);
            }
        }
        out
    }

    /// The parameters of the test, which a verbose report has before the first interval.
    fn parameters(&self) -> String {
        let test = &self.test;
        let mut out = String::new();
        let first = test.streams.first().and_then(|stream| self.samples.first_connection(stream.id));
        match (test.mss, first.and_then(|first| first.tcp.as_ref())) {
            (Some(mss), _) => _ = writeln!(out, "      TCP MSS: {mss}"),
            (None, Some(tcp)) => _ = writeln!(out, "      TCP MSS: {} (default)", tcp.mss),
            (None, None) => {}
        }
        let amount = match test.amount {
            Amount::Time(time) => format!("{} second test", time.as_secs_f64()),
            Amount::Bytes(bytes) => format!("{bytes} bytes to send"),
            Amount::Blocks(blocks) => format!("{blocks} blocks to send"),
        };
        let _ = writeln!(
            out,
            "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting {} seconds, {amount}, tos {}",
            test.protocol.name().to_ascii_uppercase(),
            test.parallel(),
            test.block_size,
            test.omit.as_secs_f64(),
            test.tos,
        );
        out
    }

    /// CPU usage and congestion control of both sides, as far as they are known.
    fn resources(&self, other: Option<&Samples>, cpu: CpuUsage) -> String {
        let mut out = String::new();
        let sends = self.test.streams.iter().any(|stream| self.test.sends(stream));
        let (local, remote) = if sends { ("sender", "receiver") } else { ("receiver", "sender") };
        let percent = |usage: Usage| {
            let share = |nanos: u64| if cpu.seconds > 0.0 { nanos as f64 / 1e7 / cpu.seconds } else { 0.0 };
            let (user, system) = (share(usage.user_ns), share(usage.system_ns));
            format!("{:.1}% ({user:.1}%u/{system:.1}%s)", user + system)
        };
        if let (Some(host), Some(peer)) = (cpu.host, cpu.remote) {
            let _ =
                writeln!(out, "CPU Utilization: local/{local} {}, remote/{remote} {}", percent(host), percent(peer));
        }
        let congestion = |samples: Option<&Samples>| {
            let stream = self.test.streams.first()?;
            samples?.total(stream.id)?.tcp.map(|tcp| tcp.congestion)
        };
        let (own, other) = (congestion(Some(&self.samples)), congestion(other));
        let (sender, receiver) = if sends { (own, other) } else { (other, own) };
        for (name, congestion) in [("snd", sender), ("rcv", receiver)] {
            if let Some(congestion) = congestion {
                let _ = writeln!(out, "{name}_tcp_congestion {congestion}");
            }
        }
        out
    }

    pub fn push(&mut self, samples: &[StrandProgress]) -> String {
        let mut out = String::new();
        for sample in samples {
            let is_sampled = |stream: &&Stream| (stream.id.group, stream.id.strand) == (sample.group, sample.strand);
            let Some(stream) = self.test.streams.iter().find(is_sampled).copied() else { continue };
            self.samples.push(sample);
            if !self.announced.contains(&stream) {
                self.announced.push(stream);
                out += &self.connection_line(&stream);
            }
        }
        // Directions end at slightly different times: lines wait until all streams have the interval.
        let settled = self.samples.settled(&self.test);
        self.write_intervals(&mut out, settled, None);
        out
    }

    fn write_intervals(&mut self, out: &mut String, until: usize, other: Option<Option<&Samples>>) {
        let has_sums = self.test.parallel() > 1;
        for index in self.written..until {
            if !self.has_header {
                self.has_header = true;
                if self.verbose.is_some() {
                    *out += &self.parameters();
                }
                *out += &self.interval_header();
            }
            if has_sums && index > 0 {
                *out += SEPARATOR;
            }
            let of = |stream: &Stream| Some((*stream, self.samples.interval(&self.test, stream, index, other)?));
            let intervals: Vec<(Stream, Interval)> = self.test.streams.iter().filter_map(of).collect();
            for (stream, interval) in &intervals {
                *out += &self.interval_line(&format!("{:3}", stream.socket), self.test.sends(stream), interval);
            }
            for client_sends in [true, false] {
                let of_direction = || intervals.iter().filter(|(stream, _)| stream.client_sends == client_sends);
                let sum = Interval::sum(of_direction().map(|(_, interval)| interval));
                if let Some(sum) = sum.filter(|_| has_sums && of_direction().count() > 1) {
                    *out += &self.interval_line("SUM", client_sends == (self.test.side == Side::Client), &sum);
                }
            }
        }
        self.written = self.written.max(until);
    }

    fn connection_line(&self, stream: &Stream) -> String {
        let Some(connection) = self.samples.first_connection(stream.id) else { return String::new() };
        let ((local, local_port), (peer, peer_port)) =
            (split_address(&connection.local), split_address(&connection.peer));
        format!("[{:3}] local {local} port {local_port} connected to {peer} port {peer_port}\n", stream.socket)
    }

    /// Whether this side's lines have retransmissions: as in iperf3, those of senders.
    fn has_retransmits(&self) -> bool {
        !self.test.is_udp() && self.test.streams.iter().any(|stream| self.test.sends(stream))
    }

    fn role_header(&self) -> &'static str {
        if self.test.is_bidirectional() { "[ ID][Role] Interval" } else { "[ ID] Interval" }
    }

    fn interval_header(&self) -> String {
        let all_receive = !self.test.streams.iter().any(|stream| self.test.sends(stream));
        let columns = match (self.test.is_udp(), all_receive, self.has_retransmits()) {
            (true, true, _) => "         Jitter    Lost/Total Datagrams",
            (true, false, _) => "         Total Datagrams",
            (false, _, true) => "         Retr  Cwnd",
            (false, _, false) => "",
        };
        format!("{}           Transfer     Bitrate{columns}\n", self.role_header())
    }

    fn role(&self, sends: bool) -> String {
        if !self.test.is_bidirectional() {
            return String::new();
        }
        let side = match self.test.side {
            Side::Client => 'C',
            Side::Server => 'S',
        };
        format!("[{}-{side}]", if sends { "TX" } else { "RX" })
    }

    fn line_start(&self, id: &str, sends: bool, interval: &Interval) -> String {
        format!(
            "[{id}]{} {:6.2}-{:<6.2} sec  {}  {}/sec",
            self.role(sends),
            interval.start,
            interval.end,
            units::bytes(interval.bytes as f64),
            units::rate(interval.bits_per_second(), self.test.rate_unit),
        )
    }

    fn interval_line(&self, id: &str, sends: bool, interval: &Interval) -> String {
        let start = self.line_start(id, sends, interval);
        let omitted = if interval.omitted { "(omitted)" } else { "" };
        match (self.test.is_udp(), sends) {
            (true, true) => format!("{start}  {}  {omitted}\n", interval.blocks),
            (true, false) => format!("{start}  {}  {omitted}\n", datagrams(interval, interval.blocks)),
            (false, true) => {
                let window = interval
                    .tcp
                    .as_ref()
                    .map(|tcp| format!("   {}       ", units::bytes(tcp.congestion_window as f64)));
                let window = window.unwrap_or_else(|| " ".repeat(13));
                format!("{start}  {:3}{window}{omitted}\n", interval.retransmits)
            }
            (false, false) => format!("{start}                  {omitted}\n"),
        }
    }

    /// The totals of the measurement, after `warning`. The other side's samples, where they are known, give its lines.
    pub fn summary(&mut self, other: Option<&Samples>, warning: Option<&str>, cpu: CpuUsage) -> String {
        let mut out = String::new();
        let counts = self.test.streams.iter().map(|stream| self.samples.intervals(stream.id).len());
        let all = counts.max().unwrap_or(0);
        self.write_intervals(&mut out, all, Some(other));
        if let Some(warning) = warning {
            let _ = writeln!(out, "warning: {warning}");
        }
        out += SEPARATOR;
        if self.verbose.is_some() {
            out += "Test Complete. Summary Results:\n";
        }
        let columns = match (self.test.is_udp(), self.has_retransmits() || other.is_some()) {
            (true, _) => "         Jitter    Lost/Total Datagrams",
            (false, true) => "         Retr",
            (false, false) => "",
        };
        let _ = writeln!(out, "{}           Transfer     Bitrate{columns}", self.role_header());
        let mut totals: Vec<(Stream, Option<Interval>, Option<Interval>)> = Vec::new();
        for stream in &self.test.streams {
            let total = StreamTotal::new(&self.test, stream, &self.samples, other);
            out += &self.total_lines(&format!("{:3}", stream.socket), stream, &total);
            totals.push((*stream, total.sender, total.receiver));
        }
        for client_sends in [true, false] {
            let of_direction = || totals.iter().filter(|(stream, ..)| stream.client_sends == client_sends);
            let Some((stream, ..)) = of_direction().next().filter(|_| of_direction().count() > 1) else { continue };
            let sum = StreamTotal {
                sender: Interval::sum(of_direction().filter_map(|(_, sender, _)| sender.as_ref())),
                receiver: Interval::sum(of_direction().filter_map(|(.., receiver)| receiver.as_ref())),
            };
            out += &self.total_lines("SUM", stream, &sum);
        }
        if self.verbose.is_some() {
            out += &self.resources(other, cpu);
        }
        out
    }

    fn total_lines(&self, id: &str, stream: &Stream, total: &StreamTotal) -> String {
        let sends = self.test.sends(stream);
        let mut out = String::new();
        if let Some(sender) = &total.sender {
            let start = self.line_start(id, sends, sender);
            let _ = if self.test.is_udp() {
                writeln!(out, "{start}  0.000 ms  0/{} (0%)  sender", sender.blocks)
            } else {
                writeln!(out, "{start}  {:3}             sender", sender.retransmits)
            };
        }
        if let Some(receiver) = &total.receiver {
            let start = self.line_start(id, sends, receiver);
            let _ = if self.test.is_udp() {
                writeln!(out, "{start}  {}  receiver", datagrams(receiver, receiver.blocks))
            } else {
                writeln!(out, "{start}                  receiver")
            };
        }
        out
    }
}

/// What both sides moved on a stream; `None` for a side that is not known.
#[derive(Debug, Clone)]
pub(super) struct StreamTotal {
    pub(super) sender: Option<Interval>,
    pub(super) receiver: Option<Interval>,
}

impl StreamTotal {
    pub(super) fn new(test: &Test, stream: &Stream, own: &Samples, other: Option<&Samples>) -> Self {
        let own = own.total(stream.id);
        let other = other.and_then(|other| other.total(stream.id));
        let (mut sender, mut receiver) = if test.sends(stream) { (own, other) } else { (other, own) };
        let is_finite = !matches!(test.amount, Amount::Time(_));
        if let (Some(sender), Some(receiver), true) = (&sender, &mut receiver, test.is_udp() && is_finite) {
            // Those behind the last that arrived leave no gap; of a finite number they are known.
            receiver.datagrams.missing = sender.blocks.saturating_sub(receiver.blocks);
        }
        if let (Some(sender), Some(receiver)) = (&mut sender, &receiver) {
            sender.include_received(receiver);
        }
        Self { sender, receiver }
    }
}

/// Jitter, lost and all datagrams of an interval in which this many arrived.
fn datagrams(interval: &Interval, arrived: u64) -> String {
    let lost = interval.datagrams.missing;
    let all = arrived + lost;
    let percent = lost_percent(lost, all);
    format!("{:5.3} ms  {lost}/{all} ({}%)", interval.datagrams.jitter_ns / 1e6, two_digits(percent))
}

pub(super) fn lost_percent(lost: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { 100.0 * lost as f64 / all as f64 }
}

/// Two significant digits without trailing zeros, as C's `%.2g` prints them.
fn two_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = format!("{value:.1e}").split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match exponent.unwrap_or(0) {
        exponent if !(-4..2).contains(&exponent) => {
            let (digits, exponent) = (format!("{value:.1e}"), exponent);
            let mantissa =
                digits.split('e').next().unwrap_or_default().trim_end_matches('0').trim_end_matches('.').to_owned();
            format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        exponent => {
            let text = format!("{value:.*}", usize::try_from(1 - exponent).unwrap_or(0));
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_written_as_by_c() {
        let texts = [0.0, 0.123, 1.0, 5.55, 12.6, 100.0, 0.000_012].map(two_digits);
        assert_eq!(texts, ["0", "0.12", "1", "5.5", "13", "1e+02", "1.2e-05"]);
    }
}
