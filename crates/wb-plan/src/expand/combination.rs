//! Combinations of parameter values: the product of the parameters, for each cell of a matrix if there is one.

use std::collections::BTreeMap;

use wb_model::{Case, Param, ParamValue, Params};

use crate::catalog::{CellMatrix, MatrixCell};

/// A parameter and its values, each of which makes a cell.
pub(super) struct Dimension<'a> {
    pub(super) param: &'a Param,
    pub(super) values: Vec<ParamValue>,
    pub(super) axis: bool,
}

pub(super) struct Combination {
    pub(super) case: Case,
    pub(super) params: Params,
    /// Parameters that need a worker, with how they are resolved.
    pub(super) open: BTreeMap<String, String>,
    pub(super) matrix_name: Option<String>,
    /// The worker that serves, if the matrix names one.
    pub(super) server: Option<String>,
}

/// Combines the values of all dimensions, the last one changing fastest, for each cell of the matrix.
pub(super) fn combine(
    matrix: Option<CellMatrix>,
    dimensions: &[Dimension<'_>],
    open: &BTreeMap<String, String>,
) -> Vec<Combination> {
    let Some(matrix) = matrix else {
        return product(&MatrixCell::default(), dimensions, open, None);
    };
    let cells = matrix.cells.iter();
    cells.flat_map(|cell| product(cell, dimensions, open, Some(&cell.name))).collect()
}

fn product(
    cell: &MatrixCell,
    dimensions: &[Dimension<'_>],
    open: &BTreeMap<String, String>,
    matrix_name: Option<&str>,
) -> Vec<Combination> {
    let axes: Vec<(String, ParamValue)> = cell.axes.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let params = cell.axes.iter().chain(&cell.params).map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut combinations: Vec<(Vec<(String, ParamValue)>, Params)> = vec![(axes, params)];
    for dimension in dimensions {
        let extend = |(axes, params): &(Vec<(String, ParamValue)>, Params), value: &ParamValue| {
            let (mut axes, mut params) = (axes.clone(), params.clone());
            if dimension.axis {
                axes.push((dimension.param.name.clone(), value.clone()));
            }
            params.insert(dimension.param.name.clone(), value.clone());
            (axes, params)
        };
        combinations =
            combinations.iter().flat_map(|one| dimension.values.iter().map(move |value| extend(one, value))).collect();
    }
    let to_combination = |(axes, params): (Vec<(String, ParamValue)>, Params)| Combination {
        case: Case::new(axes.iter().map(|(name, value)| (name.as_str(), value))),
        params,
        open: open.clone(),
        matrix_name: matrix_name.map(str::to_owned),
        server: cell.server.clone(),
    };
    combinations.into_iter().map(to_combination).collect()
}
