//! Verdicts, derived from the effects of a check's aspects and their uncertainty.

use wb_model::Direction;
use wb_results::comparison::{Aspect, Certainty, NegligibleRatios};
use wb_stats::{Interval, NoiseSource};

use super::AspectComparison;
use crate::build::MeasuredValue;

/// The verdict on a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// An aspect is significantly better, and by more than the threshold according to the estimate; none is worse, or seems
    /// worse by more than the threshold.
    Improved,
    /// An aspect is significantly worse, and by more than the threshold according to the estimate; or attempts fail
    /// significantly more often.
    Regressed,
    /// The intervals of all aspects are within the threshold, also widened by the dependence of samples on each other.
    Equivalent,
    /// The samples differ by more than the threshold, but no more than runs of one build may; or an aspect is better while
    /// another seems worse.
    Unconfirmed,
    /// Significantly different by more than the threshold, and neither direction is better.
    Differs,
    /// No other verdict is justified yet.
    Inconclusive,
    /// A side has no valid value.
    Invalid,
    /// A side does not have the metric.
    Missing,
    /// The sides have different definitions.
    Incomparable,
}

impl Verdict {
    /// All verdicts, from good to unknown.
    pub const ALL: [Self; 9] = [
        Self::Improved,
        Self::Equivalent,
        Self::Inconclusive,
        Self::Differs,
        Self::Unconfirmed,
        Self::Regressed,
        Self::Missing,
        Self::Invalid,
        Self::Incomparable,
    ];

    pub(crate) fn is_change(self) -> bool {
        matches!(self, Self::Improved | Self::Regressed | Self::Differs)
    }

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::Equivalent => "equivalent",
            Self::Unconfirmed => "unconfirmed",
            Self::Differs => "differs",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
            Self::Missing => "missing",
            Self::Incomparable => "incomparable",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct AspectInput {
    pub(super) ratio: f64,
    /// The interval that has to be within the threshold for the aspect to be equivalent.
    pub(super) interval: Option<Interval>,
    /// The same, as if samples did not depend on those before them.
    pub(super) independent_interval: Option<Interval>,
    pub(super) certainty: Certainty,
}

impl AspectInput {
    fn seems_worse(&self, direction: Direction, negligible: NegligibleRatios) -> bool {
        judge(self.ratio, None, true, direction, negligible) == Verdict::Regressed
    }
}

pub(super) struct VerdictInput {
    pub(super) values: [MeasuredValue; 2],
    pub(super) aspects: Vec<AspectInput>,
    pub(super) direction: Direction,
    pub(super) negligible: NegligibleRatios,
    pub(super) failures_rose: bool,
}

impl VerdictInput {
    /// Completes the aspects by their verdicts alone.
    pub(super) fn new(
        values: [MeasuredValue; 2],
        aspects: &mut [AspectComparison],
        direction: Direction,
        negligible: NegligibleRatios,
        failures_rose: bool,
    ) -> Self {
        let complete = |aspect: &mut AspectComparison| {
            let input = aspect.input(direction);
            let differs = input.certainty >= Certainty::Samples;
            aspect.alone = judge(input.ratio, input.interval, differs, direction, negligible);
            aspect.seems_worse = input.seems_worse(direction, negligible);
            input
        };
        let aspects = aspects.iter_mut().map(complete).collect();
        Self { values, aspects, direction, negligible, failures_rose }
    }

    /// Whether the dependence of samples on those before them is all that prevents equality.
    pub(super) fn equal_if_independent(&self) -> bool {
        let independent = |aspect: &AspectInput| AspectInput { interval: aspect.independent_interval, ..*aspect };
        let if_independent = || Self { aspects: self.aspects.iter().map(independent).collect(), ..*self };
        self.verdict() == Verdict::Inconclusive && if_independent().verdict() == Verdict::Equivalent
    }

