//! Pairs cells that only differ in parameters that are allowed to differ.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wb_model::DefinitionKey;
use wb_record::{CellDefinition, Definitions, files};

use super::folder::ResultFile;
use super::imported_cells;
use super::parsed_result::ParsedResult;
use super::value_map::ValueMap;
use super::{RunIndex, WarningKind};
use crate::build::{Build, DEFINING_PARAMS, METRIC_DIRECTION};
use crate::interner::Symbol;
use crate::unknown_name::{UnknownName, join_build_names};

const DEFINITIONS: &str = "definition.json";

pub(super) struct ResultSource {
    pub(super) run: RunIndex,
    /// The profile that it is compared as.
    pub(super) profile: Option<String>,
    pub(super) file: ResultFile,
    pub(super) content: Result<ParsedResult, WarningKind>,
}

/// The recorded definition of a cell, as it is compared.
pub(super) struct Recorded {
    pub(super) key: String,
    pub(super) version: u32,
    /// The status with which the cell's command always ended, if it was recorded as a parameter.
    pub(super) exit_status: Option<String>,
}

/// Reads the definitions of a serial's cells, by cell, with mapped values and with keys that are computed without the
/// `allowed` parameters; those of imported cells as an import of this version records them. Cells with unreadable
/// definitions keep their own keys, and the comparison reports that these differ.
pub(super) fn recorded_definitions(
    result: &ResultFile,
    allowed: &BTreeSet<String>,
    values: &ValueMap,
    is_imported: bool,
) -> BTreeMap<String, Recorded> {
    if allowed.is_empty() && values.is_empty() && !is_imported {
        return BTreeMap::new();
    }
    let definitions = files::read(&result.root, &result.path.with_file_name(DEFINITIONS)).ok().flatten();
    let definitions = definitions.and_then(|bytes| serde_json::from_slice::<Definitions>(&bytes).ok());
    let recorded = |mut definition: CellDefinition| {
        let CellDefinition { cell, key, version, params, .. } = &definition;
        // A key of parameters with masked secrets cannot be recomputed.
        if DefinitionKey::new(&cell.test, *version, params) != *key {
            return None;
        }
        let exit_status = imported_cells::upgrade(&mut definition);
        let CellDefinition { cell, version, mut params, .. } = definition;
        params.retain(|name, _| !allowed.contains(name));
        values.map_params(&mut params);
        let key = DefinitionKey::new(&cell.test, version, &params).to_string();
        Some((cell.to_string(), Recorded { key, version, exit_status }))
    };
    definitions.unwrap_or_default().cells.into_iter().filter_map(recorded).collect()
}

/// Each allowed parameter must occur in the results.
pub(super) fn check_parameters(
    sources: &[ResultSource],
    builds: &[Build],
    allowed: &BTreeSet<String>,
) -> Result<(), UnknownName> {
    let contents = || sources.iter().filter_map(|source| source.content.as_ref().ok());
    let candidates: BTreeSet<String> = contents()
        .flat_map(|parsed| parsed.params.iter().flatten().map(|(name, _)| parsed.names.resolve(*name)))
        .filter(|name| !DEFINING_PARAMS.contains(name))
        .map(str::to_owned)
        .collect();
    match allowed.iter().find(|name| !candidates.contains(*name)) {
        Some(name) => {
            let builds = join_build_names(builds.iter());
            Err(UnknownName { kind: "parameter", name: name.clone(), builds, candidates })
        }
        None => Ok(()),
    }
}

/// Without the allowed parameters, sorted by name.
type Definition = Vec<(String, String)>;

#[derive(Default)]
struct BaseCases {
    names: BTreeSet<String>,
    /// `None` if several cases only differ in allowed parameters.
    by_definition: HashMap<Definition, Option<String>>,
}

/// Renames cases of later builds to the first build's case that only differs in allowed parameters, if there is exactly
/// one on each side. Cases of the same name are a pair already.
pub(super) fn pair_cases(sources: &mut [ResultSource], allowed: &BTreeSet<String>) {
    if allowed.is_empty() {
        return;
    }
    let mut first: HashMap<(String, String, String), BaseCases> = HashMap::new();
    for ResultSource { run: run_index, profile, file, content } in sources.iter_mut() {
        let (Some(profile), Ok(parsed)) = (profile, content) else { continue };
        let serial = (profile.clone(), file.test.clone(), file.serial.clone());
        let cases = cases(parsed, allowed);
        if run_index.build == 0 {
            let first = first.entry(serial).or_default();
            for (case, definition) in cases {
                let name = parsed.names.resolve(case).to_owned();
                let only = first.by_definition.entry(definition).or_insert_with(|| Some(name.clone()));
                if only.as_ref().is_some_and(|other| *other != name) {
                    *only = None;
                }
                first.names.insert(name);
            }
        } else if let Some(first) = first.get(&serial) {
            rename(parsed, cases, first);
        }
    }
}

/// The cases with an allowed parameter, each with its definition.
fn cases(parsed: &ParsedResult, allowed: &BTreeSet<String>) -> BTreeMap<Symbol, Definition> {
    let text = |name: &Symbol| parsed.names.resolve(*name).to_owned();
    let mut cases = BTreeMap::new();
    for metric in &parsed.metrics {
        let params = &parsed.params[metric.params];
        if params.iter().any(|(name, _)| allowed.contains(parsed.names.resolve(*name))) {
            let others = params.iter().map(|(name, value)| (text(name), text(value)));
            cases.entry(metric.case).or_insert_with(|| {
                // A metric that is better in another direction belongs to the same case.
                others.filter(|(name, _)| !allowed.contains(name) && name != METRIC_DIRECTION).collect()
            });
        }
    }
    cases
}

fn rename(parsed: &mut ParsedResult, mut cases: BTreeMap<Symbol, Definition>, first: &BaseCases) {
    cases.retain(|case, _| !first.names.contains(parsed.names.resolve(*case)));
    let mut counts: HashMap<&Definition, usize> = HashMap::new();
    cases.values().for_each(|definition| *counts.entry(definition).or_default() += 1);
    for (case, definition) in &cases {
        let pair = first.by_definition.get(definition).and_then(Option::as_deref);
        let Some(pair) = pair.filter(|_| counts[definition] == 1) else { continue };
        let pair = parsed.names.intern(pair);
        for metric in parsed.metrics.iter_mut().filter(|metric| metric.case == *case) {
            metric.case = pair;
        }
    }
}
