//! Finds the build, or group of builds, that is most similar to another build.
//!
//! For every metric of the judged build each candidate gets a similarity from 0 to about 1: if deviations are known,
//! the normal density around the judged build's mean, with the largest of the deviations; otherwise half the value
//! derived from the distance, the farthest candidate being three deviations away, and one without the metric twice as
//! far as any other. The sum over primary metrics decides, then the sum over the others, then the order.
//!
//! Source of the formulas: run-perf, `closest_result`. Corrected: a deviation of zero counts as unknown; a missing
//! metric is far away, also if another candidate is equal to the judged build; with nothing in common there is no
//! result.

use wb_results::comparison::Statistic;

use crate::build::{Build, Builds, MetricIndex};

/// The candidate most similar to the judged build, and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// The index among the candidates.
    pub candidate: usize,
    pub by: DecidedBy,
    /// Each candidate's similarity over primary metrics.
    pub primary: Vec<f64>,
    pub others: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    Primary,
    /// The other metrics, as several candidates were equal in primary ones.
    Others,
    /// The given order, as several candidates were equal in all metrics.
    Order,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NearestError {
    #[error("too few candidates ({0}): at least two builds or groups are required")]
    TooFew(usize),
    #[error("group {0} is empty or has an unknown build")]
    BadGroup(usize),
    #[error("no candidate has a metric in common with the build to classify")]
    NothingInCommon,
}

/// Scales the maximum of the normal density, 1/√(2π), to about 1.
const SCALE: f64 = 2.51;
/// The distance of the farthest candidate, in deviations.
const MAX_DEVIATIONS: f64 = 3.0;

/// Finds the candidate, a build or a group of builds, that is most similar to the judged build. All are indices into
/// `builds`. `flatten` widens the deviations: above 1 small differences count less.
pub fn nearest(
    builds: &Builds,
    judged: usize,
    candidates: &[Vec<usize>],
    flatten: f64,
) -> Result<Nearest, NearestError> {
    if candidates.len() < 2 {
        return Err(NearestError::TooFew(candidates.len()));
    }
    let list = builds.list();
    let is_invalid = |group: &Vec<usize>| group.is_empty() || group.iter().any(|position| *position >= list.len());
    if let Some(group) = candidates.iter().position(is_invalid) {
        return Err(NearestError::BadGroup(group));
    }
    let judged = list.get(judged).ok_or(NearestError::NothingInCommon)?;
    let flat: Vec<&Build> = candidates.iter().flatten().map(|position| &list[*position]).collect();
    let (mut primary, mut others) = (vec![0.0; candidates.len()], vec![0.0; candidates.len()]);
    let mut common = false;
    for row in builds.rows() {
        let Some(estimate) = MetricEstimate::new(judged, row) else { continue };
        let estimates: Vec<_> = flat.iter().map(|build| MetricEstimate::new(build, row)).collect();
        common |= estimates.iter().any(Option::is_some);
        let Some(similarity) = similarities(estimate, &estimates, flatten) else { continue };
        let sums = if judged.primary(row) == Some(true) { &mut primary } else { &mut others };
        let mut rest = &similarity[..];
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
        let maximum = among.iter().map(|index| sums[*index]).fold(f64::NEG_INFINITY, f64::max);
        among.iter().copied().filter(|index| sums[*index] == maximum).collect()
    };
    let all: Vec<usize> = (0..primary.len()).collect();
    let tied = best(primary, &all);
    match (&tied[..], &best(others, &tied)[..]) {
        ([one], _) => (*one, DecidedBy::Primary),
        (_, [one]) => (*one, DecidedBy::Others),
        (_, several) => (several.first().copied().unwrap_or(0), DecidedBy::Order),
    }
}

#[derive(Debug, Clone, Copy)]
struct MetricEstimate {
    mean: f64,
    /// In the metric's unit, if known.
    stddev: Option<f64>,
}

impl MetricEstimate {
    fn new(build: &Build, row: MetricIndex) -> Option<Self> {
        let mean = build.value(row, Statistic::Mean).number()?;
        let stddev = build.value(row, Statistic::Stddev).number().map(|percent| (percent * mean / 100.0).abs());
        Some(Self { mean, stddev: stddev.filter(|stddev| *stddev > 0.0) })
    }
}

/// The similarity of each candidate; `None` if all are equally far away, which carries no information.
fn similarities(judged: MetricEstimate, others: &[Option<MetricEstimate>], flatten: f64) -> Option<Vec<f64>> {
    let deviations = others.iter().flatten().filter_map(|estimate| estimate.stddev).chain(judged.stddev);
    match deviations.reduce(f64::max).map(|most| most * flatten).filter(|deviation| *deviation > 0.0) {
        Some(deviation) => others.iter().any(Option::is_some).then(|| density_similarities(judged, others, deviation)),
        None => distance_similarities(judged, others),
    }
}

fn density_similarities(judged: MetricEstimate, others: &[Option<MetricEstimate>], deviation: f64) -> Vec<f64> {
    let top = SCALE / (2.0 * std::f64::consts::PI).sqrt();
    let density = |estimate: &MetricEstimate| top * (-((estimate.mean - judged.mean) / deviation).powi(2) / 2.0).exp();
    others.iter().map(|estimate| estimate.as_ref().map_or(0.0, density)).collect()
}

fn distance_similarities(judged: MetricEstimate, others: &[Option<MetricEstimate>]) -> Option<Vec<f64>> {
    // A quarter of the range keeps the quotients below finite.
    let distance = |estimate: &MetricEstimate| (estimate.mean - judged.mean).abs().min(f64::MAX / 4.0);
    let distances: Vec<f64> = others.iter().flatten().map(distance).collect();
    let (least, most) = (distances.iter().copied().reduce(f64::min)?, distances.iter().copied().reduce(f64::max)?);
    let missing = if most == 0.0 { 1.0 } else { most * 2.0 };
    if distances.len() == others.len() && least == most {
        return None;
    }
    let distances: Vec<f64> = others.iter().map(|estimate| estimate.as_ref().map_or(missing, distance)).collect();
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
    fn equal_distances_carry_no_information() {
        let estimate = |mean| Some(MetricEstimate { mean, stddev: None });
        let judged = MetricEstimate { mean: 10.0, stddev: None };
        assert_eq!(similarities(judged, &[estimate(9.0), estimate(11.0)], 1.0), None);
        let one_missing = similarities(judged, &[estimate(10.0), None], 1.0).unwrap();
        assert_eq!(one_missing[0], 0.5);
        assert!(one_missing[1] < 0.006);
        assert_eq!(similarities(judged, &[None, None], 1.0), None);
        let far = similarities(judged, &[estimate(-f64::MAX), estimate(f64::MAX), estimate(0.0)], 1.0).unwrap();
        assert!(far.iter().all(|similarity| similarity.is_finite()));
    }
}
