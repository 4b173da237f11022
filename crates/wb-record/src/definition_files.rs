//! Copies of the files that definitions of tests name, so that a run says what was run without them.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::secrets::{mask_declared, mask_lines};
use wb_model::{Bytes, Sha256, TestName};

use crate::{RecordError, RunFolder, files};

/// The files of a definition: `tests.d/TEST.files.json` of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionFiles {
    /// Each of them.
    pub files: Vec<DefinitionFile>,
}

/// A file that a definition names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionFile {
    /// Its path, as the definition has it.
    pub path: String,
    /// Its length in bytes; none where it could not be read.
    pub bytes: Option<u64>,
    /// The hash of what was in it.
    pub sha256: Option<Sha256>,
    /// The copy.
    #[serde(flatten)]
    pub copy: FileCopy,
}

/// What a run has of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "copy", rename_all = "kebab-case")]
pub enum FileCopy {
    /// All that was in it.
    Whole {
        /// Where the copy lies, from the folder of the definition.
        file: String,
    },
    /// The file without the secrets that were in it.
    Masked {
        /// Where the copy lies, from the folder of the definition.
        file: String,
    },
    /// Nothing.
    Missing {
        /// The reason.
        reason: String,
    },
}

impl DefinitionFiles {
    /// Reads the list beside a definition; none where the definition is no record of a run.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn read_beside(definition: &Path) -> Result<Option<Self>, RecordError> {
        files::read_json(&definition.with_extension("files.json"))
    }

    /// The file of this path.
    pub fn get(&self, path: &str) -> Option<&DefinitionFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// A larger file is recorded by its hash alone.
pub const LARGEST_COPY: Bytes = Bytes(16 << 20);

/// The folder of the copies within that of the definitions.
const FOLDER: &str = "files";

impl RunFolder {
    /// Copies the files that a test's definition names, each given by its path there and where it lies, and lists them
    /// in `tests.d/TEST.files.json`. The newly listed files come back.
    ///
    /// # Errors
    /// When the run folder cannot be written; a file that cannot be read is listed with the reason.
    pub fn copy_files(&self, test: &TestName, named: &[(String, PathBuf)]) -> Result<Vec<DefinitionFile>, RecordError> {
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let list = self.tests_folder().join(format!("{test}.files.json"));
        let before: DefinitionFiles = files::read_json(&list)?.unwrap_or_default();
        let mut all = DefinitionFiles::default();
        for (path, location) in named {
            all.files.push(self.copy_file(path, location)?);
        }
        // What an earlier entry named is still needed to say what was run then.
        let left = before.files.iter().filter(|file| all.get(&file.path).is_none()).cloned().collect::<Vec<_>>();
        all.files.extend(left);
        if all == before {
            return Ok(Vec::new());
        }
        fs::create_dir_all(self.tests_folder()).map_err(RecordError::io("create", &self.tests_folder()))?;
        files::write_json(&list, &all)?;
        Ok(all.files.into_iter().filter(|file| before.get(&file.path) != Some(file)).collect())
    }

    /// A file with its copy.
    fn copy_file(&self, path: &str, location: &Path) -> Result<DefinitionFile, RecordError> {
        let file = |bytes, sha256, copy| DefinitionFile { path: path.to_owned(), bytes, sha256, copy };
        let missing = |why: String| FileCopy::Missing { reason: why };
        let found = match read(location) {
            Ok(found) => found,
            Err(error) => return Ok(file(None, None, missing(format!("cannot read it: {error}")))),
        };
        let Some(content) = found.content else {
            let why = format!("it is larger than {LARGEST_COPY}");
            return Ok(file(Some(found.bytes), Some(found.sha256), missing(why)));
        };
        let masked = mask_text(&content);
        let is_masked = masked.is_some();
        let content = masked.unwrap_or(content);
        let name = location.file_name().map_or_else(|| "file".to_owned(), |name| name.to_string_lossy().into_owned());
        // By the hash of what was run, so that an earlier content stays beside a later one.
        let copy = format!("{FOLDER}/{}/{name}", found.sha256);
        let target = self.tests_folder().join(&copy);
        if !fs::read(&target).is_ok_and(|existing| existing == content) {
            let folder = target.parent().unwrap_or(&target);
            fs::create_dir_all(folder).map_err(RecordError::io("create", folder))?;
            files::write_atomic(&target, &content)?;
        }
        let copy = if is_masked { FileCopy::Masked { file: copy } } else { FileCopy::Whole { file: copy } };
        Ok(file(Some(found.bytes), Some(found.sha256), copy))
    }
}

