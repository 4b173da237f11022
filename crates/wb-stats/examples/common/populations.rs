//! The populations from which samples are drawn.

use rand::Rng;

/// A shape of noise, around 100 and with a given scale
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Population {
    /// Gaussian
    Normal,
    /// Skewed: log-normal with σ = 1
    LogNormal,
    /// Heavy tails: Student's t with 3 degrees of freedom
    T3,
    /// Gaussian, rounded to whole spreads: a coarse clock
    Coarse,
    /// Two modes 4 spreads apart, each half a spread wide, 70 % in the lower
    Uneven,
    /// The same, half of the samples in each
    Even,
    /// Gaussian, its centre rising by 4 spreads over 30 samples
    Drifting,
}

impl Population {
    pub(crate) const ALL: [Self; 7] =
        [Self::Normal, Self::LogNormal, Self::T3, Self::Coarse, Self::Uneven, Self::Even, Self::Drifting];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::LogNormal => "log-normal",
            Self::T3 => "heavy tails (t₃)",
            Self::Coarse => "coarse clock",
            Self::Uneven => "two modes, 70:30",
            Self::Even => "two modes, 50:50",
            Self::Drifting => "drifting",
        }
    }

    /// The median as a distance from 100 in spreads; of the drifting population, over all 30 samples.
    fn median(self) -> f64 {
        match self {
            Self::Normal | Self::LogNormal | Self::T3 | Self::Coarse | Self::Drifting => 0.0,
            // Φ⁻¹(0.5 / 0.7) / 2; less than 1e-9 of the upper mode lies below.
            Self::Uneven => 0.565_948_821_932_862_8 / 2.0,
            Self::Even => 2.0,
        }
    }

    pub(crate) fn true_median(self, spread: f64) -> f64 {
        100.0 * (1.0 + spread * self.median())
    }

    /// Draws the `index`th of at most `max_samples` samples
    pub(crate) fn draw(self, rng: &mut impl Rng, spread: f64, index: usize, max_samples: usize) -> f64 {
        let z = normal(rng);
        let deviation = match self {
            Self::Normal => z,
            Self::LogNormal => z.exp() - 1.0,
            Self::T3 => z / ((0..3).map(|_| normal(rng).powi(2)).sum::<f64>() / 3.0).sqrt(),
            Self::Coarse => z.round(),
            Self::Uneven => z / 2.0 + if rng.random_bool(0.3) { 4.0 } else { 0.0 },
            Self::Even => z / 2.0 + if rng.random_bool(0.5) { 4.0 } else { 0.0 },
            Self::Drifting => z + 4.0 * (index as f64 / (max_samples - 1) as f64 - 0.5),
        };
        100.0 * (1.0 + spread * deviation)
    }
}

/// Draws from the standard normal distribution (Box, Muller 1958).
pub(crate) fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
