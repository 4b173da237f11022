//! Conditions that end a cell.

use std::time::Duration;

use wb_model::CellOutcome;
use wb_sys::telemetry::{CpuReading, CpuTimes, Telemetry, TelemetryReading};
use wb_test_worker::FakeProcess;

use crate::testbed::{TestBed, figures, seconds, steady};

#[tokio::test(start_paused = true)]
async fn a_quiet_cell_ends_with_the_minimum_of_samples() {
    let bed = TestBed::new(figures(steady));
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.outcome, CellOutcome::Measured);
    assert_eq!(cell.attempts.iter().filter(|sample| sample.counted).count(), 6);
    assert_eq!(cell.ended_by.as_deref(), Some("its rule is met"));
}

#[tokio::test(start_paused = true)]
async fn a_noisy_cell_ends_at_its_maximum_of_samples_and_reports_the_precision_reached() {
    let bed = TestBed::new(figures(|number| 10.0 + f64::from(number % 7)));
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    let CellOutcome::NotConverged { percent, .. } = cell.outcome else { panic!("{:?}", cell.outcome) };
    assert!(percent > 2.0);
    assert_eq!(cell.attempts.iter().filter(|sample| sample.counted).count(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_cell_ends_when_its_time_budget_is_used_up() {
    let mut bed = TestBed::new(|_| FakeProcess::printing("figure: 10").lasting(Duration::from_secs(30)));
    bed.sampling.budget = Some(seconds(100));
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.attempts.len(), 4, "a warm-up and three samples of 30 s each");
    assert_eq!(cell.outcome, CellOutcome::Partial { valid: 3, required: 6 });
}

#[tokio::test(start_paused = true)]
async fn disturbed_samples_are_retaken_and_none_is_dropped() {
    let bed = TestBed::new(figures(steady));
    bed.agents[0].set_telemetry(disturbed());
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.attempts.iter().filter(|sample| sample.counted).count(), 12, "six, and six again");
    assert!(cell.attempts.iter().all(|sample| !sample.disturbances.is_empty()));
}

/// Telemetry of ten seconds in which two CPUs lost a quarter of their time to the hypervisor (steal).
pub(crate) fn disturbed() -> Telemetry {
    let reading = |seconds: u64, steal_seconds: u64| {
        let user = 2 * seconds - steal_seconds;
        let cpu = CpuTimes { user: user * 1_000_000_000, steal: steal_seconds * 1_000_000_000, ..CpuTimes::default() };
        TelemetryReading {
            at_ns: seconds * 1_000_000_000,
            cpu,
            cpus: vec![CpuReading::default(); 2],
            ..TelemetryReading::default()
        }
    };
    Telemetry { start: reading(0, 0), end: reading(10, 5), series: Vec::new() }
}
