//! Compares the estimated duration of plans with the time that measuring takes on a simulated worker.

use std::time::Duration;

use wb_test_worker::FakeProcess;

use crate::sampling::disturbed;
use crate::testbed::{FIGURE, TestBed, seconds};

/// A test whose command takes two seconds and declares that.
fn two_seconds() -> String {
    FIGURE.replace("name = \"figure\"\nsummary", "name = \"two\"\nestimate = \"2s\"\nsummary")
}

/// A worker whose commands run for a given time and print figures that differ by a percentage.
fn bed(lasting: Duration, percent: u32) -> TestBed {
    let count = std::sync::atomic::AtomicU32::new(0);
    let mut bed = TestBed::new(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let figure = 100.0 * (1.0 + f64::from(number % 2 * percent) / 100.0);
        FakeProcess::printing(format!("figure: {figure}\n")).lasting(lasting)
    });
    bed.define(&two_seconds());
    bed
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cell_takes_the_minimum_of_its_estimate() {
    let bed = bed(Duration::from_secs(2), 0);
    let duration = bed.plan(&["two"]).await.duration();
    bed.measure(&["two"]).await;
    assert_eq!((bed.measured_seconds(), duration.min.seconds()), (14.0, 14.0));
}

#[tokio::test(start_paused = true)]
async fn a_noisy_cell_takes_the_maximum_of_its_estimate() {
    let mut bed = bed(Duration::from_secs(2), 50);
    bed.sampling.retakes = 0;
    let duration = bed.plan(&["two"]).await.duration();
    bed.measure(&["two"]).await;
    assert_eq!((bed.measured_seconds(), duration.max.seconds()), (62.0, 62.0));
}

#[tokio::test(start_paused = true)]
async fn a_disturbed_cell_takes_the_maximum_of_its_estimate_with_all_retakes() {
    for retakes in [0, 4, 6] {
        let mut bed = bed(Duration::from_secs(2), 50);
        bed.sampling.retakes = retakes;
        bed.agents[0].set_telemetry(disturbed());
        let duration = bed.plan(&["two"]).await.duration();
        bed.measure(&["two"]).await;
        assert!(bed.cell().attempts.iter().all(|sample| !sample.disturbances.is_empty()));
        let expected = 2.0 * (1.0 + 30.0 + retakes as f64);
        assert_eq!((bed.measured_seconds(), duration.max.seconds()), (expected, expected), "{retakes} retakes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_limits_estimate_and_measurement() {
    let mut bed = bed(Duration::from_secs(2), 50);
    bed.sampling.budget = Some(seconds(9));
    let duration = bed.plan(&["two"]).await.duration();
    bed.measure(&["two"]).await;
    let (least, most) = (duration.min.seconds(), duration.max.seconds());
    assert_eq!((bed.measured_seconds(), least, most), (10.0, 10.0, 10.0));
}

#[tokio::test(start_paused = true)]
async fn the_default_budget_ends_a_long_noisy_cell_after_its_minimum_of_samples() {
    for (each, least, most) in [(60, 420.0, 600.0), (120, 840.0, 840.0)] {
        let mut bed = bed(Duration::from_secs(each), 50);
        bed.define(&two_seconds().replace("2s", &format!("{each}s")));
        let duration = bed.plan(&["two"]).await.duration();
        bed.measure(&["two"]).await;
        assert_eq!((duration.min.seconds(), duration.max.seconds()), (least, most));
        assert_eq!(bed.measured_seconds(), most);
    }
}

#[tokio::test(start_paused = true)]
async fn estimates_of_sample_sets_and_cells_are_added_up() {
    let mut bed = bed(Duration::from_secs(2), 0);
    bed.sampling.warm_up = 2;
    bed.sampling.min_samples = 7;
    let duration = bed.plan(&["two:n=[1,2,3]"]).await.duration();
    bed.measure(&["two:n=[1,2,3]"]).await;
    assert_eq!((bed.measured_seconds(), duration.min.seconds()), (54.0, 54.0));
}

#[tokio::test(start_paused = true)]
async fn a_command_with_a_time_argument_takes_that_time() {
    let text =
        FIGURE.replace("\"{n}\"", "\"{n}\", \"{seconds}\"").replace("name = \"figure\"\ns", "name = \"timed\"\ns");
    let mut bed = bed(Duration::from_secs(5), 0);
    bed.define(&text);
    let duration = bed.plan(&["timed"]).await.duration();
    bed.measure(&["timed"]).await;
    assert_eq!((bed.measured_seconds(), duration.min.seconds()), (35.0, 35.0));
}

#[tokio::test(start_paused = true)]
async fn calibrated_work_takes_about_the_estimated_time() {
    let text = FIGURE.replace("\"{n}\"", "\"{n}\", \"{work}\"").replace("name = \"figure\"\ns", "name = \"worked\"\ns");
    let mut bed = TestBed::new(|command| {
        let work: u64 = command.argv.last().unwrap().parse().unwrap();
        FakeProcess::printing("figure: 10\n").lasting(Duration::from_millis(work))
    });
    bed.define(&text);
    let duration = bed.plan(&["worked"]).await.duration();
    bed.measure(&["worked"]).await;
    let ratio = bed.measured_seconds() / duration.min.seconds();
    assert!((0.97..1.03).contains(&ratio), "{} s, {duration:?}", bed.measured_seconds());
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_estimate_has_no_duration() {
    let bed = bed(Duration::from_secs(2), 0);
    let plan = bed.plan(&["figure", "two"]).await;
    let estimated: Vec<bool> = plan.cells.iter().map(|cell| cell.is_estimated).collect();
    assert_eq!((estimated, plan.duration().min.seconds()), (vec![false, true], 14.0));
}
