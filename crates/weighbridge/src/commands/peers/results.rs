//! The results of a matrix, from the study of its run and the artefacts of its samples.

use std::collections::BTreeMap;
use std::path::Path;

use wb_model::imported::{IMPORTED_FROM, SAMPLES_ARE_MEDIANS};
use wb_model::{AttemptOutcome, Class, MetricKey, ParamValue, ProfileName, Serial, Validity};
use wb_peers_worker::{
    CEILING_OF, CELL_NAME, COMPARED_WITH, DIALER, IS_BASELINE, IterationValues, LISTENER, NAME, ScenarioValues,
};
use wb_record::RunFolder;
use wb_report::peers::{
    BaselineScope, CellFilter, CellStatus, MatrixCell, MatrixMetadata, MatrixResults, Scenario, ScenarioSamples,
};
use wb_results::Measure;
use wb_results::Study;
use wb_results::{AttemptResult, CellResult};
use wb_stats::Samples;
use wb_test::Artefacts;

use crate::error::Error;

/// The axes of libp2p's suites, in the order of names.
const SUITE_AXES: [&str; 3] = ["transport", "security", "muxer"];
const IMPORTED_BASELINE: &str = "baseline";
/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// The matrices of a run: a run may have several, and measure each with several profiles.
pub(super) fn matrices(study: &Study) -> BTreeMap<(ProfileName, Serial), Vec<&CellResult>> {
    let mut all: BTreeMap<_, Vec<&CellResult>> = BTreeMap::new();
    for cell in study.cells.iter().filter(|cell| cell.id.test.as_str() == NAME) {
        all.entry((cell.id.profile.clone(), cell.id.serial.clone())).or_default().push(cell);
    }
    all
}

/// Collects the results of a matrix of a run. Fails if the artefacts of a counted sample cannot be read.
pub(super) fn matrix_results(run: &RunFolder, study: &Study, cells: &[&CellResult]) -> Result<MatrixResults, Error> {
    let axes = axes(cells);
    let (mut baselines, mut tests) = (Vec::new(), Vec::new());
    for &cell in cells {
        let is_baseline = [IS_BASELINE, IMPORTED_BASELINE].iter().any(|name| text(cell, name) == "true");
        let group = if is_baseline { &mut baselines } else { &mut tests };
        group.push(matrix_cell(run.path(), cell, &axes)?);
    }
    Ok(MatrixResults { metadata: metadata(run, study, cells)?, axes, baselines, tests })
}

fn metadata(folder: &RunFolder, study: &Study, cells: &[&CellResult]) -> Result<MatrixMetadata, Error> {
    let run = &study.run;
    let invocations = folder.run_file()?.invocations;
    let facts = invocations.iter().rev().find_map(|invocation| invocation.facts.values().next());
    // The last attempt may belong to an invocation that resumed the run much later.
    let attempts = cells.iter().flat_map(|cell| &cell.attempts);
    let last = attempts.map(|attempt| attempt.start_seconds + attempt.seconds).fold(0.0, f64::max);
    let end = |start: &str| {
        let start: jiff::Timestamp = start.parse().ok()?;
        start.checked_add(jiff::SignedDuration::from_secs_f64(last)).ok()
    };
    // What the imported file says of its measurement.
    let of_file = |name: &str| cells.iter().find_map(|cell| cell.provenance.get(name).cloned()).unwrap_or_default();
    if cells.iter().any(|cell| is_imported(cell)) {
        let (platform, os) = match of_file("platform").split_once(" (") {
            Some((platform, os)) => (platform.to_owned(), os.trim_end_matches(')').to_owned()),
            None => (of_file("platform"), of_file("operating system")),
        };
        return Ok(MatrixMetadata {
            test_pass: of_file("test pass"),
            started_at: of_file("measured at"),
            completed_at: of_file("completed at"),
            // A duration that is no number of seconds is shown as unknown.
            duration_seconds: of_file("duration").trim_end_matches('s').parse().unwrap_or_default(),
            platform,
            os,
            worker_count: of_file("workers").parse().unwrap_or(1),
        });
    }
    Ok(MatrixMetadata {
        test_pass: run.name.clone(),
        started_at: run.started.clone(),
        // A start that is no time is shown as recorded; there is no end to show then.
        completed_at: end(&run.started).map_or_else(String::new, |end| end.strftime("%FT%TZ").to_string()),
        duration_seconds: run.seconds.round() as u64,
        platform: facts.map(|facts| facts.arch.clone()).unwrap_or_default(),
        os: "Linux".to_owned(),
        worker_count: 1,
    })
}

