//! Models fitted on the shared builds are those that run-perf fitted, to 12 digits.

use crate::support::{as_written, shared};
use wb_compare::model::{FitMethod, ModelEntry, fit};
use wb_compare::{ReadOptions, ToleranceModel, read};

fn figures(entry: &ModelEntry) -> [f64; 5] {
    let spread = entry.range.unwrap();
    [entry.equation.slope, entry.equation.intercept, entry.average.unwrap(), spread.min, spread.max]
}

#[test]
fn models_of_the_first_five_builds_are_run_perfs() {
    let Some(data) = shared("run-perf") else { return };
    let sources: Vec<_> = crate::support::shared_builds(&data)[..5].to_vec();
    let builds = read(&sources, &ReadOptions { strict: true, ..ReadOptions::default() }, &as_written).unwrap().builds;
    for (how, file) in [(FitMethod::Linear, "linear_model.json"), (FitMethod::Stddev, "stddev_model.json")] {
        let theirs = ToleranceModel::read(&data.join("1_base").join(file)).unwrap();
        let ours = fit(how, theirs.tolerance.unwrap(), &builds);
        assert_eq!((ours.version, ours.tolerance), (theirs.version, theirs.tolerance));
        assert!(ours.entries.keys().eq(theirs.entries.keys()), "{file}");
        let mut worst = 0.0_f64;
        for (id, entry) in &theirs.entries {
            for (ours, theirs) in figures(&ours.entries[id]).into_iter().zip(figures(entry)) {
                worst = worst.max(((ours - theirs) / theirs).abs());
            }
        }
        println!("{file}: {} checks, largest relative difference {worst:.1e}", theirs.entries.len());
        assert!(worst < 0.5e-12, "{file}: {worst:e}");
        let again = ToleranceModel::parse(ours.to_json().as_bytes()).unwrap();
        assert_eq!(again, ours);
    }
}
