//! `weighbridge peers list`: the cells of a matrix.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use wb_model::pluralize;
use wb_peers::{Cell, Decision, Endpoint, Matrix, MatrixError, SelectionError, read_matrix, select};
use wb_report::text::{Align, Table};

use super::dependencies::check_dependencies;
use super::nothing_selected;
use crate::cli::peers::PeersListArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

/// The cells of a matrix, in their order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MatrixListing {
    /// Number of selected baselines.
    baselines: usize,
    /// Number of selected tests.
    tests: usize,
    /// All possible cells, baselines first.
    cells: Vec<ListedCell>,
}

/// A possible cell, or a pair that has none.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct ListedCell {
    /// Its name.
    name: String,
    /// Id of the endpoint that opens connections.
    dialer: String,
    /// Id of the endpoint that accepts them.
    listener: String,
    /// By axis, the value that both use; an axis that does not apply is absent.
    values: BTreeMap<String, String>,
    /// Whether both are baselines.
    is_baseline: bool,
    /// Whether it is selected.
    is_selected: bool,
    /// Why it is not.
    reason: Option<String>,
}

pub(super) fn list(args: &PeersListArgs, console: &Console) -> Result<Exit, Error> {
    let matrix = read_matrix(&args.file).map_err(|error| match error {
        MatrixError::Unreadable { path, source } => Error::file("read", Path::new(&path))(source),
        MatrixError::Invalid(diagnostic) => Error::from(diagnostic),
    })?;
    let decisions = select(&matrix, &args.selection.to_selection()).map_err(describe_selection_error)?;
    let selected = || decisions.iter().filter(|decision| matches!(decision, Decision::In(_)));
    let baselines = selected().filter(|decision| decision.is_baseline()).count();
    let tests = selected().count() - baselines;
    if baselines + tests > 0 && (args.list_impls || args.check_deps) {
        let endpoints = selected_endpoints(&matrix, &decisions);
        if args.check_deps {
            return check_dependencies(&endpoints, &args.file, console);
        }
        print_text(&endpoints.iter().map(|endpoint| format!("{}\n", endpoint.id)).collect::<String>())?;
        return Ok(Exit::Success);
    }
    if args.json {
        let cells = decisions.iter().map(|decision| listed_cell(&matrix, decision)).collect();
        print_json(&MatrixListing { baselines, tests, cells })?;
    } else if args.why {
        print_reasons(&decisions, console)?;
    } else {
        print_text(&selected().map(|decision| format!("{}\n", decision.name())).collect::<String>())?;
    }
    if baselines + tests == 0 {
        return Err(nothing_selected());
    }
    if !console.quiet && !args.json {
        crate::console::message!("{}, {}", pluralize(baselines, "baseline"), pluralize(tests, "test"));
    }
    Ok(Exit::Success)
}

/// The endpoints of the selected cells, in the order of the file, baselines last.
fn selected_endpoints<'m>(matrix: &'m Matrix, decisions: &[Decision<'_>]) -> Vec<&'m Endpoint> {
    let sides = |decision: &Decision<'_>| match decision {
        Decision::In(cell) => vec![cell.dialer.id.clone(), cell.listener.id.clone()],
        Decision::Out(..) | Decision::Impossible(_) => Vec::new(),
    };
    let ids: BTreeSet<String> = decisions.iter().flat_map(sides).collect();
    matrix.endpoints.iter().chain(&matrix.baselines).filter(|endpoint| ids.contains(&endpoint.id)).collect()
}

fn describe_selection_error(error: SelectionError) -> Error {
    Error::Usage { what: error.to_string(), help: error.help() }
}

fn print_reasons(decisions: &[Decision<'_>], console: &Console) -> Result<(), Error> {
    let mut table = Table::new(&[("", Align::Left), ("cell", Align::Left), ("reason", Align::Left)]);
    for decision in decisions {
        let (state, reason) = match decision.reason() {
            None => ("in", String::new()),
            Some(reason) => ("out", reason),
        };
        table.row(vec![state.into(), decision.name().into(), reason.into()]);
    }
    print_text(&table.draw(console.stdout_style))
}

fn listed_cell(matrix: &Matrix, decision: &Decision<'_>) -> ListedCell {
    let values_of = |cell: &Cell<'_>| {
        let named = matrix.axes.iter().zip(&cell.values);
        named.filter_map(|(axis, value)| Some((axis.0.clone(), (*value)?.to_owned()))).collect()
    };
    let (dialer, listener, values) = match decision {
        Decision::In(cell) | Decision::Out(cell, _) => (cell.dialer, cell.listener, values_of(cell)),
        Decision::Impossible(pair) => (pair.dialer, pair.listener, BTreeMap::new()),
    };
    ListedCell {
        name: decision.name(),
        dialer: dialer.id.clone(),
        listener: listener.id.clone(),
        values,
        is_baseline: decision.is_baseline(),
        is_selected: matches!(decision, Decision::In(_)),
        reason: decision.reason(),
    }
}
