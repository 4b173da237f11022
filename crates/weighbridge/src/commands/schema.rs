//! `weighbridge schema`: prints the JSON Schemas of files and outputs.
//!
//! They are those in the folder `schemas`, which the build script packs: generated at run time they would need code for
//! every type. A unit test holds them against the types, and updates them.

use std::collections::BTreeMap;
use std::io::Read;

use clap::ValueEnum;
use flate2::read::ZlibDecoder;

use crate::cli::schema::SchemaName;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

/// A JSON object with the text of each schema by its name, compressed.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.zlib"));

pub(crate) fn print_schema(name: Option<SchemaName>) -> Result<Exit, Error> {
    match name {
        // A unit test finds a file for every name.
        Some(name) => print_text(&all_schemas()?.remove(&file_name(name)).unwrap_or_default())?,
        None => {
            SchemaName::value_variants().iter().try_for_each(|name| print_text(&format!("{}\n", file_name(*name))))?
        }
    }
    Ok(Exit::Success)
}

pub(crate) fn all_schemas() -> Result<BTreeMap<String, String>, Error> {
    let mut text = String::new();
    let read = ZlibDecoder::new(PACKED).read_to_string(&mut text);
    read.map_err(|error| Error::Internal(format!("schemas: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Error::Internal(format!("schemas: {error}")))
}

/// The name of a schema, which is that of its file.
fn file_name(name: SchemaName) -> String {
    // None is skipped, so that each has a value.
    name.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use std::path::Path;

    use schemars::{Schema, schema_for};

    use super::*;
    use crate::commands::{peers, plan, tune};
    use crate::output::json_text;

    /// `UPDATE_SCHEMAS=1 cargo test` updates the schemas.
    #[test]
    fn schemas_match_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
        let packed = all_schemas().unwrap();
        assert_eq!(packed.len(), SchemaName::value_variants().len(), "a file of `schemas` has no type, or the reverse");
        for name in SchemaName::value_variants() {
            let (file, schema) = (file_name(*name), json_text(&generate(*name)).unwrap());
            let path = folder.join(format!("{file}.json"));
            if std::env::var_os("UPDATE_SCHEMAS").is_some() {
                std::fs::write(&path, &schema).unwrap();
            }
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == schema, "schemas/{file}.json is outdated: UPDATE_SCHEMAS=1 cargo test updates it");
        }
    }

    /// Generates the schema of a file or an output from its type.
    fn generate(name: SchemaName) -> Schema {
        match name {
            SchemaName::Run => schema_for!(wb_record::RunFile),
            SchemaName::Definition => schema_for!(wb_record::Definitions),
            SchemaName::DefinitionFiles => schema_for!(wb_record::definition_files::DefinitionFiles),
            SchemaName::JournalLine => schema_for!(wb_record::JournalLine),
            SchemaName::Result => schema_for!(wb_results::SerialResult),
            SchemaName::RunInputs => schema_for!(wb_record::RunInputs),
            SchemaName::ArchiveManifest => schema_for!(wb_archive::ArchiveManifest),
            SchemaName::Study => schema_for!(wb_results::Study),
            SchemaName::Plan => schema_for!(plan::PlanPreview),
            SchemaName::Declaration => schema_for!(wb_model::Declaration),
            SchemaName::BenchDeclaration => schema_for!(wb_contention::spec::BenchDeclaration),
            SchemaName::Environment => schema_for!(wb_sys::environment::Environment),
            SchemaName::Telemetry => schema_for!(wb_sys::telemetry::Telemetry),
            SchemaName::Doctor => schema_for!(wb_knobs::Diagnosis),
            SchemaName::AbResult => schema_for!(wb_results::experiment::VariantExperiment),
            SchemaName::CalibrateResult => schema_for!(wb_results::experiment::CalibrationExperiment),
            SchemaName::Experiment => schema_for!(wb_results::experiment::Experiment),
            SchemaName::Bisection => schema_for!(wb_session::bisect::BisectionReport),
            SchemaName::TuneResult => schema_for!(Vec<wb_knobs::tune::KnobResult>),
            SchemaName::TuneStatus => schema_for!(tune::TuneStatus),
            SchemaName::TuneRevertResult => schema_for!(Vec<tune::RevertedChange>),
            SchemaName::Profile => schema_for!(wb_profile::Profile),
            SchemaName::ProfileState => schema_for!(Vec<wb_profile::AppliedProfile>),
            SchemaName::Comparison => schema_for!(wb_results::comparison::ComparisonResult),
            SchemaName::ImportedSample => schema_for!(wb_model::imported::ImportedSample),
            SchemaName::NoiseModel => schema_for!(wb_compare::NoiseModel),
            SchemaName::NetResult => schema_for!(wb_results::net::RunResult),
            SchemaName::NetResults => schema_for!(Vec<wb_results::net::RunResult>),
            SchemaName::HashdParams => schema_for!(wb_hashd::HashdParams),
            SchemaName::HashdConfig => schema_for!(wb_hashd::HashdConfig),
            SchemaName::HashdReport => schema_for!(wb_hashd::HashdReport),
            SchemaName::HashdSizing => schema_for!(wb_hashd::sizing::SizingRequest),
            SchemaName::HashdSizingLine => schema_for!(wb_hashd::sizing::SizingLine),
            SchemaName::NetSweep => schema_for!(wb_results::net::Sweep),
            SchemaName::Dependencies => schema_for!(Vec<wb_session::contention::Dependency>),
            SchemaName::BenchResult => schema_for!(wb_results::contention::BenchResult),
            SchemaName::SequenceEvent => schema_for!(wb_contention::record::SequenceEvent),
            SchemaName::SequencePlan => schema_for!(Vec<wb_contention::sequence::PlannedJob>),
            SchemaName::PeersList => schema_for!(peers::list::MatrixListing),
        }
    }
}
