//! Decides the order in which cells are sampled; sampling itself is done elsewhere.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use wb_plan::SamplingOrder;

/// Result of one turn of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Again,
    Done,
    Stop,
}

/// Takes the samples of a schedule.
pub trait Sampler {
    type Error;

    /// Takes one sample of a cell, and its warm-ups before the first one.
    fn turn(&mut self, cell: usize) -> impl Future<Output = Result<Turn, Self::Error>>;
}

/// A block of the schedule: groups of cells, which have their turns one directly after the other.
pub type Block = Vec<Vec<usize>>;

/// Gives turns to cells until all are done. Blocks run one after the other; within a block each round gives one turn to
/// every unfinished cell. Groups, and cells within a group, are in a random order determined by the seed.
pub async fn schedule<S: Sampler>(
    blocks: &[Block],
    order: SamplingOrder,
    seed: u64,
    sampler: &mut S,
) -> Result<(), S::Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for block in blocks {
        let parts: Vec<Block> = match order {
            SamplingOrder::Interleaved => vec![block.clone()],
            SamplingOrder::Sequential => block.iter().flatten().map(|cell| vec![vec![*cell]]).collect(),
        };
        for mut unfinished in parts {
            while !unfinished.is_empty() {
                unfinished.shuffle(&mut rng);
                let mut remaining = Vec::new();
                for mut group in unfinished {
                    group.shuffle(&mut rng);
                    let mut remaining_cells = Vec::new();
                    for cell in group {
                        match sampler.turn(cell).await? {
                            Turn::Again => remaining_cells.push(cell),
                            Turn::Done => {}
                            Turn::Stop => return Ok(()),
                        }
                    }
                    remaining_cells.sort_unstable();
                    remaining.extend((!remaining_cells.is_empty()).then_some(remaining_cells));
                }
                remaining.sort_unstable();
                unfinished = remaining;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sampler whose cells each need a fixed number of turns.
    struct Counter {
        wants: Vec<usize>,
        turns: Vec<usize>,
        stop_after: usize,
    }

    impl Sampler for Counter {
        type Error = std::convert::Infallible;
        async fn turn(&mut self, cell: usize) -> Result<Turn, Self::Error> {
            self.turns.push(cell);
            self.wants[cell] -= 1;
            Ok(match self.wants[cell] {
                _ if self.turns.len() == self.stop_after => Turn::Stop,
                0 => Turn::Done,
                _ => Turn::Again,
            })
        }
    }

    /// Turns in blocks of cells, each of which is a group.
    fn turns(wants: &[usize], blocks: &[Vec<usize>], order: SamplingOrder, seed: u64) -> Vec<usize> {
        let blocks: Vec<Block> = blocks.iter().map(|cells| cells.iter().map(|cell| vec![*cell]).collect()).collect();
        turns_of_groups(wants, &blocks, order, seed)
    }

    fn turns_of_groups(wants: &[usize], blocks: &[Block], order: SamplingOrder, seed: u64) -> Vec<usize> {
        let mut counter = Counter { wants: wants.to_vec(), turns: Vec::new(), stop_after: usize::MAX };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(schedule(blocks, order, seed, &mut counter)).unwrap();
        counter.turns
    }

    #[test]
    fn every_round_takes_one_sample_of_every_unfinished_cell() {
        let taken = turns(&[3, 1, 2], &[vec![0, 1, 2]], SamplingOrder::Interleaved, 7);
        let sorted = |slice: &[usize]| {
            let mut sorted = slice.to_vec();
            sorted.sort_unstable();
            sorted
        };
        assert_eq!(sorted(&taken[..3]), [0, 1, 2]);
        assert_eq!(sorted(&taken[3..5]), [0, 2]);
        assert_eq!(taken[5..], [0]);
    }

    #[test]
    fn only_the_seed_determines_the_order() {
        let wants = [5; 8];
        let blocks = [(0..8).collect::<Vec<usize>>()];
        let order = |seed| turns(&wants, &blocks, SamplingOrder::Interleaved, seed);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1)[..8], order(1)[8..16]);
    }

    #[test]
    fn cells_of_a_group_have_their_turns_one_after_the_other() {
        let blocks = [vec![vec![0, 1], vec![2, 3], vec![4, 5]]];
        let taken = turns_of_groups(&[4, 4, 2, 4, 4, 4], &blocks, SamplingOrder::Interleaved, 3);
        let (full, rest) = taken.split_at(12);
        let pairs: Vec<[usize; 2]> = full.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
        assert!(pairs.iter().all(|[one, other]| one / 2 == other / 2), "{taken:?}");
        let firsts: std::collections::BTreeSet<usize> = pairs.iter().map(|pair| pair[0]).collect();
        assert!(firsts.len() > 3, "neither the groups nor the cells in them are in one order: {taken:?}");
        assert_eq!(rest.len(), 10);
    }

    #[test]
    fn blocks_and_sequences_end_before_the_next_begins() {
        assert_eq!(turns(&[2, 2, 2], &[vec![0], vec![1], vec![2]], SamplingOrder::Interleaved, 1), [0, 0, 1, 1, 2, 2]);
        assert_eq!(turns(&[2, 2, 2], &[vec![0, 1, 2]], SamplingOrder::Sequential, 1), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn stop_ends_everything() {
        let mut counter = Counter { wants: vec![9, 9], turns: Vec::new(), stop_after: 3 };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(schedule(&[vec![vec![0], vec![1]]], SamplingOrder::Interleaved, 1, &mut counter)).unwrap();
        assert_eq!(counter.turns.len(), 3);
    }
}
