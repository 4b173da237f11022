//! Figures that no gate refuses, but that a reader has to know to be odd.

use wb_model::Quantity;
use wb_net::ceiling::Ceiling;
use wb_peers::Payload;
use wb_peers::plausibility::{Implausibility, asymmetric_rates, clustered_times, quantised_times, slow_start};
use wb_results::Scenario;
use wb_test::Measurement;

use super::cell::PeersCell;
use super::gates::{raw_rate, sum};
use super::study::{ScenarioOutput, median};

/// Interval of the reports of programs such as iperf3, in seconds.
const REPORT_INTERVAL: f64 = 1.0;
/// Share of the rate of a raw connection from which on a rate is notable.
const NOTABLE_SHARE: f64 = 1.1;

/// Bytes by which the kernel's counters may exceed the endpoints' counts: of protocols, and of anything else on the
/// host.
const FOREIGN_BYTES: u64 = 8 << 20;
/// The same as a part of the bytes of the endpoints.
const FOREIGN_SHARE: f64 = 0.5;

/// Adds a finding if so much else was sent that the counters of the kernel confirm nothing.
fn add_foreign_traffic(measurement: &mut Measurement, scenario: &ScenarioOutput) {
    let iterations = &scenario.output.iterations;
    let reported = sum(iterations.iter().flat_map(|iteration| [iteration.sent, iteration.received]));
    let counted = scenario.traffic.sent().max(scenario.traffic.received());
    let allowed = reported.saturating_add(FOREIGN_BYTES.max((reported as f64 * FOREIGN_SHARE) as u64));
    if counted > allowed {
        let bytes = |bytes: u64| Quantity { value: bytes as f64, unit: "B" };
        measurement.findings.push(format!(
            "{}: the interfaces of the dialer's host counted {}, the endpoints {}: with so much other traffic these \
             counters do not show whether both sides lie alike",
            scenario.name,
            bytes(counted),
            bytes(reported)
        ));
    }
}

pub(super) fn add_findings(
    measurement: &mut Measurement,
    cell: &PeersCell,
    measured: &[&ScenarioOutput],
    ceiling: &Ceiling,
) {
    let mut add = |name: &str, implausible: Option<Implausibility>| {
        measurement.findings.extend(implausible.map(|it| format!("{name}: {}", it.figures)));
    };
    for scenario in measured {
        let durations = scenario.durations();
        if scenario.run.fixed_time().is_some() {
            continue;
        }
        add(&scenario.name, clustered_times(&durations, Some(cell.params.iteration_limit.seconds())));
        if scenario.run.scenario.is_rate() {
            add(&scenario.name, quantised_times(&durations, REPORT_INTERVAL));
            let bytes = scenario.run.bytes() as f64;
            let shortest = durations.iter().copied().fold(f64::INFINITY, f64::min);
            add(&scenario.name, slow_start(bytes, shortest, ceiling.median_round_trip));
        }
    }
    if cell.payload != Payload::Wire {
        measurement.findings.push(format!(
            "the payload is {}: it is compared neither with bytes on interfaces nor with the rate of a raw connection",
            cell.payload.name()
        ));
    }
    for scenario in measured.iter().filter(|_| cell.payload == Payload::Wire) {
        add_foreign_traffic(measurement, scenario);
        let share = scenario.rates().iter().copied().fold(0.0, f64::max) / raw_rate(&scenario.run, ceiling);
        if scenario.run.scenario.is_rate() && share > NOTABLE_SHARE {
            measurement.findings.push(format!(
                "{}: an iteration reached {:.0} % of a raw TCP connection between the same CPUs",
                scenario.name,
                share * 100.0
            ));
        }
    }
    let rate = |kind| median(&measured.iter().find(|scenario| scenario.run.scenario == kind)?.rates());
    if let (Some(upload), Some(download)) = (rate(Scenario::Upload), rate(Scenario::Download)) {
        let found = asymmetric_rates(upload, download);
        measurement.findings.extend(found.map(|found| format!("rates: {}", found.figures)));
    }
}
