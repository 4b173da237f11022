//! From a peers file to the cells of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use wb_diagnostics::{Diagnostic, suggest};
use wb_model::{MetricKey, Param, ParamValue, Params};
use wb_peers::{
    Cell, Counts, CustomScenario, Decision, Expectations, Matrix, MatrixError, Payload, SelectionError, read_matrix,
    select,
};
use wb_plan::{CellMatrix, MatrixCell};
use wb_results::Scenario;
use wb_test::SharedParams;
use wb_test::shared_params::decode;

use super::params::{PeersParams, SELECTION_PARAMS};
use super::study;

pub const DIALER: &str = "dialer";
pub const LISTENER: &str = "listener";
pub const CELL_NAME: &str = "cell";
/// The parameter of a cell whose endpoints are baselines.
pub const IS_BASELINE: &str = "is-baseline";
/// The parameter of a cell with other than the standard scenarios: their names, and the texts of those of the file.
pub(super) const SCENARIOS: &str = "scenarios";
pub(super) const CHECKS: &str = "checks";
/// The parameter of a baseline with the cells whose limit it shows, `AXIS=VALUE|VALUE` each.
pub const CEILING_OF: &str = "ceiling-of";
/// The parameter of a baseline with further cells that it is shown beside, likewise.
pub const COMPARED_WITH: &str = "compared-with";
/// The parameter of a cell whose listener does not count exactly.
pub(super) const COUNTED_BY: &str = "counted-by";
/// The parameter of a cell whose payload does not cross the interfaces as it is.
pub(super) const PAYLOAD: &str = "payload";
/// Parameters that the matrix sets beside its axes.
pub(super) const MATRIX_PARAMS: [&str; 10] =
    [DIALER, LISTENER, CELL_NAME, IS_BASELINE, SCENARIOS, CHECKS, CEILING_OF, COMPARED_WITH, COUNTED_BY, PAYLOAD];

/// Peers files, each read once.
#[derive(Debug, Default)]
pub(super) struct MatrixFiles {
    folder: PathBuf,
    read: Mutex<BTreeMap<PathBuf, Result<Arc<Matrix>, Diagnostic>>>,
}

impl MatrixFiles {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, read: Mutex::default() }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(super) fn matrix(&self, file: &str) -> Result<Arc<Matrix>, Diagnostic> {
        if file.is_empty() {
            return Err(Diagnostic::new("missing `file`").with_help("name a peers file; docs/peers.md describes them"));
        }
        let path = self.path(file);
        // A panic while a file was being read leaves no entry behind.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(path).or_insert_with_key(|path| read_file(path)).clone()
    }

    pub(super) fn cells(&self, given: &Params) -> Result<CellMatrix, Diagnostic> {
        let declared = Param::from_schema::<PeersParams>();
        let own = given.iter().filter(|(name, _)| declared.iter().any(|param| param.name == **name));
        let own: Params = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        let params: PeersParams = decode(&own).map_err(|error| Diagnostic::new(error.to_string()))?;
        params.check().map_err(|error| Diagnostic::new(error.to_string()))?;
        let matrix = self.matrix(&params.matrix_file)?;
        check_axes(&matrix, &declared)?;
        let flags = params.selection().map_err(Diagnostic::new)?;
        let invalid = |error: SelectionError| Diagnostic::new(error.to_string()).with_help(error.help());
        let expectations = Expectations::new(&matrix).map_err(invalid)?;
        let decisions = select(&matrix, &flags).map_err(invalid)?;
        check_expectations(&matrix, &expectations, &decisions, params.duration.is_some())?;
        let cells = decisions.iter().filter_map(|decision| match decision {
            Decision::In(cell) => Some(matrix_cell(&matrix, &expectations, cell)),
            Decision::Out(..) | Decision::Impossible(_) => None,
        });
        Ok(CellMatrix { selection_params: SELECTION_PARAMS.to_vec(), cells: cells.collect() })
    }
}

fn read_file(path: &Path) -> Result<Arc<Matrix>, Diagnostic> {
    match read_matrix(path) {
        Ok(matrix) => Ok(Arc::new(matrix)),
        Err(MatrixError::Invalid(diagnostic)) => Err(diagnostic),
        Err(error @ MatrixError::Unreadable { .. }) => Err(Diagnostic::new(error.to_string())),
    }
}

/// Refuses axes that have the name of a parameter.
fn check_axes(matrix: &Matrix, declared: &[Param]) -> Result<(), Diagnostic> {
    let shared = SharedParams::declarations();
    let mut names = declared.iter().chain(&shared).map(|param| param.name.as_str()).chain(MATRIX_PARAMS);
    match names.find(|name| matrix.axis(name).is_some()) {
        Some(name) => Err(Diagnostic::new(format!("invalid axis `{name}`: it is the name of a parameter of `peers`"))
            .with_help("give the axis another name")),
        None => Ok(()),
    }
}

