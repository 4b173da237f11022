//! The table of checks: a column for each build, or for each part of one run.

use std::collections::HashMap;

use wb_compare::MeasuredValue;
use wb_compare::build::MetricIndex;
use wb_compare::comparison::{BuildCheck, BuildHistory};
use wb_compare::run_perf::tolerance::score::ScorePart;
use wb_model::Direction;
use wb_results::comparison::{CheckId, Statistic, Totals};

use crate::phrasing::describe_direction;

/// The checks by row and column. Column 0 is the reference.
pub(super) struct CheckTable<'a> {
    pub(super) history: &'a BuildHistory<'a>,
    pub(super) names: Vec<&'a str>,
    rows: Rows<'a>,
}

enum Rows<'a> {
    /// Each check is a row, with all builds.
    Checks,
    /// The checks of all parts that are compared with the same value of the reference are a row.
    Parts(Vec<PartRow<'a>>),
}

struct PartRow<'a> {
    id: CheckId<'a>,
    checks: Vec<Option<usize>>,
    /// One of `checks`.
    any: usize,
}

/// The better direction, in words: of standard deviations always lower.
pub(super) fn name_better(statistic: Statistic, direction: Direction) -> Option<&'static str> {
    match (statistic, direction) {
        (Statistic::Stddev, _) => Some(describe_direction(Direction::Lower)),
        (Statistic::Mean, Direction::Neither) => None,
        (Statistic::Mean, direction) => Some(describe_direction(direction)),
    }
}

impl<'a> CheckTable<'a> {
    pub(super) fn new(history: &'a BuildHistory<'a>) -> Self {
        let builds = history.builds;
        let Some(within_run) = builds.within_run() else {
            let names = builds.list().iter().map(|build| build.name.as_str()).collect();
            return Self { history, names, rows: Rows::Checks };
        };
        let checks = history.tolerances.checks.iter().enumerate();
        let positions: HashMap<_, usize> = checks.map(|(index, check)| ((check.row, check.statistic), index)).collect();
        let row = |(id, metrics): (CheckId<'a>, &[Option<MetricIndex>])| {
            let check = |metric: &Option<MetricIndex>| positions.get(&((*metric)?, id.statistic)).copied();
            let checks: Vec<Option<usize>> = metrics.iter().map(check).collect();
            let any = checks.iter().copied().flatten().next()?;
            Some(PartRow { id, checks, any })
        };
        let rows = builds.families(Statistic::Mean).zip(builds.families(Statistic::Stddev));
        let summary = &within_run.summary;
        Self {
            history,
            names: std::iter::once(&summary.reference).chain(&summary.judged).map(String::as_str).collect(),
            rows: Rows::Parts(rows.flat_map(|(mean, stddev)| [mean, stddev]).filter_map(row).collect()),
        }
    }

    pub(super) fn has_parts(&self) -> bool {
        matches!(self.rows, Rows::Parts(_))
    }

    /// The better direction of a row's values; `None` if there is none.
    pub(super) fn better(&self, row: usize) -> Option<&'static str> {
        let id = self.id(row);
        name_better(id.statistic, self.history.tolerances.options.directions.of(id.class, id.metric))
    }

    pub(super) fn rows(&self) -> usize {
        match &self.rows {
            Rows::Checks => self.history.tolerances.checks.len(),
            Rows::Parts(rows) => rows.len(),
        }
    }

    pub(super) fn judged(&self) -> std::ops::Range<usize> {
        1..self.names.len()
    }

    pub(super) fn build(&self, column: usize) -> usize {
        if self.has_parts() { column.min(1) } else { column }
    }

    /// The identifier of a row; `*` stands for what differs between parts.
    pub(super) fn id(&self, row: usize) -> CheckId<'a> {
        match &self.rows {
            Rows::Checks => self.history.tolerances.id(row),
            Rows::Parts(rows) => rows[row].id,
        }
    }

    /// A check of a row, for what its checks have in common.
    pub(super) fn any_check(&self, row: usize) -> usize {
        match &self.rows {
            Rows::Checks => row,
            Rows::Parts(rows) => rows[row].any,
        }
    }

    pub(super) fn check(&self, row: usize, column: usize) -> Option<usize> {
        match &self.rows {
            Rows::Checks => Some(row),
            Rows::Parts(rows) => rows[row].checks[column - 1],
        }
    }

    /// The result of a check; `None` if neither side has it.
    pub(super) fn result(&self, row: usize, column: usize) -> Option<BuildCheck<'_>> {
        self.history.build_check(self.check(row, column)?, self.build(column))
    }

    pub(super) fn score_parts(&self, row: usize, column: usize) -> Vec<ScorePart> {
        let check = self.check(row, column);
        check.map_or_else(Vec::new, |check| self.history.tolerances.parts(check, self.build(column)).to_vec())
    }

    pub(super) fn value(&self, row: usize, column: usize) -> MeasuredValue {
        let check = if column == 0 { Some(self.any_check(row)) } else { self.check(row, column) };
        check.map_or(MeasuredValue::Missing, |check| self.history.tolerances.value(check, self.build(column)))
    }

    /// The number of disturbed samples of a check in the first column and in this one; `None` if they are not recorded.
    pub(super) fn disturbed(&self, row: usize, column: usize) -> [Option<usize>; 2] {
        let metric = self.check(row, column).map(|check| self.history.tolerances.checks[check].row);
        [0, self.build(column)].map(|build| self.history.builds.list()[build].disturbed(metric?))
    }

    pub(super) fn is_primary(&self, row: usize) -> bool {
        let is_primary = |check: usize| self.history.tolerances.checks[check].primary;
        self.judged().filter_map(|column| self.check(row, column)).any(is_primary)
    }

    /// The totals of a column. Each part of a run has its own errors.
    pub(super) fn totals(&self, column: usize) -> Totals {
        if self.has_parts() {
            let checks = (0..self.rows()).filter_map(|row| self.check(row, column));
            let totals = self.history.totals_of(checks, self.build(column));
            Totals { errors: self.part_errors(column), ..totals }
        } else {
            self.history.totals(self.build(column))
        }
    }

    fn part_errors(&self, column: usize) -> usize {
        let checks = (0..self.rows()).filter_map(|row| self.check(row, column));
        let ids: Vec<String> = checks.map(|check| self.history.tolerances.id(check).to_string()).collect();
        let is_of_part = |location: &str| {
            ids.iter().any(|id| id.strip_prefix(location).is_some_and(|rest| rest.starts_with(['/', ':'])))
        };
        let build = &self.history.builds.list()[self.build(column)];
        build.errors().filter(|error| is_of_part(&error.location)).count()
    }

    /// The finite differences of a column's primary means in percent; positive is better.
    pub(super) fn improvements(&self, column: usize) -> Vec<f64> {
        let is_primary_mean = |row: &usize| self.is_primary(*row) && self.id(*row).statistic == Statistic::Mean;
        let checks = (0..self.rows()).filter(is_primary_mean).filter_map(|row| self.check(row, column));
        checks.filter_map(|check| self.history.gain(check, self.build(column))).collect()
    }
}
