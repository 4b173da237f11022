//! Gates that apply to every sample of every test.

use wb_model::outcome::Gate;
use wb_model::{Class, Metric, Params, Validity};

use crate::{Artefacts, Measurement, Test};

/// No quantity of this world is larger in any unit, and the square of no larger one is sure to be a number.
const MAX_MAGNITUDE: f64 = 1e100;

/// Reads a sample's values and puts them to the questions that hold for every test: is every declared
/// value there, is it a number, is it possible at all?
pub fn evaluate(test: &dyn Test, params: &Params, artefacts: &Artefacts) -> Measurement {
    let mut measured = match test.study(params, artefacts) {
        Ok(measured) => measured,
        Err(rejected) => {
            let validity = Validity::Invalid { gate: rejected.gate, figures: rejected.figures };
            return Measurement { validity, ..Measurement::default() };
        }
    };
    test.metrics(params).iter().for_each(|metric| check_metric(&mut measured, metric));
    measured
}

/// Puts one declared value to these questions.
pub(crate) fn check_metric(measured: &mut Measurement, metric: &Metric) {
    let name = &metric.name;
    match measured.get(metric) {
        None if metric.primary => measured.reject(Gate::Output, format!("no value for {name}")),
        None => {}
        Some(value) if !value.is_finite() => {
            measured.values.remove(&format!("{}/{name}", metric.class));
            measured.reject(Gate::Output, format!("{name} is {value}"));
        }
        Some(value) if value.abs() > MAX_MAGNITUDE => {
            measured.reject(Gate::Possible, format!("{name} is {value:e} {}", metric.unit));
        }
        Some(value) if value < 0.0 && metric.class != Class::Check => {
            measured.reject(Gate::Possible, format!("{name} is {value} {}", metric.unit));
        }
        Some(0.0) if metric.primary && metric.class != Class::Check => {
            measured.reject(Gate::Work, format!("{name} is 0 {}", metric.unit));
        }
        Some(_) => {}
    }
}
