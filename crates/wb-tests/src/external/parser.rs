//! Parser of a runner's output.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wb_model::{Class, Gate, TestName};

use super::{PROTOCOL, RunnerEvent};

/// Everything that a runner said of a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunnerReport {
    /// Its figures, in the order it said them.
    pub metrics: Vec<RunnerMetric>,
    /// What it checked.
    pub checks: Vec<RunnerCheck>,
    /// What it noticed.
    pub findings: Vec<String>,
    /// A part of the work and its seconds.
    pub probe: Option<(u64, f64)>,
    /// The measured work and its seconds.
    pub work: Option<(u64, Option<f64>)>,
    /// Files to keep, by name.
    pub artefacts: Vec<(String, Vec<u8>)>,
}

/// A figure that a runner measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerMetric {
    /// The metric's class.
    pub class: Class,
    /// The metric's name.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// Something that a runner checked.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerCheck {
    /// What must hold.
    pub name: String,
    /// Whether it does.
    pub passed: bool,
    /// The question that the sample did not stand up to where it does not.
    pub gate: Gate,
    /// The figures that say so.
    pub figures: String,
}

/// What a runner said that the protocol does not have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    /// A line that is no event.
    #[error("line {line} of the runner is no event of the protocol: {why}")]
    InvalidEvent {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The first line is not its greeting.
    #[error("the runner does not begin with an event `hello`")]
    MissingHello,
    /// A runner of another version.
    #[error("the runner speaks version {theirs} of the protocol, this program version {PROTOCOL}")]
    Version {
        /// Its version.
        theirs: u32,
    },
    /// It could not take the sample.
    #[error("the runner could not take the sample: {reason}")]
    Failed {
        /// Why, in its own words.
        reason: String,
    },
    /// Its output ends without a last word.
    #[error("the runner ended without an event `done`, after {lines} lines")]
    MissingDone {
        /// How many lines it wrote.
        lines: usize,
    },
    /// A line after its last word.
    #[error("line {line} of the runner comes after its event `done`")]
    AfterDone {
        /// Which line, from 1.
        line: usize,
    },
}

/// Reads the standard output of a runner.
///
/// # Errors
/// When it says anything that the protocol does not have, or that the sample could not be taken.
pub fn parse_output(output: &str) -> Result<RunnerReport, ProtocolError> {
    let lines = output.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
    match lines.next().map(|(line, text)| parse_event(line, text)) {
        Some(Ok(RunnerEvent::Hello { protocol: PROTOCOL })) => {}
        Some(Ok(RunnerEvent::Hello { protocol: theirs })) => return Err(ProtocolError::Version { theirs }),
        Some(Err(error)) => return Err(error),
        _ => return Err(ProtocolError::MissingHello),
    }
    let mut said = RunnerReport::default();
    let mut is_done = false;
    let mut count = 1;
    for (line, text) in lines {
        if is_done {
            return Err(ProtocolError::AfterDone { line });
        }
        count += 1;
        match parse_event(line, text)? {
            RunnerEvent::Done => is_done = true,
            RunnerEvent::Failed { reason } => return Err(ProtocolError::Failed { reason }),
            event => said.add(event).map_err(|why| ProtocolError::InvalidEvent { line, why })?,
        }
    }
    if is_done { Ok(said) } else { Err(ProtocolError::MissingDone { lines: count }) }
}

fn parse_event(line: usize, text: &str) -> Result<RunnerEvent, ProtocolError> {
    serde_json::from_str(text).map_err(|error| ProtocolError::InvalidEvent { line, why: error.to_string() })
}

impl RunnerReport {
    fn add(&mut self, event: RunnerEvent) -> Result<(), String> {
        match event {
            RunnerEvent::Metric { class, name, value, unit } => {
                self.metrics.push(RunnerMetric { class, name, value, unit })
            }
            RunnerEvent::Check { name, passed, gate, figures } => {
                self.checks.push(RunnerCheck { name, passed, gate, figures });
            }
            RunnerEvent::Finding { text } => self.findings.push(text),
            RunnerEvent::Probe { amount: done, seconds } => set_once(&mut self.probe, (done, seconds), "probe")?,
            RunnerEvent::Work { amount: done, seconds } => set_once(&mut self.work, (done, seconds), "work")?,
            RunnerEvent::Artefact { name, text, base64 } => {
                TestName::new(name.as_str()).map_err(|error| error.to_string())?;
                if self.artefacts.iter().any(|(known, _)| *known == name) {
                    return Err(format!("the artefact `{name}` is given twice"));
                }
                self.artefacts.push((name, decode_content(text, base64)?));
            }
            RunnerEvent::Hello { .. } | RunnerEvent::Failed { .. } | RunnerEvent::Done => {
                return Err("it can only stand at the beginning or the end".to_owned());
            }
        }
        Ok(())
    }
}