fn text(cell: &CellResult, name: &str) -> String {
    cell.params.get(name).map(ParamValue::to_string).unwrap_or_default()
}

/// Whether a cell was imported, so that its matrix is unknown.
fn is_imported(cell: &CellResult) -> bool {
    cell.provenance.contains_key(IMPORTED_FROM)
}

/// The name of a cell in its matrix. The name of an imported cell follows from its axes, as in the suites.
fn cell_name(cell: &CellResult) -> String {
    if !is_imported(cell) {
        return text(cell, CELL_NAME);
    }
    let of_suite = SUITE_AXES.into_iter().filter_map(|axis| cell.id.case.get(axis));
    let is_other = |axis: &str| ![DIALER, LISTENER].contains(&axis) && !SUITE_AXES.contains(&axis);
    let others = cell.id.case.axes().filter(|(axis, _)| is_other(axis)).map(|(_, value)| value);
    let values: Vec<&str> = of_suite.chain(others).collect();
    format!("{} x {} ({})", text(cell, DIALER), text(cell, LISTENER), values.join(", "))
}

/// The axes of a matrix in its order, which the names of the cells show: `DIALER x LISTENER (VALUE, …)`.
fn axes(cells: &[&CellResult]) -> Vec<String> {
    let mut axes: Vec<String> = Vec::new();
    for cell in cells {
        let mut free: Vec<(&str, &str)> =
            cell.id.case.axes().filter(|(axis, _)| ![DIALER, LISTENER].contains(axis)).collect();
        for value in name_values(&cell_name(cell)) {
            let Some(position) = free.iter().position(|(_, of)| *of == value) else { continue };
            let (axis, _) = free.remove(position);
            if !axes.iter().any(|existing| existing == axis) {
                axes.push(axis.to_owned());
            }
        }
    }
    axes
}

fn name_values(name: &str) -> Vec<String> {
    let inner = name.rsplit_once('(').map(|(_, rest)| rest.trim_end_matches(')'));
    inner.map(|inner| inner.split(", ").map(str::to_owned).collect()).unwrap_or_default()
}

struct CellFigures {
    all: IterationValues,
    samples: BTreeMap<Scenario, ProcessSamples>,
}

/// The samples of a scenario, each of a process.
#[derive(Default)]
struct ProcessSamples {
    /// The median of the iterations of each.
    medians: Vec<f64>,
    /// The disturbances of a sample, by its position.
    disturbances: BTreeMap<usize, Vec<String>>,
}

impl ProcessSamples {
    fn push(&mut self, median: Option<f64>, disturbances: &[String]) {
        if median.is_some() && !disturbances.is_empty() {
            self.disturbances.insert(self.medians.len(), disturbances.to_vec());
        }
        self.medians.extend(median);
    }
}

fn measured_figures(run: &Path, cell: &CellResult) -> Result<CellFigures, Error> {
    let mut figures = IterationValues::default();
    let mut samples: BTreeMap<Scenario, ProcessSamples> = BTreeMap::new();
    let counted: Vec<&AttemptResult> = cell.attempts.iter().filter(|attempt| attempt.counted).collect();
    for attempt in &counted {
        let read = IterationValues::read(&cell.params, &Artefacts::of_run(run, Path::new(&attempt.folder)));
        let read = read.map_err(|rejection| Error::Internal(format!("{}: {rejection}", attempt.folder)))?;
        for (scenario, values) in &read.scenarios {
            let median = Samples::new(&values.values).ok().map(|values| values.median());
            samples.entry(scenario.clone()).or_default().push(median, &attempt.disturbances);
        }
        figures.extend(read);
    }
    Ok(CellFigures { all: figures, samples })
}

/// The scenario of a metric of imported figures; none of their checks.
fn imported_scenario(metric: &MetricKey) -> Option<Scenario> {
    let measure = match metric.class {
        Class::Throughput => Measure::Throughput,
        Class::Latency => Measure::Latency,
        Class::Resource | Class::Check => return None,
    };
    Some(match (measure, metric.name.as_str()) {
        (Measure::Throughput, "upload") => Scenario::Upload,
        (Measure::Throughput, "download") => Scenario::Download,
        (Measure::Latency, "round-trip") => Scenario::Latency,
        (_, name) => Scenario::Custom { name: name.into(), measure },
    })
}

