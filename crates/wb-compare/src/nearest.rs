//! Which of several builds, or groups of builds, another one is most like.
//!
//! For every metric of the source each candidate gets a likeness from 0 to about 1: where deviations are known, the
//! normal density around the source's mean, with the largest of the deviations; elsewhere half of what the distance
//! gives, the farthest candidate being three deviations away, and one that lacks the metric twice as far as any other.
//! The sum over primary metrics decides, then the sum over the others, then the order.
//!
//! Source of the formulas: run-perf, `closest_result`. Put right: a deviation of zero is none; what is missing is far
//! away, also where another candidate is equal to the source; with nothing in common there is no nearest.

use crate::build::{Build, Builds, MetricIndex};
use crate::id::Statistic;

/// The candidate that the source is most like, and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// Its place among the candidates.
    pub candidate: usize,
    /// What decided.
    pub by: DecidedBy,
    /// Each candidate's likeness over primary metrics.
    pub primary: Vec<f64>,
    /// Each candidate's likeness over all other metrics.
    pub others: Vec<f64>,
}

/// What decided which candidate is nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// Primary metrics.
    Primary,
    /// The others, as several candidates were alike in primary ones.
    Others,
    /// The order in which they were named, as several were alike in all.
    Order,
}

/// Why there is no nearest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NearestError {
    /// There is nothing to choose from.
    #[error("{0} candidates: at least two builds or groups are needed to find the nearest")]
    TooFew(usize),
    /// A group is empty, or a build is not among those given.
    #[error("group {0} has no build in it, or one that was not read")]
    BadGroup(usize),
    /// No candidate has a metric of the source with a number.
    #[error("no candidate has a metric in common with the source")]
    NothingInCommon,
}

/// The highest normal density is 1/√(2π); this makes it about 1.
const SCALE: f64 = 2.51;
/// The farthest candidate is so many deviations away.
const MAX_DEVIATIONS: f64 = 3.0;

/// Finds the candidate, a build or a group of builds, that the build `src` is most like. All are places among `builds`.
/// `flatten` widens the deviations: above 1 small differences count less.
pub fn nearest(builds: &Builds, src: usize, candidates: &[Vec<usize>], flatten: f64) -> Result<Nearest, NearestError> {
    if candidates.len() < 2 {
        return Err(NearestError::TooFew(candidates.len()));
    }
    let list = builds.list();
    let bad = |group: &Vec<usize>| group.is_empty() || group.iter().any(|at| *at >= list.len());
    if let Some(bad) = candidates.iter().position(bad) {
        return Err(NearestError::BadGroup(bad));
    }
    let src = list.get(src).ok_or(NearestError::NothingInCommon)?;
    let flat: Vec<&Build> = candidates.iter().flatten().map(|at| &list[*at]).collect();
    let (mut primary, mut others) = (vec![0.0; candidates.len()], vec![0.0; candidates.len()]);
    let mut common = false;
    for row in builds.rows() {
        let Some(known) = MetricEstimate::of(src, row) else { continue };
        let others_known: Vec<_> = flat.iter().map(|build| MetricEstimate::of(build, row)).collect();
        common |= others_known.iter().any(Option::is_some);
        let Some(likeness) = likenesses(known, &others_known, flatten) else { continue };
        let sums = if src.primary(row) == Some(true) { &mut primary } else { &mut others };
        let mut rest = &likeness[..];
        for (sum, group) in sums.iter_mut().zip(candidates) {
            let (own, after) = rest.split_at(group.len());
            *sum += own.iter().sum::<f64>() / own.len() as f64;
            rest = after;
        }
    }
    if !common {
        return Err(NearestError::NothingInCommon);
    }
    let (candidate, by) = decide(&primary, &others);
    Ok(Nearest { candidate, by, primary, others })
}

fn decide(primary: &[f64], others: &[f64]) -> (usize, DecidedBy) {
    let best = |sums: &[f64], among: &[usize]| -> Vec<usize> {
        let most = among.iter().map(|at| sums[*at]).fold(f64::NEG_INFINITY, f64::max);
        among.iter().copied().filter(|at| sums[*at] == most).collect()
    };
    let all: Vec<usize> = (0..primary.len()).collect();
    let alike = best(primary, &all);
    match (&alike[..], &best(others, &alike)[..]) {
        ([one], _) => (*one, DecidedBy::Primary),
        (_, [one]) => (*one, DecidedBy::Others),
        (_, several) => (several.first().copied().unwrap_or(0), DecidedBy::Order),
    }
}

