//! Evaluation of a sample: the values of each scenario, and its gates.

use serde::Deserialize;
use wb_agent::Arrival;
use wb_model::outcome::Gate;
use wb_model::{Class, Metric};
use wb_net::ceiling::Ceiling;
use wb_results::{Measure, Scenario};
use wb_stats::Samples;
use wb_test::{Artefacts, Measurement, Rejection};

use super::ceiling::CEILINGS;
use super::cell::PeersCell;
use super::container;
use super::effort::SizeComparison;
use super::engine;
use super::findings::add_findings;
use super::fixed_time::{SteadyPart, check_fixed_time, omitted};
use super::gates::{self, raw_rate};
use super::output::{EndpointOutput, Iteration};
use super::params::ScenarioRun;
use super::sample::{LISTENER, arrivals_name, dials, repeats, traffic_name};
use super::suite;
use super::timing::line_arrivals;
use super::traffic::Traffic;

/// The metrics of a cell; the figure of each scenario is primary, because it shows what the others do not.
pub(super) fn metrics<'s>(scenarios: impl IntoIterator<Item = &'s Scenario>, is_fixed_time: bool) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for scenario in scenarios {
        if is_fixed_time && matches!(scenario, Scenario::Upload | Scenario::Download) {
            metrics.push(Metric::check(&omitted_name(scenario.name()), "s"));
        }
        match scenario {
            Scenario::Upload => {
                metrics.push(Metric::throughput("upload", "B/s").primary());
                metrics.push(Metric::check("upload-of-ceiling", "%"));
            }
            Scenario::Download => {
                metrics.push(Metric::throughput("download", "B/s").primary());
                metrics.push(Metric::check("download-of-ceiling", "%"));
                metrics.push(Metric::latency("first-byte", "ns"));
            }
            Scenario::Latency => {
                metrics.push(Metric::latency("round-trip", "ns").primary());
                metrics.push(Metric::latency("raw-round-trip", "ns"));
            }
            Scenario::Custom { name, measure: Measure::Throughput } => {
                metrics.push(Metric::throughput(name, "B/s").primary());
                metrics.push(Metric::check(&format!("{name}-of-ceiling"), "%"));
            }
            Scenario::Custom { name, measure: Measure::Latency } => {
                metrics.push(Metric::latency(name, "ns").primary());
            }
        }
    }
    if !metrics.is_empty() {
        metrics.push(Metric::latency("connect", "ns"));
    }
    metrics
}

/// A scenario of a sample, with what its processes reported.
pub(super) struct ScenarioOutput {
    pub(super) name: String,
    pub(super) run: ScenarioRun,
    pub(super) output: EndpointOutput,
    pub(super) traffic: Traffic,
    /// Seconds that the dialer's process ran.
    pub(super) elapsed: f64,
    /// Seconds by the clock of the dialer's worker at which the line of each iteration arrived; empty if not recorded.
    pub(super) arrivals: Vec<f64>,
    /// The same of each report of a transfer of a fixed time.
    pub(super) progress_arrivals: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ProcessRecord {
    pub(super) elapsed_seconds: f64,
}

impl ScenarioOutput {
    fn read(name: String, run: ScenarioRun, artefacts: &Artefacts) -> Result<Self, Rejection> {
        let process: ProcessRecord = artefacts.json(&format!("{name}.process.json"))?;
        let output = EndpointOutput::parse(&artefacts.bytes(&format!("{name}.stdout"))?);
        let arrivals: Vec<Arrival> = match artefacts.length(&arrivals_name(&name)) {
            Ok(_) => artefacts.json(&arrivals_name(&name))?,
            // Of a sample that an earlier version took.
            Err(_) => Vec::new(),
        };
        let traffic = artefacts.json(&traffic_name(&name))?;
        Ok(Self::new(name, run, output, traffic, process.elapsed_seconds, &arrivals))
    }

    pub(super) fn new(
        name: String,
        run: ScenarioRun,
        output: EndpointOutput,
        traffic: Traffic,
        elapsed: f64,
        arrivals: &[Arrival],
    ) -> Self {
        let [arrivals, progress_arrivals] =
            [&output.line_ends, &output.progress_ends].map(|ends| line_arrivals(ends, arrivals));
        Self { name, run, output, traffic, elapsed, arrivals, progress_arrivals }
    }

    /// Durations of the iterations, in seconds.
    pub(super) fn durations(&self) -> Vec<f64> {
        self.output.iterations.iter().filter_map(Iteration::duration).collect()
    }

