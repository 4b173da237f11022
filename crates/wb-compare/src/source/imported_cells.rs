//! Pairs cells of imported runs by their parameters.
//!
//! The name of an imported cell has the parameters in which it differs from other cells of its file, so the same job is
//! named differently in another file. Here the same parameters get the same name in all runs. If another run has a cell
//! only with further parameters, the two are paired, unless there are several such cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wb_model::imported::IMPORTED_FROM;
use wb_model::{Case, ParamValue};
use wb_record::CellDefinition;

use super::RunIndex;
use super::pairing::ResultSource;
use super::parsed_result::ImportedCell;
use super::warning::{Warning, WarningKind};
use crate::build::{DEFINING_PARAMS, DEFINITION_KEY};
use crate::interner::Symbol;

/// Parameters that files of a format lack if an earlier version of its program wrote them, by format: without one, its
/// value is unknown.
const UNRECORDED: [(&str, &str); 1] = [("google-benchmark", "executable")];

const HYPERFINE: &str = "hyperfine";

/// The version of the import of hyperfine that had the status of a command that never succeeds as a parameter.
const WITH_STATUS_PARAM: u32 = 2;

/// The name of the parameter with that status.
pub(super) const STATUS_PARAM: &str = "exit-status";

/// Makes the definition of an imported cell the one that an import of this version would record, as far as both read
/// the files alike. Returns the exit status of the cell's command if it was a parameter.
pub(super) fn upgrade(definition: &mut CellDefinition) -> Option<String> {
    let CellDefinition { version, params, provenance, .. } = definition;
    let format = provenance.get(IMPORTED_FROM)?;
    params.retain(|_, value| *value != ParamValue::Text(String::new()));
    if (format.as_str(), *version) != (HYPERFINE, WITH_STATUS_PARAM) {
        return None;
    }
    *version += 1;
    params.remove(STATUS_PARAM).map(|status| status.to_string())
}

type Params = BTreeMap<String, String>;

/// The cells with the same parameters in all runs.
#[derive(Default)]
struct Variant {
    format: String,
    params: Params,
    /// The parameters that are in any of its names.
    axes: BTreeSet<String>,
    cells: Vec<Cell>,
}

struct Cell {
    source: usize,
    run: RunIndex,
    case: Symbol,
    version: Option<u32>,
    key: String,
}

/// Gives imported cells with the same parameters one name in all runs. Warns about cells that may be any of several.
pub(super) fn pair_imported_cells(sources: &mut [ResultSource]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut renamed = vec![BTreeMap::new(); sources.len()];
    for (serial, variants) in variants(sources) {
        let names: Vec<String> = variants.iter().map(Variant::name).collect();
        let like = like(&variants, &names);
        let mut final_names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (index, variant) in variants.iter().enumerate() {
            match like[index][..] {
                [first] if first < index && like[first] == [index] => {
                    final_names[index] = &names[first];
                    variants[first].give_key_to(variant, sources);
                }
                [one, other, ..] if variants[one].has_run_of(&variants[other]) => {
                    let full_name = |index: usize| format!("{serial}:{}", names[index]);
                    let path = sources[variant.cells[0].source].file.path.clone();
                    let candidates = like[index].iter().map(|index| full_name(*index)).collect();
                    warnings
                        .push(Warning { path, kind: WarningKind::Ambiguous { cell: full_name(index), candidates } });
                }
                _ => {}
            }
        }
        for (variant, name) in variants.iter().zip(final_names) {
            for Cell { source, case, .. } in &variant.cells {
                renamed[*source].insert(*case, name.to_owned());
            }
        }
    }
    for (source, names) in sources.iter_mut().zip(renamed) {
        // Files that were imported one after the other may have one job twice in a run.
        if let Ok(parsed) = &mut source.content
            && names.values().collect::<BTreeSet<_>>().len() == names.len()
        {
            parsed.rename_cases(&names);
        }
    }
    warnings
}

