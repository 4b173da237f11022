//! A metric before and after correction for multiple testing.

use wb_results::comparison::{NegligibleRatios, NoiseModelUse, ObservationCounts, Statistic};
use wb_stats::{CONFIDENCE, RunNoise, RunPrior, median_ratio};

use super::aspect_test::RunVariation;
use super::check_tests::CheckTests;
use super::family::{CheckFamily, Families};
use super::noise::BoundNoiseModels;
use super::observations::{self, Observations};
use super::required_samples::{required_runs, required_samples};
use super::verdict::VerdictInput;
use super::{AspectComparison, MetricComparison, Options, Verdict};
use crate::build::{Build, Builds, MeasuredValue, MetricIndex};

/// A metric that has been tested, but not yet corrected for multiple testing.
pub(super) struct CandidateMetric<'a> {
    pub(super) row: MetricIndex,
    /// The tail of the operations, if the test measures it.
    p99: Option<MetricIndex>,
    pub(super) primary: bool,
    counts: ObservationCounts,
    values: [MeasuredValue; 2],
    /// In percent.
    threshold: f64,
    noise: Option<&'a RunNoise>,
    noise_use: Option<NoiseModelUse>,
    tests: CheckTests,
    comparable: bool,
}

impl<'a> CandidateMetric<'a> {
    /// Tests a metric; `None` if neither side has it, and if it is not compared.
    pub(super) fn new(
        builds: &Builds,
        sides: [&Build; 2],
        row: MetricIndex,
        models: &BoundNoiseModels<'a>,
        p99: Option<MetricIndex>,
        options: &Options,
    ) -> Option<Self> {
        let id = builds.id(row, Statistic::Mean);
        let is_absent = sides.iter().all(|side| side.readings(row).next().is_none());
        let primary = builds.is_primary(row);
        if !id.class.is_compared(primary) || is_absent {
            return None;
        }
        let (noise, noise_use) = models.of(builds, sides, row).unzip();
        let noise = noise.flatten();
        let comparable = builds.is_comparable(sides, row);
        let observed = Observations::new(builds, sides, row).filter(|_| comparable);
        let direction = options.directions.of(id.class, id.metric);
        let variation = match (builds.within_run(), noise) {
            (Some(_), _) => RunVariation::SameRun,
            (None, Some(noise)) => RunVariation::Model(noise),
            (None, None) if options.is_noise_of_results => RunVariation::Results(options.run_noise),
            (None, None) => RunVariation::Prior(options.run_noise),
        };
        let of_operations = p99.and_then(|p99| Observations::new(builds, sides, p99));
        // Of a cell, so that metrics beside its primary ones would repeat them.
        let failures = if primary && comparable { sides.map(|side| side.failures(row)) } else { Default::default() };
        let planned = sides[0].threshold(row).or_else(|| sides[1].threshold(row));
        let threshold = options.threshold.of(noise, noise_use.as_ref().and_then(NoiseModelUse::two_modes), planned);
        let negligible = NegligibleRatios::new(threshold);
        let of_operations = of_operations.as_ref();
        let tests = CheckTests::new(observed.as_ref(), of_operations, direction, variation, failures, negligible);
        let noise_use = match noise {
            Some(_) if comparable && !tests.have_runs() => {
                Some(NoiseModelUse::Insufficient { why: "a compared value is not above zero".to_owned() })
            }
            _ => noise_use,
        };
        let p99 = p99.filter(|_| tests.have_operations());
        Some(Self {
            row,
            p99,
            primary,
            // Sides that are not compared are counted, too.
            counts: observed.map_or_else(|| observations::counts(sides, row), |observed| observed.counts()),
            values: sides.map(|side| side.value(row, Statistic::Mean)),
            threshold,
            noise,
            noise_use,
            tests,
            comparable,
        })
    }

    /// The p-values of the aspects that would be reported; `None` if nothing was tested.
    pub(super) fn hypothesis_of_aspects(&self) -> Option<[Option<f64>; 2]> {
        self.tests.p_by_runs().map(|_| self.tests.relevant_p())
    }

    /// `None` if no attempt failed.
    pub(super) fn hypothesis_of_failures(&self) -> Option<[Option<f64>; 2]> {
        self.tests.relevant_p_of_failures()
    }

    pub(super) fn judge(
        self,
        builds: &Builds,
        sides: [&Build; 2],
        families: &Families,
        options: &Options,
    ) -> MetricComparison {
        let of_failures = self.tests.relevant_p_of_failures();
        let failure_rates = of_failures.and_then(|p| self.tests.compare_failures(&families.failures.check(p)));
        // What is not primary decides nothing, and is judged alone.
        let family = if self.primary {
            families.aspects.check(self.tests.relevant_p())
        } else {
            CheckFamily::alone(options.error_rate)
        };
        let observed = Observations::new(builds, sides, self.row).filter(|_| !self.tests.is_empty());
        let of_operations = self.p99.and_then(|p99| Observations::new(builds, sides, p99));
        let id = builds.id(self.row, Statistic::Mean);
        let direction = options.directions.of(id.class, id.metric);
        let compare = |observed: &Observations| self.tests.compare(observed, of_operations.as_ref(), &family);
        let mut aspects = observed.as_ref().map(compare).unwrap_or_default();
        let failures_rose = failure_rates.is_some_and(|failures| failures.rose);
        let negligible = NegligibleRatios::new(self.threshold);
        let input = VerdictInput::new(self.values, &mut aspects, direction, negligible, failures_rose);
        let verdict = match input.verdict() {
            Verdict::Missing => Verdict::Missing,
            _ if !self.comparable => Verdict::Incomparable,
            verdict => verdict,
        };
        let equal_if_independent = verdict == Verdict::Inconclusive && input.equal_if_independent();
        let required_samples = match verdict {
            Verdict::Unconfirmed => required_runs(
                &aspects,
                self.noise.map_or((options.run_noise.stddev(), options.run_noise.degrees()), |noise| {
                    (noise.stddev, noise.degrees)
                }),
                family.least_critical(),
                self.counts,
            ),
            Verdict::Inconclusive if self.noise.is_none() => required_samples(self.counts),
            _ => None,
        };
        let median_ratio = observed.as_ref().and_then(|it| median_ratio(&it.all[0], &it.all[1], CONFIDENCE));
        let is_confirmed_alone = |aspect: &AspectComparison| {
            let p = &aspect.p_by_runs;
            aspect.alone.is_change() && p.in_check <= options.error_rate && p.in_family > options.error_rate
        };
        MetricComparison {
            row: self.row,
            primary: self.primary,
            counts: self.counts,
            failures: sides.map(|side| side.failures(self.row)),
            failure_rates,
            significant_alone: verdict == Verdict::Unconfirmed && aspects.iter().any(is_confirmed_alone),
            aspects,
            median_ratio,
            p: self.tests.p_by_runs().map(|p| family.adjust([p; 2], [p; 2])[1].in_family),
            threshold: self.threshold,
            noise: self.noise_use,
            source: self.tests.source(),
            run_noise: options.run_noise.stddev(),
            run_prior: self
                .noise
                .and_then(|noise| RunPrior::with_degrees(noise.stddev, noise.degrees))
                .unwrap_or(options.run_noise),
            verdict,
            equal_if_independent,
            required_samples,
        }
    }
}
