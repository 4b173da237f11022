//! Output of endpoints: lines of JSON, as endpoints/README.md describes them.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A line of a listener or a dialer. Other lines are ignored and counted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    /// The listener accepts connections, at the address that its dialer connects to.
    Listening { listening: String },
    /// The handshake of a connection is complete.
    Negotiated {
        /// What both sides use, by axis.
        negotiated: BTreeMap<String, String>,
    },
    /// What a transfer of a fixed time has moved so far.
    Progress(Progress),
    /// Of a dialer.
    Iteration(Iteration),
    /// A stream that a listener has served.
    Served(Served),
}

/// A transfer of a fixed time while it runs, as its dialer reports it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Progress {
    /// Number of the iteration, from 0.
    pub(super) i: u64,
    /// Seconds on the clock of the iterations.
    pub(super) at: f64,
    /// Bytes written since the iteration began.
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// An iteration, as its dialer reports it. Times are seconds on one clock of the process.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Iteration {
    pub(super) i: u64,
    /// Bytes written.
    pub(super) sent: u64,
    /// Bytes read.
    pub(super) received: u64,
    /// When the connection was begun.
    pub(super) t_dial: Option<f64>,
    /// When all handshakes were complete.
    pub(super) t_connect: Option<f64>,
    /// Right before the stream was opened.
    pub(super) t_open: Option<f64>,
    /// When the first byte of the answer arrived.
    pub(super) t_first: Option<f64>,
    /// When the end of the stream was read.
    pub(super) t_last: Option<f64>,
    pub(super) error: Option<String>,
}

/// A stream, as the listener reports it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Served {
    /// Bytes read.
    pub(super) received: u64,
    /// Bytes written.
    pub(super) sent: u64,
    pub(super) error: Option<String>,
}

impl Iteration {
    /// Seconds from the opening of the stream to its end.
    pub(super) fn duration(&self) -> Option<f64> {
        Some(self.t_last? - self.t_open?)
    }

    /// Seconds from dialing to the end of all handshakes.
    pub(super) fn connect(&self) -> Option<f64> {
        Some(self.t_connect? - self.t_dial.unwrap_or(0.0))
    }

    /// Seconds from the opening of the stream to the first byte of the answer.
    pub(super) fn first_byte(&self) -> Option<f64> {
        Some(self.t_first? - self.t_open?)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EndpointOutput {
    /// By connection.
    pub(super) negotiated: Vec<BTreeMap<String, String>>,
    /// Of a dialer.
    pub(super) iterations: Vec<Iteration>,
    /// Where the line of each iteration ends in the output.
    pub(super) line_ends: Vec<u64>,
    /// Of a dialer.
    pub(super) progress: Vec<Progress>,
    /// Where the line of each of these reports ends in the output.
    pub(super) progress_ends: Vec<u64>,
    pub(super) served: Vec<Served>,
    pub(super) other_lines: usize,
    /// The number, from 1, of the first other line that is a JSON object, with its fault.
    pub(super) invalid_line: Option<(usize, String)>,
}

/// Characters of an invalid line that are shown.
const SHOWN_LENGTH: usize = 120;

/// What is wrong with an object of JSON that cannot be read as a [`Line`]; `None` for other lines.
fn describe_invalid_line(line: &str) -> Option<String> {
    let start: String = line.chars().take(SHOWN_LENGTH).flat_map(char::escape_debug).collect();
    if !line.trim_start().starts_with('{') {
        return None;
    }
    // The errors of the types that a line may be say more than that it is none of them.
    let reason = match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line) {
        Err(error) => error.to_string(),
        Ok(object) if object.contains_key("at") => serde_json::from_str::<Progress>(line).err()?.to_string(),
        Ok(object) if object.contains_key("i") => serde_json::from_str::<Iteration>(line).err()?.to_string(),
        Ok(object) if object.contains_key("received") => serde_json::from_str::<Served>(line).err()?.to_string(),
        Ok(_) => return None,
    };
    Some(format!("{reason} in `{start}`"))
}

impl EndpointOutput {
    /// Parses standard output; bytes that are no text are replaced.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut output = Self::default();
        let mut end = 0;
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            end += line.len() as u64;
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            if line.is_empty() {
                continue;
            }
            match serde_json::from_str(line) {
                Ok(Line::Listening { .. }) => {}
                Ok(Line::Negotiated { negotiated }) => output.negotiated.push(negotiated),
                Ok(Line::Progress(progress)) => {
                    output.progress.push(progress);
                    output.progress_ends.push(end);
                }
                Ok(Line::Iteration(iteration)) => {
                    output.iterations.push(iteration);
                    output.line_ends.push(end);
                }
                Ok(Line::Served(served)) => output.served.push(served),
                Err(_) => {
                    output.other_lines += 1;
                    if output.invalid_line.is_none() {
                        output.invalid_line = describe_invalid_line(line).map(|reason| (index + 1, reason));
                    }
                }
            }
        }
        output
    }
}

/// The address in a listener's line `{"listening": "ADDRESS"}`.
pub(super) fn parse_listening(line: &str) -> Option<String> {
    match serde_json::from_str(line) {
        Ok(Line::Listening { listening }) => Some(listening),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_distinguished() {
        let text = concat!(
            r#"{"listening": "/ip4/127.0.0.1/tcp/4001/p2p/Qm"}"#,
            "\nlog\n",
            r#"{"i": 0, "at": 1.5, "sent": 3, "received": 0}"#,
            "\n",
            r#"{"negotiated": {"transport": "tcp", "muxer": "yamux"}}"#,
            "\n\n",
            r#"{"i": 0, "sent": 5, "received": 7, "t_dial": 0, "t_connect": 0.5, "t_open": 1, "t_first": null, "t_last": 3.5, "error": null}"#,
            "\n",
            r#"{"received": 5, "sent": 7, "error": "reset"}"#,
        );
        let output = EndpointOutput::parse(text.as_bytes());
        assert_eq!(output.negotiated[0]["muxer"], "yamux");
        assert_eq!(output.progress, [Progress { i: 0, at: 1.5, sent: 3, received: 0 }]);
        assert_eq!((output.iterations[0].sent, output.iterations[0].duration()), (5, Some(2.5)));
        assert_eq!(output.served, [Served { received: 5, sent: 7, error: Some("reset".to_owned()) }]);
        assert_eq!(output.other_lines, 1);
        assert_eq!(parse_listening(r#"{"listening": "a:1"}"#).as_deref(), Some("a:1"));
        assert_eq!(parse_listening(r#"{"negotiated": {}}"#), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(bytes: Vec<u8>) {
            let _ = EndpointOutput::parse(&bytes);
        }
    }
}
