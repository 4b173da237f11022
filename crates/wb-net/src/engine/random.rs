//! Counter-based random numbers: both sides compute the same size for the same message.
//!
//! Whoever receives a message of `rand(min,max)` must know where it ends, and which file comes next; so neither is
//! drawn from a generator with state, but computed from what both count. SplitMix64 is by Steele, Lea and Flood
//! (OOPSLA 2014).

/// Which of a run's many random numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomKey {
    /// The run's.
    pub(crate) seed: u64,
    /// Of the strand in its group.
    pub(crate) strand: u32,
    /// Of the flowop in its profile.
    pub(crate) flowop: u32,
    /// How often that flowop was executed before.
    pub(crate) execution: u64,
}

impl RandomKey {
    /// Uniform over `min..=max`; `min` must not be above `max`.
    pub(crate) fn uniform(self, min: u64, max: u64) -> u64 {
        let span = u128::from(max - min) + 1;
        let mixed = mix(mix(self.seed ^ (u64::from(self.strand) << 32 | u64::from(self.flowop))) ^ self.execution);
        // Multiply and shift: even to one part in 2^64 divided by the span (Lemire, 2019).
        min + ((u128::from(mixed) * span) >> 64) as u64
    }
}

fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_a_range_comes_and_none_else() {
        let mut seen = [0_u32; 8];
        for execution in 0..8000 {
            let question = RandomKey { seed: 7, strand: 3, flowop: 1, execution };
            seen[question.uniform(1, 8) as usize - 1] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }
}
