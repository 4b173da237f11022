//! Files of other programs that users have, where they are beside the repository.

use std::path::{Path, PathBuf};

use crate::lab::ImportEnv;

/// A file, or none if the folder is absent.
fn file(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/foreign");
    if !folder.is_dir() {
        wb_test_skip::skip!("no files of other programs in ../shared/data/foreign");
        return None;
    }
    Some(folder.join(name))
}

#[derive(Debug)]
struct ImportedCell {
    attempts: usize,
    outcome: String,
    /// Median of the primary metric.
    median: Option<f64>,
}

/// The cells of a file, or none if the folder is absent.
fn cells(name: &str) -> Option<Vec<ImportedCell>> {
    let lab = ImportEnv::new();
    let report = lab.try_import("R", &[file(name)?]).unwrap();
    assert_eq!(report.failed_files().map(|(_, error)| error.to_string()).collect::<Vec<_>>(), [""; 0], "{name}");
    let describe = |cell: &wb_results::CellResult| {
        let median =
            cell.metrics.iter().find(|result| result.metric.primary).and_then(|result| result.summary.as_ref());
        let median = median.map(|summary| summary.median);
        ImportedCell { attempts: cell.attempts.len(), outcome: cell.outcome.to_string(), median }
    };
    Some(lab.study("R").cells.iter().map(describe).collect())
}

#[test]
fn results_of_one_name_are_cells_apart() {
    for (name, samples) in [
        ("hf-cold-warm.json", 6),
        ("gb-dup-names.json", 1),
        ("gb-real-dup.json", 1),
        ("gb-real-merged.json", 1),
        ("pts-dup-entry2.xml", 3),
    ] {
        let Some(cells) = cells(name) else { return };
        let found: Vec<usize> = cells.iter().map(|cell| cell.attempts).collect();
        assert_eq!(found, [samples, samples], "{name}: {cells:?}");
    }
}

#[test]
fn figures_are_those_of_the_files() {
    for (name, median) in [
        ("gb-mean-only.json", 10.0),
        ("gb-preamble.json", 10.0),
        ("pts-decimal-comma.xml", 12.5),
        ("pts-no-raw.xml", 12.5),
        ("pts-628-equal.xml", 5.0),
    ] {
        let Some(cells) = cells(name) else { return };
        assert_eq!(cells.iter().map(|cell| cell.median).collect::<Vec<_>>(), [Some(median)], "{name}");
    }
    let Some(cells) = cells("pts-mean-mismatch.xml") else { return };
    assert!(cells[0].outcome.contains("the value is 50, its runs are 5:5:5"), "{cells:?}");
}

#[test]
fn an_error_of_xml_has_its_position() {
    let Some(path) = file("pts-39-entity.xml") else { return };
    let report = ImportEnv::new().try_import("R", &[path]).unwrap();
    let error = report.failed_files().map(|(_, error)| error.to_string()).collect::<String>();
    assert!(error.contains("line 2, column 434: unknown entity `eacute`"), "{error}");
}

#[test]
fn a_skipped_benchmark_has_the_circumstances_of_its_file() {
    let Some(path) = file("cmp-2290-new.json") else { return };
    let lab = ImportEnv::new();
    lab.try_import("R", &[path]).unwrap();
    for cell in lab.study("R").cells {
        assert_eq!((cell.provenance["CPUs"].as_str(), cell.provenance["host"].as_str()), ("4", "h"), "{}", cell.id);
    }
}
