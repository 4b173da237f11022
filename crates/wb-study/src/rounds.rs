//! Which samples of several cells were taken in the same round.

use std::collections::BTreeSet;

use wb_model::AttemptPurpose;
use wb_results::CellResult;

/// The round of each attempt of each cell, by position; `None` of warm-ups. A round gives one turn to every cell, and
/// lasts until a cell has another one. The numbers of samples do not show it: a failed attempt takes a turn and leaves
/// its number to the next one, and cells that are measured one after the other use the same numbers at other times.
pub(crate) fn rounds(cells: &[&CellResult]) -> Vec<Vec<Option<u32>>> {
    let mut rounds: Vec<Vec<Option<u32>>> = cells.iter().map(|cell| vec![None; cell.attempts.len()]).collect();
    let turns_of = |(cell, result): (usize, &&CellResult)| {
        let attempts = result.attempts.iter().enumerate();
        let samples = attempts.filter(|(_, attempt)| attempt.purpose == AttemptPurpose::Sample);
        samples.map(|(index, attempt)| (attempt.start_seconds, cell, index)).collect::<Vec<_>>()
    };
    let mut turns: Vec<(f64, usize, usize)> = cells.iter().enumerate().flat_map(turns_of).collect();
    turns.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let (mut round, mut had_turn) = (0, BTreeSet::new());
    for (_, cell, index) in turns {
        if !had_turn.insert(cell) {
            round += 1;
            had_turn = BTreeSet::from([cell]);
        }
        rounds[cell][index] = Some(round);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{StartTimes, cell_result};
    use crate::testing::{attempt, definition, precision};

    /// A cell with attempts at these times, warm-ups first.
    fn cell(warm_ups: &[f64], samples: &[f64]) -> CellResult {
        let purposes = [(AttemptPurpose::WarmUp, warm_ups), (AttemptPurpose::Sample, samples)];
        let evaluated = purposes.iter().flat_map(|(purpose, times)| times.iter().map(|_| attempt(*purpose, 0, 1.0)));
        let mut cell = cell_result(&definition(precision()), evaluated.collect(), None, &StartTimes::default());
        for (attempt, time) in cell.attempts.iter_mut().zip(warm_ups.iter().chain(samples)) {
            attempt.start_seconds = *time;
        }
        cell
    }

    /// The rounds of the samples of cells.
    fn rounds_of(cells: &[CellResult]) -> Vec<Vec<u32>> {
        let rounds = rounds(&cells.iter().collect::<Vec<_>>());
        rounds.into_iter().map(|rounds| rounds.into_iter().flatten().collect()).collect()
    }

    #[test]
    fn a_round_has_one_sample_of_every_cell_in_any_order() {
        let cells = [cell(&[0.0], &[1.0, 5.0, 6.0]), cell(&[2.0], &[3.0, 4.0, 7.0])];
        assert_eq!(rounds_of(&cells), [[0, 1, 2], [0, 1, 2]]);
    }

    #[test]
    fn a_cell_that_needs_more_samples_has_later_rounds_for_itself() {
        let cells = [cell(&[], &[1.0, 3.0, 5.0, 6.0]), cell(&[], &[2.0, 4.0])];
        assert_eq!(rounds_of(&cells), [vec![0, 1, 2, 3], vec![0, 1]]);
    }

    #[test]
    fn cells_that_are_measured_one_after_the_other_have_hardly_a_round_in_common() {
        let cells = [cell(&[], &[1.0, 2.0, 3.0]), cell(&[], &[11.0, 12.0, 13.0])];
        assert_eq!(rounds_of(&cells), [[0, 1, 2], [2, 3, 4]]);
    }

    #[test]
    fn rounds_go_on_after_an_interruption_within_one() {
        let cells = [cell(&[], &[1.0, 3.0, 100.0]), cell(&[], &[2.0, 101.0])];
        assert_eq!(rounds_of(&cells), [vec![0, 1, 2], vec![0, 2]]);
    }
}
