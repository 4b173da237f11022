//! Copies of the files that test definitions refer to, so that a run is self-contained.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets::mask_lines;
use wb_model::{Bytes, Sha256, TestName};

use crate::{RecordError, RunFolder, files};

/// The files that a test definition refers to: `tests.d/TEST.files.json` of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionFiles {
    /// The files.
    pub files: Vec<DefinitionFile>,
}

/// A file that a test definition refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionFile {
    /// Its path, as in the definition.
    pub path: String,
    /// Its length in bytes; absent if it could not be read.
    pub bytes: Option<u64>,
    /// The hash of its content.
    pub sha256: Option<Sha256>,
    /// The copy.
    #[serde(flatten)]
    pub copy: FileCopy,
}

/// The copy of a file in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "copy", rename_all = "kebab-case")]
pub enum FileCopy {
    /// An exact copy.
    Whole {
        /// The path of the copy, relative to the folder of the definition.
        file: String,
    },
    /// A copy with secrets masked.
    Masked {
        /// The path of the copy, relative to the folder of the definition.
        file: String,
    },
    /// No copy.
    Missing {
        /// Why there is no copy.
        reason: String,
    },
}

impl DefinitionFiles {
    /// Reads the list next to a definition below `root`; `None` if the definition is not part of a run.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn read_beside(root: &Path, definition: &Path) -> Result<Option<Self>, RecordError> {
        files::read_json(root, &definition.with_extension("files.json"))
    }

    /// The file with this path.
    pub fn get(&self, path: &str) -> Option<&DefinitionFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// Maximum size of a copy; only the hash of a larger file is recorded.
pub const LARGEST_COPY: Bytes = Bytes(16 << 20);

/// The folder of the copies, relative to the folder of the definitions.
const FOLDER: &str = "files";

impl RunFolder {
    /// Copies the files that a test definition refers to, each given by its path in the definition and its location,
    /// and lists them in `tests.d/TEST.files.json`. Returns the newly listed files.
    ///
    /// # Errors
    /// If the run folder cannot be written. A file that cannot be read is listed with the reason.
    pub fn copy_files(&self, test: &TestName, named: &[(String, PathBuf)]) -> Result<Vec<DefinitionFile>, RecordError> {
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let list = self.tests_folder().join(format!("{test}.files.json"));
        let before: DefinitionFiles = self.read_json(&list)?.unwrap_or_default();
        let mut all = DefinitionFiles::default();
        for (path, location) in named {
            all.files.push(self.copy_file(path, location)?);
        }
        // Keep the files of earlier invocations, which are still part of the record of these.
        let earlier = before.files.iter().filter(|file| all.get(&file.path).is_none()).cloned().collect::<Vec<_>>();
        all.files.extend(earlier);
        if all == before {
            return Ok(Vec::new());
        }
        fs::create_dir_all(self.tests_folder()).map_err(RecordError::io("create", &self.tests_folder()))?;
        files::write_json(&list, &all)?;
        Ok(all.files.into_iter().filter(|file| before.get(&file.path) != Some(file)).collect())
    }

    /// Copies one file and returns its record.
    fn copy_file(&self, path: &str, location: &Path) -> Result<DefinitionFile, RecordError> {
        let file = |bytes, sha256, copy| DefinitionFile { path: path.to_owned(), bytes, sha256, copy };
        let missing = |reason: String| FileCopy::Missing { reason };
        let source = match read(location) {
            Ok(source) => source,
            Err(error) => return Ok(file(None, None, missing(format!("cannot read the file: {error}")))),
        };
        let Some(content) = source.content else {
            let reason = format!("it is larger than {LARGEST_COPY}");
            return Ok(file(Some(source.bytes), Some(source.sha256), missing(reason)));
        };
        let masked = mask_text(&content);
        let is_masked = masked.is_some();
        let content = masked.unwrap_or(content);
        let name = location.file_name().map_or_else(|| "file".to_owned(), |name| name.to_string_lossy().into_owned());
        // Named by the hash of the original, so that copies of earlier and later contents coexist.
        let copy = format!("{FOLDER}/{}/{name}", source.sha256);
        let target = self.tests_folder().join(&copy);
        if self.read(&target)?.is_none_or(|existing| existing != content) {
            let folder = target.parent().unwrap_or(&target);
            fs::create_dir_all(folder).map_err(RecordError::io("create", folder))?;
            files::write_atomic(&target, &content)?;
        }
        let copy = if is_masked { FileCopy::Masked { file: copy } } else { FileCopy::Whole { file: copy } };
        Ok(file(Some(source.bytes), Some(source.sha256), copy))
    }
}

