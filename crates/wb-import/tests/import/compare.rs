//! Comparison of imported runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_compare::{BuildSource, Builds, MeasuredValue, ReadOptions};
use wb_results::comparison::Statistic;

use crate::lab::ImportEnv;

fn builds(sources: &[PathBuf]) -> Builds {
    let source = |path: &PathBuf| BuildSource { name: "b".into(), runs: vec![path.clone()], profiles: BTreeMap::new() };
    let sources: Vec<BuildSource> = sources.iter().map(source).collect();
    let result = wb_compare::read(&sources, &ReadOptions::default(), &|_| Err("already studied".to_owned())).unwrap();
    assert!(result.warnings.is_empty(), "{:?}", result.warnings);
    result.builds
}

/// Means of a folder, by names that are independent of the program.
fn means(folder: &Path) -> BTreeMap<String, f64> {
    let builds = builds(&[folder.to_owned()]);
    let mean = |row| {
        let id = builds.id(row, Statistic::Mean);
        let case = id.case.trim_start_matches("iteration=");
        let name = format!("{}/{}/{case}/{}/{}", id.profile, id.serial, id.class, id.metric);
        match builds.list()[0].value(row, Statistic::Mean) {
            MeasuredValue::Known(mean) => Some((name, mean)),
            _ => None,
        }
    };
    builds.rows().filter_map(mean).collect()
}

#[test]
fn imported_results_of_run_perf_have_the_same_means_as_its_folders() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/run-perf/1_base");
    if !folder.is_dir() {
        wb_test_skip::skip!("no run-perf builds in ../shared/data/run-perf");
        return;
    }
    let lab = ImportEnv::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let build = entry.unwrap().path();
        if !build.is_dir() {
            continue;
        }
        let name = build.file_name().unwrap().to_string_lossy().into_owned();
        lab.try_import(&name, std::slice::from_ref(&build)).unwrap();
        lab.study(&name);
        let (direct, imported) = (means(&build), means(&lab.path(&name)));
        assert!(direct.len() >= 3, "{name}: {direct:?}");
        assert_eq!(direct, imported, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 6);
}
