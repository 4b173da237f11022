//! The tail of two distributions that is compared.

use wb_model::Direction;
use wb_results::comparison::Aspect;
use wb_stats::tail_level;

/// The tail that `samples` on the smaller side permit; `None` with too few, or if neither direction is worse.
pub(super) fn tail_aspect(samples: usize, direction: Direction) -> Option<Aspect> {
    match (direction, tail_level(samples)? > 0.8) {
        (Direction::Neither, _) => None,
        (Direction::Higher, true) => Some(Aspect::Quantile10),
        (Direction::Higher, false) => Some(Aspect::Quantile25),
        (Direction::Lower, true) => Some(Aspect::Quantile90),
        (Direction::Lower, false) => Some(Aspect::Quantile75),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_on_the_worse_side() {
        let quantile = |samples, direction| tail_aspect(samples, direction).and_then(Aspect::quantile);
        assert_eq!(quantile(12, Direction::Lower), None);
        assert_eq!(quantile(13, Direction::Lower), Some(0.75));
        assert_eq!(quantile(13, Direction::Higher), Some(0.25));
        assert_eq!(quantile(36, Direction::Lower), Some(0.9));
        assert_eq!(quantile(36, Direction::Higher), Some(0.1));
        assert_eq!(quantile(100, Direction::Neither), None);
    }
}
