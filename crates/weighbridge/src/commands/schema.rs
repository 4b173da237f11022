//! `weighbridge schema`: the JSON Schemas of files and outputs, made from the types.

use schemars::{Schema, schema_for};

use super::{print_json, print_text};
use crate::error::Error;
use crate::exit::Exit;

/// A file or output by its name, and what makes its schema.
type Named = (&'static str, fn() -> Schema);

/// Every file and output.
const ALL: [Named; 24] = [
    ("run", || schema_for!(wb_record::RunFile)),
    ("definition", || schema_for!(wb_record::Definitions)),
    ("definition-files", || schema_for!(wb_record::definition_files::DefinitionFiles)),
    ("journal-line", || schema_for!(wb_record::Line)),
    ("result", || schema_for!(wb_study::run::SerialResult)),
    ("study", || schema_for!(wb_study::Study)),
    ("plan", || schema_for!(super::plan::Planned)),
    ("declaration", || schema_for!(wb_model::Declaration)),
    ("environment", || schema_for!(wb_sys::environment::Environment)),
    ("telemetry", || schema_for!(wb_sys::telemetry::Telemetry)),
    ("doctor", || schema_for!(wb_knobs::Diagnosis)),
    ("ab", || schema_for!(wb_compare::Variants)),
    ("calibration", || schema_for!(wb_compare::Calibrated)),
    ("held", || schema_for!(wb_compare::variants::Held)),
    ("bisection", || schema_for!(super::bisect::Bisection)),
    ("tuned", || schema_for!(Vec<wb_knobs::tune::Tuned>)),
    ("tune-status", || schema_for!(super::tune::Status)),
    ("tune-reverted", || schema_for!(Vec<super::tune::Reverted>)),
    ("profile", || schema_for!(wb_profile::Profile)),
    ("profile-state", || schema_for!(Vec<wb_profile::Standing>)),
    ("comparison", || schema_for!(wb_compare::Outcome)),
    ("imported", || schema_for!(wb_model::imported::ImportedSample)),
    ("noise-model", || schema_for!(wb_compare::NoiseModel)),
    ("net-result", || schema_for!(wb_net::result::RunResult)),
];

/// The names.
pub(crate) fn schemas() -> [&'static str; 24] {
    ALL.map(|(name, _)| name)
}

/// Prints one, or the names. That a name is one of them is seen to where arguments are read.
pub(crate) fn schema(name: Option<&str>) -> Result<Exit, Error> {
    match ALL.iter().find(|(known, _)| Some(*known) == name) {
        Some((_, schema)) => print_json(&schema())?,
        None => print_text(&format!("{}\n", schemas().join("\n")))?,
    }
    Ok(Exit::Fine)
}
