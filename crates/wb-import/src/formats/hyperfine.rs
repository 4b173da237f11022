//! Parser of hyperfine's export: a cell for each command, a sample for each run.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wb_model::secrets::mask_value;
use wb_model::{Gate, Metric};

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

/// A command, or its given name.
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

/// Parses an export.
pub(crate) fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let Export { results } = json::parse_document(Format::Hyperfine, text)?;
    let mut foreign = ForeignResults::default();
    for (at, result) in results.iter().enumerate() {
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        let mut command = result.command.clone();
        for (name, value) in &result.parameters {
            let value = to_plain_text(value);
            let masked = mask_value(name, &value);
            cell.axis(name, masked.as_str());
            cell.set_unmasked(name, &value, &masked);
            if masked != value {
                // hyperfine puts the values of parameters into the command.
                if !value.is_empty() {
                    command = command.replace(&value, &masked);
                }
                foreign.secrets.push((value.clone(), masked));
            }
        }
        let command = mask_secrets(&command, &mut foreign.secrets);
        cell.own_axis("command", command.as_str());
        cell.set_unmasked("command", &result.command, &command);
        if result.times.is_empty() {
            foreign.notes.push(format!("result {at}: missing `times`, and a mean is not a sample"));
            continue;
        }
        // It succeeded nowhere, so that this is what it does: `grep` without a match. Where it succeeds, it is another cell.
        let usual = result.usual_exit_code();
        if usual != 0 {
            cell.own_axis("exit-status", usual);
        }
        let rejection = result.rejection();
        cell.samples = (0..result.times.len()).map(|run| result.sample(at, run, usual, rejection.as_deref())).collect();
        // One result for each command, in the order of the command line: with two `--prepare` of one command, two.
        foreign.add_apart(cell);
    }
    foreign.require_cells("command was measured")
}

impl Command {
    /// The exit status with which the command ends: 0 if it ever does, or else the most frequent one.
    fn usual_exit_code(&self) -> i32 {
        let mut counts = BTreeMap::<i32, usize>::new();
        self.exit_codes.iter().flatten().for_each(|code| *counts.entry(*code).or_default() += 1);
        let most = counts.iter().max_by_key(|(_, count)| **count).map_or(0, |(code, _)| *code);
        if counts.contains_key(&0) { 0 } else { most }
    }

    /// Why no time is valid, if none is: hyperfine subtracts the time of starting its shell and takes 0 for what is less
    /// than that, so that any figure of the other runs alone would be too large.
    fn rejection(&self) -> Option<String> {
        let zeros = self.times.iter().filter(|time| time.0 == Some(0.0)).count();
        let of = self.times.len();
        (zeros > 0).then(|| {
            format!(
                "{zeros} of {of} times are 0, as the command takes no longer than the start of a shell: measure with -N"
            )
        })
    }

    fn sample(&self, at: usize, run: usize, usual: i32, rejection: Option<&str>) -> ForeignSample {
        let mut sample = ForeignSample::at(format!("results/{at}/times/{run}"));
        let seconds = self.times[run].0;
        sample.push_reading(Metric::latency("time", "s").primary(), seconds);
        sample.push_reading(Metric::resource("max-rss", "B"), self.memory.get(run).and_then(|bytes| bytes.0));
        sample.seconds = seconds;
        if seconds.is_none() {
            sample.reject(Gate::Output, "invalid time: expected a number");
        }
        if let Some(reason) = rejection {
            sample.reject(Gate::Plausibility, reason);
        }
        if usual != 0 {
            sample
                .findings
                .push(format!("the command ends with exit status {usual} and never with 0 (`--ignore-failure`)"));
        }
        // hyperfine goes on only with `--ignore-failure`, and counts how long it took to fail.
        sample.failure = match self.exit_codes.get(run) {
            None => None,
            Some(Some(code)) if *code == usual => None,
            Some(Some(code)) => Some(format!("exit status `{code}` of the command")),
            Some(None) => Some("end of the command by a signal".to_owned()),
        };
        sample
    }
}