fn set_once<T>(slot: &mut Option<T>, value: T, what: &str) -> Result<(), String> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("`{what}` is said twice")),
    }
}

fn decode_content(text: Option<String>, base64: Option<String>) -> Result<Vec<u8>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(base64)) => STANDARD.decode(base64).map_err(|error| format!("it is not in base 64: {error}")),
        _ => Err("an artefact has a `text` or a `base64`".to_owned()),
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
    fn a_sample_is_said_line_by_line() {
        let said = after_hello(
            r#"{"event":"probe","done":6,"seconds":0.01}
               {"event":"metric","class":"throughput","name":"hashes","value":1e6,"unit":"hashes/s"}
               {"event":"work","done":100,"seconds":0.16}
               {"event":"check","name":"digests are right","passed":true}
               {"event":"finding","text":"it is warm"}
               {"event":"artefact","name":"a.bin","base64":"AAEC"}
               {"event":"done"}"#,
        );
        let said = said.unwrap();
        assert_eq!((said.probe, said.work), (Some((6, 0.01)), Some((100, Some(0.16)))));
        assert_eq!(said.metrics[0].value, 1e6);
        assert_eq!(said.checks[0].gate, Gate::Answer);
        assert_eq!(said.artefacts, [("a.bin".to_owned(), vec![0, 1, 2])]);
    }

    #[test]
    fn whatever_else_is_said_is_an_error_of_its_own() {
        let error = |output: &str| parse_output(output).unwrap_err();
        assert_eq!(error(""), ProtocolError::MissingHello);
        assert_eq!(error(r#"{"event":"done"}"#), ProtocolError::MissingHello);
        assert_eq!(error(r#"{"event":"hello","protocol":2}"#), ProtocolError::Version { theirs: 2 });
        assert_eq!(error(HELLO), ProtocolError::MissingDone { lines: 1 });
        let failed = after_hello(r#"{"event":"failed","reason":"no disk"}"#).unwrap_err();
        assert_eq!(failed.to_string(), "the runner could not take the sample: no disk");
        let late = after_hello("{\"event\":\"done\"}\n{\"event\":\"done\"}").unwrap_err();
        assert_eq!(late, ProtocolError::AfterDone { line: 3 });
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        for (line, part) in [
            ("Traceback", "expected"),
            (r#"{"event":"metrik"}"#, "unknown variant `metrik`"),
            (r#"{"event":"metric","class":"throughput","name":"x","value":NaN,"unit":""}"#, "expected value"),
            (r#"{"event":"metric","class":"speed","name":"x","value":1,"unit":""}"#, "unknown variant `speed`"),
            (r#"{"event":"finding","text":"x","tex":"y"}"#, "unknown field `tex`"),
            (r#"{"event":"artefact","name":"../x","text":""}"#, "is not a name"),
            (r#"{"event":"artefact","name":"x"}"#, "a `text` or a `base64`"),
            (r#"{"event":"artefact","name":"x","base64":"?"}"#, "not in base 64"),
            (HELLO, "only stand at the beginning"),
        ] {
            let error = after_hello(line).unwrap_err();
            assert!(matches!(error, ProtocolError::InvalidEvent { line: 2, .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        let twice = r#"{"event":"artefact","name":"x","text":""}"#;
        assert!(after_hello(&format!("{twice}\n{twice}")).unwrap_err().to_string().contains("given twice"));
    }

    proptest! {
        #[test]
        fn no_output_panics(output: String) {
            let _ = parse_output(&output);
            let _ = after_hello(&output);
        }

        #[test]
        fn no_damaged_output_panics(at in 0usize..200, with: char) {
            let mut output: Vec<char> = format!("{HELLO}\n{{\"event\":\"work\",\"done\":3}}\n{{\"event\":\"done\"}}").chars().collect();
            let at = at % output.len();
            output[at] = with;
            let _ = parse_output(&output.into_iter().collect::<String>());
        }
    }
}
