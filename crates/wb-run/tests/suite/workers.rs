//! Several workers that measure concurrently.

use std::sync::atomic::{AtomicU32, Ordering};

use wb_agent::protocol::{Request, TeardownReport};
use wb_model::CellOutcome;
use wb_run::{Progress, RunEnd, RunError};

use crate::testbed::{TestBed, figures, steady};

#[tokio::test(start_paused = true)]
async fn figures_are_reported_per_worker_and_in_total() {
    let bed = TestBed::with_workers(&["a", "b"], figures(steady));
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.outcome, CellOutcome::Measured);
    let medians: Vec<(Option<String>, f64)> = cell
        .metrics
        .iter()
        .map(|metric| {
            (metric.worker.as_ref().map(ToString::to_string), metric.summary.as_ref().unwrap().median.round())
        })
        .collect();
    assert_eq!(medians, [(None, 20.0), (Some("a".to_owned()), 10.0), (Some("b".to_owned()), 10.0)]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_changes_while_it_is_measured_is_a_finding_of_its_cells() {
    let bed = TestBed::with_workers(&["a", "b"], figures(steady));
    let (plan, b) = (["figure:on=a", "figure:on=b"], bed.agents[1].clone());
    bed.agents[1].set_teardown(move || {
        b.change_facts(|facts| facts.cpus.truncate(1));
        TeardownReport::clean()
    });
    let (end, events) = bed.run(&plan).await;
    assert_eq!(end.unwrap(), RunEnd::Finished);
    let change = "`b` changed during the run, after the plan was made for it: CPUs: 0-1 before, 0 now";
    let warned = |event: &Progress| matches!(event, Progress::Warning(text) if text == change);
    assert!(events.iter().any(warned), "{events:?}");
    let found = bed.study().cells.into_iter().map(|cell| cell.findings.contains(&change.to_owned()));
    assert_eq!(found.collect::<Vec<_>>(), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn one_machine_under_two_names_is_not_measured() {
    let bed = TestBed::with_workers(&["a", "b"], figures(steady));
    bed.agents[1].set_announced(vec![bed.agents[0].holder()]);
    let (end, _) = bed.run(&["figure"]).await;
    let Err(error @ RunError::SameMachine { .. }) = end else { panic!("{end:?}") };
    assert_eq!(error.to_string(), "`b` and `a` are the same machine");
}

/// Runs a cell on each of two workers, of which `b` is lost at the first matching request; returns the result of the
/// run, its warnings, and the outcomes of both cells.
pub(crate) async fn losing_b(
    matches: impl Fn(&Request) -> bool + Send + 'static,
) -> (Result<RunEnd, RunError>, Vec<String>, [CellOutcome; 2]) {
    let bed = TestBed::with_workers(&["a", "b"], figures(steady));
    bed.agents[1].disconnect_at(matches);
    let (end, events) = bed.run(&["figure:id=on-a,on=a", "figure:id=on-b,on=b"]).await;
    let warning = |progress| match progress {
        Progress::Warning(text) => Some(text),
        _ => None,
    };
    let [a, b] = &bed.study().cells[..] else { panic!("two cells") };
    (end, events.into_iter().filter_map(warning).collect(), [a.outcome.clone(), b.outcome.clone()])
}

#[tokio::test(start_paused = true)]
async fn a_worker_lost_before_the_first_sample_ends_only_its_own_cells() {
    for at_announcement in [true, false] {
        let (end, warnings, [a, b]) = losing_b(move |request| match request {
            Request::Announce(_) => at_announcement,
            request => matches!(request, Request::Environment(_)),
        })
        .await;
        assert_eq!(end.unwrap(), RunEnd::Finished);
        let expected = "the worker `b` is lost: the cable was pulled; its environment at the start is not recorded";
        assert_eq!(warnings, [expected]);
        let reason = "its worker `b` is lost".to_owned();
        assert_eq!((a, b), (CellOutcome::Measured, CellOutcome::Failed { reason }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_lost_during_the_lookup_of_programs_leaves_its_cells_unsupported() {
    let (end, _, [a, b]) = losing_b(|request| matches!(request, Request::Which(_))).await;
    assert_eq!(end.unwrap(), RunEnd::Finished);
    let reason = "the worker `b` is lost: the cable was pulled".to_owned();
    assert_eq!((a, b), (CellOutcome::Measured, CellOutcome::Unsupported { reason }));
}

#[tokio::test(start_paused = true)]
async fn a_worker_lost_after_the_last_sample_costs_no_cell() {
    let environments = AtomicU32::new(0);
    let (end, warnings, outcomes) = losing_b(move |request| {
        matches!(request, Request::Environment(_)) && environments.fetch_add(1, Ordering::Relaxed) == 1
    })
    .await;
    assert_eq!(end.unwrap(), RunEnd::Finished);
    let expected = "the worker `b` is lost: the cable was pulled; its environment at the end is not recorded";
    assert_eq!(warnings, [expected]);
    assert_eq!(outcomes, [CellOutcome::Measured, CellOutcome::Measured]);
}

#[tokio::test(start_paused = true)]
async fn losing_the_last_worker_before_the_first_sample_is_an_error_and_ends_all_cells() {
    let bed = TestBed::new(figures(steady));
    bed.agents[0].disconnect_at(|request| matches!(request, Request::Environment(_)));
    let (end, _) = bed.run(&["figure"]).await;
    assert!(matches!(end, Err(RunError::Lost { .. })), "{end:?}");
    let reason = "its worker `local` is lost".to_owned();
    assert_eq!(bed.cell().outcome, CellOutcome::Failed { reason });
}
