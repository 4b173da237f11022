//! Gates that apply to every sample of every test.

use wb_model::outcome::Gate;
use wb_model::{Class, Metric, Unit, Validity};

use crate::{Artefacts, Measurement, TestCell};

/// Largest plausible magnitude of a value in any unit; its square is still a finite number.
const MAX_MAGNITUDE: f64 = 1e100;

/// Extracts a sample's values and applies the gates of every test: each declared value has to exist, to be finite, and
/// to be possible at all. `metrics` are those of the cell, whose primary ones may differ from the test's declaration.
pub fn evaluate(cell: &dyn TestCell, metrics: &[Metric], artefacts: &Artefacts) -> Measurement {
    let mut measurement = match cell.study(artefacts) {
        Ok(measurement) => measurement,
        Err(rejection) => {
            let validity = Validity::Invalid { gate: rejection.gate, figures: rejection.figures };
            return Measurement { validity, ..Measurement::default() };
        }
    };
    metrics.iter().for_each(|metric| check_metric(&mut measurement, metric));
    measurement
}

/// Whether [`check_metric`] accepts the value.
pub fn is_plausible(metric: &Metric, value: f64) -> bool {
    let is_signed = metric.class == Class::Check;
    value.is_finite()
        && value.abs() <= MAX_MAGNITUDE
        && (value >= 0.0 || is_signed)
        && (value != 0.0 || !metric.primary || is_signed)
}

fn suffix(unit: &Unit) -> String {
    let unit = unit.to_string();
    if unit.is_empty() { unit } else { format!(" {unit}") }
}

pub fn check_metric(measurement: &mut Measurement, metric: &Metric) {
    let name = &metric.name;
    match measurement.get(metric) {
        None if metric.primary => measurement.reject(Gate::Output, format!("no value for {name}")),
        None => {}
        Some(value) if !value.is_finite() => {
            measurement.values.remove(&metric.key());
            measurement.reject(Gate::Output, format!("{name} is {value}"));
        }
        Some(value) if value.abs() > MAX_MAGNITUDE => {
            measurement.reject(Gate::Plausibility, format!("{name} is {value:e}{}", suffix(&metric.unit)));
        }
        Some(value) if value < 0.0 && metric.class != Class::Check => {
            measurement.reject(Gate::Plausibility, format!("{name} is {value}{}", suffix(&metric.unit)));
        }
        Some(0.0) if metric.primary && metric.class != Class::Check => {
            measurement.reject(Gate::Work, format!("{name} is 0{}", suffix(&metric.unit)));
        }
        Some(_) => {}
    }
}
