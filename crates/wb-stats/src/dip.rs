use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Samples;
use crate::dip_null::{LEVELS, NULL};

/// The result of a test for more than one mode
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dip {
    /// The largest distance between the samples' distribution and the nearest unimodal one, 0 to 0.25
    pub dip: f64,
    /// The probability of at least this dip for samples of a uniform population, the least favourable unimodal one.
    /// Accurate to a tenth of its value below 0.5, rough above; 0.001 means 0.001 or less
    pub p_value: f64,
}

/// Hartigan's dip test (Hartigan, Hartigan 1985; the algorithm is of the kind of P. Hartigan 1985, AS 217).
///
/// A hint that one metric has two states, such as two frequencies or two placements. The test has little power for few
/// samples: two equal modes, eight of their own widths apart, are detected in a quarter of all sets of six and in nine
/// of ten sets of 20. The resolution of the samples is taken to be the smallest distance between two of them, and ties
/// are spread evenly over it; otherwise every tick of a coarse clock would be a mode. `None` below 6 samples.
pub fn dip(samples: &Samples) -> Option<Dip> {
    let n = samples.count();
    if n < NULL[0].0 {
        return None;
    }
    let dip = statistic(&spread_ties(samples.sorted()));
    Some(Dip { dip, p_value: p_value(n, dip) })
}

/// The dip test of several runs together, each centred on its median: whether samples within runs come from more than
/// one mode, whatever the levels of the runs. `None` if the runs of two samples or more have fewer than 6 in total.
pub fn joint_dip(runs: &[Samples]) -> Option<Dip> {
    let several = || runs.iter().filter(|run| run.count() > 1);
    // Round off the rounding errors of the subtraction, which would be taken for the resolution.
    let magnitude = several().map(|run| run.max().abs().max(run.min().abs())).fold(0.0, f64::max);
    let digit = if magnitude > 0.0 { magnitude * 1e-12 } else { 1.0 };
    // A sample rather than the median, which may lie between the ticks of a clock.
    let middle = |run: &Samples| run.sorted()[(run.count() - 1) / 2];
    let centred =
        several().flat_map(|run| run.sorted().iter().map(move |x| ((x - middle(run)) / digit).round() * digit));
    dip(&Samples::new(&centred.collect::<Vec<_>>()).ok()?)
}

/// Spreads ties over the resolution around them
fn spread_ties(sorted: &[f64]) -> Vec<f64> {
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let resolution = gaps.filter(|&gap| gap > 0.0).fold(f64::INFINITY, f64::min);
    if !resolution.is_finite() {
        return sorted.to_vec();
    }
    let tied = sorted.chunk_by(|a, b| a == b);
    tied.flat_map(|tied| {
        let middle = |index: usize| (index as f64 + 0.5) / tied.len() as f64 - 0.5;
        (0..tied.len()).map(move |index| tied[0] + resolution * middle(index))
    })
    .collect()
}

/// The dip of ascending samples.
///
/// The empirical distribution lies between its greatest convex minorant and its least concave majorant. The mode is
/// where these two are furthest apart; outside of the mode the distribution has to be convex before and concave after
/// it, and the deviation from that is twice the dip. This repeats within the modal interval. The mode itself may be a
/// jump of any height, so the ends of an interval count only once they cannot be the mode.
fn statistic(sorted: &[f64]) -> f64 {
    let steps = steps(sorted);
    let (mut first, mut last) = (0, steps.len() - 1);
    let mut gap = 1.0_f64;
    loop {
        let within = &steps[first..=last];
        let below = hull(within, |step| step.before, |turn| turn <= 0.0);
        let above = hull(within, |step| step.after, |turn| turn >= 0.0);
        let distance = |index: usize| above.height[index] - below.height[index];
        // Search the corners only, where the maximum is attained: rounding must not put it between them.
        let corners = below.corners.iter().chain(&above.corners).copied();
        let widest = corners.fold(0, |widest, index| if distance(index) > distance(widest) { index } else { widest });
        if distance(widest) <= gap {
            break;
        }
        let from = below.corners.iter().copied().filter(|&index| index <= widest).max().unwrap_or(0);
        let to = above.corners.iter().copied().filter(|&index| index >= widest).min().unwrap_or(within.len() - 1);
        let convex = (0..from).map(|index| within[index].after - below.height[index]);
        let concave = (to + 1..within.len()).map(|index| above.height[index] - within[index].before);
        gap = convex.chain(concave).fold(gap, f64::max);
        if from == 0 && to == within.len() - 1 {
            break;
        }
        (first, last) = (first + from, first + to);
    }
    gap / (2.0 * sorted.len() as f64)
}

/// A step of the empirical distribution function, counted in samples
struct Step {
    x: f64,
    before: f64,
    after: f64,
}

fn steps(sorted: &[f64]) -> Vec<Step> {
    let mut before = 0.0;
    let tied = sorted.chunk_by(|a, b| a == b);
    tied.map(|tied| {
        let after = before + tied.len() as f64;
        let step = Step { x: tied[0], before, after };
        before = after;
        step
    })
    .collect()
}

