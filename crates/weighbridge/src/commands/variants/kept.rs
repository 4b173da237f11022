//! What was held against what, kept in the run folder: `held.json`, written anew whenever it is told.

use wb_compare::variants::Held;
use wb_record::{RecordError, RunFolder, files};

const FILE: &str = "held.json";

/// Keeps it.
pub(super) fn keep(run: &RunFolder, held: &Held) -> Result<(), RecordError> {
    files::write_json(&run.path().join(FILE), held)
}

/// Reads it, in a run that has some.
pub(crate) fn held(run: &RunFolder) -> Result<Option<Held>, RecordError> {
    files::read_json(&run.path().join(FILE))
}