/// What a build knows of a metric.
#[derive(Debug, Clone, Copy)]
struct MetricEstimate {
    mean: f64,
    /// The standard deviation in the metric's unit, where there is any.
    stddev: Option<f64>,
}

impl MetricEstimate {
    fn of(build: &Build, row: MetricIndex) -> Option<Self> {
        let mean = build.value(row, Statistic::Mean).known()?;
        let stddev = build.value(row, Statistic::Stddev).known().map(|percent| (percent * mean / 100.0).abs());
        Some(Self { mean, stddev: stddev.filter(|stddev| *stddev > 0.0) })
    }
}

/// How like each one is; none where all are as far away, which tells nothing.
fn likenesses(src: MetricEstimate, others: &[Option<MetricEstimate>], flatten: f64) -> Option<Vec<f64>> {
    let deviations = others.iter().flatten().filter_map(|known| known.stddev).chain(src.stddev);
    match deviations.reduce(f64::max).map(|most| most * flatten).filter(|deviation| *deviation > 0.0) {
        Some(deviation) => others.iter().any(Option::is_some).then(|| density_likenesses(src, others, deviation)),
        None => distance_likenesses(src, others),
    }
}

fn density_likenesses(src: MetricEstimate, others: &[Option<MetricEstimate>], deviation: f64) -> Vec<f64> {
    let top = SCALE / (2.0 * std::f64::consts::PI).sqrt();
    let density = |known: &MetricEstimate| top * (-((known.mean - src.mean) / deviation).powi(2) / 2.0).exp();
    others.iter().map(|known| known.as_ref().map_or(0.0, density)).collect()
}

fn distance_likenesses(src: MetricEstimate, others: &[Option<MetricEstimate>]) -> Option<Vec<f64>> {
    // Half the range keeps the quotients below numbers.
    let distance = |known: &MetricEstimate| (known.mean - src.mean).abs().min(f64::MAX / 4.0);
    let known: Vec<f64> = others.iter().flatten().map(distance).collect();
    let (least, most) = (known.iter().copied().reduce(f64::min)?, known.iter().copied().reduce(f64::max)?);
    let missing = if most == 0.0 { 1.0 } else { most * 2.0 };
    if known.len() == others.len() && least == most {
        return None;
    }
    let distances: Vec<f64> = others.iter().map(|known| known.as_ref().map_or(missing, distance)).collect();
    let unit = distances.iter().copied().fold(0.0, f64::max) / MAX_DEVIATIONS;
    Some(distances.iter().map(|distance| (-(distance / unit).powi(2) / 2.0).exp() / 2.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_broken_by_the_others_and_then_by_order() {
        assert_eq!(decide(&[1.0, 2.0], &[9.0, 0.0]), (1, DecidedBy::Primary));
        assert_eq!(decide(&[2.0, 1.0, 2.0], &[1.0, 9.0, 3.0]), (2, DecidedBy::Others));
        assert_eq!(decide(&[2.0, 2.0, 1.0], &[1.0, 1.0, 5.0]), (0, DecidedBy::Order));
    }

    #[test]
    fn what_is_as_far_for_all_tells_nothing() {
        let known = |mean| Some(MetricEstimate { mean, stddev: None });
        let src = MetricEstimate { mean: 10.0, stddev: None };
        assert_eq!(likenesses(src, &[known(9.0), known(11.0)], 1.0), None);
        let one_missing = likenesses(src, &[known(10.0), None], 1.0).unwrap();
        assert_eq!(one_missing[0], 0.5);
        assert!(one_missing[1] < 0.006);
        assert_eq!(likenesses(src, &[None, None], 1.0), None);
        let far = likenesses(src, &[known(-f64::MAX), known(f64::MAX), known(0.0)], 1.0).unwrap();
        assert!(far.iter().all(|likeness| likeness.is_finite()));
    }
}
