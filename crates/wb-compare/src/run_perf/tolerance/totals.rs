//! Number of checks by status, and the resulting exit code.

use wb_results::comparison::Status;

use super::Comparison;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatusCounts([usize; Status::ALL.len()]);

impl StatusCounts {
    pub fn of(&self, status: Status) -> usize {
        self.0[status as usize]
    }

    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }

    pub fn compared(&self) -> usize {
        Status::ALL.into_iter().filter(|status| status.is_compared()).map(|status| self.of(status)).sum()
    }

    fn add(&mut self, status: Status) {
        self.0[status as usize] += 1;
    }
}

impl Extend<Status> for StatusCounts {
    fn extend<I: IntoIterator<Item = Status>>(&mut self, statuses: I) {
        statuses.into_iter().for_each(|status| self.add(status));
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatusTotals {
    pub primary: StatusCounts,
    /// All other checks, which decide nothing.
    pub others: StatusCounts,
    pub groups: StatusCounts,
    /// Errors of tests, of the reference and of the build.
    pub errors: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonExit {
    /// Primary checks were compared, without an error, and none fails. Without a better direction, a difference fails
    /// nothing.
    Success,
    /// A primary check or a group is worse, or better if gains fail too.
    Regression,
    /// A primary check is missing, invalid or incomparable, or a test ended in an error.
    Incomplete,
    /// No primary check has a number on both sides, and no test ended in an error.
    NothingComparable,
}

impl ComparisonExit {
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Regression => 2,
            Self::Incomplete => 3,
            Self::NothingComparable => 4,
        }
    }
}

impl StatusTotals {
    /// A regression takes precedence over missing values.
    pub fn exit(&self, fail_on_gain: bool) -> ComparisonExit {
        let fails = |counts: &StatusCounts| {
            counts.of(Status::Regressed) + if fail_on_gain { counts.of(Status::Improved) } else { 0 } > 0
        };
        if self.primary.compared() + self.errors == 0 {
            ComparisonExit::NothingComparable
        } else if fails(&self.primary) || fails(&self.groups) {
            ComparisonExit::Regression
        } else if self.primary.compared() < self.primary.total() || self.errors > 0 {
            ComparisonExit::Incomplete
        } else {
            ComparisonExit::Success
        }
    }
}

impl Comparison<'_> {
    /// `build` is an index from 1.
    pub fn totals(&self, build: usize) -> StatusTotals {
        let mut totals = StatusTotals::default();
        for (index, check) in self.checks.iter().enumerate() {
            let counts = if check.primary { &mut totals.primary } else { &mut totals.others };
            counts.extend(self.cell(index, build).map(|cell| cell.status));
        }
        totals.errors = self.errors(build).count();
        totals.groups.extend(self.groups.iter().filter_map(|group| Some(group.cell(build)?.status)));
        totals
    }

    /// The exit status of the comparison, which the last build determines.
    pub fn exit(&self, fail_on_gain: bool) -> ComparisonExit {
        self.last().map_or(ComparisonExit::NothingComparable, |last| self.totals(last).exit(fail_on_gain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(primary: &[Status], groups: &[Status], fail_on_gain: bool) -> u8 {
        exit_with_errors(0, primary, groups, fail_on_gain)
    }

    fn exit_with_errors(errors: usize, primary: &[Status], groups: &[Status], fail_on_gain: bool) -> u8 {
        let mut totals = StatusTotals { errors, ..StatusTotals::default() };
        totals.primary.extend(primary.iter().copied());
        totals.groups.extend(groups.iter().copied());
        totals.others.extend([Status::Missing, Status::Invalid]);
        totals.exit(fail_on_gain).code()
    }

    #[test]
    fn a_regression_takes_precedence_over_missing_values() {
        use Status::*;
        assert_eq!(exit(&[Equivalent, MinorLoss, Improved], &[Equivalent], false), 0);
        assert_eq!(exit(&[Equivalent, Improved], &[Equivalent], true), 2);
        assert_eq!(exit(&[Equivalent, Regressed, Missing], &[Equivalent], false), 2);
        assert_eq!(exit(&[Equivalent], &[Regressed], false), 2);
        assert_eq!(exit(&[Equivalent, Missing], &[Equivalent], false), 3);
        assert_eq!(exit(&[Equivalent, Invalid], &[Equivalent], false), 3);
        assert_eq!(exit(&[Missing, Invalid], &[], false), 4);
        assert_eq!(exit(&[], &[], false), 4);
    }

    #[test]
    fn an_error_counts_independent_of_other_checks() {
        use Status::*;
        assert_eq!(exit_with_errors(1, &[Equivalent], &[Equivalent], false), 3);
        assert_eq!(exit_with_errors(1, &[Regressed], &[], false), 2);
        assert_eq!(exit_with_errors(1, &[Missing], &[], false), 3);
        assert_eq!(exit_with_errors(1, &[], &[], false), 3);
    }
}
