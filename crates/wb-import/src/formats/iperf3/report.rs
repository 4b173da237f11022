//! The part of iperf3's JSON output that is imported, with iperf3's names.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wb_model::lenient_number::LenientNumber;

use crate::ReadError;
use crate::json;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Iperf3Report {
    pub(super) start: ReportStart,
    #[serde(deserialize_with = "deserialize_end")]
    pub(super) end: ReportEnd,
    pub(super) error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportStart {
    pub(super) version: String,
    pub(super) system_info: String,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) connecting_to: Option<Peer>,
    /// The client, in the report of a server.
    accepted_connection: Option<Value>,
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

/// Totals at the end of a test. With `--bidir`, those of the traffic sent by the server are in `*_bidir_reverse`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportEnd {
    pub(super) streams: Vec<Stream>,
    /// Only for datagrams: the rate of the sender, with the jitter and losses that the receiver measured.
    pub(super) sum: Option<Sum>,
    pub(super) sum_sent: Option<Sum>,
    pub(super) sum_received: Option<Sum>,
    pub(super) sum_bidir_reverse: Option<Sum>,
    pub(super) sum_sent_bidir_reverse: Option<Sum>,
    pub(super) sum_received_bidir_reverse: Option<Sum>,
    #[serde(rename = "cpu_utilization_percent")]
    pub(super) cpu: CpuUtilization,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sum {
    pub(super) seconds: LenientNumber,
    pub(super) bits_per_second: LenientNumber,
    pub(super) retransmits: LenientNumber,
    pub(super) jitter_ms: LenientNumber,
    pub(super) lost_percent: LenientNumber,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Stream {
    pub(super) sender: Option<Sender>,
}

/// Sender of a stream, with round-trip times in microseconds: 0 if it is the remote side, missing for datagrams.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sender {
    pub(super) mean_rtt: LenientNumber,
    pub(super) max_rtt: LenientNumber,
}

/// CPU use in percent of one CPU; `host` is the local side.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CpuUtilization {
    pub(super) host_total: LenientNumber,
    pub(super) remote_total: LenientNumber,
}

impl Iperf3Report {
    /// Whether a server wrote it, which does not learn what its client received, nor how busy it was: both are 0.
    pub(super) fn is_of_server(&self) -> bool {
        self.start.accepted_connection.is_some()
    }

    pub(super) fn is_bidirectional(&self) -> bool {
        let end = &self.end;
        [&end.sum_bidir_reverse, &end.sum_sent_bidir_reverse, &end.sum_received_bidir_reverse]
            .iter()
            .any(|sum| sum.is_some())
    }
}

/// From iperf3 3.7 to 3.10 the sums of both directions of `--bidir` have the same keys; the second are those of the
/// traffic sent by the server.
fn deserialize_end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReportEnd, D::Error> {
    struct EndVisitor;
    impl<'de> Visitor<'de> for EndVisitor {
        type Value = Map<String, Value>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut all = Map::new();
            while let Some((mut key, value)) = entries.next_entry::<String, Value>()? {
                if all.contains_key(&key) && SUMS.contains(&key.as_str()) {
                    key += REVERSE_SUFFIX;
                }
                all.insert(key, value);
            }
            Ok(all)
        }
    }
    const SUMS: [&str; 3] = ["sum", "sum_sent", "sum_received"];
    const REVERSE_SUFFIX: &str = "_bidir_reverse";
    serde_json::from_value(Value::Object(deserializer.deserialize_map(EndVisitor)?)).map_err(D::Error::custom)
}

pub(super) fn error_message(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.trim().strip_prefix("iperf3: error - ")).map(str::to_owned)
}

/// Parses the lines of `--json-stream`, one event each, into a report; `None` if the first JSON object is not an event.
/// Other lines are output of other programs. The last event may be truncated.
pub(super) fn parse_stream(text: &str) -> Result<Option<Iperf3Report>, ReadError> {
    #[derive(Deserialize)]
    struct StreamEvent {
        event: String,
        data: Value,
    }
    let mut lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with('{')).peekable();
    if lines.peek().is_none_or(|(_, line)| serde_json::from_str::<StreamEvent>(line).is_err()) {
        return Ok(None);
    }
    let mut report =
        Iperf3Report { error: error_message(&text[text.find('{').unwrap_or_default()..]), ..Default::default() };
    while let Some((index, line)) = lines.next() {
        let StreamEvent { event, data } = match serde_json::from_str(line) {
            Ok(event) => event,
            Err(error) if error.is_eof() && lines.peek().is_none() => break,
            Err(error) => return Err(json::malformed(super::FORMAT, &error, index)),
        };
        match event.as_str() {
            "start" => report.start = parse_content(data, index)?,
            "end" => report.end = parse_content(data, index)?,
            "error" => report.error = Some(json::to_plain_text(&data)),
            _ => {}
        }
    }
    Ok(Some(report))
}

fn parse_content<T: DeserializeOwned>(content: Value, index: usize) -> Result<T, ReadError> {
    let malformed = |error: serde_json::Error| ReadError::Malformed {
        format: super::FORMAT,
        reason: format!("line {}: {}", index + 1, json::without_type_names(&error.to_string())),
    };
    serde_json::from_value(content).map_err(malformed)
}
