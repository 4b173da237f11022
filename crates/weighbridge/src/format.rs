//! Human-readable formatting of durations, and of lists of cells with the reasons why they are skipped.

use wb_model::{Unit, pluralize};
use wb_plan::TimeEstimate;

/// Formats an estimate, as one figure if both ends look the same. `None` if the minimum is zero: there is no estimate.
pub(crate) fn format_estimate(TimeEstimate { min, max }: TimeEstimate) -> Option<String> {
    if min.0 == 0 {
        return None;
    }
    let (min, max) = (format_duration(min.seconds()), format_duration(max.seconds()));
    Some(if min == max {
        format!("about {min}")
    } else {
        format!("about {min} with the fewest samples, {max} with the most")
    })
}

/// Adds to the estimated time of some cells, if there are any, how many others have no estimate.
pub(crate) fn with_unestimated(estimated: Option<String>, unestimated: usize) -> Option<String> {
    const UNKNOWN_DURATION: &str = "of unknown duration (no `estimate` in the definition)";
    match (unestimated, estimated) {
        (0, estimated) => estimated,
        (_, None) => Some(UNKNOWN_DURATION.to_owned()),
        (others, Some(estimated)) => Some(format!("{estimated}, and {} {UNKNOWN_DURATION}", pluralize(others, "cell"))),
    }
}

/// Formats a duration with the unit that fits it: seconds, minutes or hours.
pub(crate) fn format_duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => Unit::new("s").quantity(s).to_string(),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Groups cells (name and reason) by reason into lines like `CELL and 3 others: REASON`, in order of the first cells.
pub(crate) fn group_by_reason(cells: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut reasons: Vec<(String, String, usize)> = Vec::new();
    for (cell, reason) in cells {
        match reasons.iter_mut().find(|(_, existing, _)| *existing == reason) {
            Some((_, _, other_cells)) => *other_cells += 1,
            None => reasons.push((cell, reason, 0)),
        }
    }
    let format_line = |(cell, reason, other_cells): (String, String, usize)| match other_cells {
        0 => format!("{cell}: {reason}"),
        others => format!("{cell} and {}: {reason}", pluralize(others, "other")),
    };
    reasons.into_iter().map(format_line).collect()
}

#[cfg(test)]
mod tests {
    use wb_model::Nanos;

    use super::*;

    #[test]
    fn estimates_show_minimum_and_maximum() {
        let format = |min_seconds: u64, max_seconds: u64| {
            let [min, max] = [min_seconds, max_seconds].map(|seconds| Nanos(seconds * 1_000_000_000));
            format_estimate(TimeEstimate { min, max })
        };
        assert_eq!(format(0, 0), None);
        assert_eq!(format(7, 7).unwrap(), "about 7 s");
        assert_eq!(format(7, 600).unwrap(), "about 7 s with the fewest samples, 10 min with the most");
    }

    #[test]
    fn cells_with_the_same_reason_share_a_line() {
        let cells = [("a", "no root"), ("b", "no disk"), ("c", "no root"), ("d", "no root")];
        let cells = cells.into_iter().map(|(cell, reason)| (cell.to_owned(), reason.to_owned()));
        assert_eq!(group_by_reason(cells), ["a and 2 others: no root", "b: no disk"]);
    }
}
