//! Handling of failures: each is recorded or reported.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wb_agent::{RestoredChange, TeardownReport};
use wb_model::{AttemptOutcome, CellOutcome};
use wb_plan::SamplingOrder;
use wb_run::{Progress, RunError};
use wb_sys::undo::RevertOutcome;
use wb_test_worker::FakeProcess;

use crate::testbed::{FIGURE, TestBed, figures, paused, seconds, steady};

#[test]
fn a_failing_program_is_retried_up_to_the_limit_and_its_cell_fails_with_the_reason() {
    paused(async {
        let bed = TestBed::new(|_| FakeProcess::failing(7, "no such device"));
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.samples.len(), 3);
        let CellOutcome::Failed { reason } = &cell.outcome else { panic!("{:?}", cell.outcome) };
        assert!(reason.contains("exit status 7") && reason.contains("no such device"), "{reason}");
    });
}

#[test]
fn an_occasional_failure_costs_an_attempt_but_no_sample() {
    paused(async {
        let count = AtomicU32::new(0);
        let bed = TestBed::new(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            3 => FakeProcess::failing(1, ""),
            number => FakeProcess::printing(format!("figure: {}", steady(number))),
        });
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!((cell.outcome, cell.samples.len()), (CellOutcome::Measured, 8));
    });
}

#[test]
fn a_hanging_program_is_terminated_at_the_limit() {
    paused(async {
        let mut bed = TestBed::new(|_| FakeProcess::printing("").lasting(Duration::from_secs(1 << 30)));
        bed.sampling.limit = Some(seconds(20));
        bed.measure(&["figure"]).await;
        let outcomes: Vec<AttemptOutcome> = bed.cell().samples.into_iter().map(|sample| sample.outcome).collect();
        assert_eq!(outcomes, vec![AttemptOutcome::Timeout { after: seconds(20) }; 3]);
    });
}

#[test]
fn a_worker_that_is_lost_ends_the_run_and_keeps_what_was_measured() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        let agent = bed.agents[0].clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(3500)).await;
            agent.disconnect("the cable was pulled");
        });
        let (end, _) = bed.run(&["figure"]).await;
        assert!(matches!(&end, Err(RunError::Lost { reason, .. }) if reason == "the cable was pulled"), "{end:?}");
        let outcomes: Vec<bool> = bed.cell().samples.iter().map(|sample| sample.outcome.is_completed()).collect();
        assert_eq!(outcomes, [true, true, true, false]);
    });
}

#[test]
fn cells_whose_only_worker_was_lost_before_their_start_fail() {
    paused(async {
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
        let lost = first.samples.last().unwrap().outcome.to_string();
        assert_eq!(lost, "lost (local: the cable was pulled)");
        let reason = "its worker `local` is lost".to_owned();
        assert_eq!(second.outcome, CellOutcome::Failed { reason });
    });
}

#[test]
fn a_setting_changed_by_another_process_marks_the_sample_with_both_values() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        let how = RevertOutcome::Conflict { found: "888".to_owned() };
        let put_back =
            vec![RestoredChange { description: "/proc/sys/vm/swappiness was `60`".to_owned(), outcome: how }];
        bed.agents[0].set_teardown(TeardownReport { reverted: put_back, ..TeardownReport::default() });
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        let expected = "/proc/sys/vm/swappiness was `60`: left at `888`, since somebody else changed it";
        assert!(
            cell.samples.iter().all(|sample| sample.disturbances == [expected]),
            "{:?}",
            cell.samples[1].disturbances
        );
    });
}

#[test]
fn processes_that_survive_sigkill_are_a_finding() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        bed.agents[0].set_teardown(TeardownReport { unkillable: vec![4711], ..TeardownReport::default() });
        bed.measure(&["figure"]).await;
        assert!(bed.cell().findings.iter().any(|finding| finding.contains("4711")), "{:?}", bed.cell().findings);
    });
}

/// A test that prepares once for all samples and has a cleanup command.
const PREPARED: &str = r#"
name = "prepared"
summary = "a figure"
version = 1
scope = "cell"
command = ["figure"]
cleanup = [["cleanup"]]

[[metric]]
name = "figure"
class = "throughput"
unit = "1/s"
primary = true
regex = 'figure: (\S+)'
"#;

