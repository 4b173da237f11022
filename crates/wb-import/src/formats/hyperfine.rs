//! hyperfine's export: a cell for each command, a sample for each of its runs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wb_model::Metric;
use wb_model::secrets::mask_value;

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::json::{LenientNumber, to_plain_text};
use crate::naming::{mask_secrets, valid_name};
use crate::{Format, ReadError, json};

const TEST: &str = "hyperfine";
const SUMMARY: &str = "the run time of commands, as hyperfine measured it";

#[derive(Deserialize)]
struct Export {
    results: Vec<Command>,
}

/// A command, or the name that was given to it.
#[derive(Deserialize)]
struct Command {
    command: String,
    #[serde(default)]
    times: Vec<LenientNumber>,
    #[serde(default)]
    exit_codes: Vec<Option<i32>>,
    #[serde(default, rename = "memory_usage_byte")]
    memory: Vec<LenientNumber>,
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

/// Reads an export.
pub(crate) fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let Export { results } = json::parse_document(Format::Hyperfine, text)?;
    let mut foreign = ForeignResults::default();
    // Two commands that differ in a secret alone look alike once it is masked.
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for (at, result) in results.iter().enumerate() {
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        for (name, value) in &result.parameters {
            let value = to_plain_text(value);
            let shown = mask_value(name, &value);
            cell.axis(name, shown.as_str());
            if shown != value {
                foreign.secrets.push((value.clone(), shown));
            }
        }
        cell.axis("command", mask_secrets(&result.command, &mut foreign.secrets));
        let differs = shown.entry(format!("{:?}", cell.params)).or_insert_with(|| result.command.clone());
        if *differs != result.command {
            let what = format!("result {at}, which differs from another one in what is masked as a secret alone");
            foreign.notes.push(format!("{what}: give it a name with hyperfine's --command-name"));
            continue;
        }
        if result.times.is_empty() {
            foreign.notes.push(format!("result {at}, which has no `times`: a mean is no sample"));
            continue;
        }
        cell.samples = (0..result.times.len()).map(|run| result.sample(at, run)).collect();
        foreign.add(cell);
    }
    if foreign.cells.is_empty() {
        let none = || "it has no result".to_owned();
        return Err(ReadError::Empty(foreign.notes.first().map_or_else(none, Clone::clone)));
    }
    Ok(foreign)
}

impl Command {
    fn sample(&self, at: usize, run: usize) -> ForeignSample {
        let mut sample = ForeignSample::at(format!("results/{at}/times/{run}"));
        let seconds = self.times[run].0;
        sample.push_reading(Metric::latency("time", "s").primary(), seconds);
        sample.push_reading(Metric::resource("max-rss", "B"), self.memory.get(run).and_then(|bytes| bytes.0));
        sample.seconds = seconds;
        match self.exit_codes.get(run) {
            None | Some(Some(0)) => {}
            Some(Some(code)) => sample.findings.push(format!("it ended with exit status {code}, which was ignored")),
            Some(None) => sample.findings.push("a signal ended it, which was ignored".to_owned()),
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use wb_model::Direction;

    use super::*;

    #[test]
    fn runs_are_samples_and_parameters_axes() {
        let text = r#"{"results": [
            {"command": "sleep 0.1", "mean": 0.1, "times": [0.1, 0.2], "exit_codes": [0, 3], "parameters": {"t": "0.1"}},
            {"command": "sleep 0.2", "mean": 0.2, "times": [0.2], "parameters": {"t": 0.2}, "memory_usage_byte": [4096]}]}"#;
        let foreign = read(text).unwrap();
        let [one, two] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!((one.axes.join(" "), one.samples.len()), ("t command".to_owned(), 2));
        assert_eq!(one.samples[1].findings, ["it ended with exit status 3, which was ignored"]);
        let time = &one.samples[1].readings[0];
        assert_eq!((time.value, time.metric.unit.as_str(), time.metric.direction), (0.2, "s", Direction::Lower));
        assert_eq!((two.samples[0].readings.len(), two.params["t"].to_string()), (2, "0.2".to_owned()));
    }

    #[test]
    fn secrets_are_masked_and_never_mix_two_commands() {
        let result = |secret: &str| format!(r#"{{"command": "get --token {secret}", "times": [1.0]}}"#);
        let text = format!("{{\"results\": [{}, {}]}}", result("abc"), result("xyz"));
        let foreign = read(&text).unwrap();
        assert_eq!(foreign.cells.len(), 1);
        assert_eq!(foreign.cells[0].params["command"].to_string(), "get --token ***");
        assert!(foreign.notes[0].contains("--command-name") && !format!("{:?}", foreign.cells).contains("abc"));
    }

    #[test]
    fn a_time_that_is_none_is_a_sample_that_failed() {
        let text = r#"{"results": [{"command": "x", "times": [1.0, null]}]}"#;
        let options = crate::ReadOptions { format: Some(Format::Hyperfine), ..Default::default() };
        let (_, foreign) = crate::read(text, options).unwrap();
        let failure = |sample: usize| foreign.cells[0].samples[sample].failure.as_deref();
        assert_eq!((failure(0), failure(1)), (None, Some("no figure can be read at results/0/times/1")));
    }

    #[test]
    fn means_alone_are_no_samples() {
        let error = read(r#"{"results": [{"command": "x", "mean": 1.0}]}"#).unwrap_err();
        assert!(error.to_string().contains("a mean is no sample"), "{error}");
    }
}
