//! Uncertainty factor for a small number of builds.

/// run-perf's coefficients for one to eight builds.
const COEFFICIENTS: [f64; 8] = [7.0, 2.3, 1.7, 1.4, 1.3, 1.3, 1.2, 1.2];

/// U(n): the factor by which a range from `count` values is widened; 1 for nine or more values, and for none. Source:
/// run-perf, `get_uncertainty`.
pub(crate) fn uncertainty(count: usize) -> f64 {
    count.checked_sub(1).and_then(|position| COEFFICIENTS.get(position)).copied().unwrap_or(1.0)
}

/// The divisor of a weight of the last build, based on `count` builds: U(n) up to seven, 1 from eight on. Source:
/// run-perf, `Modifier._adjust_weight`, which ends one build earlier than U does.
pub(crate) fn weight_divisor(count: usize) -> f64 {
    if count < COEFFICIENTS.len() { uncertainty(count) } else { 1.0 }
}
