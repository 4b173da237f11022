//! Resuming a run folder.

use wb_model::{CellOutcome, Class, MetricKey, Purpose};
use wb_run::{RunEnd, RunError};

use crate::testbed::{TestBed, figures, paused, steady};

#[test]
fn a_complete_folder_takes_no_further_sample() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        bed.measure(&["figure:n=[1,2]"]).await;
        let attempts = bed.attempts();
        let (end, _) = bed.run(&["figure:n=[1,2]"]).await;
        assert_eq!(end.unwrap(), RunEnd::Complete);
        assert_eq!(bed.attempts(), attempts);
    });
}

#[test]
fn an_interrupted_run_repeats_nothing_and_loses_nothing() {
    paused(async {
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
        let finished = |study: &wb_study::Study| {
            let samples = study.cells.iter().flat_map(|cell| &cell.samples);
            samples
                .filter(|sample| sample.outcome.is_completed())
                .map(|sample| sample.folder.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(finished(&before).len(), 4);

        bed.cancel().send_replace(false);
        bed.measure(&["figure:n=[1,2]"]).await;
        let after = bed.study();
        assert!(after.cells.iter().all(|cell| cell.outcome == CellOutcome::Measured));
        assert!(finished(&before).iter().all(|folder| finished(&after).contains(folder)));
        // A warm-up and six samples of each cell, and the interrupted one.
        assert_eq!(bed.attempts().len(), 2 * 7 + 1);
    });
}

#[test]
fn more_precision_adds_samples() {
    paused(async {
        let mut bed = TestBed::new(figures(steady));
        bed.measure(&["figure"]).await;
        bed.sampling.min_samples = 9;
        bed.measure(&["figure"]).await;
        let samples = bed.attempts().into_iter().filter(|(_, purpose, _)| *purpose == Purpose::Sample);
        assert_eq!(samples.map(|(.., sample)| sample).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    });
}

#[test]
fn a_cell_with_another_definition_is_refused() {
    paused(async {
        let mut bed = TestBed::new(figures(steady));
        bed.measure(&["figure"]).await;
        let attempts = bed.attempts();
        bed.define(&crate::testbed::FIGURE.replace("version = 1", "version = 2"));
        let (end, _) = bed.run(&["figure"]).await;
        assert!(matches!(end, Err(RunError::Redefined { .. })), "{end:?}");
        assert_eq!(bed.attempts(), attempts);
    });
}

#[test]
fn samples_with_changed_artefacts_are_repeated() {
    paused(async {
        let bed = TestBed::new(figures(steady));
        bed.measure(&["figure"]).await;
        let first = bed.cell().samples[1].folder.clone();
        std::fs::write(bed.path().join(first).join("run.stdout"), "figure: 1000\n").unwrap();
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.outcome, CellOutcome::Measured);
        assert_eq!(cell.samples.len(), 8, "the changed sample stays, and one more is taken");
        assert!(
            cell.samples
                .iter()
                .filter(|sample| sample.counted)
                .all(|sample| sample.values[&MetricKey::new(Class::Throughput, "figure")] < 11.0)
        );
    });
}
