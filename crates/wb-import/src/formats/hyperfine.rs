//! Parser of hyperfine's export: a cell for each command, a sample for each run.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wb_model::lenient_number::LenientNumber;
use wb_model::secrets::mask_value;
use wb_model::{Gate, Metric};

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::format::{Format, FormatDefinition};
use crate::json::to_plain_text;
use crate::naming::{mask_secrets, valid_name};
use crate::{ReadError, json};

const TEST: &str = "hyperfine";
const SUMMARY: &str = "the run time of commands, as hyperfine measured it";

#[derive(Deserialize)]
struct Export {
    results: Vec<Command>,
}

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

pub(crate) const FORMAT: Format = Format::new(&FormatDefinition {
    other_forms: &[(&["command,mean,stddev,median,user,system,min,max"], "hyperfine --export-json FILE")],
    ..FormatDefinition::json("hyperfine", 3, is_export, |text, _| read(text))
});

/// Whether a text is an export; one without results has nothing else in it.
fn is_export(text: &str) -> bool {
    let has = |name: &str| text.contains(name);
    text.split_whitespace().collect::<String>() == "{\"results\":[]}"
        || (has("\"results\"") && has("\"command\"") && (has("\"mean\"") || has("\"times\"")))
}

fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let Export { results } = json::parse_document(FORMAT, text)?;
    let mut foreign = ForeignResults::default();
    for (index, result) in results.iter().enumerate() {
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
        // The pairs of half-masked lines that it adds are in no file: the file has the command as it was run.
        let command = mask_secrets(&command, &mut Vec::new());
        if command != result.command {
            foreign.secrets.push((result.command.clone(), command.clone()));
        }
        cell.own_axis("command", command.as_str());
        cell.set_unmasked("command", &result.command, &command);
        if result.times.is_empty() {
            foreign.notes.push(format!("result {index}: missing `times`, and a mean is not a sample"));
            continue;
        }
        let rejection = result.rejection();
        cell.samples = (0..result.times.len()).map(|run| result.sample(index, run, rejection.as_deref())).collect();
        // One result for each command, in the order of the command line: with two `--prepare` of one command, two.
        foreign.add_apart(cell);
    }
    foreign.require_cells("command was measured")
}

impl Command {
    /// Why all times are rejected if one is 0: hyperfine subtracts the time of starting its shell, and takes 0 for a
    /// run that is shorter. The mean of the other runs alone would be too large.
    fn rejection(&self) -> Option<String> {
        let zeros = self.times.iter().filter(|time| time.0 == Some(0.0)).count();
        let of = self.times.len();
        (zeros > 0).then(|| {
            format!(
                "{zeros} of {of} times are 0, as the command takes no longer than the start of a shell: measure with -N"
            )
        })
    }

    fn sample(&self, position: usize, run: usize, rejection: Option<&str>) -> ForeignSample {
        let mut sample = ForeignSample::at(format!("results/{position}/times/{run}"));
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
        // hyperfine goes on only with `--ignore-failure`, and counts how long it took to fail.
        match self.exit_codes.get(run) {
            None => {}
            Some(None) => sample.failure = Some("end of the command by a signal".to_owned()),
            Some(Some(code)) => match signal(*code) {
                Some(signal) => sample.failure = Some(format!("end of the command by signal {signal}")),
                None => sample.exit_status = *code,
            },
        }
        sample
    }
}

/// Hyperfine and shells report a signal as the exit status 128 and its number.
fn signal(exit_status: i32) -> Option<i32> {
    const MAX_SIGNAL: i32 = 64;
    Some(exit_status - 128).filter(|signal| (1..=MAX_SIGNAL).contains(signal))
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
        assert_eq!([0, 1].map(|run| row(one, run).exit_status), [0, 3]);
        let time = row(one, 1).readings.remove(0);
        assert_eq!((time.value, time.metric.unit.as_str(), time.metric.direction), (0.2, "s", Direction::Lower));
        assert_eq!((row(two, 0).readings.len(), two.params["t"].to_string()), (2, "0.2".to_owned()));
    }

    // Statuses that hyperfine writes for signals were taken for commands that mean to end so.
    #[test]
    fn signals_are_failures_and_other_exit_statuses_are_noted() {
        let read = |codes: &str| {
            let text = format!(r#"{{"results": [{{"command": "x", "times": [1.0], "exit_codes": {codes}}}]}}"#);
            let cell = read(&text).unwrap().cells.remove(0);
            assert_eq!(cell.case().to_string(), "command=x");
            let sample = row(&cell, 0);
            (sample.exit_status, sample.failure.unwrap_or_default())
        };
        for status in [0, 1, 2, 126, 127, 128, 193, 255] {
            assert_eq!(read(&format!("[{status}]")), (status, String::new()));
        }
        for signal in [1, 6, 9, 11, 13, 15, 64] {
            let failure = format!("end of the command by signal {signal}");
            assert_eq!(read(&format!("[{}]", 128 + signal)), (0, failure));
        }
        assert_eq!(read("[null]"), (0, "end of the command by a signal".to_owned()));
        assert_eq!(read("[]"), (0, String::new()));
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

    // A parameter with a name that the import itself uses replaced or lost one of the two.
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
