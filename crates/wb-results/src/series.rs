//! Samples of an imported file, as columns.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{AttemptOutcome, AttemptPurpose, MetricKey, Validity};

use crate::AttemptResult;

/// Samples of one imported file, as columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleSeries {
    /// The number of the first sample in the cell; the others follow.
    pub first_sample: u32,
    /// The number of samples.
    pub count: u32,
    /// Elapsed time in seconds from the start of the run's first invocation to the import.
    pub start_seconds: f64,
    /// The durations of the samples in seconds, of their measured parts alone; empty if none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured_seconds: Vec<Option<f64>>,
    /// Whether its samples are in the cell's result, apart from the excluded ones.
    pub counted: bool,
    /// The samples that failed or are invalid, by ascending position from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<ExcludedSample>,
    /// The values of each metric, by `CLASS/METRIC`; null where a sample has none, and absent at the end.
    pub values: BTreeMap<MetricKey, Vec<Option<f64>>>,
    /// The folder of the copy of the file, relative to the run folder.
    pub folder: String,
}

/// A sample of a series that is not in the cell's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExcludedSample {
    /// Its position in the series, from 0.
    pub position: u32,
    /// How it ended: completed, failed, …
    pub outcome: AttemptOutcome,
    /// Whether its values passed the plausibility checks; absent if it did not complete.
    pub validity: Option<Validity>,
}

impl SampleSeries {
    /// The exclusion of a sample, if it is excluded.
    pub fn excluded(&self, position: u32) -> Option<&ExcludedSample> {
        let found = self.excluded.binary_search_by_key(&position, |excluded| excluded.position);
        found.ok().map(|index| &self.excluded[index])
    }

    /// A sample as an attempt; `None` if there are fewer.
    pub fn sample(&self, position: u32) -> Option<AttemptResult> {
        if position >= self.count {
            return None;
        }
        let index = position as usize;
        let excluded = self.excluded(position);
        let seconds = self.measured_seconds.get(index).copied().flatten().unwrap_or(0.0);
        let values = self.values.iter();
        Some(AttemptResult {
            sample: self.first_sample.saturating_add(position),
            attempt: 0,
            purpose: AttemptPurpose::Sample,
            start_seconds: self.start_seconds,
            seconds,
            measured_seconds: if self.has_failed(position) { 0.0 } else { seconds },
            outcome: excluded.map_or(AttemptOutcome::Completed, |excluded| excluded.outcome.clone()),
            validity: excluded.map_or(Some(Validity::Valid), |excluded| excluded.validity.clone()),
            disturbances: Vec::new(),
            counted: self.is_counted(position),
            values: values.filter_map(|(key, values)| Some((key.clone(), (*values.get(index)?)?))).collect(),
            folder: self.folder.clone(),
        })
    }

    /// Whether a sample did not complete.
    pub(crate) fn has_failed(&self, position: u32) -> bool {
        self.excluded(position).is_some_and(|excluded| excluded.validity.is_none())
    }

    /// Whether a sample is in the cell's result.
    pub fn is_counted(&self, position: u32) -> bool {
        self.counted && self.excluded(position).is_none()
    }

    /// The counted values of a metric, each with the number of its sample.
    pub fn counted_values(&self, metric: &MetricKey) -> impl Iterator<Item = (u32, f64)> {
        let values = self.values.get(metric).map_or(&[][..], Vec::as_slice).iter().take(self.count as usize);
        let counted = (0..).zip(values).filter(|(position, _)| self.is_counted(*position));
        counted.filter_map(|(position, value)| Some((self.first_sample + position, (*value)?)))
    }
}
