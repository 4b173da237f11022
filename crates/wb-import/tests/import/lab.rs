//! Temporary folder of a test, with files to import and runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wb_declarative::add_folder;
use wb_import::{Format, ImportError, ImportReport, ImportRequest, NameOverrides, import};
use wb_record::RunFolder;
use wb_results::Study;

pub(crate) struct ImportEnv {
    folder: TempDir,
    pub(crate) names: NameOverrides,
    pub(crate) format: Option<Format>,
    pub(crate) strict: bool,
    pub(crate) include_incorrect: bool,
}

/// Path of an example of a program's results.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Text of an example.
pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap()
}

impl ImportEnv {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, names: NameOverrides::default(), format: None, strict: false, include_incorrect: false }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn try_import(&self, run: &str, paths: &[PathBuf]) -> Result<ImportReport, ImportError> {
        import(&ImportRequest {
            folder: &self.path(run),
            paths,
            format: self.format,
            names: self.names.clone(),
            include_incorrect: self.include_incorrect,
            strict: self.strict,
            command: vec!["weighbridge".to_owned(), "import".to_owned()],
            metadata: BTreeMap::from([("build".to_owned(), "8".to_owned())]),
            version: "0",
            program_sha256: String::new(),
            boot_id: String::new(),
        })
    }

    /// Imports examples, and asserts that none of them fails.
    pub(crate) fn import(&self, run: &str, examples: &[&str]) -> ImportReport {
        let paths: Vec<PathBuf> = examples.iter().map(|name| example(name)).collect();
        let report = self.try_import(run, &paths).unwrap();
        let failed: Vec<String> =
            report.failed_files().map(|(path, reason)| format!("{} {reason}", path.display())).collect();
        assert_eq!(failed, [""; 0]);
        report
    }

    /// Evaluates a run, and writes its results.
    pub(crate) fn study(&self, run: &str) -> Study {
        let run = RunFolder::open(&self.path(run)).unwrap();
        let mut registry = wb_tests::built_in();
        let skipped = add_folder(&mut registry, &run.tests_folder()).unwrap();
        assert!(skipped.is_empty(), "{skipped:?}");
        wb_study::write_results(&run, &registry).unwrap()
    }

    /// Content of all files of a run.
    pub(crate) fn all_content(&self, run: &str) -> String {
        let mut folders = vec![self.path(run)];
        let mut all = String::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    all += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap());
                }
            }
        }
        all
    }
}
