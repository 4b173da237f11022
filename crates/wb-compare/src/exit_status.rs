//! Commands that never end with status 0 in one build, and do in another.
//!
//! A command that always ends with the same status may mean to (`grep` without a match), so its run counts the times.
//! If the command succeeds in another build, these are times of failures.

use std::collections::HashMap;

use wb_results::comparison::AttemptCounts;

use crate::build::{
    Builds, EXIT_STATUS, InternedCell, MeasuredValue, MetricIndex, MetricReading, ParamSetId, TestError,
};
use crate::interner::Symbol;

/// Turns the samples of such a cell into failed attempts in every run in which its command never succeeds. If all
/// attempts of the other run failed for another reason, the samples stay samples.
pub(crate) fn fail_beside_successes(builds: &mut Builds) {
    let Some(name) = builds.names.find(EXIT_STATUS) else { return };
    let mut cells: HashMap<InternedCell, Vec<MetricIndex>> = HashMap::new();
    for row in builds.rows() {
        cells.entry(builds.cell(row)).or_default().push(row);
    }
    for (cell, rows) in cells {
        let ends = Ends::new(builds, &rows, name);
        match (&ends.success, ends.statuses.len()) {
            (Some(success), 1..) => {
                let success = success.clone();
                for [build, run, status] in ends.unsuccessful {
                    fail(builds, [build, run], &rows, name);
                    // The reference of parts of one run has the name of its own cell.
                    let within_run = builds.within_run().filter(|_| build == 0);
                    let counterpart = within_run.and_then(|within| within.counterpart(cell)).unwrap_or(cell);
                    let status = ends.statuses[status];
                    let status = builds.names.resolve(status);
                    let message = format!("exit status `{status}` of the command, which ends with 0 in `{success}`");
                    let error = TestError { location: builds.cell_name(counterpart), message };
                    let errors = &mut builds.list[build].runs[run].errors;
                    if !errors.contains(&error) {
                        errors.push(error);
                    }
                }
            }
            (None, 1) if ends.has_other_failures => {
                for [build, run, _] in ends.unsuccessful {
                    change(builds, [build, run], &rows, name, |reading, params| MetricReading { params, ..reading });
                }
            }
            _ => {}
        }
    }
}

/// How the command of a cell ends in the runs of all builds.
#[derive(Default)]
struct Ends {
    /// The first build in which it ends with 0.
    success: Option<String>,
    /// Whether every attempt failed in a run: by signals, for example.
    has_other_failures: bool,
    /// Other than 0, each once.
    statuses: Vec<Symbol>,
    /// The runs in which it always ends with one: build, run, and index of the status.
    unsuccessful: Vec<[usize; 3]>,
}

impl Ends {
    fn new(builds: &Builds, rows: &[MetricIndex], name: Symbol) -> Self {
        let mut ends = Self::default();
        for (build, of_build) in builds.list.iter().enumerate() {
            for (run, of_run) in of_build.runs.iter().enumerate() {
                let readings = || rows.iter().filter_map(|row| of_run.reading(*row));
                let Some(status) = readings().map(|reading| status(builds, reading.params, name)).next() else {
                    continue;
                };
                match status {
                    Some(status) => {
                        let position = ends.statuses.iter().position(|own| *own == status);
                        let index = position.unwrap_or(ends.statuses.len());
                        if position.is_none() {
                            ends.statuses.push(status);
                        }
                        ends.unsuccessful.push([build, run, index]);
                    }
                    None if readings().any(has_completed) => {
                        ends.success.get_or_insert_with(|| of_build.name.clone());
                    }
                    None => ends.has_other_failures = true,
                }
            }
        }
        ends
    }
}

fn has_completed(reading: &MetricReading) -> bool {
    reading.samples > 0 || reading.failures.failed < reading.failures.attempts
}

fn status(builds: &Builds, ParamSetId(id): ParamSetId, name: Symbol) -> Option<Symbol> {
    builds.params[id as usize].iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
}

fn fail(builds: &mut Builds, position: [usize; 2], rows: &[MetricIndex], name: Symbol) {
    change(builds, position, rows, name, |reading, params| MetricReading {
        mean: MeasuredValue::Invalid,
        stddev_percent: MeasuredValue::Missing,
        params,
        failures: AttemptCounts { failed: reading.failures.attempts, ..reading.failures },
        findings: None,
        samples: 0,
        ..reading
    });
}

/// Changes the readings of a cell in a run. Their parameters lose the exit status, which is called `name`.
fn change(
    builds: &mut Builds,
    [build, run]: [usize; 2],
    rows: &[MetricIndex],
    name: Symbol,
    changed: impl Fn(MetricReading, ParamSetId) -> MetricReading,
) {
    for row in rows {
        let Some(reading) = builds.list[build].runs[run].reading(*row).copied() else { continue };
        let params = builds.params[reading.params.0 as usize].iter().filter(|(own, _)| *own != name).copied();
        let params = params.collect();
        let params = ParamSetId(builds.params.insert_full(params).0 as u32);
        builds.list[build].runs[run].readings[row.index()] = Some(changed(reading, params));
    }
}
