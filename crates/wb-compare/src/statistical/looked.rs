//! A metric before and after the family is looked at.

use wb_model::{Class, Direction};
use wb_stats::RunNoise;

use super::known::{Known, NoiseUse};
use super::needs::{self, Needs};
use super::tested::Tested;
use super::units::{self, Unit, Units};
use super::verdict::Judgement;
use super::{Check, ENOUGH_SAMPLES, Options, Verdict};
use crate::build::{Build, Builds, Row, Value};
use crate::id::Statistic;

/// A metric that is tested, and not judged yet.
pub(super) struct Looked<'a> {
    row: Row,
    pub(super) primary: bool,
    units: Units,
    values: [Value; 2],
    noise: Option<&'a RunNoise>,
    noise_use: Option<NoiseUse>,
    tested: Option<Tested>,
    comparable: bool,
}

/// What the family has to say of each of its metrics.
pub(super) struct Together {
    /// The probability, adjusted.
    pub(super) p: Option<f64>,
    /// The confidence of the interval.
    pub(super) confidence: f64,
    /// The fewest values a side with which any metric of the family could be told apart by ranks.
    pub(super) least: usize,
}

impl<'a> Looked<'a> {
    /// What both sides have of a metric; none where neither has any, and for checks, which are no measure of speed.
    pub(super) fn at(
        builds: &Builds,
        sides: [&Build; 2],
        row: Row,
        known: &Known<'a>,
        options: &Options,
    ) -> Option<Self> {
        let primary = sides[1].primary(row).or_else(|| sides[0].primary(row))?;
        if builds.id(row, Statistic::Mean).class == Class::Check {
            return None;
        }
        let runs = sides.map(|side| units::runs(side, row));
        let units = Units::of(sides, &runs);
        let (noise, mut noise_use) = known.of(builds, sides, row).unzip();
        let noise = noise.flatten();
        let wanted = noise.filter(|_| matches!(noise_use, Some(NoiseUse::Used { .. })));
        // A seed of the metric's own, so that each draws by itself and any one can be repeated.
        let seed = options.seed ^ (row.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let comparable = builds.is_comparable(sides, row);
        let tested = comparable
            .then(|| Tested::of(&runs, units.unit, wanted, 1.0 - options.rate, units.drawn.then_some(seed)))
            .flatten();
        if comparable && wanted.is_some() && !matches!(tested, Some(Tested::Noisy(_))) {
            noise_use = Some(NoiseUse::TooThin { why: "a value that is compared is not above zero".to_owned() });
        }
        let values = sides.map(|side| side.value(row, Statistic::Mean));
        Some(Self { row, primary, units, values, noise, noise_use, tested, comparable })
    }

    /// The probability of so large a difference where there is none; none where no ratio can be had.
    pub(super) fn p(&self) -> Option<f64> {
        self.tested.as_ref().map(Tested::p)
    }

    /// What follows.
    pub(super) fn judged(self, builds: &Builds, sides: [&Build; 2], together: Together, options: &Options) -> Check {
        let Self { row, primary, units, values, noise, noise_use, tested, comparable } = self;
        let Together { p, confidence, least } = together;
        let noisy = matches!(tested, Some(Tested::Noisy(_)));
        let effect =
            tested.and_then(|it| it.effect(|| sides.map(|side| units::runs(side, row)), units.unit, confidence));
        let id = builds.id(row, Statistic::Mean);
        let threshold = options.threshold.of(noise);
        let judgement = Judgement {
            values,
            effect,
            differs: p.is_some_and(|p| p <= options.rate),
            direction: options.directions.of(id.class, id.metric),
            threshold: threshold / 100.0,
            trusted: noisy || units.unit == Unit::Runs || options.trust_single_run,
        };
        let verdict = match judgement.verdict() {
            Verdict::Missing => Verdict::Missing,
            _ if !comparable => Verdict::Incomparable,
            verdict => verdict,
        };
        let needs = match verdict {
            // How far runs lie apart is known: any number of them may do.
            Verdict::Inconclusive if noisy => {
                let runs = sides.map(|side| side.readings(row).count());
                needs::of(Unit::Runs, runs[0].min(runs[1]), effect, threshold / 100.0, 1)
            }
            Verdict::Inconclusive => {
                // With fewer samples statistics are not asked, with runs always.
                let least = if units.unit == Unit::Samples { least.max(ENOUGH_SAMPLES) } else { least };
                needs::of(units.unit, units.src.min(units.dst), effect, threshold / 100.0, least)
            }
            // Where neither way is better no number of runs says which is.
            Verdict::Differs if judgement.direction != Direction::Neither => {
                Some(Needs { each: Some(least), unit: Unit::Runs, fewest: true })
            }
            _ => None,
        };
        Check { row, primary, units, effect, p, threshold, noise: noise_use, verdict, needs }
    }
}
