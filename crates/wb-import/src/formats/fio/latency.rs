//! Merging of latencies over the clones of a job.

use std::collections::BTreeMap;

use wb_workloads::fio::json::LatencyReport;

#[derive(Debug, Clone, Copy)]
pub(super) struct CloneLatency<'a> {
    pub(super) latency: &'a LatencyReport,
    /// In nanoseconds.
    pub(super) unit: f64,
    /// Used if the latency has no count.
    pub(super) operations: f64,
}

/// A latency over several clones, in nanoseconds.
#[derive(Debug, PartialEq)]
pub(super) struct MergedLatency {
    /// Over all operations; none if the mean of a clone is unknown.
    pub(super) mean: Option<f64>,
    /// By name, such as `p99.9`; none if the clones have only their own percentiles, which cannot be merged.
    pub(super) percentiles: Option<Vec<(String, f64)>>,
}

pub(super) fn merge_clones(parts: &[CloneLatency<'_>]) -> MergedLatency {
    let count = |part: &CloneLatency<'_>| part.latency.count.0.unwrap_or(part.operations);
    let active = || parts.iter().filter(|part| count(part) > 0.0);
    let means = active().map(|part| Some((part.latency.mean.0? * part.unit, count(part)))).collect::<Option<Vec<_>>>();
    let mean = means.and_then(|means| match means[..] {
        [] => None,
        // As it is reported, without the rounding of an average.
        [(mean, _)] => Some(mean),
        _ => {
            let count: f64 = means.iter().map(|(_, count)| count).sum();
            Some(means.iter().map(|(mean, count)| mean * count).sum::<f64>() / count)
        }
    });
    let percentiles = match parts {
        [part] => Some(own_percentiles(part)),
        parts => merge_percentiles(parts),
    };
    MergedLatency { mean, percentiles: percentiles.map(name_percentiles) }
}

fn name_percentiles(mut percentiles: Vec<(f64, f64)>) -> Vec<(String, f64)> {
    percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    percentiles.into_iter().map(|(percent, value)| (format!("p{percent}"), value)).collect()
}

fn own_percentiles(part: &CloneLatency<'_>) -> Vec<(f64, f64)> {
    let percentiles = part.latency.percentile.iter();
    percentiles.filter_map(|(percent, value)| Some((percent.parse().ok()?, value.0? * part.unit))).collect()
}

/// Percentiles of the merged histograms of all clones, with fio's algorithm: the first bin at which the cumulative
/// count reaches the percentage (`calc_clat_percentiles` in fio's stat.c).
fn merge_percentiles(parts: &[CloneLatency<'_>]) -> Option<Vec<(f64, f64)>> {
    let mut bins: BTreeMap<u64, f64> = BTreeMap::new();
    for CloneLatency { latency, unit, .. } in parts {
        if latency.bins.is_empty() && !latency.percentile.is_empty() {
            return None;
        }
        for (at, count) in &latency.bins {
            *bins.entry((at.parse::<f64>().ok()? * unit) as u64).or_default() += count.0?;
        }
    }
    let total: f64 = bins.values().sum();
    let at = |percent: f64| {
        let mut counted = 0.0;
        bins.iter().find_map(|(at, count)| {
            counted += count;
            (counted >= percent / 100.0 * total).then_some(*at as f64)
        })
    };
    let percents = parts.first()?.latency.percentile.keys().filter_map(|percent| percent.parse::<f64>().ok());
    Some(percents.filter_map(|percent| Some((percent, at(percent)?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(json: &str) -> LatencyReport {
        serde_json::from_str(json).unwrap()
    }

    fn part(latency: &LatencyReport) -> CloneLatency<'_> {
        CloneLatency { latency, unit: 1.0, operations: 0.0 }
    }

    #[test]
    fn histograms_of_clones_are_merged() {
        let one =
            latency(r#"{"mean": 10, "N": 3, "percentile": {"50.000000": 10, "99.900000": 11}, "bins": {"10": 3}}"#);
        let other = latency(r#"{"mean": 30, "N": 1, "percentile": {"50.000000": 30}, "bins": {"30": 1}}"#);
        let both = merge_clones(&[part(&one), part(&other)]);
        assert_eq!(both.mean, Some(15.0));
        let exact = latency(r#"{"mean": 3914692.466667, "N": 15, "percentile": {}, "bins": {}}"#);
        assert_eq!(merge_clones(&[part(&exact)]).mean, Some(3_914_692.466_667));
        assert_eq!(both.percentiles.unwrap(), [("p50".to_owned(), 10.0), ("p99.9".to_owned(), 30.0)]);
    }

    #[test]
    fn a_mean_with_an_unknown_part_is_no_value() {
        let mean = |other: &str| {
            let (one, other) = (latency(r#"{"mean": 10, "N": 3}"#), latency(other));
            merge_clones(&[part(&one), part(&other)]).mean
        };
        assert_eq!(mean(r#"{"mean": null, "N": 1}"#), None);
        assert_eq!(mean(r#"{"mean": null, "N": 0}"#), Some(10.0));
    }

    #[test]
    fn percentiles_without_histograms_cannot_be_merged() {
        let one = latency(r#"{"mean": 10, "N": 3, "percentile": {"99.000000": 11}}"#);
        assert_eq!(merge_clones(&[part(&one), part(&one)]).percentiles, None);
        assert_eq!(merge_clones(&[part(&one)]).percentiles.unwrap(), [("p99".to_owned(), 11.0)]);
    }

    #[test]
    fn microseconds_become_nanoseconds() {
        let one = latency(r#"{"mean": 2, "percentile": {"99.000000": 3}}"#);
        let merged = merge_clones(&[CloneLatency { latency: &one, unit: 1000.0, operations: 7.0 }]);
        assert_eq!((merged.mean, merged.percentiles.unwrap()[0].1), (Some(2000.0), 3000.0));
    }
}
