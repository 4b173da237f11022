//! The interval that was considered and not taken.

use wb_stats::{Interval, Samples};

/// The interpolated interval of the median (Hettmansperger, Sheather 1986): between the order statistics that reach
/// the confidence and the next inner ones, so that it is met closely instead of exceeded
pub(crate) fn interpolated_interval(samples: &Samples, confidence: f64) -> Option<Interval> {
    let n = samples.count();
    // The confidence of the rank-th samples from either end, and of the next inner ones.
    let (mut rank, mut outer, mut inner) = (0, 1.0, 1.0 - 2.0 * 0.5_f64.powi(n as i32));
    let mut mass = (1.0 - inner) / 2.0;
    while inner >= confidence {
        rank += 1;
        mass *= (n + 1 - rank) as f64 / rank as f64;
        (outer, inner) = (inner, inner - 2.0 * mass);
    }
    if rank == 0 {
        return None;
    }
    let part = (outer - confidence) / (outer - inner);
    let (n, d) = (n as f64, rank as f64);
    let weight = (n - d) * part / (d + (n - 2.0 * d) * part);
    let at = |rank: usize| samples.sorted()[rank - 1];
    let mix = |outer: f64, inner: f64| outer + weight * (inner - outer);
    Some(Interval {
        low: mix(at(rank), at(rank + 1)),
        high: mix(at(samples.count() + 1 - rank), at(samples.count() - rank)),
        confidence,
    })
}
