//! Rules for all samples of one cell.

use super::{Implausibility, Rule, format_rate, format_time, is_positive};

/// Relative distance up to which durations count as the same.
const SAME: f64 = 0.01;

/// Smallest number of samples that are a cluster.
const MIN_CLUSTERED: usize = 3;

/// Smallest number of samples beside a cluster that show how samples spread.
const MIN_OTHERS: usize = 2;

/// Samples that end at the same time while others spread: ended by a time limit or a timer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeCluster {
    pub count: usize,
    pub of: usize,
    pub longest: f64,
    /// The shortest and the longest duration outside the cluster; equal to `longest` if all samples are in it.
    pub others: (f64, f64),
}

impl TimeCluster {
    pub fn contains(&self, seconds: f64) -> bool {
        seconds >= self.longest * (1.0 - SAME)
    }
}

/// Finds samples that end at the same time. Samples that reach a known `limit` are always a cluster. Without one, at
/// least three of the longest samples have to be within 1 %, and the others, at least two, spread more than fivefold
/// that and stay 10 % below.
pub fn time_cluster(seconds: &[f64], limit: Option<f64>) -> Option<TimeCluster> {
    if seconds.is_empty() || !seconds.iter().copied().all(is_positive) {
        return None;
    }
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    let mut found = TimeCluster { count: 0, of: seconds.len(), longest, others: (longest, longest) };
    let others: Vec<f64> = seconds.iter().copied().filter(|seconds| !found.contains(*seconds)).collect();
    found.count = seconds.len() - others.len();
    let (low, high) = others.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), s| (low.min(*s), high.max(*s)));
    if !others.is_empty() {
        found.others = (low, high);
    }
    if limit.is_some_and(|limit| is_positive(limit) && longest >= limit * (1.0 - SAME)) {
        return Some(found);
    }
    let spread = others.len() >= MIN_OTHERS && high - low > 5.0 * SAME * high && high < 0.9 * longest;
    (found.count >= MIN_CLUSTERED && spread).then_some(found)
}

pub fn clustered_times(seconds: &[f64], limit: Option<f64>) -> Option<Implausibility> {
    let TimeCluster { count, of, longest, others } = time_cluster(seconds, limit)?;
    let (low, high) = (format_time(others.0), format_time(others.1));
    let rest = if count < of { format!(", the others {low} to {high}") } else { String::new() };
    let figures =
        format!("{count} of {of} samples took {} within 1 %{rest}: a time limit ended them", format_time(longest));
    Some(Implausibility { rule: Rule::TimeLimit, figures })
}

/// [`time_cluster`] of transfers of equal size, by their rates in bytes per second; its times are those of one byte.
pub fn rate_cluster(rates: &[f64]) -> Option<TimeCluster> {
    time_cluster(&rates.iter().map(|rate| 1.0 / rate).collect::<Vec<f64>>(), None)
}

pub fn clustered_rates(rates: &[f64]) -> Option<Implausibility> {
    let TimeCluster { count, of, longest, others } = rate_cluster(rates)?;
    let [slowest, low, high] = [longest, others.1, others.0].map(|seconds| format_rate(1.0 / seconds));
    let figures = format!(
        "{count} of {of} samples have {slowest} within 1 %, the others {low} to {high}: transfers of equal size that a \
         time limit ended"
    );
    Some(Implausibility { rule: Rule::TimeLimit, figures })
}

/// Recognises samples of a baseline that are all equal or multiples of one step: they show the clock of the program,
/// not the medium. `resolution` is that of the figures as written (0.01 for `8.58`). It has to be finer than 0.2 % of
/// the samples, because coarsely rounded samples are equal anyway.
pub fn quantised_samples(samples: &[f64], resolution: f64) -> Option<Implausibility> {
    if samples.len() < 2 || !samples.iter().copied().all(is_positive) || resolution.is_nan() || resolution < 0.0 {
        return None;
    }
    let low = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let high = samples.iter().copied().fold(0.0, f64::max);
    if low < 500.0 * resolution {
        return None;
    }
    let tolerance = f64::max(resolution * 0.51, high * 1e-9);
    if high - low <= tolerance {
        let figures = format!("all {} samples are equal: the resolution of a clock, not of the medium", samples.len());
        return Some(Implausibility { rule: Rule::Resolution, figures });
    }
    let mut distinct = samples.to_vec();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup_by(|next, previous| *next - *previous <= tolerance);
    let step = distinct.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let is_multiple = |sample: &f64| {
        let multiple = (sample / step).round();
        multiple >= 1.0 && (sample - multiple * step).abs() <= f64::max(2.0 * tolerance, 0.005 * step)
    };
    // Values that repeat by chance are rare, and multiples of a step that is coarse are, too.
    let is_coarse = step > 10.0 * tolerance && step > 0.02 * high;
    let has_evidence = samples.len() >= 5 && (distinct.len() < samples.len() || distinct.len() >= 4);
    (is_coarse && has_evidence && samples.iter().all(is_multiple)).then(|| Implausibility {
        rule: Rule::Resolution,
        figures: format!(
            "all {} samples are multiples of one step, {:.1} % of the largest: the resolution of a clock, not of the \
             medium",
            samples.len(),
            step / high * 100.0
        ),
    })
}

