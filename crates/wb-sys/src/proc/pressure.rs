//! `/proc/pressure/RESOURCE`, and the `RESOURCE.pressure` of a cgroup (pressure stall information).

use std::str::FromStr;

/// Which tasks were stalled: at least one, or all that were not idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallKind {
    Some,
    Full,
}

/// A value of a kind: `avg10` (percent of the last 10 s) or `total` (microseconds).
pub fn value<T: FromStr>(text: &str, kind: StallKind, name: &str) -> Option<T> {
    let kind = match kind {
        StallKind::Some => "some",
        StallKind::Full => "full",
    };
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let fields = lines.find_map(|mut fields| (fields.next() == Some(kind)).then_some(fields))?;
    let mut values = fields.filter_map(|field| field.split_once('='));
    values.find_map(|(found, value)| (found == name).then_some(value))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_kind_and_name() {
        let text = "some avg10=0.24 avg60=1.0 avg300=2.0 total=145\nfull avg10=0.00 total=12\n";
        assert_eq!(value(text, StallKind::Some, "avg10"), Some(0.24));
        assert_eq!(value(text, StallKind::Full, "total"), Some(12));
        assert_eq!(value::<f64>(text, StallKind::Full, "avg60"), None);
        assert_eq!(value::<u64>("", StallKind::Some, "total"), None);
    }
}
