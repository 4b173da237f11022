//! The programs that cells call on their workers, and files that take their places.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::Params;

use crate::{Catalog, Cell, PlanError, Request};

/// What runs the tests that come with this program.
const NATIVE_PROGRAM: &str = "weighbridge";

/// The programs that a cell of these parameters calls.
pub(crate) fn required_programs(catalogue: &dyn Catalog, test: &str, params: &Params) -> Vec<String> {
    let required = catalogue.requires(test, params).into_iter().map(|need| need.program);
    required.chain(catalogue.is_native(test).then(|| NATIVE_PROGRAM.to_owned())).collect()
}

/// Refuses a file in the place of a program that no cell calls: it would change nothing.
pub(crate) fn reject_unused(requests: &[Request], cells: &[Cell], catalogue: &dyn Catalog) -> Result<(), PlanError> {
    // Where no cell follows, that is what is wrong.
    if cells.is_empty() {
        return Ok(());
    }
    let replaced: BTreeMap<&String, &String> = requests.iter().flat_map(|request| &request.programs).collect();
    let is_called = |program: &String| cells.iter().any(|cell| cell.programs.contains_key(program));
    let Some((program, file)) = replaced.into_iter().find(|(program, _)| !is_called(program)) else { return Ok(()) };
    let mut of_tests: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for cell in cells {
        let test = cell.id.test.as_str();
        of_tests.entry(test).or_default().extend(required_programs(catalogue, test, &cell.params));
    }
    let needs: Vec<(&str, Vec<&str>)> =
        of_tests.iter().map(|(test, all)| (*test, all.iter().map(String::as_str).collect())).collect();
    Err(unknown_program(program, &needs, |instead| format!("--program {instead}={file}")))
}

/// The error of a file for a program that no test needs, each test given with those that it does. `written` is how a file
/// is given for one of them.
pub(crate) fn unknown_program(
    program: &str,
    needs: &[(&str, Vec<&str>)],
    written: impl FnOnce(&str) -> String,
) -> PlanError {
    let Some(first) = needs.iter().find_map(|(_, programs)| programs.first()) else {
        let tests: Vec<String> = needs.iter().map(|(test, _)| format!("`{test}`")).collect();
        let (tests, verb, they) = match &tests[..] {
            [only] => (only.clone(), "names", "it needs"),
            all => (all.join(", "), "name", "they need"),
        };
        return PlanError::without_location(format!("{tests} {verb} no program that {they}"))
            .with_help("a definition names its programs under [[requires]]; a parameter may be what chooses them");
    };
    let each = |(test, programs): &(&str, Vec<&str>)| match &programs[..] {
        [] => format!("`{test}` needs none"),
        all => format!("`{test}` needs {}", all.join(", ")),
    };
    let all: Vec<String> = needs.iter().map(each).collect();
    PlanError::without_location(format!("unknown program `{program}`: {}", all.join("; ")))
        .with_help(format!("name the program that the file replaces: `{}`", written(first)))
}
