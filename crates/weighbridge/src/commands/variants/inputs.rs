//! What variants measured: programs and parameters that decide the figures.

use std::collections::BTreeMap;

use wb_compare::experiment::VariantSetup;
use wb_plan::Catalog;
use wb_study::result::CellResult;
use wb_tests::{BUILT_PREFIX, BuildInputs, DEFINITION_FILE_PREFIX, DEFINITION_SHA256, Registry};

use crate::commands::current_program_hash;
use crate::error::Error;

/// With this a name in the provenance ends, or goes on with `@WORKER`, whose value is a program's hash.
const SHA256_SUFFIX: &str = " sha256";
/// What a test measures that names no program of its own.
const DEFINITION: &str = "definition";
/// What native tests measure. Its hash is recorded of a cell where another program replaces it.
const OWN_PROGRAM: &str = "weighbridge";

/// What a cell measured; nothing where its programs are not known.
pub(super) fn measured_inputs(cell: &CellResult, registry: &Registry) -> Result<VariantSetup, Error> {
    let Some(test) = registry.test(cell.cell.test.as_str()) else { return Ok(VariantSetup::default()) };
    let BuildInputs { params, programs } = test.build_inputs(&cell.params);
    let base = |program: &str| program.rsplit('/').next().unwrap_or(program).to_owned();
    let compilers: Vec<String> = programs.iter().map(|program| base(program)).collect();
    let mut measured = VariantSetup::default();
    for (name, value) in &cell.params {
        match params.contains(name) {
            true => drop(measured.build.insert(name.clone(), value.to_string())),
            false => drop(measured.params.insert(name.clone(), value.clone())),
        }
    }
    let hashes = cell.provenance.iter().filter_map(|(name, hash)| Some((name.split_once(SHA256_SUFFIX)?, hash)));
    let is_program = |program: &str| program != DEFINITION && !program.starts_with(DEFINITION_FILE_PREFIX);
    for ((program, worker), hash) in hashes.filter(|((program, _), _)| is_program(program)) {
        let built = program.strip_prefix(BUILT_PREFIX);
        let place = if built.is_none() && compilers.iter().any(|compiler| compiler == program) {
            &mut measured.build
        } else {
            &mut measured.programs
        };
        place.insert(format!("{}{worker}", built.unwrap_or(program)), hash.clone());
    }
    let is_to_be_built = !compilers.is_empty() || !params.is_empty();
    if is_to_be_built && !cell.provenance.keys().any(|name| name.starts_with(BUILT_PREFIX)) {
        measured.programs = BTreeMap::new();
    }
    // The same commands of the same definition call the same programs.
    if measured.programs.is_empty()
        && !is_to_be_built
        && let Some(hash) = cell.provenance.get(DEFINITION_SHA256)
    {
        measured.programs.insert(DEFINITION.to_owned(), hash.clone());
    }
    if registry.is_native(cell.cell.test.as_str()) {
        let own = current_program_hash()?;
        measured.programs.entry(OWN_PROGRAM.to_owned()).or_insert(own);
    }
    Ok(measured)
}
