//! The figures of single iterations of a recorded sample, for charts and files that show more than medians.

use std::sync::Arc;

use wb_model::Params as Given;
use wb_peers::Scenario;
use wb_peers::suite_output::{SuiteOutput, SuiteStatistics};

use super::cell::PeersCell;
use super::engine;
use super::output::{EndpointOutput, Iteration};
use super::suite;
use crate::{Artefacts, Rejection};

/// The figures of the iterations of one sample. Empty where a scenario was not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IterationFigures {
    /// Bytes per second of uploads.
    pub upload: Vec<f64>,
    /// Bytes per second of downloads.
    pub download: Vec<f64>,
    /// Seconds of round trips of one byte.
    pub round_trip: Vec<f64>,
    /// Seconds from dialing to the end of all handshakes, of each connection.
    pub connect: Vec<f64>,
    /// Seconds from the opening of a stream to the first byte of a download.
    pub first_byte: Vec<f64>,
}

impl IterationFigures {
    /// Reads the figures of a sample of a cell with these parameters from its artefacts.
    ///
    /// # Errors
    /// If the parameters, or the output of a dialer, cannot be read.
    pub fn read(params: &Given, artefacts: &Artefacts) -> Result<Self, Rejection> {
        let cell = PeersCell::new(Arc::default(), params).map_err(|error| Rejection::output(error.to_string()))?;
        if engine::is_result(artefacts) {
            return engine::figures(&cell, artefacts);
        }
        if let Ok(text) = artefacts.text(&format!("{}.stdout", suite::DIALER)) {
            let output = SuiteOutput::parse(&text).map_err(|error| Rejection::output(error.to_string()))?;
            return Ok(Self::of_suite(&output));
        }
        let mut all = Self::default();
        for scenario in [Scenario::Upload, Scenario::Download, Scenario::Latency] {
            let name = format!("{}.stdout", scenario.name());
            // A scenario that the cell does not have has no artefact.
            if let Ok(bytes) = artefacts.bytes(&name) {
                all.add(scenario, &EndpointOutput::parse(&bytes).iterations);
            }
        }
        Ok(all)
    }

    /// Adds the figures of another sample.
    pub fn extend(&mut self, other: Self) {
        self.upload.extend(other.upload);
        self.download.extend(other.download);
        self.round_trip.extend(other.round_trip);
        self.connect.extend(other.connect);
        self.first_byte.extend(other.first_byte);
    }

    fn of_suite(output: &SuiteOutput) -> Self {
        let scaled = |statistics: &Option<SuiteStatistics>, factor: f64| {
            let figures = statistics.as_ref().map(SuiteStatistics::figures).unwrap_or_default();
            figures.into_iter().map(|figure| figure * factor).collect()
        };
        Self {
            upload: scaled(&output.upload, suite::GBPS),
            download: scaled(&output.download, suite::GBPS),
            round_trip: scaled(&output.latency, 1e-3),
            ..Self::default()
        }
    }

    fn add(&mut self, scenario: Scenario, iterations: &[Iteration]) {
        let rate = |iteration: &Iteration| Some((iteration.sent + iteration.received) as f64 / iteration.duration()?);
        match scenario {
            Scenario::Upload => self.upload.extend(iterations.iter().filter_map(rate)),
            Scenario::Download => {
                self.download.extend(iterations.iter().filter_map(rate));
                self.first_byte.extend(iterations.iter().filter_map(Iteration::first_byte));
            }
            Scenario::Latency => self.round_trip.extend(iterations.iter().filter_map(Iteration::duration)),
        }
        self.connect.extend(iterations.first().and_then(Iteration::connect));
    }
}
