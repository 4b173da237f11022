//! Records of results, which no output may replace.

use std::path::Path;

/// The file that marks a folder of results in run-perf's layout.
const RUN_PERF_METADATA: &str = "RUNPERF_METADATA";

/// Folders of a run with records only.
const RECORD_FOLDERS: [&str; 3] = ["environment", "tests.d", "imported"];

/// Endings of the records at the top of a run folder; pages, tables and charts have others.
const RECORD_EXTENSIONS: [&str; 3] = ["json", "jsonl", "toml"];

/// Files that mark a folder with the results of a test.
const CELL_FILES: [&str; 2] = ["definition.json", "result.json"];

/// Whether an existing file, named without symbolic links, is a record in a folder of results.
pub(crate) fn is_record(file: &Path) -> bool {
    let is_results = |folder: &&Path| {
        let has = |name: &str| folder.join(name).is_file();
        (has("run.json") && has("journal.jsonl")) || has(RUN_PERF_METADATA)
    };
    let Some(folder) = file.ancestors().skip(1).find(is_results) else { return false };
    let Ok(inside) = file.strip_prefix(folder) else { return false };
    let is_record = match inside.iter().next().filter(|_| inside.iter().count() > 1) {
        None => {
            inside == Path::new(RUN_PERF_METADATA)
                || inside.extension().is_some_and(|extension| RECORD_EXTENSIONS.iter().any(|known| extension == *known))
        }
        Some(first) => {
            let folders = inside.ancestors().skip(1).filter(|inside| !inside.as_os_str().is_empty());
            let has_cell = |inside: &Path| CELL_FILES.iter().any(|name| folder.join(inside).join(name).is_file());
            RECORD_FOLDERS.iter().any(|known| first == *known) || folders.into_iter().any(has_cell)
        }
    };
    is_record && file.is_file()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn records_and_pages_beside_them_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let records = [
            "R/run.json",
            "R/journal.jsonl",
            "R/experiment.json",
            "R/tests.d/x.toml",
            "R/imported/0a/x.json",
            "R/Localhost/t/0000/definition.json",
            "R/Localhost/t/0000/result.json",
            "R/Localhost/t/0000/-/0.0/stdout.txt",
            "B/results/v1/run.json",
            "B/results/v1/journal.jsonl",
            "P/RUNPERF_METADATA",
            "P/Localhost/fio/0000/result.json",
            "P/Localhost/fio/0000/1-x/sample1/fio.json",
        ];
        let others = ["R/page.html", "R/charts/a.svg", "P/page.html", "B/page.html", "x.json"];
        for file in records.iter().chain(&others) {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "x").unwrap();
        }
        for file in records {
            assert!(is_record(&root.join(file)), "{file}");
        }
        for file in others.into_iter().chain(["R/new.json"]) {
            assert!(!is_record(&root.join(file)), "{file}");
        }
    }
}
