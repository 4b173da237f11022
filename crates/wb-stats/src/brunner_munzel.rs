//! Tests whether samples of one side are above those of the other as often as below, whatever the spreads of both.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The test of Brunner and Munzel (2000): the share of the pairs in which a sample of the second side is the larger
/// one, with a standard error from the samples' placements in the other side.
///
/// Wilcoxon's test takes the sides to have the same shape. If the smaller side varies more, it rejects too often; this
/// one, studentized, does not. Student's t with the degrees of freedom of Satterthwaite (1946).
pub(crate) struct RelativeEffect {
    /// The share, less a half.
    effect: f64,
    error: f64,
    degrees: f64,
}

impl RelativeEffect {
    /// The effect of two ascending sides, with `shift` subtracted from the second one.
    pub(crate) fn new(a: &[f64], b: &[f64], shift: f64) -> Self {
        let [(of_a, _), (of_b, share)] = [(a, b, shift), (b, a, -shift)].map(|(side, other, shift)| {
            let placements = placements(side, other, shift);
            let mean = placements.iter().sum::<f64>() / placements.len() as f64;
            let squares = placements.iter().map(|place| (place - mean).powi(2)).sum::<f64>();
            ((squares, placements.len() as f64), mean)
        });
        let [(a, from_a), (b, from_b)] = [of_a, of_b].map(|(squares, n)| {
            let variance = if n > 1.0 { squares / (n - 1.0) / n } else { 0.0 };
            (variance, if n > 1.0 { variance.powi(2) / (n - 1.0) } else { 0.0 })
        });
        Self { effect: share - 0.5, error: (a + b).sqrt(), degrees: (a + b).powi(2) / (from_a + from_b) }
    }

    /// The two-sided p-value.
    pub(crate) fn p_value(&self) -> f64 {
        if self.effect.abs() < 1e-12 {
            return 1.0;
        }
        // No sample is between those of the other side.
        if self.error == 0.0 {
            return 0.0;
        }
        let t = self.effect.abs() / self.error;
        StudentsT::new(0.0, 1.0, self.degrees).map_or(1.0, |student| (2.0 * student.sf(t)).min(1.0))
    }
}

/// For each sample of an ascending side the share of the samples of the other one, with `shift` subtracted, that it is
/// above; a half counts where they are equal.
fn placements(side: &[f64], other: &[f64], shift: f64) -> Vec<f64> {
    let (mut below, mut up_to) = (0, 0);
    let place = |sample: &f64| {
        below += other[below..].iter().take_while(|other| **other - shift < *sample).count();
        up_to += other[up_to..].iter().take_while(|other| **other - shift <= *sample).count();
        (below + up_to) as f64 / (2 * other.len()) as f64
    };
    side.iter().map(place).collect()
}

/// An interval of the shift of `b`, extended to the shifts that the test does not reject at this error probability.
pub(crate) fn include_not_rejected(a: &[f64], b: &[f64], [low, high]: [f64; 2], error: f64) -> [f64; 2] {
    let range = [b[0] - a[a.len() - 1], b[b.len() - 1] - a[0]];
    let width = range[1] - range[0];
    let is_rejected = |shift: f64| RelativeEffect::new(a, b, shift).p_value() <= error;
    let extend = |end: f64, beyond_all: f64| {
        // At its end itself, which is a difference of two samples, these are equal.
        let (mut inside, mut outside) = (end + (beyond_all - end) * 1e-12, beyond_all);
        if is_rejected(inside) || !is_rejected(outside) {
            return end;
        }
        loop {
            let middle = f64::midpoint(inside, outside);
            if middle == inside || middle == outside {
                return inside;
            }
            *if is_rejected(middle) { &mut outside } else { &mut inside } = middle;
        }
    };
    [extend(low, range[0] - width), extend(high, range[1] + width)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy: `brunnermunzel(a, b)`, the example of its documentation.
    #[test]
    fn the_p_value_is_that_of_scipy() {
        let mut a = [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0];
        let mut b = [3.0, 3.0, 4.0, 3.0, 1.0, 2.0, 3.0, 1.0, 1.0, 5.0, 4.0];
        a.sort_by(f64::total_cmp);
        b.sort_by(f64::total_cmp);
        let effect = RelativeEffect::new(&a, &b, 0.0);
        assert!((effect.effect / effect.error - 3.137_467_482_302_95).abs() < 1e-9, "{}", effect.effect / effect.error);
        assert!((effect.p_value() - 0.005_786_208_666_151_538).abs() < 1e-9, "{}", effect.p_value());
        let reversed = RelativeEffect::new(&b, &a, 0.0);
        assert!((effect.p_value() - reversed.p_value()).abs() < 1e-12);
    }

    #[test]
    fn sides_apart_differ_and_equal_ones_do_not() {
        assert_eq!(RelativeEffect::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.0).p_value(), 0.0);
        assert_eq!(RelativeEffect::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 3.0).p_value(), 1.0);
        assert_eq!(RelativeEffect::new(&[7.0; 6], &[7.0; 9], 0.0).p_value(), 1.0);
    }

    // Otherwise an interval with two tests would be narrower than that of one of them.
    #[test]
    fn an_interval_is_extended_only_by_what_is_not_rejected() {
        let few = [-40.0, -11.0, -3.0, 5.0, 19.0, 30.0];
        let many: Vec<f64> = (0..30).map(|i| f64::from(i) * 0.1 - 1.45).collect();
        for (a, b) in [(&few[..], &many[..]), (&many[..], &few[..])] {
            let [low, high] = include_not_rejected(a, b, [-1.0, 1.0], 0.05);
            assert!(low < -5.0 && high > 5.0, "{low} {high}");
            let p = |shift: f64| RelativeEffect::new(a, b, shift).p_value();
            assert!([low, high].iter().all(|end| p(*end) > 0.05));
            assert!(p(low - 1e-9) <= 0.05 && p(high + 1e-9) <= 0.05);
            assert_eq!(include_not_rejected(a, b, [-100.0, 100.0], 0.05), [-100.0, 100.0]);
        }
        assert_eq!(include_not_rejected(&[7.0; 6], &[7.0; 6], [0.0; 2], 0.05), [0.0; 2]);
    }
}
