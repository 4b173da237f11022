//! What the samples of a cell show in one of its primary metrics.

use wb_model::Metric;
use wb_stats::{Dependence, Samples, dependence};

use crate::findings::{changed_values, distribution};
use crate::value_range::ValueRange;

pub(crate) struct PrimaryValues<'a> {
    metric: &'a Metric,
    /// Over all valid samples.
    range: Option<ValueRange>,
    /// Of the samples that count, in time order.
    values: Vec<f64>,
    /// `None` if the values are too few.
    dependence: Option<Dependence>,
}

impl<'a> PrimaryValues<'a> {
    pub(crate) fn new(metric: &'a Metric, range: Option<ValueRange>, values: Vec<f64>) -> Self {
        let dependence = Samples::new(&values).ok().and_then(|samples| dependence(&samples));
        Self { metric, range, values, dependence }
    }

    /// Empty if no sample counts.
    pub(crate) fn findings(&self) -> Vec<String> {
        let range = self.range.as_ref().filter(|_| !self.values.is_empty());
        let change = range.and_then(changed_values);
        change.into_iter().chain(distribution(self.metric, &self.values, self.dependence.as_ref())).collect()
    }
}

/// The dependence of the metric that shows it most clearly.
pub(crate) fn clearest_dependence(primary: &[PrimaryValues<'_>]) -> Option<Dependence> {
    primary.iter().filter_map(|values| values.dependence).min_by(|a, b| a.p_value.total_cmp(&b.p_value))
}
