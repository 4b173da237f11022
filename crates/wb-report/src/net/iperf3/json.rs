//! The JSON of a test, with the keys of iperf3 3.12.

use serde_json::{Map, Value, json};
use wb_results::net::Usage;

use super::samples::{Interval, Samples};
use super::text::{StreamTotal, lost_percent};
use super::{Amount, Side, Stream, Test, split_address};

/// When and where a test ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub version: String,
    /// The machine and its kernel, as uname(1) prints them.
    pub system_info: String,
    /// Start of the test in seconds since 1970.
    pub seconds: i64,
    /// The start as a date of HTTP (RFC 9110, section 5.6.7).
    pub time: String,
    /// Random text that identifies the test.
    pub cookie: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuUsage {
    /// The reporting side.
    pub host: Option<Usage>,
    pub remote: Option<Usage>,
    /// Length of the measurement in seconds.
    pub seconds: f64,
}

#[derive(Debug, Clone, Copy)]
pub struct JsonReport<'a> {
    pub test: &'a Test,
    pub identity: &'a Identity,
    pub samples: &'a Samples,
    /// What the other side sampled, where it is known.
    pub other: Option<&'a Samples>,
    pub cpu: CpuUsage,
}

impl JsonReport<'_> {
    pub fn document(&self) -> Map<String, Value> {
        let mut document = Map::new();
        if let Some(title) = &self.test.title {
            document.insert("title".to_owned(), json!(title));
        }
        document.insert("start".to_owned(), self.start());
        let intervals = (0..).map_while(|index| self.final_interval(index));
        document.insert("intervals".to_owned(), intervals.collect());
        document.insert("end".to_owned(), self.end());
        if let Some(extra_data) = &self.test.extra_data {
            document.insert("extra_data".to_owned(), json!(extra_data));
        }
        document
    }

    pub fn failed_start(identity: &Identity, error: &str) -> Value {
        let (version, system_info) = (&identity.version, &identity.system_info);
        json!({
            "start": { "connected": [], "version": version, "system_info": system_info },
            "intervals": [],
            "end": {},
            "error": error,
        })
    }

    /// The fields that are known when the connections are open.
    pub fn start(&self) -> Value {
        let Self { test, identity, .. } = self;
        let first = test.streams.first().and_then(|stream| self.samples.first_connection(stream.id));
        let connected: Vec<Value> = test.streams.iter().filter_map(|stream| self.connected(stream)).collect();
        let mut start = json!({
            "connected": connected,
            "version": identity.version,
            "system_info": identity.system_info,
            "timestamp": { "time": identity.time, "timesecs": identity.seconds },
        });
        let peer = json!({ "host": test.host, "port": test.port });
        start[if test.side == Side::Client { "connecting_to" } else { "accepted_connection" }] = peer;
        start["cookie"] = json!(identity.cookie);
        if let Some(mss) = test.mss {
            start["tcp_mss"] = json!(mss);
        } else if !test.is_udp() {
            start["tcp_mss_default"] = json!(first.and_then(|first| first.tcp.as_ref()).map(|tcp| tcp.mss));
        }
        // Who only receives does not know at which rate the other side sends.
        let is_known = test.side == Side::Client || test.streams.iter().any(|stream| test.sends(stream));
        let bitrate = if is_known { integer(test.target_bitrate) } else { Value::Null };
        start["target_bitrate"] = bitrate.clone();
        start["sock_bufsize"] = json!(test.window);
        start["sndbuf_actual"] = json!(first.map(|first| first.send_buffer));
        start["rcvbuf_actual"] = json!(first.map(|first| first.receive_buffer));
        let (duration, bytes, blocks) = match test.amount {
            Amount::Time(duration) => (integer(duration.as_secs_f64()), 0, 0),
            Amount::Bytes(bytes) => (json!(0), bytes, 0),
            Amount::Blocks(blocks) => (json!(0), 0, blocks),
        };
        start["test_start"] = json!({
            "protocol": test.protocol.name().to_ascii_uppercase(),
            "num_streams": test.parallel(),
            "blksize": test.block_size,
            "omit": integer(test.omit.as_secs_f64()),
            "duration": duration,
            "bytes": bytes,
            "blocks": blocks,
            "reverse": u8::from(test.is_reverse()),
            "tos": test.tos,
            "target_bitrate": bitrate,
        });
        start
    }

    fn connected(&self, stream: &Stream) -> Option<Value> {
        let connection = self.samples.first_connection(stream.id)?;
        // Null for a socket without ports.
        let number = |port: &str| port.parse::<u16>().ok();
        let ((local_host, local_port), (remote_host, remote_port)) =
            (split_address(&connection.local), split_address(&connection.peer));
        Some(json!({
            "socket": stream.socket,
            "local_host": local_host,
            "local_port": number(local_port),
            "remote_host": remote_host,
            "remote_port": number(remote_port),
        }))
    }

    /// The interval with this index, as it was when it ended; `None` behind the last.
    pub fn interval(&self, index: usize) -> Option<Value> {
        self.interval_with(index, None)
    }

    /// The interval with this index after the end: the last has what was still to be counted.
    pub fn final_interval(&self, index: usize) -> Option<Value> {
        self.interval_with(index, Some(self.other))
    }

    fn interval_with(&self, index: usize, other: Option<Option<&Samples>>) -> Option<Value> {
        let of = |stream: &Stream| self.samples.interval(self.test, stream, index, other);
        let intervals: Vec<(&Stream, Interval)> =
            self.test.streams.iter().filter_map(|stream| Some((stream, of(stream)?))).collect();
        let (first, _) = intervals.first()?;
        let streams: Vec<Value> = intervals
            .iter()
            .map(|(stream, interval)| {
                let mut value = json!({ "socket": stream.socket });
                self.fill_interval(&mut value, self.test.sends(stream), interval, true);
                value
            })
            .collect();
        let mut value = json!({ "streams": streams });
        for (name, client_sends) in self.directions(first.client_sends, "sum") {
            let of_direction = intervals.iter().filter(|(stream, _)| stream.client_sends == client_sends);
            if let Some(sum) = Interval::sum(of_direction.map(|(_, interval)| interval)) {
                let mut total = json!({});
                self.fill_interval(&mut total, client_sends == (self.test.side == Side::Client), &sum, false);
                value[name] = total;
            }
        }
        Some(value)
    }

    /// The names of the sums of the first direction and of the other, which a bidirectional test has.
    fn directions(&self, first: bool, name: &str) -> Vec<(String, bool)> {
        let mut directions = vec![(name.to_owned(), first)];
        if self.test.is_bidirectional() {
            directions.push((format!("{name}_bidir_reverse"), !first));
        }
        directions
    }

    fn fill_interval(&self, value: &mut Value, sends: bool, interval: &Interval, has_connection: bool) {
        self.fill_amount(value, interval);
        match (self.test.is_udp(), sends) {
            (false, true) => {
                value["retransmits"] = json!(interval.retransmits);
                if has_connection {
                    let tcp = interval.tcp.as_ref();
                    value["snd_cwnd"] = json!(tcp.map(|tcp| tcp.congestion_window));
                    value["snd_wnd"] = json!(tcp.map(|tcp| tcp.send_window));
                    value["rtt"] = json!(tcp.map(|tcp| tcp.rtt_us));
                    value["rttvar"] = json!(tcp.map(|tcp| tcp.rtt_variance_us));
                    value["pmtu"] = json!(tcp.map(|tcp| tcp.path_mtu));
                }
            }
            (false, false) => {}
            (true, true) => value["packets"] = json!(interval.blocks),
            (true, false) => fill_datagrams(value, interval, interval.blocks + interval.datagrams.missing),
        }
        value["omitted"] = json!(interval.omitted);
        value["sender"] = json!(sends);
    }

    fn fill_amount(&self, value: &mut Value, interval: &Interval) {
        value["start"] = integer(interval.start);
        value["end"] = integer(interval.end);
        value["seconds"] = integer(interval.seconds());
        value["bytes"] = json!(interval.bytes);
        value["bits_per_second"] = integer(interval.bits_per_second());
    }

    pub fn end(&self) -> Value {
        let totals: Vec<(&Stream, StreamTotal)> = self
            .test
            .streams
            .iter()
            .map(|stream| (stream, StreamTotal::new(self.test, stream, self.samples, self.other)))
            .collect();
        let streams: Vec<Value> = totals.iter().map(|(stream, total)| self.stream_total(stream, total)).collect();
        let mut end = json!({ "streams": streams });
        let first = self.test.streams.first().is_none_or(|stream| stream.client_sends);
        if self.test.is_udp() {
            for (name, client_sends) in self.directions(first, "sum") {
                end[name] = self.sum(&totals, client_sends, Figures::Both);
            }
        }
        let names = self.directions(first, "sum_sent").into_iter().zip(self.directions(first, "sum_received"));
        for ((sent, client_sends), (received, _)) in names {
            end[sent] = self.sum(&totals, client_sends, Figures::Sender);
            end[received] = self.sum(&totals, client_sends, Figures::Receiver);
        }
        end["cpu_utilization_percent"] = self.cpu_utilization();
        if !self.test.is_udp() {
            let congestion = |samples: Option<&Samples>| {
                let first = self.test.streams.first()?;
                samples?.total(first.id)?.tcp.map(|tcp| tcp.congestion)
            };
            let (own, other) = (congestion(Some(self.samples)), congestion(self.other));
            // The first stream is that of the client, but a server that sends at all reports as a sender.
            let sends = match self.other {
                Some(_) => self.test.streams.first().is_none_or(|stream| self.test.sends(stream)),
                None => self.test.streams.iter().any(|stream| self.test.sends(stream)),
            };
            let (sender, receiver) = if sends { (own, other) } else { (other, own) };
            for (name, congestion, is_own) in [("sender", sender, sends), ("receiver", receiver, !sends)] {
                // A server knows its own side alone.
                if is_own || self.other.is_some() {
                    end[format!("{name}_tcp_congestion")] = json!(congestion);
                }
            }
        }
        end
    }

    fn stream_total(&self, stream: &Stream, total: &StreamTotal) -> Value {
        let socket = stream.socket;
        let sends = self.test.sends(stream);
        if self.test.is_udp() {
            let mut udp = json!({ "socket": socket });
            self.fill_total(&mut udp, total, Figures::Both, sends);
            udp["out_of_order"] = json!(total.receiver.as_ref().map(|receiver| receiver.datagrams.reordered));
            udp["sender"] = json!(sends);
            return json!({ "udp": udp });
        }
        let mut sender = json!({ "socket": socket });
        self.fill_total(&mut sender, total, Figures::Sender, sends);
        if let Some(samples) = if sends { Some(self.samples) } else { self.other } {
            fill_path(&mut sender, samples.intervals(stream.id));
        }
        sender["sender"] = json!(sends);
        let mut receiver = json!({ "socket": socket });
        self.fill_total(&mut receiver, total, Figures::Receiver, sends);
        receiver["sender"] = json!(sends);
        json!({ "sender": sender, "receiver": receiver })
    }

    fn sum(&self, totals: &[(&Stream, StreamTotal)], client_sends: bool, figures: Figures) -> Value {
        let of_direction = || totals.iter().filter(|(stream, _)| stream.client_sends == client_sends);
        let sum = StreamTotal {
            sender: Interval::sum(of_direction().filter_map(|(_, total)| total.sender.as_ref())),
            receiver: Interval::sum(of_direction().filter_map(|(_, total)| total.receiver.as_ref())),
        };
        let mut value = json!({});
        self.fill_total(&mut value, &sum, figures, client_sends == (self.test.side == Side::Client));
        value["sender"] = json!(match figures {
            Figures::Sender if self.test.is_udp() => true,
            Figures::Receiver if self.test.is_udp() => false,
            _ => client_sends == (self.test.side == Side::Client),
        });
        value
    }

    fn fill_total(&self, value: &mut Value, total: &StreamTotal, figures: Figures, sends: bool) {
        let side = match figures {
            Figures::Sender => total.sender.as_ref(),
            Figures::Receiver => total.receiver.as_ref(),
            // iperf3's sums of datagrams are those of the sender, with the receiver's losses.
            Figures::Both => total.sender.as_ref().or(total.receiver.as_ref()),
        };
        match side {
            Some(side) => self.fill_amount(value, side),
            None => {
                for name in ["start", "end", "seconds", "bytes", "bits_per_second"] {
                    value[name] = Value::Null;
                }
            }
        }
        match (self.test.is_udp(), figures) {
            (false, Figures::Sender) if sends || self.other.is_some() => {
                value["retransmits"] = json!(total.sender.as_ref().map(|sender| sender.retransmits));
            }
            (false, _) => {}
            (true, Figures::Sender) => {
                value["jitter_ms"] = json!(0);
                value["lost_packets"] = json!(0);
                value["packets"] = json!(total.sender.as_ref().map(|sender| sender.blocks));
                value["lost_percent"] = json!(0);
            }
            (true, _) => match &total.receiver {
                Some(receiver) => {
                    // Each side has a window of its own, so the receiver's count may differ from the sender's.
                    let sent = total.sender.as_ref().filter(|_| figures == Figures::Both).map(|sender| sender.blocks);
                    fill_datagrams(value, receiver, sent.unwrap_or(receiver.blocks + receiver.datagrams.missing));
                }
                None => {
                    for name in ["jitter_ms", "lost_packets", "packets", "lost_percent"] {
                        value[name] = Value::Null;
                    }
                }
            },
        }
    }

    fn cpu_utilization(&self) -> Value {
        let percent = |usage: Option<Usage>, part: fn(&Usage) -> u64| {
            let usage = usage.filter(|_| self.cpu.seconds > 0.0)?;
            Some(integer(part(&usage) as f64 / 1e9 / self.cpu.seconds * 100.0))
        };
        let mut value = json!({});
        for (name, usage) in [("host", self.cpu.host), ("remote", self.cpu.remote)] {
            value[format!("{name}_total")] = json!(percent(usage, |usage| usage.cpu_ns()));
            value[format!("{name}_user")] = json!(percent(usage, |usage| usage.user_ns));
            value[format!("{name}_system")] = json!(percent(usage, |usage| usage.system_ns));
        }
        value
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figures {
    Sender,
    Receiver,
    /// The receiver's, with the times of the sender where no receiver is known.
    Both,
}

/// Fills in what the receiver saw of `all` datagrams.
fn fill_datagrams(value: &mut Value, interval: &Interval, all: u64) {
    let lost = interval.datagrams.missing;
    value["jitter_ms"] = json!(interval.datagrams.jitter_ns / 1e6);
    value["lost_packets"] = json!(lost);
    value["packets"] = json!(all);
    value["lost_percent"] = integer(lost_percent(lost, all));
}

/// Windows and round-trip times over the measurement, from the samples of the sender.
fn fill_path(value: &mut Value, intervals: &[Interval]) {
    let measured = || intervals.iter().filter(|interval| !interval.omitted).filter_map(|one| one.tcp.as_ref());
    let rtts = || measured().map(|tcp| tcp.rtt_us);
    let count = measured().count() as u64;
    value["max_snd_cwnd"] = json!(measured().map(|tcp| tcp.congestion_window).max());
    value["max_snd_wnd"] = json!(measured().filter_map(|tcp| tcp.send_window).max());
    value["max_rtt"] = json!(rtts().max());
    value["min_rtt"] = json!(rtts().min());
    value["mean_rtt"] = json!(rtts().sum::<u64>().checked_div(count));
}

/// A number, without a fraction where it has none.
fn integer(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wb_net_profile::Protocol;
    use wb_net_profile::presets::{PresetConfig, maerts, stream};
    use wb_results::net::{DatagramProgress, StrandProgress};

    use super::*;

    /// Samples at the start and the end of a window of 2 s.
    fn samples(profile: &wb_net_profile::NetProfile, bytes: [u64; 2], operations: u64, missing: u64) -> Samples {
        let mut samples = Samples::new(profile);
        for (time, done) in [(0, 0), (2_000_000_000, 1)] {
            samples.push(&StrandProgress {
                group: 0,
                transaction: 1,
                strand: 0,
                time,
                sent: bytes[0] * done,
                received: bytes[1] * done,
                operations: operations * done,
                datagrams: DatagramProgress { missing: missing * done, ..DatagramProgress::default() },
                connection: None,
            });
        }
        samples
    }

    fn document(test: &Test, samples: &Samples, other: Option<&Samples>) -> Value {
        let (version, system_info, time, cookie) = Default::default();
        let identity = &Identity { version, system_info, seconds: 0, time, cookie };
        Value::Object(JsonReport { test, identity, samples, other, cpu: CpuUsage::default() }.document())
    }

    #[test]
    fn totals_of_datagrams_count_those_of_the_sender_and_the_losses_of_the_receiver() {
        let config =
            PresetConfig { protocol: Protocol::Udp, runtime: Duration::from_secs(2), ..PresetConfig::new("h") };
        let profile = stream(&config, 500);
        let test = Test::from_profile(&profile, Side::Client, "h", Some(5201)).unwrap();
        let sent = samples(&profile, [1_000_000, 0], 2000, 0);
        // The receiver's window ended before the last two arrived.
        let received = samples(&profile, [0, 899_500], 1799, 199);
        let end = document(&test, &sent, Some(&received))["end"].take();
        for total in [&end["sum"], &end["streams"][0]["udp"]] {
            let figures = ["bytes", "packets", "lost_packets", "lost_percent"].map(|name| total[name].as_f64());
            assert_eq!(figures, [Some(1_000_000.0), Some(2000.0), Some(199.0), Some(9.95)], "{end}");
        }
        let unknown = document(&test, &sent, None)["end"].take();
        assert_eq!(unknown["sum"]["lost_packets"], Value::Null, "{unknown}");
    }

    // The last interval lacked what the total of its stream counted.
    #[test]
    fn what_a_sender_counts_late_is_in_its_last_interval_and_in_its_total() {
        let profile = stream(&PresetConfig { runtime: Duration::from_secs(2), ..PresetConfig::new("h") }, 500);
        let test = Test::from_profile(&profile, Side::Client, "h", Some(5201)).unwrap();
        let sent = samples(&profile, [1_000_000, 0], 2000, 0);
        let received = samples(&profile, [0, 1_000_500], 2001, 0);
        let document = document(&test, &sent, Some(&received));
        let figures =
            [&document["end"]["sum_sent"], &document["end"]["streams"][0]["sender"], &document["end"]["sum_received"]];
        assert_eq!(figures.map(|total| total["bytes"].as_u64()), [Some(1_000_500); 3], "{document}");
        let interval = &document["intervals"][0];
        let figures = [&interval["sum"], &interval["streams"][0]];
        assert_eq!(figures.map(|part| part["bytes"].as_u64()), [Some(1_000_500); 2], "{document}");
        assert_eq!(figures.map(|part| part["bits_per_second"].as_f64()), [Some(4_002_000.0); 2], "{document}");
    }

    #[test]
    fn a_sender_that_was_lost_has_no_higher_rate_than_its_receiver_saw() {
        let config = PresetConfig { runtime: Duration::from_secs(2), ..PresetConfig::new("h") };
        let profile = maerts(&config, 500);
        let test = Test::from_profile(&profile, Side::Client, "h", Some(5201)).unwrap();
        let received = samples(&profile, [0, 2_000_000], 4000, 0);
        // The server reported half of its window.
        let mut sent = Samples::new(&profile);
        for (time, bytes) in [(0, 0), (1_000_000_000, 900_000)] {
            sent.push(&StrandProgress {
                group: 0,
                transaction: 1,
                strand: 0,
                time,
                sent: bytes,
                received: 0,
                operations: bytes / 500,
                datagrams: DatagramProgress::default(),
                connection: None,
            });
        }
        let end = document(&test, &received, Some(&sent))["end"].take();
        for total in [&end["sum_sent"], &end["sum_received"]] {
            let figures = ["bytes", "seconds", "bits_per_second"].map(|name| total[name].as_f64());
            assert_eq!(figures, [Some(2_000_000.0), Some(2.0), Some(8_000_000.0)], "{end}");
        }
    }
}
