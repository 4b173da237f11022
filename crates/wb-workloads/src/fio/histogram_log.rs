//! Parser of the logs that fio writes with `write_hist_log`: one line per interval and kind of operation, with the
//! fields `milliseconds, kind, block size, count, count, …`.

use std::collections::BTreeMap;

use super::histogram::{Histogram, midpoint};
use super::job::Operation;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramInterval {
    /// End of the interval, in milliseconds from the start of its job.
    pub at_ms: u64,
    pub operation: Operation,
    /// By latency in nanoseconds.
    pub counts: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ParseLogError {
    /// From 1.
    pub line: usize,
    pub reason: String,
}

/// Parses a log; trims are ignored.
pub fn parse(text: &str) -> Result<Vec<HistogramInterval>, ParseLogError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let intervals =
        lines.map(|(index, line)| parse_line(line).map_err(|reason| ParseLogError { line: index + 1, reason }));
    intervals.filter_map(Result::transpose).collect()
}

fn parse_line(line: &str) -> Result<Option<HistogramInterval>, String> {
    let number = |field: &str| field.trim().parse::<u64>().map_err(|_| format!("invalid number `{}`", truncate(field)));
    let fields = line.split(',').map(number).collect::<Result<Vec<u64>, String>>()?;
    let &[at_ms, kind, _block_size, ref row @ ..] = fields.as_slice() else {
        return Err(format!("expected at least 3 fields, found {}", fields.len()));
    };
    let operation = match kind {
        0 => Operation::Read,
        1 => Operation::Write,
        2 => return Ok(None),
        other => return Err(format!("unknown kind of operation {other}: expected 0 to 2")),
    };
    let filled = row.iter().enumerate().filter(|(_, count)| **count > 0);
    let counts = filled.map(|(bin, count)| Some((midpoint(bin, row.len())?, *count))).collect::<Option<Vec<_>>>();
    let counts = midpoint(0, row.len()).and(counts);
    let counts = counts
        .ok_or_else(|| format!("unsupported number of bins {}: expected the format of fio 3.0 or newer", row.len()))?;
    Ok(Some(HistogramInterval { at_ms, operation, counts }))
}

fn truncate(field: &str) -> String {
    field.trim().chars().take(20).collect()
}

/// Merges the logs of all jobs of a group into one histogram per kind of operation and interval of `interval_ms`. Each
/// log comes with its job's group; groups follow one another.
pub fn merge_by_interval(
    logs: &[(u32, Vec<HistogramInterval>)],
    interval_ms: u64,
) -> BTreeMap<Operation, Vec<Vec<(u64, u64)>>> {
    let interval_ms = interval_ms.max(1);
    let mut slots: BTreeMap<(Operation, u32, u64), Histogram> = BTreeMap::new();
    for (group, intervals) in logs {
        for interval in intervals {
            // fio writes shortly after the end of an interval, and the delay accumulates.
            let slot = (interval.operation, *group, interval.at_ms.saturating_add(interval_ms / 2) / interval_ms);
            slots.entry(slot).or_default().merge(interval.counts.iter().copied());
        }
    }
    let mut merged: BTreeMap<Operation, Vec<Vec<(u64, u64)>>> = BTreeMap::new();
    for ((operation, ..), histogram) in slots {
        merged.entry(operation).or_default().push(histogram.into_counts());
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::histogram::BINS;
    use super::*;

    fn line(at_ms: u64, kind: u64, filled: &[(usize, u64)]) -> String {
        let mut row = vec![0; BINS];
        filled.iter().for_each(|(bin, count)| row[*bin] = *count);
        let row: Vec<String> = row.iter().map(u64::to_string).collect();
        format!("{at_ms}, {kind}, 4096, {}\n", row.join(", "))
    }

    #[test]
    fn a_log_is_parsed_without_trims() {
        let text = line(502, 1, &[(3, 7)]) + &line(502, 0, &[(128, 2), (130, 1)]) + &line(502, 2, &[]) + "\n";
        let intervals = parse(&text).unwrap();
        assert_eq!(intervals.len(), 2);
        assert_eq!(intervals[0], HistogramInterval { at_ms: 502, operation: Operation::Write, counts: vec![(3, 7)] });
        assert_eq!(intervals[1].counts, [(129, 2), (133, 1)]);
    }

    #[test]
    fn errors_have_a_line_and_a_reason() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("1, 0"), "line 1: expected at least 3 fields, found 2");
        assert_eq!(
            error("1, 0, 4096, 1, 2"),
            "line 1: unsupported number of bins 2: expected the format of fio 3.0 or newer"
        );
        assert_eq!(error(&(line(1, 0, &[]) + "nonsense")), "line 2: invalid number `nonsense`");
        assert_eq!(error(&line(1, 9, &[])), "line 1: unknown kind of operation 9: expected 0 to 2");
        assert!(parse(&line(1, 0, &[])[..900]).is_err(), "truncated");
    }

    #[test]
    fn jobs_of_a_group_are_summed_and_groups_follow_one_another() {
        let log =
            |times: &[u64]| parse(&times.iter().map(|time| line(*time, 0, &[(1, 1)])).collect::<String>()).unwrap();
        let logs = [(0, log(&[63, 123, 187])), (0, log(&[60, 121])), (1, log(&[66]))];
        let merged = merge_by_interval(&logs, 60);
        assert_eq!(merged[&Operation::Read], [vec![(1, 2)], vec![(1, 2)], vec![(1, 1)], vec![(1, 1)]]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = parse(&text);
        }

        #[test]
        fn no_line_of_numbers_panics(numbers in proptest::collection::vec(any::<u64>(), 0..40)) {
            let text: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let _ = parse(&text.join(", "));
        }

        #[test]
        fn no_count_is_lost(
            rows in proptest::collection::vec((0u64..10_000, 0u64..2, 0..BINS, 1u64..1000), 1..6),
            interval in 0u64..1000,
        ) {
            let text: String = rows.iter().map(|(index, kind, bin, count)| line(*index, *kind, &[(*bin, *count)])).collect();
            let merged = merge_by_interval(&[(0, parse(&text).unwrap())], interval);
            let counted: u64 = merged.values().flatten().flatten().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, rows.iter().map(|(.., count)| count).sum::<u64>());
        }
    }
}
