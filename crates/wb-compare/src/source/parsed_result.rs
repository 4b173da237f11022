//! A parsed result file, before it is merged into the builds.

use std::collections::BTreeMap;
use std::ops::Range;

use wb_model::{Class, Direction};
use wb_results::comparison::{AttemptCounts, IdFormat, SampleCounts};

use super::warning::WarningKind;
use crate::build::MeasuredValue;
use crate::interner::{Interner, Set, Symbol};
use crate::schedule::SampleTime;

/// The content of a result file, with its own interned names.
#[derive(Debug, Default)]
pub(crate) struct ParsedResult {
    pub(crate) id_format: IdFormat,
    pub(crate) names: Interner,
    pub(crate) metrics: Vec<ParsedMetric>,
    pub(crate) samples: Vec<f64>,
    /// Empty unless requested.
    pub(crate) times: Vec<Option<SampleTime>>,
    /// Each sorted by name.
    pub(crate) params: Set<Box<[(Symbol, Symbol)]>>,
    /// The programs of a case: name and value of each property.
    pub(crate) programs: Vec<(Symbol, Vec<(Symbol, Symbol)>)>,
    pub(crate) warnings: Vec<WarningKind>,
    pub(crate) directions: Vec<(Class, Symbol, Direction)>,
    /// By case: the reason why it has no value, if recorded.
    pub(crate) errors: Vec<(Symbol, String)>,
    /// `None` if the file does not record disturbances.
    pub(crate) sample_counts: Option<SampleCounts>,
    pub(crate) imported: Vec<ImportedCell>,
}

#[derive(Debug)]
pub(crate) struct ImportedCell {
    pub(crate) case: Symbol,
    pub(crate) format: Symbol,
    /// The version of the import; `None` if the cell's definition cannot be read.
    pub(crate) version: Option<u32>,
    /// An index into [`ParsedResult::params`].
    pub(crate) params: usize,
}

#[derive(Debug)]
pub(crate) struct ParsedMetric {
    pub(crate) case: Symbol,
    pub(crate) class: Class,
    pub(crate) metric: Symbol,
    pub(crate) unit: Option<Symbol>,
    pub(crate) mean: MeasuredValue,
    pub(crate) stddev_percent: MeasuredValue,
    pub(crate) primary: bool,
    /// The smallest relevant difference in percent, if the plan has one.
    pub(crate) threshold: Option<f64>,
    /// An index into [`ParsedResult::params`].
    pub(crate) params: usize,
    pub(crate) disturbed: u32,
    /// Of its cell.
    pub(crate) failures: AttemptCounts,
    /// The findings of its cell, a line each, if it is primary and there are any.
    pub(crate) findings: Option<Symbol>,
    /// A range of [`ParsedResult::samples`].
    pub(crate) samples: Range<usize>,
}

impl ParsedResult {
    /// Of equal names the last one applies.
    pub(crate) fn intern_params(&mut self, mut params: Vec<(Symbol, Symbol)>) -> usize {
        params.sort_by(|(one, _), (other, _)| self.names.resolve(*one).cmp(self.names.resolve(*other)));
        params.dedup_by(|(name, value), (previous, previous_value)| {
            let is_duplicate = name == previous;
            if is_duplicate {
                *previous_value = *value;
            }
            is_duplicate
        });
        self.params.insert_full(params.into()).0
    }

    pub(crate) fn rename_cases(&mut self, renamed: &BTreeMap<Symbol, String>) {
        let names: BTreeMap<Symbol, Symbol> =
            renamed.iter().map(|(case, name)| (*case, self.names.intern(name))).collect();
        let metrics = self.metrics.iter_mut().map(|metric| &mut metric.case);
        let programs = self.programs.iter_mut().map(|(case, _)| case);
        let errors = self.errors.iter_mut().map(|(case, _)| case);
        let imported = self.imported.iter_mut().map(|cell| &mut cell.case);
        for case in metrics.chain(programs).chain(errors).chain(imported) {
            *case = names.get(case).copied().unwrap_or(*case);
        }
    }

    pub(crate) fn set_param(&mut self, case: Symbol, name: &str, value: &str) {
        let param = (self.names.intern(name), self.names.intern(value));
        for index in 0..self.metrics.len() {
            if self.metrics[index].case == case {
                let mut params = self.params[self.metrics[index].params].to_vec();
                params.push(param);
                self.metrics[index].params = self.intern_params(params);
            }
        }
    }
}
