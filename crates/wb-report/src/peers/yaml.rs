//! Writes `results.yaml` in the suites' shape. Keys beyond theirs: `axes`; `scenarios` with those that the suites do
//! not have; `cause` and `gate` of a cell that did not pass; `connect` and `firstByte`; `sampleMedians` and
//! `disturbances` of samples; and `weighbridge`.

use std::fmt::Write;

use wb_stats::Samples;

use super::display::DisplayScenario;
use super::{BoxStatistics, CellStatus, MatrixCell, MatrixResults, Scenario, ScenarioSamples};

pub fn yaml(results: &MatrixResults) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_results(&mut text, results);
    text
}

fn write_results(out: &mut String, results: &MatrixResults) -> std::fmt::Result {
    let metadata = &results.metadata;
    writeln!(out, "metadata:")?;
    for (key, value) in [
        ("testPass", scalar(&metadata.test_pass)),
        ("startedAt", scalar(&metadata.started_at)),
        ("completedAt", scalar(&metadata.completed_at)),
        ("duration", format!("{}s", metadata.duration_seconds)),
        ("platform", scalar(&metadata.platform)),
        ("os", scalar(&metadata.os)),
        ("workerCount", metadata.worker_count.to_string()),
    ] {
        writeln!(out, "  {key}: {value}")?;
    }
    let totals = Totals::new(results);
    writeln!(out, "\nsummary:")?;
    for (key, value) in [
        ("totalBaselines", totals.baselines.0),
        ("baselinesPassed", totals.baselines.1),
        ("baselinesFailed", totals.baselines.0 - totals.baselines.1),
        ("totalTests", totals.tests.0),
        ("testsPassed", totals.tests.1),
        ("testsFailed", totals.tests.0 - totals.tests.1),
        ("totalAll", totals.all().0),
        ("passedAll", totals.all().1),
        ("failedAll", totals.all().0 - totals.all().1),
    ] {
        writeln!(out, "  {key}: {value}")?;
    }
    for (key, cells) in [("baselineResults", &results.baselines), ("testResults", &results.tests)] {
        if cells.is_empty() {
            writeln!(out, "\n{key}: []")?;
            continue;
        }
        writeln!(out, "\n{key}:")?;
        for cell in cells {
            write_cell(out, results, cell)?;
        }
    }
    // By which the import recognises that all figures have passed the gates of this program.
    writeln!(out, "\nweighbridge:\n  version: {}", env!("CARGO_PKG_VERSION"))
}

/// Numbers of cells, and how many of them passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) baselines: (usize, usize),
    pub(super) tests: (usize, usize),
}

impl Totals {
    pub(super) fn new(results: &MatrixResults) -> Self {
        let count =
            |cells: &[MatrixCell]| (cells.len(), cells.iter().filter(|cell| cell.status == CellStatus::Pass).count());
        Self { baselines: count(&results.baselines), tests: count(&results.tests) }
    }

    pub(super) fn all(self) -> (usize, usize) {
        (self.baselines.0 + self.tests.0, self.baselines.1 + self.tests.1)
    }
}

fn write_cell(out: &mut String, results: &MatrixResults, cell: &MatrixCell) -> std::fmt::Result {
    let axis = |name: &str| cell.value(&results.axes, name).map_or_else(|| "null".to_owned(), scalar);
    writeln!(out, "  - name: {}", scalar(&cell.name))?;
    writeln!(out, "    dialer: {}", scalar(&cell.dialer))?;
    writeln!(out, "    listener: {}", scalar(&cell.listener))?;
    writeln!(out, "    transport: {}", axis("transport"))?;
    writeln!(out, "    secureChannel: {}", axis("security"))?;
    writeln!(out, "    muxer: {}", axis("muxer"))?;
    let suite_axes = ["transport", "security", "muxer"];
    let named = results.axes.iter().zip(&cell.values).filter(|(name, _)| !suite_axes.contains(&name.as_str()));
    for (index, (name, value)) in named.enumerate() {
        if index == 0 {
            writeln!(out, "    axes:")?;
        }
        writeln!(out, "      {}: {}", scalar(name), value.as_deref().map_or_else(|| "null".to_owned(), scalar))?;
    }
    writeln!(out, "    status: {}", cell.status.suite_word())?;
    if let Some(cause) = cell.status.cause() {
        writeln!(out, "    cause: {}", scalar(&cause))?;
    }
    if let CellStatus::Invalid { gate, .. } = &cell.status {
        writeln!(out, "    gate: {gate}")?;
    }
    for scenario in Scenario::STANDARD {
        write_scenario(out, cell, &scenario, "    ")?;
    }
    let custom: Vec<&Scenario> = cell.scenarios.keys().filter(|one| !Scenario::STANDARD.contains(one)).collect();
    if !custom.is_empty() {
        writeln!(out, "    scenarios:")?;
        custom.into_iter().try_for_each(|scenario| write_scenario(out, cell, scenario, "      "))?;
    }
    let sampled: Vec<_> = cell.scenarios.iter().filter(|(_, measured)| !measured.samples.is_empty()).collect();
    if !sampled.is_empty() {
        writeln!(out, "    sampleMedians:")?;
    }
    for (scenario, measured) in &sampled {
        writeln!(out, "      {}: {}", scalar(scenario.name()), list(scenario, &measured.samples))?;
    }
    let disturbed: Vec<_> = sampled.iter().filter(|(_, measured)| !measured.disturbances.is_empty()).collect();
    if !disturbed.is_empty() {
        writeln!(out, "    disturbances:")?;
    }
    for (scenario, measured) in disturbed {
        writeln!(out, "      {}:", scalar(scenario.name()))?;
        for (index, texts) in &measured.disturbances {
            let texts: Vec<String> = texts.iter().map(|text| scalar(text)).collect();
            writeln!(out, "        {index}: [{}]", texts.join(", "))?;
        }
    }
    for (key, samples) in [("connect", &cell.connect), ("firstByte", &cell.first_byte)] {
        if !samples.is_empty() {
            writeln!(out, "    {key}:")?;
            let times = SuiteStatistics { iterations: samples.len(), values: samples, are_medians: false };
            times.write(out, &Scenario::Latency, "      ")?;
        }
    }
    Ok(())
}