/// Recognises durations of a baseline that are all whole multiples of its program's reporting `interval` (1 s for
/// iperf), within 0.5 % of it: 1 GiB in 1.001 s.
pub fn quantised_times(seconds: &[f64], interval: f64) -> Option<Implausibility> {
    if seconds.len() < 2 || !seconds.iter().copied().all(is_positive) || !is_positive(interval) {
        return None;
    }
    let is_multiple = |seconds: &f64| {
        let multiple = (seconds / interval).round();
        // Beyond some 20 intervals the tolerance is not small against what is measured.
        (1.0..=20.0).contains(&multiple) && (seconds / interval - multiple).abs() <= 0.005
    };
    seconds.iter().all(is_multiple).then(|| Implausibility {
        rule: Rule::Resolution,
        figures: format!(
            "all {} durations are whole multiples of {} (the first is {}): the interval of the program's reports",
            seconds.len(),
            format_time(interval),
            format_time(seconds[0])
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plausibility::gbps;

    #[test]
    fn samples_at_a_time_limit_are_a_cluster() {
        let seconds = [3.1, 10.0, 4.2, 10.02, 2.9, 9.99, 10.01];
        let cluster = time_cluster(&seconds, None).unwrap();
        assert_eq!((cluster.count, cluster.of, cluster.others), (4, 7, (2.9, 4.2)));
        assert!(cluster.contains(9.99) && !cluster.contains(4.2));
        let found = clustered_times(&seconds, None).unwrap();
        assert_eq!(
            found.figures,
            "4 of 7 samples took 10.0 s within 1 %, the others 2.90 s to 4.20 s: a time limit ended them"
        );
        let rates: Vec<f64> = seconds.iter().map(|seconds| 1e9 / seconds).collect();
        assert_eq!(rate_cluster(&rates).unwrap().count, 4);
        assert!(clustered_rates(&rates).unwrap().figures.starts_with("4 of 7 samples have 798 Mbit/s within 1 %"));
    }

    #[test]
    fn samples_that_vary_are_no_cluster() {
        for seconds in [
            &[0.367, 0.358, 0.374, 0.334, 0.395, 0.361][..],
            &[87.9, 87.95, 88.0, 87.8, 87.91],
            &[1.0, 2.0, 2.0, 2.0],
            &[1.0, 1.9, 2.0, 2.0, 2.0],
            &[],
            &[0.0, 1.0, 1.0, 1.0],
        ] {
            assert_eq!(time_cluster(seconds, None), None, "{seconds:?}");
        }
    }

    #[test]
    fn a_sample_at_a_known_limit_is_enough() {
        assert_eq!(time_cluster(&[60.0, 1.0], Some(60.0)).map(|found| found.count), Some(1));
        assert_eq!(time_cluster(&[30.0, 1.0], Some(60.0)), None);
    }

    #[test]
    fn equal_samples_of_a_baseline_show_its_clock() {
        let found = quantised_samples(&[gbps(8.58), gbps(8.58)], gbps(0.01)).unwrap();
        assert_eq!(found.rule, Rule::Resolution);
        assert_eq!(quantised_samples(&[gbps(0.94), gbps(0.94)], gbps(0.01)), None, "rounded");
        assert_eq!(quantised_samples(&[gbps(8.58), gbps(8.60), gbps(8.59)], gbps(0.01)), None);
        assert!(quantised_samples(&[1.0, 1.5, 2.0, 1.5, 1.0], 0.001).is_some());
        assert_eq!(quantised_samples(&[1.02, 1.5, 2.03, 1.57, 1.11], 0.001), None);
        assert_eq!(quantised_samples(&[5.0], 0.001), None);
    }

    #[test]
    fn durations_of_whole_seconds_show_the_interval_of_reports() {
        let found = quantised_times(&[1.001, 1.001], 1.0).unwrap();
        assert_eq!(
            found.figures,
            "all 2 durations are whole multiples of 1 s (the first is 1.00 s): the interval of the program's reports"
        );
        assert!(quantised_times(&[1.001, 2.002, 1.0], 1.0).is_some());
        assert_eq!(quantised_times(&[1.02, 1.001], 1.0), None);
        assert_eq!(quantised_times(&[0.001, 0.002], 1.0), None);
    }
}
