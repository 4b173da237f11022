//! Properties that hold for any samples.

use proptest::collection::vec;
use proptest::prelude::*;
use wb_stats::{
    Budget, Dispersion, STOPPING_CONFIDENCE, Samples, SamplingDecision, SamplingRule, Summary, dependence, dip,
    median_interval, outliers, paired_ratio, quantile_interval, trend, widened_median_interval,
};

fn figures(least: usize) -> impl Strategy<Value = Vec<f64>> {
    let any = prop_oneof![-1e6..1e6_f64, (-20..20_i32).prop_map(f64::from)];
    vec(any, least..60)
}

fn samples(x: &[f64]) -> Samples {
    Samples::new(x).expect("finite values")
}

proptest! {
    #[test]
    fn quantiles_rise_with_p_and_stay_among_the_samples(x in figures(1), p in 0.0..1.0_f64, q in 0.0..1.0_f64) {
        let samples = samples(&x);
        let (low, high) = (samples.quantile(p.min(q)), samples.quantile(p.max(q)));
        prop_assert!(samples.min() <= low && low <= high && high <= samples.max());
    }

    #[test]
    fn an_interval_contains_its_quantile_and_reaches_its_confidence(
        x in figures(1), p in 0.01..0.99_f64, confidence in 0.5..0.999_f64,
    ) {
        if let Some(interval) = quantile_interval(&samples(&x), p, confidence) {
            prop_assert!(interval.low <= interval.high);
            prop_assert!(interval.confidence >= confidence - 1e-9);
        }
        if let Some(interval) = median_interval(&samples(&x), confidence) {
            prop_assert!(interval.contains(samples(&x).median()));
        }
    }

    #[test]
    fn more_confidence_never_narrows_an_interval(x in figures(12), a in 0.5..0.999_f64, b in 0.5..0.999_f64) {
        let at = |confidence| median_interval(&samples(&x), confidence).unwrap();
        let (less, more) = (at(a.min(b)), at(a.max(b)));
        prop_assert!(more.low <= less.low && less.high <= more.high);
    }

    #[test]
    fn a_summary_is_ordered_and_only_its_interval_depends_on_time(
        (x, shuffled) in figures(1).prop_flat_map(|x| (Just(x.clone()), Just(x).prop_shuffle())),
    ) {
        let summary = Summary::new(&samples(&x));
        prop_assert_eq!(Summary::of_unordered(&samples(&x)), Summary::of_unordered(&samples(&shuffled)));
        prop_assert_eq!(Summary { median_interval: None, ..summary.clone() }, Summary {
            median_interval: None,
            ..Summary::new(&samples(&shuffled))
        });
        let five = [summary.min, summary.q1, summary.median, summary.q3, summary.max];
        prop_assert!(five.is_sorted());
        prop_assert!((summary.min..=summary.max).contains(&summary.mean));
        prop_assert!(summary.mad >= 0.0 && summary.stddev.is_none_or(|stddev| stddev >= 0.0));
    }

    /// A power of two scales without rounding, so everything must follow to the last bit.
    #[test]
    fn a_change_of_unit_scales_everything(x in figures(6), power in -30..30_i32) {
        let unit = f64::from(power).exp2();
        let (before, after) = (samples(&x), samples(&x.iter().map(|x| x * unit).collect::<Vec<_>>()));
        let (a, b) = (Summary::new(&before), Summary::new(&after));
        prop_assert_eq!(a.median * unit, b.median);
        prop_assert_eq!(a.mean * unit, b.mean);
        prop_assert_eq!(a.mad * unit, b.mad);
        prop_assert_eq!(a.stddev.unwrap() * unit, b.stddev.unwrap());
        prop_assert_eq!(a.stddev_percent, b.stddev_percent);
        prop_assert_eq!(a.half_width_percent(), b.half_width_percent());
        prop_assert_eq!(outliers(&before).positions, outliers(&after).positions);
        prop_assert_eq!(dip(&before), dip(&after));
        prop_assert_eq!(dependence(&before), dependence(&after));
        prop_assert_eq!(trend(&before).unwrap().p_value, trend(&after).unwrap().p_value);
    }

    #[test]
    fn dependence_never_narrows_an_interval(x in figures(6)) {
        let samples = samples(&x);
        let found = dependence(&samples).unwrap();
        prop_assert!(found.widening >= 1.0 && found.widening <= (x.len() as f64).sqrt() + 1e-9);
        prop_assert!((-1.0..1.0).contains(&found.correlation));
        prop_assert!((0.0..=1.0).contains(&found.p_value));
        let (independent, widened) = (
            median_interval(&samples, STOPPING_CONFIDENCE).unwrap(),
            widened_median_interval(&samples, STOPPING_CONFIDENCE).unwrap(),
        );
        prop_assert!(widened.low <= independent.low && independent.high <= widened.high);
        prop_assert!(found.widening > 1.0 || widened == independent);
    }

    /// As of times, which may be far apart, and rise so that the interval is widened.
    #[test]
    fn the_interval_of_positive_samples_is_positive_and_finite(
        mut x in vec((-1e3..497.0_f64).prop_map(f64::exp2).prop_filter("above zero", |x| *x > 0.0), 6..60), rising: bool,
    ) {
        if rising {
            x.sort_by(f64::total_cmp);
        }
        let interval = widened_median_interval(&samples(&x), STOPPING_CONFIDENCE).unwrap();
        prop_assert!(interval.low > 0.0 && interval.high.is_finite(), "{interval:?}");
        prop_assert!(interval.contains(samples(&x).median()));
    }

    #[test]
    fn dependence_is_finite_for_any_samples(x in vec(-1e150..1e150_f64, 1..50)) {
        let samples = samples(&x);
        prop_assert_eq!(dependence(&samples).is_some(), x.len() >= 6);
        prop_assert!(dependence(&samples).is_none_or(|found| found.p_value.is_finite() && found.widening.is_finite()));
        let interval = widened_median_interval(&samples, STOPPING_CONFIDENCE);
        prop_assert!(interval.is_none_or(|interval| interval.low.is_finite() && interval.high.is_finite()));
    }

    #[test]
    fn dependence_ignores_level_and_reversal_of_time(x in vec(-20..20_i32, 6..60), level in -1000..1000_i32) {
        let of = |x: Vec<i32>| dependence(&samples(&x.into_iter().map(f64::from).collect::<Vec<_>>())).unwrap();
        let found = of(x.clone());
        prop_assert_eq!(found, of(x.iter().map(|x| x + level).collect()));
        let reversed = of(x.iter().rev().copied().collect());
        prop_assert_eq!(found.correlation, reversed.correlation);
    }

    /// The figure that a rule converges by is the one that a summary shows.
    #[test]
    fn a_rule_decides_by_the_interval_of_the_summary(x in vec(1.0..100.0_f64, 6..30)) {
        let expected = Dispersion::HalfWidthPercent(Summary::new(&samples(&x)).half_width_percent().unwrap());
        for rule in [
            SamplingRule::Precision { percent: 0.0, min_samples: 6, max_samples: 6 },
            SamplingRule::External { min_samples: 6, max_samples: 6 },
        ] {
            let decision = rule.decide(&x, Budget::Spent).unwrap();
            let (SamplingDecision::Done(stop) | SamplingDecision::NotConverged(stop)) = decision else { unreachable!() };
            prop_assert_eq!(stop.dispersion, expected);
        }
    }

    #[test]
    fn reversing_time_reverses_a_trend(x in figures(3)) {
        let backwards: Vec<f64> = x.iter().rev().copied().collect();
        let (forward, backward) = (trend(&samples(&x)).unwrap(), trend(&samples(&backwards)).unwrap());
        prop_assert_eq!(forward.s, -backward.s);
        prop_assert_eq!(forward.p_value, backward.p_value);
        prop_assert!(forward.p_value > 0.0 && forward.p_value <= 1.0);
    }

    #[test]
    fn a_dip_stays_within_its_bounds_and_is_symmetric(x in figures(6)) {
        let mirrored: Vec<f64> = x.iter().map(|x| -x).collect();
        let (one, other) = (dip(&samples(&x)).unwrap(), dip(&samples(&mirrored)).unwrap());
        prop_assert!(one.dip >= 0.5 / x.len() as f64 - 1e-12 && one.dip <= 0.25 + 1e-12);
        prop_assert!((one.dip - other.dip).abs() < 1e-9);
        prop_assert!((0.001..=1.0).contains(&one.p_value));
    }

    #[test]
    fn exchanging_the_sides_inverts_a_paired_ratio(pairs in vec((1e-3..1e3_f64, 1e-3..1e3_f64), 6..40)) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (one, other) = (paired_ratio(&a, &b).unwrap(), paired_ratio(&b, &a).unwrap());
        let inverse = |x: f64, y: f64| (x * y - 1.0).abs() < 1e-9;
        prop_assert!(inverse(one.median, other.median));
        let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
        prop_assert!(inverse(one.low, other.high) && inverse(one.high, other.low));
    }

    #[test]
    fn sampling_by_precision_always_ends(
        x in vec(-10.0..10.0_f64, 30), least in 0..10_usize, percent in 0.0..50.0_f64,
    ) {
        let rule = SamplingRule::Precision { percent, min_samples: least, max_samples: 30 };
        let decisions = (0..=30).map(|n| (n, rule.decide(&x[..n], Budget::Left).unwrap()));
        let (n, _) = decisions.into_iter().find(|(_, decision)| *decision != SamplingDecision::Continue).unwrap();
        prop_assert!(n >= least.max(6));
    }

    #[test]
    fn sampling_by_stddev_always_ends_with_a_complete_set(
        x in vec(1.0..100.0_f64, 30), set in 1..6_usize, failures in 0..6_usize,
    ) {
        let rule = SamplingRule::MaxStddev { samples: set, max_stddev_percent: 20.0, max_failures: failures };
        let decisions = (0..=30).map(|n| (n, rule.decide(&x[..n], Budget::Left).unwrap()));
        let (n, decision) = decisions.into_iter().find(|(_, decision)| *decision != SamplingDecision::Continue).unwrap();
        let (SamplingDecision::Done(stop) | SamplingDecision::NotConverged(stop)) = decision else { unreachable!() };
        prop_assert_eq!(stop.counted, n - set..n);
        prop_assert!(n <= set * failures.max(1));
    }
}