fn write_scenario(out: &mut String, cell: &MatrixCell, scenario: &Scenario, indent: &str) -> std::fmt::Result {
    let name = scenario.name();
    match cell.scenarios.get(scenario).filter(|measured| !measured.values.is_empty()) {
        Some(measured) => {
            writeln!(out, "{indent}{name}:")?;
            let ScenarioSamples { iterations, values, are_medians, .. } = measured;
            let statistics = SuiteStatistics { iterations: *iterations, values, are_medians: *are_medians };
            statistics.write(out, scenario, &format!("{indent}  "))
        }
        None => writeln!(out, "{indent}{name}: null"),
    }
}

/// Figures of iterations, of which the suites know no samples.
struct SuiteStatistics<'a> {
    iterations: usize,
    values: &'a [f64],
    are_medians: bool,
}

impl SuiteStatistics<'_> {
    /// Writes the figures and their statistics, or only the median of the iterations if nothing else is known.
    fn write(&self, out: &mut String, scenario: &Scenario, indent: &str) -> std::fmt::Result {
        let Self { iterations, values, are_medians } = self;
        let all = Samples::new(values).ok();
        let statistics = all.as_ref().filter(|_| !are_medians).map(BoxStatistics::new);
        let number = |value: Option<f64>| value.map_or_else(|| "null".to_owned(), |value| scenario.suite_number(value));
        let of = |pick: fn(&BoxStatistics) -> f64| number(statistics.as_ref().map(pick));
        let single: &[f64] = if *are_medians { &[] } else { values };
        writeln!(out, "{indent}iterations: {iterations}")?;
        writeln!(out, "{indent}min: {}", of(|statistics| statistics.low_whisker))?;
        writeln!(out, "{indent}q1: {}", of(|statistics| statistics.q1))?;
        writeln!(out, "{indent}median: {}", number(all.map(|samples| samples.median())))?;
        writeln!(out, "{indent}q3: {}", of(|statistics| statistics.q3))?;
        writeln!(out, "{indent}max: {}", of(|statistics| statistics.high_whisker))?;
        writeln!(
            out,
            "{indent}outliers: {}",
            list(scenario, statistics.as_ref().map_or(&[], |statistics| &statistics.outliers))
        )?;
        writeln!(out, "{indent}samples: {}", list(scenario, single))?;
        writeln!(out, "{indent}unit: {}", scenario.suite_unit())
    }
}

fn list(scenario: &Scenario, figures: &[f64]) -> String {
    let numbers: Vec<String> = figures.iter().map(|figure| scenario.suite_number(*figure)).collect();
    format!("[{}]", numbers.join(", "))
}

/// A text as a YAML scalar: plain where that is unambiguous, in double quotes otherwise.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _.(),/+-:".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c.is_ascii_digit());
    let lower = text.to_ascii_lowercase();
    let is_other_type = text.parse::<f64>().is_ok()
        || lower.starts_with("0x")
        || lower.starts_with("0o")
        || matches!(lower.as_str(), "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n");
    let is_ambiguous = text.contains(": ") || text.ends_with([':', ' ']);
    if is_word && text.chars().all(is_plain) && !is_other_type && !is_ambiguous {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_texts_are_quoted() {
        assert_eq!(scalar("a x b (tcp, noise, yamux)"), "a x b (tcp, noise, yamux)");
        assert_eq!(scalar("2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z");
        for text in ["1.0", "null", "NO", "", " a", "a: b", "- a", "a\nb", "é", "x #y", "inf"] {
            assert!(scalar(text).starts_with('"'), "{text}");
        }
    }
}
