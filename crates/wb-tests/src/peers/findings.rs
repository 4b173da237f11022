//! Figures that a gate does not refuse, but that a reader has to know to be odd.

use wb_net::ceiling::Ceiling;
use wb_peers::Scenario;
use wb_peers::plausibility::{Implausibility, asymmetric_rates, clustered_times, quantised_times, slow_start};

use super::cell::PeersCell;
use super::study::{ScenarioOutput, median};
use crate::Measurement;

/// Interval of the reports of programs such as iperf3, in seconds.
const REPORT_INTERVAL: f64 = 1.0;

/// Adds what is implausible about the scenarios of a sample.
pub(super) fn add_findings(
    measurement: &mut Measurement,
    cell: &PeersCell,
    measured: &[&ScenarioOutput],
    ceiling: &Ceiling,
) {
    let mut add = |name: &str, implausible: Option<Implausibility>| {
        measurement.findings.extend(implausible.map(|it| format!("{name}: {}", it.figures)));
    };
    for one in measured {
        let durations = one.durations();
        add(&one.name, clustered_times(&durations, Some(cell.params.iteration_limit.seconds())));
        if one.run.scenario.is_rate() {
            add(&one.name, quantised_times(&durations, REPORT_INTERVAL));
            let bytes = one.run.bytes() as f64;
            let shortest = durations.iter().copied().fold(f64::INFINITY, f64::min);
            add(&one.name, slow_start(bytes, shortest, ceiling.median_round_trip));
        }
    }
    let rate = |scenario| median(&measured.iter().find(|one| one.run.scenario == scenario)?.rates());
    if let (Some(upload), Some(download)) = (rate(Scenario::Upload), rate(Scenario::Download)) {
        add("rates", asymmetric_rates(upload, download));
    }
}
