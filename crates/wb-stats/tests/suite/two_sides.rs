//! Comparison of two sides: results of SciPy 1.17 (`mannwhitneyu`, `false_discovery_control`, permutation tests,
//! `fisher_exact`, `t`) and NumPy 2.4.

use proptest::prelude::*;
use wb_stats::{
    RunPrior, Samples, VarianceEstimate, WeightedRun, benjamini_hochberg, holm, mean_ratio, median_ratio,
    paired_mean_ratio, paired_tail_p, pooled_quantile_p, quantile_ratio, rank_sum_p, ratio, signed_rank_p, tail_p,
    tail_ratio,
};

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
fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs(), "{actual} is not {expected}");
}

#[test]
fn the_rank_sum_test_agrees_with_scipy() {
    near(rank_sum_p(&A, &B), 0.029304029304029304);
    near(rank_sum_p(&X, &Y), 0.005933461853332812);
    // With ties, over all 462 ways to choose five of eleven.
    near(rank_sum_p(&[5.0, 5.0, 6.0, 7.0, 7.0], &[7.0, 8.0, 9.0, 9.0, 12.0, 5.0]), 0.09090909090909091);
}

#[test]
fn the_signed_rank_test_agrees_with_scipy() {
    near(signed_rank_p(&[0.31, -0.12, 0.74, 0.22, 0.27, -0.05, 0.43, 0.91, -0.33]), 0.12890625);
    // With ties and zeros, over all 256 signs.
    near(signed_rank_p(&[2.0, -1.0, 3.0, 0.0, 2.0, 2.0, -1.0, 4.0, 0.0, 5.0]), 0.0546875);
    let many: Vec<f64> = (0..80).map(|n| (f64::from(n * 37 % 101) - 44.0) / 10.0).collect();
    near(signed_rank_p(&many), 0.08595225229380757);
}

/// `t`, and all 256 ways to exchange the samples within pairs.
#[test]
fn the_mean_and_the_tail_of_pairs_agree_with_scipy() {
    let (a, b) = ([1.0, 4.0, 6.0, 7.5, 9.0, 9.5, 2.5, 3.5], [2.0, 3.0, 8.0, 10.0, 11.0, 12.0, 13.0, 0.5]);
    let [one, other] = [a, b].map(|side| Samples::new(&side).unwrap());
    near(paired_mean_ratio(&one, &other).unwrap().p_value(), 0.20227022777927708);
    near(paired_tail_p(&a, &b, 0.75), 0.125);
}

#[test]
fn the_estimate_and_its_interval_are_those_of_the_sorted_differences() {
    let ratio = ratio(&Samples::new(&A).unwrap(), &Samples::new(&B).unwrap(), 0.95);
    let interval = ratio.interval.unwrap();
    near(ratio.estimate, 1.0480974164766315);
    near(interval.low, 1.0079365079365084);
    near(interval.high, 1.0916666666666666);
    near(interval.confidence, 1.0 - 2.0 * 0.021312021312021312);
}

#[test]
fn false_discoveries_agree_with_scipy() {
    let discoveries = benjamini_hochberg(&[0.01, 0.02, 0.03, 0.5, 0.9], 0.05);
    let expected = [0.05, 0.05, 0.05, 0.625, 0.9];
    discoveries.adjusted.iter().zip(expected).for_each(|(actual, expected)| near(*actual, expected));
    assert_eq!(discoveries.count, 3);
}

/// The intervals of both sides by `binom`, combined by the formula of Zou and Donner.
#[test]
fn the_ratio_of_quantiles_agrees_with_numpy() {
    for (a, b, q, estimate, low, high, confidence) in [
        (&A[..], &B[..], 0.5, 1.0534979423868314, 0.9759038729890234, 1.1123294933185568, 0.96875),
        (&X, &Y, 0.5, 1.201554691837868, 1.0491744715532638, 1.419060233852335, 0.9615226917157997),
        (&X, &Y, 0.9, 1.1761612620508326, 0.8961764251606774, 1.8695308138439346, 0.9697238116441209),
        (&X, &Y, 0.1, 1.1225121627598407, 0.8876838543323398, 1.2885660893974609, 0.969723811644121),
    ] {
        let ratio = quantile_ratio(&Samples::new(a).unwrap(), &Samples::new(b).unwrap(), q, 0.95).unwrap();
        let interval = ratio.interval.unwrap();
        near(ratio.estimate, estimate);
        near(interval.low, low);
        near(interval.high, high);
        near(interval.confidence, confidence);
    }
}