/// The convex minorant or concave majorant of points: the points that it touches, and its height at all of them
struct Hull {
    corners: Vec<usize>,
    height: Vec<f64>,
}

fn hull(steps: &[Step], y: impl Fn(&Step) -> f64, bends_wrong: impl Fn(f64) -> bool) -> Hull {
    let point = |index: usize| (steps[index].x, y(&steps[index]));
    let mut corners: Vec<usize> = Vec::new();
    for next in 0..steps.len() {
        while let [.., a, b] = corners[..] {
            let ((ax, ay), (bx, by), (cx, cy)) = (point(a), point(b), point(next));
            if !bends_wrong((bx - ax) * (cy - ay) - (by - ay) * (cx - ax)) {
                break;
            }
            corners.pop();
        }
        corners.push(next);
    }
    let mut height: Vec<f64> = steps.iter().map(&y).collect();
    for side in corners.windows(2) {
        let ((ax, ay), (bx, by)) = (point(side[0]), point(side[1]));
        for index in side[0] + 1..side[1] {
            height[index] = ay + (steps[index].x - ax) / (bx - ax) * (by - ay);
        }
    }
    Hull { corners, height }
}

/// The p-value, interpolated from the table: √n·dip linearly in ln n, then ln p linearly in √n·dip
fn p_value(n: usize, dip: f64) -> f64 {
    let scaled = dip * (n as f64).sqrt();
    let right = NULL.iter().position(|row| row.0 >= n).unwrap_or(NULL.len() - 1);
    let left = if NULL[right].0 <= n { right } else { right - 1 };
    let ln = |row: usize| (NULL[row].0 as f64).ln();
    let weight = if left == right { 0.0 } else { ((n as f64).ln() - ln(left)) / (ln(right) - ln(left)) };
    let critical = |level: usize| NULL[left].1[level] * (1.0 - weight) + NULL[right].1[level] * weight;

    let (mut from, mut p_from) = (0.5 / (n as f64).sqrt(), 1.0_f64);
    for (level, &p) in LEVELS.iter().enumerate() {
        let to = critical(level);
        if scaled < to {
            let part = ((scaled - from) / (to - from)).max(0.0);
            return (p_from.ln() + part * (p.ln() - p_from.ln())).exp();
        }
        (from, p_from) = (to, p);
    }
    p_from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clear_clusters_are_detected_and_an_even_spread_is_not() {
        let clusters: Vec<f64> = (0..20).map(|i| f64::from(i % 2) * 100.0 + f64::from(i) * 0.1).collect();
        assert!(dip(&Samples::new(&clusters).unwrap()).unwrap().p_value < 0.01);
        let even: Vec<f64> = (0..20).map(f64::from).collect();
        assert!(dip(&Samples::new(&even).unwrap()).unwrap().p_value > 0.9);
    }

    /// The expected values are those of diptest 0.12 (Python).
    #[test]
    fn the_statistic_of_ties_is_hartigans() {
        for (sorted, expected) in [
            (&[5.0, 5.0, 6.0, 7.0, 7.0, 7.0, 8.0, 9.0, 9.0, 12.0][..], 0.1),
            (&[1.0, 1.0, 1.0, 2.0, 2.0, 5.0, 5.0, 5.0, 5.0, 6.0, 6.0, 7.0], 0.15625),
            (&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.2),
        ] {
            assert!((statistic(sorted) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn ticks_of_a_coarse_clock_are_not_modes() {
        let ticks = [1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 5.0];
        assert!(dip(&Samples::new(&ticks).unwrap()).unwrap().p_value > 0.5);
    }

    #[test]
    fn equal_samples_have_the_smallest_dip() {
        let equal = dip(&Samples::new(&[3.0; 10]).unwrap()).unwrap();
        assert_eq!(equal.dip, 0.05);
        assert!(equal.p_value > 0.9);
    }

    #[test]
    fn runs_at_many_levels_have_one_mode_where_each_has_one() {
        let run = |level: f64, apart: f64| {
            let sample = |n: u32| level + f64::from(n % 7) + 0.1 * f64::from(n) + apart * f64::from(n % 2);
            Samples::new(&(0..12).map(sample).collect::<Vec<_>>()).unwrap()
        };
        let runs = |apart: f64| [10.3, 200.0, 3000.0, 0.1, 55.5].map(|level| run(level, apart));
        assert!(joint_dip(&runs(0.0)).unwrap().p_value > 0.5);
        assert!(joint_dip(&runs(60.0)).unwrap().p_value < 0.05);
        assert_eq!(joint_dip(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0].map(|x| Samples::new(&[x]).unwrap())), None);
    }

    #[test]
    fn fewer_than_six_samples_have_no_dip() {
        assert_eq!(dip(&Samples::new(&[1.0, 1.0, 1.0, 9.0, 9.0]).unwrap()), None);
    }
}
