//! Builds: what was measured, side by side.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Class, Unit};

use crate::direction::Directions;
use crate::id::{CheckId, IdFormat, Statistic};
use crate::interner::{Interner, Set, Symbol};
use crate::metadata::Metadata;
use crate::source::Layout;
use crate::source::{DEFINITION_KEY, EMULATED};

/// The builds of a comparison over the metrics that any of them has, in the order in which they were met: the first
/// build's first. Names and parameters are kept once for all.
#[derive(Debug, Default)]
pub struct Builds {
    pub(crate) names: Interner,
    pub(crate) rows: Set<InternedMetric>,
    pub(crate) params: Set<Box<[(Symbol, Symbol)]>>,
    pub(crate) units: Vec<Option<Symbol>>,
    pub(crate) list: Vec<Build>,
    pub(crate) directions: Directions,
}

/// A metric of a case among some [`Builds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetricIndex(pub(crate) u32);

impl MetricIndex {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What makes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InternedMetric {
    pub(crate) naming: IdFormat,
    pub(crate) profile: Symbol,
    pub(crate) test: Symbol,
    pub(crate) serial: Symbol,
    pub(crate) case: Symbol,
    pub(crate) class: Class,
    pub(crate) metric: Symbol,
}

/// A case among some [`Builds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InternedCell {
    pub(crate) profile: Symbol,
    pub(crate) test: Symbol,
    pub(crate) serial: Symbol,
    pub(crate) case: Symbol,
}

/// The parameters of a case among some [`Builds`]; equal exactly where all names and values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParamSetId(pub(crate) u32);

/// One side of a comparison: one or more runs under a name.
#[derive(Debug)]
pub struct Build {
    /// Its name.
    pub name: String,
    /// Its runs, at least one.
    pub runs: Vec<Run>,
}

/// One folder of results.
#[derive(Debug, Default)]
pub struct Run {
    /// The folder.
    pub path: PathBuf,
    /// Whose results it holds.
    pub layout: Layout,
    /// What was said of it, and its environment.
    pub metadata: Metadata,
    /// Tests and cells that ended in an error.
    pub errors: Vec<TestError>,
    /// Its counted samples; none where its results do not record what disturbed them.
    pub sample_counts: Option<SampleCounts>,
    /// The programs that its cases were measured with: their paths, versions and hashes.
    pub(crate) programs: BTreeMap<InternedCell, Vec<(Symbol, Symbol)>>,
    pub(crate) readings: Vec<Option<MetricReading>>,
    pub(crate) samples: Vec<f64>,
}

/// An error instead of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestError {
    /// `PROFILE/TEST/SERIAL`, with `*` for what the error lies above; in an own run `PROFILE/TEST/SERIAL:CASE`.
    pub place: String,
    /// The error's text.
    pub text: String,
}

impl TestError {
    /// The identifier that run-perf gives it.
    pub fn id(&self) -> String {
        format!("{}:./ERROR/ERROR/ERROR.error", self.place)
    }
}

/// Counted samples, and how many of them something outside the workload disturbed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampleCounts {
    /// Counted samples.
    pub counted: usize,
    /// Those of them that were disturbed.
    pub disturbed: usize,
}

impl std::ops::Add for SampleCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { counted: self.counted + other.counted, disturbed: self.disturbed + other.disturbed }
    }
}

/// A value on one side.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum MeasuredValue {
    /// It is not there.
    #[default]
    Missing,
    /// It is there and is no finite number, or was found invalid.
    Invalid,
    /// A finite number.
    Known(f64),
}

impl MeasuredValue {
    /// The number, where it is known.
    pub fn known(self) -> Option<f64> {
        match self {
            Self::Known(value) => Some(value),
            Self::Missing | Self::Invalid => None,
        }
    }
}

impl From<f64> for MeasuredValue {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Known(value) } else { Self::Invalid }
    }
}

/// What one run says of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricReading {
    /// Mean over samples.
    pub mean: MeasuredValue,
    /// Their standard deviation in percent of the mean.
    pub stddev: MeasuredValue,
    /// Whether the case is judged by this metric.
    pub primary: bool,
    /// The parameters that it was measured with.
    pub params: ParamSetId,
    /// How many of its samples something disturbed from outside.
    pub disturbed: u32,
    pub(crate) first_sample: u32,
    pub(crate) samples: u32,
}

impl MetricReading {
    /// One of its statistics.
    pub fn value(&self, statistic: Statistic) -> MeasuredValue {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::Stddev => self.stddev,
        }
    }
}

impl Run {
    /// What it says of a metric; none where it has no such metric.
    pub fn reading(&self, row: MetricIndex) -> Option<&MetricReading> {
        self.readings.get(row.index())?.as_ref()
    }

    /// The samples of a metric in the order in which they were taken; empty where none were recorded.
    pub fn samples(&self, row: MetricIndex) -> &[f64] {
        let range = self.reading(row).map(|it| it.first_sample as usize..(it.first_sample + it.samples) as usize);
        range.and_then(|range| self.samples.get(range)).unwrap_or(&[])
    }
}

impl Build {
    /// What its runs say of a metric, those that have it.
    pub fn readings(&self, row: MetricIndex) -> impl Iterator<Item = &MetricReading> {
        self.runs.iter().filter_map(move |run| run.reading(row))
    }

