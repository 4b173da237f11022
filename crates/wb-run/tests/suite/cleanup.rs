//! What cleaning up on workers finds is recorded, whatever else fails.

use wb_agent::protocol::Request;
use wb_agent::{Fault, RevertedChange, TeardownReport, TuneReport};
use wb_knobs::tune::{KnobOutcome, KnobResult, KnobSetting};
use wb_model::CellOutcome;
use wb_record::journal::AttemptEnd;
use wb_run::Progress;
use wb_sys::undo::RevertOutcome;
use wb_test_worker::FakeProcess;

use crate::consistency::{BUILT, built};
use crate::testbed::{TestBed, figures, steady};

/// A teardown that finds a setting changed by another process.
fn conflict() -> TeardownReport {
    let outcome = RevertOutcome::Conflict { found: "888".to_owned() };
    let change = RevertedChange { description: "/proc/sys/vm/swappiness was `60`".to_owned(), outcome };
    TeardownReport { reverted: vec![change], ..TeardownReport::clean() }
}

/// A teardown that leaves a process.
fn unkillable() -> TeardownReport {
    TeardownReport { unkillable: vec![4711], ..TeardownReport::clean() }
}

#[tokio::test(start_paused = true)]
async fn a_setting_changed_by_another_process_marks_the_sample_with_both_values() {
    let bed = TestBed::new(figures(steady));
    bed.agents[0].set_teardown(conflict);
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    let expected = "/proc/sys/vm/swappiness was `60`: left at `888`, since something else changed it";
    assert!(
        cell.attempts.iter().all(|sample| sample.disturbances == [expected]),
        "{:?}",
        cell.attempts[1].disturbances
    );
}

#[tokio::test(start_paused = true)]
async fn processes_that_survive_sigkill_are_a_finding() {
    let bed = TestBed::new(figures(steady));
    bed.agents[0].set_teardown(unkillable);
    bed.measure(&["figure"]).await;
    assert!(bed.cell().findings.iter().any(|finding| finding.contains("4711")), "{:?}", bed.cell().findings);
}

