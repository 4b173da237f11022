//! Counter-based random numbers: both sides compute the same size for the same message.
//!
//! The receiver of a message of `rand(min,max)` must know where it ends, and which file comes next; so neither comes
//! from a generator with state, but both are computed from counters that both sides have. SplitMix64 is by Steele, Lea
//! and Flood (OOPSLA 2014).

/// Identifies one random number of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomKey {
    pub(crate) seed: u64,
    pub(crate) group: u32,
    pub(crate) strand: u32,
    /// Number of the flowop in its group.
    pub(crate) flowop: u32,
    /// Number of earlier executions of the flowop.
    pub(crate) execution: u64,
}

impl RandomKey {
    /// Returns a uniformly distributed number in `min..=max`; `min` must not exceed `max`.
    pub(crate) fn uniform(self, min: u64, max: u64) -> u64 {
        let span = u128::from(max - min) + 1;
        let position = u64::from(self.strand) << 32 | u64::from(self.flowop);
        let mixed = mix(mix(mix(self.seed ^ u64::from(self.group)) ^ position) ^ self.execution);
        // Multiply and shift: the bias is at most the span divided by 2^64 (Lemire, 2019).
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
    fn strands_of_different_groups_draw_different_numbers() {
        let draw = |group| {
            let key = |execution| RandomKey { seed: 7, group, strand: 0, flowop: 0, execution };
            (0..20).map(|execution| key(execution).uniform(1, 1 << 20)).collect::<Vec<_>>()
        };
        assert_ne!(draw(0), draw(1));
    }

    #[test]
    fn all_numbers_of_the_range_are_equally_frequent() {
        let mut seen = [0_u32; 8];
        for execution in 0..8000 {
            let key = RandomKey { seed: 7, group: 0, strand: 3, flowop: 1, execution };
            seen[key.uniform(1, 8) as usize - 1] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }
}
