//! Evaluation of the statistics that a dialer of libp2p's suites prints. Such endpoints count nothing themselves: their
//! figures are compared with the kernel's counters and the raw ceiling.

use wb_model::Quantity;
use wb_model::outcome::Gate;
use wb_net::ceiling::Ceiling;
use wb_peers::suite_output::{SuiteOutput, SuiteStatistics};
use wb_results::Scenario;
use wb_test::{Artefacts, Measurement, Rejection};

use super::SUITE_PROCESS;
use crate::cell::PeersCell;
use crate::gates::{check_durations, check_rate, check_round_trip, check_total_traffic, raw_rate};
use crate::params::ScenarioRun;
use crate::sample::traffic_name;
use crate::study::{ProcessRecord, median, set_median, set_rate};
use crate::traffic::Traffic;

pub(crate) const BYTES_PER_GIGABIT: f64 = 1e9 / 8.0;

pub(crate) fn study(cell: &PeersCell, artefacts: &Artefacts, ceiling: &Ceiling) -> Result<Measurement, Rejection> {
    let text = artefacts.text(&format!("{SUITE_PROCESS}.stdout"))?;
    let output = SuiteOutput::parse(&text).map_err(|error| Rejection::output(error.to_string()))?;
    let traffic: Traffic = artefacts.json(&traffic_name(SUITE_PROCESS))?;
    let process: ProcessRecord = artefacts.json(&format!("{SUITE_PROCESS}.process.json"))?;
    let mut measurement = Measurement::default();
    let (mut seconds, mut sent, mut received) = (0.0, 0_u64, 0_u64);
    for run in cell.scenario_runs() {
        let name = run.scenario.name();
        let statistics = match run.scenario {
            Scenario::Upload => &output.upload,
            Scenario::Download => &output.download,
            Scenario::Latency => &output.latency,
            // Endpoints of this dialect have the standard scenarios alone.
            Scenario::Custom { .. } => continue,
        };
        let Some(figures) = figures(&mut measurement, name, &run, statistics.as_ref()) else { continue };
        let (send, receive) = run.total_sizes();
        sent = sent.saturating_add(send);
        received = received.saturating_add(receive);
        if run.scenario == Scenario::Latency {
            let durations: Vec<f64> = figures.iter().map(|milliseconds| milliseconds / 1e3).collect();
            seconds += durations.iter().sum::<f64>();
            check_round_trip(&mut measurement, name, &durations, ceiling);
            set_median(&mut measurement, "round-trip", &durations);
            set_median(&mut measurement, "raw-round-trip", &[ceiling.median_round_trip]);
        } else {
            let rates: Vec<f64> = figures.iter().map(|rate| rate * BYTES_PER_GIGABIT).collect();
            let bytes = run.bytes() as f64;
            seconds += rates.iter().map(|rate| bytes / rate).sum::<f64>();
            let raw = raw_rate(&run, ceiling);
            check_rate(&mut measurement, cell, name, raw, &rates, ceiling);
            set_rate(&mut measurement, name, &rates, raw);
        }
    }
    check_durations(&mut measurement, SUITE_PROCESS, seconds, process.elapsed_seconds);
    check_total_traffic(&mut measurement, cell, SUITE_PROCESS, sent, received, &traffic);
    measurement
        .findings
        .push("what was negotiated is not known: endpoints of this dialect do not report it".to_owned());
    Ok(measurement)
}

fn figures(
    measurement: &mut Measurement,
    name: &str,
    run: &ScenarioRun,
    statistics: Option<&SuiteStatistics>,
) -> Option<Vec<f64>> {
    let requested = run.iterations;
    let Some(statistics) = statistics else {
        measurement.reject(Gate::Output, format!("{name}: not reported"));
        return None;
    };
    let figures = statistics.figures();
    measurement.require(statistics.is_complete(requested), Gate::Work, || {
        format!("{name}: {} of {requested} iterations have a figure", figures.len())
    });
    let is_possible = !figures.is_empty() && median(&figures).is_some() && figures.iter().all(|figure| *figure > 0.0);
    measurement.require(is_possible, Gate::Output, || {
        let figures: Vec<String> =
            figures.iter().map(|value| Quantity { value: *value, unit: "" }.to_string()).collect();
        format!("{name}: figures [{}], expected positive ones", figures.join(", "))
    });
    if statistics.samples.is_empty() {
        measurement.findings.push(format!("{name}: the dialer printed no single figures, only statistics"));
    }
    is_possible.then_some(figures)
}
