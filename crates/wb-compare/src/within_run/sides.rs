//! Makes the builds of both sides.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wb_model::Class;
use wb_results::comparison::{CheckId, SampleCounts, Statistic, WithinRunSummary};

use super::WithinRun;
use super::families::families;
use super::units::Unit;
use crate::build::{
    Build, Builds, DEFINITION_KEY, InternedCell, InternedMetric, MetricIndex, MetricReading, ParamSetId, Run, TestError,
};
use crate::interner::{Set, Symbol};

/// A metric of a judged unit, with the metric of each side that has it.
pub(super) struct Row {
    pub(super) id: InternedMetric,
    pub(super) level: usize,
    sides: [Option<MetricIndex>; 2],
    primary: bool,
    /// Cell, class, and name without a worker.
    pub(super) reference: (InternedCell, Class, String),
}

/// The builds of the reference and of all units that are compared with it, each a pair with its level. With `machines`,
/// their environments are those of these workers. With `are_tests`, metrics that only one test has are left out.
pub(super) fn build(
    mut builds: Builds,
    summary: WithinRunSummary,
    machines: Option<[&str; 2]>,
    are_tests: bool,
    pairs: &[(usize, [Unit; 2])],
) -> Builds {
    let rows: Vec<Row> = pairs.iter().flat_map(|pair| rows(&mut builds, are_tests, pair)).collect();
    let mut params = CommonParams::new(&mut builds);
    let run = builds.list.pop().and_then(|build| build.runs.into_iter().next()).unwrap_or_default();
    let errors = errors(&builds, &run, pairs);
    let sides = [0, 1].map(|side| {
        let readings = rows.iter().map(|row| {
            let reading = run.reading(row.sides[side]?)?;
            Some(MetricReading { primary: row.primary, params: params.of(reading.params), ..*reading })
        });
        let mut part = Run {
            path: run.path.clone(),
            layout: run.layout,
            metadata: run.metadata.clone(),
            errors: errors[side].clone(),
            identity: run.identity.clone(),
            sample_counts: sample_counts(&builds, &run, &rows, side),
            // Programs of the judged cell are compared with those of its counterpart.
            programs: pairs
                .iter()
                .filter_map(|(_, pair)| Some((pair[1].cell, run.programs.get(&pair[side].cell)?.clone())))
                .collect(),
            readings: readings.collect(),
            samples: run.samples.clone(),
            schedule: run.schedule.clone(),
        };
        if let Some(machines) = machines {
            keep_machine(&mut part, machines[side]);
        }
        part
    });
    let units = rows.iter().map(|row| row.sides.iter().flatten().find_map(|row| *builds.units.get(row.index())?));
    builds.units = units.collect();
    builds.params = params.into_set();
    let levels = rows.iter().map(|row| row.level).collect();
    let families = families(&mut builds.names, &rows, summary.judged.len());
    builds.rows = rows.into_iter().map(|row| row.id).collect();
    let labels = [summary.reference.clone(), join_labels(&summary.judged)];
    builds.list = labels.into_iter().zip(sides).map(|(name, run)| Build { name, runs: vec![run] }).collect();
    let counterparts: HashMap<_, _> = pairs.iter().map(|(_, [one, other])| (other.cell, one.cell)).collect();
    builds.within_run = Some(WithinRun { summary, levels, families, counterparts });
    builds
}

/// The maximum number of parts that the name of a side consists of.
const MAX_LABELS: usize = 4;

fn join_labels(judged: &[String]) -> String {
    let (named, others) = judged.split_at(judged.len().min(MAX_LABELS));
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    named.join(", ") + &more
}

