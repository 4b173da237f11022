//! `weighbridge schema`: prints the JSON Schemas of files and outputs, generated from the types.

use schemars::{Schema, schema_for};

use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

/// Name of a file or output, and the function that generates its schema.
type SchemaEntry = (&'static str, fn() -> Schema);

/// All files and outputs with a schema.
const SCHEMAS: [SchemaEntry; 24] = [
    ("run", || schema_for!(wb_record::RunFile)),
    ("definition", || schema_for!(wb_record::Definitions)),
    ("definition-files", || schema_for!(wb_record::definition_files::DefinitionFiles)),
    ("journal-line", || schema_for!(wb_record::JournalLine)),
    ("result", || schema_for!(wb_study::run::SerialResult)),
    ("study", || schema_for!(wb_study::Study)),
    ("plan", || schema_for!(super::plan::PlanPreview)),
    ("declaration", || schema_for!(wb_model::Declaration)),
    ("environment", || schema_for!(wb_sys::environment::Environment)),
    ("telemetry", || schema_for!(wb_sys::telemetry::Telemetry)),
    ("doctor", || schema_for!(wb_knobs::Diagnosis)),
    ("ab-result", || schema_for!(wb_compare::VariantExperiment)),
    ("calibrate-result", || schema_for!(wb_compare::CalibrationExperiment)),
    ("experiment", || schema_for!(wb_compare::experiment::Experiment)),
    ("bisection", || schema_for!(wb_session::bisect::BisectionReport)),
    ("tune-result", || schema_for!(Vec<wb_knobs::tune::KnobResult>)),
    ("tune-status", || schema_for!(super::tune::TuneStatus)),
    ("tune-revert-result", || schema_for!(Vec<super::tune::RevertedChange>)),
    ("profile", || schema_for!(wb_profile::Profile)),
    ("profile-state", || schema_for!(Vec<wb_profile::AppliedProfile>)),
    ("comparison", || schema_for!(wb_compare::ComparisonResult)),
    ("imported-sample", || schema_for!(wb_model::imported::ImportedSample)),
    ("noise-model", || schema_for!(wb_compare::NoiseModel)),
    ("net-result", || schema_for!(wb_net::result::RunResult)),
];

/// The names of all schemas.
pub(crate) fn schema_names() -> [&'static str; 24] {
    SCHEMAS.map(|(name, _)| name)
}

/// Prints a schema, or the names of all schemas. The argument parser has validated the name.
pub(crate) fn print_schema(name: Option<&str>) -> Result<Exit, Error> {
    match SCHEMAS.iter().find(|(schema_name, _)| Some(*schema_name) == name) {
        Some((_, schema)) => print_json(&schema())?,
        None => print_text(&format!("{}\n", schema_names().join("\n")))?,
    }
    Ok(Exit::Success)
}
