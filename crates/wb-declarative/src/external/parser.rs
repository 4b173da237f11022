use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wb_model::{Gate, MetricKey, TestName};

use super::{PROTOCOL, RunnerEvent};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunnerReport {
    /// In the order of the output.
    pub metrics: Vec<RunnerMetric>,
    pub checks: Vec<RunnerCheck>,
    /// A sentence each.
    pub findings: Vec<String>,
    /// Amount of work, and its time in seconds.
    pub probe: Option<(u64, f64)>,
    /// Amount of measured work, and its time in seconds.
    pub work: Option<(u64, Option<f64>)>,
    pub artefacts: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunnerMetric {
    pub metric: MetricKey,
    pub value: f64,
    pub unit: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunnerCheck {
    pub name: String,
    pub passed: bool,
    /// Gate that the sample fails otherwise.
    pub gate: Gate,
    pub figures: String,
}

impl fmt::Display for RunnerCheck {
    /// A runner can leave out the figures.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.figures.is_empty() { Ok(()) } else { write!(f, ": {}", self.figures) }
    }
}

/// Violation of the protocol, or a failure that a runner reported.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    #[error("invalid event on line {line} of the runner's output: {reason}")]
    InvalidEvent {
        /// From 1.
        line: usize,
        reason: String,
    },
    #[error("the first event of the runner is not `hello`")]
    MissingHello,
    #[error("unsupported protocol version {0} of the runner: expected version {PROTOCOL}")]
    Version(u32),
    #[error("the runner could not take the sample: {0}")]
    Failed(String),
    #[error("missing event `done` at the end of the runner's output, after {lines} lines")]
    MissingDone { lines: usize },
    #[error("unexpected line {line} of the runner's output after event `done`")]
    AfterDone {
        /// From 1.
        line: usize,
    },
}

/// Parses the standard output of a runner. Fails also if it reports that the sample could not be taken.
pub fn parse_output(output: &str) -> Result<RunnerReport, ProtocolError> {
    let lines = output.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
    match lines.next().map(|(line, text)| parse_event(line, text)) {
        Some(Ok(RunnerEvent::Hello { protocol: PROTOCOL })) => {}
        Some(Ok(RunnerEvent::Hello { protocol })) => return Err(ProtocolError::Version(protocol)),
        Some(Err(error)) => return Err(error),
        _ => return Err(ProtocolError::MissingHello),
    }
    let mut report = RunnerReport::default();
    let mut is_done = false;
    let mut count = 1;
    for (line, text) in lines {
        if is_done {
            return Err(ProtocolError::AfterDone { line });
        }
        count += 1;
        match parse_event(line, text)? {
            RunnerEvent::Done => is_done = true,
            RunnerEvent::Failed { reason } => return Err(ProtocolError::Failed(reason)),
            event => report.add(event).map_err(|reason| ProtocolError::InvalidEvent { line, reason })?,
        }
    }
    if is_done { Ok(report) } else { Err(ProtocolError::MissingDone { lines: count }) }
}

fn parse_event(line: usize, text: &str) -> Result<RunnerEvent, ProtocolError> {
    serde_json::from_str(text).map_err(|error| ProtocolError::InvalidEvent { line, reason: error.to_string() })
}

impl RunnerReport {
    fn add(&mut self, event: RunnerEvent) -> Result<(), String> {
        match event {
            RunnerEvent::Metric { class, name, value, unit } => {
                self.metrics.push(RunnerMetric { metric: MetricKey::new(class, &name), value, unit })
            }
            RunnerEvent::Check { name, passed, gate, figures } => {
                self.checks.push(RunnerCheck { name, passed, gate, figures });
            }
            RunnerEvent::Finding { text } => self.findings.push(text),
            RunnerEvent::Probe { amount: done, seconds } => set_once(&mut self.probe, (done, seconds), "probe")?,
            RunnerEvent::Work { amount: done, seconds } => set_once(&mut self.work, (done, seconds), "work")?,
            RunnerEvent::Artefact { name, text, base64 } => {
                TestName::new(name.as_str()).map_err(|error| error.to_string())?;
                if self.artefacts.iter().any(|(existing, _)| *existing == name) {
                    return Err(format!("duplicate artefact `{name}`"));
                }
                self.artefacts.push((name, decode_content(text, base64)?));
            }
            RunnerEvent::Hello { .. } | RunnerEvent::Failed { .. } | RunnerEvent::Done => {
                return Err("only allowed as the first or last event".to_owned());
            }
        }
        Ok(())
    }
}