/// A test that prepares once for all samples and has a cleanup command.
const PREPARED: &str = r#"
name = "prepared"
summary = "a figure"
version = 1
scope = "cell"
command = ["figure"]
setup = [["setup"]]
cleanup = [["cleanup"]]
"#;

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_fails_is_reported_and_recorded() {
    let mut bed = TestBed::new(|command| match command.argv[0].as_str() {
        "cleanup" => FakeProcess::failing(1, "device is busy"),
        _ => FakeProcess::printing("figure: 10"),
    });
    bed.define_with_files(PREPARED);
    let reported = bed.measure(&["prepared"]).await;
    let is_warning =
        |progress: &&Progress| matches!(progress, Progress::Warning(text) if text.contains("device is busy"));
    assert_eq!(reported.iter().filter(is_warning).count(), 1, "{reported:?}");
    let cell = bed.cell();
    assert_eq!(cell.outcome, CellOutcome::Measured);
    assert!(
        cell.findings.iter().any(|finding| finding.contains("cleanup failed") && finding.contains("device is busy"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_cleanup_is_the_reason_of_a_failed_sample() {
    let mut bed = TestBed::new(|command| match command.argv[0].as_str() {
        "cleanup" => FakeProcess::failing(9, "device is busy"),
        _ => FakeProcess::printing("figure: 10"),
    });
    bed.define_with_files(&PREPARED.replace("scope = \"cell\"", "scope = \"sample\""));
    bed.measure(&["prepared"]).await;
    let CellOutcome::Failed { reason } = bed.cell().outcome else { panic!("{:?}", bed.cell().outcome) };
    assert!(reason.starts_with("crashed (cleanup failed: cleanup: exit status 9"), "{reason}");
}

/// The finding of [`unkillable`].
const SURVIVED: &str = "processes survived SIGKILL: [4711]";

/// Counts the groups of an attempt that left a process.
fn survivals(ended: &AttemptEnd) -> usize {
    ended.findings.iter().filter(|finding| *finding == SURVIVED).count()
}

/// Creates an environment with the test [`PREPARED`], one of whose programs fails.
fn prepared_with_failing(program: &'static str) -> TestBed {
    let mut bed = TestBed::new(move |command| match command.argv[0].as_str() {
        name if name == program => FakeProcess::failing(1, "device is busy"),
        _ => FakeProcess::printing("figure: 10"),
    });
    bed.define_with_files(PREPARED);
    bed.agents[0].set_teardown(unkillable);
    bed
}

#[tokio::test(start_paused = true)]
async fn processes_left_by_the_groups_of_a_failed_sample_are_all_recorded() {
    let bed = prepared_with_failing("figure");
    bed.measure(&["prepared"]).await;
    for ended in bed.ended_attempts() {
        // Of the group of the preparation and of that of the attempt.
        assert_eq!(survivals(&ended), 2, "{:?}", ended.findings);
    }
}

#[tokio::test(start_paused = true)]
async fn processes_left_by_a_failed_preparation_are_recorded() {
    let bed = prepared_with_failing("setup");
    bed.measure(&["prepared"]).await;
    assert_eq!(survivals(&bed.ended_attempts()[0]), 2);
}

#[tokio::test(start_paused = true)]
async fn processes_left_by_a_failed_cleanup_are_recorded_with_its_failure() {
    let bed = prepared_with_failing("cleanup");
    bed.measure(&["prepared"]).await;
    assert_eq!(bed.cleanup_problems(), ["cleanup: exit status 1: device is busy", SURVIVED]);
}

#[tokio::test(start_paused = true)]
async fn processes_left_by_tools_are_recorded() {
    let mut bed = TestBed::new(figures(steady));
    bed.tools = vec!["sar 1".to_owned()];
    bed.agents[0].set_teardown(unkillable);
    bed.measure(&["figure"]).await;
    assert_eq!(survivals(&bed.ended_attempts()[0]), 2);
}

#[tokio::test(start_paused = true)]
async fn processes_left_by_tools_that_cannot_all_be_started_are_recorded() {
    let mut bed = TestBed::new(figures(steady));
    bed.tools = vec!["sar 1".to_owned(), "'unclosed".to_owned()];
    bed.agents[0].set_teardown(unkillable);
    bed.measure(&["figure"]).await;
    let ended = &bed.ended_attempts()[0];
    assert_eq!(ended.outcome.to_string(), "refused (invalid tool command `'unclosed`: unclosed quote)");
    assert_eq!(survivals(ended), 2, "{:?}", ended.findings);
}

#[tokio::test(start_paused = true)]
async fn a_setting_changed_during_a_failed_sample_is_recorded() {
    let bed = TestBed::new(|_| FakeProcess::failing(7, ""));
    bed.agents[0].set_teardown(conflict);
    bed.measure(&["figure"]).await;
    assert_eq!(bed.ended_attempts()[0].disturbances.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_removed_fails_the_sample_and_keeps_the_rest_of_the_report() {
    let bed = TestBed::new(figures(steady));
    bed.agents[0].set_teardown(|| {
        let busy = Fault::File { path: "/tmp/g".to_owned(), why: "busy".to_owned(), missing: false };
        TeardownReport { folder_error: Some(busy), ..conflict() }
    });
    bed.measure(&["figure"]).await;
    let ended = &bed.ended_attempts()[0];
    assert_eq!(ended.outcome.to_string(), "refused (on `local`: `/tmp/g`: busy)");
    assert_eq!(ended.disturbances.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_knobs_did_is_recorded_although_a_later_step_fails() {
    let bed = TestBed::new(|command| match command.argv[0].as_str() {
        "sh" => FakeProcess::failing(1, "no such file"),
        _ => FakeProcess::printing("figure: 10"),
    });
    bed.agents[0].set_tune(|call| {
        let setting = call.knobs[0].clone();
        let result = KnobResult {
            knob: setting.knob,
            target: "the machine".to_owned(),
            before: Some("60".to_owned()),
            requested: setting.value,
            outcome: KnobOutcome::Skipped { reason: "read-only".to_owned() },
            resets: Vec::new(),
        };
        Ok(TuneReport(vec![result]))
    });
    bed.measure(&["figure:knobs.swappiness=10,before=nosuch"]).await;
    let ended = &bed.ended_attempts()[0];
    assert_eq!(ended.findings, ["the knob `swappiness` of the machine was left unchanged at `60`: read-only"]);
    assert!(ended.artefacts.iter().any(|artefact| artefact.path == "knobs.json"));
}

#[tokio::test(start_paused = true)]
async fn knobs_that_exclude_each_other_are_found_before_anything_is_measured() {
    let bed = TestBed::new(|_| FakeProcess::printing("figure: 10"));
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = calls.clone();
    bed.agents[0].set_tune(move |call| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let is_excluded = call.knobs.iter().any(|setting| setting.knob == "io-scheduler" && setting.value == "none");
        let result = |setting: &KnobSetting| KnobResult {
            knob: setting.knob.clone(),
            target: "sda".to_owned(),
            before: None,
            requested: setting.value.clone(),
            outcome: if setting.knob == "nr-requests" && is_excluded {
                KnobOutcome::Unsupported { reason: "the kernel refuses 200: Invalid argument".to_owned() }
            } else {
                KnobOutcome::Unchanged
            },
            resets: Vec::new(),
        };
        let results: Vec<KnobResult> = call.knobs.iter().map(result).collect();
        match results.iter().find_map(|result| result.outcome.reason()) {
            Some(reason) if call.strict => Err(Fault::Refused { why: reason.to_owned() }),
            _ => Ok(TuneReport(results)),
        }
    });
    bed.measure(&["figure:knobs.io-scheduler=[none,bfq],knobs.nr-requests=200"]).await;
    // Only the cell that can be measured has attempts.
    assert!(bed.ended_attempts().iter().all(|ended| ended.cell.to_string().contains("bfq")));
    assert!(!bed.ended_attempts().is_empty());
    let outcomes: Vec<String> = bed.study().cells.iter().map(|cell| cell.outcome.to_string()).collect();
    let unsupported: Vec<&String> = outcomes.iter().filter(|outcome| outcome.starts_with("unsupported")).collect();
    assert_eq!(
        unsupported,
        [
            "unsupported (cannot set the knob `nr-requests` to 200 on local together with io-scheduler=none: the kernel refuses \
          200: Invalid argument)"
        ]
    );
    // One trial for each combination, one of the refused knob alone, and one setting for each attempt.
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 3 + bed.ended_attempts().len());
}

// The knobs beside it were blamed, too.
#[tokio::test(start_paused = true)]
async fn a_knob_that_is_refused_alone_is_reported_alone() {
    let bed = TestBed::new(|_| FakeProcess::printing("figure: 10"));
    bed.agents[0].set_tune(move |call| {
        let result = |setting: &KnobSetting| KnobResult {
            knob: setting.knob.clone(),
            target: "sda".to_owned(),
            before: None,
            requested: setting.value.clone(),
            outcome: if setting.knob == "nr-requests" {
                KnobOutcome::Unsupported { reason: "the kernel refuses 200: Invalid argument".to_owned() }
            } else {
                KnobOutcome::Unchanged
            },
            resets: Vec::new(),
        };
        Ok(TuneReport(call.knobs.iter().map(result).collect()))
    });
    bed.measure(&["figure:knobs.io-scheduler=none,knobs.nr-requests=200"]).await;
    assert_eq!(
        bed.study().cells[0].outcome.to_string(),
        "unsupported (cannot set the knob `nr-requests` to 200 on local: the kernel refuses 200: Invalid argument)"
    );
}

#[tokio::test(start_paused = true)]
async fn processes_left_by_a_build_before_a_resumed_run_are_recorded() {
    let mut bed = built(&format!("scope = \"sample\"{BUILT}"), || 1);
    bed.measure(&["built"]).await;
    assert_eq!(bed.cleanup_problems(), [""; 0]);
    bed.agents[0].set_teardown(unkillable);
    bed.sampling.min_samples = 9;
    bed.measure(&["built"]).await;
    assert_eq!(bed.cleanup_problems(), [SURVIVED]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_lost_during_the_teardown_loses_its_attempt() {
    let (end, _, [a, b]) = crate::workers::losing_b(|request| matches!(request, Request::Teardown(_))).await;
    end.unwrap();
    assert_eq!(a, CellOutcome::Measured);
    let CellOutcome::Failed { reason } = b else { panic!("{b:?}") };
    assert!(reason.contains("lost"), "{reason}");
}
