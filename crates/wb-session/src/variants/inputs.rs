//! Determines what a variant measured: the programs and parameters that affect its results.

use std::collections::BTreeMap;

use wb_compare::experiment::VariantInputs;
use wb_plan::Catalog;
use wb_results::CellResult;
use wb_test::{BUILT_PREFIX, BuildInputs, DEFINITION_FILE_PREFIX, DEFINITION_SHA256, Registry};

use crate::error::SessionError;
use crate::worker_program::worker_program_hash;

/// Suffix of provenance keys whose values are hashes of programs; `@WORKER` may follow.
const SHA256_SUFFIX: &str = " sha256";
/// Key for the definition's hash, for tests that name no program.
const DEFINITION: &str = "definition";
/// Key for the agent's program, which native tests measure. A cell records its hash only if another program replaces it.
const OWN_PROGRAM: &str = "weighbridge";

/// The inputs of a cell; empty if its test is unknown.
pub(super) fn measured_inputs(cell: &CellResult, registry: &Registry) -> Result<VariantInputs, SessionError> {
    let Some(test_cell) = registry.test_cell(cell.id.test.as_str(), &cell.params) else {
        return Ok(VariantInputs::default());
    };
    // Set apart from the rest, so that variants that differ only in compilers and flags can be seen to have measured
    // one program.
    let BuildInputs { params, programs } = test_cell.build_inputs();
    let base = |program: &str| program.rsplit('/').next().unwrap_or(program).to_owned();
    let compilers: Vec<String> = programs.iter().map(|program| base(program)).collect();
    let mut inputs = VariantInputs::default();
    for (name, value) in &cell.params {
        let target = if params.contains(name) { &mut inputs.build_params } else { &mut inputs.params };
        target.insert(name.clone(), value.clone());
    }
    let hashes = cell.provenance.iter().filter_map(|(name, hash)| Some((name.split_once(SHA256_SUFFIX)?, hash)));
    let is_program = |program: &str| program != DEFINITION && !program.starts_with(DEFINITION_FILE_PREFIX);
    for ((program, worker), hash) in hashes.filter(|((program, _), _)| is_program(program)) {
        let built = program.strip_prefix(BUILT_PREFIX);
        let target = if built.is_none() && compilers.iter().any(|compiler| compiler == program) {
            &mut inputs.build_programs
        } else {
            &mut inputs.programs
        };
        target.insert(format!("{}{worker}", built.unwrap_or(program)), hash.clone());
    }
    let needs_build = !compilers.is_empty() || !params.is_empty();
    if needs_build && !cell.provenance.keys().any(|name| name.starts_with(BUILT_PREFIX)) {
        inputs.programs = BTreeMap::new();
    }
    // The same definition runs the same commands, so its hash stands for the programs.
    if inputs.programs.is_empty()
        && !needs_build
        && let Some(hash) = cell.provenance.get(DEFINITION_SHA256)
    {
        inputs.programs.insert(DEFINITION.to_owned(), hash.clone());
    }
    if registry.is_native(cell.id.test.as_str()) {
        let hash = worker_program_hash()?;
        inputs.programs.entry(OWN_PROGRAM.to_owned()).or_insert(hash);
    }
    Ok(inputs)
}
