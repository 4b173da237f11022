//! What the unit tests share: folders of artefacts, and what their study came to.

use tempfile::TempDir;
use wb_model::Validity;
use wb_model::outcome::Gate;

use crate::Measurement;

/// A folder with these files, as a sample leaves one.
pub(crate) fn artefact_folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The gate that values did not pass.
pub(crate) fn failed_gate(measured: &Measurement) -> Option<Gate> {
    match &measured.validity {
        Validity::Valid => None,
        Validity::Invalid { gate, .. } => Some(*gate),
    }
}