/// The metrics of a pair of units: all metrics of the judged unit, and those of the reference unit that the judged one
/// lacks. If the units are different tests, only primary metrics that both have.
fn rows(builds: &mut Builds, are_tests: bool, (level, [reference, judged]): &(usize, [Unit; 2])) -> Vec<Row> {
    let of_reference = reference.metrics.iter().filter(|(class, name, _)| judged.metric(*class, name).is_none());
    let metrics: Vec<_> = judged.metrics.iter().chain(of_reference).collect();
    let mut rows = Vec::new();
    for (class, name, any) in metrics {
        let sides = [reference, judged].map(|unit| unit.metric(*class, name));
        let primary = is_primary(builds, &sides, *any);
        if are_tests && reference.cell.test != judged.cell.test && sides.contains(&None) && !primary {
            continue;
        }
        let metric = match &judged.worker {
            Some(worker) => builds.names.intern(&format!("{name}@{worker}")),
            None => builds.names.intern(name),
        };
        let id_format = builds.id(*any, Statistic::Mean).id_format;
        let InternedCell { profile, test, serial, case } = judged.cell;
        let id = InternedMetric { id_format, profile, test, serial, case, class: *class, metric };
        let reference = (reference.cell, *class, name.clone());
        rows.push(Row { id, level: *level, sides, primary, reference });
    }
    rows
}

/// Whether a metric is primary on either side, or of all workers together.
fn is_primary(builds: &Builds, sides: &[Option<MetricIndex>; 2], any: MetricIndex) -> bool {
    let id = builds.id(any, Statistic::Mean);
    let aggregate = builds.find(&CheckId { metric: wb_model::strip_worker(id.metric), ..id });
    sides.iter().copied().flatten().chain(aggregate).any(|row| builds.is_primary(row))
}

/// Sets of parameters without the definition key: counterparts have other definitions.
struct CommonParams {
    all: Set<Box<[(Symbol, Symbol)]>>,
    key: Symbol,
    ids: HashMap<u32, u32>,
    common: Set<Box<[(Symbol, Symbol)]>>,
}

impl CommonParams {
    fn new(builds: &mut Builds) -> Self {
        let key = builds.names.intern(DEFINITION_KEY);
        Self { all: std::mem::take(&mut builds.params), key, ids: HashMap::new(), common: Set::default() }
    }

    fn of(&mut self, ParamSetId(id): ParamSetId) -> ParamSetId {
        let Self { all, key, ids, common } = self;
        let reduced = || all[id as usize].iter().copied().filter(|(name, _)| name != key).collect();
        ParamSetId(*ids.entry(id).or_insert_with(|| common.insert_full(reduced()).0 as u32))
    }

    fn into_set(self) -> Set<Box<[(Symbol, Symbol)]>> {
        self.common
    }
}

/// The errors of both sides: those of cells of the reference, and all others.
fn errors(builds: &Builds, run: &Run, pairs: &[(usize, [Unit; 2])]) -> [Vec<TestError>; 2] {
    let cells = |side: usize| pairs.iter().map(|(_, pair)| builds.cell_name(pair[side].cell)).collect::<BTreeSet<_>>();
    let (reference, judged) = (cells(0), cells(1));
    let is_of_reference = |error: &&TestError| reference.contains(&error.location) && !judged.contains(&error.location);
    let (of_reference, others): (Vec<&TestError>, Vec<&TestError>) = run.errors.iter().partition(is_of_reference);
    [of_reference, others].map(|errors| errors.into_iter().cloned().collect())
}

/// The number of samples of the cells of a side; `None` if disturbances are not recorded.
fn sample_counts(builds: &Builds, run: &Run, rows: &[Row], side: usize) -> Option<SampleCounts> {
    run.sample_counts?;
    let mut cells: BTreeMap<_, SampleCounts> = BTreeMap::new();
    for row in rows.iter().filter_map(|row| row.sides[side]) {
        let Some(reading) = run.reading(row) else { continue };
        let counts = cells.entry(builds.cell(row)).or_default();
        counts.counted = counts.counted.max(reading.samples as usize);
        counts.disturbed = counts.disturbed.max(reading.disturbed as usize);
    }
    cells.into_values().reduce(std::ops::Add::add)
}

/// Keeps the environment of one worker, without its name, so that it is compared with that of another one.
fn keep_machine(run: &mut Run, worker: &str) {
    for machines in run.metadata.environment.values_mut() {
        machines.retain(|machine| machine.worker.as_deref() == Some(worker));
        machines.iter_mut().for_each(|machine| machine.worker = None);
    }
    run.metadata.environment.retain(|_, machines| !machines.is_empty());
}