/// `ttest_ind(equal_var=False)` has no ratio; these are its formulas on the standard errors, relative to the
/// means and to their logarithmic mean, whichever is larger.
#[test]
fn the_ratio_of_means_agrees_with_numpy_and_scipy() {
    for (a, b, [estimate, error, degrees, p_value, low, high]) in [
        (
            &A[..],
            &B[..],
            [
                1.0476190476190477,
                0.01678092769770238,
                11.201383224261793,
                0.017880408909866852,
                1.009713166200754,
                1.086947962720763,
            ],
        ),
        (
            &X,
            &Y,
            [
                1.192734085061478,
                0.06243193824987804,
                80.62351936751799,
                0.005990186671364822,
                1.0533962357997586,
                1.3505028301030189,
            ],
        ),
    ] {
        let student = mean_ratio(&Samples::new(a).unwrap(), &Samples::new(b).unwrap()).unwrap();
        let interval = student.ratio(0.95).interval.unwrap();
        near(student.log().exp(), estimate);
        near(student.standard_error(), error);
        near(student.degrees(), degrees);
        near(student.p_value(), p_value);
        near(interval.low, low);
        near(interval.high, high);
    }
}

/// `fisher_exact` of the samples beyond the 64th, the 77th and up to the 21st of 85.
#[test]
fn the_tail_agrees_with_scipy() {
    near(pooled_quantile_p(&X, &Y, 0.75), 0.02219926046276898);
    near(pooled_quantile_p(&X, &Y, 0.9), 0.27220527558781943);
    near(pooled_quantile_p(&X, &Y, 0.25), 0.13658487323421287);
}

fn side() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![0.1..10.0_f64, (1..6_u8).prop_map(f64::from)], 1..40)
}