/// The content of a file to be copied.
struct CopySource {
    bytes: u64,
    sha256: Sha256,
    /// `None` if it is too large to be copied.
    content: Option<Vec<u8>>,
}

fn read(location: &Path) -> std::io::Result<CopySource> {
    let mut file = File::open(location)?;
    let bytes = file.metadata()?.len();
    if bytes > LARGEST_COPY.0 {
        return Ok(CopySource { bytes, sha256: Sha256::of_reader(file)?, content: None });
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(CopySource { bytes: content.len() as u64, sha256: Sha256::digest(&content), content: Some(content) })
}

/// Masks the secrets of a text; `None` if it has none, or is not UTF-8.
fn mask_text(content: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content).ok()?;
    let masked = mask_lines(text);
    (masked != text).then(|| masked.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestRun {
        folder: tempfile::TempDir,
        run: RunFolder,
    }

    impl TestRun {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let run = RunFolder::create(&folder.path().join("RUN")).unwrap();
            Self { folder, run }
        }

        /// Copies a file with this content and returns the newly listed files.
        fn copy(&self, content: &[u8]) -> Vec<DefinitionFile> {
            let path = self.folder.path().join("runner.py");
            fs::write(&path, content).unwrap();
            self.run.copy_files(&TestName::new("x").unwrap(), &[("lib/runner.py".to_owned(), path)]).unwrap()
        }

        fn content(&self, file: &DefinitionFile) -> Vec<u8> {
            let (FileCopy::Whole { file } | FileCopy::Masked { file }) = &file.copy else { panic!("{file:?}") };
            fs::read(self.run.tests_folder().join(file)).unwrap()
        }
    }

    #[test]
    fn files_are_copied_once_with_their_hash_and_earlier_contents_are_kept() {
        let lab = TestRun::new();
        let [first] = &lab.copy(b"print(1)\n")[..] else { panic!("one file") };
        assert_eq!((first.path.as_str(), first.bytes), ("lib/runner.py", Some(9)));
        assert_eq!(first.sha256, Some(Sha256::digest(b"print(1)\n")));
        assert!(lab.copy(b"print(1)\n").is_empty(), "nothing is new");
        let [second] = &lab.copy(b"print(2)\n")[..] else { panic!("one file") };
        assert_eq!([first, second].map(|file| lab.content(file)), [b"print(1)\n", b"print(2)\n"]);
    }

    #[test]
    fn secrets_are_masked_and_the_hash_is_that_of_the_original() {
        let lab = TestRun::new();
        let original = b"#!/bin/sh\ntool --password zq1\n";
        let [file] = &lab.copy(original)[..] else { panic!("one file") };
        assert!(matches!(file.copy, FileCopy::Masked { .. }));
        assert_eq!(file.sha256, Some(Sha256::digest(original)));
        assert_eq!(lab.content(file), b"#!/bin/sh\ntool --password ***\n");
        let [file] = &lab.copy(b"check(passed=digest == EXPECTED, keywords=1)\n")[..] else { panic!("one file") };
        assert!(matches!(file.copy, FileCopy::Whole { .. }), "{file:?}");
    }

    #[test]
    fn a_large_file_is_recorded_by_its_hash_and_a_missing_file_with_the_reason() {
        let lab = TestRun::new();
        let large = vec![b'x'; LARGEST_COPY.0 as usize + 1];
        let [file] = &lab.copy(&large)[..] else { panic!("one file") };
        assert_eq!(file.copy, FileCopy::Missing { reason: "it is larger than 16m".to_owned() });
        assert_eq!(file.sha256, Some(Sha256::digest(&large)));
        let gone = [("gone".to_owned(), lab.folder.path().join("gone"))];
        let all = lab.run.copy_files(&TestName::new("y").unwrap(), &gone).unwrap();
        assert!(matches!(&all[..], [DefinitionFile { sha256: None, copy: FileCopy::Missing { .. }, .. }]), "{all:?}");
    }
}
