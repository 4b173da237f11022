//! What was held against what, kept in the run folder: `experiment.json`, written anew whenever it is told.

use wb_compare::experiment::Experiment;
use wb_record::{RecordError, RunFolder, files};

const FILE: &str = "experiment.json";

/// Keeps it.
pub(super) fn write_experiment(run: &RunFolder, held: &Experiment) -> Result<(), RecordError> {
    files::write_json(&run.path().join(FILE), held)
}

/// Reads it, in a run that has some.
pub(crate) fn read_experiment(run: &RunFolder) -> Result<Option<Experiment>, RecordError> {
    files::read_json(&run.path().join(FILE))
}
