use std::collections::BTreeMap;

use wb_model::imported::{ImportRejection, ImportedRow};

use crate::Measurement;
use crate::evaluate::check_metric;

/// The values of an imported sample, with the gates that every sample has to pass.
pub fn measure_imported(row: &ImportedRow<'_>, provenance: &BTreeMap<String, String>) -> Measurement {
    let mut measurement = Measurement {
        intervals: row.seconds,
        findings: row.findings.iter().map(|finding| (*finding).to_owned()).collect(),
        provenance: provenance.clone(),
        ..Measurement::default()
    };
    for (metric, value) in &row.values {
        measurement.set(metric.class, &metric.name, *value);
    }
    // Decided at the import where only the whole file shows what is impossible (a rate above its baselines).
    if let Some(ImportRejection { gate, figures }) = row.rejection {
        measurement.reject(*gate, figures.clone());
    }
    row.values.iter().for_each(|(metric, _)| check_metric(&mut measurement, metric));
    measurement
}
