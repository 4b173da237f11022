//! Rules for rates in bytes per second.

use super::{Implausibility, Rule, format_rate, is_positive};

/// Smallest factor between upload and download that is implausible without other evidence.
pub const ASYMMETRY: f64 = 20.0;

/// Factor by which a rate may exceed that of the best baseline, as both vary.
pub const CEILING_MARGIN: f64 = 1.05;

/// Recognises a cell whose upload and download differ by [`ASYMMETRY`] or more. Both cross the same medium with the
/// same programs, so one of them did not transfer what it claims to.
pub fn asymmetric_rates(upload: f64, download: f64) -> Option<Implausibility> {
    if !is_positive(upload) || !is_positive(download) {
        return None;
    }
    let factor = f64::max(upload / download, download / upload);
    let [(fast, high), (slow, low)] = if upload > download {
        [("upload", upload), ("download", download)]
    } else {
        [("download", download), ("upload", upload)]
    };
    (factor >= ASYMMETRY).then(|| Implausibility {
        rule: Rule::Asymmetry,
        figures: format!(
            "{fast} of {} is {factor:.0} times the {slow} of {}, expected less than {ASYMMETRY} times",
            format_rate(high),
            format_rate(low)
        ),
    })
}

/// Recognises a rate above `margin` times the ceiling, the rate of the best baseline.
pub fn rate_above_ceiling(rate: f64, ceiling: f64, margin: f64) -> Option<Implausibility> {
    if !is_positive(rate) || !is_positive(ceiling) || !is_positive(margin) || rate <= ceiling * margin {
        return None;
    }
    let figures = format!(
        "{} is {:.2} times the {} of the best baseline, expected at most {margin} times",
        format_rate(rate),
        rate / ceiling,
        format_rate(ceiling)
    );
    Some(Implausibility { rule: Rule::Ceiling, figures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plausibility::gbps;

    #[test]
    fn a_download_that_moved_nothing_is_asymmetric() {
        let found = asymmetric_rates(gbps(0.94), gbps(194.58)).unwrap();
        assert_eq!(
            found.to_string(),
            "asymmetry: download of 195 Gbit/s is 207 times the upload of 940 Mbit/s, expected less than 20 times"
        );
        assert!(asymmetric_rates(gbps(20.0), gbps(1.0)).is_some_and(|found| found.figures.starts_with("upload")));
    }

    #[test]
    fn similar_and_missing_rates_are_not_asymmetric() {
        assert_eq!(asymmetric_rates(gbps(1.79), gbps(2.27)), None);
        assert_eq!(asymmetric_rates(gbps(1.0), gbps(19.9)), None);
        assert_eq!(asymmetric_rates(0.0, gbps(1.0)), None);
        assert_eq!(asymmetric_rates(f64::NAN, gbps(1.0)), None);
    }

    #[test]
    fn a_rate_above_the_best_baseline_is_impossible() {
        let found = rate_above_ceiling(gbps(194.58), gbps(8.58), CEILING_MARGIN).unwrap();
        assert_eq!(
            found.figures,
            "195 Gbit/s is 22.68 times the 8.58 Gbit/s of the best baseline, expected at most 1.05 times"
        );
        assert_eq!(rate_above_ceiling(gbps(9.0), gbps(8.58), CEILING_MARGIN), None);
        assert_eq!(rate_above_ceiling(gbps(9.0), 0.0, CEILING_MARGIN), None);
    }
}
