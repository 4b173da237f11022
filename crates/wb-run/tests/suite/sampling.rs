//! When a cell is done.

use std::time::Duration;

use wb_model::CellOutcome;
use wb_sys::telemetry::{CpuReading, CpuTimes, Telemetry, TelemetryReading};
use wb_test_worker::FakeProcess;

use crate::testbed::{TestBed, figures, paused, seconds, steady};

#[test]
fn a_quiet_cell_is_done_with_the_fewest_samples() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.outcome, CellOutcome::Measured);
        assert_eq!(cell.samples.iter().filter(|sample| sample.counted).count(), 6);
        assert_eq!(cell.ended_by.as_deref(), Some("its rule is met"));
    });
}

#[test]
fn a_noisy_cell_ends_at_its_most_samples_and_reports_how_far_it_came() {
    paused(async {
        let bed = TestBed::new(figures(|number| 10.0 + f64::from(number % 7)));
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        let CellOutcome::NotConverged { percent } = cell.outcome else { panic!("{:?}", cell.outcome) };
        assert!(percent > 2.0);
        assert_eq!(cell.samples.iter().filter(|sample| sample.counted).count(), 30);
    });
}

#[test]
fn a_budget_ends_a_cell_when_its_attempts_have_taken_so_long() {
    paused(async {
        let mut bed = TestBed::new(|_| FakeProcess::printing("figure: 10").lasting(Duration::from_secs(30)));
        bed.sampling.budget = Some(seconds(100));
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.samples.len(), 4, "a warm-up and three samples of 30 s each");
        assert_eq!(cell.outcome, CellOutcome::Partial { valid: 3, required: 6 });
    });
}

#[test]
fn for_each_disturbed_sample_another_one_is_taken_and_none_is_dropped() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        bed.agents[0].set_telemetry(disturbed());
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.samples.iter().filter(|sample| sample.counted).count(), 12, "six, and six again");
        assert!(cell.samples.iter().all(|sample| !sample.disturbances.is_empty()));
    });
}

/// Ten seconds in which the hypervisor ran something else for a quarter of the time of two CPUs.
fn disturbed() -> Telemetry {
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
