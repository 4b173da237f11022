use super::raw::WorkLimits;
use super::template::{Bindings, Template};

/// A probe does the work divided by this number.
pub(super) const PROBE_DIVISOR: u64 = 16;

/// The amounts of work of a cell: multiples of a step, between two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkRange {
    pub(super) start: u64,
    pub(super) max: u64,
    pub(super) step: u64,
}

impl WorkRange {
    /// The step is the product of the factors, each rounded up to a whole number.
    pub(super) fn new(limits: WorkLimits, factors: &[Template], bindings: &Bindings<'_>) -> Result<Self, String> {
        let mut step = 1u64;
        for factor in factors {
            let text = factor.text(bindings)?;
            let value: f64 = text.parse().map_err(|_| format!("invalid factor `{text}` of work: expected a number"))?;
            // A float is converted to the nearest integer in range.
            step = step.saturating_mul((value.ceil() as u64).max(1));
        }
        let max = (limits.max / step).max(1).saturating_mul(step);
        let range = Self { start: 0, max, step };
        Ok(Self { start: range.round_up(limits.start), ..range })
    }

    /// The smallest amount of the range that is not less than `work`.
    pub(super) fn round_up(&self, work: u64) -> u64 {
        work.max(1).div_ceil(self.step).saturating_mul(self.step).min(self.max)
    }

    /// The amount that a probe of `work` does; `None` if the range has no smaller one.
    pub(super) fn probe(&self, work: u64) -> Option<u64> {
        Some(self.round_up(work.div_ceil(PROBE_DIVISOR))).filter(|probe| *probe < work)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use wb_model::{ParamKind, ParamValue, Params};

    use super::super::template::{ArgumentShape, Phase, TemplateScope};
    use super::*;

    fn range(start: u64, max: u64, threads: i64, block_size: &str) -> WorkRange {
        let shapes = BTreeMap::from([
            ("threads".to_owned(), ArgumentShape::One(ParamKind::Text)),
            ("block-size".to_owned(), ArgumentShape::One(ParamKind::Bytes { min: None })),
        ]);
        let scope = TemplateScope { argument_shapes: &shapes, phase: Phase::Plan, has_folder: false };
        let factors =
            ["{threads}", "{block-size:MiB}"].map(|text| Template::parse(text, &scope, &mut BTreeSet::new()).unwrap());
        let params = Params::from([
            ("threads".to_owned(), ParamValue::Integer(threads)),
            ("block-size".to_owned(), ParamValue::Text(block_size.to_owned())),
        ]);
        let bindings = Bindings { params: &params, builtins: BTreeMap::new() };
        WorkRange::new(WorkLimits { start, max }, &factors, &bindings).unwrap()
    }

    #[test]
    fn every_amount_is_a_multiple_of_the_step() {
        let small = range(64, 1000, 3, "4k");
        assert_eq!((small.start, small.max), (66, 999));
        assert_eq!([0, 1, 4281, 999, 500].map(|work| small.round_up(work)), [3, 3, 999, 999, 501]);
        let large = range(1, 1000, 2, "16m");
        assert_eq!((large.start, large.max, large.round_up(33)), (32, 992, 64));
        // The step exceeds the maximum: at least one step is needed.
        assert_eq!(range(1, 10, 64, "1g").max, 65536);
    }

    #[test]
    fn a_probe_is_smaller_than_its_work() {
        let range = range(1, 1000, 2, "1m");
        assert_eq!([2, 4, 32, 320].map(|work| range.probe(work)), [None, Some(2), Some(2), Some(20)]);
    }
}
