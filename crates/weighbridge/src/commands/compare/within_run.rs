//! `weighbridge compare RUN --by FACTOR`: parts of one run as the sides of a comparison.

use std::collections::BTreeMap;

use wb_compare::within_run::{self, SplitOptions};
use wb_compare::{Builds, Factor, LoadedBuilds, ReadOptions};
use wb_model::ParamValue;
use wb_plan::{Catalog, KNOBS};
use wb_results::comparison::Statistic;
use wb_session::definitions::registry;

use super::builds::read_with_options;
use crate::cli::compare::CompareArgs;
use crate::commands::latest_run::LATEST;
use crate::console::Console;
use crate::error::Error;

/// Reads the run, by default the newest one.
pub(super) fn read(args: &CompareArgs, console: &Console) -> Result<LoadedBuilds, Error> {
    let newest = [LATEST.to_owned()];
    let runs = if args.builds.is_empty() { &newest[..] } else { &args.builds };
    read_with_options(runs, &args.read, ReadOptions { schedule: true, ..ReadOptions::default() }, console)
}

pub(super) fn split(run: Builds, by: &str, args: &CompareArgs, console: &Console) -> Result<Builds, Error> {
    let factor = match by {
        "worker" => Factor::Worker,
        "id" => Factor::Id,
        name => {
            let by_test = names_by_test(&run, name, console)?;
            // If all tests have one name for it, that is the one in the names of cells.
            let mut names = by_test.values();
            let common = names.next().filter(|first| names.all(|other| other == *first));
            Factor::Param { name: common.map_or(name, String::as_str).to_owned(), by_test }
        }
    };
    let reference = match (&args.reference, &factor) {
        (Some(text), Factor::Param { by_test, .. }) => Some(canonical_value(text, by_test, console)?),
        (reference, _) => reference.clone(),
    };
    let allow_different = args.allow_different.iter().cloned().collect();
    let cell_names =
        BTreeMap::from([(wb_peers_worker::NAME.to_owned(), [wb_peers_worker::CELL_NAME.to_owned()].into())]);
    let options = SplitOptions { factor, reference, allow_different, cell_names };
    Ok(within_run::split(run, &options)?)
}

/// A value of a parameter as results have it: `1` for `1.0`, `4k` for `4096`. The text itself if no test has such a
/// value.
fn canonical_value(text: &str, by_test: &BTreeMap<String, String>, console: &Console) -> Result<String, Error> {
    let registry = registry(&[], None, &console.events())?;
    let value = ParamValue::Text(text.to_owned());
    let mut canonical = by_test.iter().filter_map(|(test, name)| {
        let param = registry.declaration(test)?.param(name)?;
        Some(param.kind.normalise(&value).ok()?.to_string())
    });
    Ok(canonical.next().unwrap_or_else(|| text.to_owned()))
}

/// The name of a parameter in each test that has it, from any of its names.
fn names_by_test(run: &Builds, name: &str, console: &Console) -> Result<BTreeMap<String, String>, Error> {
    let registry = registry(&[], None, &console.events())?;
    let knob = format!("{KNOBS}{name}");
    let mut names = BTreeMap::new();
    for row in run.rows() {
        let test = run.id(row, Statistic::Mean).test;
        let params = || run.list().iter().flat_map(|build| build.readings(row));
        let has = |param: &str| params().any(|reading| run.params(reading.params).any(|(name, _)| name == param));
        let declared = registry.declaration(test).and_then(|declaration| declaration.param(name));
        let canonical = declared.map_or(name, |param| &param.name);
        if let Some(canonical) = [canonical, &knob].into_iter().find(|name| has(name)) {
            names.insert(test.to_owned(), canonical.to_owned());
        }
    }
    Ok(names)
}