fn set_once<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("duplicate event `{name}`")),
    }
}

fn decode_content(text: Option<String>, base64: Option<String>) -> Result<Vec<u8>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(base64)) => STANDARD.decode(base64).map_err(|error| format!("invalid base64: {error}")),
        _ => Err("expected either `text` or `base64`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HELLO: &str = r#"{"event":"hello","protocol":1}"#;

    fn after_hello(lines: &str) -> Result<RunnerReport, ProtocolError> {
        parse_output(&format!("{HELLO}\n{lines}"))
    }

    #[test]
    fn the_report_of_a_sample_is_collected_from_its_events() {
        let report = after_hello(
            r#"{"event":"probe","amount":6,"seconds":0.01}
               {"event":"metric","class":"throughput","name":"hashes","value":1e6,"unit":"hashes/s"}
               {"event":"work","amount":100,"seconds":0.16}
               {"event":"check","name":"digests are right","passed":true}
               {"event":"finding","text":"it is warm"}
               {"event":"artefact","name":"a.bin","base64":"AAEC"}
               {"event":"done"}"#,
        );
        let report = report.unwrap();
        assert_eq!((report.probe, report.work), (Some((6, 0.01)), Some((100, Some(0.16)))));
        assert_eq!(report.metrics[0].value, 1e6);
        assert_eq!(report.checks[0].gate, Gate::Answer);
        let check = |figures: &str| RunnerCheck { figures: figures.to_owned(), ..report.checks[0].clone() }.to_string();
        assert_eq!([check(""), check("7 of 8")], ["digests are right", "digests are right: 7 of 8"]);
        assert_eq!(report.artefacts, [("a.bin".to_owned(), vec![0, 1, 2])]);
    }

    #[test]
    fn each_violation_of_the_protocol_is_a_distinct_error() {
        let error = |output: &str| parse_output(output).unwrap_err();
        assert_eq!(error(""), ProtocolError::MissingHello);
        assert_eq!(error(r#"{"event":"done"}"#), ProtocolError::MissingHello);
        assert_eq!(error(r#"{"event":"hello","protocol":2}"#), ProtocolError::Version(2));
        assert_eq!(error(HELLO), ProtocolError::MissingDone { lines: 1 });
        let failed = after_hello(r#"{"event":"failed","reason":"no disk"}"#).unwrap_err();
        assert_eq!(failed.to_string(), "the runner could not take the sample: no disk");
        let late = after_hello("{\"event\":\"done\"}\n{\"event\":\"done\"}").unwrap_err();
        assert_eq!(late, ProtocolError::AfterDone { line: 3 });
    }

    #[test]
    fn an_invalid_event_is_reported_with_its_line() {
        for (line, part) in [
            ("Traceback", "expected"),
            (r#"{"event":"metrik"}"#, "unknown variant `metrik`"),
            (r#"{"event":"metric","class":"throughput","name":"x","value":NaN,"unit":""}"#, "expected value"),
            (r#"{"event":"metric","class":"speed","name":"x","value":1,"unit":""}"#, "unknown variant `speed`"),
            (r#"{"event":"finding","text":"x","tex":"y"}"#, "unknown field `tex`"),
            (r#"{"event":"artefact","name":"../x","text":""}"#, "invalid name `../x`"),
            (r#"{"event":"artefact","name":"x"}"#, "either `text` or `base64`"),
            (r#"{"event":"artefact","name":"x","base64":"?"}"#, "invalid base64"),
            (HELLO, "only allowed as the first"),
        ] {
            let error = after_hello(line).unwrap_err();
            assert!(matches!(error, ProtocolError::InvalidEvent { line: 2, .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        let twice = r#"{"event":"artefact","name":"x","text":""}"#;
        assert!(after_hello(&format!("{twice}\n{twice}")).unwrap_err().to_string().contains("duplicate artefact"));
    }

    proptest! {
        #[test]
        fn no_output_panics(output: String) {
            let _ = parse_output(&output);
            let _ = after_hello(&output);
        }

        #[test]
        fn no_damaged_output_panics(index in 0usize..200, with: char) {
            let mut output: Vec<char> = format!("{HELLO}\n{{\"event\":\"work\",\"amount\":3}}\n{{\"event\":\"done\"}}").chars().collect();
            let index = index % output.len();
            output[index] = with;
            let _ = parse_output(&output.into_iter().collect::<String>());
        }
    }
}
