//! Comparison with the results of other programs: NumPy 2.4 and SciPy 1.17 (`numpy.quantile`, `std(ddof=1)`,
//! `median_abs_deviation`, `binom.cdf`, `kendalltau(method='exact')`), pymannkendall 1.4 (`original_test`,
//! `sens_slope`) and diptest 0.12 (`diptest`), called with the samples below. Dependence: `scipy.stats.rankdata`, and
//! 200,000 orders by `Generator.permuted`.

use wb_stats::{Samples, Summary, TrendMethod, dependence, dip, quantile_interval, trend};

const SKEWED: [f64; 12] = [12.1, 11.8, 12.4, 13.0, 11.9, 12.2, 12.6, 12.0, 14.9, 12.3, 12.5, 11.7];
const RISING_WITH_TIES: [f64; 10] = [5.0, 5.0, 6.0, 7.0, 7.0, 7.0, 8.0, 9.0, 9.0, 12.0];
const TWO_MODES: [f64; 25] = [
    10.001, 10.299, 9.726, 9.109, 9.545, 9.008, 10.06, 11.34, 9.508, 9.38, 10.49, 10.357, 10.105, 9.07, 9.971, 16.695,
    14.656, 15.542, 14.099, 14.71, 14.158, 15.765, 14.733, 16.271, 16.157,
];
const WANDERING: [f64; 20] = [
    10.0, 10.2, 10.5, 10.4, 10.9, 11.3, 11.0, 11.6, 12.1, 11.8, 11.5, 11.7, 11.2, 10.8, 10.6, 10.1, 9.8, 9.6, 9.9, 9.4,
];
const EXPONENTIAL: [f64; 20] = [
    1.61, 4.34, 1.55, 9.4, 2.37, 0.89, 3.27, 0.21, 0.08, 1.64, 0.72, 1.04, 0.25, 2.05, 5.59, 2.4, 0.5, 0.86, 2.47, 9.19,
];

fn samples(x: &[f64]) -> Samples {
    Samples::new(x).expect("finite values")
}

#[track_caller]
fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs(), "{actual} is not {expected}");
}

#[test]
fn a_summary_agrees_with_numpy() {
    let summary = Summary::new(&samples(&SKEWED));
    near(summary.mean, 12.449999999999998);
    near(summary.stddev.unwrap(), 0.8544003745317532);
    near(summary.stddev_percent.unwrap(), 6.862653610696815);
    near(summary.q1, 11.975);
    near(summary.median, 12.25);
    near(summary.q3, 12.525);
    near(summary.mad, 0.2999999999999998);
    near(samples(&SKEWED).quantile(0.1), 11.81);
    near(samples(&SKEWED).quantile(0.9), 12.96);
    near(samples(&RISING_WITH_TIES).quantile(0.9), 9.3);
}

#[test]
fn an_interval_has_the_ranks_and_the_confidence_of_the_binomial() {
    for (n, p, confidence, low, high, reached) in [
        (6, 0.5, 0.95, 1, 6, 0.96875),
        (10, 0.5, 0.95, 2, 9, 0.978515625),
        (30, 0.5, 0.95, 10, 21, 0.9572260547429323),
        (31, 0.5, 0.99, 8, 24, 0.9966731071472168),
        (100, 0.9, 0.95, 84, 96, 0.955690107191223),
        (59, 0.95, 0.9, 53, 59, 0.9241336173409366),
        (1000, 0.99, 0.95, 983, 997, 0.976094763497977),
        (5000, 0.5, 0.95, 2431, 2570, 0.9506841418958285),
    ] {
        let ranks: Vec<f64> = (1..=n).map(f64::from).collect();
        let interval = quantile_interval(&samples(&ranks), p, confidence).unwrap();
        assert_eq!((interval.low, interval.high), (f64::from(low), f64::from(high)), "{n} samples, quantile {p}");
        near(interval.confidence, reached);
    }
}

#[test]
fn a_trend_without_ties_has_the_exact_probability() {
    let skewed = trend(&samples(&SKEWED)).unwrap();
    assert_eq!((skewed.s, skewed.method), (6, TrendMethod::Exact));
    near(skewed.p_value, 0.7373055246579552);
    near(skewed.slope, 0.023611111111111346);
    let two_modes = trend(&samples(&TWO_MODES)).unwrap();
    assert_eq!(two_modes.s, 158);
    near(two_modes.p_value, 0.00012725626615342077);
    near(two_modes.slope, 0.2915);
}

#[test]
fn a_trend_with_ties_has_the_corrected_normal_probability() {
    let rising = trend(&samples(&RISING_WITH_TIES)).unwrap();
    assert_eq!((rising.s, rising.method), (40, TrendMethod::Normal));
    near(rising.p_value, 0.0003568075743358712);
    near(rising.slope, 0.5714285714285714);
}

#[test]
fn dependence_has_the_correlation_of_ranks_and_the_probability_of_orders() {
    for (x, correlation, p_value, widening) in [
        (&SKEWED[..], -0.30128205128205127, 0.74295, 1.0),
        (&EXPONENTIAL, 0.19120300751879699, 0.23987, 1.213593178882472),
        (&WANDERING, 0.9047619047619048, 0.0005, 4.47213595499958),
    ] {
        let dependence = dependence(&samples(x)).unwrap();
        near(dependence.correlation, correlation);
        // Twenty extreme orders have a standard error of a fifth.
        assert!((dependence.p_value / p_value - 1.0).abs() < 0.5, "{} is not {p_value}", dependence.p_value);
        near(dependence.widening, widening);
    }
    // The lowest that random orders give; of 400,000, 5 are as smooth.
    assert_eq!(dependence(&samples(&RISING_WITH_TIES)).unwrap().p_value, 0.0005);
}

#[test]
fn a_dip_agrees_with_hartigans() {
    let dip_of = |x: &[f64]| dip(&samples(x)).unwrap().dip;
    near(dip_of(&SKEWED), 0.04166666666666722);
    near(dip_of(&TWO_MODES), 0.10795809830781627);
    near(dip_of(&EXPONENTIAL), 0.06375000000000001);
}

#[test]
fn the_probability_of_a_dip_agrees_with_another_simulation_to_two_digits() {
    let p_value = dip(&samples(&TWO_MODES)).unwrap().p_value;
    assert!((p_value / 0.0127 - 1.0).abs() < 0.1, "{p_value}");
}
