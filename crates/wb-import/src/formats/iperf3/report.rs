//! The used part of iperf3's JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::json::LenientNumber;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Iperf3Report {
    #[serde(default)]
    pub(super) start: ReportStart,
    #[serde(default)]
    pub(super) end: ReportEnd,
    #[serde(default)]
    pub(super) error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ReportStart {
    #[serde(default)]
    pub(super) version: String,
    #[serde(default)]
    pub(super) system_info: String,
    #[serde(default)]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(default)]
    pub(super) connecting_to: Option<Peer>,
    #[serde(default)]
    pub(super) test_start: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Timestamp {
    pub(super) time: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Peer {
    pub(super) host: String,
}

/// Sums at the end of a test. With `--bidir`, the traffic of the server is in the sums named `reverse`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ReportEnd {
    #[serde(default)]
    pub(super) streams: Vec<Stream>,
    /// Datagrams, as counted by the receiver.
    #[serde(default)]
    pub(super) sum: Option<Sum>,
    #[serde(default)]
    pub(super) sum_sent: Option<Sum>,
    #[serde(default)]
    pub(super) sum_received: Option<Sum>,
    #[serde(default)]
    pub(super) sum_bidir_reverse: Option<Sum>,
    #[serde(default)]
    pub(super) sum_sent_bidir_reverse: Option<Sum>,
    #[serde(default)]
    pub(super) sum_received_bidir_reverse: Option<Sum>,
    #[serde(default, rename = "cpu_utilization_percent")]
    pub(super) cpu: Cpu,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Sum {
    #[serde(default)]
    pub(super) seconds: LenientNumber,
    #[serde(default)]
    pub(super) bits_per_second: LenientNumber,
    #[serde(default)]
    pub(super) retransmits: LenientNumber,
    #[serde(default)]
    pub(super) jitter_ms: LenientNumber,
    #[serde(default)]
    pub(super) lost_percent: LenientNumber,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Stream {
    #[serde(default)]
    pub(super) sender: Option<Sender>,
}

/// Round-trip times in microseconds; 0 if the sender is remote.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Sender {
    #[serde(default)]
    pub(super) mean_rtt: LenientNumber,
    #[serde(default)]
    pub(super) max_rtt: LenientNumber,
}

/// CPU time in percent of one CPU.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Cpu {
    #[serde(default)]
    pub(super) host_total: LenientNumber,
    #[serde(default)]
    pub(super) remote_total: LenientNumber,
}

impl Iperf3Report {
    /// Whether both sides sent data.
    pub(super) fn is_bidirectional(&self) -> bool {
        let reverse = [&self.end.sum_sent_bidir_reverse, &self.end.sum_received_bidir_reverse];
        reverse.iter().any(|sum| sum.is_some())
    }
}

/// Parses the lines of `--json-stream`, one event each, into a report; none if these are not events.
pub(super) fn parse_stream(text: &str) -> Option<Iperf3Report> {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        data: Value,
    }
    let mut report = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(Line { event, data }) = serde_json::from_str(line) else {
            // The last line may be truncated.
            break;
        };
        let report: &mut Iperf3Report = report.get_or_insert_default();
        match event.as_str() {
            "start" => report.start = serde_json::from_value(data).ok()?,
            "end" => report.end = serde_json::from_value(data).ok()?,
            "error" => report.error = Some(crate::json::to_plain_text(&data)),
            _ => {}
        }
    }
    report
}
