//! Order of samples.

use std::collections::BTreeSet;

use wb_model::AttemptPurpose;
use wb_plan::SamplingOrder;

use crate::testbed::{TestBed, figures, steady};

#[tokio::test(start_paused = true)]
async fn each_round_samples_every_unfinished_cell_once() {
    let bed = TestBed::new(figures(steady));
    bed.measure(&["figure:n=[1,2,3]"]).await;
    let samples: Vec<_> =
        bed.attempts().into_iter().filter(|(_, purpose, _)| *purpose == AttemptPurpose::Sample).collect();
    for round in samples.chunks(3) {
        let cases: BTreeSet<&String> = round.iter().map(|(case, ..)| case).collect();
        assert_eq!(cases.len(), 3, "{samples:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_give_equal_orders_and_different_seeds_different_ones() {
    let order = async |seed| {
        let mut bed = TestBed::new(figures(steady));
        bed.sampling.seed = Some(seed);
        bed.measure(&["figure:n=[1,2,3,4,5]"]).await;
        bed.attempts()
    };
    assert_eq!(order(1).await, order(1).await);
    assert_ne!(order(1).await, order(2).await);
}

#[tokio::test(start_paused = true)]
async fn sequential_order_finishes_each_cell_before_the_next() {
    let mut bed = TestBed::new(figures(steady));
    bed.sampling.order = SamplingOrder::Sequential;
    bed.measure(&["figure:n=[1,2]"]).await;
    let cases: Vec<String> = bed.attempts().into_iter().map(|(case, ..)| case).collect();
    let changes = cases.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 1, "{cases:?}");
}

#[tokio::test(start_paused = true)]
async fn every_cell_warms_up_once_before_its_first_sample() {
    let bed = TestBed::new(figures(steady));
    bed.measure(&["figure:n=[1,2]"]).await;
    for case in ["n=1", "n=2"] {
        let of_case: Vec<AttemptPurpose> =
            bed.attempts().into_iter().filter(|(other, ..)| other == case).map(|(_, purpose, _)| purpose).collect();
        assert_eq!(of_case[0], AttemptPurpose::WarmUp);
        assert_eq!(of_case.iter().filter(|purpose| **purpose == AttemptPurpose::WarmUp).count(), 1);
    }
}
