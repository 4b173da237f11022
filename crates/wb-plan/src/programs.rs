//! The programs that cells run on their workers, and files that replace them.

use std::collections::{BTreeMap, BTreeSet};

use wb_diagnostics::Diagnostic;
use wb_model::Params;

use crate::{Catalog, Cell, Request};

/// The program that runs native tests: Weighbridge itself.
const NATIVE_PROGRAM: &str = "weighbridge";

/// The programs that a cell with these parameters runs.
pub(crate) fn required_programs(catalog: &dyn Catalog, test: &str, params: &Params) -> Vec<String> {
    let required = catalog.cell(test, params).map(|cell| cell.requires()).unwrap_or_default();
    let required = required.into_iter().map(|need| need.program);
    required.chain(catalog.is_native(test).then(|| NATIVE_PROGRAM.to_owned())).collect()
}

/// Rejects a replacement for a program that no cell runs, since it would have no effect.
pub(crate) fn reject_unused(requests: &[Request], cells: &[Cell], catalog: &dyn Catalog) -> Result<(), Diagnostic> {
    // Without cells, the missing cells are the error to report.
    if cells.is_empty() {
        return Ok(());
    }
    let replaced: BTreeMap<&String, &String> = requests.iter().flat_map(|request| &request.programs).collect();
    let is_called = |program: &String| cells.iter().any(|cell| cell.programs.contains_key(program));
    let Some((program, file)) = replaced.into_iter().find(|(program, _)| !is_called(program)) else { return Ok(()) };
    let mut of_tests: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for cell in cells {
        let test = cell.id.test.as_str();
        of_tests.entry(test).or_default().extend(required_programs(catalog, test, &cell.params));
    }
    let needs: Vec<(&str, Vec<&str>)> =
        of_tests.iter().map(|(test, all)| (*test, all.iter().map(String::as_str).collect())).collect();
    Err(unknown_program(program, &needs, |instead| format!("--program {instead}={file}")))
}

/// The error for replacing a program that no test needs; `needs` has the programs of each test. `format_argument`
/// formats the corrected argument for one of these.
pub(crate) fn unknown_program(
    program: &str,
    needs: &[(&str, Vec<&str>)],
    format_argument: impl FnOnce(&str) -> String,
) -> Diagnostic {
    let Some(first) = needs.iter().find_map(|(_, programs)| programs.first()) else {
        let tests: Vec<String> = needs.iter().map(|(test, _)| format!("`{test}`")).collect();
        let (tests, verb) = match &tests[..] {
            [only] => (only.clone(), "declares"),
            all => (all.join(", "), "declare"),
        };
        return Diagnostic::new(format!("{tests} {verb} no required programs"))
            .with_help("a definition lists its programs under [[requires]]; a parameter may select among them");
    };
    let each = |(test, programs): &(&str, Vec<&str>)| match &programs[..] {
        [] => format!("`{test}` needs none"),
        all => format!("`{test}` needs {}", all.join(", ")),
    };
    let all: Vec<String> = needs.iter().map(each).collect();
    Diagnostic::new(format!("unknown program `{program}`: {}", all.join("; ")))
        .with_help(format!("name the program to replace: `{}`", format_argument(first)))
}