    /// Bytes per second of the iterations; of transfers of a fixed time that of their steady part.
    pub(super) fn rates(&self) -> Vec<f64> {
        iteration_rates(&self.run, &self.output)
    }
}

/// Bytes per second of the iterations of a rate, as far as they are known.
pub(super) fn iteration_rates(run: &ScenarioRun, output: &EndpointOutput) -> Vec<f64> {
    let rate = |iteration: &Iteration| match run.fixed_time() {
        Some(time) => Some(SteadyPart::new(&time, iteration, &output.progress).ok()?.rate),
        None => Some(iteration.sent.saturating_add(iteration.received) as f64 / iteration.duration()?),
    };
    output.iterations.iter().filter_map(rate).collect()
}

pub(super) fn study(cell: &PeersCell, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let mut measurement = study_output(cell, artefacts)?;
    measurement.outputs.extend(container::image_ids(artefacts));
    gates::check_bounds(&mut measurement, &cell.checks);
    Ok(measurement)
}

fn study_output(cell: &PeersCell, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
    let [before, after]: [Ceiling; 2] = {
        let ceiling = |name: &str| artefacts.json(&format!("{name}.stdout"));
        [ceiling(CEILINGS[0])?, ceiling(CEILINGS[1])?]
    };
    let ceiling = best(before, after);
    // The artefact shows what was run, whatever the peers file says now.
    if artefacts.length(&format!("{}.stdout", suite::SUITE_PROCESS)).is_ok() {
        return suite::study(cell, artefacts, &ceiling);
    }
    if engine::is_result(artefacts) {
        return engine::study(cell, artefacts, &ceiling);
    }
    let repeated = repeats(cell).into_iter().filter(|(name, _)| artefacts.length(&format!("{name}.stdout")).is_ok());
    let all = dials(cell).into_iter().chain(repeated);
    let all = all.map(|(name, run)| ScenarioOutput::read(name, run, artefacts)).collect::<Result<Vec<_>, _>>()?;
    let listener = EndpointOutput::parse(&artefacts.bytes(&format!("{LISTENER}.stdout"))?);

    let mut measurement = Measurement::default();
    // What was not transferred is the first thing to know; what both sides say of it follows.
    for scenario in &all {
        gates::check_iterations(&mut measurement, scenario);
        check_fixed_time(&mut measurement, scenario);
    }
    gates::check_endpoints(&mut measurement, cell, &all, &listener);
    for scenario in &all {
        gates::check_traffic(&mut measurement, cell, scenario);
        gates::check_ceiling(&mut measurement, cell, scenario, &ceiling);
    }
    for run in cell.scenario_runs() {
        SizeComparison::new(cell, &run, &all, &ceiling).check(&mut measurement);
    }
    let measured: Vec<&ScenarioOutput> =
        all.iter().filter(|scenario| scenario.name == scenario.run.scenario.name()).collect();
    for scenario in &measured {
        if let Some(omitted) = omitted(scenario) {
            measurement.set(Class::Check, &omitted_name(&scenario.name), omitted);
        }
        set_values(&mut measurement, scenario, &ceiling);
    }
    add_findings(&mut measurement, cell, &measured, &ceiling);
    let connects = all.iter().filter_map(|scenario| scenario.output.iterations.first()).filter_map(Iteration::connect);
    set_median(&mut measurement, "connect", &connects.collect::<Vec<_>>());
    let lines: usize = all.iter().map(|scenario| scenario.output.other_lines).sum::<usize>() + listener.other_lines;
    if lines > 0 {
        measurement.findings.push(format!("{lines} lines of standard output were not JSON of an endpoint"));
    }
    Ok(measurement)
}

fn best(one: Ceiling, other: Ceiling) -> Ceiling {
    Ceiling {
        upload: one.upload.max(other.upload),
        download: one.download.max(other.download),
        min_round_trip: one.min_round_trip.min(other.min_round_trip),
        median_round_trip: one.median_round_trip.min(other.median_round_trip),
        steadiness: one.steadiness.min(other.steadiness),
    }
}

/// Sets the values of a scenario: medians over its iterations.
fn set_values(measurement: &mut Measurement, scenario: &ScenarioOutput, ceiling: &Ceiling) {
    let raw = raw_rate(&scenario.run, ceiling);
    match &scenario.run.scenario {
        Scenario::Upload => set_rate(measurement, "upload", &scenario.rates(), raw),
        Scenario::Download => {
            set_rate(measurement, "download", &scenario.rates(), raw);
            let first = scenario.output.iterations.iter().filter_map(Iteration::first_byte);
            set_median(measurement, "first-byte", &first.collect::<Vec<_>>());
        }
        Scenario::Latency => {
            set_median(measurement, "round-trip", &scenario.durations());
            set_median(measurement, "raw-round-trip", &[ceiling.median_round_trip]);
        }
        Scenario::Custom { name, measure: Measure::Throughput } => set_rate(measurement, name, &scenario.rates(), raw),
        Scenario::Custom { name, measure: Measure::Latency } => set_median(measurement, name, &scenario.durations()),
    }
}

/// The check with the seconds that were cut off the start of a transfer of a fixed time.
fn omitted_name(scenario: &str) -> String {
    format!("{scenario}-omitted")
}

/// Sets a throughput to the median of rates in bytes per second, and its share of that of a raw connection.
pub(super) fn set_rate(measurement: &mut Measurement, name: &str, rates: &[f64], raw_rate: f64) {
    let Some(rate) = median(rates) else { return };
    measurement.set(Class::Throughput, name, rate);
    measurement.set(Class::Check, &format!("{name}-of-ceiling"), rate / raw_rate * 100.0);
}

/// Sets a latency to the median of durations in seconds, if there are any.
pub(super) fn set_median(measurement: &mut Measurement, name: &str, seconds: &[f64]) {
    match median(seconds) {
        Some(seconds) if seconds >= 0.0 => measurement.set(Class::Latency, name, seconds * 1e9),
        Some(seconds) => measurement.reject(Gate::Output, format!("{name}: negative time {seconds} s")),
        None => {}
    }
}

/// The median; none of no values, or if one of them is not finite, which a gate reports.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    Some(Samples::new(values).ok()?.median())
}
