//! Filters of a peers file on the names of cells: which are known to fail, and which figures are bounded.

use crate::check::FigureCheck;
use crate::matrix::{ExpectedFailure, Matrix};
use crate::selection::{Filter, SelectionError};

/// The filters of a matrix's expected failures and checks.
pub struct Expectations<'m> {
    failures: Vec<(Filter, &'m ExpectedFailure)>,
    /// A check without a filter applies to all cells.
    checks: Vec<(Option<Filter>, &'m FigureCheck)>,
}

impl<'m> Expectations<'m> {
    /// Expands the filters of a matrix. Fails if one names an unknown alias, or a pattern is invalid.
    pub fn new(matrix: &'m Matrix) -> Result<Self, SelectionError> {
        let endpoints = matrix.endpoints.iter().chain(&matrix.baselines);
        let ids: Vec<&str> = endpoints.map(|endpoint| endpoint.id.as_str()).collect();
        let filter = |text: &str| Filter::expand(text, matrix, &ids);
        let failures = matrix.expected_failures.iter().map(|failure| Ok((filter(&failure.cells)?, failure)));
        let checks = matrix.checks.iter().map(|check| {
            let of = (!check.cells.is_empty()).then(|| filter(&check.cells)).transpose()?;
            Ok((of, check))
        });
        Ok(Self { failures: failures.collect::<Result<_, _>>()?, checks: checks.collect::<Result<_, _>>()? })
    }

    /// Refuses the first filter that matches none of `names`, the names of all cells of the matrix.
    pub fn check_filters(&self, names: &[String]) -> Result<(), SelectionError> {
        let failures = self.failures.iter().map(|(filter, failure)| ("expected failure", filter, &failure.cells));
        let checks = self.checks.iter().filter_map(|(filter, check)| Some(("check", filter.as_ref()?, &check.cells)));
        let mut filters = failures.chain(checks);
        match filters.find(|(_, filter, _)| names.iter().all(|name| filter.find(name).is_none())) {
            Some((of, _, cells)) => Err(SelectionError::NoSuchCell { of, cells: cells.clone() }),
            None => Ok(()),
        }
    }

    pub fn expected_failure(&self, name: &str) -> Option<&'m ExpectedFailure> {
        self.failures.iter().find(|(filter, _)| filter.find(name).is_some()).map(|(_, failure)| *failure)
    }

    pub fn checks(&self, name: &str) -> impl Iterator<Item = &'m FigureCheck> {
        let applies = |filter: &Option<Filter>| filter.as_ref().is_none_or(|filter| filter.find(name).is_some());
        self.checks.iter().filter(move |(filter, _)| applies(filter)).map(|(_, check)| *check)
    }
}
