//! Builds: the measured values of all sides of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use wb_model::{Class, MetricKey, Unit, strip_worker};
use wb_results::comparison::{AttemptCounts, CheckId, IdFormat, SampleCounts, Statistic};

use crate::direction::{DirectionOverride, Directions};
use crate::interner::{Interner, Set, Symbol};
use crate::metadata::Metadata;
use crate::run_identity::RunIdentity;
use crate::schedule::{SampleTime, Schedule};
use crate::unknown_name::{self, MetricNameError};
use crate::within_run::WithinRun;

/// The parameter that holds the definition key: if it differs, nothing is compared.
pub const DEFINITION_KEY: &str = "definition key";

/// The parameter that marks emulation of a processor, unless that is allowed: if only one side has it, nothing is
/// compared.
pub const EMULATED: &str = "emulated";

/// Name under which a metric's unit is kept beside the parameters.
pub const METRIC_UNIT: &str = "metric unit";

/// Name under which a metric's better direction is kept beside the parameters, if its result declares one.
pub const METRIC_DIRECTION: &str = "metric direction";

/// Name under which a metric's class is kept beside the parameters, if the builds have it in different ones.
pub const METRIC_CLASS: &str = "metric class";

/// Name under which the usual exit status of a command, if it is not 0, is kept beside the parameters.
pub const EXIT_STATUS: &str = "exit status";

/// What must be equal for values to be compared.
pub const DEFINING_PARAMS: [&str; 6] =
    [DEFINITION_KEY, EMULATED, METRIC_UNIT, METRIC_DIRECTION, METRIC_CLASS, EXIT_STATUS];

/// The builds of a comparison with their metrics, in the order of first occurrence, starting with the first build.
/// Names and parameters are interned for all builds.
#[derive(Debug, Default)]
pub struct Builds {
    pub(crate) names: Interner,
    pub(crate) rows: Set<InternedMetric>,
    pub(crate) params: Set<Box<[(Symbol, Symbol)]>>,
    pub(crate) units: Vec<Option<Symbol>>,
    pub(crate) list: Vec<Build>,
    pub(crate) directions: Directions,
    /// Directions that the user has given, whatever the results declare.
    pub(crate) given_directions: Vec<DirectionOverride>,
    /// If the builds are parts of one run.
    pub(crate) within_run: Option<WithinRun>,
}

/// The index of a metric of a case in its [`Builds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetricIndex(pub(crate) u32);

impl MetricIndex {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InternedMetric {
    pub(crate) id_format: IdFormat,
    pub(crate) profile: Symbol,
    pub(crate) test: Symbol,
    pub(crate) serial: Symbol,
    pub(crate) case: Symbol,
    pub(crate) class: Class,
    pub(crate) metric: Symbol,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InternedCell {
    pub(crate) profile: Symbol,
    pub(crate) test: Symbol,
    pub(crate) serial: Symbol,
    pub(crate) case: Symbol,
}

/// The index of a set of parameters in its [`Builds`]; equal exactly if all names and values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParamSetId(pub(crate) u32);

/// One side of a comparison: a name and one or more runs.
#[derive(Debug)]
pub struct Build {
    pub name: String,
    /// At least one.
    pub runs: Vec<Run>,
}

/// The results of one folder.
#[derive(Debug, Default)]
pub struct Run {
    pub path: PathBuf,
    pub layout: Layout,
    pub metadata: Metadata,
    pub errors: Vec<TestError>,
    /// `None` if its results do not record disturbances.
    pub sample_counts: Option<SampleCounts>,
    pub(crate) identity: RunIdentity,
    /// The programs with which its cases were measured: paths, versions and hashes.
    pub(crate) programs: BTreeMap<InternedCell, Vec<(Symbol, Symbol)>>,
    pub(crate) readings: Vec<Option<MetricReading>>,
    pub(crate) samples: Vec<f64>,
    /// Empty unless requested by [`ReadOptions::schedule`](crate::ReadOptions::schedule).
    pub(crate) schedule: Schedule,
}

/// The layout of a result folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// run-perf's layout, with pbench's results.
    #[default]
    RunPerf,
    Weighbridge,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunPerf => "a run-perf result folder",
            Self::Weighbridge => "a Weighbridge run",
        })
    }
}

