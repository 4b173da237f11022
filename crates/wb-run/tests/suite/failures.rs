//! Handling of failures: each is recorded or reported.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wb_model::{AttemptOutcome, CellOutcome};
use wb_plan::SamplingOrder;
use wb_run::RunError;
use wb_test_worker::FakeProcess;

use crate::testbed::{FIGURE, TestBed, figures, seconds, steady};

#[tokio::test(start_paused = true)]
async fn a_failing_program_is_retried_up_to_the_limit_and_its_cell_fails_with_the_reason() {
    let bed = TestBed::new(|_| FakeProcess::failing(7, "no such device"));
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.attempts.len(), 3);
    let CellOutcome::Failed { reason } = &cell.outcome else { panic!("{:?}", cell.outcome) };
    assert!(reason.contains("exit status 7") && reason.contains("no such device"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn an_occasional_failure_costs_an_attempt_but_no_sample() {
    let count = AtomicU32::new(0);
    let bed = TestBed::new(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        3 => FakeProcess::failing(1, ""),
        number => FakeProcess::printing(format!("figure: {}", steady(number))),
    });
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!((cell.outcome, cell.attempts.len()), (CellOutcome::Measured, 8));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_program_is_terminated_at_the_limit() {
    let mut bed = TestBed::new(|_| FakeProcess::printing("").lasting(Duration::from_secs(1 << 30)));
    bed.sampling.limit = Some(seconds(20));
    bed.measure(&["figure"]).await;
    let outcomes: Vec<AttemptOutcome> = bed.cell().attempts.into_iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, vec![AttemptOutcome::Timeout { after: seconds(20) }; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_lost_ends_the_run_and_keeps_what_was_measured() {
    let bed = TestBed::new(figures(steady));
    let agent = bed.agents[0].clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(3500)).await;
        agent.disconnect("the cable was pulled");
    });
    let (end, _) = bed.run(&["figure"]).await;
    assert!(matches!(&end, Err(RunError::Lost { reason, .. }) if reason == "the cable was pulled"), "{end:?}");
    let outcomes: Vec<bool> = bed.cell().attempts.iter().map(|sample| sample.outcome.is_completed()).collect();
    assert_eq!(outcomes, [true, true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn cells_whose_only_worker_was_lost_before_their_start_fail() {
    let mut bed = TestBed::new(figures(steady));
    bed.sampling.order = SamplingOrder::Sequential;
    let agent = bed.agents[0].clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        agent.disconnect("the cable was pulled");
    });
    let (end, _) = bed.run(&["figure:id=first", "figure:id=second"]).await;
    assert!(matches!(end, Err(RunError::Lost { .. })), "{end:?}");
    let [first, second] = &bed.study().cells[..] else { panic!("two cells") };
    let lost = first.attempts.last().unwrap().outcome.to_string();
    assert_eq!(lost, "lost (local: the cable was pulled)");
    let reason = "its worker `local` is lost".to_owned();
    assert_eq!(second.outcome, CellOutcome::Failed { reason });
}

#[tokio::test(start_paused = true)]
async fn an_invalid_time_in_the_journal_is_an_error_with_its_line() {
    let bed = TestBed::new(figures(steady));
    bed.measure(&["figure"]).await;
    let path = bed.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let (_, after) = rest.split_once("\"time\":\"").unwrap();
    let (_, after) = after.split_once('"').unwrap();
    // Without its checksum, as of an earlier version.
    let (fields, lines) = after.split_once(",\"crc32\":").unwrap();
    let after = format!("{fields}}}{}", &lines[lines.find('\n').unwrap()..]);
    std::fs::write(&path, format!("{first}\n{{\"time\":\"yesterday\"{after}")).unwrap();
    let error = bed.try_study().unwrap_err().to_string();
    assert!(error.contains("journal.jsonl, line 2: invalid time `yesterday`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn implausible_figures_are_invalid_and_end_the_cell() {
    let bed = TestBed::new(figures(|_| 1.2e308));
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.attempts.len(), 3, "the maximum number of failed attempts");
    let CellOutcome::Failed { reason } = &cell.outcome else { panic!("{:?}", cell.outcome) };
    assert!(reason.contains("figure is 1.2e308 1/s"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn invalid_output_is_not_a_value() {
    for output in ["figure: fast", "rate: 12", "", "figure: nan", "figure: -3", "figure: 0"] {
        let bed = TestBed::new(move |_| FakeProcess::printing(output));
        bed.measure(&["figure"]).await;
        let CellOutcome::Failed { reason } = bed.cell().outcome else { panic!("{output}: {:?}", bed.cell().outcome) };
        assert!(reason.contains("invalid"), "{output}: {reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn values_that_differ_by_1000_fail_the_cell_also_when_it_is_resumed() {
    let mut bed = TestBed::new(figures(|number| if number >= 4 { 1.0 } else { 1000.0 }));
    bed.define(&FIGURE.replace("unit = \"1/s\"", "unit = \"MB/s\""));
    bed.sampling.warm_up = 0;
    let reason =
        "its values contradict each other: figure is 1 GB/s in sample 0 and 1 MB/s in sample 4, a factor of 1000";
    for _ in 0..2 {
        bed.measure(&["figure"]).await;
        assert_eq!(bed.cell().outcome, CellOutcome::Failed { reason: reason.to_owned() });
        assert_eq!(bed.attempts().len(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn contradictions_of_secondary_metrics_are_only_reported() {
    let count = AtomicU32::new(0);
    let mut bed = TestBed::new(move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let response = if number == 2 { 5000 } else { 1 };
        FakeProcess::printing(format!("figure: {}\nresponse: {response}\n", steady(number)))
    });
    let response = "[[metric]]\nname = \"response\"\nclass = \"latency\"\nunit = \"s\"\nregex = 'response: (\\S+)'\n";
    bed.define(&format!("{FIGURE}{response}"));
    bed.sampling.warm_up = 0;
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.outcome, CellOutcome::Measured);
    let finding = "response is 1 s in sample 0 and 5000 s in sample 2, a factor of 5000: ";
    assert!(cell.findings.iter().any(|text| text.contains(finding)), "{:?}", cell.findings);
}
