//! `weighbridge schema`: prints the JSON Schemas of files and outputs, generated from the types.

use clap::ValueEnum;
use schemars::{Schema, schema_for};

use crate::cli::schema::SchemaName;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{json_text, print_json, print_text};

/// Prints a schema, or the names of all schemas.
pub(crate) fn print_schema(name: Option<SchemaName>) -> Result<Exit, Error> {
    match name {
        Some(name) => print_json(&generate(name))?,
        None => names().try_for_each(|(_, name)| print_text(&format!("{name}\n")))?,
    }
    Ok(Exit::Success)
}

/// The names and texts of all schemas.
pub(crate) fn all_schemas() -> Result<Vec<(String, String)>, Error> {
    names().map(|(schema, name)| Ok((name, json_text(&generate(schema))?))).collect()
}

/// All schemas with their names.
fn names() -> impl Iterator<Item = (SchemaName, String)> {
    let name = |schema: &SchemaName| Some((*schema, schema.to_possible_value()?.get_name().to_owned()));
    SchemaName::value_variants().iter().filter_map(name)
}

/// Generates the schema of a file or an output from its type.
fn generate(name: SchemaName) -> Schema {
    match name {
        SchemaName::Run => schema_for!(wb_record::RunFile),
        SchemaName::Definition => schema_for!(wb_record::Definitions),
        SchemaName::DefinitionFiles => schema_for!(wb_record::definition_files::DefinitionFiles),
        SchemaName::JournalLine => schema_for!(wb_record::JournalLine),
        SchemaName::Result => schema_for!(wb_study::run::SerialResult),
        SchemaName::RunInputs => schema_for!(wb_record::RunInputs),
        SchemaName::ArchiveManifest => schema_for!(wb_archive::ArchiveManifest),
        SchemaName::Study => schema_for!(wb_study::Study),
        SchemaName::Plan => schema_for!(super::plan::PlanPreview),
        SchemaName::Declaration => schema_for!(wb_model::Declaration),
        SchemaName::BenchDeclaration => schema_for!(wb_contention::spec::BenchDeclaration),
        SchemaName::Environment => schema_for!(wb_sys::environment::Environment),
        SchemaName::Telemetry => schema_for!(wb_sys::telemetry::Telemetry),
        SchemaName::Doctor => schema_for!(wb_knobs::Diagnosis),
        SchemaName::AbResult => schema_for!(wb_compare::VariantExperiment),
        SchemaName::CalibrateResult => schema_for!(wb_compare::CalibrationExperiment),
        SchemaName::Experiment => schema_for!(wb_compare::experiment::Experiment),
        SchemaName::Bisection => schema_for!(wb_session::bisect::BisectionReport),
        SchemaName::TuneResult => schema_for!(Vec<wb_knobs::tune::KnobResult>),
        SchemaName::TuneStatus => schema_for!(super::tune::TuneStatus),
        SchemaName::TuneRevertResult => schema_for!(Vec<super::tune::RevertedChange>),
        SchemaName::Profile => schema_for!(wb_profile::Profile),
        SchemaName::ProfileState => schema_for!(Vec<wb_profile::AppliedProfile>),
        SchemaName::Comparison => schema_for!(wb_compare::ComparisonResult),
        SchemaName::ImportedSample => schema_for!(wb_model::imported::ImportedSample),
        SchemaName::NoiseModel => schema_for!(wb_compare::NoiseModel),
        SchemaName::NetResult => schema_for!(wb_net::result::RunResult),
        SchemaName::NetResults => schema_for!(Vec<wb_net::result::RunResult>),
        SchemaName::HashdParams => schema_for!(wb_hashd::HashdParams),
        SchemaName::HashdConfig => schema_for!(wb_hashd::HashdConfig),
        SchemaName::HashdReport => schema_for!(wb_hashd::HashdReport),
        SchemaName::HashdSizing => schema_for!(wb_hashd::sizing::SizingRequest),
        SchemaName::HashdSizingLine => schema_for!(wb_hashd::sizing::SizingLine),
        SchemaName::NetSweep => schema_for!(wb_net::sweep::Sweep),
        SchemaName::BenchResult => schema_for!(wb_contention::BenchResult),
        SchemaName::SequenceEvent => schema_for!(wb_contention::record::SequenceEvent),
        SchemaName::SequencePlan => schema_for!(Vec<wb_contention::sequence::PlannedJob>),
        SchemaName::PeersList => schema_for!(super::peers::MatrixListing),
    }
}
