//! Comparing two sides, against SciPy 1.17 (`mannwhitneyu`, `false_discovery_control`) and its permutations.

use proptest::prelude::*;
use wb_stats::{Samples, benjamini_hochberg, rank_sum_p, ratio};

const A: [f64; 8] = [12.1, 11.8, 12.4, 13.0, 11.9, 12.2, 12.6, 12.0];
const B: [f64; 6] = [12.9, 12.35, 13.1, 12.7, 12.55, 13.4];

const X: [f64; 40] = [
    0.786, 0.672, 0.928, 1.134, 1.406, 1.033, 0.847, 0.79, 1.252, 1.633, 1.085, 0.691, 0.75, 1.616, 1.063, 0.595,
    0.975, 0.705, 0.828, 0.864, 0.807, 1.181, 0.981, 0.838, 1.131, 1.283, 0.611, 0.926, 0.745, 0.949, 0.679, 1.006,
    0.989, 0.913, 0.73, 0.888, 0.721, 0.666, 1.07, 0.717,
];
const Y: [f64; 45] = [
    1.57, 1.37, 0.607, 1.199, 0.794, 1.116, 1.12, 0.609, 1.03, 1.024, 1.475, 0.775, 1.379, 0.795, 1.001, 0.859, 1.707,
    1.311, 2.292, 1.34, 1.424, 1.422, 0.921, 1.082, 1.657, 0.981, 1.17, 1.098, 1.327, 0.991, 1.056, 1.189, 1.14, 0.853,
    1.446, 0.749, 0.771, 0.752, 1.477, 0.992, 0.826, 0.786, 1.254, 0.805, 0.755,
];

#[track_caller]
fn near(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs(), "{ours} is not {theirs}");
}

#[test]
fn the_rank_sum_test_is_scipys() {
    near(rank_sum_p(&A, &B), 0.029304029304029304);
    near(rank_sum_p(&X, &Y), 0.005933461853332812);
    // With ties, over all 462 ways to choose five of eleven.
    near(rank_sum_p(&[5.0, 5.0, 6.0, 7.0, 7.0], &[7.0, 8.0, 9.0, 9.0, 12.0, 5.0]), 0.09090909090909091);
}

#[test]
fn the_estimate_and_its_interval_are_those_of_the_sorted_differences() {
    let ratio = ratio(&Samples::new(&A).unwrap(), &Samples::new(&B).unwrap(), 0.95).unwrap();
    let interval = ratio.interval.unwrap();
    near(ratio.estimate, 1.0480974164766315);
    near(interval.low, 1.0079365079365084);
    near(interval.high, 1.0916666666666666);
    near(interval.confidence, 1.0 - 2.0 * 0.021312021312021312);
}

#[test]
fn false_discoveries_are_scipys() {
    let found = benjamini_hochberg(&[0.01, 0.02, 0.03, 0.5, 0.9], 0.05);
    let theirs = [0.05, 0.05, 0.05, 0.625, 0.9];
    found.adjusted.iter().zip(theirs).for_each(|(ours, theirs)| near(*ours, theirs));
    assert_eq!(found.count, 3);
}

fn side() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![0.1..10.0_f64, (1..6_u8).prop_map(f64::from)], 1..40)
}

proptest! {
    #[test]
    fn a_probability_is_one_and_both_ways_the_same(a in side(), b in side()) {
        let p = rank_sum_p(&a, &b);
        prop_assert!(p > 0.0 && p <= 1.0, "{p}");
        prop_assert!((p - rank_sum_p(&b, &a)).abs() < 1e-9);
    }

    #[test]
    fn an_interval_surrounds_its_estimate_and_scales_with_the_side(a in side(), b in side(), factor in 0.1..10.0_f64) {
        let of = |values: &[f64]| Samples::new(values).unwrap();
        let once = ratio(&of(&a), &of(&b), 0.95).unwrap();
        let scaled = ratio(&of(&a), &of(&b.iter().map(|x| x * factor).collect::<Vec<_>>()), 0.95).unwrap();
        prop_assert!((scaled.estimate / once.estimate / factor - 1.0).abs() < 1e-9);
        if let Some(interval) = once.interval {
            prop_assert!(interval.low <= once.estimate && once.estimate <= interval.high);
            prop_assert!(interval.confidence >= 0.95 - 1e-9);
        }
    }

    #[test]
    fn adjusted_probabilities_keep_their_order_and_never_shrink(p in prop::collection::vec(0.0..=1.0_f64, 0..50)) {
        let found = benjamini_hochberg(&p, 0.05);
        for (given, adjusted) in p.iter().zip(&found.adjusted) {
            prop_assert!(adjusted >= given && *adjusted <= 1.0);
        }
        for i in 0..p.len() {
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || found.adjusted[i] <= found.adjusted[j] + 1e-15);
            }
        }
    }
}
