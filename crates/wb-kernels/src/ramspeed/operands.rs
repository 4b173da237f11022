//! The contents of the operands: integers that count up and start again, each operand with its own period.

/// Periods of the operands. Small, so that sums stay exact; prime, so that a word from another position is detected.
const PERIODS: [usize; 2] = [4093, 4091];

/// Consecutive words along which both operands count up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperandRun {
    /// Position of the first word.
    pub(super) at: usize,
    pub(super) words: usize,
    /// The values of both operands at the first word.
    pub(super) operands: [u64; 2],
}

/// The runs that make up `words` words of the arrays from word `first` on; positions are relative to `first`.
pub(super) fn runs(first: usize, words: usize) -> impl Iterator<Item = OperandRun> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let phases = PERIODS.map(|period| (first + at) % period);
        let length = (PERIODS[0] - phases[0]).min(PERIODS[1] - phases[1]).min(words - at);
        let run = OperandRun { at, words: length, operands: phases.map(|phase| phase as u64 + 1) };
        at += length;
        (length > 0).then_some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_number_wherever_the_share_starts() {
        for (first, words) in [(0, 0), (0, 10_000), (4090, 5), (12_345_672, 8200)] {
            let mut expected = 0;
            for run in runs(first, words) {
                assert_eq!(run.at, expected);
                for k in 0..run.words {
                    let here = first + run.at + k;
                    let numbers = run.operands.map(|operand| operand as usize + k);
                    assert_eq!(numbers, PERIODS.map(|period| here % period + 1));
                }
                expected += run.words;
            }
            assert_eq!(expected, words);
        }
    }
}
