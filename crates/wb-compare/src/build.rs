//! Builds: what was measured, side by side.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Class, Unit};

use crate::direction::Directions;
use crate::id::{CheckId, Naming, Statistic};
use crate::metadata::Metadata;
use crate::names::{Name, Names, Set};
use crate::source::Layout;
use crate::source::{EMULATED, KEY};

/// The builds of a comparison over the metrics that any of them has, in the order in which they were met: the first
/// build's first. Names and parameters are kept once for all.
#[derive(Debug, Default)]
pub struct Builds {
    pub(crate) names: Names,
    pub(crate) rows: Set<RowKey>,
    pub(crate) params: Set<Box<[(Name, Name)]>>,
    pub(crate) units: Vec<Option<Name>>,
    pub(crate) list: Vec<Build>,
    pub(crate) directions: Directions,
}

/// A metric of a case among some [`Builds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub(crate) u32);

impl Row {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What makes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) naming: Naming,
    pub(crate) profile: Name,
    pub(crate) test: Name,
    pub(crate) serial: Name,
    pub(crate) case: Name,
    pub(crate) class: Class,
    pub(crate) metric: Name,
}

/// A case among some [`Builds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CellKey {
    pub(crate) profile: Name,
    pub(crate) test: Name,
    pub(crate) serial: Name,
    pub(crate) case: Name,
}

/// The parameters of a case among some [`Builds`]; equal exactly where all names and values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParamsId(pub(crate) u32);

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
    pub errors: Vec<RunError>,
    /// Its counted samples; none where its results do not record what disturbed them.
    pub sample_counts: Option<SampleCounts>,
    /// The programs that its cases were measured with: their paths, versions and hashes.
    pub(crate) programs: BTreeMap<CellKey, Vec<(Name, Name)>>,
    pub(crate) readings: Vec<Option<Reading>>,
    pub(crate) samples: Vec<f64>,
}

/// An error instead of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunError {
    /// `PROFILE/TEST/SERIAL`, with `*` for what the error lies above; in an own run `PROFILE/TEST/SERIAL:CASE`.
    pub place: String,
    /// The error's text.
    pub text: String,
}

impl RunError {
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

impl SampleCounts {
    /// Both counts, added up.
    pub fn plus(self, other: Self) -> Self {
        Self { counted: self.counted + other.counted, disturbed: self.disturbed + other.disturbed }
    }
}

/// A value on one side.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Value {
    /// It is not there.
    #[default]
    Missing,
    /// It is there and is no finite number, or was found invalid.
    Invalid,
    /// A finite number.
    Known(f64),
}

impl Value {
    /// The number, where it is known.
    pub fn known(self) -> Option<f64> {
        match self {
            Self::Known(value) => Some(value),
            Self::Missing | Self::Invalid => None,
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Known(value) } else { Self::Invalid }
    }
}

/// What one run says of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Mean over samples.
    pub mean: Value,
    /// Their standard deviation in percent of the mean.
    pub stddev: Value,
    /// Whether the case is judged by this metric.
    pub primary: bool,
    /// The parameters that it was measured with.
    pub params: ParamsId,
    /// How many of its samples something disturbed from outside.
    pub disturbed: u32,
    pub(crate) first_sample: u32,
    pub(crate) samples: u32,
}

impl Reading {
    /// One of its statistics.
    pub fn value(&self, statistic: Statistic) -> Value {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::Stddev => self.stddev,
        }
    }
}

impl Run {
    /// What it says of a metric; none where it has no such metric.
    pub fn reading(&self, row: Row) -> Option<&Reading> {
        self.readings.get(row.index())?.as_ref()
    }

    /// The samples of a metric in the order in which they were taken; empty where none were recorded.
    pub fn samples(&self, row: Row) -> &[f64] {
        let range = self.reading(row).map(|it| it.first_sample as usize..(it.first_sample + it.samples) as usize);
        range.and_then(|range| self.samples.get(range)).unwrap_or(&[])
    }
}

impl Build {
    /// What its runs say of a metric, those that have it.
    pub fn readings(&self, row: Row) -> impl Iterator<Item = &Reading> {
        self.runs.iter().filter_map(move |run| run.reading(row))
    }

