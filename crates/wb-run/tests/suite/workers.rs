//! Several workers that measure at the same time.

use wb_model::CellOutcome;

use crate::testbed::{TestBed, figures, paused, steady};

#[test]
fn each_workers_figures_stand_beside_those_of_all() {
    paused(async {
        let bed = TestBed::with_workers(&["a", "b"], figures(steady));
        bed.measure(&["figure"]).await;
        let cell = bed.cell();
        assert_eq!(cell.outcome, CellOutcome::Measured);
        let medians: Vec<(Option<String>, f64)> = cell
            .metrics
            .iter()
            .map(|it| (it.worker.as_ref().map(ToString::to_string), it.summary.as_ref().unwrap().median.round()))
            .collect();
        assert_eq!(medians, [(None, 20.0), (Some("a".to_owned()), 10.0), (Some("b".to_owned()), 10.0)]);
    });
}
