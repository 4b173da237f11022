//! Weighbridge's own layout: `run.json`, and `PROFILE/TEST/SERIAL/result.json` in its own schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use wb_model::{Class, Direction, secrets::masked_words};
use wb_record::{RecordError, RunFolder};

use super::parsed::{Parsed, ParsedMetric};
use crate::build::Value;
use crate::id::Naming;
use crate::metadata::Metadata;

/// What tells this layout from run-perf's.
pub(crate) const HEAD: &str = "run.json";

/// Under which name a definition key stands among the parameters: where it differs, nothing is compared.
pub(crate) const KEY: &str = "definition key";

/// Under which name it stands there that software took the place of a processor, unless that is allowed: where one side
/// has it alone, nothing is compared.
pub const EMULATED: &str = "emulated";

#[derive(Deserialize)]
#[serde(expecting = "an object with `cells`, the results of a serial")]
struct SerialResult<'a> {
    #[serde(borrow)]
    cells: Vec<Cell<'a>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with a cell's results")]
struct Cell<'a> {
    #[serde(borrow)]
    cell: Cow<'a, str>,
    #[serde(borrow)]
    key: Cow<'a, str>,
    params: BTreeMap<String, serde_json::Value>,
    #[serde(borrow, default)]
    provenance: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow)]
    metrics: Vec<Metric<'a>>,
    #[serde(borrow)]
    samples: Vec<Sample<'a>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `metric` and `summary`")]
struct Metric<'a> {
    #[serde(borrow)]
    metric: Declared<'a>,
    #[serde(borrow)]
    worker: Option<Cow<'a, str>>,
    summary: Option<Summary>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with a metric's name, class and unit")]
struct Declared<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    class: Class,
    #[serde(borrow)]
    unit: Cow<'a, str>,
    direction: Direction,
    primary: bool,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `mean`")]
struct Summary {
    mean: f64,
    stddev_percent: Option<f64>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with a sample's `values`")]
struct Sample<'a> {
    counted: bool,
    #[serde(default)]
    disturbances: Vec<IgnoredAny>,
    #[serde(borrow)]
    values: BTreeMap<Cow<'a, str>, f64>,
}

/// Reads a file.
///
/// Errors: it is no JSON, or not of this schema.
pub(super) fn parse(text: &str, allow_emulated: bool) -> Result<Parsed, serde_json::Error> {
    let SerialResult { cells } = serde_json::from_str(text)?;
    let mut parsed = Parsed { naming: Naming::Weighbridge, ..Parsed::default() };
    for cell in cells {
        take(&mut parsed, &cell, allow_emulated);
    }
    Ok(parsed)
}

impl Cell<'_> {
    /// Whether any of its workers ran in software.
    fn is_emulated(&self) -> bool {
        let mut of_workers = self.provenance.iter().filter(|(name, _)| name.split('@').next() == Some(EMULATED));
        of_workers.any(|(_, value)| value == "true")
    }
}

fn take(parsed: &mut Parsed, cell: &Cell<'_>, allow_emulated: bool) {
    let case = cell.cell.split_once(':').map_or("", |(_, case)| case);
    let case = parsed.names.intern(case);
    let params: Vec<_> = cell
        .params
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)))
        .chain([(KEY, cell.key.to_string())])
        .chain((!allow_emulated && cell.is_emulated()).then(|| (EMULATED, true.to_string())))
        .map(|(name, value)| (parsed.names.intern(name), parsed.names.intern(&value)))
        .collect();
    let params = parsed.keep_params(params);
    for Metric { metric: Declared { name, class, unit, direction, primary }, worker, summary } in &cell.metrics {
        let name = worker.as_ref().map_or(name.to_string(), |worker| format!("{name}@{worker}"));
        let key = format!("{class}/{name}");
        let first = parsed.samples.len();
        let counted = || cell.samples.iter().filter(|sample| sample.counted);
        parsed.samples.extend(counted().filter_map(|sample| sample.values.get(key.as_str())));
        let disturbed =
            counted().filter(|sample| !sample.disturbances.is_empty() && sample.values.contains_key(key.as_str()));
        let known = |value: Option<f64>| value.map_or(Value::Invalid, Value::from);
        let metric = ParsedMetric {
            case,
            class: *class,
            metric: parsed.names.intern(&name),
            unit: Some(parsed.names.intern(unit)),
            mean: known(summary.as_ref().map(|summary| summary.mean)),
            // Of one sample, or of a mean of zero, there is none.
            stddev: summary.as_ref().and_then(|summary| summary.stddev_percent).map_or(Value::Missing, Value::from),
            primary: *primary,
            params,
            disturbed: disturbed.count() as u32,
            samples: first..parsed.samples.len(),
        };
        parsed.directions.push((*class, metric.metric, *direction));
        parsed.metrics.push(metric);
    }
}

fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What is said of a run in its head, and its environment before it began.
pub(super) fn metadata(path: &Path) -> Result<Metadata, RecordError> {
    let run = RunFolder::open(path)?;
    let entries = run.run_file()?.entries;
    let mut metadata = Metadata::default();
    let Some(last) = entries.last() else { return Ok(metadata) };
    for (name, value) in entries.iter().flat_map(|entry| &entry.metadata) {
        let place = match name.as_str() {
            "build" => &mut metadata.build,
            "url" => &mut metadata.url,
            "machine-url" => &mut metadata.machine_url,
            "distro" => &mut metadata.distro,
            "guest-distro" => &mut metadata.guest_distro,
            _ => {
                metadata.others.insert(name.clone(), value.clone());
                continue;
            }
        };
        *place = Some(value.clone());
    }
    let hosts: Vec<&str> = last.facts.values().map(|facts| facts.hostname.as_str()).collect();
    metadata.machine = Some(hosts.join(", ")).filter(|hosts| !hosts.is_empty());
    metadata.version = Some(last.version.clone());
    metadata.command = Some(masked_words(&last.command.join(" ")));
    metadata.others.insert("started".to_owned(), last.started.clone());
    metadata.systems = wb_record::systems(&run, &entries);
    let world = std::fs::read(run.environment("world-0-before")).ok();
    if let Some(sections) =
        world.and_then(|bytes| serde_json::from_slice::<BTreeMap<String, serde_json::Value>>(&bytes).ok())
    {
        let sections = sections.iter().map(|(name, section)| (name.clone(), lines(section))).collect();
        metadata.environment.insert("World".to_owned(), vec![sections]);
    }
    Ok(metadata)
}

/// A section as lines of `name: value`, so that two can be held against each other line by line.
fn lines(section: &serde_json::Value) -> String {
    let mut lines = Vec::new();
    add_lines("", section, &mut lines);
    lines.join("\n")
}

fn add_lines(above: &str, value: &serde_json::Value, lines: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let name = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
                add_lines(&name, value, lines);
            }
        }
        value if above.is_empty() => lines.push(text(value)),
        value => lines.push(format!("{above}: {}", text(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"cells": [{
        "cell": "Localhost/himeno/0000:grid=XS,threads=1", "key": "7a9f", "summary": "s", "params": {"grid": "XS", "threads": 1},
        "metrics": [
            {"metric": {"name": "throughput", "class": "throughput", "unit": "mflops", "direction": "higher", "primary": true},
             "worker": null, "summary": {"mean": 3.5, "stddev_percent": 7.0}},
            {"metric": {"name": "cpu", "class": "resource", "unit": "s", "direction": "lower", "primary": false},
             "worker": "vm1", "summary": null}],
        "samples": [
            {"counted": false, "values": {"throughput/throughput": 9.0}},
            {"counted": true, "disturbances": ["steal 5 %"], "values": {"throughput/throughput": 3.0, "resource/cpu@vm1": 0.5}},
            {"counted": true, "values": {"throughput/throughput": 4.0}}]
    }]}"#;

    #[test]
    fn counted_samples_are_read_by_metric_and_worker() {
        let parsed = parse(RESULT, false).unwrap();
        let [first, second] = &parsed.metrics[..] else { panic!("two metrics") };
        assert_eq!((first.mean, first.stddev, first.primary), (Value::Known(3.5), Value::Known(7.0), true));
        assert_eq!((&parsed.samples[first.samples.clone()], first.disturbed), (&[3.0, 4.0][..], 1));
        assert_eq!(first.unit.map(|unit| parsed.names.text(unit)), Some("mflops"));
        assert_eq!((parsed.names.text(second.metric), second.mean), ("cpu@vm1", Value::Invalid));
        assert_eq!(&parsed.samples[second.samples.clone()], [0.5]);
        assert_eq!(parsed.names.text(first.case), "grid=XS,threads=1");
        assert_eq!(parsed.params[first.params].len(), 3);
    }

    #[test]
    fn sections_become_lines() {
        let section = serde_json::json!({"release": "6.1", "smt": {"control": "on", "cpus": [1, 2]}});
        assert_eq!(lines(&section), "release: 6.1\nsmt.control: on\nsmt.cpus: [1,2]");
        assert_eq!(lines(&serde_json::json!("text")), "text");
    }
}