#[test]
fn a_cleanup_that_fails_is_reported_and_recorded() {
    paused(async {
        let mut bed = TestBed::new(|command| match command.argv[0].as_str() {
            "cleanup" => FakeProcess::failing(1, "device is busy"),
            _ => FakeProcess::printing("figure: 10"),
        });
        bed.define(PREPARED);
        let reported = bed.measure(&["prepared"]).await;
        let is_warning =
            |progress: &&Progress| matches!(progress, Progress::Warning(text) if text.contains("device is busy"));
        assert_eq!(reported.iter().filter(is_warning).count(), 1, "{reported:?}");
        let cell = bed.cell();
        assert_eq!(cell.outcome, CellOutcome::Measured);
        assert!(
            cell.findings
                .iter()
                .any(|finding| finding.contains("cleanup failed") && finding.contains("device is busy"))
        );
    });
}

#[test]
fn a_failed_cleanup_is_the_reason_of_a_failed_sample() {
    paused(async {
        let mut bed = TestBed::new(|command| match command.argv[0].as_str() {
            "cleanup" => FakeProcess::failing(9, "device is busy"),
            _ => FakeProcess::printing("figure: 10"),
        });
        bed.define(&PREPARED.replace("scope = \"cell\"", "scope = \"sample\""));
        bed.measure(&["prepared"]).await;
        let CellOutcome::Failed { reason } = bed.cell().outcome else { panic!("{:?}", bed.cell().outcome) };
        assert!(reason.starts_with("crashed (cleanup failed: cleanup: exit status 9"), "{reason}");
    });
}

#[test]
fn an_invalid_time_in_the_journal_is_an_error_with_its_line() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        bed.measure(&["figure"]).await;
        let path = bed.path().join("journal.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let (_, after) = rest.split_once("\"time\":\"").unwrap();
        let (_, after) = after.split_once('"').unwrap();
        std::fs::write(&path, format!("{first}\n{{\"time\":\"yesterday\"{after}")).unwrap();
        let error = bed.try_study().unwrap_err().to_string();
        assert!(error.contains("journal.jsonl, line 2: invalid time `yesterday`"), "{error}");
    });
}

#[test]
fn implausible_figures_are_invalid_and_end_the_cell() {
    paused(async {
        let bed = TestBed::new(figures(|_| 1.2e308));
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.samples.len(), 3, "the maximum number of failed attempts");
        let CellOutcome::Failed { reason } = &cell.outcome else { panic!("{:?}", cell.outcome) };
        assert!(reason.contains("figure is 1.2e308 1/s"), "{reason}");
    });
}

#[test]
fn invalid_output_is_not_a_value() {
    for output in ["figure: fast", "rate: 12", "", "figure: nan", "figure: -3", "figure: 0"] {
        paused(async {
            let bed = TestBed::new(move |_| FakeProcess::printing(output));
            bed.measure(&["figure"]).await;
            let CellOutcome::Failed { reason } = bed.cell().outcome else {
                panic!("{output}: {:?}", bed.cell().outcome)
            };
            assert!(reason.contains("invalid"), "{output}: {reason}");
        });
    }
}

#[test]
fn values_that_differ_by_1000_fail_the_cell_also_when_it_is_resumed() {
    paused(async {
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
    });
}

#[test]
fn contradictions_of_secondary_metrics_are_only_reported() {
    paused(async {
        let count = AtomicU32::new(0);
        let mut bed = TestBed::new(move |_| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            let response = if number == 2 { 5000 } else { 1 };
            FakeProcess::printing(format!("figure: {}\nresponse: {response}\n", steady(number)))
        });
        let response =
            "[[metric]]\nname = \"response\"\nclass = \"latency\"\nunit = \"s\"\nregex = 'response: (\\S+)'\n";
        bed.define(&format!("{FIGURE}{response}"));
        bed.sampling.warm_up = 0;
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.outcome, CellOutcome::Measured);
        let finding = "response is 1 s in sample 0 and 5000 s in sample 2, a factor of 5000: ";
        assert!(cell.findings.iter().any(|text| text.contains(finding)), "{:?}", cell.findings);
    });
}
