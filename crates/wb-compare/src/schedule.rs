//! The times at which a run took its samples, and which samples form pairs.

use std::collections::BTreeMap;

use wb_model::CellId;

use crate::build::{MetricIndex, Run};

/// The order of a run's cells in its plan, and the times of its samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schedule {
    /// `PROFILE/TEST/SERIAL:CASE` of each cell, in the order of the plan.
    pub(crate) planned: Vec<String>,
    pub(crate) rounds: Rounds,
    /// `None` for a sample that was not measured by the run, but imported.
    pub(crate) times: Vec<Option<SampleTime>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleTime {
    /// The round in which its cell had its turn ([`rounds`]).
    pub(crate) turn: u32,
    /// Seconds from the start of the run.
    pub(crate) start: f64,
}

/// The rounds in which cells had their turns: of each attempt at a sample, in the order of time.
pub(crate) type Rounds = BTreeMap<String, Vec<u32>>;

/// The rounds of the attempts at samples, by cell; `invocations` has the cells of each one's attempts in time order.
///
/// A round gives one turn to every cell, and a failed attempt takes one, too. One that was under way when the run was
/// killed is not recorded, so that turns cannot be counted beyond an invocation: each begins with a new round.
pub(crate) fn rounds<'a>(invocations: impl IntoIterator<Item = Vec<&'a CellId>>) -> Rounds {
    let mut rounds = BTreeMap::<&CellId, Vec<u32>>::new();
    let mut first_round = 0;
    for attempts in invocations {
        let mut turns = BTreeMap::<&CellId, u32>::new();
        for cell in attempts {
            let turn = turns.entry(cell).or_default();
            rounds.entry(cell).or_default().push(first_round + *turn);
            *turn += 1;
        }
        first_round += turns.into_values().max().unwrap_or(0);
    }
    rounds.into_iter().map(|(cell, rounds)| (cell.to_string(), rounds)).collect()
}

/// The samples of two sides that were taken in the same rounds, in the order of the rounds. Two samples are of one
/// round if they had the same turn and no other sample of either side was taken between them: cells that were sampled
/// one after the other, or in different blocks of a schedule, have turns without rounds.
pub(crate) fn samples_by_round(sides: [&Run; 2], row: MetricIndex) -> [Vec<f64>; 2] {
    let [reference, judged] = sides.map(|run| timed_samples(run, row));
    let mut starts: Vec<f64> = reference.iter().chain(&judged).map(|(time, _)| time.start).collect();
    starts.sort_unstable_by(f64::total_cmp);
    let is_adjacent = |one: f64, other: f64| {
        let (first, last) = (one.min(other), one.max(other));
        // Workers of one cell are sampled at the same time.
        starts.partition_point(|start| *start < last) <= starts.partition_point(|start| *start <= first)
    };
    let mut pairs = [Vec::new(), Vec::new()];
    for (time, value) in &reference {
        let same = judged.binary_search_by_key(&time.turn, |(other, _)| other.turn);
        let Some((other, other_value)) = same.ok().map(|index| &judged[index]) else { continue };
        if is_adjacent(time.start, other.start) {
            pairs[0].push(*value);
            pairs[1].push(*other_value);
        }
    }
    pairs
}

/// The finite samples of known times, by their turns.
fn timed_samples(run: &Run, row: MetricIndex) -> Vec<(SampleTime, f64)> {
    let samples = run.sample_times(row).iter().zip(run.samples(row));
    let mut timed: Vec<(SampleTime, f64)> =
        samples.filter(|(_, value)| value.is_finite()).filter_map(|(time, value)| Some(((*time)?, *value))).collect();
    timed.sort_by_key(|(time, _)| time.turn);
    timed
}

#[cfg(test)]
mod tests {
    use wb_results::comparison::AttemptCounts;

    use super::*;
    use crate::build::{MeasuredValue, MetricReading, ParamSetId};

    const ROW: MetricIndex = MetricIndex(0);

    /// A run with one metric, whose samples have these turns and times, and their turns as values.
    fn run(times: &[(u32, f64)]) -> Run {
        let reading = MetricReading {
            mean: MeasuredValue::Known(1.0),
            stddev_percent: MeasuredValue::Missing,
            primary: true,
            params: ParamSetId(0),
            disturbed: 0,
            failures: AttemptCounts::default(),
            threshold: None,
            findings: None,
            first_sample: 0,
            samples: times.len() as u32,
        };
        let samples = times.iter().map(|(turn, _)| f64::from(*turn)).collect();
        let times = times.iter().map(|&(turn, start)| Some(SampleTime { turn, start })).collect();
        let schedule = Schedule { times, ..Schedule::default() };
        Run { readings: vec![Some(reading)], samples, schedule, ..Run::default() }
    }

    fn rounds(one: &[(u32, f64)], other: &[(u32, f64)]) -> Vec<f64> {
        let [reference, judged] = samples_by_round([&run(one), &run(other)], ROW);
        assert_eq!(reference, judged, "the values are the turns");
        reference
    }

    #[test]
    fn samples_of_a_round_are_pairs_in_either_order() {
        assert_eq!(rounds(&[(0, 1.0), (1, 4.0), (2, 5.0)], &[(0, 2.0), (1, 3.0), (2, 6.0)]), [0.0, 1.0, 2.0]);
    }

    /// The turn of a cell whose attempt was under way when the run was killed is lost, and must not shift the others.
    #[test]
    fn each_invocation_begins_with_a_new_round() {
        let [a, b, added] =
            ["a", "b", "c"].map(|serial| format!("Localhost/demo/{serial}:-").parse::<CellId>().unwrap());
        let rounds = super::rounds([vec![&a, &b, &b, &a, &a], vec![], vec![&b, &a, &added, &a, &b]]);
        let of = |cell: &CellId| rounds[&cell.to_string()].clone();
        assert_eq!([of(&a), of(&b), of(&added)], [vec![0, 1, 2, 3, 4], vec![0, 1, 3, 4], vec![3]]);
    }

    #[test]
    fn a_sample_that_does_not_count_has_no_pair() {
        assert_eq!(rounds(&[(0, 1.0), (2, 5.0)], &[(0, 2.0), (1, 3.0), (2, 6.0)]), [0.0, 2.0]);
    }

    #[test]
    fn cells_that_were_sampled_one_after_the_other_have_no_rounds() {
        assert_eq!(rounds(&[(0, 1.0), (1, 2.0)], &[(0, 3.0), (1, 4.0)]), [0.0; 0]);
    }

    #[test]
    fn a_cell_that_was_extended_later_has_only_the_rounds_before() {
        let (one, other) = ([(0, 1.0), (1, 4.0), (2, 5.0), (3, 6.0)], [(0, 2.0), (1, 3.0), (2, 90.0), (3, 91.0)]);
        assert_eq!(rounds(&one, &other), [0.0, 1.0]);
    }

    #[test]
    fn workers_of_one_cell_are_sampled_at_the_same_time() {
        let times = [(0, 1.0), (1, 2.0), (2, 3.0)];
        assert_eq!(rounds(&times, &times), [0.0, 1.0, 2.0]);
    }

    #[test]
    fn samples_without_a_time_have_no_rounds() {
        let mut imported = run(&[(0, 1.0), (1, 2.0)]);
        imported.schedule.times = vec![None; 2];
        assert_eq!(samples_by_round([&imported, &imported], ROW), [Vec::<f64>::new(), Vec::new()]);
    }
}
