//! A file of results as it was read, before it is put among the others.

use std::ops::Range;

use wb_model::{Class, Direction};

use super::warning::WarningKind;
use crate::build::{MeasuredValue, SampleCounts};
use crate::id::IdFormat;
use crate::interner::{Interner, Set, Symbol};

/// What a file says; its names are its own.
#[derive(Debug, Default)]
pub(crate) struct ParsedResult {
    /// Whose form its identifiers have.
    pub(crate) naming: IdFormat,
    pub(crate) names: Interner,
    pub(crate) metrics: Vec<ParsedMetric>,
    pub(crate) samples: Vec<f64>,
    /// Sets of parameters, each sorted by name.
    pub(crate) params: Set<Box<[(Symbol, Symbol)]>>,
    /// The programs that a case was measured with, by case: name and value of each property.
    pub(crate) programs: Vec<(Symbol, Vec<(Symbol, Symbol)>)>,
    pub(crate) warnings: Vec<WarningKind>,
    /// Which way is better, where the file says so.
    pub(crate) directions: Vec<(Class, Symbol, Direction)>,
    /// Why cases have no value, where the file records it.
    pub(crate) errors: Vec<(Symbol, String)>,
    /// Its counted samples; none where it does not record what disturbed them.
    pub(crate) sample_counts: Option<SampleCounts>,
}

/// What a file says of one metric.
#[derive(Debug)]
pub(crate) struct ParsedMetric {
    pub(crate) case: Symbol,
    pub(crate) class: Class,
    pub(crate) metric: Symbol,
    /// In which unit its values are, where the file says so.
    pub(crate) unit: Option<Symbol>,
    pub(crate) mean: MeasuredValue,
    pub(crate) stddev: MeasuredValue,
    pub(crate) primary: bool,
    /// Which of the file's sets of parameters.
    pub(crate) params: usize,
    /// How many of its samples something disturbed.
    pub(crate) disturbed: u32,
    /// Which of the file's samples.
    pub(crate) samples: Range<usize>,
}

impl ParsedResult {
    /// Keeps a set of parameters; the last of equal names counts.
    pub(crate) fn intern_params(&mut self, mut params: Vec<(Symbol, Symbol)>) -> usize {
        params.sort_by(|(one, _), (other, _)| self.names.resolve(*one).cmp(self.names.resolve(*other)));
        params.dedup_by(|(name, value), (before, kept)| {
            let again = name == before;
            if again {
                *kept = *value;
            }
            again
        });
        self.params.insert_full(params.into()).0
    }
}