    /// A statistic of a metric: the average over the runs that know it; with none that does, invalid where any run
    /// has it as invalid.
    pub fn value(&self, row: Row, statistic: Statistic) -> Value {
        if let [run] = &self.runs[..] {
            return run.reading(row).map_or(Value::Missing, |reading| reading.value(statistic));
        }
        let values = || self.readings(row).map(|reading| reading.value(statistic));
        let known = values().filter_map(Value::known).count() as f64;
        if known > 0.0 {
            return values().filter_map(Value::known).map(|value| value / known).sum::<f64>().into();
        }
        if values().any(|value| value == Value::Invalid) { Value::Invalid } else { Value::Missing }
    }

    /// The errors of its runs.
    pub fn errors(&self) -> impl Iterator<Item = &RunError> {
        self.runs.iter().flat_map(|run| &run.errors)
    }

    /// Counted samples over its runs; none where no run records what disturbed them.
    pub fn sample_counts(&self) -> Option<SampleCounts> {
        self.runs.iter().filter_map(|run| run.sample_counts).reduce(SampleCounts::plus)
    }

    /// Counted samples of a metric that were disturbed, over its runs; none where no run records it.
    pub fn disturbed(&self, row: Row) -> Option<usize> {
        self.sample_counts()?;
        Some(self.readings(row).map(|reading| reading.disturbed as usize).sum())
    }

    /// Whether a metric is primary in it; none where no run has it.
    pub fn primary(&self, row: Row) -> Option<bool> {
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
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row> + use<> {
        (0..self.rows.len() as u32).map(Row)
    }

    /// The identifier of a statistic of a metric.
    pub fn id(&self, row: Row, statistic: Statistic) -> CheckId<'_> {
        let RowKey { naming, profile, test, serial, case, class, metric } = self.rows[row.index()];
        let [profile, test, serial, case, metric] =
            [profile, test, serial, case, metric].map(|name| self.names.text(name));
        CheckId { naming, profile, test, serial, case, class, metric, statistic }
    }

    /// In which unit the values of a metric are, where its results say so.
    pub fn unit(&self, row: Row) -> Option<Unit> {
        let name = (*self.units.get(row.index())?)?;
        Some(Unit::new(self.names.text(name)))
    }

    /// The metric that an identifier means; none where no build has it.
    pub fn find(&self, id: &CheckId<'_>) -> Option<Row> {
        let name = |text| self.names.find(text);
        let key = RowKey {
            naming: id.naming,
            profile: name(id.profile)?,
            test: name(id.test)?,
            serial: name(id.serial)?,
            case: name(id.case)?,
            class: id.class,
            metric: name(id.metric)?,
        };
        self.rows.get_index_of(&key).map(|index| Row(index as u32))
    }

    /// Whether both builds measured a row by the same definition, or none is known, and on the same kind of processor.
    pub fn is_comparable(&self, sides: [&Build; 2], row: Row) -> bool {
        let [src, dst] = sides.map(|side| side.readings(row).next().map(|reading| reading.params));
        let (Some(src), Some(dst)) = (src, dst) else { return true };
        let same = |name: &str| {
            let Some(name) = self.names.find(name) else { return true };
            let value = |ParamsId(id): ParamsId| {
                self.params[id as usize].iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
            };
            value(src) == value(dst)
        };
        src == dst || (same(KEY) && same(EMULATED))
    }

    /// The names and values of parameters, sorted by name.
    pub fn params(&self, id: ParamsId) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.params[id.0 as usize].iter().map(|(name, value)| (self.names.text(*name), self.names.text(*value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mean: Value) -> Run {
        let (stddev, params) = (Value::Missing, ParamsId(0));
        let reading = Reading { mean, stddev, primary: false, params, disturbed: 0, first_sample: 0, samples: 0 };
        Run { readings: vec![Some(reading)], ..Run::default() }
    }

    #[test]
    fn a_build_of_several_runs_has_the_average_of_those_that_know() {
        let build = |means: &[Value]| Build { name: "b".to_owned(), runs: means.iter().copied().map(run).collect() };
        let mean = |means: &[Value]| build(means).value(Row(0), Statistic::Mean);
        assert_eq!(mean(&[Value::Known(1.0), Value::Invalid, Value::Known(3.0)]), Value::Known(2.0));
        assert_eq!(mean(&[Value::Invalid, Value::Missing]), Value::Invalid);
        assert_eq!(mean(&[Value::Missing, Value::Missing]), Value::Missing);
        assert_eq!(build(&[Value::Known(1.0)]).value(Row(7), Statistic::Mean), Value::Missing);
    }
}
