//! Values that several sources have in common: a copy of a run, or a run beside a result that it was merged into.

use wb_results::contention::{Point, Series, TuneAnswer};

use super::{Candidate, MergeError};

/// Refuses a source whose values another one has as well: measured values are never all the same in two runs, whatever
/// was computed from them since.
pub(super) fn refuse(candidates: &[&Candidate]) -> Result<(), MergeError> {
    let values: Vec<Vec<Value>> = candidates.iter().map(|candidate| values(&candidate.answer)).collect();
    for (part, own) in values.iter().enumerate() {
        let has_all =
            |whole: usize| part != whole && own.iter().all(|value| values[whole].binary_search(value).is_ok());
        let Some(whole) = (0..values.len()).find(|whole| has_all(*whole)) else { continue };
        let name = |index: usize| candidates[index].source.name.clone();
        return Err(if own.len() == values[whole].len() {
            MergeError::Copy { first: name(whole.min(part)), second: name(whole.max(part)) }
        } else {
            MergeError::Part { whole: name(whole), part: name(part) }
        });
    }
    Ok(())
}

/// A value, to the bit.
type Value = (Series, u64, u64);

/// All values of a result, sorted.
fn values(answer: &TuneAnswer) -> Vec<Value> {
    let of = |series: &Series, Point { x, y }: &Point| (*series, x.to_bits(), y.to_bits());
    let all = answer
        .series
        .iter()
        .flat_map(|(series, fitted)| fitted.points.iter().chain(&fitted.rejected).map(move |point| of(series, point)));
    let mut values: Vec<Value> = all.collect();
    values.sort_unstable();
    values
}
