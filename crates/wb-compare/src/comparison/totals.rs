//! Counts checks by verdict, and derives the exit status.

use wb_results::comparison::{ComparisonMethod, DeviationTotals, FinalVerdict, Statistic, Totals};

use super::FailOn;
use crate::run_perf::tolerance::totals::ComparisonExit;

/// Counts a check, unless it is a standard deviation beside a mean that statistics decide: it decides nothing.
pub(super) fn count_check(
    totals: &mut Totals,
    statistic: Statistic,
    is_primary: bool,
    decided: FinalVerdict,
    by: ComparisonMethod,
) {
    if statistic == Statistic::Stddev && by == ComparisonMethod::Statistical {
        return;
    }
    if !is_primary {
        totals.not_primary += 1;
        totals.not_primary_failed += usize::from(decided.is_failure());
        return;
    }
    if statistic == Statistic::Stddev {
        count_deviation(&mut totals.standard_deviations, decided);
    }
    let count = match decided {
        FinalVerdict::Improved | FinalVerdict::Faster | FinalVerdict::Better => &mut totals.better,
        FinalVerdict::MinorGain => &mut totals.minor_gain,
        FinalVerdict::Equivalent => &mut totals.equivalent,
        FinalVerdict::MinorLoss => &mut totals.minor_loss,
        FinalVerdict::Regressed | FinalVerdict::Slower | FinalVerdict::Worse => &mut totals.worse,
        FinalVerdict::Differs => &mut totals.differs,
        FinalVerdict::Unconfirmed => &mut totals.unconfirmed,
        FinalVerdict::Inconclusive => &mut totals.inconclusive,
        FinalVerdict::New => &mut totals.new,
        FinalVerdict::Missing => &mut totals.missing,
        FinalVerdict::Invalid => &mut totals.invalid,
        FinalVerdict::Incomparable => &mut totals.incomparable,
    };
    *count += 1;
}

/// `comparable`: a primary check has both values; `uncertain`: how many unconfirmed and inconclusive checks fail.
pub(super) fn exit(totals: &Totals, comparable: bool, fail_on: FailOn, uncertain: usize) -> ComparisonExit {
    let gains = if fail_on.gain { totals.better + totals.groups_improved } else { 0 };
    let missing = totals.missing + totals.partly_missing + totals.invalid + totals.incomparable + totals.errors;
    if !comparable && totals.errors == 0 && !(fail_on.missing && missing > 0) {
        ComparisonExit::NothingComparable
    } else if totals.worse + totals.groups_regressed + gains + uncertain > 0 {
        ComparisonExit::Regression
    } else if missing > 0 {
        if fail_on.missing { ComparisonExit::Regression } else { ComparisonExit::Incomplete }
    } else {
        ComparisonExit::Success
    }
}

fn count_deviation(totals: &mut DeviationTotals, decided: FinalVerdict) {
    totals.compared += usize::from(decided.is_compared());
    totals.better += usize::from(decided.is_better());
    totals.worse += usize::from(decided.is_worse());
    totals.not_compared += usize::from(decided.is_failure() && !decided.is_compared());
}