proptest! {
    #[test]
    fn a_p_value_is_a_probability_and_symmetric(a in side(), b in side()) {
        let p = rank_sum_p(&a, &b);
        prop_assert!(p > 0.0 && p <= 1.0, "{p}");
        prop_assert!((p - rank_sum_p(&b, &a)).abs() < 1e-9);
    }

    #[test]
    fn an_interval_contains_its_estimate_and_scales_with_the_side(a in side(), b in side(), factor in 0.1..10.0_f64) {
        let of = |values: &[f64]| Samples::new(values).unwrap();
        let once = ratio(&of(&a), &of(&b), 0.95);
        let scaled = ratio(&of(&a), &of(&b.iter().map(|x| x * factor).collect::<Vec<_>>()), 0.95);
        prop_assert!((scaled.estimate / once.estimate / factor - 1.0).abs() < 1e-9);
        if let Some(interval) = once.interval {
            prop_assert!(interval.low <= once.estimate && once.estimate <= interval.high);
            prop_assert!(interval.confidence >= 0.95 - 1e-9);
        }
    }

    #[test]
    fn exchanging_the_sides_inverts_every_ratio(a in side(), b in side(), q in 0.01..0.99_f64) {
        let [a, b] = [a, b].map(|side| Samples::new(&side).unwrap());
        let inverse = |x: f64, y: f64| (x * y - 1.0).abs() < 1e-9;
        let quantiles = |a, b| tail_ratio(a, b, q, 0.95).unwrap();
        let means = |a, b| mean_ratio(a, b).map(|ratio| ratio.ratio(0.95));
        let pairs = [(Some(quantiles(&a, &b)), Some(quantiles(&b, &a))), (means(&a, &b), means(&b, &a))];
        for (one, other) in pairs.into_iter().filter_map(|(one, other)| one.zip(other)) {
            prop_assert!(inverse(one.estimate, other.estimate));
            prop_assert!((one.p_value - other.p_value).abs() < 1e-9);
            prop_assert_eq!(one.interval.is_some(), other.interval.is_some());
            if let Some((one, other)) = one.interval.zip(other.interval) {
                prop_assert!(inverse(one.low, other.high) && inverse(one.high, other.low));
                prop_assert!(one.low <= one.high);
            }
        }
    }

    /// A power of two scales without rounding, logarithms aside.
    #[test]
    fn a_change_of_unit_changes_no_ratio(a in side(), b in side(), q in 0.01..0.99_f64, power in -30..30_i32) {
        let [a, b] = [a, b].map(|side| Samples::new(&side).unwrap());
        let scaled = |side: &Samples| {
            Samples::new(&side.in_order().iter().map(|x| x * f64::from(power).exp2()).collect::<Vec<_>>()).unwrap()
        };
        let (c, d) = (scaled(&a), scaled(&b));
        prop_assert_eq!(tail_p(a.in_order(), b.in_order(), q), tail_p(c.in_order(), d.in_order(), q));
        prop_assert_eq!(pooled_quantile_p(a.in_order(), b.in_order(), q), pooled_quantile_p(c.in_order(), d.in_order(), q));
        let same = |x: f64, y: f64| (x / y - 1.0).abs() < 1e-9;
        let (before, after) = (quantile_ratio(&a, &b, q, 0.95).unwrap(), quantile_ratio(&c, &d, q, 0.95).unwrap());
        prop_assert!(same(before.estimate, after.estimate));
        if let Some((before, after)) = before.interval.zip(after.interval) {
            prop_assert!(same(before.low, after.low) && same(before.high, after.high));
        }
        if let Some((before, after)) = mean_ratio(&a, &b).zip(mean_ratio(&c, &d)) {
            prop_assert!((before.log() - after.log()).abs() < 1e-9);
            prop_assert_eq!(before.standard_error(), after.standard_error());
        }
    }

    #[test]
    fn any_finite_samples_are_compared_without_a_panic(
        a in prop::collection::vec(-1e150..1e150_f64, 1..40), b in prop::collection::vec(any::<f32>(), 1..40),
        q in any::<f64>(), confidence in any::<f64>(),
    ) {
        let b: Vec<f64> = b.into_iter().filter(|x| x.is_finite()).map(f64::from).chain([1.0]).collect();
        let [a, b] = [a, b].map(|side| Samples::new(&side).unwrap());
        for (a, b) in [(&a, &b), (&b, &a)] {
            let p_values = [tail_p, pooled_quantile_p].map(|test| test(a.in_order(), b.in_order(), q));
            prop_assert!(p_values.iter().all(|p| *p > 0.0 && *p <= 1.0));
            let finite = |low: f64, high: f64| low.is_finite() && high.is_finite();
            let interval = median_ratio(a, b, confidence).and_then(|ratio| ratio.interval);
            prop_assert!(interval.is_none_or(|interval| finite(interval.low, interval.high)));
            let mean = mean_ratio(a, b).map(|ratio| ratio.ratio(confidence));
            prop_assert!(mean.is_none_or(|mean| (0.0..=1.0).contains(&mean.p_value)));
        }
    }

    #[test]
    fn runs_are_compared_without_a_panic_and_symmetrically(
        stddev in prop_oneof![Just(0.0), 0.0..1.0_f64], log in -700.0..700.0_f64, variance in prop_oneof![Just(0.0), 0.0..1e3_f64],
        a in prop::collection::vec((-1e3..1e3_f64, 1e-3..1e3_f64), 1..6),
        b in prop::collection::vec((-1e3..1e3_f64, 1e-3..1e3_f64), 1..6),
    ) {
        let runs = |side: &[(f64, f64)]| side.iter().map(|&(level, weight)| WeightedRun { level, weight }).collect::<Vec<_>>();
        let (a, b, prior) = (runs(&a), runs(&b), RunPrior::new(stddev).unwrap());
        let sampling = VarianceEstimate { variance, degrees: 18.0 };
        let source = prior.source(&a, &b, variance).unwrap();
        prop_assert_eq!(prior.source(&b, &a, variance), Some(source));
        let ratio = |log, a: &[WeightedRun], b: &[WeightedRun]| prior.ratio(log, a, b, sampling, source).unwrap();
        let (one, other) = (ratio(log, &a, &b), ratio(-log, &b, &a));
        prop_assert!((0.0..=1.0).contains(&one.p_value()));
        prop_assert!((one.p_value() - other.p_value()).abs() < 1e-9);
        prop_assert!(one.variance().variance >= variance * (1.0 - 1e-9));
        // Only shares of the samples matter.
        let double: Vec<_> = a.iter().map(|run| WeightedRun { weight: 2.0 * run.weight, ..*run }).collect();
        prop_assert_eq!(ratio(log, &double, &b), one);
    }

    #[test]
    fn holms_p_values_never_decrease(p in prop::collection::vec(0.0..=1.0_f64, 0..20)) {
        for (given, adjusted) in p.iter().zip(holm(&p)) {
            prop_assert!(adjusted >= *given && adjusted <= 1.0);
        }
    }

    #[test]
    fn adjusted_p_values_keep_their_order_and_never_decrease(p in prop::collection::vec(0.0..=1.0_f64, 0..50)) {
        let discoveries = benjamini_hochberg(&p, 0.05);
        for (given, adjusted) in p.iter().zip(&discoveries.adjusted) {
            prop_assert!(adjusted >= given && *adjusted <= 1.0);
        }
        for i in 0..p.len() {
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || discoveries.adjusted[i] <= discoveries.adjusted[j] + 1e-15);
            }
        }
    }
}
