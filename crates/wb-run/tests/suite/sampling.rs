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

/// A test of two primary metrics, of which the second is noisy.
const RATE_AND_LATENCY: &str = r#"
name = "pair"
summary = "a rate and a latency"
version = 1
command = ["pair"]
requires = [{ program = "pair", package = "" }]

[[metric]]
name = "rate"
class = "throughput"
unit = "1/s"
primary = true
regex = 'rate: (\S+)'

[[metric]]
name = "latency"
class = "latency"
unit = "s"
primary = true
regex = 'latency: (\S+)'

[[metric]]
name = "p99"
class = "latency"
unit = "s"
optional = true
regex = 'p99: (\S+)'
"#;

fn pair() -> TestBed {
    let count = std::sync::atomic::AtomicU32::new(0);
    let mut bed = TestBed::new(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        FakeProcess::printing(format!("rate: {}\nlatency: {}\n", steady(number), 1.0 + f64::from(number % 7)))
    });
    bed.define(RATE_AND_LATENCY);
    bed
}

#[tokio::test(start_paused = true)]
async fn a_cell_takes_samples_until_each_primary_metric_converges_and_names_those_that_do_not() {
    let bed = pair();
    bed.measure(&["pair"]).await;
    let cell = bed.cell();
    assert_eq!(cell.attempts.iter().filter(|sample| sample.counted).count(), 30);
    let CellOutcome::NotConverged { percent, metrics } = &cell.outcome else { panic!("{:?}", cell.outcome) };
    assert_eq!(metrics.iter().map(|metric| metric.metric.to_string()).collect::<Vec<_>>(), ["latency/latency"]);
    assert_eq!(*percent, metrics[0].percent);
}

#[tokio::test(start_paused = true)]
async fn metrics_that_a_plan_chooses_decide_in_place_of_those_of_the_test() {
    let bed = pair();
    bed.measure(&["pair:metrics=rate"]).await;
    let cell = bed.cell();
    assert_eq!(cell.outcome, CellOutcome::Measured);
    assert_eq!(cell.attempts.iter().filter(|sample| sample.counted).count(), 6);
    assert_eq!(cell.primary_metrics().map(|result| result.metric.name.as_str()).collect::<Vec<_>>(), ["rate"]);
    // The same samples, with other criteria: those of the newest invocation.
    bed.measure(&["pair"]).await;
    assert_eq!(bed.cell().attempts.iter().filter(|sample| sample.counted).count(), 30);
    assert_eq!(bed.write_results().cells[0].primary_metrics().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_sample_without_a_metric_that_a_plan_chooses_is_invalid() {
    let bed = pair();
    bed.measure(&["pair:metrics=[rate,p99]"]).await;
    let CellOutcome::Failed { reason } = bed.cell().outcome else { panic!("{:?}", bed.cell().outcome) };
    assert_eq!(reason, "invalid (output: no value for p99)");
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
