//! The method of statistics: by which factor a metric differs, how sure that is, and whether it matters.
//!
//! The effect is the ratio of medians by Hodges and Lehmann, its test Wilcoxon's rank sum, both exact for few values
//! ([`wb_stats::TwoSides`]); from five runs a side on, a bootstrap that draws runs and then samples
//! ([`wb_stats::Drawn`]). What is ranked are samples where each side has one run, and the runs' medians
//! otherwise: many samples within one run say nothing of the next run.
//!
//! All primary metrics are one family: which of them differ is decided together (Benjamini and Hochberg), and the
//! intervals are taken at the confidence that goes with that (Benjamini and Yekutieli).
//!
//! Start with [`compare`]; [`verdict`] says what each verdict means, [`units`] what is ranked, [`needs`] what would
//! decide what is not.

pub mod needs;
mod tested;
pub mod units;
pub mod verdict;

use rayon::prelude::*;
use wb_model::Class;
use wb_stats::{Ratio, benjamini_hochberg, selected_confidence};

use crate::build::{Build, Builds, Row, Value};
use crate::direction::Directions;
use crate::id::Statistic;
pub use needs::Needs;
use tested::Tested;
pub use units::Unit;
use units::Units;
use verdict::Judgement;
pub use verdict::Verdict;

/// How differences are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// A difference of less than so many percent does not matter.
    pub threshold: f64,
    /// Of the metrics that are said to differ, at most this share is wrong on average; one minus the intervals'
    /// confidence.
    pub rate: f64,
    /// Whether one run a side is enough for a verdict, as if runs did not differ from each other.
    pub trust_single_run: bool,
    /// Which way is better.
    pub directions: Directions,
    /// From which the bootstrap draws.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: 5.0, rate: 0.05, trust_single_run: false, directions: Directions::default(), seed: 1 }
    }
}

/// A build against the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What any of the two has, in the builds' order.
    pub checks: Vec<Check>,
    /// How many metrics were judged together.
    pub family: usize,
    /// How many of them differ.
    pub discoveries: usize,
    /// The confidence of the intervals.
    pub confidence: f64,
}

/// A metric on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Which.
    pub row: Row,
    /// Whether its case is judged by it.
    pub primary: bool,
    /// What was ranked: how many on each side, and what they are.
    pub units: Units,
    /// The last build's over the first's; none where that cannot be said.
    pub effect: Option<Ratio>,
    /// The probability of so large a difference where there is none, adjusted for the family; of metrics that are not
    /// primary, by itself. None without an effect.
    pub p: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
    /// What would decide it, where it is not decided.
    pub needs: Option<Needs>,
}

/// A metric before the family is looked at.
struct Looked {
    row: Row,
    primary: bool,
    units: Units,
    values: [Value; 2],
    tested: Option<Tested>,
}

impl Looked {
    fn p(&self) -> Option<f64> {
        self.tested.as_ref().map(Tested::p)
    }
}

/// Compares the last build with the first; none with fewer than two.
pub fn compare(builds: &Builds, options: &Options) -> Option<Comparison> {
    against(builds, builds.list().len().checked_sub(1)?, options)
}

/// Compares a build with the first, by its place among the builds; none where that is no later one.
pub fn against(builds: &Builds, build: usize, options: &Options) -> Option<Comparison> {
    let [src, later @ ..] = builds.list() else { return None };
    let dst = later.get(build.checked_sub(1)?)?;
    let sides = [src, dst];
    let rows: Vec<Row> = builds.rows().collect();
    let looked: Vec<Looked> = rows.into_par_iter().filter_map(|row| look(builds, sides, row, options)).collect();
    let family: Vec<f64> = looked.iter().filter(|looked| looked.primary).filter_map(Looked::p).collect();
    let found = benjamini_hochberg(&family, options.rate);
    let confidence = selected_confidence(options.rate, found.count, family.len());
    let mut adjusted = found.adjusted.into_iter();
    let together: Vec<(Looked, Option<f64>)> = looked
        .into_iter()
        .map(|looked| {
            let p = if looked.primary { looked.p().and_then(|_| adjusted.next()) } else { looked.p() };
            (looked, p)
        })
        .collect();
    let (discoveries, family) = (found.count, family.len());
    let least = needs::reachable(options.rate, family);
    let checks = together.into_par_iter().map(|(looked, p)| {
        let Looked { row, primary, units, values, tested } = looked;
        let confidence = if primary { confidence } else { 1.0 - options.rate };
        let runs = || sides.map(|side| units::runs(side, row));
        let effect = tested.and_then(|tested| tested.effect(runs, units.unit, confidence));
        let id = builds.id(row, Statistic::Mean);
        let judgement = Judgement {
            values,
            effect,
            differs: p.is_some_and(|p| p <= options.rate),
            direction: options.directions.of(id.class, id.metric),
            threshold: options.threshold / 100.0,
            trusted: units.unit == Unit::Runs || options.trust_single_run,
        };
        let verdict = judgement.verdict();
        let needs = match verdict {
            Verdict::Inconclusive => needs::of(units, effect, options.threshold / 100.0, least),
            Verdict::Differs => Some(Needs { each: Some(least), unit: Unit::Runs }),
            _ => None,
        };
        Check { row, primary, units, effect, p, verdict, needs }
    });
    Some(Comparison { checks: checks.collect(), family, discoveries, confidence })
}

/// What both sides have of a metric; none where neither has any, and for checks, which are no measure of speed.
fn look(builds: &Builds, sides: [&Build; 2], row: Row, options: &Options) -> Option<Looked> {
    let primary = sides[1].primary(row).or_else(|| sides[0].primary(row))?;
    if builds.id(row, Statistic::Mean).class == Class::Check {
        return None;
    }
    let values = sides.map(|side| side.value(row, Statistic::Mean));
    let runs = sides.map(|side| units::runs(side, row));
    let units = Units::of(sides, &runs);
    // A seed of the metric's own, so that each draws by itself and any one can be repeated.
    let seed = options.seed ^ (row.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let tested = Tested::of(&runs, units.unit, 1.0 - options.rate, units.drawn.then_some(seed));
    Some(Looked { row, primary, units, values, tested })
}
