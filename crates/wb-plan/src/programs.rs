//! The programs that cells run on their workers, and files that replace them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use wb_diagnostics::Diagnostic;
use wb_model::Params;
use wb_sys::agent_program::{self, AGENT_PROGRAM};

use crate::{Catalog, Cell, Request};

/// The program that runs native tests, by the name under which it is replaced.
const NATIVE_PROGRAM: &str = "weighbridge";

pub(crate) fn required_programs(catalog: &dyn Catalog, test: &str, params: &Params) -> Vec<String> {
    let required = catalog.cell(test, params).map(|cell| cell.requires()).unwrap_or_default();
    let required = required.into_iter().map(|need| need.program);
    required.chain(catalog.is_native(test).then(|| NATIVE_PROGRAM.to_owned())).collect()
}

/// Replaces a given `weighbridge` program by the agent beside it, which measures; the former would only start the
/// agent.
pub(crate) fn name_agent(programs: &mut BTreeMap<String, String>) {
    if let Some(file) = programs.get_mut(NATIVE_PROGRAM)
        && Path::new(file).file_name().is_some_and(|name| name != AGENT_PROGRAM)
        && let Some(agent) = agent_program::find(Path::new(file))
    {
        *file = agent.display().to_string();
    }
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

/// The error for replacing a program that no test needs. `needs` has the programs of each test; `format_argument`
/// formats the corrected argument for one of them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighbridge_in_the_place_of_another_is_the_agent_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path(AGENT_PROGRAM), "").unwrap();
        for (given, named) in [
            (path("weighbridge"), path(AGENT_PROGRAM)),
            (path(AGENT_PROGRAM), path(AGENT_PROGRAM)),
            // Before there was an agent, the program measured.
            ("/opt/old/weighbridge".to_owned(), "/opt/old/weighbridge".to_owned()),
        ] {
            let mut programs = BTreeMap::from([(NATIVE_PROGRAM.to_owned(), given), ("gcc".to_owned(), path("gcc"))]);
            name_agent(&mut programs);
            assert_eq!((&programs[NATIVE_PROGRAM], &programs["gcc"]), (&named, &path("gcc")));
        }
    }
}