/// An error that a run recorded instead of the results of a test or cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestError {
    /// `PROFILE/TEST/SERIAL`, with `*` for the levels below the error; in a Weighbridge run `PROFILE/TEST/SERIAL:CASE`.
    pub location: String,
    pub message: String,
}

impl TestError {
    /// The identifier of the error in run-perf's syntax.
    pub fn id(&self) -> String {
        format!("{}:./ERROR/ERROR/ERROR.error", self.location)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum MeasuredValue {
    #[default]
    Missing,
    /// Present, but not a finite number, or judged invalid.
    Invalid,
    /// A finite number.
    Known(f64),
}

impl MeasuredValue {
    pub fn number(self) -> Option<f64> {
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

/// The values of a metric in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricReading {
    pub mean: MeasuredValue,
    /// In percent of the mean.
    pub stddev_percent: MeasuredValue,
    pub primary: bool,
    /// The smallest relevant difference in percent, if the run's plan has one.
    pub threshold: Option<f64>,
    pub params: ParamSetId,
    /// The number of its samples that were disturbed from outside.
    pub disturbed: u32,
    /// Of its cell.
    pub failures: AttemptCounts,
    pub(crate) findings: Option<Symbol>,
    pub(crate) first_sample: u32,
    pub(crate) samples: u32,
}

impl MetricReading {
    pub fn value(&self, statistic: Statistic) -> MeasuredValue {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::Stddev => self.stddev_percent,
        }
    }
}

impl Run {
    pub fn reading(&self, row: MetricIndex) -> Option<&MetricReading> {
        self.readings.get(row.index())?.as_ref()
    }

    /// The samples of a metric in measurement order; empty if none were recorded.
    pub fn samples(&self, row: MetricIndex) -> &[f64] {
        let range = self.reading(row).map(|it| it.first_sample as usize..(it.first_sample + it.samples) as usize);
        range.and_then(|range| self.samples.get(range)).unwrap_or(&[])
    }

    /// The times of the samples of a metric; empty if they were not read.
    pub(crate) fn sample_times(&self, row: MetricIndex) -> &[Option<SampleTime>] {
        let range = self.reading(row).map(|it| it.first_sample as usize..(it.first_sample + it.samples) as usize);
        range.and_then(|range| self.schedule.times.get(range)).unwrap_or(&[])
    }
}

impl Build {
    pub fn readings(&self, row: MetricIndex) -> impl Iterator<Item = &MetricReading> {
        self.runs.iter().filter_map(move |run| run.reading(row))
    }

    /// A statistic of a metric, averaged over the runs with a valid value; without one, invalid if a run has an invalid
    /// value.
    pub fn value(&self, row: MetricIndex, statistic: Statistic) -> MeasuredValue {
        if let [run] = &self.runs[..] {
            return run.reading(row).map_or(MeasuredValue::Missing, |reading| reading.value(statistic));
        }
        let values = || self.readings(row).map(|reading| reading.value(statistic));
        let count = values().filter_map(MeasuredValue::number).count() as f64;
        if count > 0.0 {
            return values().filter_map(MeasuredValue::number).map(|value| value / count).sum::<f64>().into();
        }
        if values().any(|value| value == MeasuredValue::Invalid) {
            MeasuredValue::Invalid
        } else {
            MeasuredValue::Missing
        }
    }

    /// The folders of the runs that both have; runs that are copies of each other or were imported from one file count.
    pub fn common_runs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = [&'a Path; 2]> {
        self.runs.iter().flat_map(move |one| {
            let same = other.runs.iter().filter(|run| run.identity.is_same_run(&one.identity));
            same.map(|run| [one.path.as_path(), run.path.as_path()])
        })
    }

    /// The folders of the runs without a metric that others of the build have.
    pub fn lacking(&self, row: MetricIndex) -> Vec<&Path> {
        let without: Vec<&Path> =
            self.runs.iter().filter(|run| run.reading(row).is_none()).map(|run| run.path.as_path()).collect();
        if without.len() < self.runs.len() { without } else { Vec::new() }
    }

    pub fn errors(&self) -> impl Iterator<Item = &TestError> {
        self.runs.iter().flat_map(|run| &run.errors)
    }

    /// Summed over its runs; `None` if no run records disturbances.
    pub fn sample_counts(&self) -> Option<SampleCounts> {
        self.runs.iter().filter_map(|run| run.sample_counts).reduce(std::ops::Add::add)
    }

    /// The number of disturbed counted samples of a metric over its runs; `None` if no run records them.
    pub fn disturbed(&self, row: MetricIndex) -> Option<usize> {
        self.sample_counts()?;
        Some(self.readings(row).map(|reading| reading.disturbed as usize).sum())
    }

    /// Of the cell of the metric, over all runs.
    pub fn failures(&self, row: MetricIndex) -> AttemptCounts {
        self.readings(row).map(|reading| reading.failures).fold(AttemptCounts::default(), std::ops::Add::add)
    }

    /// The smallest relevant difference of a metric in percent, of the last run whose plan has one.
    pub fn threshold(&self, row: MetricIndex) -> Option<f64> {
        self.readings(row).filter_map(|reading| reading.threshold).last()
    }

    /// Whether a metric is primary in any run; `None` if no run has it.
    pub fn primary(&self, row: MetricIndex) -> Option<bool> {
        self.readings(row).map(|reading| reading.primary).reduce(|one, other| one || other)
    }
}

impl Builds {
    /// The builds: first the reference, last the one to judge.
    pub fn list(&self) -> &[Build] {
        &self.list
    }

    pub fn within_run(&self) -> Option<&WithinRun> {
        self.within_run.as_ref()
    }

    /// As declared by the results.
    pub fn directions(&self) -> &Directions {
        &self.directions
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = MetricIndex> + use<> {
        (0..self.rows.len() as u32).map(MetricIndex)
    }

    /// Sets directions that apply whatever the results declare.
    pub fn set_directions(&mut self, given: &[DirectionOverride]) {
        self.directions = std::mem::take(&mut self.directions).with_overrides(given);
        self.given_directions.extend_from_slice(given);
    }

    /// Whether the user has given the direction of the metric.
    fn has_given_direction(&self, row: MetricIndex) -> bool {
        let CheckId { class, metric, .. } = self.id(row, Statistic::Mean);
        let metric = strip_worker(metric);
        self.given_directions.iter().any(|it| it.metric == metric && it.class.is_none_or(|of| of == class))
    }

    /// Whether a parameter of a metric may differ between both sides although it is one of [`DEFINING_PARAMS`].
    pub(crate) fn is_ignored(&self, row: MetricIndex, param: &str) -> bool {
        param == METRIC_DIRECTION && self.has_given_direction(row)
    }

    pub fn id(&self, row: MetricIndex, statistic: Statistic) -> CheckId<'_> {
        self.resolve_id(self.rows[row.index()], statistic)
    }

    /// The metrics of parts of one run that are compared with one metric of the reference, for each of the latter: an
    /// identifier with `*` for what differs, and the metric of every part that has one. Empty without such parts.
    pub fn families(&self, statistic: Statistic) -> impl Iterator<Item = (CheckId<'_>, &[Option<MetricIndex>])> {
        let families = self.within_run.iter().flat_map(|within_run| &within_run.families);
        families.map(move |family| (self.resolve_id(family.id, statistic), family.metrics.as_slice()))
    }

    fn resolve_id(&self, metric: InternedMetric, statistic: Statistic) -> CheckId<'_> {
        let InternedMetric { id_format, profile, test, serial, case, class, metric } = metric;
        let [profile, test, serial, case, metric] =
            [profile, test, serial, case, metric].map(|name| self.names.resolve(name));
        CheckId { id_format, profile, test, serial, case, class, metric, statistic }
    }

    /// Lets other metrics decide than those that the tests declare: in the cells that have one of these metrics of all
    /// workers, only these are primary. A metric is given as `CLASS/METRIC`, or by a name that only one class has.
    pub fn decide_by(&mut self, metrics: &[String]) -> Result<(), MetricNameError> {
        let selected: Vec<Option<bool>> = {
            let keys = metrics.iter().map(|metric| unknown_name::find_metric(self, metric));
            let keys: Vec<MetricKey> = keys.collect::<Result<_, _>>()?;
            let row_of = |row: MetricIndex| {
                let id = self.id(row, Statistic::Mean);
                keys.iter().position(|key| (key.class, key.name.as_str()) == (id.class, id.metric))
            };
            let found: Vec<Option<usize>> = self.rows().map(row_of).collect();
            let cells: BTreeSet<InternedCell> =
                self.rows().filter(|row| found[row.index()].is_some()).map(|row| self.cell(row)).collect();
            let rows = self.rows();
            rows.map(|row| cells.contains(&self.cell(row)).then_some(found[row.index()].is_some())).collect()
        };
        for run in self.list.iter_mut().flat_map(|build| &mut build.runs) {
            for (reading, selected) in run.readings.iter_mut().zip(&selected) {
                if let (Some(reading), Some(primary)) = (reading, selected) {
                    reading.primary = *primary;
                }
            }
        }
        Ok(())
    }

    /// `PROFILE/TEST/SERIAL:CASE` of a cell.
    pub(crate) fn cell_name(&self, cell: InternedCell) -> String {
        let [profile, test, serial, case] =
            [cell.profile, cell.test, cell.serial, cell.case].map(|name| self.names.resolve(name));
        format!("{profile}/{test}/{serial}:{case}")
    }

    pub(crate) fn cell(&self, row: MetricIndex) -> InternedCell {
        let InternedMetric { profile, test, serial, case, .. } = self.rows[row.index()];
        InternedCell { profile, test, serial, case }
    }

    /// Removes the metrics and errors of cells (`PROFILE/TEST/SERIAL:CASE`) that are not to be kept.
    pub fn retain_cells(&mut self, keep: impl Fn(&str) -> bool) {
        let kept: Vec<bool> = self.rows().map(|row| keep(&self.cell_name(self.cell(row)))).collect();
        let is_kept = |index: usize| kept.get(index).copied().unwrap_or(true);
        let mut index = 0..;
        self.rows.retain(|_| index.next().is_none_or(is_kept));
        let mut index = 0..;
        self.units.retain(|_| index.next().is_none_or(is_kept));
        for run in self.list.iter_mut().flat_map(|build| &mut build.runs) {
            let mut index = 0..;
            run.readings.retain(|_| index.next().is_none_or(is_kept));
            run.errors.retain(|error| keep(&error.location));
        }
    }

    /// Whether a metric is primary in any build, so that the judged one alone does not choose what decides.
    pub fn is_primary(&self, row: MetricIndex) -> bool {
        self.list.iter().any(|build| build.primary(row) == Some(true))
    }

    /// `None` if the results do not declare it.
    pub fn unit(&self, row: MetricIndex) -> Option<Unit> {
        let name = (*self.units.get(row.index())?)?;
        Some(Unit::new(self.names.resolve(name)))
    }

    pub fn find(&self, id: &CheckId<'_>) -> Option<MetricIndex> {
        let name = |text| self.names.find(text);
        let key = InternedMetric {
            id_format: id.id_format,
            profile: name(id.profile)?,
            test: name(id.test)?,
            serial: name(id.serial)?,
            case: name(id.case)?,
            class: id.class,
            metric: name(id.metric)?,
        };
        self.rows.get_index_of(&key).map(|index| MetricIndex(index as u32))
    }

    /// Whether both measured a row with the same definition key (or none), in the same unit, on one kind of processor.
    pub fn is_comparable(&self, sides: [&Build; 2], row: MetricIndex) -> bool {
        let [reference, judged] = sides.map(|side| side.readings(row).next().map(|reading| reading.params));
        let (Some(reference), Some(judged)) = (reference, judged) else { return true };
        let same = |name: &str| {
            let Some(name) = self.names.find(name) else { return true };
            let value = |ParamSetId(id): ParamSetId| {
                self.params[id as usize].iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
            };
            value(reference) == value(judged)
        };
        reference == judged || DEFINING_PARAMS.iter().all(|name| same(name) || self.is_ignored(row, name))
    }

    /// The findings of a primary metric's cell in the runs of a build, each once.
    pub fn findings(&self, build: &Build, row: MetricIndex) -> Vec<&str> {
        let texts = build.readings(row).filter_map(|reading| reading.findings).map(|text| self.names.resolve(text));
        let mut seen = BTreeSet::new();
        texts.flat_map(str::lines).filter(|finding| seen.insert(*finding)).collect()
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
        let reading = MetricReading {
            mean,
            stddev_percent: stddev,
            primary: false,
            threshold: None,
            params,
            disturbed: 0,
            failures: AttemptCounts::default(),
            findings: None,
            first_sample: 0,
            samples: 0,
        };
        Run { readings: vec![Some(reading)], ..Run::default() }
    }

    #[test]
    fn the_value_of_a_build_is_the_average_of_its_valid_runs() {
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
