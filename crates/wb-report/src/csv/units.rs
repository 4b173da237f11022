//! One unit for each metric.

use std::collections::BTreeMap;

use wb_model::Unit;

/// Converts a figure to another unit, without the last digit, which the division may change: `302.4814155` instead of
/// `302.48141549999997`.
pub(crate) fn scale_figure(value: f64, divisor: f64) -> f64 {
    if divisor == 1.0 { value } else { format!("{:.14e}", value / divisor).parse().unwrap_or(value / divisor) }
}

/// A unit of figures, and how many of a metric's own unit it is.
pub(crate) struct ScaledUnit {
    pub(crate) divisor: f64,
    pub(crate) name: String,
}

/// The unit of each metric: the one in which the terminal shows its largest figure. Metrics of one name in several
/// tests share it, if their units differ at most in the prefix.
pub(crate) struct SharedUnits(BTreeMap<(String, Unit), ScaledUnit>);

impl SharedUnits {
    /// Chooses the units of figures, each with the name of the metric and its own unit.
    pub(crate) fn new(figures: impl Iterator<Item = (String, Unit, f64)>) -> Self {
        // The largest figure in the unit without a prefix, by which metrics in different units can be compared.
        let mut largest: BTreeMap<(String, String), (f64, Unit)> = BTreeMap::new();
        let mut metrics: BTreeMap<(String, Unit), (f64, String)> = BTreeMap::new();
        for (metric, unit, figure) in figures {
            let (divisor, base) = unit.readable(0.0);
            let size = figure.abs() / divisor;
            let entry = largest.entry((metric.clone(), base.clone())).or_insert((size, unit.clone()));
            if size > entry.0 {
                *entry = (size, unit.clone());
            }
            metrics.insert((metric, unit), (divisor, base));
        }
        let scaled = |((metric, unit), (divisor, base)): ((String, Unit), (f64, String))| {
            let (size, of) = &largest[&(metric.clone(), base)];
            let (of_base, _) = of.readable(0.0);
            // Without a figure above zero there is no prefix to choose.
            let (of_readable, name) = if *size > 0.0 { of.readable(size * of_base) } else { (1.0, of.to_string()) };
            let divisor = if unit == *of { of_readable } else { divisor * of_readable / of_base };
            ((metric, unit), ScaledUnit { divisor, name })
        };
        Self(metrics.into_iter().map(scaled).collect())
    }

    /// The unit of a metric whose own unit is `unit`; `None` if it had no figure.
    pub(crate) fn of(&self, metric: &str, unit: &Unit) -> Option<&ScaledUnit> {
        self.0.get(&(metric.to_owned(), unit.clone()))
    }
}
