//! The results of a matrix, from the study of its run and the artefacts of its samples.

use std::collections::BTreeMap;
use std::path::Path;

use wb_model::{AttemptOutcome, ParamValue, ProfileName, Serial, Validity};
use wb_record::RunFolder;
use wb_report::peers::{
    BaselineScope, CellFilter, CellStatus, MatrixCell, MatrixMetadata, MatrixResults, Scenario, ScenarioSamples,
};
use wb_stats::Samples;
use wb_study::Study;
use wb_study::result::{AttemptResult, CellResult};
use wb_tests::Artefacts;
use wb_tests::peers::{
    CEILING_OF, CELL_NAME, COMPARED_WITH, DIALER, IS_BASELINE, IterationValues, LISTENER, NAME, ScenarioValues,
};

use crate::error::Error;

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

/// Collects the results of a matrix of a run.
///
/// # Errors
/// If the artefacts of a counted sample cannot be read.
pub(super) fn matrix_results(run: &RunFolder, study: &Study, cells: &[&CellResult]) -> Result<MatrixResults, Error> {
    let axes = axes(cells);
    let (mut baselines, mut tests) = (Vec::new(), Vec::new());
    for &cell in cells {
        let is_baseline = cell.params.get(IS_BASELINE) == Some(&ParamValue::Bool(true));
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

/// The value of a parameter as text.
fn text(cell: &CellResult, name: &str) -> String {
    cell.params.get(name).map(ParamValue::to_string).unwrap_or_default()
}

/// The axes of a matrix in its order, which the names of the cells show: `DIALER x LISTENER (VALUE, …)`.
fn axes(cells: &[&CellResult]) -> Vec<String> {
    let mut axes: Vec<String> = Vec::new();
    for cell in cells {
        let mut free: Vec<(&str, &str)> =
            cell.id.case.axes().filter(|(axis, _)| ![DIALER, LISTENER].contains(axis)).collect();
        for value in name_values(&text(cell, CELL_NAME)) {
            let Some(at) = free.iter().position(|(_, of)| *of == value) else { continue };
            let (axis, _) = free.remove(at);
            if !axes.iter().any(|existing| existing == axis) {
                axes.push(axis.to_owned());
            }
        }
    }
    axes
}

/// The values in the name of a cell.
fn name_values(name: &str) -> Vec<String> {
    let inner = name.rsplit_once('(').map(|(_, rest)| rest.trim_end_matches(')'));
    inner.map(|inner| inner.split(", ").map(str::to_owned).collect()).unwrap_or_default()
}

fn matrix_cell(run: &Path, cell: &CellResult, axes: &[String]) -> Result<MatrixCell, Error> {
    let mut figures = IterationValues::default();
    let mut medians: BTreeMap<Scenario, Vec<f64>> = BTreeMap::new();
    let counted: Vec<&AttemptResult> = cell.attempts.iter().filter(|attempt| attempt.counted).collect();
    for attempt in &counted {
        let read = IterationValues::read(&cell.params, &Artefacts::of_run(run, Path::new(&attempt.folder)));
        let read = read.map_err(|rejection| Error::Internal(format!("{}: {rejection}", attempt.folder)))?;
        for (scenario, values) in &read.scenarios {
            let median = Samples::new(&values.values).ok().map(|values| values.median());
            medians.entry(scenario.clone()).or_default().extend(median);
        }
        figures.extend(read);
    }
    let scaled = |figures: Vec<f64>| figures.into_iter().map(|seconds| seconds * NANOS).collect::<Vec<f64>>();
    let measured = figures.scenarios.into_iter().filter(|(_, figures)| !figures.values.is_empty());
    let scenarios = measured.map(|(scenario, ScenarioValues { iterations, values, are_medians })| {
        let samples = medians.remove(&scenario).unwrap_or_default();
        let [values, samples] = [values, samples].map(|figures| if scenario.is_rate() { figures } else { scaled(figures) });
        (scenario, ScenarioSamples { iterations, values, samples, are_medians })
    });
    Ok(MatrixCell {
        name: text(cell, CELL_NAME),
        dialer: text(cell, DIALER),
        listener: text(cell, LISTENER),
        values: axes.iter().map(|axis| cell.id.case.get(axis).map(str::to_owned)).collect(),
        scope: BaselineScope { ceiling: filter(cell, CEILING_OF), comparison: filter(cell, COMPARED_WITH) },
        status: status(cell),
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

/// Whether a cell was measured, and why not.
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
