//! Resuming a run folder.

use wb_model::{AttemptPurpose, CellOutcome, Class, MetricKey};
use wb_run::{RunEnd, RunError};

use crate::testbed::{TestBed, figures, steady};

#[tokio::test(start_paused = true)]
async fn a_complete_folder_takes_no_further_sample() {
    let bed = TestBed::new(figures(steady));
    bed.measure(&["figure:n=[1,2]"]).await;
    let attempts = bed.attempts();
    let (end, _) = bed.run(&["figure:n=[1,2]"]).await;
    assert_eq!(end.unwrap(), RunEnd::AlreadyComplete);
    assert_eq!(bed.attempts(), attempts);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_repeats_nothing_and_loses_nothing() {
    let bed = TestBed::new(figures(steady));
    let cancel = bed.cancel();
    // Samples take a second each: cancel during the fifth.
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(4500)).await;
        cancel.send_replace(true);
    });
    let (end, _) = bed.run(&["figure:n=[1,2]"]).await;
    assert_eq!(end.unwrap(), RunEnd::Interrupted);
    let before = bed.study();
    let finished = |study: &wb_results::Study| {
        let samples = study.cells.iter().flat_map(|cell| &cell.attempts);
        samples.filter(|sample| sample.outcome.is_completed()).map(|sample| sample.folder.clone()).collect::<Vec<_>>()
    };
    assert_eq!(finished(&before).len(), 4);

    bed.cancel().send_replace(false);
    bed.measure(&["figure:n=[1,2]"]).await;
    let after = bed.study();
    assert!(after.cells.iter().all(|cell| cell.outcome == CellOutcome::Measured));
    assert!(finished(&before).iter().all(|folder| finished(&after).contains(folder)));
    // A warm-up and six samples of each cell, and the interrupted one.
    assert_eq!(bed.attempts().len(), 2 * 7 + 1);
}

#[tokio::test(start_paused = true)]
async fn more_precision_adds_samples() {
    let mut bed = TestBed::new(figures(steady));
    bed.measure(&["figure"]).await;
    bed.sampling.min_samples = 9;
    bed.measure(&["figure"]).await;
    let samples = bed.attempts().into_iter().filter(|(_, purpose, _)| *purpose == AttemptPurpose::Sample);
    assert_eq!(samples.map(|(.., sample)| sample).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_extended_by_cells_and_samples() {
    let mut bed = TestBed::new(figures(steady));
    bed.measure(&["figure"]).await;
    bed.sampling.min_samples = 8;
    bed.measure(&["figure:n=[1,2]"]).await;
    let study = bed.study();
    let counted: Vec<usize> =
        study.cells.iter().map(|cell| cell.attempts.iter().filter(|sample| sample.counted).count()).collect();
    assert_eq!(counted, [8, 8]);
    assert_eq!(bed.attempts().len(), 2 * (1 + 8), "a warm-up of each, and nothing is repeated");
}

#[tokio::test(start_paused = true)]
async fn a_cell_with_another_definition_is_refused() {
    let mut bed = TestBed::new(figures(steady));
    bed.measure(&["figure"]).await;
    let attempts = bed.attempts();
    bed.define(&crate::testbed::FIGURE.replace("version = 1", "version = 2"));
    let (end, _) = bed.run(&["figure"]).await;
    assert!(matches!(end, Err(RunError::Redefined { .. })), "{end:?}");
    assert_eq!(bed.attempts(), attempts);
}

#[tokio::test(start_paused = true)]
async fn samples_with_changed_artefacts_are_repeated() {
    let bed = TestBed::new(figures(steady));
    bed.measure(&["figure"]).await;
    let first = bed.cell().attempts[1].folder.clone();
    std::fs::write(bed.path().join(first).join("run.stdout"), "figure: 1000\n").unwrap();
    let damaged = bed.cell().attempts[1].clone();
    assert_eq!(damaged.validity.unwrap().to_string(), "invalid (output: its artefacts were modified)");
    assert!(damaged.values.is_empty(), "{:?}", damaged.values);
    bed.measure(&["figure"]).await;
    let cell = bed.cell();
    assert_eq!(cell.outcome, CellOutcome::Measured);
    assert_eq!(cell.metrics[0].summary.as_ref().unwrap().n, 6);
    assert_eq!(cell.attempts.len(), 8, "the changed sample stays, and one more is taken");
    assert!(
        cell.attempts
            .iter()
            .filter(|sample| sample.counted)
            .all(|sample| sample.values[&MetricKey::new(Class::Throughput, "figure")] < 11.0)
    );
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_last_line_of_the_journal_costs_one_sample_and_an_incomplete_other_line_is_an_error() {
    let mut bed = TestBed::new(figures(steady));
    bed.sampling.warm_up = 0;
    bed.measure(&["figure"]).await;
    let path = bed.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let ended = "\"event\":\"attempt-ended\"";
    std::fs::write(&path, &text[..text.rfind(ended).unwrap() + 40]).unwrap();
    bed.measure(&["figure"]).await;
    assert_eq!(bed.attempts().len(), 6);
    std::fs::write(&path, text.replacen(ended, "\"event\":\"atte", 1)).unwrap();
    let error = bed.try_study().unwrap_err().to_string();
    assert!(error.contains("journal.jsonl:3:"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn other_files_in_a_run_folder_are_preserved() {
    let bed = TestBed::new(figures(steady));
    bed.measure(&["figure"]).await;
    let notes = ["notes.txt", "Localhost/figure/0000/n=1/notes.txt"].map(|name| bed.path().join(name));
    notes.iter().for_each(|path| std::fs::write(path, "mine").unwrap());
    assert_eq!(bed.write_results().cells[0].outcome, CellOutcome::Measured);
    assert!(notes.iter().all(|path| std::fs::read_to_string(path).unwrap() == "mine"));
}
