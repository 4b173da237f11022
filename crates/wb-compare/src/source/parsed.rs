//! A file of results as it was read, before it is put among the others.

use std::ops::Range;

use wb_model::{Class, Direction};

use super::warning::Oddity;
use crate::build::{SampleCounts, Value};
use crate::id::Naming;
use crate::names::{Name, Names, Set};

/// What a file says; its names are its own.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// Whose form its identifiers have.
    pub(crate) naming: Naming,
    pub(crate) names: Names,
    pub(crate) metrics: Vec<ParsedMetric>,
    pub(crate) samples: Vec<f64>,
    /// Sets of parameters, each sorted by name.
    pub(crate) params: Set<Box<[(Name, Name)]>>,
    /// The programs that a case was measured with, by case: name and value of each property.
    pub(crate) programs: Vec<(Name, Vec<(Name, Name)>)>,
    pub(crate) odd: Vec<Oddity>,
    /// Which way is better, where the file says so.
    pub(crate) directions: Vec<(Class, Name, Direction)>,
    /// Why cases have no value, where the file records it.
    pub(crate) errors: Vec<(Name, String)>,
    /// Its counted samples; none where it does not record what disturbed them.
    pub(crate) sample_counts: Option<SampleCounts>,
}

/// What a file says of one metric.
#[derive(Debug)]
pub(crate) struct ParsedMetric {
    pub(crate) case: Name,
    pub(crate) class: Class,
    pub(crate) metric: Name,
    /// In which unit its values are, where the file says so.
    pub(crate) unit: Option<Name>,
    pub(crate) mean: Value,
    pub(crate) stddev: Value,
    pub(crate) primary: bool,
    /// Which of the file's sets of parameters.
    pub(crate) params: usize,
    /// How many of its samples something disturbed.
    pub(crate) disturbed: u32,
    /// Which of the file's samples.
    pub(crate) samples: Range<usize>,
}

impl Parsed {
    /// Keeps a set of parameters; the last of equal names counts.
    pub(crate) fn keep_params(&mut self, mut params: Vec<(Name, Name)>) -> usize {
        params.sort_by(|(one, _), (other, _)| self.names.text(*one).cmp(self.names.text(*other)));
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