/// The imported cells of each serial by their parameters, in the order of the builds.
fn variants(sources: &[ResultSource]) -> BTreeMap<String, Vec<Variant>> {
    let mut serials: BTreeMap<String, BTreeMap<Params, Variant>> = BTreeMap::new();
    for (at, ResultSource { run, profile, file, content }) in sources.iter().enumerate() {
        let (Some(profile), Ok(parsed)) = (profile, content) else { continue };
        for ImportedCell { case, format, version, params } in &parsed.imported {
            let text = |name: &Symbol| parsed.names.resolve(*name).to_owned();
            let all: Params = parsed.params[*params].iter().map(|(name, value)| (text(name), text(value))).collect();
            let key = all.get(DEFINITION_KEY).cloned().unwrap_or_default();
            let known =
                all.into_iter().filter(|(name, value)| !value.is_empty() && !DEFINING_PARAMS.contains(&&**name));
            let params: Params = known.collect();
            let axes = parsed.names.resolve(*case).parse::<Case>().unwrap_or_default();
            let axes = axes.axes().map(|(name, _)| name.to_owned()).filter(|name| params.contains_key(name));
            let axes: Vec<String> = axes.collect();
            let serial = serials.entry(format!("{profile}/{}/{}", file.test, file.serial)).or_default();
            let variant = serial.entry(params.clone()).or_default();
            variant.axes.extend(axes);
            variant.format = text(format);
            variant.params = params;
            variant.cells.push(Cell { source: at, run: *run, case: *case, version: *version, key });
        }
    }
    let in_order = |variants: BTreeMap<Params, Variant>| {
        let mut variants: Vec<Variant> = variants.into_values().collect();
        variants.sort_by_key(|variant| variant.cells[0].source);
        variants
    };
    serials.into_iter().map(|(serial, variants)| (serial, in_order(variants))).collect()
}

/// For each variant those that may be the same, of other runs: one of both has all parameters of the other, with the
/// same values. None if another run has a cell of its name.
fn like(variants: &[Variant], names: &[String]) -> Vec<Vec<usize>> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut by_param: HashMap<(&String, &String), usize> = HashMap::new();
    for (index, variant) in variants.iter().enumerate() {
        by_name.entry(&names[index]).or_default().push(index);
        variant.params.iter().for_each(|param| *by_param.entry(param).or_default() += 1);
    }
    let is_candidate = |index: &usize| by_name[names[*index].as_str()].len() == 1;
    // Each is found by the parameter that the fewest have.
    let mut by_rarest: HashMap<(&String, &String), Vec<usize>> = HashMap::new();
    for index in (0..variants.len()).filter(is_candidate) {
        let rarest = variants[index].params.iter().min_by_key(|param| by_param[param]);
        rarest.into_iter().for_each(|param| by_rarest.entry(param).or_default().push(index));
    }
    let mut all = vec![Vec::new(); variants.len()];
    for many in (0..variants.len()).filter(is_candidate) {
        for few in variants[many].params.iter().filter_map(|param| by_rarest.get(&param)).flatten() {
            if *few != many && variants[*few].has_params_within(&variants[many]) {
                all[many].push(*few);
                all[*few].push(many);
            }
        }
    }
    all.iter_mut().for_each(|like| like.sort_unstable());
    all
}

impl Variant {
    /// Its name: its parameters that are in a name in any run.
    fn name(&self) -> String {
        let values = self.params.iter().filter(|(name, _)| self.axes.contains(*name));
        let axes: Vec<_> = values.map(|(name, value)| (name, ParamValue::Text(value.clone()))).collect();
        Case::new(axes.iter().map(|(name, value)| (name.as_str(), value))).to_string()
    }

    fn has_run_of(&self, other: &Self) -> bool {
        let is_of_one = |one: &Cell, two: &Cell| (one.run.build, one.run.run) == (two.run.build, two.run.run);
        self.cells.iter().any(|one| other.cells.iter().any(|two| is_of_one(one, two)))
    }

    /// Whether it is of other runs, and another one has all of its parameters.
    fn has_params_within(&self, many: &Self) -> bool {
        self.params.iter().all(|(name, value)| many.params.get(name) == Some(value)) && !self.has_run_of(many)
    }

    /// Copies its definition key to a variant that differs only in parameters that one variant's files do not record.
    fn give_key_to(&self, other: &Self, sources: &mut [ResultSource]) {
        let names = || self.params.keys().chain(other.params.keys());
        let mut further = names().filter(|name| self.params.get(*name) != other.params.get(*name));
        if !further.all(|name| UNRECORDED.contains(&(self.format.as_str(), name))) {
            return;
        }
        for Cell { source, case, version, .. } in &other.cells {
            let Ok(parsed) = &mut sources[*source].content else { continue };
            if *version == self.cells[0].version {
                parsed.set_param(*case, DEFINITION_KEY, &self.cells[0].key);
            }
        }
    }
}
