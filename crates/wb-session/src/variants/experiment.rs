//! Reads and writes `experiment.json`, the result of `ab` or `calibrate` in a run folder.

use wb_record::{RecordError, RunFolder, files};
use wb_results::experiment::Experiment;

const FILE: &str = "experiment.json";

/// Writes the result, replacing an earlier one.
pub(super) fn write_experiment(run: &RunFolder, experiment: &Experiment) -> Result<(), RecordError> {
    files::write_json(&run.path().join(FILE), experiment)
}

/// Reads the result; `None` if the run has none.
pub fn read_experiment(run: &RunFolder) -> Result<Option<Experiment>, RecordError> {
    run.read_json(&run.path().join(FILE))
}