    /// A statistic of a metric: the average over the runs that know it; with none that does, invalid where any run
    /// has it as invalid.
    pub fn value(&self, row: MetricIndex, statistic: Statistic) -> MeasuredValue {
        if let [run] = &self.runs[..] {
            return run.reading(row).map_or(MeasuredValue::Missing, |reading| reading.value(statistic));
        }
        let values = || self.readings(row).map(|reading| reading.value(statistic));
        let known = values().filter_map(MeasuredValue::known).count() as f64;
        if known > 0.0 {
            return values().filter_map(MeasuredValue::known).map(|value| value / known).sum::<f64>().into();
        }
        if values().any(|value| value == MeasuredValue::Invalid) {
            MeasuredValue::Invalid
        } else {
            MeasuredValue::Missing
        }
    }

    /// The errors of its runs.
    pub fn errors(&self) -> impl Iterator<Item = &TestError> {
        self.runs.iter().flat_map(|run| &run.errors)
    }

    /// Counted samples over its runs; none where no run records what disturbed them.
    pub fn sample_counts(&self) -> Option<SampleCounts> {
        self.runs.iter().filter_map(|run| run.sample_counts).reduce(std::ops::Add::add)
    }

    /// Counted samples of a metric that were disturbed, over its runs; none where no run records it.
    pub fn disturbed(&self, row: MetricIndex) -> Option<usize> {
        self.sample_counts()?;
        Some(self.readings(row).map(|reading| reading.disturbed as usize).sum())
    }

    /// Whether a metric is primary in it; none where no run has it.
    pub fn primary(&self, row: MetricIndex) -> Option<bool> {
        self.readings(row).map(|reading| reading.primary).reduce(|one, other| one || other)
    }
}

impl Builds {
    /// The builds, the source first and the destination last.
    pub fn list(&self) -> &[Build] {
        &self.list
    }

    /// Which way is better, as the results say where they do.
    pub fn directions(&self) -> &Directions {
        &self.directions
    }

    /// The metrics that any build has.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = MetricIndex> + use<> {
        (0..self.rows.len() as u32).map(MetricIndex)
    }

    /// The identifier of a statistic of a metric.
    pub fn id(&self, row: MetricIndex, statistic: Statistic) -> CheckId<'_> {
        let InternedMetric { naming, profile, test, serial, case, class, metric } = self.rows[row.index()];
        let [profile, test, serial, case, metric] =
            [profile, test, serial, case, metric].map(|name| self.names.resolve(name));
        CheckId { naming, profile, test, serial, case, class, metric, statistic }
    }

    /// In which unit the values of a metric are, where its results say so.
    pub fn unit(&self, row: MetricIndex) -> Option<Unit> {
        let name = (*self.units.get(row.index())?)?;
        Some(Unit::new(self.names.resolve(name)))
    }

    /// The metric that an identifier means; none where no build has it.
    pub fn find(&self, id: &CheckId<'_>) -> Option<MetricIndex> {
        let name = |text| self.names.find(text);
        let key = InternedMetric {
            naming: id.naming,
            profile: name(id.profile)?,
            test: name(id.test)?,
            serial: name(id.serial)?,
            case: name(id.case)?,
            class: id.class,
            metric: name(id.metric)?,
        };
        self.rows.get_index_of(&key).map(|index| MetricIndex(index as u32))
    }

    /// Whether both builds measured a row by the same definition, or none is known, and on the same kind of processor.
    pub fn is_comparable(&self, sides: [&Build; 2], row: MetricIndex) -> bool {
        let [src, dst] = sides.map(|side| side.readings(row).next().map(|reading| reading.params));
        let (Some(src), Some(dst)) = (src, dst) else { return true };
        let same = |name: &str| {
            let Some(name) = self.names.find(name) else { return true };
            let value = |ParamSetId(id): ParamSetId| {
                self.params[id as usize].iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
            };
            value(src) == value(dst)
        };
        src == dst || (same(DEFINITION_KEY) && same(EMULATED))
    }

    /// The names and values of parameters, sorted by name.
    pub fn params(&self, id: ParamSetId) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.params[id.0 as usize].iter().map(|(name, value)| (self.names.resolve(*name), self.names.resolve(*value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mean: MeasuredValue) -> Run {
        let (stddev, params) = (MeasuredValue::Missing, ParamSetId(0));
        let reading = MetricReading { mean, stddev, primary: false, params, disturbed: 0, first_sample: 0, samples: 0 };
        Run { readings: vec![Some(reading)], ..Run::default() }
    }

    #[test]
    fn a_build_of_several_runs_has_the_average_of_those_that_know() {
        let build =
            |means: &[MeasuredValue]| Build { name: "b".to_owned(), runs: means.iter().copied().map(run).collect() };
        let mean = |means: &[MeasuredValue]| build(means).value(MetricIndex(0), Statistic::Mean);
        assert_eq!(
            mean(&[MeasuredValue::Known(1.0), MeasuredValue::Invalid, MeasuredValue::Known(3.0)]),
            MeasuredValue::Known(2.0)
        );
        assert_eq!(mean(&[MeasuredValue::Invalid, MeasuredValue::Missing]), MeasuredValue::Invalid);
        assert_eq!(mean(&[MeasuredValue::Missing, MeasuredValue::Missing]), MeasuredValue::Missing);
        assert_eq!(build(&[MeasuredValue::Known(1.0)]).value(MetricIndex(7), Statistic::Mean), MeasuredValue::Missing);
    }
}
