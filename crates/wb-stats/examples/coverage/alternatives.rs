//! The interval that was considered and not taken.

use statrs::distribution::{Binomial, DiscreteCDF};
use wb_stats::{Interval, Samples};

/// The interpolated interval of the median (Hettmansperger, Sheather 1986): between the order statistics that reach
/// the confidence and the next inner ones, so that it is met closely instead of exceeded
pub(crate) fn interpolated_interval(samples: &Samples, confidence: f64) -> Option<Interval> {
    let n = samples.count();
    let below = Binomial::new(0.5, n as u64).ok()?;
    let reached = |rank: usize| 1.0 - 2.0 * below.cdf(rank as u64 - 1);
    let rank = (1..=n / 2).rev().find(|&rank| reached(rank) >= confidence)?;
    let at = |rank: usize| samples.sorted()[rank - 1];
    if 2 * (rank + 1) > n + 1 {
        return Some(Interval { low: at(rank), high: at(n + 1 - rank), confidence_reached: reached(rank) });
    }
    let (outer, inner) = (reached(rank), reached(rank + 1));
    let part = (outer - confidence) / (outer - inner);
    let (n, d) = (n as f64, rank as f64);
    let weight = (n - d) * part / (d + (n - 2.0 * d) * part);
    let mix = |outer: f64, inner: f64| (1.0 - weight) * outer + weight * inner;
    Some(Interval {
        low: mix(at(rank), at(rank + 1)),
        high: mix(at(samples.count() + 1 - rank), at(samples.count() - rank)),
        confidence_reached: confidence,
    })
}
