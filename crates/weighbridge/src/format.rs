//! Formats durations and reasons for people.

use wb_model::{Unit, pluralize};
use wb_plan::TimeEstimate;

/// Formats an estimated duration from minimum to maximum; `None` if no cell has an estimate.
pub(crate) fn format_estimate(TimeEstimate { min: least, max: most }: TimeEstimate) -> Option<String> {
    match (format_duration(least.seconds()), format_duration(most.seconds())) {
        _ if least.0 == 0 => None,
        (least, most) if least == most => Some(format!("about {least}")),
        (least, most) => Some(format!("about {least} with the fewest samples, {most} with the most")),
    }
}

/// Formats a duration for people.
pub(crate) fn format_duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => Unit::new("s").quantity(s).to_string(),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Groups cells by reason into lines `CELL and 3 others: REASON`, in order of the first cell.
pub(crate) fn group_by_reason(cells: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut reasons: Vec<(String, String, usize)> = Vec::new();
    for (cell, reason) in cells {
        match reasons.iter_mut().find(|(_, existing, _)| *existing == reason) {
            Some((_, _, others)) => *others += 1,
            None => reasons.push((cell, reason, 0)),
        }
    }
    let line = |(cell, reason, others): (String, String, usize)| match others {
        0 => format!("{cell}: {reason}"),
        others => format!("{cell} and {}: {reason}", pluralize(others, "other")),
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use wb_model::Nanos;

    use super::*;

    #[test]
    fn estimates_show_minimum_and_maximum() {
        let format = |least: u64, most: u64| {
            format_estimate(TimeEstimate { min: Nanos(least * 1_000_000_000), max: Nanos(most * 1_000_000_000) })
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
