//! Models fitted to the shared builds equal those fitted by run-perf, to 12 digits.

use crate::support::{shared, unchanged_results};
use wb_compare::run_perf::model::{FitMethod, ModelEntry, fit};
use wb_compare::{ReadOptions, ToleranceModel, read};

fn parameters(entry: &ModelEntry) -> [f64; 5] {
    let spread = entry.range.unwrap();
    [entry.equation.slope, entry.equation.intercept, entry.average.unwrap(), spread.min, spread.max]
}

#[test]
fn models_of_the_first_five_builds_equal_run_perfs() {
    let Some(data) = shared("run-perf") else { return };
    let sources: Vec<_> = crate::support::shared_builds(&data)[..5].to_vec();
    let builds =
        read(&sources, &ReadOptions { strict: true, ..ReadOptions::default() }, &unchanged_results).unwrap().builds;
    for (method, file) in [(FitMethod::Linear, "linear_model.json"), (FitMethod::Stddev, "stddev_model.json")] {
        let expected = ToleranceModel::read(&data.join("1_base").join(file)).unwrap();
        let fitted = fit(method, expected.tolerance.unwrap(), &builds);
        assert_eq!((fitted.version, fitted.tolerance), (expected.version, expected.tolerance));
        assert!(fitted.entries.keys().eq(expected.entries.keys()), "{file}");
        let mut max_error = 0.0_f64;
        for (id, entry) in &expected.entries {
            for (fitted, expected) in parameters(&fitted.entries[id]).into_iter().zip(parameters(entry)) {
                max_error = max_error.max(((fitted - expected) / expected).abs());
            }
        }
        println!("{file}: {} checks, largest relative difference {max_error:.1e}", expected.entries.len());
        assert!(max_error < 0.5e-12, "{file}: {max_error:e}");
        let parsed = ToleranceModel::parse(fitted.to_json().as_bytes()).unwrap();
        assert_eq!(parsed, fitted);
    }
}