/// The figures of an imported cell, whose samples are iterations. Those of a foreign file count as one sample: it does
/// not say that they come from several processes. Those of this program's own files are medians of samples.
fn imported_figures(cell: &CellResult) -> CellFigures {
    let are_medians = cell.provenance.contains_key(SAMPLES_ARE_MEDIANS);
    let (mut all, mut samples) = (IterationValues::default(), BTreeMap::<Scenario, ProcessSamples>::new());
    let mut of_files: BTreeMap<(Scenario, String), Vec<f64>> = BTreeMap::new();
    for sample in cell.samples().filter(|sample| sample.counted) {
        let has_quartiles = sample.values.keys().any(|metric| metric.class == Class::Check);
        for (metric, value) in &sample.values {
            let Some(scenario) = imported_scenario(metric) else { continue };
            let value = if scenario.is_rate() { *value } else { value / NANOS };
            let values = all.scenarios.entry(scenario.clone()).or_default();
            values.iterations += 1;
            values.values.push(value);
            values.are_medians |= has_quartiles || are_medians;
            if are_medians {
                samples.entry(scenario).or_default().push(Some(value), &sample.disturbances)
            } else {
                of_files.entry((scenario, sample.folder.clone())).or_default().push(value)
            }
        }
    }
    for ((scenario, _), values) in of_files {
        let median = Samples::new(&values).ok().map(|values| values.median());
        samples.entry(scenario).or_default().push(median, &[]);
    }
    CellFigures { all, samples }
}

fn matrix_cell(run: &Path, cell: &CellResult, axes: &[String]) -> Result<MatrixCell, Error> {
    let CellFigures { all: figures, samples: mut of_scenarios } =
        if is_imported(cell) { imported_figures(cell) } else { measured_figures(run, cell)? };
    let scaled = |figures: Vec<f64>| figures.into_iter().map(|seconds| seconds * NANOS).collect::<Vec<f64>>();
    let measured = figures.scenarios.into_iter().filter(|(_, figures)| !figures.values.is_empty());
    let scenarios =
        measured.map(|(scenario, ScenarioValues { iterations, values, are_medians, bytes, cpu_seconds })| {
            let ProcessSamples { medians, disturbances } = of_scenarios.remove(&scenario).unwrap_or_default();
            let [values, samples] =
                [values, medians].map(|figures| if scenario.is_rate() { figures } else { scaled(figures) });
            (scenario, ScenarioSamples { iterations, values, samples, disturbances, are_medians, bytes, cpu_seconds })
        });
    Ok(MatrixCell {
        name: cell_name(cell),
        dialer: text(cell, DIALER),
        listener: text(cell, LISTENER),
        values: axes.iter().map(|axis| cell.id.case.get(axis).map(str::to_owned)).collect(),
        scope: BaselineScope { ceiling: filter(cell, CEILING_OF), comparison: filter(cell, COMPARED_WITH) },
        status: status(cell),
        samples: cell.samples().filter(|sample| sample.counted).count(),
        disturbed: cell.samples().filter(|sample| sample.counted && !sample.disturbances.is_empty()).count(),
        scenarios: scenarios.collect(),
        connect: scaled(figures.connect),
        first_byte: scaled(figures.first_byte),
    })
}

/// The filter in a parameter of a baseline: `AXIS=VALUE|VALUE` each.
fn filter(cell: &CellResult, param: &str) -> Option<CellFilter> {
    let ParamValue::List(axes) = cell.params.get(param)? else { return None };
    let filter = axes.iter().filter_map(|text| {
        let text = text.to_string();
        let (axis, values) = text.split_once('=')?;
        Some((axis.to_owned(), values.split('|').map(str::to_owned).collect()))
    });
    Some(filter.collect())
}

fn status(cell: &CellResult) -> CellStatus {
    if cell.attempts.iter().any(|attempt| attempt.counted) {
        return CellStatus::Pass;
    }
    if let Some(Validity::Invalid { gate, figures }) = cell.attempts.iter().rev().find_map(|one| one.validity.clone()) {
        return CellStatus::Invalid { gate, figures };
    }
    match cell.attempts.last() {
        Some(last) => CellStatus::Fail(last.outcome.clone()),
        None => CellStatus::Fail(AttemptOutcome::Refused { reason: cell.outcome.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_the_name_of_a_cell() {
        assert_eq!(name_values("rust x go (tcp, noise, yamux)"), ["tcp", "noise", "yamux"]);
        assert_eq!(name_values("a x b (c)"), ["c"]);
        assert!(name_values("a x b").is_empty());
    }
}