    pub(super) fn verdict(&self) -> Verdict {
        // A build whose attempts fail is worse, also if no value is left of them.
        if self.failures_rose {
            return Verdict::Regressed;
        }
        match self.values {
            [MeasuredValue::Missing, _] | [_, MeasuredValue::Missing] => return Verdict::Missing,
            [MeasuredValue::Invalid, _] | [_, MeasuredValue::Invalid] => return Verdict::Invalid,
            [MeasuredValue::Known(_), MeasuredValue::Known(_)] => {}
        }
        let verdict = |aspect: &AspectInput, certainty| {
            judge(aspect.ratio, aspect.interval, aspect.certainty >= certainty, self.direction, self.negligible)
        };
        let any = |certainty, requested| self.aspects.iter().any(|aspect| verdict(aspect, certainty) == requested);
        let worse = |certainty| any(certainty, Verdict::Regressed);
        let better = |certainty| any(certainty, Verdict::Improved);
        if worse(Certainty::Runs) {
            return Verdict::Regressed;
        }
        // A gain beside what may be a loss is not confirmed either.
        let seems_worse = self.aspects.iter().any(|aspect| aspect.seems_worse(self.direction, self.negligible));
        if better(Certainty::Runs) && !worse(Certainty::Samples) && !seems_worse {
            return Verdict::Improved;
        }
        if any(Certainty::Runs, Verdict::Differs) {
            return Verdict::Differs;
        }
        if worse(Certainty::Samples) || better(Certainty::Samples) || any(Certainty::Samples, Verdict::Differs) {
            return Verdict::Unconfirmed;
        }
        let equivalent = |aspect: &AspectInput| verdict(aspect, Certainty::Samples) == Verdict::Equivalent;
        if !self.aspects.is_empty() && self.aspects.iter().all(equivalent) {
            Verdict::Equivalent
        } else {
            Verdict::Inconclusive
        }
    }
}

impl AspectComparison {
    fn input(&self, direction: Direction) -> AspectInput {
        // If own runs vary more than assumed, their samples say nothing about the next run.
        let within = |interval: Interval| match (self.source, self.runs_interval) {
            (Some(NoiseSource::OwnRuns | NoiseSource::SingleSamples), Some(runs)) => {
                Interval { low: interval.low.min(runs.low), high: interval.high.max(runs.high), ..interval }
            }
            _ => interval,
        };
        // More latency is worse, whatever the direction of the metric that it stands beside.
        let ratio = match (self.aspect, direction) {
            (Aspect::P99, Direction::Higher) => 1.0 / self.ratio,
            _ => self.ratio,
        };
        let oriented = |interval: Interval| match (self.aspect, direction) {
            (Aspect::P99, Direction::Higher) => {
                Interval { low: 1.0 / interval.high, high: 1.0 / interval.low, ..interval }
            }
            _ => interval,
        };
        let [interval, independent_interval] =
            [self.widened_interval, self.interval].map(|interval| interval.map(within).map(oriented));
        AspectInput { ratio, interval, independent_interval, certainty: self.certainty }
    }
}

pub(crate) fn judge(
    ratio: f64,
    interval: Option<Interval>,
    differs: bool,
    direction: Direction,
    negligible: NegligibleRatios,
) -> Verdict {
    let within = |value: f64| negligible.contains(value);
    if interval.is_some_and(|interval| within(interval.low) && within(interval.high)) {
        return Verdict::Equivalent;
    }
    if !differs || within(ratio) {
        return Verdict::Inconclusive;
    }
    let better = match direction {
        Direction::Higher => ratio > 1.0,
        Direction::Lower => ratio < 1.0,
        // Neither direction is better.
        Direction::Neither => return Verdict::Differs,
    };
    if better { Verdict::Improved } else { Verdict::Regressed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aspect(ratio: f64, low: f64, high: f64, certainty: Certainty) -> AspectInput {
        let interval = Some(Interval { low, high, confidence: 0.95 });
        AspectInput { ratio, interval, independent_interval: interval, certainty }
    }

    /// Input for the verdict on a metric where more is better.
    fn judged(aspects: &[AspectInput]) -> VerdictInput {
        VerdictInput {
            values: [MeasuredValue::Known(1.0); 2],
            aspects: aspects.to_vec(),
            direction: Direction::Higher,
            negligible: NegligibleRatios::new(5.0),
            failures_rose: false,
        }
    }

    const EQUAL: fn() -> AspectInput = || aspect(0.99, 0.97, 1.01, Certainty::None);

    #[test]
    fn a_verdict_needs_significance_and_relevance() {
        let one = |ratio, low, high, certainty| judged(&[aspect(ratio, low, high, certainty)]).verdict();
        assert_eq!(one(0.9, 0.85, 0.96, Certainty::Runs), Verdict::Regressed);
        assert_eq!(one(1.1, 1.02, 1.2, Certainty::Runs), Verdict::Improved);
        assert_eq!(one(0.98, 0.96, 0.99, Certainty::Runs), Verdict::Equivalent);
        assert_eq!(one(0.96, 0.92, 0.99, Certainty::Runs), Verdict::Inconclusive);
        assert_eq!(one(0.9, 0.7, 1.1, Certainty::None), Verdict::Inconclusive);
        assert_eq!(one(0.9, 0.85, 0.96, Certainty::Samples), Verdict::Unconfirmed);
        assert_eq!(one(1.1, 1.02, 1.2, Certainty::Samples), Verdict::Unconfirmed);
    }

    #[test]
    fn any_aspect_can_be_worse_and_all_must_be_equivalent() {
        let tail = |certainty| aspect(0.7, 0.6, 0.9, certainty);
        let better = aspect(1.3, 1.2, 1.4, Certainty::Runs);
        for (aspects, verdict) in [
            (vec![EQUAL(), EQUAL()], Verdict::Equivalent),
            (vec![EQUAL(), tail(Certainty::Runs)], Verdict::Regressed),
            (vec![EQUAL(), tail(Certainty::None)], Verdict::Inconclusive),
            (vec![better, tail(Certainty::Runs)], Verdict::Regressed),
            (vec![better, tail(Certainty::Samples)], Verdict::Unconfirmed),
            (vec![better, EQUAL()], Verdict::Improved),
            (vec![better, aspect(0.4, 0.1, 1.6, Certainty::None)], Verdict::Unconfirmed),
            (vec![better, aspect(0.97, 0.6, 1.4, Certainty::None)], Verdict::Improved),
            (vec![EQUAL(), AspectInput { interval: None, ..EQUAL() }], Verdict::Inconclusive),
            (vec![], Verdict::Inconclusive),
        ] {
            assert_eq!(judged(&aspects).verdict(), verdict, "{aspects:?}");
        }
    }

    // Of 36 samples that correlate by 0.9, too narrow intervals called a quarter of equal sides equivalent.
    #[test]
    fn dependent_samples_need_a_wider_interval_to_be_equal_and_none_to_differ() {
        let wide = Some(Interval { low: 0.9, high: 1.1, confidence: 0.95 });
        let input = judged(&[AspectInput { interval: wide, ..EQUAL() }]);
        assert_eq!((input.verdict(), input.equal_if_independent()), (Verdict::Inconclusive, true));
        let differs = AspectInput { interval: wide, ..aspect(0.92, 0.91, 0.93, Certainty::Runs) };
        let differs = judged(&[differs]);
        assert_eq!((differs.verdict(), differs.equal_if_independent()), (Verdict::Regressed, false));
    }

    #[test]
    fn the_direction_decides_what_is_an_improvement() {
        let less = || vec![aspect(0.9, 0.85, 0.94, Certainty::Runs)];
        let lower = VerdictInput { direction: Direction::Lower, ..judged(&less()) };
        assert_eq!(lower.verdict(), Verdict::Improved);
        let neither = VerdictInput { direction: Direction::Neither, ..judged(&less()) };
        assert_eq!(neither.verdict(), Verdict::Differs);
    }

    #[test]
    fn more_failures_are_a_regression_whatever_the_samples_say() {
        let equal = VerdictInput { failures_rose: true, ..judged(&[EQUAL()]) };
        assert_eq!(equal.verdict(), Verdict::Regressed);
        for value in [MeasuredValue::Invalid, MeasuredValue::Missing] {
            let none_left =
                VerdictInput { values: [MeasuredValue::Known(1.0), value], failures_rose: true, ..judged(&[]) };
            assert_eq!(none_left.verdict(), Verdict::Regressed);
        }
    }

    #[test]
    fn missing_and_invalid_values_have_their_own_verdicts() {
        let with = |last| VerdictInput { values: [MeasuredValue::Known(1.0), last], ..judged(&[EQUAL()]) }.verdict();
        assert_eq!(with(MeasuredValue::Missing), Verdict::Missing);
        assert_eq!(with(MeasuredValue::Invalid), Verdict::Invalid);
    }
}