struct CopySource {
    bytes: u64,
    sha256: Sha256,
    /// None where it is too large to be copied.
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
    Ok(CopySource { bytes: content.len() as u64, sha256: Sha256::of(&content), content: Some(content) })
}

/// Words of programs that sound like a secret's name to the rule for these, and are none.
const HARMLESS_WORDS: [&str; 5] = ["passed", "passes", "passing", "bypass", "keyword"];

/// A text without its secrets; none where it has none, or is no text.
fn mask_text(content: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content).ok()?;
    // A character that no text has takes the place of each.
    let hidden = |at: usize| char::from(at as u8 + 1).to_string();
    let of_rule =
        HARMLESS_WORDS.iter().enumerate().fold(text.to_owned(), |text, (at, word)| text.replace(word, &hidden(at)));
    let masked = mask_lines(&of_rule);
    let masked = HARMLESS_WORDS.iter().enumerate().fold(masked, |text, (at, word)| text.replace(&hidden(at), word));
    let masked = mask_declared(&masked);
    (masked != text).then(|| masked.into_owned().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lab {
        folder: tempfile::TempDir,
        run: RunFolder,
    }

    impl Lab {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let run = RunFolder::create(&folder.path().join("RUN")).unwrap();
            Self { folder, run }
        }

        /// Copies a file with this content, and says what became of it.
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
    fn files_are_copied_once_with_their_hash_and_earlier_contents_stay() {
        let lab = Lab::new();
        let [first] = &lab.copy(b"print(1)\n")[..] else { panic!("one file") };
        assert_eq!((first.path.as_str(), first.bytes), ("lib/runner.py", Some(9)));
        assert_eq!(first.sha256, Some(Sha256::of(b"print(1)\n")));
        assert!(lab.copy(b"print(1)\n").is_empty(), "nothing is new");
        let [second] = &lab.copy(b"print(2)\n")[..] else { panic!("one file") };
        assert_eq!([first, second].map(|file| lab.content(file)), [b"print(1)\n", b"print(2)\n"]);
    }

    #[test]
    fn secrets_are_masked_and_the_hash_is_that_of_the_original() {
        let lab = Lab::new();
        let original = b"#!/bin/sh\ntool --password zq1\n";
        let [file] = &lab.copy(original)[..] else { panic!("one file") };
        assert!(matches!(file.copy, FileCopy::Masked { .. }));
        assert_eq!(file.sha256, Some(Sha256::of(original)));
        assert_eq!(lab.content(file), b"#!/bin/sh\ntool --password ***\n");
        let [file] = &lab.copy(b"check(passed=digest == EXPECTED, keywords=1)\n")[..] else { panic!("one file") };
        assert!(matches!(file.copy, FileCopy::Whole { .. }), "{file:?}");
    }

    #[test]
    fn of_a_large_file_the_hash_is_recorded_and_of_one_that_is_gone_the_reason() {
        let lab = Lab::new();
        let large = vec![b'x'; LARGEST_COPY.0 as usize + 1];
        let [file] = &lab.copy(&large)[..] else { panic!("one file") };
        assert_eq!(file.copy, FileCopy::Missing { reason: "it is larger than 16m".to_owned() });
        assert_eq!(file.sha256, Some(Sha256::of(&large)));
        let gone = [("gone".to_owned(), lab.folder.path().join("gone"))];
        let all = lab.run.copy_files(&TestName::new("y").unwrap(), &gone).unwrap();
        assert!(matches!(&all[..], [DefinitionFile { sha256: None, copy: FileCopy::Missing { .. }, .. }]), "{all:?}");
    }
}
