//! Cells that are known to fail.

use crate::matrix::{ExpectedFailure, Matrix};
use crate::selection::{Filter, SelectionError};

/// The filters of a matrix's expected failures.
pub struct Expectations<'m>(Vec<(Filter, &'m ExpectedFailure)>);

impl<'m> Expectations<'m> {
    /// Expands the filters of a matrix.
    ///
    /// # Errors
    /// If one names an unknown alias, or a pattern is invalid.
    pub fn new(matrix: &'m Matrix) -> Result<Self, SelectionError> {
        let endpoints = matrix.endpoints.iter().chain(&matrix.baselines);
        let ids: Vec<&str> = endpoints.map(|endpoint| endpoint.id.as_str()).collect();
        let expand = |failure: &'m ExpectedFailure| Ok((Filter::expand(&failure.cells, matrix, &ids)?, failure));
        Ok(Self(matrix.expected_failures.iter().map(expand).collect::<Result<_, _>>()?))
    }

    /// Why a cell with this name is known to fail, if it is.
    pub fn of(&self, name: &str) -> Option<&'m ExpectedFailure> {
        self.0.iter().find(|(filter, _)| filter.find(name).is_some()).map(|(_, failure)| *failure)
    }
}