#[cfg(test)]
mod tests {
    use wb_model::Direction;

    use super::*;
    use crate::foreign::row;

    #[test]
    fn runs_are_samples_and_parameters_are_axes() {
        let text = r#"{"results": [
            {"command": "sleep 0.1", "mean": 0.1, "times": [0.1, 0.2], "exit_codes": [0, 3], "parameters": {"t": "0.1"}},
            {"command": "sleep 0.2", "mean": 0.2, "times": [0.2], "parameters": {"t": 0.2}, "memory_usage_byte": [4096]}]}"#;
        let foreign = read(text).unwrap();
        let [one, two] = &foreign.cells[..] else { panic!("{foreign:?}") };
        assert_eq!((one.axes.join(" "), one.samples.count), ("t command".to_owned(), 2));
        let failures = [0, 1].map(|run| row(one, run).failure);
        assert_eq!(failures, [None, Some("exit status `3` of the command".to_owned())]);
        let time = row(one, 1).readings.remove(0);
        assert_eq!((time.value, time.metric.unit.as_str(), time.metric.direction), (0.2, "s", Direction::Lower));
        assert_eq!((row(two, 0).readings.len(), two.params["t"].to_string()), (2, "0.2".to_owned()));
    }

    #[test]
    fn a_command_that_never_succeeds_is_one_that_ends_so() {
        let read = |codes: &str| {
            let text =
                format!(r#"{{"results": [{{"command": "x", "times": [1.0, 2.0, 3.0], "exit_codes": {codes}}}]}}"#);
            let cell = read(&text).unwrap().cells.remove(0);
            let failed = (0..3).filter(|run| row(&cell, *run).failure.is_some()).count();
            (cell.case().to_string(), failed, row(&cell, 0).findings.join("\n"))
        };
        let always =
            |code: i32| format!("the command ends with exit status {code} and never with 0 (`--ignore-failure`)");
        let cell = |name: &str, failed, finding: String| (name.to_owned(), failed, finding);
        assert_eq!(read("[0, 0, 0]"), cell("command=x", 0, String::new()));
        assert_eq!(read("[1, 1, 0]"), cell("command=x", 2, String::new()));
        assert_eq!(read("[1, 1, 1]"), cell("command=x,exit-status=1", 0, always(1)));
        assert_eq!(read("[3, 1, 3]"), cell("command=x,exit-status=3", 1, always(3)));
        assert_eq!(read("[null, null, null]"), cell("command=x", 3, String::new()));
        assert_eq!(read("[null, 2, 2]"), cell("command=x,exit-status=2", 1, always(2)));
    }

    #[test]
    fn secrets_are_masked_without_mixing_commands() {
        let result = |secret: &str| format!(r#"{{"command": "get --token {secret}", "times": [1.0]}}"#);
        let text = format!("{{\"results\": [{}, {}]}}", result("abc"), result("xyz"));
        let foreign = read(&text).unwrap();
        assert_eq!(foreign.cells.len(), 2, "{foreign:?}");
        assert!(foreign.cells.iter().all(|cell| cell.params["command"].to_string() == "get --token ***"));
        assert!(!format!("{:?}", foreign.cells).contains("abc"));
    }

    #[test]
    fn parameters_that_differ_in_a_secret_distinguish_commands() {
        for name in ["pass", "token", "auth", "command"] {
            let result = |value: &str| {
                let command = if name == "command" { "get --token abc" } else { "opt" };
                let value = if name == "command" { format!("get --token {value}") } else { value.to_owned() };
                format!(r#"{{"command": "{command}", "times": [1.0], "parameters": {{"{name}": "{value}"}}}}"#)
            };
            let text = format!("{{\"results\": [{}, {}]}}", result("0.01"), result("0.03"));
            let foreign = read(&text).unwrap();
            let [one, other] = &foreign.cells[..] else { panic!("{foreign:?}") };
            assert_eq!((one.samples.count, other.samples.count), (1, 1));
            assert_eq!(one.params, other.params, "{name}");
            assert_ne!(one.fingerprints, other.fingerprints, "{name}");
        }
    }

    #[test]
    fn the_value_of_a_masked_parameter_is_masked_in_the_command() {
        let text =
            r#"{"results": [{"command": "login hunter22 -v", "times": [1.0], "parameters": {"pass": "hunter22"}}]}"#;
        let foreign = read(text).unwrap();
        assert_eq!(foreign.cells[0].params["command"].to_string(), "login *** -v");
        assert!(foreign.secrets.contains(&("hunter22".to_owned(), "***".to_owned())));
    }

    #[test]
    fn a_time_that_is_no_number_is_invalid() {
        for time in ["null", "NaN", "-nan", "inf", "\"1,234\""] {
            let text = format!(r#"{{"results": [{{"command": "x", "times": [1.0, {time}]}}]}}"#);
            let (_, foreign) = crate::read(&text, crate::ReadOptions::default()).unwrap();
            let rejection = |sample: usize| row(&foreign.cells[0], sample).rejection.map(|rejection| rejection.figures);
            assert_eq!(
                (rejection(0), rejection(1)),
                (None, Some("invalid time: expected a number".to_owned())),
                "{time}"
            );
            assert_eq!(row(&foreign.cells[0], 1).failure, None);
        }
    }

    #[test]
    fn results_of_one_command_are_cells_apart_in_their_order() {
        let result = |time: f64, parameters: &str| {
            format!(r#"{{"command": "x", "times": [{time}, {time}], "parameters": {{{parameters}}}}}"#)
        };
        for (parameters, expected) in [
            ("", "command=x,occurrence=N"),
            (r#""n": "1""#, "command=x,n=1,occurrence=N"),
            (r#""occurrence": "7""#, "command=x,occurrence=N,parameter-occurrence=7"),
        ] {
            let text = format!("{{\"results\": [{}, {}]}}", result(0.2, parameters), result(0.1, parameters));
            let (_, foreign) = crate::read(&text, crate::ReadOptions::default()).unwrap();
            let cells: Vec<(String, u32)> =
                foreign.cells.iter().map(|cell| (cell.case().to_string(), cell.samples.count)).collect();
            assert_eq!(cells, [1, 2].map(|number| (expected.replace('N', &number.to_string()), 2)));
        }
    }

    #[test]
    fn times_beside_zeros_are_no_figures() {
        let text = r#"{"results": [{"command": "x", "times": [0.0, 0.001, 0.002]}, {"command": "y", "times": [1.0]}]}"#;
        let foreign = read(text).unwrap();
        let reason = |cell: usize| row(&foreign.cells[cell], 0).rejection.map(|rejection| rejection.figures);
        assert!(reason(0).is_some_and(|reason| reason.starts_with("1 of 3 times are 0, as the command takes")));
        assert_eq!(reason(1), None);
    }

    #[test]
    fn parameters_of_any_name_distinguish_commands() {
        for name in ["command", "parameter-command", "time", "", "job"] {
            let result = |value: &str| {
                format!(
                    r#"{{"command": "same", "times": [1.0], "parameters": {{"{name}": "{value}", "parameter-command": "{value}"}}}}"#
                )
            };
            let foreign = read(&format!("{{\"results\": [{}, {}]}}", result("true"), result("false"))).unwrap();
            assert_eq!(foreign.cells.len(), 2, "{name}");
            assert!(foreign.cells.iter().all(|cell| cell.params["command"].to_string() == "same"), "{name}");
        }
    }

    #[test]
    fn an_export_without_results_is_reported_as_such() {
        let error = crate::read("{\n  \"results\": []\n}\n", crate::ReadOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "nothing to import: no command was measured");
    }

    #[test]
    fn a_mean_is_not_a_sample() {
        let error = read(r#"{"results": [{"command": "x", "mean": 1.0}]}"#).unwrap_err();
        assert!(error.to_string().contains("a mean is not a sample"), "{error}");
    }
}
