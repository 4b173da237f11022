//! Values of the individual iterations of a recorded sample, for box plots and files that show more than medians.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use wb_model::Params;
use wb_peers::suite_output::SuiteOutput;
use wb_results::Scenario;
use wb_sys::process::ResourceUsage;
use wb_test::{Artefacts, Rejection};

use super::cell::PeersCell;
use super::engine;
use super::output::{EndpointOutput, Iteration};
use super::params::ScenarioRun;
use super::study::iteration_rates;
use super::suite;

/// The suites report latencies in milliseconds.
const SECONDS_PER_MILLISECOND: f64 = 1e-3;

#[derive(Deserialize)]
struct DialerRecord {
    usage: ResourceUsage,
}

/// Values of the iterations of one or more samples. Empty where a scenario was not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IterationValues {
    pub scenarios: BTreeMap<Scenario, ScenarioValues>,
    /// Seconds from dialling until all handshakes are complete, per connection.
    pub connect: Vec<f64>,
    /// Seconds from the opening of a stream to the first byte of a download.
    pub first_byte: Vec<f64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScenarioValues {
    pub iterations: usize,
    /// Per iteration: bytes per second if the scenario is a rate, otherwise seconds.
    pub values: Vec<f64>,
    /// Whether any value is the median of all iterations of a sample, because the individual ones were not reported.
    pub are_medians: bool,
    /// Of an iteration, in both directions, on average if they differ; 0 if they are not known.
    pub bytes: u64,
    /// CPU seconds of the dialers; `None` if not known of each, or if a process did other scenarios, too.
    pub cpu_seconds: Option<f64>,
}

impl ScenarioValues {
    pub(super) fn new(run: &ScenarioRun, values: Vec<f64>, are_medians: bool) -> Self {
        let iterations = run.iterations as usize;
        Self { iterations, values, are_medians, bytes: run.bytes(), cpu_seconds: None }
    }

    fn extend(&mut self, other: Self) {
        let all = |values: &Self| u128::from(values.bytes) * values.iterations as u128;
        let iterations = (self.iterations + other.iterations).max(1) as u128;
        self.bytes = ((all(self) + all(&other)) / iterations) as u64;
        self.iterations += other.iterations;
        self.cpu_seconds = if self.values.is_empty() {
            other.cpu_seconds
        } else {
            self.cpu_seconds.zip(other.cpu_seconds).map(|(own, more)| own + more)
        };
        self.values.extend(other.values);
        self.are_medians |= other.are_medians;
    }
}

impl IterationValues {
    /// Reads the values of a sample of a cell with these parameters from its artefacts.
    pub fn read(params: &Params, artefacts: &Artefacts) -> Result<Self, Rejection> {
        let cell = PeersCell::new(Arc::default(), params).map_err(|error| Rejection::output(error.to_string()))?;
        // Baselines that are measured by the network engine of this program.
        if engine::is_result(artefacts) {
            return engine::figures(&cell, artefacts);
        }
        // Programs with the interface of libp2p's performance suites: one process, which prints YAML.
        if let Ok(text) = artefacts.text(&format!("{}.stdout", suite::SUITE_PROCESS)) {
            let output = SuiteOutput::parse(&text).map_err(|error| Rejection::output(error.to_string()))?;
            return Ok(Self::from_suite(&cell, &output));
        }
        // Endpoints that print a line of JSON per iteration: one process per scenario.
        let mut all = Self::default();
        for run in cell.scenario_runs() {
            let name = run.scenario.name().to_owned();
            let bytes = artefacts.bytes(&format!("{name}.stdout"))?;
            let process: DialerRecord = artefacts.json(&format!("{name}.process.json"))?;
            all.add(run, &EndpointOutput::parse(&bytes), process.usage);
        }
        Ok(all)
    }

    pub fn extend(&mut self, other: Self) {
        for (scenario, figures) in other.scenarios {
            self.scenarios.entry(scenario).or_default().extend(figures);
        }
        self.connect.extend(other.connect);
        self.first_byte.extend(other.first_byte);
    }

    fn from_suite(cell: &PeersCell, output: &SuiteOutput) -> Self {
        let of_run = |run: ScenarioRun| {
            let (statistics, factor) = match run.scenario {
                Scenario::Upload => (output.upload.as_ref()?, suite::BYTES_PER_GIGABIT),
                Scenario::Download => (output.download.as_ref()?, suite::BYTES_PER_GIGABIT),
                Scenario::Latency => (output.latency.as_ref()?, SECONDS_PER_MILLISECOND),
                Scenario::Custom { .. } => return None,
            };
            let values = statistics.figures().into_iter().map(|figure| figure * factor).collect();
            let figures = ScenarioValues::new(&run, values, statistics.samples.is_empty());
            Some((run.scenario, figures))
        };
        Self { scenarios: cell.scenario_runs().into_iter().filter_map(of_run).collect(), ..Self::default() }
    }

    fn add(&mut self, run: ScenarioRun, output: &EndpointOutput, usage: ResourceUsage) {
        let iterations = &output.iterations;
        if run.scenario == Scenario::Download {
            self.first_byte.extend(iterations.iter().filter_map(Iteration::first_byte));
        }
        let values = if run.scenario.is_rate() {
            iteration_rates(&run, output)
        } else {
            iterations.iter().filter_map(Iteration::duration).collect()
        };
        let cpu_seconds = Some(usage.cpu_ns() as f64 / 1e9);
        let mut figures = ScenarioValues { cpu_seconds, ..ScenarioValues::new(&run, values, false) };
        if run.fixed_time().is_some() {
            let moved = |iteration: &Iteration| u128::from(iteration.sent) + u128::from(iteration.received);
            figures.bytes = (iterations.iter().map(moved).sum::<u128>() / iterations.len().max(1) as u128) as u64;
        }
        self.scenarios.entry(run.scenario).or_default().extend(figures);
        self.connect.extend(iterations.first().and_then(Iteration::connect));
    }
}
