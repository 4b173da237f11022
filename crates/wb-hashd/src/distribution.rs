//! Random sizes, times and addresses.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// A normal distribution within limits: values outside are drawn again, uniformly between the limits. With a growing
/// deviation it becomes the uniform distribution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClampedNormal {
    mean: f64,
    deviation: f64,
    min: f64,
    max: f64,
}

impl ClampedNormal {
    /// Sizes in bytes around `mean`, from `min` to twice the mean.
    pub(crate) fn sizes(mean: f64, relative_deviation: f64, min: f64) -> Self {
        Self { mean, deviation: mean * relative_deviation, min, max: (2.0 * mean).max(min) }
    }

    /// Positions from -1 to 1 around 0.
    pub(crate) fn positions(deviation: f64) -> Self {
        Self { mean: 0.0, deviation, min: -1.0, max: 1.0 }
    }

    pub(crate) fn sample(&self, rng: &mut impl Rng) -> f64 {
        let normal: f64 = StandardNormal.sample(rng);
        let value = self.mean + self.deviation * normal;
        if (self.min..=self.max).contains(&value) { value } else { rng.random_range(self.min..=self.max) }
    }
}

/// The page at a position from -1 to 1: page 0 at the centre, even pages to the right of it, odd pages to the left. A
/// smaller amplitude uses fewer pages, and always the first ones.
fn page_at(position: f64, pages: u64) -> u64 {
    let pair = (position.abs() * (pages / 2) as f64) as u64;
    let page = pair * 2 + u64::from(position.is_sign_negative());
    page.min(pages.saturating_sub(1))
}

/// The first page of a chunk of `chunk` pages at a position from -1 to 1, so that the whole chunk is within `pages`.
pub(crate) fn chunk_at(position: f64, pages: u64, chunk: u64) -> u64 {
    page_at(position, (pages + 1).saturating_sub(chunk))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn samples(distribution: ClampedNormal, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut samples: Vec<f64> = (0..4096).map(|_| distribution.sample(&mut rng)).collect();
        samples.sort_by(f64::total_cmp);
        samples
    }

    #[test]
    fn small_deviations_are_normal_and_large_ones_uniform() {
        let quartiles = |deviation| {
            let samples = samples(ClampedNormal::positions(deviation), 1);
            [samples[1024], samples[2048], samples[3072]]
        };
        let near = |actual: [f64; 3], expected: [f64; 3]| {
            let distance = actual.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(distance < 0.06, "{actual:?}, expected {expected:?}");
        };
        near(quartiles(0.2), [-0.135, 0.0, 0.135]);
        near(quartiles(100.0), [-0.5, 0.0, 0.5]);
        assert_eq!(quartiles(0.0), [0.0; 3]);
    }

    proptest! {
        #[test]
        fn sizes_stay_within_their_limits(mean in 4096.0..1e9f64, deviation in 0.0..10.0f64, seed: u64) {
            let samples = samples(ClampedNormal::sizes(mean, deviation, 4096.0), seed);
            prop_assert!(samples[0] >= 4096.0 && samples[4095] <= 2.0 * mean);
        }

        #[test]
        fn chunks_lie_within_the_pages(position in -1.0..=1.0f64, chunk in 1..100u64, more in 0..1_000_000u64) {
            let pages = chunk + more;
            prop_assert!(chunk_at(position, pages, chunk) + chunk <= pages);
        }

        #[test]
        fn sides_use_pages_of_different_parity(position in 0.0..0.99f64, pages in 100..1_000_000u64) {
            prop_assert_eq!(page_at(position, pages) % 2, 0);
            prop_assert_eq!(page_at(-position, pages), page_at(position, pages) + 1);
        }

        #[test]
        fn smaller_amplitude_keeps_the_centre(position in -1.0..=1.0f64, scale in 0.0..=1.0f64, pages in 2..1_000_000u64) {
            let limit = (pages as f64 * scale) as u64 + 1;
            prop_assert!(page_at(position * scale, pages) <= limit);
            prop_assert!(page_at(position * scale, pages) <= page_at(position, pages));
        }
    }

    #[test]
    fn fewer_pages_than_a_chunk_give_the_first_page() {
        assert_eq!(chunk_at(1.0, 3, 25), 0);
        assert_eq!(chunk_at(-0.5, 0, 1), 0);
    }
}
