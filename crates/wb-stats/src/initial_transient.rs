//! The initial transient of a series: how much of its beginning does not belong to its steady state.

use crate::Samples;

/// Samples of a batch, of whose means the rule is made
const BATCH: usize = 5;
/// Parts of a steady state differ by less than this share
const EQUAL_SHARE: f64 = 0.05;
/// Standard errors by which they differ at most by chance
const MAX_ERRORS: f64 = 3.0;
/// Number of samples from which on what remains after the last cut has two parts with a variance of their own
pub const MIN_SAMPLES_FOR_TRANSIENT: usize = 100;

/// Where the steady state of a series begins
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InitialTransient {
    /// After this number of samples, at most half of them
    Over { samples: usize },
    /// Not within the first half: what remains after the best cut still changes
    Unsettled {
        /// Mean of the first half of what remains
        early: f64,
        /// Mean of its second half
        late: f64,
    },
}

/// Finds the initial transient by MSER-5: of the cuts within the first half, that with the least standard error of the
/// mean of what remains, computed from means of five successive samples (White 1997; White, Cobb, Spratt 2000). That
/// alone always finds one, also where the end is what differs. So the two halves of what remains are compared as well,
/// as Geweke (1992) does: they differ if their means do by more than three standard errors, and by more than 5 %.
///
/// `None` for fewer than [`MIN_SAMPLES_FOR_TRANSIENT`].
pub fn initial_transient(samples: &Samples) -> Option<InitialTransient> {
    if samples.count() < MIN_SAMPLES_FOR_TRANSIENT {
        return None;
    }
    // Sums of squares lose less to rounding the smaller the values are.
    let centre = samples.median();
    let batches: Vec<f64> = samples.in_order().chunks_exact(BATCH).map(|batch| mean(batch) - centre).collect();
    let errors = squared_errors(&batches);
    let cut = argmin(&errors[..=batches.len() / 2]);
    let rest = &batches[cut..];
    let (early, late) = rest.split_at(rest.len() / 2);
    let error = (squared_errors(early)[0] + squared_errors(late)[0]).sqrt();
    let [early, late] = [early, late].map(|part| centre + mean(part));
    let difference = (late - early).abs();
    Some(if difference > MAX_ERRORS * error && difference > EQUAL_SHARE * early.abs().max(late.abs()) {
        InitialTransient::Unsettled { early, late }
    } else {
        InitialTransient::Over { samples: cut * BATCH }
    })
}

/// The squared standard error of the mean of the values after each cut
fn squared_errors(values: &[f64]) -> Vec<f64> {
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut errors: Vec<f64> = (1..)
        .zip(values.iter().rev())
        .map(|(count, value)| {
            sum += value;
            squares += value * value;
            let count = f64::from(count);
            f64::max(squares - sum * sum / count, 0.0) / (count * count)
        })
        .collect();
    errors.reverse();
    errors
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The position of the first of the smallest values
fn argmin(values: &[f64]) -> usize {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.iter().position(|value| *value == smallest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of a curve over 0 to 1 with noise of up to 5 %, the same each time
    fn series(count: usize, curve: impl Fn(f64) -> f64) -> Samples {
        let noise = |index: usize| 0.95 + 0.1 * ((index * 7919) % 1000) as f64 / 1000.0;
        let values: Vec<f64> = (0..count).map(|index| curve(index as f64 / count as f64) * noise(index)).collect();
        Samples::new(&values).unwrap()
    }

    /// The share that was cut off; none if it never settles
    fn cut(count: usize, curve: impl Fn(f64) -> f64) -> Option<f64> {
        match initial_transient(&series(count, curve))? {
            InitialTransient::Over { samples } => Some(samples as f64 / count as f64),
            InitialTransient::Unsettled { .. } => None,
        }
    }

    #[test]
    fn a_ramp_is_cut_off_where_it_ends() {
        for (end, count) in [(0.1, 200), (0.3, 200), (0.3, 500), (0.45, 200)] {
            let found = cut(count, |position| f64::min(position / end, 1.0)).unwrap();
            assert!((end * 0.8..=end + 0.06).contains(&found), "{found} of {end}");
        }
        // Buffers that fill at first are no steady state either.
        let burst = cut(200, |position| if position < 0.05 { 6.0 } else { 1.0 }).unwrap();
        assert!((0.05..0.15).contains(&burst), "{burst}");
    }

    #[test]
    fn of_a_series_that_is_steady_from_the_start_little_is_cut_off() {
        assert!(cut(200, |_| 1.0).unwrap() < 0.1);
        let constant = Samples::new(&[7e9 + 0.1; 200]).unwrap();
        assert_eq!(initial_transient(&constant), Some(InitialTransient::Over { samples: 0 }));
    }

    #[test]
    fn a_series_that_never_settles_is_recognised() {
        for curve in [
            |fraction: f64| fraction,
            |fraction: f64| 1.0 - 0.8 * fraction,
            |fraction: f64| 1.0 - (-2.0 * fraction).exp(),
            |fraction: f64| if fraction < 0.6 { 1.0 } else { 2.0 },
            // What grows ever faster, and what changes at last, are outliers to the standard error.
            |fraction: f64| (6.0 * fraction).exp(),
            |fraction: f64| if fraction < 0.7 { 1.0 } else { 2.0 },
        ] {
            assert_eq!(cut(200, curve), None);
            assert_eq!(cut(MIN_SAMPLES_FOR_TRANSIENT, curve), None);
        }
        // A change that does not matter is none.
        assert!(cut(200, |fraction| if fraction < 0.8 { 1.0 } else { 1.04 }).is_some());
    }

    #[test]
    fn few_samples_show_nothing() {
        assert_eq!(initial_transient(&series(MIN_SAMPLES_FOR_TRANSIENT - 1, |_| 1.0)), None);
    }

    proptest! {
        #[test]
        fn the_unit_does_not_matter(
            values in prop::collection::vec(0.0..1e9_f64, MIN_SAMPLES_FOR_TRANSIENT..300), exponent in -20..20_i32,
        ) {
            // Powers of two scale without rounding.
            let scaled: Vec<f64> = values.iter().map(|value| value * 2_f64.powi(exponent)).collect();
            let [one, other] = [values, scaled].map(|values| initial_transient(&Samples::new(&values).unwrap()).unwrap());
            match (one, other) {
                (InitialTransient::Unsettled { early, .. }, InitialTransient::Unsettled { early: other, .. }) => {
                    prop_assert_eq!(early * 2_f64.powi(exponent), other);
                }
                (one, other) => prop_assert_eq!(one, other),
            }
        }

        #[test]
        fn at_most_half_is_cut_off(values in prop::collection::vec(-1e9..1e9_f64, MIN_SAMPLES_FOR_TRANSIENT..300)) {
            let found = initial_transient(&Samples::new(&values).unwrap()).unwrap();
            if let InitialTransient::Over { samples } = found {
                prop_assert!(samples <= values.len() / 2, "{:?}", found);
            }
        }
    }
}
