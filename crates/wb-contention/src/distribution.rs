//! Computes distributions of a figure over the seconds of a measurement.

use wb_results::contention::{Distribution, Percentile};
use wb_stats::Samples;

/// The distribution of values; `None` without any, or if one is not finite.
pub fn summarize_values(values: &[f64], percentiles: &[Percentile]) -> Option<Distribution> {
    let samples = Samples::new(values).ok()?;
    let percentiles = percentiles.iter().map(|one| (*one, nearest_rank(samples.sorted(), *one)));
    Some(Distribution {
        percentiles: percentiles.collect(),
        mean: samples.mean(),
        stdev: samples.stddev().unwrap_or_default(),
    })
}

/// The smallest value that at least this part of the values does not exceed (Hyndman, Fan 1996, type 1): a value that
/// occurred, unlike an interpolated one.
fn nearest_rank(sorted: &[f64], percentile: Percentile) -> f64 {
    let rank = (percentile.fraction() * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use wb_results::contention::PERCENTILES;

    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        let distribution = summarize_values(&values, &PERCENTILES).unwrap();
        let get = |percentile: &str| distribution.get(percentile.parse().unwrap()).unwrap();
        assert_eq!((get("00"), get("01"), get("50"), get("99"), get("100")), (1.0, 2.0, 100.0, 198.0, 200.0));
        assert_eq!((distribution.mean, distribution.stdev.round()), (100.5, 58.0));
    }

    #[test]
    fn without_values_nothing_is_stated() {
        assert_eq!(summarize_values(&[], &PERCENTILES), None);
        assert_eq!(summarize_values(&[f64::NAN], &PERCENTILES), None);
        assert_eq!(summarize_values(&[3.0], &PERCENTILES).unwrap().stdev, 0.0);
    }
}