fn matrix_cell(matrix: &Matrix, expectations: &Expectations<'_>, cell: &Cell<'_>) -> MatrixCell {
    let text = |text: &str| ParamValue::Text(text.to_owned());
    let name = cell.name();
    let mut axes =
        Params::from([(DIALER.to_owned(), text(&cell.dialer.id)), (LISTENER.to_owned(), text(&cell.listener.id))]);
    for (axis, value) in matrix.axes.iter().zip(&cell.values) {
        if let Some(value) = value {
            axes.insert(axis.0.clone(), text(value));
        }
    }
    let mut params = Params::from([(CELL_NAME.to_owned(), text(&name))]);
    if cell.is_baseline {
        params.insert(IS_BASELINE.to_owned(), ParamValue::Bool(true));
    }
    let (dialer, listener) = (cell.dialer, cell.listener);
    let mut add_list = |param: &str, texts: Vec<String>| {
        params.insert(param.to_owned(), ParamValue::List(texts.into_iter().map(ParamValue::Text).collect()));
    };
    let scenarios = common_scenarios(matrix, cell);
    if !scenarios.iter().map(String::as_str).eq(Scenario::STANDARD.iter().map(Scenario::name)) {
        add_list(SCENARIOS, scenarios);
    }
    let checks: Vec<String> = expectations.checks(&name).map(ToString::to_string).collect();
    if !checks.is_empty() {
        add_list(CHECKS, checks);
    }
    for (param, cells) in [(CEILING_OF, &dialer.ceiling), (COMPARED_WITH, &dialer.comparison)] {
        if let Some(cells) = cells {
            let texts = cells.iter().map(|(axis, values)| format!("{}={}", matrix.axes[*axis].0, values.join("|")));
            add_list(param, texts.collect());
        }
    }
    if listener.launch.as_ref().is_some_and(|launch| launch.counts == Counts::Dialer) {
        params.insert(COUNTED_BY.to_owned(), text(DIALER));
    }
    let [of_dialer, of_listener] =
        [dialer, listener].map(|one| one.launch.as_ref().map(|launch| launch.payload).unwrap_or_default());
    let payload = Payload::of_pair(of_dialer, of_listener);
    if payload != Payload::Wire {
        params.insert(PAYLOAD.to_owned(), text(payload.name()));
    }
    MatrixCell { name, axes, params, server: listener.server.clone() }
}

/// Refuses entries for cells or metrics that the matrix does not have: a misspelt entry would have no effect, or be
/// noticed after a long measurement.
fn check_expectations(
    matrix: &Matrix,
    expectations: &Expectations<'_>,
    decisions: &[Decision<'_>],
    is_fixed_time: bool,
) -> Result<(), Diagnostic> {
    let cells = || {
        decisions.iter().filter_map(|decision| match decision {
            Decision::In(cell) | Decision::Out(cell, _) => Some(cell),
            Decision::Impossible(_) => None,
        })
    };
    let names: Vec<String> = cells().map(Cell::name).collect();
    expectations.check_filters(&names).map_err(|error| Diagnostic::new(error.to_string()).with_help(error.help()))?;
    let mut measured: BTreeMap<&MetricKey, bool> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for (cell, name) in cells().zip(&names) {
        let metrics: BTreeSet<MetricKey> =
            study::metrics(&cell_scenarios(matrix, cell), is_fixed_time).iter().map(|metric| metric.key()).collect();
        for check in expectations.checks(name) {
            *measured.entry(&check.metric).or_default() |= metrics.contains(&check.metric);
        }
        known.extend(metrics);
    }
    let Some((metric, _)) = measured.iter().find(|(_, is_measured)| !**is_measured) else { return Ok(()) };
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    let help = suggest(&metric.to_string(), &known).map(|suggestion| suggestion.to_string());
    Err(Diagnostic::new(format!("invalid check of `{metric}`: its cells do not have this metric"))
        .with_help(help.unwrap_or_else(|| format!("the metrics of the matrix are {}", known.join(", ")))))
}

fn is_common(cell: &Cell<'_>, scenario: &Scenario) -> bool {
    cell.dialer.scenarios.contains(scenario) && cell.listener.scenarios.contains(scenario)
}

fn cell_scenarios(matrix: &Matrix, cell: &Cell<'_>) -> Vec<Scenario> {
    let custom = matrix.scenarios.iter().map(CustomScenario::scenario);
    Scenario::STANDARD.into_iter().chain(custom).filter(|scenario| is_common(cell, scenario)).collect()
}

/// Names of the standard scenarios that both endpoints of a cell can measure, and the texts of the others.
fn common_scenarios(matrix: &Matrix, cell: &Cell<'_>) -> Vec<String> {
    let is_common = |scenario: &Scenario| is_common(cell, scenario);
    let standard = Scenario::STANDARD.iter().filter(|one| is_common(one)).map(|one| one.name().to_owned());
    let custom = matrix.scenarios.iter().filter(|one| is_common(&one.scenario())).map(ToString::to_string);
    standard.chain(custom).collect()
}
