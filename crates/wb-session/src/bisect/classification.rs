//! Classifies a revision by the side of the middle between the endpoints on which it is.

use wb_compare::{Build, Builds, MetricIndex};
use wb_results::comparison::Statistic;
use wb_stats::{Ends, RunPrior};

use super::endpoints::{compare, differing_checks, endpoint_arguments, read_builds, run_argument};
use super::state::{BisectionConfig, BisectionFolder, DifferenceShare, RevisionVerdict};
use crate::error::SessionError;
use crate::event::EventSink;

/// A revision that is this far from both endpoints is like neither.
const BETWEEN: std::ops::Range<f64> = 0.25..0.75;

pub(super) enum Classification {
    Verdict(RevisionVerdict),
    /// More runs may decide.
    Undecided(DifferenceShare),
}

pub(super) fn classify(
    folder: &BisectionFolder,
    config: &BisectionConfig,
    name: &str,
    runs: u16,
    events: &EventSink,
) -> Result<Classification, SessionError> {
    let metric = DecidingMetric::read(folder, config, &[run_argument(folder, name, runs)], events)?;
    let position = metric.as_ref().and_then(|metric| metric.ends()?.position(metric.runs.first()?));
    Ok(match position {
        Some(position) => classify_position(position.into()),
        None => Classification::Verdict(RevisionVerdict::Skipped {
            reason: "it has no metric in which the good and the bad revision differ".to_owned(),
        }),
    })
}

/// Whatever the level of a revision, the side of the middle on which it is changes only at a commit that changes the
/// level. A revision in the middle itself would be classified by chance; it is bad, since a change is before it.
fn classify_position(position: DifferenceShare) -> Classification {
    let DifferenceShare { low, high, .. } = position;
    if low > 0.5 || (BETWEEN.contains(&low) && BETWEEN.contains(&high)) {
        Classification::Verdict(RevisionVerdict::Bad { position })
    } else if high < 0.5 {
        Classification::Verdict(RevisionVerdict::Good { position })
    } else {
        Classification::Undecided(position)
    }
}

/// The metric by which revisions are classified: the one in which the endpoints differ most clearly.
pub(super) struct DecidingMetric {
    endpoints: [Vec<Vec<f64>>; 2],
    prior: RunPrior,
    /// The samples of each run of the revisions.
    pub(super) runs: Vec<Vec<Vec<f64>>>,
}

impl DecidingMetric {
    /// Reads the endpoints and revisions, each given as a build argument. `None` if no metric is in all of them.
    pub(super) fn read(
        folder: &BisectionFolder,
        config: &BisectionConfig,
        revisions: &[String],
        events: &EventSink,
    ) -> Result<Option<Self>, SessionError> {
        let checks = differing_checks(&compare(folder, config, events)?);
        let arguments = [&endpoint_arguments(folder, config)[..], revisions].concat();
        let builds = read_builds(&arguments, events)?;
        let candidates: Vec<(bool, Self)> = builds
            .rows()
            // The endpoints may not differ in any: with --force, and while single values are not known to be certain.
            .filter(|row| {
                if checks.is_empty() {
                    builds.is_primary(*row)
                } else {
                    checks.contains(&builds.id(*row, Statistic::Mean).to_string())
                }
            })
            .filter_map(|row| Self::of_metric(&builds, row, config.run_prior()))
            .map(|metric| (metric.ends().is_some(), metric))
            .collect();
        let separation = |metric: &Self| metric.ends().map_or(0.0, |ends| ends.separation());
        let candidates = candidates.into_iter().filter(|(differ, _)| *differ).map(|(_, metric)| metric);
        Ok(candidates.max_by(|one, other| separation(one).total_cmp(&separation(other))))
    }

    fn of_metric(builds: &Builds, row: MetricIndex, prior: RunPrior) -> Option<Self> {
        let mut runs = builds.list().iter().map(|build| samples_of_runs(build, row));
        let endpoints = [runs.next()?, runs.next()?];
        Some(Self { endpoints, prior, runs: runs.collect() })
    }

    /// None if the endpoints do not differ.
    pub(super) fn ends(&self) -> Option<Ends<'_>> {
        Ends::new([&self.endpoints[0], &self.endpoints[1]], self.prior)
    }
}

/// The samples of each run of a build; the mean of one without samples.
fn samples_of_runs(build: &Build, row: MetricIndex) -> Vec<Vec<f64>> {
    let of_run = |run: &wb_compare::Run| match run.samples(row) {
        [] => run.reading(row).and_then(|reading| reading.mean.number()).into_iter().collect(),
        samples => samples.iter().copied().filter(|sample| sample.is_finite()).collect::<Vec<f64>>(),
    };
    build.runs.iter().map(of_run).filter(|samples| !samples.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(low: f64, high: f64) -> &'static str {
        match classify_position(DifferenceShare { estimate: (low + high) / 2.0, low, high }) {
            Classification::Verdict(RevisionVerdict::Good { .. }) => "good",
            Classification::Verdict(RevisionVerdict::Bad { .. }) => "bad",
            Classification::Verdict(_) => "other",
            Classification::Undecided(_) => "undecided",
        }
    }

    #[test]
    fn the_side_of_the_middle_decides() {
        assert_eq!(["good", "bad"], [verdict(-0.2, 0.4), verdict(0.55, 1.2)]);
        assert_eq!(["good", "bad"], [verdict(-9.0, -8.0), verdict(8.0, 9.0)], "beyond both endpoints");
        assert_eq!("undecided", verdict(0.2, 0.6));
        assert_eq!("bad", verdict(0.45, 0.6), "clearly between both");
    }
}
