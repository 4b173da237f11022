//! The status of a check, derived from its score.

use wb_model::Direction;
use wb_results::comparison::{Statistic, Status};

/// `sign` is that of [`direction_sign`].
pub(super) fn status_of(score: f64, sign: Option<f64>, tolerance: f64) -> Status {
    let Some(sign) = sign else {
        return if score.abs() > tolerance { Status::Differs } else { Status::Equivalent };
    };
    match score * sign {
        better if better > tolerance => Status::Improved,
        better if better > tolerance / 2.0 => Status::MinorGain,
        better if better < -tolerance => Status::Regressed,
        better if better < -tolerance / 2.0 => Status::MinorLoss,
        _ => Status::Equivalent,
    }
}

/// The factor that makes a positive score better; `None` if neither direction is. Less deviation is better for every
/// metric: a difference of deviations is positive if they decreased, but the score of a model rises with its value,
/// also for deviations.
pub(super) fn direction_sign(direction: Direction, statistic: Statistic, modelled: bool) -> Option<f64> {
    match (statistic, direction) {
        (Statistic::Stddev, _) => Some(if modelled { -1.0 } else { 1.0 }),
        (Statistic::Mean, Direction::Higher) => Some(1.0),
        (Statistic::Mean, Direction::Lower) => Some(-1.0),
        (Statistic::Mean, Direction::Neither) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_are_symmetric() {
        let of = |score| status_of(score, Some(1.0), 5.0);
        let scores = [f64::INFINITY, 5.1, 5.0, 2.6, 2.5, 0.0, -2.5, -2.6, -5.0, -5.1];
        use Status::*;
        let expected = [
            Improved, Improved, MinorGain, MinorGain, Equivalent, Equivalent, Equivalent, MinorLoss, MinorLoss,
            Regressed,
        ];
        assert_eq!(scores.map(of), expected);
    }

    #[test]
    fn the_direction_decides() {
        let of = |score, direction, statistic, modelled| {
            status_of(score, direction_sign(direction, statistic, modelled), 5.0)
        };
        assert_eq!(of(6.0, Direction::Lower, Statistic::Mean, false), Status::Regressed);
        assert_eq!(of(-6.0, Direction::Lower, Statistic::Mean, true), Status::Improved);
        assert_eq!(of(-6.0, Direction::Neither, Statistic::Mean, false), Status::Differs);
        assert_eq!(of(4.0, Direction::Neither, Statistic::Mean, false), Status::Equivalent);
        assert_eq!(of(6.0, Direction::Lower, Statistic::Stddev, false), Status::Improved);
        assert_eq!(of(6.0, Direction::Higher, Statistic::Stddev, true), Status::Regressed);
    }
}
